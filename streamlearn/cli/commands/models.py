"""`streamlearn models`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.options import add_json
from streamlearn.cli.parsing import whole

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "list, compare and roll back the checkpoints of a daemon"
EXAMPLES = """\
  streamlearn models list /var/lib/clicks
  streamlearn models diff /var/lib/clicks 3-16 3-17 --learner sparse
  streamlearn models rollback /var/lib/clicks 3-16   # model and positions together
  streamlearn models list s3://bucket/clicks
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    parser.add_argument("action", choices=["list", "diff", "rollback"], help="what to do")
    parser.add_argument("location", metavar="PATH", help="the daemon's checkpoint.path")
    parser.add_argument(
        "checkpoints",
        metavar="CHECKPOINT",
        nargs="*",
        help="epoch and number, such as 3-17 (diff: by default the two newest)",
    )
    parser.add_argument("--learner", metavar="NAME", help="compare only this learner")
    parser.add_argument(
        "--top",
        metavar="N",
        type=whole,
        default=20,
        help="number of weights per learner (default: 20)",
    )
    add_json(parser)
