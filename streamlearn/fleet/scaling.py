"""How many workers there are: more while they fall behind, fewer while they wait for records."""

from __future__ import annotations

from dataclasses import dataclass

IDLE_ROUNDS = 6  # with too little to do, before there is one less
BUSY = 0.7  # the share of a round that the others may have to work then


@dataclass(frozen=True)
class RoundLoad:
    """What the workers of a round had to do."""

    workers: int
    events: int
    lag: int  # records that they have not read
    busy: float  # the mean share of the round in which they worked


class Scaling:
    """Choose the number of workers after each round.

    There is one more if the lag is larger than what they have learned in the round, and one less if
    the others would have managed for several rounds.

    >>> scaling = Scaling(1, 4)
    >>> scaling.after(RoundLoad(2, events=1000, lag=5000, busy=1.0))
    3
    >>> [scaling.after(RoundLoad(3, events=1000, lag=0, busy=0.2)) for _ in range(IDLE_ROUNDS)]
    [3, 3, 3, 3, 3, 2]
    """

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most
        self._idle = 0  # rounds in a row

    def after(self, load: RoundLoad) -> int:
        """Return how many workers there should be after a round."""
        idle = load.lag <= load.events and load.busy * load.workers < BUSY * (load.workers - 1)
        self._idle = self._idle + 1 if idle else 0
        wanted = load.workers
        if load.lag > load.events:
            wanted += 1
        elif self._idle >= IDLE_ROUNDS:
            wanted -= 1
            self._idle = 0
        return min(max(wanted, self.least), self.most)
