"""A record that is not a valid event: which one it is, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from streamlearn.errors import InvalidEventError

MAX_TEXT = 1_000  # characters of names and reasons that are kept
CODES = {  # what is invalid; the meanings do not show the record
    "syntax": "the record is not in the configured format",
    "schema": "the schema of the record is not in the registry, or cannot be used",
    "label": "the label is invalid",
    "weight": "the weight is invalid",
    "id": "the id is invalid",
    "time": "the time is invalid",
    "value": "a field has a value that cannot be a feature",
}
ORPHAN = "orphan"  # of a dead letter: a valid label whose event never came


class InvalidRecord(NamedTuple):
    """A record that was not learned.

    >>> from streamlearn.errors import InvalidEventError
    >>> InvalidRecord.of(3, InvalidEventError("field 'age' is nan", "age"))
    InvalidRecord(number=3, field='age', code='value', reason="field 'age' is nan")
    """

    number: int  # in its batch
    field: str | None  # None: the whole record
    code: str  # of CODES, or ORPHAN
    reason: str

    @classmethod
    def of(cls, number: int, error: InvalidEventError) -> InvalidRecord:
        """Return the record of an error; long texts are cut."""
        field = None if error.field is None else error.field[:MAX_TEXT]
        return cls(number, field, error.code, str(error)[:MAX_TEXT])

    def at(self, number: int) -> InvalidRecord:
        """Return it with another number."""
        return self._replace(number=number)
