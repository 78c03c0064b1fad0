"""`streamlearn serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.options import add_json
from streamlearn.cli.parsing import whole

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "serve predictions over HTTP, from the model that a daemon is learning"
EXAMPLES = """\
  streamlearn serve config/clicks.toml --workers 4
  streamlearn serve /var/lib/clicks/serving --port 8080
  streamlearn serve clicks.model
  streamlearn serve promote config/clicks.toml sparse   # within a second, on all machines
  streamlearn serve revert config/clicks.toml
  streamlearn serve arms config/clicks.toml             # the loss that each arm was served
"""
ACTIONS = ("promote", "revert", "history", "arms")


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=ACTIONS,
        help="instead of serving: let a learner serve everybody; undo that; list all such "
        "changes; or compare what was served by learner and arm",
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a configuration with [serve], a directory of snapshots, or a model file",
    )
    parser.add_argument("promoted", nargs="?", metavar="LEARNER", help="the learner to promote")
    parser.add_argument(
        "--workers", metavar="N", type=whole, default=1, help="number of processes (default: 1)"
    )
    parser.add_argument(
        "--host", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port", metavar="PORT", type=port, help="port; 0 for any free port (default: 8000)"
    )
    parser.add_argument("--learner", metavar="NAME", help="the learner that answers by default")
    add_json(parser)
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override a key of the configuration, for example serve.max_in_flight=64",
    )


def port(text: str) -> int:
    """Return a port."""
    return whole(text, 0, 65_535)
