"""`streamlearn predict`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.options import add_format

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "print a model's predictions for the events of files, one line per event, in order"
EXAMPLES = """\
  streamlearn predict clicks.model tomorrow.jsonl > predictions.txt
  streamlearn predict clicks.model tomorrow.jsonl --probability
  streamlearn predict /var/lib/clicks "day-*.csv.gz" --learner sparse --label price --json
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a model file or a daemon's checkpoint.path")
    add_format(parser)
    parser.add_argument("--learner", metavar="NAME", help="the learner, in a checkpoint.path")
    parser.add_argument(
        "--probability",
        action="store_true",
        help="also print the probability of the positive label or, of more than two, of each label",
    )
    parser.add_argument(
        "--json", action="store_true", help="print lines of JSON, with id and score"
    )
