"""Impressions: events that were predicted over HTTP, on their way to the daemon that learns them.

The value of a record is the event, its key is the event's id, and a header has the prediction as it
was served. docs/reference/impressions.md describes the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from streamlearn.stream.records import OWN_HEADERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.stream.records import Header

HEADER = f"{OWN_HEADERS}served"
BUCKETS = 1024  # in which users are counted together, for confidence intervals


class Served(msgspec.Struct, omit_defaults=True):
    """What was served for an event.

    >>> served = Served("default", "3-120000", 1700000000.0, 17, score=-0.88)
    >>> ENCODER.encode(served)
    b'{"learner":"default","version":"3-120000","time":1700000000.0,"bucket":17,"score":-0.88}'
    >>> read([("streamlearn.served", ENCODER.encode(served))]) == served
    True
    """

    learner: str
    version: str
    time: float  # seconds since 1970
    bucket: int  # of the user, from 0 to BUCKETS - 1
    score: float | dict[str, float] | None = None  # several by label; None: no label was known
    arm: str | None = None  # None: the request named the learner, or there is no split


ENCODER = msgspec.json.Encoder()
DECODER = msgspec.json.Decoder(Served)


def read(headers: Sequence[Header]) -> Served | None:
    """Return what the headers of a record say was served; None if it is no impression."""
    for name, value in headers:
        if name == HEADER and value is not None:
            try:
                return DECODER.decode(value)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                return None
    return None
