"""Arguments of commands.

argparse, because it is there: it starts at once and needs no other package. What it lacks (an
error that names the nearest valid option, shell completion) is little, and here.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from typing import TYPE_CHECKING, NoReturn, Protocol

from streamlearn.config.expressions import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

Options = argparse.Namespace
INTERRUPTED = 130  # the exit code after Ctrl-C, as shells have it: 128 + SIGINT


class Command(Protocol):
    """A module of a command."""

    HELP: str  # one line
    EXAMPLES: str  # command lines that work as they stand

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare its arguments."""

    def run(self, options: Options) -> int:
        """Do it; the exit code."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line with the remedy."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        choice = re.match(r"(.*)invalid choice: '(.*)' \(choose from (.*)\)", message)
        if choice is not None:
            names = [name.strip(" '") for name in choice[3].split(",")]
            what = choice[1].removeprefix("argument ").rstrip(": ") or "value"
            message = f"{what}: {choice[2]!r} is not known; {nearest(choice[2], names)}"
        message = message.removeprefix("argument ")
        sys.stderr.write(f"{self.prog}: {message} (see {self.prog} --help)\n")
        sys.exit(2)

    def unknown(self, arguments: Sequence[str]) -> NoReturn:
        """End because of arguments that are not this command's."""
        first = arguments[0]
        names = [name for action in self._actions for name in action.option_strings]
        if not first.startswith("-"):
            self.error(f"unexpected argument {first!r}")
        self.error(f"unknown option {first.split('=')[0]}; {nearest(first.split('=')[0], names)}")


def add(
    commands: argparse._SubParsersAction[Parser],
    name: str,
    command: Command,
) -> None:
    """Make a command known."""
    parser = commands.add_parser(
        name,
        help=command.HELP,
        description=f"{command.HELP[0].upper()}{command.HELP[1:]}.",
        epilog=f"examples:\n{command.EXAMPLES.rstrip()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.arguments(parser)
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    parser.set_defaults(run=command.run, parser=parser)


def json_option(parser: argparse.ArgumentParser) -> None:
    """The option of every command that has a table to show."""
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")


def whole(text: str, least: int = 1, most: int | None = None) -> int:
    """A whole number of at least 1, for an option."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least or (most is not None and number > most):
        limit = "" if most is None else f" and <= {most}"
        raise argparse.ArgumentTypeError(f"expected a whole number >= {least}{limit}, got {text!r}")
    return number


def seconds(text: str) -> float:
    """A time, for an option."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds > 0, got {text!r}")
    return number


def seed(text: str) -> int:
    """What tells one made-up stream from another."""
    return whole(text, 0, 2**63 - 1)
