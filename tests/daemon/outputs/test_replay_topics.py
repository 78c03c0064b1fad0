"""Dead letters of a topic go back where they came from, each once, also after a killed replay."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import config
from streamlearn.cli.main import main
from streamlearn.daemon.outputs.dead_letter_reader import LETTER_HEADER, ORIGIN_PREFIX
from streamlearn.daemon.outputs.replay import ReplayResult, TopicTarget, count_reasons, replay
from streamlearn.daemon.outputs.replay_progress import ProgressFile
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.kafka import verification
from streamlearn.stream import Partition
from tests.support.memory_kafka import MemoryCluster, Written

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """
[source]
kind = "kafka"
bootstrap = "localhost:9092"
topics = ["clicks", "views"]

[format]
label = "click"

[dead_letters]
topic = "letters"
max_invalid_ratio = 1.0

[checkpoint]
path = "{path}"
transactions = false

[telemetry]
enabled = false
"""
BAD = [b"{", b"\xff\xfe", b"null"]


class Setting:
    """A daemon that has run over records of which a third are invalid."""

    def __init__(self, directory: Path, cluster: MemoryCluster) -> None:
        self.cluster, self.path = cluster, directory / "config.toml"
        text = CONFIG.format(path=directory / "models")
        self.path.write_text(text)
        self.settings = config.parse(text, "test", {}, environ={})
        self.bad: dict[tuple[str, int, int], Written] = {}
        for topic in ("clicks", "views"):
            cluster.create(topic, 2)
            for number, i in itertools.product(range(2), range(30)):
                value = b'{"a": 1, "click": true}' if i % 3 else BAD[i % 9 // 3]
                record = Written(value, b"k%d" % (i % 5), [("own", b"%d" % i)], 1000 + i)
                cluster.logs[Partition(topic, number)].append(record)
                if not i % 3:
                    self.bad[topic, number, i] = record
        cluster.create("letters", 2)
        assert main(["run", str(self.path), "--until", "end"]) == Exit.OK

    def replay(self, **given: Any) -> ReplayResult:
        assert isinstance(self.settings.source, config.KafkaSourceConfig)
        target = TopicTarget(self.settings.source)
        try:
            return replay(self.settings, target, **given)
        finally:
            target.close()

    def sent_back(self) -> list[tuple[str, Written, dict[str, Any]]]:
        """The topic, the record and the headers of what was sent back."""
        return [
            (topic, one, headers)
            for topic in ("clicks", "views")
            for one in self.cluster.read(topic)
            if LETTER_HEADER in (headers := dict(one.headers))
        ]


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Setting:
    monkeypatch.setattr(verification, "PACE_SECONDS", 0.0)
    cluster = MemoryCluster()
    cluster.install(monkeypatch)
    return Setting(tmp_path, cluster)


def test_each_letter_goes_back_once(setting: Setting) -> None:
    assert sum(count_reasons(setting.settings).values()) == len(setting.bad) == 40
    result = setting.replay()
    assert (result.sent, result.already_sent, result.not_sent) == (40, 0, {})
    found: dict[tuple[str, int, int], Written] = {}
    for topic, record, headers in setting.sent_back():
        origin = [headers[ORIGIN_PREFIX + name] for name in ("topic", "partition", "offset")]
        assert origin[0] == topic.encode()
        found[topic, int(origin[1]), int(origin[2])] = record
        assert [name for name in headers if name.startswith("streamlearn.")] == [
            *(ORIGIN_PREFIX + name for name in ("topic", "partition", "offset")),
            LETTER_HEADER,
        ]
    assert found.keys() == setting.bad.keys()
    for where, record in setting.bad.items():
        assert (found[where].value, found[where].key) == (record.value, record.key)
        assert record.headers[0] == found[where].headers[0]  # its own
    names = [headers[LETTER_HEADER] for *_, headers in setting.sent_back()]
    letters = {
        f"letters/{where.number}/{i}".encode()
        for where, log in setting.cluster.logs.items()
        if where.topic == "letters"
        for i in range(len(log))
    }
    assert sorted(names) == sorted(letters)
    assert setting.replay() == ReplayResult()
    assert count_reasons(setting.settings) == {}
    assert len(setting.sent_back()) == 40
    assert setting.replay(again=True).sent == 40


def test_what_is_of_no_topic_of_the_source_is_not_sent(setting: Setting) -> None:
    letters = setting.cluster.logs[Partition("letters", 0)]
    where = letters[0]._replace(
        headers=[(name, b"others" if name.endswith("topic") else value)
                 for name, value in letters[0].headers]
    )  # fmt: skip
    letters += [where, Written(b"no letter")]
    result = setting.replay()
    assert result.sent == 40
    assert sorted(result.not_sent.values()) == [1, 1]
    assert any("others" in reason for reason in result.not_sent)
    assert set(setting.cluster.ids) == {"clicks", "views", "letters"}


@pytest.mark.parametrize("save", [2, 3])
def test_a_killed_replay_finds_what_it_has_sent(
    monkeypatch: pytest.MonkeyPatch, setting: Setting, save: int
) -> None:
    saves = itertools.count(1)
    own = ProgressFile.save

    def killed(self: ProgressFile, progress: Any) -> None:
        if next(saves) == save:
            raise KeyboardInterrupt
        own(self, progress)

    monkeypatch.setattr(ProgressFile, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        setting.replay()
    before = len(setting.sent_back())
    assert 0 < before <= 40
    monkeypatch.undo()
    monkeypatch.setattr(verification, "PACE_SECONDS", 0.0)
    setting.cluster.install(monkeypatch)
    result = setting.replay()
    assert result.already_sent > 0
    assert result.sent == 40 - before
    names = [headers[LETTER_HEADER] for *_, headers in setting.sent_back()]
    assert len(names) == len(set(names)) == 40


def test_letters_that_retention_deleted_are_skipped(setting: Setting) -> None:
    sizes = {}
    for number in range(2):
        where = Partition("letters", number)
        sizes[number] = len(setting.cluster.logs[where])
        setting.cluster.delete_before(where, min(5, sizes[number]))
    assert setting.replay().sent == sum(max(size - 5, 0) for size in sizes.values())


def test_letters_of_a_topic_that_was_created_again(setting: Setting) -> None:
    assert setting.replay().sent == 40
    setting.cluster.ids["letters"] = "another"
    with pytest.raises(Stop) as stopped:
        setting.replay()
    assert stopped.value.code == Exit.SOURCE_CHANGED
    assert setting.replay(again=True).sent == 40
