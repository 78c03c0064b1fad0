"""Killed wherever it may be, the daemon learns every record exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.faults import STEPS
from streamlearn.estimators import checkpoints, model_file
from tests.support.streams import event, replay_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamlearn.estimators.checkpoints import CheckpointId
    from streamlearn.storage import Location

SUPPORT = Path(__file__).parents[1] / "support"
LENGTH, GARBAGE = 300, 0.02
KILLED = {-signal.SIGKILL, -signal.SIGTERM, 99}  # SIGTERM kills who has not yet begun


class Daemons:
    """Starts daemons, one at a time, as processes of their own."""

    def __init__(self, log: Path, script: str = "streams.py") -> None:
        self.log = log
        self.running: list[int] = []
        with log.open("ab") as errors:
            self.server = subprocess.Popen(
                [sys.executable, str(SUPPORT / script)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def start(
        self, directory: Path, seed: int, fault: str = "", length: int = LENGTH, **options: str
    ) -> int:
        """A daemon that learns until the end of the stream, or until it is killed; its pid."""
        self.running.append(
            self._ask([fault, str(directory), str(seed), str(length), str(GARBAGE), options])
        )
        return self.running[-1]

    def finished(self, pid: int) -> int:
        """Its exit code."""
        code = self._ask(pid)
        self.running.remove(pid)
        return code

    def run(
        self, directory: Path, seed: int, fault: str = "", length: int = LENGTH, **options: str
    ) -> int:
        """Start one and wait for its end."""
        code = self.finished(self.start(directory, seed, fault, length, **options))
        assert code in {Exit.OK, *KILLED}, self.log.read_text(encoding="utf-8")
        return code

    def close(self) -> None:
        """End all of them."""
        self.server.kill()
        for pid in self.running:
            os.kill(pid, signal.SIGKILL)
        self.server.communicate()

    def _ask(self, request: Any) -> int:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        print(json.dumps(request), file=self.server.stdin, flush=True)
        return int(self.server.stdout.readline())


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    found = Daemons(tmp_path_factory.mktemp("log") / "stderr")
    yield found
    found.close()


def assert_learned_once(directory: Path, length: int = LENGTH, location: str = "") -> None:
    """Every record once, each model as the library makes it in that order, nothing lost outside."""
    where = location or directory / "models"
    found = checkpoints.newest(where)
    assert found is not None
    data = found[1]
    learned = data["observers"]["audit"]
    places = Counter((n, i) for _, n, start, end in learned for i in range(start, end))
    assert set(places.values()) == {1}
    assert len(places) == 3 * length == data["counts"]["records"]
    for name, model in replay_models(learned, garbage=GARBAGE).items():
        state = checkpoints.model(where, name)["state"]
        assert model_file.pack(state) == model_file.pack(model.state())
    assert_published(directory, data, length)


def assert_published(directory: Path, data: dict[str, Any], length: int) -> None:
    """Each good event is predicted at least once, each bad one is a dead letter at least once."""
    published = (directory / "predictions.jsonl").read_bytes().splitlines()
    dead = (directory / "dead.jsonl").read_bytes().splitlines()
    where = {
        (line["headers"]["partition"], line["headers"]["offset"])
        for line in (json.loads(line) for line in published if whole(line))
    }
    letters = {
        (line["headers"]["streamlearn.partition"], line["headers"]["streamlearn.offset"])
        for line in (json.loads(line) for line in dead if whole(line))
    }
    assert not where & letters
    assert len(where) == data["counts"]["events"]
    assert len(letters) == data["counts"]["invalid"]
    tombstones = sum(event(n, i, garbage=GARBAGE) is None for n in range(3) for i in range(length))
    assert data["counts"]["tombstones"] == tombstones
    assert len(where) + len(letters) + tombstones == 3 * length


def whole(line: bytes) -> bool:
    """Whether a line is more than the beginning of one, left by a process that was killed."""
    return line.startswith(b"{") and line.endswith(b"}")


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_each_step(step: str, tmp_path: Path, daemons: Daemons) -> None:
    # the claim and the take-over come once a start, the others with each checkpoint
    times = [1] if step in {"claim", "take-over"} else [1, 3]
    for seed, n in enumerate(times):
        kind = "kill" if seed % 2 == 0 else "exit"
        assert daemons.run(tmp_path, seed, f"{step}:{n}:{kind}") in KILLED
    assert daemons.run(tmp_path, 9) == Exit.OK
    assert_learned_once(tmp_path)


def test_killed_at_random(tmp_path: Path, daemons: Daemons) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)  # noqa: T201 - shown if it fails
    draw = random.Random(seed)
    length, kills = 3000, 0
    for run in range(12):
        before = checkpoints.all_ids(tmp_path / "models")[:1]
        pid = daemons.start(tmp_path, run, length=length)
        wanted = draw.randrange(3)  # how many checkpoints it may write
        deadline = time.monotonic() + 60.0
        while newer(tmp_path / "models", before) < wanted and alive(pid):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(draw.random() * 0.02)
        if alive(pid):
            os.kill(pid, signal.SIGKILL if run % 2 else signal.SIGTERM)
        kills += daemons.finished(pid) in KILLED
    assert kills
    assert daemons.run(tmp_path, 99, length=length) == Exit.OK
    assert_learned_once(tmp_path, length)


def test_frozen_owner_is_replaced_and_exits_as_fenced(tmp_path: Path, daemons: Daemons) -> None:
    directory, length = tmp_path / "models", 4000
    owner = daemons.start(tmp_path, 1, length=length)
    seen: list[tuple[CheckpointId, int]] = []
    look_until(directory, seen, lambda: len(seen) > 2)
    os.kill(owner, signal.SIGSTOP)
    standby = daemons.start(tmp_path, 2, length=length)
    look_until(directory, seen, lambda: seen[-1][0].epoch == 2)
    os.kill(owner, signal.SIGCONT)
    started = len(seen)
    # the standby may have come to the end before all of its checkpoints are seen
    look_until(
        directory,
        seen,
        lambda: not alive(owner) and (len(seen) > started + 2 or not alive(standby)),
    )
    assert daemons.finished(owner) == Exit.FENCED
    third = daemons.start(tmp_path, 3, length=length)
    os.kill(standby, signal.SIGKILL)
    assert daemons.finished(standby) in {*KILLED, Exit.OK}
    look_until(directory, seen, lambda: seen[-1][0].epoch == 3 or not alive(third))
    assert daemons.finished(third) == Exit.OK
    assert seen == sorted(seen)
    assert [records for _, records in seen] == sorted(records for _, records in seen)
    assert_learned_once(tmp_path, length)


def look_until(
    location: Location, seen: list[tuple[CheckpointId, int]], condition: Callable[[], bool]
) -> None:
    """Note which checkpoint is the newest, and how many records it has, until it is so."""
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        found = checkpoints.newest(location)
        if found is not None and (not seen or seen[-1][0] != found[0]):
            seen.append((found[0], found[1]["counts"]["records"]))
        time.sleep(0.002)


def newer(location: Location, before: list[CheckpointId]) -> int:
    """How many checkpoints there are that are newer; as far as they are still there."""
    return sum(place > before[0] if before else True for place in checkpoints.all_ids(location))


def alive(pid: int) -> bool:
    """Whether the process has not ended; a zombie has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"
