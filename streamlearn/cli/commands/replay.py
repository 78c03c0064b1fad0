"""`streamlearn replay`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.options import add_config, add_json

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "send dead letters back to the topics that they came from, each once"
EXAMPLES = """\
  streamlearn replay config/clicks.toml --dry-run   # count them by reason
  streamlearn replay config/clicks.toml
  streamlearn replay config/clicks.toml --to letters.jsonl   # to repair, then publish

Every consumer of those topics sees the records again; the headers streamlearn.origin.topic,
.partition and .offset hold their original place. What was sent is noted beside the checkpoints.
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    add_config(parser)
    parser.add_argument(
        "--to", metavar="FILE", help="append them to a file instead (- is standard output)"
    )
    parser.add_argument(
        "--again", action="store_true", help="start over: send those already sent, too"
    )
    parser.add_argument("--dry-run", action="store_true", help="count, but send nothing")
    add_json(parser)
