"""`streamlearn check`: a configuration file is read as a whole, and the resolved plan printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from streamlearn.calls import shown
from streamlearn.cli.parsing import json_option
from streamlearn.cli.tables import show_json
from streamlearn.daemon import config
from streamlearn.daemon.config import plan

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from streamlearn.cli.parsing import Options

HELP = "validate a configuration file and print what would run, secrets masked"
EXAMPLES = """\
  streamlearn check config/quickstart.toml
  streamlearn check config/clicks.toml --set checkpoint.path=/var/lib/clicks --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and what overrides it."""
    config_arguments(parser)
    json_option(parser)


def run(options: Options) -> int:
    """Print the plan: it is a configuration file itself."""
    read = load(options)
    models = {name: parts(model) for name, model in config.estimators(read).items()}
    if options.json:
        show_json({"file": options.file, "config": plan.plain(read), "models": models})
        return 0
    sys.stdout.write(f"# {options.file} is valid; this is what it says, defaults included\n")
    for name, model in models.items():
        made = ", ".join(f"{key} {value}" for key, value in model.items())
        sys.stdout.write(f"# {name}: {made}\n")
    sys.stdout.write("\n" + plan.text(read))
    return 0


def parts(model: Any) -> dict[str, str]:
    """What a model is made of."""
    rule, penalty, loss = model._parts()  # noqa: SLF001 - one of us
    return {"rule": shown(rule), "loss": shown(loss), "penalty": shown(penalty)}


def config_arguments(parser: argparse.ArgumentParser) -> None:
    """The configuration file, for every command that takes one."""
    parser.add_argument("file", metavar="FILE", help="a configuration file (TOML)")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a value that stands before the file's, such as source.start=latest",
    )


def load(options: Options, more: Mapping[str, Any] | None = None) -> config.Config:
    """The configuration that the options name."""
    overrides = dict(more or {})
    for text in options.set:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise ValueError(f"--set {text}: expected KEY=VALUE, such as source.start=latest")
        overrides[key.strip()] = config.value(value.strip())
    return config.load(options.file, overrides)
