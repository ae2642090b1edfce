"""Writing a parsed topology as YAML."""

from typing import Any

import yaml

from lcm.cml.topology.yaml_scalars import UnsupportedScalar


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes the output of `load_mapping`, with dates and other unsupported scalars as in the file."""


def _plain(dumper: Any, value: UnsupportedScalar) -> Any:
    """Represent an unquoted scalar. YAML omits a tag that it would resolve for the text itself."""
    return dumper.represent_scalar(dumper.resolve(yaml.ScalarNode, value.text, (True, False)), value.text)


_Dumper.add_representer(UnsupportedScalar, _plain)


def write_yaml(document: object) -> str:
    """Return the YAML text of a parsed document, keys in their order."""
    return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True))
