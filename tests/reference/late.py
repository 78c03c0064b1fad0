"""The join of late labels in plain Python: lists that are searched from end to end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

DROP = "drop"


@dataclass
class Clock:
    """The stream's time."""

    hold_for: float
    now: float = math.nan
    ahead: list[float] = field(default_factory=list)
    behind: list[float] = field(default_factory=list)
    seen: int = 0

    def advance(self, time: float, stamps: list[float]) -> bool:
        """A record's time; whether stamps that are later were wrong."""
        if math.isnan(time):
            return False
        self.seen += 1
        leap = self.hold_for / 10
        if math.isnan(self.now) or (self.seen <= 10 and time < self.now - leap):
            return self.set_to(time)
        if time >= self.now - self.hold_for:
            self.behind = []
        else:
            self.behind.append(time)
            if len(self.behind) == 1000:
                return self.set_to(max(self.behind))
        if time <= self.now + leap:
            self.ahead = []
            self.now = max(self.now, time)
            return False
        self.ahead.append(time)
        to = min(self.ahead)
        stake = sum(stamp + self.hold_for <= to for stamp in stamps)
        if len(self.ahead) >= min(stake, 10):
            self.now, self.ahead = to, []
        return False

    def set_to(self, time: float) -> bool:
        self.now, self.ahead, self.behind = time, [], []
        return True


@dataclass
class Entry:
    """What is held, or done with."""

    key: Any
    stamp: float
    x: Any = None
    label: Any = None
    weight: float = 1.0
    kind: str = "features"  # label, done, guessed


class Join:
    """What is learned, in `steps`: (what, id, features, label, weight)."""

    def __init__(
        self,
        hold_events: int,
        hold_for: float = math.inf,
        on_timeout: Any = DROP,
        *,
        corrections: bool = False,
    ) -> None:
        self.hold_events = hold_events
        self.on_timeout = on_timeout
        self.corrections = corrections
        self.clock = Clock(hold_for)
        self.waiting: list[Entry] = []
        self.settled: list[Entry] = []
        self.doubted = 0  # held since records came that are not believed
        self.steps: list[tuple[Any, ...]] = []
        names = "joined orphaned timed_out evicted corrected duplicates repeated"
        self.counts = dict.fromkeys(names.split(), 0)

    def features(self, key: Any, x: Any, time: float = math.nan, weight: float = 1.0) -> None:
        self.advance(time)
        held = find(self.waiting, key)
        if (held and held.kind == "features") or (not held and find(self.settled, key)):
            self.counts["repeated"] += 1
            self.steps.append(("predict", key, x, None, weight))
        elif held:
            self.steps.append(("predict", key, x, None, weight))
            self.steps.append(("learn", key, x, held.label, weight))
            self.counts["joined"] += 1
            self.waiting.remove(held)
            self.settle(Entry(key, self.clock.now, kind="done"))
        else:
            self.make_way()
            self.hold(Entry(key, self.clock.now, x, weight=weight))
            self.steps.append(("predict", key, x, None, weight))

    def label(self, key: Any, label: Any, time: float = math.nan) -> None:
        self.advance(time)
        held, done = find(self.waiting, key), find(self.settled, key)
        if held and held.kind == "features":
            self.counts["joined"] += 1
            self.steps.append(("learn", key, held.x, label, held.weight))
            self.waiting.remove(held)
            self.settle(Entry(key, self.clock.now, kind="done"))
        elif held or (
            done and not (done.kind == "guessed" and self.corrections and label != self.on_timeout)
        ):
            self.counts["duplicates"] += 1
        elif done:
            self.counts["corrected"] += 1
            self.steps.append(("correct", key, done.x, label, done.weight))
            self.settled.remove(done)
            self.settle(Entry(key, self.clock.now, kind="done"))
        else:
            self.make_way()
            self.hold(Entry(key, self.clock.now, label=label, kind="label"))

    def hold(self, entry: Entry) -> None:
        self.waiting.append(entry)
        self.doubted += bool(self.clock.ahead)

    def settle(self, entry: Entry) -> None:
        if len(self.settled) >= self.hold_events:
            del self.settled[0]
        self.settled.append(entry)

    def make_way(self) -> None:
        if len(self.waiting) >= self.hold_events:
            self.counts["evicted"] += 1
            self.pass_on(self.waiting[0])

    def pass_on(self, entry: Entry) -> None:
        self.waiting.remove(entry)
        if entry.kind == "label":
            self.counts["orphaned"] += 1
            return
        self.counts["timed_out"] += 1
        if self.on_timeout != DROP:
            self.steps.append(("time out", entry.key, entry.x, self.on_timeout, entry.weight))
            kept = Entry(entry.key, self.clock.now, entry.x, weight=entry.weight, kind="guessed")
            self.settle(kept)

    def advance(self, time: float) -> None:
        stamps = [entry.stamp for entry in self.waiting]
        before, doubted = self.clock.now, len(self.clock.ahead)
        if self.clock.advance(time, stamps):
            for entry in (*self.waiting, *self.settled):
                if not entry.stamp <= time:
                    entry.stamp = self.clock.now
        elif doubted and self.clock.now > before + self.clock.hold_for / 10 and self.doubted:
            for entry in self.waiting[-self.doubted :]:
                entry.stamp = self.clock.now
        if not self.clock.ahead:
            self.doubted = 0
        limit, now = self.clock.hold_for, self.clock.now
        while self.waiting and self.waiting[0].stamp + limit <= now:
            self.pass_on(self.waiting[0])
        while self.settled and self.settled[0].stamp + limit <= now:
            del self.settled[0]


def find(entries: list[Entry], key: Any) -> Entry | None:
    return next((entry for entry in entries if entry.key == key), None)
