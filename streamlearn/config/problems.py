"""The error of an invalid configuration: every problem with the path of its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streamlearn.errors import StreamlearnError

if TYPE_CHECKING:
    from collections.abc import Sequence


class ConfigProblem(NamedTuple):
    """A problem with one key."""

    path: str  # of the key, such as source.topics[0]; empty for the file as a whole
    text: str  # what is wrong and how to fix it

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class ConfigError(StreamlearnError, ValueError):
    """Raised for an invalid configuration; `problems` lists everything that is wrong with it."""

    def __init__(self, name: str, problems: Sequence[ConfigProblem]) -> None:
        self.name = name
        self.problems = list(problems)
        lines = [str(problem) for problem in problems]
        if len(lines) == 1:
            text = f"{name}: {lines[0]}"
        else:
            text = "\n  ".join([f"{name}: {len(lines)} problems", *lines])
        super().__init__(text)
