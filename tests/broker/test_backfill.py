"""History from files, then the topic: each event once, told by its own time, through kills."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import streamlearn as sl
from streamlearn import config
from streamlearn.daemon.process.exits import Exit
from streamlearn.estimators import checkpoints, model_file
from tests.broker.conftest import write
from tests.broker.daemons import KILLED

if TYPE_CHECKING:
    from pathlib import Path

    from confluent_kafka import Producer

    from tests.broker.conftest import MakeDaemons, MakeTopic
    from tests.broker.daemons import Daemons

CUT, N = 1_800_000_000, 3000  # N events, one a second; the cut is in the middle
FIRST = CUT - N // 2
UNTIL = "2027-01-15T08:00:00Z"
DISORDER = 30  # places by which an event may be displaced
BACKFILL = """\
[backfill]
paths = [{paths}]
until = "{until}"
{more}
"""


def event(i: int) -> dict[str, Any]:
    """The event of a second; three of them share the time of the cut."""
    draw = random.Random(i)
    time = CUT if abs(FIRST + i - CUT) <= 1 else FIRST + i
    user, hour = f"u{draw.randrange(40)}", draw.randrange(24)
    return {"time": time, "user": user, "hour": hour, "click": draw.random() < 0.1 + hour / 40}


def displaced(numbers: range, seed: int) -> list[int]:
    """Events in a slight disorder."""
    draw = random.Random(seed)
    return sorted(numbers, key=lambda i: i + draw.uniform(0, DISORDER))


class Past:
    """History and a topic that overlap around the cut, and a daemon that learns both."""

    def __init__(
        self, daemons: Daemons, producer: Producer, topic: str, path: Path, suffix: str = ".jsonl"
    ) -> None:
        self.daemons = daemons
        self.history = displaced(range(N // 2 + 300), 1)
        self.stream = displaced(range(N // 2 - 200, N), 2)
        half = len(self.history) // 2
        for number, part in enumerate((self.history[:half], self.history[half:])):
            text = [json.dumps(event(i)) for i in part]
            if suffix == ".csv":
                rows = [event(i) | {"click": int(event(i)["click"])} for i in part]
                text = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
            file = path / f"history-{number}{suffix}"
            if suffix == ".parquet":
                rows = pa.Table.from_pylist([event(i) for i in part])
                parquet.write_table(rows, file, row_group_size=170)
            else:
                file.write_text("\n".join(text), encoding="utf-8")
        self.paths = f'"{path}/history-*{suffix}"'
        write(producer, topic, [json.dumps(event(i)).encode() for i in self.stream])

    def configure(self, until: str = UNTIL, more: str = 'offsets = {{"{topic}:0" = 0}}') -> None:
        """Add the backfill to the daemon's configuration."""
        text = self.daemons.config.read_text(encoding="utf-8")
        topic = json.loads(text.split("topics = ")[1].split("\n")[0])[0]
        text = text.split("[backfill]")[0].replace('weight = "w"\nid = "id"', 'time = "time"')
        more = more.format(topic=topic)
        text += BACKFILL.format(paths=self.paths, until=until, more=more)
        self.daemons.config.write_text(text, encoding="utf-8")

    def learned(self) -> list[int]:
        """The events that a correct daemon learns, in order."""
        before = [i for i in self.history if event(i)["time"] < CUT]
        return before + [i for i in self.stream if event(i)["time"] >= CUT]

    def assert_learned_once(self) -> dict[str, Any]:
        """The model is that of the library, to the bit."""
        found = self.daemons.newest()
        assert found is not None
        data = found[1]
        assert sorted(self.learned()) == list(range(N))
        assert data["counts"]["learned"] == N, data["counts"]
        model = sl.LinearClassifier(features=sl.Names(max_bytes=config.FeaturesConfig().max_bytes))
        for i in self.learned():
            x = event(i)
            model.learn_one({"user": x["user"], "hour": x["hour"]}, x["click"])
        state = checkpoints.model(self.daemons.models, "default")["state"]
        assert model_file.pack(state) == model_file.pack(model.state())
        return data


def test_killed_in_history_and_after_it_each_event_is_learned_once(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    topic = make_topic(1)
    daemons = make_daemons(topic, every=150, batch=50)
    past = Past(daemons, producer, topic, tmp_path, ".parquet")
    past.configure()
    for n, step in enumerate(("write", "rename", "commit", "write", "rename", "commit"), 2):
        assert daemons.run("--until", "end", fault=f"{step}:{n}") in KILLED, daemons.log_text()
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()
    data = past.assert_learned_once()
    assert data["counts"]["outside"] == len(past.history) + len(past.stream) - N
    for path in tmp_path.glob("history-*"):
        path.unlink()  # not needed any more
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()


def test_history_in_another_format_is_the_same_stream(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    topic = make_topic(1)
    daemons = make_daemons(topic)
    past = Past(daemons, producer, topic, tmp_path, ".csv")
    past.configure(more="overlap_seconds = 1e9")
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()
    found = daemons.newest()
    assert found is not None
    assert found[1]["counts"]["learned"] == N
    assert sorted(found[1]["decoder"]["labels"]["labels"]) == [0, 1]


def test_a_changed_or_removed_backfill_is_refused(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    topic = make_topic(1)
    daemons = make_daemons(topic)
    past = Past(daemons, producer, topic, tmp_path)
    plain = daemons.config.read_text(encoding="utf-8")
    past.configure()
    assert daemons.run("--until", "500") == Exit.OK, daemons.log_text()
    past.configure(until="2027-01-15T09:00:00Z")
    assert daemons.run("--until", "end") == Exit.SOURCE_CHANGED
    daemons.config.write_text(
        plain.replace('weight = "w"\nid = "id"', 'time = "time"'), encoding="utf-8"
    )
    assert daemons.run("--until", "end") == Exit.SOURCE_CHANGED
    past.configure()
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()
    past.assert_learned_once()


@pytest.mark.parametrize("until", ["2027-01-15T08:00:00Z"])
def test_an_event_without_a_time_is_invalid(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, tmp_path: Path, until: str
) -> None:
    topic = make_topic(1)
    daemons = make_daemons(topic)
    past = Past(daemons, producer, topic, tmp_path)
    write(producer, topic, [b'{"user": "u1", "click": true}'])
    past.configure(until)
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()
    assert past.assert_learned_once()["counts"]["invalid"] == 1
