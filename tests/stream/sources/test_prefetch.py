"""Decoding ahead of learning: the same batches and models, and no thread left behind."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.stream import Events, Files, JSONDecoder, decoded_batches
from streamlearn.stream.sources.prefetch import prefetched

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


def test_prefetching_does_not_change_what_is_learned(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    rng = np.random.default_rng(1)
    lines = [
        f'{{"name": "n{rng.integers(i + 1)}", "x": {rng.normal():.3f}, "label": "{i // 250}"}}\n'
        for i in range(1000)
    ]
    path.write_text("".join(lines))
    models = [sl.LinearClassifier(), sl.LinearClassifier()]
    for model, early in zip(models, (True, False), strict=True):
        source = Files([path], batch=70)
        batches = decoded_batches(source, JSONDecoder(model.reader, learners=[model]))
        for batch in prefetched(batches) if early else batches:
            assert batch is not None
            model.progressive_events(batch[1])
        source.close()
    assert models[0].weights == models[1].weights
    assert len(models[0].weights) == 4


def test_an_error_is_raised_in_order_and_the_thread_ends() -> None:
    def items() -> Generator[int, None, None]:
        yield from range(3)
        raise ValueError("no more")

    found: list[int] = []
    with pytest.raises(ValueError, match="no more"):
        found.extend(prefetched(items()))
    assert found == [0, 1, 2]
    assert not readers()


def test_closing_early_ends_the_thread_and_closes_its_input() -> None:
    closed = []

    def items() -> Generator[Events, None, None]:
        try:
            while True:
                yield Events()
        finally:
            closed.append(True)

    coming = prefetched(items())
    next(coming)
    coming.close()
    assert closed == [True]
    assert not readers()


def test_a_second_interrupt_while_the_first_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, go = threading.Event(), threading.Event()

    def items() -> Generator[int, None, None]:
        yield 0
        busy.set()
        go.wait()
        yield 1

    def shutdown(pool: ThreadPoolExecutor, *_: bool, **options: bool) -> None:
        if not go.is_set():
            go.set()
            raise KeyboardInterrupt
        original(pool, **options)

    original = ThreadPoolExecutor.shutdown
    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", shutdown)
    coming = prefetched(items())
    next(coming)
    busy.wait()
    with pytest.raises(KeyboardInterrupt):
        coming.throw(KeyboardInterrupt())
    assert not readers()


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("reader")]
