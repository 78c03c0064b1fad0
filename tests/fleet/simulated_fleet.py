"""A fleet without Ray and Kafka: an owner, workers that fail, and messages that come when they may.

A record adds one to a cell of the model, and several records share a cell. So what is counted in
the end does not depend on the protocol, only on which records were learned, and how often.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.fleet.rounds import BaseId, Delta, Rounds, Task
from streamlearn.stream import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.core.arrays import Array

CELLS = 40
PARTITIONS = 6
ROUNDS = 300
LATEST = 12.0  # rounds after which a frozen worker may answer


def cell(where: Partition, offset: int) -> int:
    """The cell of a record."""
    return (7 * where.number + offset) % CELLS


class CellMoves(dict[int, float]):
    """The cells that changed, as a model's moves."""

    nbytes, has_nan = 8, False


def difference(before: Array, after: Array) -> CellMoves:
    """The cells that changed."""
    return CellMoves({int(k): float(after[k]) for k in np.flatnonzero(before != after)})


def applied(before: Array, moves: Mapping[int, float]) -> Array:
    """The cells after they changed."""
    after = before.copy()
    for k, value in moves.items():
        after[k] = value
    return after


def learn(cells: Array, where: Partition, start: int, end: int) -> None:
    """Learn records."""
    for offset in range(start, end):
        cells[cell(where, offset)] += 1.0


@dataclass(frozen=True)
class Message:
    """A delta under way."""

    due: float
    delta: Delta


class Fleet:
    """An owner with its checkpoint, and what workers send it."""

    def __init__(self, seed: int, kind: type[Rounds]) -> None:
        self.draw = random.Random(seed)
        self.kind = kind
        self.log = {Partition("t", k): 0 for k in range(PARTITIONS - 1)}  # written records
        self.bases: dict[BaseId, Any] = {}  # that workers were handed
        self.under_way: list[Message] = []
        self.now = 0.0
        self.faults: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.checkpoint: dict[str, Any] = {
            "state": np.zeros(CELLS),
            "positions": self.log.copy(),
        }
        self.take_over(1)

    def take_over(self, epoch: int) -> None:
        """Start an owner from the checkpoint."""
        self.state: Any = self.checkpoint["state"]
        self.rounds = self.kind(epoch, self.checkpoint["positions"])

    def run(self) -> None:
        """Run, and then drain what is left."""
        for _ in range(ROUNDS):
            self.round()
        self.draw.seed(0)
        self.drain()

    def round(self) -> None:
        """One round: hand out, learn, lose, wait for some, merge."""
        draw = self.draw
        for where in self.log:
            self.log[where] += draw.choice([0, 0, 0, 3, 9])
        tasks = self.rounds.tasks(draw.randint(1, PARTITIONS + 2))
        self.bases[self.rounds.base] = self.state
        for task in tasks:
            self.send(task, self.work(task))
        deadline = self.now + 1.0
        self.under_way.sort(key=lambda one: one.due)
        while self.under_way and self.under_way[0].due <= deadline:
            self.offer(self.under_way.pop(0).delta)
        self.now = deadline
        self.merge()
        self.disturb_owner()

    def work(self, task: Task) -> Delta:
        """Learn some of the new records, as a worker does: from the base that it was handed."""
        base = self.bases[task.base]
        state = base.copy()
        ends = {}
        for where, start in task.starts.items():
            ends[where] = start + self.draw.randint(0, self.log[where] - start)
            learn(state, where, start, ends[where])
        return Delta(task.base, task.rank, task.starts, ends, difference(base, state))

    def send(self, task: Task, delta: Delta) -> None:
        """Let the worker die, freeze or repeat itself, sometimes."""
        kind = self.draw.choice(["well"] * 6 + ["killed", "frozen", "twice", "again"])
        self.faults[kind] += 1
        if kind == "killed":
            return
        delay = self.draw.random() * (LATEST if kind == "frozen" else 0.9)
        self.under_way.append(Message(self.now + delay, delta))
        if kind == "twice":
            self.under_way.append(Message(self.now + delay, delta))
        if kind == "again":
            self.under_way.append(Message(self.now + self.draw.random() * LATEST, self.work(task)))

    def offer(self, delta: Delta) -> None:
        """Offer what came to the owner."""
        refused = self.rounds.offer(delta)
        if refused is not None:
            self.refused[refused] += 1

    def merge(self) -> None:
        """Finish the round: the model and the positions together."""
        states = [applied(self.state, delta.learned) for delta in self.rounds.finish()]
        if states:
            self.state = self.state + sum(state - self.state for state in states)

    def disturb_owner(self) -> None:
        """Write a checkpoint, add a partition, or die and be replaced."""
        draw, positions = self.draw, self.rounds.positions
        if draw.random() < 0.3:
            self.checkpoint = {"state": self.state, "positions": positions.copy()}
        if draw.random() < 0.05:
            self.faults["owner"] += 1
            self.take_over(self.rounds.base.epoch + 1)
        if len(self.log) < PARTITIONS and self.now > ROUNDS / 2:
            fresh = Partition("t", len(self.log))
            self.log[fresh] = 0
            self.rounds.place({fresh: 0})
            self.checkpoint = {"state": self.state, "positions": self.rounds.positions.copy()}

    def drain(self) -> None:
        """Learn the rest without faults."""
        self.bases[self.rounds.base] = self.state
        for message in self.under_way:
            self.offer(message.delta)
        self.merge()
        self.bases[self.rounds.base] = self.state
        for task in self.rounds.tasks(3):
            state = self.state.copy()
            for where, start in task.starts.items():
                learn(state, where, start, self.log[where])
            change = difference(self.state, state)
            ends = {where: self.log[where] for where in task.starts}
            self.offer(Delta(task.base, task.rank, task.starts, ends, change))
        self.merge()

    def is_exact(self) -> bool:
        """Whether each record was learned once, by an independent count."""
        expected = np.zeros(CELLS)
        for where, end in self.log.items():
            learn(expected, where, 0, end)
        reached: Mapping[Partition, int] = self.rounds.positions
        return dict(reached) == self.log and bool((self.state == expected).all())
