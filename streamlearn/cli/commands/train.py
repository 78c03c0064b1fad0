"""`streamlearn train`."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from streamlearn.cli.options import (
    add_checkpoint_learner,
    add_features,
    add_format,
    add_guess,
    add_json,
    add_learner,
)
from streamlearn.cli.parsing import whole

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "learn a model from files and print its progressive loss at growing intervals"
EXAMPLES = """\
  streamlearn train clicks.jsonl --label clicked --save clicks.model
  streamlearn train clicks.jsonl --label clicked --field hour=number --holdout last:20%
  streamlearn train a9a.svm --model "PegasosClassifier(l2=1e-4)" --passes 3
  streamlearn train "day-*.csv.gz" --label price --regression --hash 20 --on-invalid skip
  streamlearn train tomorrow.jsonl --resume clicks.model --save clicks.model
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    add_format(parser)
    add_features(parser)
    add_guess(parser)
    add_learner(parser)
    parser.add_argument(
        "--passes", metavar="N", type=whole, default=1, help="passes over the files (default: 1)"
    )
    parser.add_argument(
        "--holdout",
        metavar="last:N",
        type=holdout,
        help="test on the last records instead of learning them, such as last:20%% or last:5000",
    )
    parser.add_argument("--save", metavar="MODEL", help="write the model to this file")
    parser.add_argument(
        "--resume",
        metavar="MODEL",
        help="continue training this model, a file or a daemon's checkpoint.path",
    )
    add_checkpoint_learner(parser)
    parser.add_argument(
        "--progress",
        metavar="STEP",
        type=step,
        default=2.0,
        help="distance of the lines: a factor (default: 2.0), or a number of events",
    )
    add_json(parser)


def holdout(text: str) -> float:
    """Return a share of the records (float), or their number (int).

    >>> holdout("last:20%"), holdout("last:5000")
    (0.2, 5000)
    """
    amount = text.removeprefix("last:")
    try:
        value = float(amount[:-1]) / 100.0 if amount.endswith("%") else int(amount)
    except ValueError:
        value = 0
    if amount == text or not 0 < value < (1.0 if isinstance(value, float) else math.inf):
        raise argparse.ArgumentTypeError(f"expected last:20% or last:5000; got {text!r}")
    return value


def step(text: str) -> float:
    """Return a factor above 1 with a decimal point, or a number of events."""
    try:
        value = int(text) if text.isdigit() else float(text)
    except ValueError:
        value = 0
    if not 1 <= value < math.inf or (value == 1 and isinstance(value, float)):
        raise argparse.ArgumentTypeError(
            f"expected a factor above 1, such as 2.0, or a number of events; got {text!r}"
        )
    return value
