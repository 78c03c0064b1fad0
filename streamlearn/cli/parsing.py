"""Command-line arguments.

argparse with two additions: an error names the nearest valid option, and the options of a command
can be listed for shell completion.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from streamlearn.core.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

Options = argparse.Namespace
INTERRUPTED = 130  # the exit code after Ctrl-C, as in shells: 128 + SIGINT


class Command(Protocol):
    """A module of `cli.commands`."""

    HELP: str  # one line
    EXAMPLES: str  # command lines that work as they stand

    def arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""


class CommandParser(argparse.ArgumentParser):
    """A parser that reports an error in one line, with the remedy."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.actions: list[argparse.Action] = []
        self.commands: dict[str, CommandParser] = {}
        super().__init__(*args, **kwargs)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        """Add an argument, and list it in `actions`."""
        self.actions.append(super().add_argument(*args, **kwargs))
        return self.actions[-1]

    def add_group(self, title: str) -> Group:
        """Add a group of arguments with a title of its own in the help."""
        return Group(self, title)

    def error(self, message: str) -> NoReturn:
        """Exit with code 2."""
        choice = re.match(r"(.*)invalid choice: '(.*)' \(choose from (.*)\)", message)
        if choice is not None:
            names = [name.strip(" '") for name in choice[3].split(",")]
            what = choice[1].removeprefix("argument ").rstrip(": ") or "value"
            message = f"{what}: unknown {choice[2]!r}; {nearest(choice[2], names)}"
        message = message.removeprefix("argument ")
        sys.stderr.write(f"{self.prog}: {message} (see {self.prog} --help)\n")
        sys.exit(2)

    def unknown(self, arguments: Sequence[str]) -> NoReturn:
        """Exit because of arguments that the command does not have."""
        first = arguments[0]
        if not first.startswith("-"):
            self.error(f"unexpected argument {first!r}")
        names = [name for action in self.actions for name in action.option_strings]
        self.error(f"unknown option {first.split('=')[0]}; {nearest(first.split('=')[0], names)}")


class Group:
    """A group of arguments."""

    def __init__(self, parser: CommandParser, title: str) -> None:
        self.parser = parser
        self.group = parser.add_argument_group(title)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        """Add an argument, and list it in the parser's `actions`."""
        self.parser.actions.append(self.group.add_argument(*args, **kwargs))
        return self.parser.actions[-1]


def whole(text: str, least: int = 1, most: int | None = None) -> int:
    """Return the integer that an option gives."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least or (most is not None and number > most):
        limit = "" if most is None else f" and <= {most}"
        raise argparse.ArgumentTypeError(f"expected an integer >= {least}{limit}, got {text!r}")
    return number


def seconds(text: str) -> float:
    """Return the duration that an option gives."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds > 0, got {text!r}")
    return number


def seed(text: str) -> int:
    """Return the seed of a synthetic stream."""
    return whole(text, 0, 2**63 - 1)
