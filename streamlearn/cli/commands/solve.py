"""`streamlearn solve`."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from streamlearn.cli.options import (
    add_features,
    add_format,
    add_guess,
    add_json,
    add_regression,
    add_shards,
)
from streamlearn.cli.parsing import seconds

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "find the best fixed model of files, with a certified gap, in threads or on Ray"
EXAMPLES = """\
  streamlearn solve clicks.jsonl --label clicked --l2 1e-6 --save clicks.model
  streamlearn solve "day-*.csv.gz" --label price --regression --l1 1e-4 --gap 1e-3
  streamlearn solve "data/*.jsonl" --label clicked --hash 20 --l2 1e-6 --ray auto
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    add_format(parser)
    add_features(parser)
    add_guess(parser)
    group = parser.add_group("problem")
    group.add_argument("--l2", metavar="X", type=strength, default=0.0, help="strength of l2")
    group.add_argument("--l1", metavar="X", type=strength, default=0.0, help="strength of l1")
    group.add_argument(
        "--loss", metavar="EXPR", help='"Hinge()" (default: logistic; for regression, squared)'
    )
    group.add_argument(
        "--group", metavar="FIELD", help='field of the group in which rows are ranked, for "NDCG()"'
    )
    add_regression(group)
    group.add_argument(
        "--no-intercept", action="store_true", help="no intercept, which is not penalized"
    )
    group = parser.add_group("solver")
    group.add_argument("--method", metavar="NAME", default="auto", help="method (default: auto)")
    group.add_argument(
        "--gap",
        metavar="X",
        type=strength,
        default=1e-4,
        help="distance from the optimum to stop at (default: 1e-4)",
    )
    group.add_argument(
        "--seconds", metavar="S", type=seconds, help="time limit (default: none)", default=math.inf
    )
    add_shards(group, "solve")
    parser.add_argument("--save", metavar="MODEL", help="write the model to this file")
    add_json(parser)


def strength(text: str) -> float:
    """Return a finite number >= 0."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number >= 0, got {text!r}")
    return number
