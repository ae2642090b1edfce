"""Runtimes whose settings are a dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic

from scheduling.capacity.runtimes.base import Misconfigured, RuntimeAdapter
from scheduling.options import InvalidOptions, Options, read_options


class ConfiguredRuntime(RuntimeAdapter, Generic[Options]):
    """An adapter whose settings are a dataclass; created only from valid settings."""

    options_type: ClassVar[type[Any]]
    options: Options

    def __init__(self, pool: str, settings: Mapping[str, Any]) -> None:
        super().__init__(pool, settings)
        if problems := self.problems(settings):
            raise Misconfigured(" ".join(problems.values()))
        self.options = read_options(self.options_type, settings)

    @classmethod
    def problems(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        try:
            read_options(cls.options_type, settings)
        except InvalidOptions as error:
            return error.problems
        return {}
