"""`streamlearn export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.options import add_model

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "write a model for other programs: as JSON, a SQL expression or a scikit-learn pipeline"
EXAMPLES = """\
  streamlearn export clicks.model --to json --output clicks.json
  streamlearn export clicks.model --to sql
  streamlearn export clicks.model --to sklearn --output clicks.joblib
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    add_model(parser)
    parser.add_argument("--to", choices=["json", "sql", "sklearn"], required=True, help="the form")
    parser.add_argument(
        "--output", metavar="FILE", help="the file to write (default: standard output)"
    )
