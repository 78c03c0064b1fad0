"""Conditional writes: exactly one of many succeeds, also if answers are lost."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from streamlearn.errors import StoreError
from streamlearn.storage.conditional import ConditionalObjects

if TYPE_CHECKING:
    from tests.support.faulty_proxy import Action, FaultyProxy, Request

SECONDS = 5.0


def test_writes_whose_condition_is_not_met(bucket: str) -> None:
    objects = ConditionalObjects(bucket, SECONDS)
    with pytest.raises(FileNotFoundError):
        objects.read("a")
    first = objects.create("a", b"1")
    assert first is not None
    assert objects.create("a", b"2") is None
    assert objects.read("a") == (b"1", first)
    second = objects.replace("a", b"3", first)
    assert second is not None
    assert objects.replace("a", b"4", first) is None
    assert objects.replace("b", b"5", first) is None
    assert objects.read("a") == (b"3", second)


def test_one_of_many_writers_succeeds(bucket: str) -> None:
    objects = ConditionalObjects(bucket, SECONDS)
    version = objects.create("a", b"start")
    assert version is not None
    start, written = threading.Barrier(8), []

    def write(number: int) -> None:
        start.wait()
        if objects.create("b", b"created by %d" % number) is not None:
            written.append("b")
        if objects.replace("a", b"replaced by %d" % number, version) is not None:
            written.append("a")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(written) == ["a", "b"]


def test_lost_answer_is_found_out_by_the_next_attempt(bucket: str, proxy: FaultyProxy) -> None:
    objects = ConditionalObjects(bucket, SECONDS)
    version = objects.create("a", b"1")
    assert version is not None
    proxy.rule = lambda _: "lose"
    with pytest.raises(StoreError):
        objects.create("b", b"mine")
    with pytest.raises(StoreError):
        objects.replace("a", b"2", version)
    proxy.rule = lambda _: "pass"
    other = ConditionalObjects(bucket, SECONDS)
    assert other.read("b")[0] == b"mine"
    assert other.create("b", b"other") is None
    assert objects.create("b", b"mine") == other.read("b")[1]
    assert objects.replace("a", b"2", version) == other.read("a")[1]
    assert other.replace("a", b"3", version) is None


def test_check_passes_a_store_with_conditional_writes(bucket: str) -> None:
    for _ in range(2):
        ConditionalObjects(bucket, SECONDS).check()


@pytest.mark.parametrize("ignored", ["if-match", "if-none-match"])
def test_check_refuses_a_store_without_conditional_writes(
    bucket: str, proxy: FaultyProxy, ignored: str
) -> None:
    proxy.ignored_condition = ignored
    with pytest.raises(StoreError, match="conditional writes"):
        ConditionalObjects(bucket, SECONDS).check()


def test_request_fails_after_the_timeout(bucket: str, proxy: FaultyProxy) -> None:
    objects = ConditionalObjects(bucket, 0.3)

    def rule(request: Request) -> Action:
        return 1.0 if request.method == "PUT" else "pass"

    proxy.rule = rule
    with pytest.raises(StoreError, match="Timeout"):
        objects.create("a", b"1")
