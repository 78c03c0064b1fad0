"""`streamlearn demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.parsing import seed, whole

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "watch five learners on a synthetic click stream; needs no Kafka and no files"
EXAMPLES = """\
  streamlearn demo
  streamlearn demo --fast --seed 7
  streamlearn demo --events 50000 --plain --no-page
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--events",
        metavar="N",
        type=whole,
        default=1_200_000,
        help="number of events (default: 1200000)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=seed, default=1, help="random seed (default: 1)"
    )
    parser.add_argument("--no-drift", action="store_true", help="no change half way through")
    parser.add_argument(
        "--fast", action="store_true", help="as fast as possible; on a terminal it takes a minute"
    )
    parser.add_argument(
        "--save",
        metavar="DIR",
        default="streamlearn-demo",
        help="where to save a model and events (default: streamlearn-demo)",
    )
    parser.add_argument("--no-save", action="store_true", help="save nothing")
    parser.add_argument("--no-page", action="store_true", help="do not serve the live page")
    parser.add_argument(
        "--plain", action="store_true", help="print plain lines, as when not on a terminal"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON at the end")
