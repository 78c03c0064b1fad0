"""Stretches of files: together they have each record once, and none is cut."""

from __future__ import annotations

import csv
import gzip
import io
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from streamlearn.errors import SourceError
from streamlearn.stream import Files
from streamlearn.stream.sources import stretch
from streamlearn.stream.sources.record_files import RecordFiles, opener_of
from streamlearn.stream.sources.stretch import StretchSource, cut_of, stretches

if TYPE_CHECKING:
    from pathlib import Path

    from streamlearn.stream import Source

DRAW = random.Random(3)


@pytest.fixture(autouse=True)
def _small_files_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretch, "SMALLEST", 1)


def text_lines(count: int) -> list[bytes]:
    return [b"%d:" % i + b"x" * DRAW.randrange(40) for i in range(count)]


def quoted_rows(count: int) -> list[bytes]:
    rows = []
    for i in range(count):
        out = io.StringIO()
        value = DRAW.choice(["", 'a "quote"', "two\nlines", "\n\n", "plain, and more"])
        csv.writer(out).writerow([i, value])
        rows.append(out.getvalue().removesuffix("\r\n").encode())
    return rows


def write_rows(path: Path, kind: str, rows: list[bytes]) -> None:
    if kind == "parquet":
        table = pa.table({"row": [row.decode() for row in rows]})
        parquet.write_table(table, path, row_group_size=7)
    else:
        data = b"".join(row + b"\n" for row in rows)
        # the last line of a file may have no end
        data = data[: len(data) - (path.stem == "b")]
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def source_of(kind: str, paths: tuple[str, ...]) -> Source:
    opener = opener_of(kind)
    if opener is not None:
        return RecordFiles(paths, opener, batch=5)
    return Files(paths, batch=5, delimiter="," if kind == "csv" else None)


def read(kind: str, part: stretch.FileStretch) -> list[bytes]:
    source = StretchSource(source_of(kind, part.paths), part)
    source.open({}, None)
    found = []
    while not source.ended():
        found += [value for one in source.poll(0.0) for value in one.values if value is not None]
    source.close()
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
@pytest.mark.parametrize("sizes", [(50,), (90, 3, 20), (1, 1, 200), (4, 4, 4)])
def test_every_record_is_in_one_stretch(
    tmp_path: Path, kind: str, sizes: tuple[int, ...], count: int
) -> None:
    make = quoted_rows if kind == "csv" else text_lines
    paths, expected = [], []
    for name, size in zip("abc", sizes, strict=False):
        paths.append(tmp_path / f"{name}.{kind}")
        write_rows(paths[-1], kind, rows := make(size))
        expected += rows
    parts = stretches([str(path) for path in paths], count, cut_of(kind))
    assert 1 <= len(parts) <= max(count, len(paths))
    found = [row for part in parts for row in read(kind, part)]
    if kind == "parquet":
        assert sorted(found) == sorted(b'{"row":"%b"}' % row for row in expected)
    else:
        assert sorted(found) == sorted(expected)


def test_stretches_have_about_the_same_size(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_rows(path, "json", text_lines(4000))
    sizes = [
        sum(map(len, read("json", part))) for part in stretches([str(path)], 4, cut_of("json"))
    ]
    assert len(sizes) == 4
    assert max(sizes) < 1.02 * min(sizes)


def test_whole_files_are_distributed_if_that_is_even(tmp_path: Path) -> None:
    names = []
    for name, size in (("a", 10), ("b", 70), ("c", 30), ("d", 30)):
        (tmp_path / name).write_bytes(b"x" * size)
        names.append(str(tmp_path / name))
    a, b, c, d = names
    found = stretches(names, 2, cut_of("json"))
    assert [part.paths for part in found] == [(a, c, d), (b,)]
    assert [(part.start, part.stop) for part in found] == [(0, None)] * 2


@pytest.mark.parametrize("kind", ["avro", "arrow", "protobuf"])
def test_formats_that_are_not_divided(kind: str) -> None:
    assert cut_of(kind) is None


def test_compressed_files_stay_whole(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a.jsonl.gz"), str(tmp_path / "c.jsonl")]
    write_rows(tmp_path / "a.jsonl.gz", "json", rows := text_lines(900))
    write_rows(tmp_path / "c.jsonl", "json", more := text_lines(900))
    parts = stretches(paths, 6, cut_of("json"))
    assert sum(paths[0] in part.paths for part in parts) == 1
    assert not any(part.start and part.paths[0] == paths[0] for part in parts)
    found = [row for part in parts for row in read("json", part)]
    assert sorted(found) == sorted(rows + more)


def test_small_files_are_not_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    write_rows(tmp_path / "a.jsonl", "json", text_lines(500))
    assert len(stretches([str(tmp_path / "a.jsonl")], 8, cut_of("json"))) == 1


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + b"x" * 100)
    with pytest.raises(SourceError, match=r"a\.parquet is damaged"):
        stretches([str(path)], 4, cut_of("parquet"))
