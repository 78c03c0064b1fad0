"""Text that is never printed."""

from __future__ import annotations

from typing import Any


class Secret:
    """A password or token that prints as stars; `reveal` returns the text.

    >>> password = Secret("hunter2")
    >>> password, f"{password}", password.reveal()
    (Secret('***'), '***', 'hunter2')
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))


def revealed(value: Any) -> Any:
    """Return a value with the texts of the secrets in it.

    >>> revealed({"url": "db", "password": [Secret("hunter2")]})
    {'url': 'db', 'password': ['hunter2']}
    """
    if isinstance(value, list):
        return [revealed(item) for item in value]
    if isinstance(value, dict):
        return {key: revealed(item) for key, item in value.items()}
    return value.reveal() if isinstance(value, Secret) else value
