"""`streamlearn check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.options import add_config, add_json

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "validate a configuration file and print the resolved plan, secrets masked"
EXAMPLES = """\
  streamlearn check config/quickstart.toml
  streamlearn check config/clicks.toml --set checkpoint.path=/var/lib/clicks --json
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    add_config(parser)
    add_json(parser)
