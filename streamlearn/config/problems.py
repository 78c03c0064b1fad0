"""What is wrong with a configuration: every problem, with the path of its key and the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streamlearn.errors import StreamlearnError

if TYPE_CHECKING:
    from collections.abc import Sequence


class ConfigProblem(NamedTuple):
    """One thing that is wrong."""

    path: str  # of the key: source.topics[0]; empty for the file as a whole
    text: str  # what was expected instead

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class ConfigError(StreamlearnError, ValueError):
    """A configuration that cannot be run; `problems` lists all that is wrong with it."""

    def __init__(self, name: str, problems: Sequence[ConfigProblem]) -> None:
        self.name = name
        self.problems = list(problems)
        lines = [str(problem) for problem in problems]
        if len(lines) == 1:
            text = f"{name}: {lines[0]}"
        else:
            text = "\n  ".join([f"{name}: {len(lines)} problems", *lines])
        super().__init__(text)
