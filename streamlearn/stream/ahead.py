"""Batches of a source, each decoded while the one before is learnt.

Learning needs no GIL, so two cores read and learn at once. What is learnt does not depend on it:
an event knows which names were in use when it was read.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from streamlearn.engine.events import Events

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from streamlearn.stream.decoder import Decoder
    from streamlearn.stream.source import Records, Source

T = TypeVar("T")


def ahead(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """The items, of which a thread makes the next one while the last one is used.

    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    with ThreadPoolExecutor(1, thread_name_prefix="reader") as thread, closing(items):
        try:
            coming = thread.submit(take, items)
            while found := coming.result():
                coming = thread.submit(take, items)
                yield found[0]
        finally:
            thread.shutdown()  # a generator that runs cannot be closed


def take(items: Iterator[T]) -> tuple[T, ...]:
    """The next item; nothing behind the last one."""
    return tuple(itertools.islice(items, 1))


def decoded(
    source: Source, decoder: Decoder, seconds: float = 0.25
) -> Generator[tuple[Records, Events] | None, None, None]:
    """Records and the events in them, from the source's beginning to its end.

    An item is valid until the next but one is asked for. None: nothing came in so many seconds.
    """
    buffers = itertools.cycle((Events(), Events()))
    source.open({}, None)
    while True:
        polled = source.poll(seconds)
        for records in polled:
            events = next(buffers)
            events.clear()
            decoder.decode(records.values, events)
            yield records, events
        if not polled:
            if source.ended():
                return
            yield None
