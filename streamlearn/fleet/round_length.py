"""How long rounds are: short as long as the model is young, and as long as merging is worth it."""

from __future__ import annotations

SHARE = 0.05  # of all events learned, which a round may add
WORTH = 20.0  # rounds are at least so many times as long as what lies between them
FIRST, LEAST = 1.0, 0.2  # seconds


class RoundLength:
    """Choose the seconds of each round, at most `most`.

    Until what others learn in a round is small beside what is known, workers lose by not seeing it.
    So a round adds a twentieth to what is learned, unless merging would take more than a twentieth
    of the time then.

    >>> length = RoundLength(10.0)
    >>> length.seconds
    1.0
    >>> length.after(learned=10_000_000, events=1_000_000, between=0.01)
    0.5
    >>> length.after(learned=10_500_000, events=500_000, between=0.1)
    2.0
    >>> length.after(learned=1_000_000_000, events=2_000_000, between=0.1)
    10.0
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self.seconds = min(most, FIRST)

    def after(self, *, learned: int, events: int, between: float) -> float:
        """Return the seconds of the next round.

        In the last one workers learned so many `events`, after which it was `learned` in all;
        `between` are the seconds from its end to the next one.
        """
        shared = SHARE * learned * self.seconds / events if events else self.most
        self.seconds = min(max(shared, WORTH * between, LEAST), self.most)
        return self.seconds
