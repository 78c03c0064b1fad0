"""What a daemon warns of, with the fields that tell an operator where to look."""

from __future__ import annotations

import ast
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import daemon, fleet
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.log import LibraryLogHandler
from streamlearn.errors import SourceError
from streamlearn.stream import Partition
from tests.support.loops import MemoryLog
from tests.support.streams import TOPIC, ShuffledSource, make_loop

if TYPE_CHECKING:
    from types import ModuleType

    from streamlearn.daemon.checkpointing.writer import WrittenCheckpoint


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


def logged(log: MemoryLog, event: str) -> dict[str, Any]:
    """Return the one line of this event."""
    [line] = [line for line in log.lines(event) if line["event"] == event]
    return line


def test_a_crash_is_logged_with_its_stack(tmp_path: Path, log: MemoryLog) -> None:
    class Broken(ShuffledSource):
        def poll(self, seconds: float) -> Any:  # noqa: ARG002 - a source's
            raise TypeError("a fault")

    assert make_loop(tmp_path, Broken(1, 9), log=log).run() == Exit.CRASH
    line = logged(log, "crashed")
    assert line["level"] == "error"
    assert "a fault" in line["stack"]
    assert "in poll" in line["stack"]


def test_a_learner_that_diverges_is_named(log: MemoryLog) -> None:
    loop = make_loop(None, ShuffledSource(1, 50), log=log)
    [first, second] = loop.pipeline.learners
    second.diverged = 7
    assert loop.run() == Exit.OK
    line = logged(log, "learner diverged")
    assert (line["level"], line["learner"]) == ("error", second.name)
    assert line["events"] >= 7
    assert line["remedy"]
    assert first.diverged == 0


def test_state_that_an_observer_refuses_is_discarded(tmp_path: Path, log: MemoryLog) -> None:
    class Fickle(Observer):
        name = "fickle"
        restored: Any = None

        def state(self) -> Any:
            return {"a": 1}

        def restore(self, state: Any) -> None:
            self.restored = state
            raise KeyError("b")

    for count in (50, 100):
        loop = make_loop(tmp_path, ShuffledSource(1, count), log=log)
        fickle = Fickle()
        loop.pipeline.observers.append(fickle)
        assert loop.run() == Exit.OK
    assert fickle.restored == {"a": 1}
    assert fickle in loop.pipeline.observers  # it begins anew
    line = logged(log, "observer state discarded")
    assert (line["level"], line["name"]) == ("warning", "Fickle")
    assert "b" in line["error"]


def test_records_that_are_skipped_are_counted(tmp_path: Path, log: MemoryLog) -> None:
    where = Partition(TOPIC, 0)
    assert make_loop(tmp_path, ShuffledSource(1, 50)).run() == Exit.OK
    loop = make_loop(tmp_path, ShuffledSource(1, 100), log=log, skip_to={where: 80})
    assert loop.run() == Exit.OK
    line = logged(log, "records skipped")
    assert line["level"] == "warning"
    assert (line["topic"], line["partition"]) == where
    assert (line["start"], line["end"]) == (50, 80)
    assert loop.pipeline.counts.skipped == 30
    assert loop.pipeline.counts.records == 70
    log = MemoryLog()
    loop = make_loop(tmp_path, ShuffledSource(1, 100), log=log, skip_to={where: 100})
    assert loop.run() == Exit.OK  # no step back, and nothing to skip
    assert logged(log, "records skipped")["start"] == 100
    assert loop.pipeline.counts.skipped == 30
    loop = make_loop(tmp_path, ShuffledSource(1, 100), skip_to={where: 99})
    assert loop.run() == Exit.USAGE


def test_positions_that_cannot_be_committed_are_only_reported(
    tmp_path: Path, log: MemoryLog
) -> None:
    class Mute(ShuffledSource):
        def commit(self, positions: Any) -> None:
            raise SourceError(f"no answer for {len(positions)}")

    loop = make_loop(tmp_path, Mute(1, 400), log=log)
    written: list[WrittenCheckpoint] = []
    loop.pipeline.observers.append(Keeper(written))
    assert loop.run() == Exit.OK
    line = logged(log, "commit failed")
    assert (line["level"], line["error"]) == ("warning", "no answer for 1")
    lines = log.lines("checkpoint written")
    assert [line["name"] for line in lines] == [one.checkpoint_id.name for one in written]
    assert [line["bytes"] for line in lines] == [one.bytes for one in written]
    assert lines[-1]["records"] == 400


class Keeper(Observer):
    """An observer that keeps the checkpoints of which it is told."""

    def __init__(self, written: list[Any]) -> None:
        self.written = written

    def on_checkpoint(self, checkpoint: Any) -> None:
        self.written.append(checkpoint)


def test_warnings_of_libraries_have_their_names(log: MemoryLog) -> None:
    handler = LibraryLogHandler(log)
    library = logging.Logger("urllib3.pool")  # noqa: LOG001 - of this test alone
    library.addHandler(handler)
    library.info("not this")
    library.warning("retry %d", 3)
    library.error("given up")
    library.critical("%d of %d", 1)  # too few arguments
    lines = log.lines("library message")
    assert [line["level"] for line in lines] == ["warning", "error", "error"]
    assert [line["text"] for line in lines] == ["retry 3", "given up", "%d of %d"]
    assert {line["name"] for line in lines} == {"urllib3.pool"}


@pytest.mark.parametrize("package", [daemon, fleet], ids=lambda one: one.__name__)
def test_each_event_is_named_in_a_test(package: ModuleType) -> None:
    """An event that nobody asserts is one that nobody would miss."""
    sources = Path(str(package.__file__)).parent
    tests = Path(__file__).parents[1] / sources.name
    calls = [
        node
        for path in sources.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    warned = {
        text.value
        for call in calls
        if call.func.attr in {"info", "warning", "error", "rate_limited"}  # type: ignore[attr-defined]
        for text in call.args[2 if call.func.attr == "rate_limited" else 0 :][:1]  # type: ignore[attr-defined]
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
    }
    texts = "".join(path.read_text() for path in tests.rglob("test_*.py"))
    assert len(warned) > 5
    assert {event for event in warned if f'"{event}"' not in texts} == set()
