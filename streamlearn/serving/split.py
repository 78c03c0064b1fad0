"""A/B tests: which arm a user is in, by a hash that any program can repeat."""

from __future__ import annotations

from hashlib import blake2b
from itertools import accumulate
from typing import TYPE_CHECKING

from streamlearn.stream.impressions import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Mapping


def number_of(user: str, salt: str = "") -> int:
    """Return the 64 bits that decide the arm of a user, and the bucket.

    >>> number_of("u7"), number_of("u7", "spring")
    (17742653271027691837, 12038173574089827151)
    """
    text = f"{salt}\0{user}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


def bucket_of(number: int) -> int:
    """Return the bucket of a user, which is independent of the arm."""
    return number % BUCKETS


class Split:
    """The arms of an A/B test, with their shares of all users.

    >>> split = Split({"champion": 0.9, "challenger": 0.1}, by="user", salt="spring")
    >>> arms = [split.arm(number_of(f"u{i}", "spring")) for i in range(10_000)]
    >>> arms.count("champion")
    8988
    """

    def __init__(self, arms: Mapping[str, float], by: str, salt: str = "") -> None:
        self.by = by
        self.salt = salt
        self.arms = list(arms)
        # the last end is 2^64 in spite of rounding
        self.ends = [int(share * 2.0**64) for share in accumulate(arms.values())][:-1]

    def arm(self, number: int) -> str:
        """Return the arm of a user's number."""
        for arm, end in zip(self.arms, self.ends, strict=False):
            if number < end:
                return arm
        return self.arms[-1]
