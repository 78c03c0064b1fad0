"""Rounds: several workers learn from one base, and what they learned becomes one model, once.

The owner hands each worker a base, some partitions and where they start. The worker learns for a
while and returns a delta: what it learned, and where it ended. The owner accepts a delta only if

- it names the base that is handed out now: a state that began elsewhere cannot be merged with this
  one;
- it starts at the owner's own positions: what it learned then follows what the model has learned,
  and was learned by nobody else.

Model and positions move together when a round is finished. A worker that dies, or whose delta comes
too late or twice, costs its own work at most: its records are read again. So nothing that a worker
does, or does not do, can lose or double a record, and the owner's checkpoint is all that is kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamlearn.stream import Partition


class BaseId(NamedTuple):
    """A state of the model: the owner's epoch, and how many rounds it has merged."""

    epoch: int
    number: int


@dataclass(frozen=True)
class Task:
    """What a worker is to learn: some partitions, from these positions."""

    base: BaseId
    rank: int
    workers: int  # that share the round
    starts: Mapping[Partition, int]


@dataclass(frozen=True)
class Delta:
    """What a worker has learned."""

    base: BaseId
    rank: int
    starts: Mapping[Partition, int]
    ends: Mapping[Partition, int]
    learned: Any = None

    @property
    def moves(self) -> bool:
        """Whether any position has advanced."""
        return any(self.ends[where] != at for where, at in self.starts.items())


class Rounds:
    """The owner's side of the rounds of one epoch.

    >>> from streamlearn.stream import Partition
    >>> clicks = Partition("clicks")
    >>> rounds = Rounds(1, {clicks: 0})
    >>> [task] = rounds.tasks(1)
    >>> delta = Delta(task.base, task.rank, task.starts, {clicks: 10})
    >>> rounds.offer(delta), rounds.offer(delta)
    (None, 'position')
    >>> len(rounds.finish()), rounds.positions[clicks], rounds.base.number
    (1, 10, 1)
    >>> rounds.offer(delta)
    'base'
    """

    def __init__(self, epoch: int, positions: Mapping[Partition, int]) -> None:
        self.base = BaseId(epoch, 0)
        self.positions = dict(positions)
        self.refused: Counter[str] = Counter()  # deltas, by reason
        self._accepted: list[Delta] = []

    def tasks(self, workers: int) -> list[Task]:
        """Share all partitions between so many workers; those beyond the partitions get none."""
        shares: list[dict[Partition, int]] = [{} for _ in range(workers)]
        for number, (where, position) in enumerate(sorted(self.positions.items())):
            shares[number % workers][where] = position
        return [Task(self.base, rank, workers, share) for rank, share in enumerate(shares) if share]

    def offer(self, delta: Delta) -> str | None:
        """Accept a delta for this round, or return why it is refused."""
        refused = None
        if not self.has_base(delta):
            refused = "base"
        elif not self.continues(delta):
            refused = "position"
        if refused is None:
            self._accepted.append(delta)
        else:
            self.refused[refused] += 1
        return refused

    def has_base(self, delta: Delta) -> bool:
        """Whether a delta was learned from the base that is handed out now."""
        return delta.base == self.base

    def continues(self, delta: Delta) -> bool:
        """Whether a delta starts where the accepted ones end."""
        now = self._positions_with_accepted()
        return all(now.get(where) == at for where, at in delta.starts.items())

    def _positions_with_accepted(self) -> dict[Partition, int]:
        now = dict(self.positions)
        for delta in self._accepted:
            now.update(delta.ends)
        return now

    def place(self, positions: Mapping[Partition, int]) -> None:
        """Add partitions, or move them; deltas of this round that read them are dropped."""
        self._forget(positions)
        self.positions.update(positions)

    def remove(self, partitions: Iterable[Partition]) -> None:
        """Remove partitions; deltas of this round that read them are dropped."""
        gone = set(partitions)
        self._forget(gone)
        for where in gone:
            self.positions.pop(where, None)

    def _forget(self, partitions: Iterable[Partition]) -> None:
        given = set(partitions)
        self._accepted = [one for one in self._accepted if not given & one.starts.keys()]

    def finish(self) -> list[Delta]:
        """Return the accepted deltas that moved, by rank, and move the positions past them."""
        deltas = sorted((one for one in self._accepted if one.moves), key=lambda one: one.rank)
        self.positions = self._positions_with_accepted()
        self._accepted = []
        if deltas:
            self.base = self.base._replace(number=self.base.number + 1)
        return deltas
