"""A stream for tests of the daemon, a daemon over it, and a replay of it with the library."""

from __future__ import annotations

import functools
import json
import os
import random
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlearn as sl
from streamlearn import config
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.collectors.audit import Audit
from streamlearn.daemon.event_reader import EventReader
from streamlearn.daemon.learners import Learners
from streamlearn.daemon.loop import Loop, Policy
from streamlearn.daemon.outputs.dead_letters import DeadLetterPublisher, InvalidRecordLimit
from streamlearn.daemon.outputs.predictions import PredictionPublisher
from streamlearn.daemon.pipeline import Pipeline
from streamlearn.daemon.process.faults import VARIABLE
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.process.watchdog import Watchdog
from streamlearn.daemon.until import parse_until
from streamlearn.stream import Fields, JSONDecoder, Partition, Records
from streamlearn.stream.sinks.json_lines import FileSink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamlearn.stream.sinks.sink import Sink

FIELDS = Fields(label="click", weight="w", id="id", warmup=1000)
TOPIC = "clicks"


def event(partition: int, offset: int, *, garbage: float = 0.0) -> bytes | None:
    """The record at a position: always the same."""
    draw = random.Random(f"{partition} {offset}")
    if draw.random() < garbage:  # a larger ratio includes the garbage of a smaller one
        kinds = [b"{", b'{"click":1e999}', b"null", b"\xff\xfe", b'{"click":true,"w":-1}', None]
        return draw.choice(kinds)
    features: dict[str, Any] = {
        "id": f"{partition}-{offset}",
        "user": f"u{draw.randrange(50)}",
        "ad": f"a{draw.randrange(20)}",
        "hour": draw.randrange(24),
        "w": draw.choice([1, 1, 1, 2]),
    }
    if draw.random() < 0.9:
        features["click"] = (draw.random() + draw.randrange(20) / 20) > 1.0
    return json.dumps(features).encode()


def skip_to(reason: str) -> str:
    """The position that a message suggests for --skip-to."""
    [position] = re.findall(r"--skip-to (\S+)", reason)
    return str(position)


class ShuffledSource:
    """A source of several partitions, polled in an order that depends on the seed."""

    def __init__(
        self, partitions: int, length: int, *, batch: int = 100, garbage: float = 0.0, seed: int = 0
    ) -> None:
        self.length = length
        self.batch = batch
        self.garbage = garbage
        self.draw = random.Random(seed)
        self.positions = {Partition(TOPIC, n): 0 for n in range(partitions)}
        self.committed: dict[Partition, int] = {}
        self.closed = False

    def identity(self) -> dict[str, str]:
        return {"stream": "shuffled"}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        assert identity in ({"stream": "shuffled"}, None)
        self.positions |= positions

    def poll(self, seconds: float) -> list[Records]:
        time.sleep(
            min(0.004, seconds)
        )  # like a broker's, so that checkpoints are written meanwhile
        left = [where for where, at in self.positions.items() if at < self.length]
        if not left:
            return []
        return [
            self.next(where) for where in self.draw.sample(left, self.draw.randint(1, len(left)))
        ]

    def next(self, where: Partition) -> Records:
        start = self.positions[where]
        end = min(start + self.draw.randint(1, self.batch), self.length)
        self.positions[where] = end
        values = [event(where.number, i, garbage=self.garbage) for i in range(start, end)]
        return Records(where, range(start, end), values, end)

    def lag(self) -> dict[Partition, int | None]:
        return {where: self.length - at for where, at in self.positions.items()}

    def lost(self) -> Mapping[Partition, int]:
        return {}

    def ended(self) -> bool:
        return all(at >= self.length for at in self.positions.values())

    def commit(self, positions: Mapping[Partition, int]) -> None:
        self.committed |= positions

    def close(self) -> None:
        self.closed = True


def models(names: str = "default,sparse", reader: sl.Names | None = None) -> dict[str, Any]:
    known: dict[str, Any] = {
        "default": sl.LinearClassifier(),
        "sparse": sl.LinearClassifier(
            sl.rules.DualAveraging(gamma=5.0), penalty=sl.penalties.L1(1e-3)
        ),
        "slower": sl.LinearClassifier(  # the same problem as that of "sparse"
            sl.rules.DualAveraging(gamma=50.0), penalty=sl.penalties.ElasticNet(1e-3, 0.0)
        ),
        "ftrl": sl.FTRLClassifier(l1=0.1, average="tail"),
        "svm": sl.PegasosClassifier(l2=1.0),
    }
    given = {} if reader is None else {"features": reader}
    return {name: known[name].clone(given) for name in names.split(",")}


def make_loop(
    location: Path | str | None,
    source: Any = None,
    *,
    names: str = "default,sparse",
    best: tuple[str, int, float] | None = None,
    sinks: Mapping[str, Sink] | None = None,
    log: Log | None = None,
    ratio: float = 0.5,
    reader: Any = None,
    watchdog_seconds: float = 60.0,
    lease: float = 1.0,
    **policy: Any,
) -> Loop:
    """Build a daemon."""
    log = log or Log("json")
    shared = sl.Names() if reader is None else reader
    learners = Learners(models(names), shared, best=best)
    decoder = JSONDecoder(shared, FIELDS, list(learners))
    outputs = dict(sinks or {})
    published = outputs.get("predictions")
    pipeline = Pipeline(
        EventReader(decoder),
        learners,
        InvalidRecordLimit(ratio, 1000, 50),
        DeadLetterPublisher(outputs.get("dead_letters")),
        log,
        predictions=None if published is None else PredictionPublisher(published),
        predictor=names.split(",", maxsplit=1)[0] if best is None else "best",
        observers=[Audit()],
    )
    until = parse_until(policy.pop("until", "end"))
    return Loop(
        ShuffledSource(3, 400) if source is None else source,
        pipeline,
        None if location is None else Ownership(location, lease_seconds=lease, report=print),
        make_policy(**{"every_events": 150, "until": until, **policy}),
        log,
        Watchdog(watchdog_seconds, log),
        list(outputs.values()),
    )


def make_policy(**given: Any) -> Policy:
    """Return the policy of a run that checkpoints often; keys of [checkpoint] are among `given`."""
    names = config.CheckpointConfig.__struct_fields__
    checkpoint = {name: given.pop(name) for name in names if name in given}
    return Policy(
        checkpoint=config.CheckpointConfig(**{"path": "", "every_seconds": 0.01, **checkpoint}),
        **{"shutdown_seconds": 10.0, **given},
    )


def replay_models(
    ranges: list[Any],
    names: str = "default,sparse",
    garbage: float = 0.0,
    reader: sl.Names | None = None,
    period: int | None = None,
) -> Any:
    """Learn the same records in the same order with the library, one by one; return the models.

    With a period, the records of a partition repeat after that many.
    """
    found = models(names, reader)
    example = functools.lru_cache(period or 0)(functools.partial(learnable, garbage=garbage))
    for _, partition, start, end in ranges:
        for offset in range(start, end):
            given = example(partition, offset % period if period else offset)
            if given is not None:
                for model in found.values():
                    model.learn_one(*given)
    return found


def learnable(
    partition: int, offset: int, *, garbage: float
) -> tuple[dict[str, Any], Any, float] | None:
    """Features, label and weight of a record; None if it is invalid or has no label."""
    try:
        features, roles = FIELDS.split(json.loads(event(partition, offset, garbage=garbage) or b""))
    except (ValueError, AttributeError):
        return None
    label, weight = roles.get("label"), float(roles.get("weight", 1.0))
    if label in {None, float("inf")} or weight < 0.0:
        return None
    return features, label, weight


def main(
    directory: str,
    seed: str,
    length: str,
    garbage: str,
    *,
    location: str = "",
    batch: str = "100",
    **environment: str,
) -> int:
    """Run a daemon as a separate process, to be killed."""
    os.environ |= environment
    for name in [name for name, value in environment.items() if not value]:
        del os.environ[name]
    root = Path(directory)
    source = ShuffledSource(
        3, int(length), batch=int(batch), garbage=float(garbage), seed=int(seed)
    )
    sinks = {
        "predictions": FileSink(root / "predictions.jsonl"),
        "dead_letters": FileSink(root / "dead.jsonl", binary=True),
    }
    lease = 2.0 if location else 1.0
    return make_loop(location or root / "models", source, sinks=sinks, lease=lease).run()


def serve(main: Callable[..., int]) -> None:
    """Fork a daemon for each line of arguments, or wait for one to end.

    This is faster than a new interpreter for each.
    """
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, int):
            answer(os.waitstatus_to_exitcode(os.waitpid(request, 0)[1]))
            continue
        fault, *arguments, options = request
        pid = os.fork()
        if pid == 0:
            os.environ[VARIABLE] = fault
            os._exit(main(*arguments, **options))
        answer(pid)


def answer(number: int) -> None:
    """Write a response."""
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(main)
