"""`streamlearn evaluate`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from streamlearn.cli.options import (
    add_features,
    add_format,
    add_guess,
    add_json,
    add_regression,
    add_shards,
)
from streamlearn.cli.parsing import seconds, whole

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "compare learners on files: loss, regret against the best model in hindsight, non-zeros"
EXAMPLES = """\
  streamlearn evaluate clicks.jsonl --label clicked --learners "default,PegasosClassifier(l2=1e-3)"
  streamlearn evaluate a9a.svm --learners "DualAveraging(gamma=5.0),AdaGrad" --penalty "L1(1e-4)"
  streamlearn evaluate a9a.svm --learners default,Pegasos --penalty "L2(1e-4)" --shards 2
  streamlearn evaluate a9a.svm --learners default,Pegasos --penalty "L2(1e-4)" --html a9a.html
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    add_format(parser)
    add_features(parser)
    add_guess(parser)
    parser.add_argument(
        "--learners",
        metavar="A,B,C",
        default="default",
        help='presets, rules, or "default": the mixture that needs no tuning',
    )
    parser.add_argument("--loss", metavar="EXPR", help="loss of the learners given as rules")
    parser.add_argument("--penalty", metavar="EXPR", help="penalty of the learners given as rules")
    add_regression(parser)
    parser.add_argument(
        "--memory-bytes",
        metavar="N",
        type=partial(whole, least=10_000),
        default=64_000_000,
        help="memory for events; if they need more, the regret is estimated from a sample "
        "(default: 64000000, about a million clicks)",
    )
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=seconds,
        help="time limit of each learner's last hindsight (default: 5, of all events 600)",
    )
    add_shards(parser, "read the files again, and solve the last hindsight on all events,")
    parser.add_argument("--png", metavar="FILE", help="draw the curves to this file")
    parser.add_argument("--html", metavar="FILE", help="write a page with curves and table")
    add_json(parser)
