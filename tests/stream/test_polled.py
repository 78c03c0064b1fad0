"""The records of a poll in the order of their ranks, and the counts of what is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamlearn.stream import Partition, Records
from streamlearn.stream.polled import Polled

A, B, C = (Partition(name) for name in "abc")


def records(where: Partition, values: bytes, ranks: list[int] | None = None) -> Records:
    each = [values[k : k + 1] for k in range(len(values))]
    given = None if ranks is None else np.array(ranks, dtype=np.int64)
    return Records(where, range(len(each)), each, len(each), ranks=given)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ([records(A, b"ab"), records(B, b"cd")], None),
        ([records(A, b"ab", [0, 2]), records(B, b"cd", [1, 3])], b"acbd"),
        # records without ranks are after those before them
        ([records(A, b"ab", [5, 7]), records(B, b"cd")], b"abcd"),
        ([records(A, b"ab"), records(B, b"cd", [1, 4])], b"abcd"),
        ([records(A, b"ab", [3, 9]), records(B, b"cd"), records(C, b"ef", [4, 10])], b"aebcfd"),
        ([records(A, b"", []), records(B, b"cd"), records(C, b"e", [0])], b"ced"),
    ],
)
def test_the_order_is_that_of_the_ranks(given: list[Records], want: bytes | None) -> None:
    polled = Polled(given)
    if want is None:
        assert polled.order is None
        return
    assert polled.order is not None
    values: Any = polled.values
    assert b"".join(values[k] for k in polled.order) == want
    which, places = polled.find(np.arange(len(polled)))
    found = [given[i].values[k] for i, k in zip(which, places, strict=True)]
    assert b"".join(value for value in found if value is not None) == want


def test_headers_are_those_of_each_record() -> None:
    one, other = records(A, b"ab"), records(B, b"c")
    assert Polled([one, other]).headers is None
    other.headers = [[("k", b"v")]]
    assert Polled([one, other]).headers == [(), (), [("k", b"v")]]
