"""Decode batches of a source in a thread, while earlier batches are learned.

Learning and decoding text formats release the GIL, so two cores read and learn in parallel. This
does not change what is learned: an event knows how many names existed when it was read.
"""

from __future__ import annotations

import itertools
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from streamlearn.engine.events import Events
from streamlearn.errors import TableMismatchError
from streamlearn.stream.sources.parts import narrow

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from streamlearn.stream.formats.decoder import Decoder
    from streamlearn.stream.records import Records
    from streamlearn.stream.sources.source import Source

T = TypeVar("T")
# With two, the slower thread never waits for the other to wake up.
DEPTH = 2


def prefetched(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """Yield items, while a thread computes the next ones.

    >>> list(prefetched(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    with ThreadPoolExecutor(1, thread_name_prefix="reader") as thread:
        try:
            pending = deque(thread.submit(next_item, items) for _ in range(DEPTH))
            while found := pending.popleft().result():
                yield found[0]
                pending.append(thread.submit(next_item, items))
        finally:
            thread.shutdown(cancel_futures=True)  # a running generator cannot be closed
            items.close()


def next_item(items: Iterator[T]) -> tuple[T, ...]:
    """Return the next item, or an empty tuple after the last one."""
    return tuple(itertools.islice(items, 1))


def decode_records(decoder: Decoder, records: Records, events: Events) -> None:
    """Decode records of a file; an error of its table names the file."""
    try:
        decoder.decode(records.values, events, headers=records.headers)
    except TableMismatchError as error:
        raise TableMismatchError(f"{records.partition.topic}: {error}") from None


def decoded_batches(
    source: Source, decoder: Decoder, seconds: float = 0.25
) -> Generator[tuple[Records, Events] | None, None, None]:
    """Yield records and their events, from the source's beginning to its end.

    Columns of files that the decoder does not read are left out of what follows. An item is valid
    until more than DEPTH later ones were requested. None means that nothing came
    in this many seconds.
    """
    buffers = itertools.cycle([Events() for _ in range(DEPTH + 1)])
    source.open({}, None)
    while True:
        polled = source.poll(seconds)
        for records in polled:
            events = next(buffers)
            events.clear()
            decode_records(decoder, records, events)
            narrow(source, decoder)
            yield records, events
        if not polled:
            if source.ended():
                return
            yield None
