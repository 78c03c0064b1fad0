"""The join of delayed labels in plain Python, with linear search in lists."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

DROP = "drop"


@dataclass
class Clock:
    """The clock of the stream."""

    hold_for: float
    now: float = math.nan
    ahead: list[float] = field(default_factory=list)
    behind: list[float] = field(default_factory=list)
    seen: int = 0

    def advance(self, time: float, stamps: list[float]) -> bool:
        """Advance to a record's time; return whether later times of arrival were wrong."""
        if math.isnan(time):
            return False
        self.seen += 1
        max_step = self.hold_for / 10
        if math.isnan(self.now) or (self.seen <= 10 and time < self.now - max_step):
            return self.set_to(time)
        if time >= self.now - self.hold_for:
            self.behind = []
        else:
            self.behind.append(time)
            if len(self.behind) == 1000:
                return self.set_to(max(self.behind))
        if time <= self.now + max_step:
            self.ahead = []
            self.now = max(self.now, time)
            return False
        self.ahead.append(time)
        to = min(self.ahead)
        stake = sum(received_at + self.hold_for <= to for received_at in stamps)
        if len(self.ahead) >= min(stake, 10):
            self.now, self.ahead = to, []
        return False

    def set_to(self, time: float) -> bool:
        self.now, self.ahead, self.behind = time, [], []
        return True


@dataclass
class Entry:
    """An entry that is held or resolved."""

    key: Any
    received_at: float
    x: Any = None
    label: Any = None
    weight: float = 1.0
    kind: str = "features"  # label, done, correctable


class Join:
    """Collects in `steps` what is learned: (role, id, features, label, weight)."""

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
        self.pending: list[Entry] = []
        self.resolved: list[Entry] = []
        self.unconfirmed = 0  # held since records are ahead of the clock
        self.steps: list[tuple[Any, ...]] = []
        names = "joined orphaned timed_out evicted corrected duplicates repeated"
        self.counts = dict.fromkeys(names.split(), 0)

    def features(self, key: Any, x: Any, time: float = math.nan, weight: float = 1.0) -> None:
        self.advance(time)
        held = find(self.pending, key)
        if (held and held.kind == "features") or (not held and find(self.resolved, key)):
            self.counts["repeated"] += 1
            self.steps.append(("predict", key, x, None, weight))
        elif held:
            self.steps.append(("predict", key, x, None, weight))
            self.steps.append(("learn", key, x, held.label, weight))
            self.counts["joined"] += 1
            self.pending.remove(held)
            self.resolve(Entry(key, self.clock.now, kind="done"))
        else:
            self.evict()
            self.hold(Entry(key, self.clock.now, x, weight=weight))
            self.steps.append(("predict", key, x, None, weight))

    def label(self, key: Any, label: Any, time: float = math.nan) -> None:
        self.advance(time)
        held, done = find(self.pending, key), find(self.resolved, key)
        if held and held.kind == "features":
            self.counts["joined"] += 1
            self.steps.append(("learn", key, held.x, label, held.weight))
            self.pending.remove(held)
            self.resolve(Entry(key, self.clock.now, kind="done"))
        elif held or (
            done
            and not (done.kind == "correctable" and self.corrections and label != self.on_timeout)
        ):
            self.counts["duplicates"] += 1
        elif done:
            self.counts["corrected"] += 1
            self.steps.append(("correct", key, done.x, label, done.weight))
            self.resolved.remove(done)
            self.resolve(Entry(key, self.clock.now, kind="done"))
        else:
            self.evict()
            self.hold(Entry(key, self.clock.now, label=label, kind="label"))

    def corrects(self, done: Entry, label: Any) -> bool:
        return done.kind == "correctable" and self.corrections and bool(label != self.on_timeout)

    def hold(self, entry: Entry) -> None:
        self.pending.append(entry)
        self.unconfirmed += bool(self.clock.ahead)

    def resolve(self, entry: Entry) -> None:
        if len(self.resolved) >= self.hold_events:
            del self.resolved[0]
        self.resolved.append(entry)

    def evict(self) -> None:
        if len(self.pending) >= self.hold_events:
            self.counts["evicted"] += 1
            self.time_out(self.pending[0])

    def time_out(self, entry: Entry) -> None:
        self.pending.remove(entry)
        if entry.kind == "label":
            self.counts["orphaned"] += 1
            return
        self.counts["timed_out"] += 1
        if self.on_timeout != DROP:
            self.steps.append(("time out", entry.key, entry.x, self.on_timeout, entry.weight))
            kept = Entry(
                entry.key, self.clock.now, entry.x, weight=entry.weight, kind="correctable"
            )
            self.resolve(kept)

    def advance(self, time: float) -> None:
        stamps = [entry.received_at for entry in self.pending]
        before, ahead = self.clock.now, len(self.clock.ahead)
        if self.clock.advance(time, stamps):
            for entry in (*self.pending, *self.resolved):
                if not entry.received_at <= time:
                    entry.received_at = self.clock.now
        elif ahead and self.clock.now > before + self.clock.hold_for / 10 and self.unconfirmed:
            for entry in self.pending[-self.unconfirmed :]:
                entry.received_at = self.clock.now
        if not self.clock.ahead:
            self.unconfirmed = 0
        limit, now = self.clock.hold_for, self.clock.now
        while self.pending and self.pending[0].received_at + limit <= now:
            self.time_out(self.pending[0])
        while self.resolved and self.resolved[0].received_at + limit <= now:
            del self.resolved[0]


def find(entries: list[Entry], key: Any) -> Entry | None:
    return next((entry for entry in entries if entry.key == key), None)
