"""`streamlearn run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.options import add_config
from streamlearn.daemon.process.exits import DESCRIPTIONS

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "run the daemon: consume, predict, learn, checkpoint"
EXAMPLES = """\
  streamlearn run config/quickstart.toml
  streamlearn run config/clicks.toml --until end   # the backlog, then exit 0
  streamlearn run config/clicks.toml --begin       # once, where checkpoint.required = true
  streamlearn run config/clicks.toml --skip-to clicks:0:12345
  streamlearn run config/clicks.toml --reset sparse

exit codes:
""" + "\n".join(f"  {code:2d} {text}" for code, text in DESCRIPTIONS.items())


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    add_config(parser)
    parser.add_argument(
        "--until",
        metavar="WHEN",
        help='stop at the "end" of the backlog, after a number of events, or at a time',
    )
    parser.add_argument(
        "--begin",
        action="store_true",
        help="write the first checkpoint of a new model and exit; there must be none yet",
    )
    parser.add_argument(
        "--reset",
        metavar="NAME",
        action="append",
        default=[],
        help="start this learner anew and archive its state (all: every learner; repeatable)",
    )
    parser.add_argument(
        "--skip-to",
        metavar="TOPIC:PARTITION:OFFSET",
        type=position,
        action="append",
        default=[],
        help="resume this partition here; records before it are skipped, valid ones too",
    )
    parser.add_argument(
        "--on-gap",
        choices=["stop", "continue"],
        help="if records were deleted before they were read: stop, or count them and continue",
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help='the Ray cluster of [fleet], HOST:PORT; "auto": RAY_ADDRESS, or one started here',
    )
    parser.add_argument(
        "--reset-offsets",
        action="store_true",
        help="resume where positions are beyond the end, or a topic was recreated",
    )


def position(text: str) -> tuple[str, int, int]:
    """Return topic, partition and offset."""
    topic, number, offset = text.rsplit(":", 2)
    if min(int(number), int(offset)) < 0:
        raise ValueError(text)
    return topic, int(number), int(offset)
