"""Command line of the controller: `python -m lcm.controller --config FILE`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys

from lcm.controller.application import Controller
from lcm.controller.config import Config, ConfigError, read_config
from lcm.controller.identity import hold_data_folder


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "lcm-controller", description="Runs lab sessions on CML workers for LCM."
    )
    parser.add_argument("--config", metavar="FILE", help="TOML; see docs/controller.md")
    options = parser.parse_args(arguments)
    try:
        config = read_config(options.config, os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    logging.basicConfig(
        level=config.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        with hold_data_folder(config):
            asyncio.run(serve(config))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


async def serve(config: Config) -> None:
    """Run the controller until SIGTERM or SIGINT."""
    controller = Controller(config)
    if config.metrics_bind != "off":
        controller.metrics.serve(config.metrics_bind)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, controller.stop)
    await controller.run()


if __name__ == "__main__":
    sys.exit(main())
