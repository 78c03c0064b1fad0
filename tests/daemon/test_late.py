"""Late labels in the daemon: killed anywhere, every pair is learnt once, and every time-out."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import checkpoints, modelfile
from streamlearn.daemon.exits import Exit
from streamlearn.daemon.faults import STEPS
from streamlearn.daemon.until import parsed
from streamlearn.stream import Records
from tests.daemon.late_streams import CLICKS, SHOWN, Replayed, TwoTopics, made, topics
from tests.daemon.test_kills import KILLED, Daemons, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LENGTH = 1500


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    found = Daemons(tmp_path_factory.mktemp("said") / "stderr", "late_streams.py")
    yield found
    found.server.kill()
    found.server.communicate()


def newest(directory: Path) -> dict[str, Any]:
    found = checkpoints.newest(directory / "models")
    assert found is not None
    return found[1]


def assert_learnt_once(directory: Path, length: int = LENGTH) -> Counter[str]:
    """Each record once; pairs, time-outs, weights and losses are those of the plain way."""
    log, data = topics(length), newest(directory)
    learnt = data["observers"]["audit"]
    places = Counter((topic, i) for topic, _, start, end in learnt for i in range(start, end))
    assert set(places.values()) == {1}
    assert len(places) == sum(map(len, log.values())) == data["counts"]["records"]
    plain = Replayed(learnt, log)
    assert data["join"]["counts"] == plain.join.counts
    steps = Counter(what for what, *_ in plain.join.steps)
    assert data["counts"]["learnt"] == steps["learn"] + steps["time out"]
    assert data["counts"]["events"] == steps["predict"]
    for name, model in plain.models.items():
        kept = type(model).load(directory / "models", learner=name)
        assert kept.weights == model.weights
        assert kept.intercept == model.intercept
        total, weight = data["learners"][name]["progress"]["loss"]["sums"]
        assert (total, weight) == pytest.approx(plain.losses[name], rel=1e-9)
    return steps


@pytest.mark.parametrize("step", [step for step in STEPS if step != "take-over"])
def test_killed_at_each_step(step: str, tmp_path: Path, daemons: Daemons) -> None:
    for seed, n in enumerate([1] if step == "claim" else [1, 4]):
        assert daemons.run(tmp_path, seed, f"{step}:{n}", LENGTH) in KILLED
    assert daemons.run(tmp_path, 9, "", LENGTH) == Exit.OK
    steps = assert_learnt_once(tmp_path)
    assert steps["learn"] > 400
    assert steps["time out"] > 400
    dead = [
        json.loads(line)
        for line in (tmp_path / "dead.jsonl").read_bytes().splitlines()
        if whole(line)
    ]
    orphans = {
        letter["headers"]["streamlearn.offset"]
        for letter in dead
        if letter["headers"]["streamlearn.topic"] == CLICKS
    }
    # a run that was killed may have read in another order, and had others
    assert len(orphans) >= newest(tmp_path)["join"]["counts"]["orphaned"] > 10
    published = (tmp_path / "predictions.jsonl").read_bytes().splitlines()
    shown = {json.loads(line)["headers"]["offset"] for line in published if whole(line)}
    assert len(shown) == newest(tmp_path)["counts"]["events"]


class InOrder(TwoTopics):
    """The same order of records, in other batches for each seed."""

    def __init__(self, length: int, seed: int) -> None:
        super().__init__(length, seed)
        both = sorted(
            (time, topic, i) for topic, log in self.log.items() for i, (time, _) in enumerate(log)
        )
        self.order = [(topic, i) for _, topic, i in both]

    def run(self) -> Any:
        done = sum(self.positions.values())
        if done == len(self.order):
            return None
        topic, start = self.order[done]
        stop = done + 1
        while stop < min(done + self.draw.randint(1, 20), len(self.order)):
            if self.order[stop][0] != topic:
                break
            stop += 1
        where = next(one for one in self.positions if one.topic == topic)
        self.positions[where] = end = start + stop - done
        values = [value for _, value in self.log[topic][start:end]]
        return Records(where, range(start, end), values, end)


def test_resumed_is_uninterrupted_to_the_bit(tmp_path: Path) -> None:
    """Whatever the batches are, and however often it was stopped."""
    found = []
    for seed, stops in enumerate([[], [300, 301, 900]]):
        directory = tmp_path / str(seed)
        directory.mkdir()
        for stop in stops:
            assert made(directory, InOrder(LENGTH, stop), until=parsed(str(stop))).run() == Exit.OK
        assert made(directory, InOrder(LENGTH, seed)).run() == Exit.OK
        data = newest(directory)
        found.append(
            modelfile.pack(
                [
                    data["counts"],
                    data["join"]["counts"],
                    data["join"]["delays"],
                    data["join"]["clock"],
                    {
                        name: [one["model"], one["progress"]]
                        for name, one in data["learners"].items()
                    },
                ]
            )
        )
    assert found[0] == found[1]
    assert newest(tmp_path / "1")["restarts"] == 3
    assert set(topics(10)) == {SHOWN, CLICKS}
