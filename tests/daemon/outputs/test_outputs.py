"""Dead letters, sinks of JSON lines, and the log."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import itertools
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from streamlearn.core.invalid_record import InvalidRecord
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.daemon.outputs.dead_letters import (
    DEFAULT_MAX_BYTES,
    DeadLetterPublisher,
    InvalidRecordLimit,
    record_overhead,
)
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.log import LibraryLogHandler, Log, log_failed_threads
from streamlearn.errors import SinkError, SinkFullError, SinkRefusedError
from streamlearn.stream import Partition, Records
from streamlearn.stream.sinks import json_lines
from streamlearn.stream.sinks.json_lines import FileSink
from streamlearn.stream.sinks.sink import Sink
from tests.support.loops import MemoryLog
from tests.support.streams import ShuffledSource, make_loop

PARTITION = Partition("clicks", 3)


class Sent(list[Any], Sink):
    """A sink that is a list."""

    def send(self, value: bytes | None, *, key: bytes | None = None, headers: Any = ()) -> None:
        self.append((value, key, headers))

    def flush(self, seconds: float) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        """Nothing is open."""


def size(value: bytes | None, key: bytes | None, headers: Any) -> int:
    return len(value or b"") + record_overhead(key, headers)


def refused(
    value: bytes | None, key: bytes | None = None, headers: Any = (), reason: str = "bad"
) -> Any:
    records = Records(PARTITION, [17], [value], 18, [key], [1234], [list(headers)])
    sink = Sent()
    DeadLetterPublisher(sink, 5).publish(records, [InvalidRecord(0, "age", "value", reason)])
    (sent,) = sink
    return sent


def test_dead_letter_is_the_record_with_metadata_headers() -> None:
    value, key, headers = refused(b"\xff{", b"k", [("trace", b"1"), ("none", None)], "no JSON")
    assert (value, key) == (b"\xff{", b"k")
    assert headers[:2] == [("trace", b"1"), ("none", None)]
    metadata = dict(headers[2:])
    assert metadata.pop("streamlearn.time").isdigit()
    assert metadata == {
        "streamlearn.topic": b"clicks",
        "streamlearn.partition": b"3",
        "streamlearn.offset": b"17",
        "streamlearn.epoch": b"5",
        "streamlearn.code": b"value",
        "streamlearn.reason": b"no JSON",
        "streamlearn.record_time": b"1234",
        "streamlearn.field": b"age",
    }


@pytest.mark.parametrize("extra", [-5000, -3000, -100, 0, 100, 10**6])
def test_large_record_is_cut_with_its_size_and_digest(extra: int) -> None:
    raw = bytes(range(256)) * ((DEFAULT_MAX_BYTES + extra) // 256)
    value, key, headers = refused(raw, b"k" * 100, [("h", b"x" * 100)], "é" * 3000)
    assert size(value, key, headers) <= DEFAULT_MAX_BYTES
    metadata = dict(headers)
    if len(value) < len(raw):
        assert metadata["streamlearn.size"] == b"%d" % len(raw)
        assert metadata["streamlearn.sha256"] == hashlib.sha256(raw).hexdigest().encode()
    assert raw.startswith(value)
    assert len(value) > DEFAULT_MAX_BYTES - 20_000 + min(extra, 0)


def test_large_key_and_headers_are_dropped() -> None:
    value, key, headers = refused(
        b"x" * 100, b"k" * DEFAULT_MAX_BYTES, [("h", b"x" * DEFAULT_MAX_BYTES)]
    )
    assert (value, key) == (b"x" * 100, None)
    assert "streamlearn.dropped" in dict(headers)
    assert size(value, key, headers) <= DEFAULT_MAX_BYTES


def test_invalid_record_limit_does_not_depend_on_batches() -> None:
    invalid = {i for i in range(5000) if (i * 7919) % 10 < (1 if i < 3000 else 4)}
    results = set()
    for size in (1, 17, 100, 5000):
        limit, start, found = InvalidRecordLimit(0.2, 1000, 50), 0, None
        while found is None and start < 5000:
            batch = range(start, min(start + size, 5000))
            found = limit.add([i - start for i in batch if i in invalid], len(batch))
            start = batch.stop if found is None else start
        results.add(None if found is None else start + found)
    (index,) = results
    assert index is not None
    assert 3000 < index < 4000


def test_file_sink_starts_a_new_line_after_a_partial_one(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b'{"value":1}\n{"value":')
    sink = FileSink(path)
    sink.send(b"2", key=b"\xff", headers=[("a", b"\xff")])
    sink.send(None)
    sink.flush(1.0)
    assert path.read_bytes().splitlines()[2:] == [
        b'{"headers":{"a":"\\\\xff"},"key_base64":"/w==","value":2}',
        b'{"value":null}',
    ]
    sink.close()
    sink.close()
    binary = FileSink(path, binary=True)
    binary.send(b"\x00\xff")
    binary.close()
    line = json.loads(path.read_bytes().splitlines()[-1])
    assert base64.b64decode(line["value_base64"]) == b"\x00\xff"


def test_readers_of_a_file_see_a_batch_before_the_checkpoint(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "lines")
    sink.send_all([(b"1", None, ()), (b"2", None, ())])
    assert (tmp_path / "lines").read_bytes() == b'{"value":1}\n{"value":2}\n'
    sink.close()


def test_full_disk_is_a_sink_error() -> None:
    sink = FileSink("/dev/full")
    sink.send_all([(b"1", None, ())])
    for _ in range(2):
        with pytest.raises(SinkError, match="/dev/full"):
            sink.flush(1.0)
    sink.send(b"1" * (1 << 20))
    with pytest.raises(SinkFullError, match="/dev/full"):
        sink.send(b"2")  # its buffer is full, too
    with pytest.raises(OSError) as caught:  # noqa: PT011 - its code follows
        sink.close()
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_waited_for(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a line may be written before."""
    path, write, tries = tmp_path / "predictions.jsonl", os.write, itertools.count()

    def full(handle: int, data: bytes) -> int:
        number = next(tries) if Path(f"/proc/self/fd/{handle}").readlink() == path else 0
        if number == 1:
            return write(handle, data[:7])
        if 1 < number < 30:
            raise OSError(code, os.strerror(code))
        return write(handle, data)

    monkeypatch.setattr(json_lines, "BUFFER", 300)
    monkeypatch.setattr(json_lines, "WAIT_SECONDS", 0.001)
    log, sinks = MemoryLog(), {"predictions": BlockingSink(FileSink(path))}
    loop = make_loop(tmp_path / "models", ShuffledSource(3, 100), sinks=sinks, log=log)
    monkeypatch.setattr(os, "write", full)
    assert loop.run() == Exit.OK
    assert log.lines("output full")
    assert len(path.read_bytes().splitlines()) == loop.pipeline.counts.events == 300
    offsets = [json.loads(line)["headers"]["offset"] for line in path.read_bytes().splitlines()]
    assert sorted(map(int, offsets)) == sorted([*range(100)] * 3)


@pytest.mark.parametrize(
    ("error", "of_records"), [(SinkError("x"), False), (SinkRefusedError("x"), True)]
)
def test_records_are_blamed_for_what_was_refused_only(error: SinkError, of_records: bool) -> None:
    class Failing(Sent):
        def send(self, *_: Any, **__: Any) -> None:
            raise error

    log = MemoryLog()
    loop = make_loop(None, ShuffledSource(1, 9), sinks={"predictions": Failing()}, log=log)
    assert loop.run() == Exit.SOURCE
    reason = log.lines("stopped")[0]["reason"]
    assert ("--skip-to" in reason) == of_records


def test_a_disk_that_stays_full_stops_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "BUFFER", 300)
    log, sinks = MemoryLog(), {"predictions": BlockingSink(FileSink("/dev/full"))}
    source = ShuffledSource(3, 100)
    loop = make_loop(tmp_path, source, sinks=sinks, log=log, max_age_seconds=0.3)
    assert loop.run() == Exit.CHECKPOINT
    assert "/dev/full" in log.lines("output full")[0]["error"]


def test_frequent_messages_are_rate_limited_by_kind() -> None:
    log = Log("json", stream=io.StringIO())
    for _ in range(1000):
        log.rate_limited("invalid", "warning", "invalid record", reason="x")
        log.rate_limited("other", "warning", "another kind")
    assert isinstance(log.stream, io.StringIO)
    assert len(log.stream.getvalue().splitlines()) == 2


def test_log_line_escapes_its_fields() -> None:
    log = Log(stream=io.StringIO(), clock=lambda: 0.0)
    log.info("odd", a="two\nlines", b='"', c=float("nan"), d=None, e=["x"], f="", g="y" * 5000)
    log.debug("below the level")
    assert isinstance(log.stream, io.StringIO)
    (line,) = log.stream.getvalue().splitlines()
    assert line.startswith(
        '00:00:00 info     odd  a="two\\nlines" b="\\"" c=nan d=null e=["x"] f=""'
    )
    assert len(line) < 2200


def test_closed_log_stream_is_ignored() -> None:
    stream = io.StringIO()
    log = Log(stream=stream)
    stream.close()
    log.error("not written")


def test_threads_that_fail_are_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as a traceback between the lines of a log in JSON."""
    log = Log("json", stream=io.StringIO())
    before = threading.excepthook
    monkeypatch.setattr(threading, "excepthook", before)  # to be what it was afterwards
    assert log_failed_threads(log) is before
    thread = threading.Thread(target=[].pop, name="regret")
    thread.start()
    thread.join()
    assert isinstance(log.stream, io.StringIO)
    (line,) = [json.loads(line) for line in log.stream.getvalue().splitlines()]
    assert (line["level"], line["event"], line["name"]) == ("error", "thread failed", "regret")
    assert "IndexError" in line["stack"]


def test_library_messages_are_forwarded() -> None:
    log = Log("json", stream=io.StringIO())
    logger, forward = logging.getLogger("tests.client"), LibraryLogHandler(log)
    logger.propagate = False
    logger.addHandler(forward)
    logger.info("below the level")
    logger.warning("node %s is unreachable", 3)
    logger.error("%d", "not a number")
    logger.removeHandler(forward)
    assert isinstance(log.stream, io.StringIO)
    lines = [json.loads(line) for line in log.stream.getvalue().splitlines()]
    assert [(line["level"], line["text"]) for line in lines] == [
        ("warning", "node 3 is unreachable"),
        ("error", "%d"),
    ]
