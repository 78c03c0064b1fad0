"""Dead letters, sinks of JSON lines, and the log."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon.outputs.dead_letters import (
    DEFAULT_MAX_BYTES,
    DeadLetterPublisher,
    InvalidRecordLimit,
    record_overhead,
)
from streamlearn.daemon.process.log import LibraryLogHandler, Log
from streamlearn.errors import SinkError
from streamlearn.stream import Partition, Records
from streamlearn.stream.sinks.sink import FileSink, Sink

if TYPE_CHECKING:
    from pathlib import Path

PARTITION = Partition("clicks", 3)


class Sent(list[Any], Sink):
    """A sink that is a list."""

    def send(self, value: bytes | None, *, key: bytes | None = None, headers: Any = ()) -> None:
        self.append((value, key, headers))

    def flush(self, seconds: float) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""


def size(value: bytes | None, key: bytes | None, headers: Any) -> int:
    return len(value or b"") + record_overhead(key, headers)


def refused(
    value: bytes | None, key: bytes | None = None, headers: Any = (), reason: str = "bad"
) -> Any:
    records = Records(PARTITION, [17], [value], 18, [key], [1234], [list(headers)])
    sink = Sent()
    DeadLetterPublisher(sink, 5).send(records, [(0, "age", reason)])
    (sent,) = sink
    return sent


def test_a_dead_letter_is_the_record_and_what_is_known_of_it() -> None:
    value, key, headers = refused(b"\xff{", b"k", [("trace", b"1"), ("none", None)], "no JSON")
    assert (value, key) == (b"\xff{", b"k")
    assert headers[:2] == [("trace", b"1"), ("none", None)]
    told = dict(headers[2:])
    assert told.pop("streamlearn.time").isdigit()
    assert told == {
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
def test_what_is_too_large_is_cut_and_says_so(extra: int) -> None:
    raw = bytes(range(256)) * ((DEFAULT_MAX_BYTES + extra) // 256)
    value, key, headers = refused(raw, b"k" * 100, [("h", b"x" * 100)], "é" * 3000)
    assert size(value, key, headers) <= DEFAULT_MAX_BYTES
    told = dict(headers)
    if len(value) < len(raw):
        assert told["streamlearn.size"] == b"%d" % len(raw)
        assert told["streamlearn.sha256"] == hashlib.sha256(raw).hexdigest().encode()
    assert raw.startswith(value)
    assert len(value) > DEFAULT_MAX_BYTES - 20_000 + min(extra, 0)


def test_a_key_and_headers_that_are_too_large_are_dropped() -> None:
    value, key, headers = refused(
        b"x" * 100, b"k" * DEFAULT_MAX_BYTES, [("h", b"x" * DEFAULT_MAX_BYTES)]
    )
    assert (value, key) == (b"x" * 100, None)
    assert "streamlearn.dropped" in dict(headers)
    assert size(value, key, headers) <= DEFAULT_MAX_BYTES


def test_verdict_is_the_same_whatever_the_batches() -> None:
    bad = {i for i in range(5000) if (i * 7919) % 10 < (1 if i < 3000 else 4)}
    verdicts = set()
    for size in (1, 17, 100, 5000):
        tolerance, start, found = InvalidRecordLimit(0.2, 1000, 50), 0, None
        while found is None and start < 5000:
            batch = range(start, min(start + size, 5000))
            found = tolerance.add([i - start for i in batch if i in bad], len(batch))
            start = batch.stop if found is None else start
        verdicts.add(None if found is None else start + found)
    (verdict,) = verdicts
    assert verdict is not None
    assert 3000 < verdict < 4000


def test_lines_of_a_file_go_on_after_a_torn_one(tmp_path: Path) -> None:
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


def test_a_full_disk_is_said_as_a_sink_says_it() -> None:
    full = "'/dev/full' cannot be written to: No space left on device"
    sink = FileSink("/dev/full")
    sink.send(b"1")
    for _ in range(2):
        with pytest.raises(SinkError, match=full):
            sink.flush(1.0)
    with pytest.raises(SinkError, match=full):
        sink.send(b"1" * (1 << 20))  # its buffer is full too
    with pytest.raises(OSError, match="No space left"):
        sink.close()


def test_what_may_come_with_every_record_is_said_once_in_a_while() -> None:
    log = Log("json", stream=io.StringIO())
    for _ in range(1000):
        log.rate_limited("bad", "warning", "bad event", reason="x")
        log.rate_limited("other", "warning", "another kind")
    assert isinstance(log.stream, io.StringIO)
    assert len(log.stream.getvalue().splitlines()) == 2


def test_a_line_is_a_line_whatever_is_in_it() -> None:
    log = Log(stream=io.StringIO(), clock=lambda: 0.0)
    log.info("odd", a="two\nlines", b='"', c=float("nan"), d=None, e=["x"], f="", g="y" * 5000)
    log.debug("not said")
    assert isinstance(log.stream, io.StringIO)
    (line,) = log.stream.getvalue().splitlines()
    assert line.startswith(
        '00:00:00 info     odd  a="two\\nlines" b="\\"" c=nan d=null e=["x"] f=""'
    )
    assert len(line) < 2200


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    stream = io.StringIO()
    log = Log(stream=stream)
    stream.close()
    log.error("not heard")


def test_what_libraries_say_is_said() -> None:
    log = Log("json", stream=io.StringIO())
    logger, forward = logging.getLogger("tests.client"), LibraryLogHandler(log)
    logger.propagate = False
    logger.addHandler(forward)
    logger.info("much")
    logger.warning("node %s is away", 3)
    logger.error("%d", "does not fit")
    logger.removeHandler(forward)
    assert isinstance(log.stream, io.StringIO)
    said = [json.loads(line) for line in log.stream.getvalue().splitlines()]
    assert [(line["level"], line["said"]) for line in said] == [
        ("warning", "node 3 is away"),
        ("error", "%d"),
    ]
