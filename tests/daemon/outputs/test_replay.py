"""Dead letters are replayed exactly once, wherever a run is interrupted."""

from __future__ import annotations

import io
import json
import sys
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from streamlearn import config
from streamlearn.cli.main import main
from streamlearn.core.invalid_record import InvalidRecord
from streamlearn.daemon.outputs import replay
from streamlearn.daemon.outputs.dead_letters import DeadLetterPublisher
from streamlearn.daemon.outputs.replay import count_reasons
from streamlearn.daemon.outputs.replay_progress import PROGRESS_FILE, ProgressFile, exclusive
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.errors import SourceError
from streamlearn.estimators import checkpoints
from streamlearn.storage import open_store
from streamlearn.stream import Files, Partition, Records
from streamlearn.stream.sinks import json_lines
from streamlearn.stream.sinks.json_lines import FileSink
from tests.support.disks import Disk, Recorder

if TYPE_CHECKING:
    from streamlearn.daemon.outputs.dead_letter_reader import DeadLetter
    from streamlearn.daemon.outputs.replay_progress import ReplayProgress, TopicPositions

GARBAGE = [b"{", b"\xff\xfe", b"null", b'{"a":"\xc3\xa9"}', b""]


class Memory:
    """A topic in memory."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self.since: list[TopicPositions] = []

    def rejection(self, letter: DeadLetter) -> str | None:
        return None if letter.metadata("topic") == "clicks" else "another topic"

    def send(self, letter: DeadLetter) -> None:
        self.letters.append(letter)

    def flush(self) -> None:
        pass

    def ends(self) -> TopicPositions:
        return [("clicks", 0, len(self.letters))]

    def sent(self, since: TopicPositions) -> set[str]:
        self.since.append(since)
        [(_, _, end)] = since
        return {letter.name for letter in self.letters[end:]}

    def close(self) -> None:
        pass

    def values(self) -> list[bytes | None]:
        return [letter.value for letter in self.letters]


def settings(directory: Path) -> config.Config:
    tables = {"path": directory / "dead.jsonl", "models": directory / "models"}
    return config.parse(
        f"""
        source = {{ kind = "stdin" }}
        format.label = "click"
        dead_letters.path = "{tables["path"]}"
        checkpoint.path = "{tables["models"]}"
        """
    )


def kept_at(read: config.Config, url: str) -> config.Config:
    """Keep the checkpoints at a URL."""
    assert read.checkpoint is not None
    kept = msgspec.structs.replace(read.checkpoint, path=url, lease_seconds=1.0)
    return msgspec.structs.replace(read, checkpoint=kept)


def write_letters(
    directory: Path, values: list[bytes], start: int = 0, topic: str = "clicks"
) -> None:
    """Write dead letters like a daemon."""
    sink = FileSink(directory / "dead.jsonl", binary=True)
    records = Records(
        Partition(topic, 2),
        range(start, start + len(values)),
        values,
        start + len(values),
        keys=[b"k%d" % i for i in range(len(values))],
        headers=[[("own", b"%d" % i)] for i in range(len(values))],
    )
    DeadLetterPublisher(sink, 7).publish(
        records, [InvalidRecord(i, "f", "value", f"bad {i % 2}") for i in range(len(values))]
    )
    sink.flush(1.0)
    sink.close()


def test_each_letter_is_sent_once(tmp_path: Path) -> None:
    read, topic = settings(tmp_path), Memory()
    write_letters(tmp_path, GARBAGE)
    assert count_reasons(read) == {"bad 0": 3, "bad 1": 2}
    assert replay.replay(read, topic).sent == 5
    assert topic.values() == GARBAGE
    assert replay.replay(read, topic).sent == 0
    write_letters(tmp_path, [b"[", b"]"], start=5)
    assert count_reasons(read) == {"bad 0": 1, "bad 1": 1}
    assert replay.replay(read, topic).sent == 2
    assert topic.values() == [*GARBAGE, b"[", b"]"]
    assert replay.replay(read, topic, again=True).sent == 7
    assert topic.since == []


def test_nothing_is_sent_without_the_saved_progress(tmp_path: Path) -> None:
    read, topic = settings(tmp_path), Memory()
    assert read.checkpoint is not None
    kept = msgspec.structs.replace(read.checkpoint, required=True)
    read = msgspec.structs.replace(read, checkpoint=kept)
    write_letters(tmp_path, GARBAGE)
    with pytest.raises(Stop) as replayed:
        replay.replay(read, topic)
    with pytest.raises(Stop) as counted:
        count_reasons(read)
    assert replayed.value.code == counted.value.code == Exit.NO_CHECKPOINT
    assert not topic.letters
    assert not (tmp_path / "models").exists()


def test_letters_in_a_file_survive_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = settings(tmp_path)
    write_letters(tmp_path, GARBAGE)
    (tmp_path / "out").mkdir()
    recorder, disk = Recorder(tmp_path, monkeypatch), Disk()
    aside = replay.FileTarget(str(tmp_path / "out" / "letters"))
    replay.replay(read, aside)
    aside.close()
    for count, step in enumerate(recorder.steps, 1):
        disk.take(step)
        for state in disk.states() if count >= recorder.begun else ():
            progress = json.loads(state.get(Path("models", PROGRESS_FILE)) or b'{"positions": []}')
            if progress["positions"]:
                assert state[Path("out", "letters")] == b"".join(one + b"\n" for one in GARBAGE)
    assert progress["positions"]


class Slow(Memory):
    """A topic that delivers on flush, and records the saved position at each step."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.buffer: list[DeadLetter] = []
        self.delivered_at: list[tuple[int, int]] = []  # delivered letters, saved position

    def send(self, letter: DeadLetter) -> None:
        self.look()
        self.buffer.append(letter)

    def flush(self) -> None:
        self.look()
        self.letters += self.buffer
        self.buffer.clear()

    def look(self) -> None:
        progress = json.loads(self.path.read_bytes())
        saved = sum(at for *_, at in progress["positions"])
        self.delivered_at.append((len(self.letters), saved))


def test_position_is_saved_after_its_letters_are_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill at any time, no letter before the position is missing in the topic."""
    read, topic = settings(tmp_path), Slow(tmp_path / "models" / PROGRESS_FILE)

    class Few(Files):
        def __init__(self, paths: list[str], **options: Any) -> None:
            super().__init__(paths, batch=2, **options)

    monkeypatch.setattr(replay, "Files", Few)
    write_letters(tmp_path, GARBAGE)
    lines = (tmp_path / "dead.jsonl").read_bytes().splitlines(keepends=True)
    ends = list(accumulate(map(len, lines)))
    assert replay.replay(read, topic).sent == 5
    topic.look()
    assert topic.values() == GARBAGE
    assert topic.delivered_at[0] == (0, 0)
    assert topic.delivered_at[-1] == (5, ends[-1])
    assert len({saved for _, saved in topic.delivered_at}) == 4  # after each batch
    for delivered, saved in topic.delivered_at:
        assert delivered >= sum(end <= saved for end in ends)


def test_rotated_file_of_letters_is_read_to_its_end(tmp_path: Path) -> None:
    """The rest of the old file, which is longer, and all of the new one."""
    read, topic = settings(tmp_path), Memory()
    write_letters(tmp_path, GARBAGE)
    assert replay.replay(read, topic).sent == 5
    write_letters(tmp_path, [b"[", b"]"], start=5)
    (tmp_path / "dead.jsonl").rename(tmp_path / "dead.jsonl.1")
    write_letters(tmp_path, [b"("], start=7)
    assert count_reasons(read) == {"bad 0": 2, "bad 1": 1}
    assert replay.replay(read, topic).sent == 3
    assert topic.values() == [*GARBAGE, b"[", b"]", b"("]
    assert replay.replay(read, topic).sent == 0


def test_replayed_record_keeps_its_first_origin(tmp_path: Path) -> None:
    topic = Memory()
    write_letters(tmp_path, GARBAGE, start=40)
    replay.replay(settings(tmp_path), topic)
    letter = topic.letters[1]
    back = dict(letter.replay_headers())
    name = back.pop("streamlearn.letter")
    assert letter.key == b"k1"
    assert back == {
        "own": b"1",
        "streamlearn.origin.topic": b"clicks",
        "streamlearn.origin.partition": b"2",
        "streamlearn.origin.offset": b"41",
    }
    # invalid again, elsewhere: the first origin stays, but the letter is another one
    records = Records(
        Partition("clicks", 0), [99], [letter.value], 100, headers=[letter.replay_headers()]
    )
    sink = FileSink(tmp_path / "dead.jsonl", binary=True)
    DeadLetterPublisher(sink).publish(records, [InvalidRecord(0, None, "syntax", "still bad")])
    sink.flush(1.0)
    sink.close()
    replay.replay(settings(tmp_path), topic)
    second = dict(topic.letters[-1].replay_headers())
    assert second.pop("streamlearn.letter") != name
    assert second == back


@pytest.mark.parametrize("place", ["directory", "bucket"])
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_interrupted_run_sends_no_letter_twice(
    cut: int,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    read, topic = settings(tmp_path), Memory()
    if place == "bucket":
        read = kept_at(read, request.getfixturevalue("bucket"))
    write_letters(tmp_path, GARBAGE)
    replay.replay(read, topic)
    write_letters(tmp_path, [b"%d" % i for i in range(10)])
    written = []

    class Interrupted(Exception):
        pass

    def failing(file: ProgressFile, progress: ReplayProgress) -> None:
        written.append(progress)
        if len(written) == cut:
            raise Interrupted
        save(file, progress)

    save = ProgressFile.save
    monkeypatch.setattr(ProgressFile, "save", failing)
    with pytest.raises(Interrupted):
        replay.replay(read, topic)
    monkeypatch.setattr(ProgressFile, "save", save)
    sent = len(topic.letters) - 5
    outcome = replay.replay(read, topic)
    assert (outcome.sent, outcome.already_sent) == (10 - sent, sent if cut == 2 else 0)
    assert topic.values() == [*GARBAGE, *(b"%d" % i for i in range(10))]
    assert replay.replay(read, topic).already_sent == 0


def test_letters_that_cannot_be_replayed_are_counted_by_reason(tmp_path: Path) -> None:
    topic = Memory()
    write_letters(tmp_path, [b"x" * 2_000_000, b"good"])
    write_letters(tmp_path, [b"other"], topic="mails")
    with (tmp_path / "dead.jsonl").open("ab") as file:
        file.write(
            b'no letter\n{"headers":{},"value_base64":"!"}\n{"headers":{"streamlearn.topic":'
        )
    outcome = replay.replay(settings(tmp_path), topic)
    assert topic.values() == [b"good"]
    assert outcome.not_sent == {
        "cut because of its size": 1,
        "another topic": 1,
        "no origin in its headers": 2,
    }
    with (tmp_path / "dead.jsonl").open("ab") as file:  # the rest of the partial line
        place = '"clicks","streamlearn.partition":"0","streamlearn.offset":"1"}'
        file.write(f'{place},"value_base64":"eA=="}}\n'.encode())
    assert replay.replay(settings(tmp_path), topic).sent == 1
    assert topic.values() == [b"good", b"x"]


@pytest.mark.parametrize("place", ["directory", "bucket"])
def test_only_one_replay_at_a_time(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    read, topic = settings(tmp_path), Memory()
    if place == "bucket":
        read = kept_at(read, request.getfixturevalue("bucket"))
    write_letters(tmp_path, GARBAGE)
    assert replay.replay(read, topic).sent == 5
    assert read.checkpoint is not None
    with exclusive(read.checkpoint), pytest.raises(Stop) as stop:
        replay.replay(read, topic)
    assert stop.value.code == Exit.OWNED
    write_letters(tmp_path, GARBAGE[:2])
    assert replay.replay(read, topic).sent == 2


def test_a_replay_that_was_replaced_sends_no_more(tmp_path: Path, bucket: str) -> None:
    read, topic = kept_at(settings(tmp_path), bucket), Memory()
    write_letters(tmp_path, GARBAGE)
    assert read.checkpoint is not None
    with exclusive(read.checkpoint) as file:
        store, name = open_store(f"{bucket}/replay"), checkpoints.epoch_name(1)
        # as a successor does when it has seen no renewal for the time of the lease
        ended = {**json.loads(store.read(name)), "lease": "ended"}
        store.write(name, [json.dumps(ended).encode()])
        with pytest.raises(Stop) as stop:
            file.require_owner()
    assert stop.value.code == Exit.FENCED
    assert replay.replay(read, topic).sent == 5


def test_only_letters_of_one_file(tmp_path: Path) -> None:
    read, topic = settings(tmp_path), Memory()
    write_letters(tmp_path, GARBAGE)
    replay.replay(read, topic)
    (tmp_path / "dead.jsonl").write_bytes(b"another\n")
    with pytest.raises(Stop, match="--again") as stop:
        replay.replay(read, topic)
    assert stop.value.code == Exit.SOURCE_CHANGED
    (tmp_path / "models" / "replayed.json").write_bytes(b"{")
    with pytest.raises(SourceError, match=r"replayed\.json"):
        replay.replay(read, topic)
    assert replay.replay(read, topic, again=True).not_sent.total() == 1


def test_replay_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = [json.dumps({"click": i % 2 == 0, "user": f"u{i}"}) for i in range(50)]
    bad = ['{"click":1e999}', "{", '{"click":true,"a":']
    (tmp_path / "events.jsonl").write_text("\n".join([*good, *bad, *good]) + "\n")
    file = tmp_path / "clicks.toml"
    file.write_text(
        f"""
        source = {{ kind = "file", paths = ["{tmp_path}/events.jsonl"] }}
        format.label = "click"
        dead_letters.path = "{tmp_path}/dead.jsonl"
        checkpoint.path = "{tmp_path}/models"
        telemetry.enabled = false
        regret.enabled = false
        run.until = "end"
        """
    )
    assert main(["run", str(file)]) == 0
    capsys.readouterr()
    assert main(["replay", str(file), "--dry-run", "--json"]) == 0
    assert sum(row["letters"] for row in json.loads(capsys.readouterr().out)) == 3
    assert main(["replay", str(file)]) == Exit.USAGE
    assert "--to FILE" in capsys.readouterr().err
    assert main(["replay", str(file), "--to", str(tmp_path / "back.jsonl")]) == 0
    assert capsys.readouterr().out == "3 dead letters sent\n"
    assert (tmp_path / "back.jsonl").read_text().splitlines() == bad
    assert main(["replay", str(file), "--dry-run"]) == 0
    assert capsys.readouterr().out == "no dead letters to send\n"
    assert main(["replay", str(file), "--to", "-", "--json"]) == Exit.USAGE
    assert "--json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "named"),
    [("", "dead_letters: "), ('dead_letters.path = "none.jsonl"', "none.jsonl")],
)
def test_missing_letters_are_an_error(
    table: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "clicks.toml"
    lines = ['source = { kind = "stdin" }', 'format.label = "y"', table]
    file.write_text("\n".join([*lines, f'checkpoint.path = "{tmp_path}/models"']))
    assert main(["replay", str(file), "--dry-run"]) != 0
    assert named in capsys.readouterr().err


class Unseekable(io.BytesIO):
    """A pipe, which has no place."""

    def tell(self) -> int:
        raise OSError("a pipe has no place")


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """A configuration file with dead letters, one of which has a line break."""
    write_letters(tmp_path, [*GARBAGE, b"a\nb"])
    path = tmp_path / "clicks.toml"
    path.write_text(
        f"""
        source = {{ kind = "stdin" }}
        format.label = "click"
        dead_letters.path = "{tmp_path / "dead.jsonl"}"
        checkpoint.path = "{tmp_path / "models"}"
        """
    )
    return path


LINES = b"".join(one + b"\n" for one in GARBAGE)


def test_letters_are_written_to_standard_output(
    command: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = Unseekable()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", SimpleNamespace(buffer=pipe, flush=pipe.flush))
        assert main(["replay", str(command), "--to", "-"]) == 0
    assert not pipe.closed
    assert pipe.getvalue() == LINES
    assert "line break" in capsys.readouterr().err
    assert main(["replay", str(command), "--to", "-", "--json"]) == 2


def test_what_was_replayed_is_printed(
    command: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pending = [{"reason": "bad 0", "letters": 3}, {"reason": "bad 1", "letters": 3}]
    assert main(["replay", str(command), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == pending
    assert main(["replay", str(command), "--dry-run"]) == 0
    assert "bad 0" in capsys.readouterr().out
    to = tmp_path / "out.jsonl"
    assert main(["replay", str(command), "--to", str(to), "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert (outcome["sent"], outcome["already_sent"]) == (5, 0)
    assert list(outcome["not_sent"].values()) == [1]
    assert to.read_bytes() == LINES
    assert main(["replay", str(command), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["replay", str(command), "--to", str(to), "--again"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("5 ")
    assert out.count("\n") == 2  # and what was not sent
    assert to.read_bytes() == LINES * 2
    assert main(["replay", str(command)]) == 2  # no topic to send them to


def test_a_file_is_new_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    for module in (replay, json_lines):
        monkeypatch.setattr(module, "fsync_directory", synced.append)
    for k, make in enumerate((replay.FileTarget, FileSink)):
        path = tmp_path / f"{k}"
        for content in (b"", b"", b"x\n"):
            path.write_bytes(content) if content else None
            make(str(path)).close()
    # an empty file may be one that a power cut has emptied
    assert synced == [tmp_path] * 4
