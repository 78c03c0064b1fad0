"""Batches of a source, each decoded while the one before is learned.

Learning needs no GIL, nor does decoding text formats, so two cores read and learn at once. What is
learned does not depend on it: an event knows which names were in use when it was read.
"""

from __future__ import annotations

import itertools
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from streamlearn.engine.events import Events

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from streamlearn.stream.formats.decoder import Decoder
    from streamlearn.stream.records import Records
    from streamlearn.stream.sources.source import Source

T = TypeVar("T")
# With two, the thread that is slower never waits for the other to wake up.
AHEAD = 2


def ahead(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """The items, of which a thread makes the next ones while one is used.

    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    with ThreadPoolExecutor(1, thread_name_prefix="reader") as thread, closing(items):
        try:
            coming = deque(thread.submit(take, items) for _ in range(AHEAD))
            while found := coming.popleft().result():
                yield found[0]
                coming.append(thread.submit(take, items))
        finally:
            thread.shutdown(cancel_futures=True)  # a generator that runs cannot be closed


def take(items: Iterator[T]) -> tuple[T, ...]:
    """The next item; nothing behind the last one."""
    return tuple(itertools.islice(items, 1))


def decoded(
    source: Source, decoder: Decoder, seconds: float = 0.25
) -> Generator[tuple[Records, Events] | None, None, None]:
    """Records and the events in them, from the source's beginning to its end.

    An item is valid while no more than AHEAD others were asked for after it. None: nothing came in
    so many seconds.
    """
    buffers = itertools.cycle([Events() for _ in range(AHEAD + 1)])
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
