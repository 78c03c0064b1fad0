"""`streamlearn inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.options import add_json, add_model
from streamlearn.cli.parsing import whole

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "show a model: its largest weights, how it was made, or why it predicts what it predicts"
EXAMPLES = """\
  streamlearn inspect clicks.model --top 50
  streamlearn inspect clicks.model --why event.json
  streamlearn inspect /var/lib/clicks --learner sparse --json   # a daemon's checkpoints
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    add_model(parser)
    parser.add_argument(
        "--top",
        metavar="N",
        type=whole,
        help="number of weights (default: 20; with --why: all)",
    )
    parser.add_argument(
        "--why", metavar="EVENT.json", help="explain the prediction for this event; - reads stdin"
    )
    add_json(parser)
