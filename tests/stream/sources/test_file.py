"""Files and standard input as sources: every line once, from any position, whatever happens."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import itertools
import lzma
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamlearn import config
from streamlearn.daemon import build
from streamlearn.errors import (
    InvalidEventError,
    SourceChangedError,
    SourceDeniedError,
    SourceError,
    SourceNotFoundError,
)
from streamlearn.features import Names
from streamlearn.stream import Fields, Files, Partition, StandardInput, decoder_of
from streamlearn.stream.formats.csv import SAMPLE, split_row
from streamlearn.stream.sources import file as file_module
from streamlearn.stream.sources import file_inventory, rotation
from streamlearn.stream.sources.file_inventory import expanded, unreadable
from streamlearn.stream.sources.lines import Lines
from streamlearn.stream.sources.prefetch import decoded_batches
from tests.support import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EXAMPLES = settings(derandomize=True, max_examples=50, deadline=None, database=None)


def drained(source: Any, most: int = 10**9) -> list[tuple[Partition, int, bytes | None]]:
    """All records of a source, or so many polls of it."""
    found: list[tuple[Partition, int, bytes | None]] = []
    while not source.ended() and most:
        most -= 1
        for records in source.poll(0.0):
            assert len(records.offsets) == len(records.values) > 0
            assert list(records.offsets) == sorted(set(records.offsets))
            assert records.offsets[-1] < records.end
            found += [
                (records.partition, at, value)
                for at, value in zip(records.offsets, records.values, strict=True)
            ]
    return found


OPENED: list[Any] = []


def opened(source: Any, positions: Any = None, identity: Any = None) -> Any:
    OPENED.append(source)
    source.open(positions or {}, identity)
    return source


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


MARK = codecs.BOM_UTF8


def piped(text: bytes) -> StandardInput:
    """Standard input that brings this."""
    ours, theirs = os.pipe()
    os.write(theirs, text)
    os.close(theirs)
    return StandardInput(descriptor=ours)


def in_blocks(
    text: bytes, size: int, most: int, *, first: int = 0, delimiter: str = ","
) -> tuple[list[tuple[int, bytes]], list[int]]:
    """The rows of a text that comes in blocks of this size, and what each take gave."""
    lines, come = Lines("x", first=first, delimiter=delimiter), io.BytesIO(text)
    found: list[tuple[int, bytes]] = []
    counts: list[int] = []
    while True:
        while not lines.waiting and lines.fill(lambda room: come.readinto(room[:size]), size):
            pass
        if not lines.waiting:
            lines.finish()
            if not lines.waiting:
                return found, counts
        offsets, values, end = lines.take(most)
        found += zip(offsets, values, strict=True)
        counts += [len(offsets)] if offsets else []
        assert all(at < end for at in offsets)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 64])
@pytest.mark.parametrize("text", ["", "a", "ab", "a\n", "a\nb\n"])
def test_the_encoding_is_recognized_however_the_text_comes(text: str, size: int) -> None:
    plain, _ = in_blocks(text.encode(), size, 9)
    marked, _ = in_blocks(MARK + text.encode(), size, 9)
    assert marked == [(at + len(MARK), value) for at, value in plain]
    for mark, form in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        whole = mark + text.encode(form)
        if text:
            with pytest.raises(SourceError, match="UTF-16"):
                in_blocks(whole, size, 9)
        with pytest.raises(SourceError, match="UTF-16"):
            in_blocks(mark + b"\n", size, 9)


cell = st.text('a1,;"\n\r é', max_size=6)
sizes = st.sampled_from([1, 2, 3, 7, 1 << 16])


@EXAMPLES
@given(
    st.lists(st.lists(cell, min_size=2, max_size=2), max_size=12),
    st.sampled_from([",", ";", "é"]),
    sizes,
    st.integers(1, 4),
)
def test_rows_of_csv_with_line_breaks_in_quotes(
    rows: list[list[str]], delimiter: str, size: int, most: int
) -> None:
    out = io.StringIO()
    # Python before 3.13 quotes no \r of its own accord
    quoted = any("\r" in value for row in rows for value in row)
    writer = csv.writer(
        out,
        delimiter=delimiter,
        lineterminator="\n",
        quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
    )
    writer.writerows(rows)
    text = out.getvalue().encode()
    for whole in (text, text[:-1]):
        found, _ = in_blocks(whole, size, most, delimiter=delimiter)
        assert [split_row(value, delimiter) for _, value in found] == rows
        for at, value in found:
            assert whole[at : at + len(value)] == value
            again, _ = in_blocks(whole[at:], size, most, delimiter=delimiter)
            assert again[0] == (0, value)


@EXAMPLES
@given(
    st.text('a,"\n\ré', max_size=40).map(str.encode),
    st.sampled_from([",", "é"]),
    sizes,
    st.integers(1, 4),
    st.integers(0, 5),
)
@example(b'"a\nb"c', "é", 1, 1, 0)
def test_lines_do_not_depend_on_how_bytes_arrive(
    text: bytes, delimiter: str, size: int, most: int, first: int
) -> None:
    whole, _ = in_blocks(text, 1 << 16, 1 << 16, delimiter=delimiter)
    found, counts = in_blocks(text, size, most, first=first, delimiter=delimiter)
    assert found == whole
    assert not counts or counts[0] >= min(first, len(whole))
    for i, (at, value) in enumerate(whole):
        assert text[at : at + len(value)] == value
        again, _ = in_blocks(text[at:], size, most, delimiter=delimiter)
        assert [(at + later, other) for later, other in again] == whole[i:]
        if b"\n" in value and b"\r" not in value:  # only what is a row
            assert split_row(value, delimiter)


def test_a_row_with_an_open_quote_ends_with_its_line() -> None:
    text = b'x,"5 inch\n' + 200_000 * b"1,2,3,4\n" + b'3,"a\nb"\n"a"b\n5"\n,"'
    for size in (1 << 10, 1 << 16, 1 << 22):
        found, _ = in_blocks(text, size, 1 << 20)
        assert len(found) == 200_005
        ends = [b'x,"5 inch', b'3,"a\nb"', b'"a"b', b'5"', b',"']
        assert [value for _, value in found if value != b"1,2,3,4"] == ends
    for value in ends:
        if value in {b'3,"a\nb"', b'5"'}:
            assert split_row(value, ",")
            continue
        with pytest.raises(InvalidEventError):
            split_row(value, ",")
    for value in (b"1\n2,3", b'1\r2,"3"', b'1\n2,"3"'):
        with pytest.raises(InvalidEventError):
            split_row(value, ",")


@pytest.mark.parametrize("batch", [1, 10, 2000])
@pytest.mark.parametrize("kind", ["plain", "gz", "follow", "pipe"])
def test_types_are_inferred_from_the_same_lines(
    kind: str, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"a,b\n" + 900 * b"1,2\n" + b'1,"x\ny"\n' + 2000 * b"1,2\n"
    name = "x.csv.gz" if kind == "gz" else "x.csv"
    (tmp_path / name).write_bytes(gzip.compress(text) if kind == "gz" else text)
    monkeypatch.setattr(file_module, "BLOCK", 100)
    table = config.FormatConfig(kind="csv", label=None)
    if kind == "pipe":
        ours, theirs = os.pipe()
        os.write(theirs, text)
        os.close(theirs)
        source: Any = build.source(config.StdinSourceConfig(batch=batch), table, sample=SAMPLE)
        source._descriptor = ours
    else:
        paths = (str(tmp_path / name),)
        own = config.FileSourceConfig(paths=paths, batch=batch, follow=kind == "follow")
        source = build.source(own, table, sample=SAMPLE)
    decoder: Any = decoder_of("csv", Names(), Fields(label=None), grow_always=True)
    rows = 0
    for found in decoded_batches(source, decoder, 0.0):
        if found is None:
            break
        rows += len(found[1])
        assert found[1].invalid == []
    source.close()
    assert decoder.types == {"a": "numbers", "b": "text"}
    assert rows == 2901


def test_files_wait_for_lines_to_infer_types_from(tmp_path: Path) -> None:
    path, reports = tmp_path / "x.log", list[str]()
    path.write_bytes(b"one\n\ntwo\n")
    where, second = Partition(str(path)), Partition(str(path), 1)
    source = opened(Files([path], follow=True, batch=1, first=4, report=reports.append))
    assert source.poll(0.0) == []
    assert source.poll(0.0) == []
    [report] = reports
    assert "x.log: it has 2 of the 4 lines" in report
    assert source.bytes_left() == {where: 9}
    with path.open("ab") as file:
        file.write(b"three\nfo")
    assert source.poll(0.0) == []
    path.rename(tmp_path / "x.log.1")  # its lines are given, and the other file's are waited for
    path.write_bytes(b"one\n")
    [records] = source.poll(0.0)
    assert (records.partition, records.values) == (where, [b"one", b"two", b"three", b"fo"])
    [records] = source.poll(0.0)
    assert (records.partition, records.values) == (second, [b"one"])
    # what is gone on with was guessed
    source = opened(Files([tmp_path / "x.log.1"], batch=1, first=4))
    [records] = source.poll(0.0)
    assert len(records.values) == 4
    source = opened(Files([path], follow=True, batch=1, first=4), {second: 0, where: 15})
    [records] = source.poll(0.0)
    assert records.values == [b"one"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json", b'{"a":0.5,"label":1}\n'),
        ("svmlight", b"1 3:0.5\n"),
        ("vw", b"1 | a:0.5\n"),
        ("csv", b"a,label\n0.5,1\n"),
    ],
)
def test_a_byte_order_mark_is_skipped(
    kind: str, text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, compressed = tmp_path / "x", tmp_path / "x.gz"
    plain.write_bytes(MARK + text)
    compressed.write_bytes(gzip.compress(MARK + text))
    for block in (1, 2, 1 << 19):
        monkeypatch.setattr(file_module, "BLOCK", block)
        for source in (Files([plain]), Files([compressed]), piped(MARK + text)):
            decoder = decoder_of(kind, Names())
            events = [
                (events.row_of(i)[0][1], events.label_of(i), events.invalid)
                for found in decoded_batches(source, decoder, 0.0)
                if found is not None
                for events in found[1:]
                for i in range(len(events))
            ]
            assert events == [(0.5, 1, [])]
            source.close()


def test_a_byte_order_mark_is_skipped_only_at_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "x"
    where = Partition(str(path))
    path.write_bytes(MARK + b"\n" + MARK + b"a\n\xef\xbbb")
    found = drained(opened(Files([path], batch=1)))
    assert found == [(where, 4, MARK + b"a"), (where, 9, b"\xef\xbbb")]
    assert drained(opened(Files([path]), {where: 4})) == found
    path.write_bytes(MARK)
    assert drained(opened(Files([path]))) == []
    path.write_bytes(b"\xef\xbb")
    assert drained(opened(Files([path]))) == [(where, 0, b"\xef\xbb")]


@EXAMPLES
@given(st.lists(st.binary(max_size=5), max_size=20), st.integers(1, 7), st.integers(1, 9))
def test_every_line_once_from_any_position(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], batch: int, block: int
) -> None:
    text = b"\n".join(pieces)
    path = tmp_path_factory.mktemp("files") / "x.txt"
    path.write_bytes(text)
    compressed = path.with_suffix(".gz")
    compressed.write_bytes(gzip.compress(text))
    kept, file_module.BLOCK = file_module.BLOCK, block
    try:
        for one in (path, compressed):
            found = drained(opened(Files([one], batch=batch)))
            lines = [line for line in text.split(b"\n") if line.strip(b" \t\r")]
            assert [value for _, _, value in found] == lines
            for k, (where, at, value) in enumerate(found):
                assert text[at : at + len(value or b"")] == value
                assert drained(opened(Files([one], batch=batch), {where: at})) == found[k:]
    finally:
        file_module.BLOCK = kept
        while OPENED:
            OPENED.pop().close()


def test_several_files_and_globs_in_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.log"):
        (tmp_path / name).write_bytes(f"{name} 1\n\n{name} 2".encode())
    source = opened(Files([tmp_path / "c.log", f"{tmp_path}/*.txt"]))
    found = drained(source)
    assert [value for _, _, value in found] == [
        f"{name} {k}".encode() for name in ("c.log", "a.txt", "b.txt") for k in (1, 2)
    ]
    where, at, _ = found[3]
    assert source.line_number(where, at) == 3
    done = {Partition(str(tmp_path / "c.log")): 16, Partition(str(tmp_path / "a.txt")): 9}
    assert drained(opened(Files([tmp_path / "c.log", f"{tmp_path}/*.txt"]), done)) == found[3:]
    assert opened(Files([tmp_path / "a.txt"])).bytes_left() == {
        Partition(str(tmp_path / "a.txt")): 16
    }


def test_a_file_is_read_once_whatever_its_names(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("one\n")
    (tmp_path / "a-link.jsonl").symlink_to("a.jsonl")
    (tmp_path / "b.jsonl").write_text("two\n")
    name = str(tmp_path / "a.jsonl")
    several = [f"{tmp_path}/./a.jsonl", name, f"{tmp_path}/*.jsonl"]
    assert expanded(several) == [several[0], str(tmp_path / "b.jsonl")]
    assert expanded([f"{tmp_path}/a-link.jsonl", name]) == [name]
    assert expanded([f"{tmp_path}/a-link.jsonl"]) == [f"{tmp_path}/a-link.jsonl"]


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    with pytest.raises(SourceNotFoundError, match=r"x\.txt"):
        opened(Files([path]))
    with pytest.raises(SourceNotFoundError, match=r"\*\.txt"):
        opened(Files([f"{tmp_path}/*.txt"]))
    path.with_suffix(".gz").write_bytes(gzip.compress(b"1"))
    with pytest.raises(SourceError, match=r"x\.gz"):
        opened(Files([path.with_suffix(".gz")], follow=True))
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(bytes(100_000))[:50])
    with pytest.raises(SourceError, match=r"broken\.gz"):
        drained(opened(Files([broken])))
    broken.write_bytes(b"no gzip")
    with pytest.raises(SourceError, match=r"broken\.gz"):
        drained(opened(Files([broken])))


def test_a_replaced_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"one\ntwo\nthree\n")
    source = opened(Files([path], batch=2))
    [records] = source.poll(0.0)
    positions, identity = {records.partition: records.end}, source.identity()
    path.write_bytes(b"one\ntwo\nthree\nfour\n")  # it grew
    more = drained(opened(Files([path]), positions, identity))
    assert [value for _, _, value in more] == [b"three", b"four"]
    path.write_bytes(b"one\n")
    with pytest.raises(SourceChangedError, match=r"x\.txt"):
        opened(Files([path]), positions, identity)
    path.write_bytes(b"eins\nzwei\ndrei\nvier\n")
    with pytest.raises(SourceChangedError, match=r"x\.txt"):
        opened(Files([path]), positions, identity)
    path.write_bytes(b"one\n")
    with pytest.raises(SourceChangedError, match=r"x\.txt"):
        opened(Files([path]), positions, None)
    compressed = path.with_suffix(".gz")
    compressed.write_bytes(gzip.compress(b"one\n"))
    with pytest.raises(SourceChangedError, match=r"x\.gz"):
        drained(
            opened(Files([compressed]), {Partition(str(compressed)): positions[records.partition]})
        )


def test_a_followed_file_grows_is_rotated_and_truncated(tmp_path: Path) -> None:
    path, reports = tmp_path / "x.log", list[str]()
    path.write_bytes(b"one\ntw")
    source = opened(Files([path], follow=True, report=reports.append))

    def more() -> list[bytes | None]:
        return [value for _, _, value in drained(source, 1)]

    assert more() == [b"one"]
    assert more() == []
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert more() == [b"two", b"three"]
    with path.open("ab") as file:
        file.write(b"last\n")
    path.rename(tmp_path / "x.log.1")
    assert more() == [b"last"]
    assert more() == []
    path.write_bytes(b"new\n")
    [records] = source.poll(0.0)
    assert (records.partition, records.values) == (Partition(str(path), 1), [b"new"])
    assert len(reports) == 1
    assert "rotated" in reports[0]
    os.truncate(path, 0)
    assert more() == []
    with path.open("ab") as file:
        file.write(b"x\n")
    assert more() == [b"x"]
    assert "truncated" in reports[1]
    where = Partition(str(path), 2)
    again = opened(Files([path], follow=True), {where: 2}, source.identity())
    assert drained(again, 1) == []
    assert not source.ended()
    source.close()
    source.close()


@pytest.mark.parametrize("way", ["renamed", "copied"])
@pytest.mark.parametrize("name", ["x.log.1", "x-20261119.log"])
def test_a_file_that_was_rotated_while_not_read(way: str, name: str, tmp_path: Path) -> None:
    path, rest, reports = tmp_path / "x.log", tmp_path / name, list[str]()
    (tmp_path / "x.log.2").write_bytes(b"older\n")
    os.utime(tmp_path / "x.log.2", (1e9, 1e9))
    path.write_bytes(b"one\ntwo\n")
    source = opened(Files([path], follow=True, batch=1))
    [records] = source.poll(0.0)
    kept, identity = {records.partition: records.end}, source.identity()
    with path.open("ab") as file:
        file.write(b"three\n")
    if way == "renamed":
        path.rename(rest)
    else:
        rest.write_bytes(path.read_bytes())
    path.write_bytes(b"new\n")
    os.utime(rest, (2e9, 2e9))
    for _ in range(2):  # it may end again before anything was read
        again = opened(Files([path], follow=True, report=reports.append), kept, identity)
        assert again.bytes_left() == {Partition(str(path)): len(b"two\nthree\nnew\n")}
        identity = again.identity()
    assert "x.log was rotated" in reports[0]
    found = drained(again, 1)
    assert [value for _, _, value in found] == [b"two", b"three"]
    [records] = again.poll(0.0)
    assert (records.partition, records.values) == (Partition(str(path), 1), [b"new"])
    at_end = {Partition(str(path)): 14, records.partition: records.end}
    assert drained(opened(Files([path], follow=True), at_end, again.identity()), 1) == []
    # what came later may have been between the two; and who reads only once has read another file
    (tmp_path / "x.log.0").write_bytes(b"between?\n")
    os.utime(tmp_path / "x.log.0", (3e9, 3e9))
    with pytest.raises(SourceChangedError, match=r"x\.log\.0 came later"):
        opened(Files([path], follow=True), kept, identity)
    (tmp_path / "x.log.0").unlink()
    with pytest.raises(SourceChangedError, match=r"x\.log"):
        opened(Files([path]), kept, identity)
    rest.rename(tmp_path / "elsewhere")
    with pytest.raises(SourceChangedError, match=r"x\.log"):
        opened(Files([path], follow=True), kept, identity)


def test_where_lines_begin(tmp_path: Path) -> None:
    path, compressed = tmp_path / "x.txt", tmp_path / "x.txt.GZ"
    path.write_bytes(MARK + b"one\ntwo")
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    for name in (path, compressed):
        source = opened(Files([name]))
        found = [at for at in range(11) if source.begins_line(Partition(str(name)), at)]
        assert found == [0, 3, 7, 10]


class Log:
    """A file that is followed, and what becomes of it."""

    def __init__(self, path: Path, start: bytes) -> None:
        self.path, self.reports = path, list[str]()
        path.write_bytes(start)
        self.source = opened(Files([path], follow=True, batch=2, report=self.reports.append))
        self.at: dict[Partition, int] = {}
        self.identity: dict[str, str] = {}

    def write(self, text: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(text)

    def rotate(self, name: str, way: str = "renamed") -> None:
        """What was written is in a file of this name, and the log is empty."""
        rest = self.path.with_name(name)
        if way == "renamed":
            self.path.rename(rest)
            self.path.touch()
        else:
            rest.write_bytes(self.path.read_bytes())
            os.truncate(self.path, 0)

    def more(self) -> list[tuple[int, bytes | None]]:
        """What comes, and of which of the path's partitions."""
        found: list[tuple[int, bytes | None]] = []
        for records in itertools.chain.from_iterable(self.source.poll(0.0) for _ in range(9)):
            self.at[records.partition] = records.end
            found += [(records.partition.number, value) for value in records.values]
        return found

    def restart(self) -> None:
        self.identity |= self.source.identity()
        self.source = Files([self.path], follow=True, batch=2, report=self.reports.append)
        opened(self.source, self.at, self.identity)


@pytest.mark.parametrize("way", ["renamed", "copied"])
@pytest.mark.parametrize("down", [True, False])
@pytest.mark.parametrize("start", [b"", b"a,b\n"])
def test_rotated_files_with_the_same_first_bytes(
    start: bytes, way: str, tmp_path: Path, *, down: bool
) -> None:
    log, header = Log(tmp_path / "x.csv", start), start.splitlines()
    assert log.more() == [(0, line) for line in header]
    log.write(b"1,1\n2,2\n")
    assert log.more() == [(0, b"1,1"), (0, b"2,2")]
    log.write(b"3,3\n")
    log.rotate("x.csv.1", way)
    log.write(start + b"4,4\n5,5\n6,6\n7,7\n")
    if down:
        log.restart()
    rest = [*header, b"4,4", b"5,5", b"6,6", b"7,7"]
    assert log.more() == [(0, b"3,3"), *((1, line) for line in rest)]


def test_only_the_common_first_bytes_were_read(tmp_path: Path) -> None:
    log = Log(tmp_path / "x.csv", b"a,b\n")
    (tmp_path / "x.csv.2").write_bytes(b"a,b\n0,0\n")
    os.utime(tmp_path / "x.csv.2", (1e9, 1e9))
    assert log.more() == [(0, b"a,b")]
    log.write(b"1,1\n")
    log.rotate("x.csv.1")
    (tmp_path / "x.csv.before").symlink_to("x.csv.1")
    log.write(b"a,b\n2,2\n3,3\n")
    assert sum(log.source.bytes_left().values()) == 16  # the rest of the one, and all of the other
    log.restart()
    assert log.more() == [(0, b"1,1"), (1, b"a,b"), (1, b"2,2"), (1, b"3,3")]


def test_a_file_rotated_twice_between_polls(tmp_path: Path) -> None:
    log = Log(tmp_path / "x.log", b"one\n")
    assert log.more() == [(0, b"one")]
    log.rotate("x.log.2")
    log.write(b"two\n")
    log.rotate("x.log.1")
    os.utime(tmp_path / "x.log.2", (1e9, 1e9))
    (tmp_path / "x-errors.log").write_bytes(b"of something else\n")
    log.write(b"three\n")
    with pytest.raises(SourceChangedError, match=r"x\.log\.2.* x\.log\.1 came later"):
        log.more()
    with pytest.raises(SourceChangedError, match=r"x\.log\.2.* x\.log\.1 came later"):
        log.restart()
    (tmp_path / "x.log.1").write_bytes(b"")  # nothing was between
    log.restart()
    assert log.more() == [(1, b"three")]


def test_lines_written_after_the_rotation(tmp_path: Path) -> None:
    log = Log(tmp_path / "x.log", b"one\n")
    with log.path.open("ab", buffering=0) as writer:
        assert log.more() == [(0, b"one")]
        log.rotate("x.log.1")
        assert log.more() == []
        writer.write(b"two\nthree")  # it has not seen it yet
    assert log.more() == [(0, b"two")]
    log.write(b"four\n")
    assert log.more() == [(0, b"three"), (1, b"four")]


def test_a_followed_file_that_is_rotated_while_others_are_read(tmp_path: Path) -> None:
    first, last = tmp_path / "x.log.1", tmp_path / "x.log"
    first.write_bytes(b"one\n")
    last.write_bytes(b"two\n")
    source = opened(Files([first, last], follow=True))
    assert [value for _, _, value in drained(source, 1)] == [b"one"]
    first.rename(tmp_path / "x.log.2")
    last.rename(first)
    last.write_bytes(b"three\n")
    assert [value for _, _, value in drained(source, 2)] == [b"two", b"three"]


def test_a_rotated_file_that_becomes_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path / "x.log", b"one\n")
    assert log.more() == [(0, b"one")]
    log.rotate("x.log.1")
    log.write(b"two\n")

    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr(file_inventory, "Fingerprint", refused)
        with pytest.raises(SourceDeniedError, match=r"x\.log"):
            log.more()
    assert log.more() == [(1, b"two")]


def test_unrelated_siblings_of_a_followed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cannot be the one that was read; nor can what is gone when it is looked at."""
    path = tmp_path / "x.log"
    path.write_bytes(b"one\n")
    source = opened(Files([path], follow=True))
    [records] = source.poll(0.0)
    kept, identity = {records.partition: records.end}, source.identity()
    path.rename(tmp_path / "x.log.1")
    path.write_bytes(b"new\n")
    (tmp_path / "x.log.2").write_bytes(b"secret\n")
    os.utime(tmp_path / "x.log.2", (1e9, 1e9))
    (tmp_path / "x.log.3").symlink_to(tmp_path / "nowhere")
    whole = rotation.Fingerprint.__init__

    def theirs(self: rotation.Fingerprint, path: str, length: int = rotation.HEAD) -> None:
        if path.endswith(".2"):
            raise PermissionError(13, "Permission denied", path)
        whole(self, path, length)

    monkeypatch.setattr(rotation.Fingerprint, "__init__", theirs)
    again = opened(Files([path], follow=True), kept, identity)
    [records] = again.poll(0.0)
    assert (records.partition, records.values) == (Partition(str(path), 1), [b"new"])


def test_standard_input_is_read_once() -> None:
    ours, theirs = os.pipe()
    source = opened(StandardInput(batch=2, descriptor=ours))
    assert source.poll(0.0) == []
    assert source.lag() == {}  # so that a silent pipe is ready
    os.write(theirs, b"one\ntwo\nthr")
    [records] = source.poll(1.0)
    assert (records.offsets, records.values, records.end) == ([0, 4], [b"one", b"two"], 8)
    assert source.poll(0.0) == []
    os.write(theirs, b"ee\nfour")
    assert [value for _, _, value in drained(source, 1)] == [b"three"]
    os.close(theirs)
    assert [value for _, _, value in drained(source)] == [b"four"]
    assert source.ended()
    assert source.lag() == {records.partition: 0}
    os.close(ours)
    with pytest.raises(SourceError, match="standard input"):
        opened(StandardInput(), {records.partition: 8}, source.identity())


def test_standard_input_waits_for_lines_to_infer_types_from() -> None:
    ours, theirs = os.pipe()
    source = opened(StandardInput(batch=2, first=3, descriptor=ours))
    for block in (b"a\nb\n", b"c"):
        os.write(theirs, block)
        assert source.poll(0.1) == []
        assert not source.ended()
    os.write(theirs, b"\nd\ne\nf\n")
    assert [records.values for records in source.poll(0.1)] == [[b"a", b"b", b"c"]]
    assert [records.values for records in source.poll(0.1)] == [[b"d", b"e"]]
    os.close(theirs)
    assert [value for _, _, value in drained(source)] == [b"f"]
    os.close(ours)
    ours, theirs = os.pipe()
    source = opened(StandardInput(first=30, descriptor=ours))
    os.write(theirs, b"a\nb")
    os.close(theirs)
    assert [value for _, _, value in drained(source)] == [b"a", b"b"]
    assert source.ended()
    os.close(ours)


def test_zstandard(tmp_path: Path) -> None:
    path = tmp_path / "x.zst"
    path.write_bytes(zstandard.compress(b"one\ntwo\n"))
    assert [value for _, _, value in drained(opened(Files([path])))] == [b"one", b"two"]
    assert drained(opened(Files([path]), {Partition(str(path)): 4}))[0][1:] == (4, b"two")


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_truncated_compressed_file_is_an_error(kind: str, tmp_path: Path) -> None:
    whole = b"".join(b"%d\n" % i for i in range(20_000))
    compress = gzip.compress if kind == "gz" else zstandard.compress
    data = compress(whole)
    path = tmp_path / f"x.{kind}"
    for end in (1, 5, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data + data[:end])
        with pytest.raises(SourceError, match="x"):
            drained(opened(Files([path])))
    path.write_bytes(data + data)
    assert len(drained(opened(Files([path])))) == 40_000


def test_a_named_pipe_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    lines = [b"%d" % i for i in range(3000)]
    writer = threading.Thread(target=path.write_bytes, args=(b"\n".join(lines),))
    writer.start()
    source = opened(Files([path]))
    assert [value for _, _, value in drained(source)] == lines
    writer.join()


def test_unreadable_files_have_their_own_errors(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError):
        opened(Files([tmp_path / "none"]))
    with pytest.raises(SourceNotFoundError):
        opened(Files([tmp_path / "*.txt"]))
    assert type(unreadable("x", PermissionError(13, "Permission denied"))) is SourceDeniedError
    assert type(unreadable("x", IsADirectoryError(21, "Is a directory"))) is SourceError


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("a,y\n1,2\n".encode("utf-16"), "iconv"),
        (codecs.BOM_UTF16_BE + "a,y\n".encode("utf-16-be"), "iconv"),
        (gzip.compress(b"a,y\n1,2\n"), r"\.gz"),
        (bz2.compress(b"a,y\n1,2\n"), r"bzip2.*\.zst"),
        (lzma.compress(b"a,y\n1,2\n"), r"xz.*\.zst"),
    ],
    ids=["little", "big", "gzip", "bzip2", "xz"],
)
def test_other_encodings_are_refused(
    text: bytes, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(text)
    for block in (1, 1 << 19):
        monkeypatch.setattr(file_module, "BLOCK", block)
        with pytest.raises(SourceError, match=f"x.csv .*{remedy}"):
            drained(opened(Files([path])))
    with pytest.raises(SourceError, match=f"standard input .*{remedy}"):
        drained(piped(text))


def test_a_line_that_may_go_on_is_no_lag(tmp_path: Path) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in paths:
        path.write_bytes(b"one\ntw")
    partitions = [Partition(str(path)) for path in paths]
    source = opened(Files([f"{tmp_path}/*.txt"], follow=True))
    while source.poll(0.0):
        pass
    assert source.lag() == dict.fromkeys(partitions, 0)
    assert source.bytes_left() == dict.fromkeys(partitions, 2)
    with paths[0].open("ab") as file:
        file.write(b"o\n3")
    assert source.lag() == dict(zip(partitions, [2, 0], strict=True))  # 5 bytes, of 4 a line
    while not source.poll(0.1):  # the growth is found by a search now and then
        pass
    assert source.lag() == dict.fromkeys(partitions, 0)


def test_lag_of_files(tmp_path: Path) -> None:
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_bytes(b"one\ntwo\nthirteen\n14\n")
    other.write_bytes(b"1")
    paths = Partition(str(path)), Partition(str(other))
    source = opened(Files([path, other], batch=1))
    lags, left = [source.lag()], [source.bytes_left()]
    while source.poll(0.0):
        lags.append(source.lag())
        left.append(source.bytes_left())
    assert [one[paths[0]] for one in left] == [20, 16, 12, 3, 0, 0]
    # 16 bytes of lines of 4, 12 of 4, 3 of 17 / 3: a line that has begun counts
    assert [one[paths[0]] for one in lags] == [None, 4, 3, 1, 0, 0]
    assert [one[paths[1]] for one in lags] == [None, 1, 1, 1, 1, 0]
    other.unlink()
    where, source = paths[0], opened(Files([path], batch=1))
    source.poll(0.0)
    path.write_bytes(b"")  # cut behind its end
    assert source.lag() == {where: 0}
    assert source.lost() == {}
    source.close()


def test_candidates_for_a_rotated_file(tmp_path: Path) -> None:
    """Those that begin alike, by name and by content, and are as long as what was read."""
    read = tmp_path / "x.log"
    read.write_bytes(b"one\n")
    kept = rotation.Fingerprint(str(read)).text
    read.unlink()
    for name, text in {
        "x.log.1": b"one\ntwo\n",  # all that was read, and no more
        "x.log.2": b"one\ntwo\nthree\n",
        "x.log.3": b"one\ntw",
        "x.log.4": b"two\none\n",
        "x.log.5.gz": b"one\ntwo\n",  # a compressed one is not read on
        "y.log": b"one\ntwo\n",
        "x.log": b"one\ntwo\n",  # the name itself is another file's now
    }.items():
        (tmp_path / name).write_bytes(text)
    kept = f"0:{kept.partition(':')[2]}"  # of a place where none of them lies
    found = rotation.candidates(str(read), kept, 8)
    assert sorted(one.name for one in found) == ["x.log.1", "x.log.2"]
    place = (tmp_path / "x.log.2").stat().st_ino
    found = rotation.candidates(str(read), f"{place}:{kept.partition(':')[2]}", 8)
    assert [one.name for one in found] == ["x.log.2"]


@pytest.mark.parametrize("down", [True, False])
def test_a_truncated_file_with_two_copies_is_refused(tmp_path: Path, *, down: bool) -> None:
    """Which of them has what was not read cannot be told."""
    log = Log(tmp_path / "x.log", b"one\n")
    assert log.more() == [(0, b"one")]
    log.write(b"two\n")
    (tmp_path / "x.log.1").write_bytes(log.path.read_bytes())
    log.rotate("x.log.2", "copied")
    with pytest.raises(SourceChangedError, match=r"x\.log"):
        log.restart() if down else log.more()
    (tmp_path / "x.log.1").unlink()
    log.restart()
    assert log.more() == [(0, b"two")]
