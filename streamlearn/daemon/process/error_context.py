"""Attach to an error the records that caused it, so that its message can name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.errors import SinkError, SinkRefusedError, SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.stream import Records

MAX_PARTITIONS = 8  # partitions named in a message


def attach_records(error: Exception, records: Sequence[Records]) -> None:
    """Attach records to an error, unless it has some already."""
    if not hasattr(error, "__notes__"):
        error.add_note(describe_records(records, remedy=is_of_records(error)))


def is_of_records(error: Exception) -> bool:
    """Tell whether a record may have caused an error, so that later ones would not fail alike.

    The others are of the source, such as a table without the label's column, or of an output.
    """
    return isinstance(error, SinkRefusedError) or not isinstance(error, SourceError | SinkError)


def error_message(error: Exception, text: str) -> str:
    """Return the text of an error, preceded by the records that caused it.

    >>> from streamlearn.stream import Partition, Records
    >>> error = KeyError("x")
    >>> attach_records(error, [Records(Partition("clicks", 2), [17], [b"?"], 18)])
    >>> error_message(error, repr(error))
    "clicks:2:17 (--skip-to clicks:2:18 resumes after it): KeyError('x')"
    """
    return ": ".join([*getattr(error, "__notes__", []), text])


def describe_records(records: Sequence[Records], *, remedy: bool = True) -> str:
    """Describe the positions of records, and as a `remedy` the option that resumes after them.

    >>> from streamlearn.stream import Partition, Records
    >>> print(describe_records([Records(Partition("clicks", 2), [3, 4, 7], [], 8)]))
    clicks:2:3 to 7 (--skip-to clicks:2:8 resumes after them, --set source.batch=1 finds the record)
    """
    ranges, options = [], []
    for one in records[:MAX_PARTITIONS]:
        topic, number = one.partition
        last = f" to {one.offsets[-1]}" if len(one.offsets) > 1 else ""
        ranges.append(f"{topic}:{number}:{one.offsets[0]}{last}")
        options.append(f"--skip-to {topic}:{number}:{one.end}")
    more = ", ..." if len(records) > MAX_PARTITIONS else ""
    places = ", ".join(ranges) + more
    if not remedy:
        return places
    several = len(records) > 1 or len(records[0].offsets) > 1
    text = f"{' '.join(options)} resumes after {'them' if several else 'it'}"
    if several:
        text += ", --set source.batch=1 finds the record"
    return f"{places} ({text})"
