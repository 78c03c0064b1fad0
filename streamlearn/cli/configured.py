"""Load the configuration file of a command, with the overrides of --set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn import config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.cli.parsing import Options


def load(options: Options, more: Mapping[str, Any] | None = None) -> config.Config:
    """Return the configuration that the options name; --set overrides `more`."""
    overrides = dict(more or {})
    for text in options.set:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise ValueError(f"--set {text}: expected KEY=VALUE, such as source.start=latest")
        overrides[key.strip()] = config.parse_value(value.strip())
    return config.load(options.file, overrides)
