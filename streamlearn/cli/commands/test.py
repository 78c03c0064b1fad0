"""`streamlearn test`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.options import add_format, add_json

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "measure a model on files without learning: loss, ROC area, calibration, importance"
EXAMPLES = """\
  streamlearn test clicks.model tomorrow.jsonl
  streamlearn test clicks.model tomorrow.jsonl --report clicks.html
  streamlearn test /var/lib/clicks "day-*.csv.gz" --learner sparse --label clicked --json
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a model file or a daemon's checkpoint.path")
    add_format(parser)
    parser.add_argument("--learner", metavar="NAME", help="the learner, in a checkpoint.path")
    parser.add_argument(
        "--report", metavar="FILE", help="write a page with curves, calibration and importance"
    )
    add_json(parser)
