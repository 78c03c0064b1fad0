"""Files of columns: Parquet and Arrow, as pyarrow writes them."""

from __future__ import annotations

import base64
import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

import streamlearn as sl
from streamlearn.cli.main import main
from streamlearn.errors import SourceChangedError, SourceError, TableMismatchError
from streamlearn.estimators import checkpoints, model_file
from streamlearn.stream import (
    Clicks,
    Events,
    Fields,
    Partition,
    check_source,
    decoded_batches,
    decoder_of,
)
from streamlearn.stream.sources.column_files import ColumnFile
from streamlearn.stream.sources.parts import count_records
from streamlearn.stream.sources.record_files import RecordFiles, counter_of, opener_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CLICKS = [json.loads(value) for value in Clicks(seed=4).values(0, 300)]


def write(path: Path, rows: Sequence[dict[str, Any]], **options: Any) -> Path:
    table = pa.Table.from_pylist(list(rows), **options)
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=40)
    elif path.suffix == ".feather":
        feather.write_feather(table, str(path), compression="lz4")
    else:
        make: Any = ipc.new_stream if path.suffix == ".arrows" else ipc.new_file
        with make(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=40)
    return path


def kind_of(path: Path) -> str:
    return "parquet" if path.suffix == ".parquet" else "arrow"


def source_of(*paths: Path | str, kind: str = "parquet", batch: int = 64) -> RecordFiles:
    open_file = opener_of(kind)
    assert open_file is not None
    return RecordFiles(paths, open_file, batch=batch, count=counter_of(kind))


def read_all(source: RecordFiles) -> list[Any]:
    found = []
    try:
        source.open({}, None)
        while not source.ended():
            found += source.poll(0.0)
    finally:
        source.close()
    return found


SUFFIXES = (".parquet", ".arrow", ".arrows", ".feather")


def wide_rows(count: int) -> list[dict[str, Any]]:
    """Rows with columns that are not read, inside a struct too."""
    return [
        {
            "y": k % 2,
            "text": f"text {k}",
            "x": k / 8,
            "inner": {"kept": f"a{k % 3}", "other": k},
            "gone": {"a": k, "b": [str(k)]},
        }
        for k in range(count)
    ]


IGNORED = {"text": "ignore", "inner.other": "ignore", "gone": "ignore"}


@pytest.mark.parametrize("groups", [70_000, 150_000])
def test_columns_that_are_not_read_are_left_out(tmp_path: Path, groups: int) -> None:
    path, rows = tmp_path / "wide.parquet", wide_rows(150_000)
    parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=groups)
    decoder = decoder_of("parquet", sl.Names(IGNORED), Fields(label="y"))
    columns, found, labels = [], 0, []
    source = source_of(path, batch=7000)
    for batch in decoded_batches(source, decoder):
        assert batch is not None
        records, events = batch
        columns.append(sorted(json.loads(records.values[0] or b"")))
        found += len(events)
        labels += events.labels.tolist()
    assert found == len(rows)
    assert labels == [row["y"] for row in rows]
    assert columns[0] == ["gone", "inner", "text", "x", "y"]
    assert columns[-1] == ["inner", "x", "y"]
    assert decoder.reader.names() == ["x", "inner.kept=a0", "inner.kept=a1", "inner.kept=a2"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_leaving_out_columns_loses_no_row(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", wide_rows(300))
    source = source_of(path, kind=kind_of(path), batch=30)
    source.open({}, None)
    rows = [json.loads(value or b"") for one in source.poll(0.0) for value in one.values]
    source.leave_out({"text", "gone"})
    while not source.ended():
        rows += [json.loads(value or b"") for one in source.poll(0.0) for value in one.values]
    source.close()
    assert [row["x"] for row in rows] == [k / 8 for k in range(300)]
    assert ("text" in rows[-1]) == (suffix != ".parquet")


def test_rows_are_counted_by_the_footer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet", CLICKS)

    def refused(*_: Any) -> list[Any]:
        raise AssertionError

    monkeypatch.setattr(RecordFiles, "poll", refused)
    assert count_records(source_of(path)) == len(CLICKS)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_are_what_json_lines_are(suffix: str, tmp_path: Path) -> None:
    kind = kind_of(path := write(tmp_path / f"a{suffix}", CLICKS))
    decoder = decoder_of(kind, sl.Names(), Fields(label="clicked"))
    plain = decoder_of("json", sl.Names(), Fields(label="clicked"))
    found, wanted = Events(), Events()
    for one in read_all(source_of(path, kind=kind)):
        decoder.decode(one.values, found)
        # a dead letter has the row
        assert [json.loads(value) for value in one.values] == [
            CLICKS[offset] for offset in one.offsets
        ]
    plain.decode([json.dumps(event).encode() for event in CLICKS], wanted)
    assert decoder.reader.names() == plain.reader.names()
    for one, other in zip(found.packed(), wanted.packed(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert found.records == len(CLICKS)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_conform(suffix: str, tmp_path: Path) -> None:
    schema = pa.Table.from_pylist(CLICKS).schema
    for name, rows in (("a", CLICKS[:90]), ("b", CLICKS[90:101]), ("c", [])):
        kind = kind_of(write(tmp_path / f"{name}{suffix}", rows, schema=schema))
    check_source(lambda: source_of(f"{tmp_path}/*{suffix}", kind=kind, batch=7))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_progress_counts_rows(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a{suffix}", CLICKS)
    source = source_of(path, kind=kind_of(path), batch=32)
    source.open({Partition(str(path)): 85}, None)
    assert (source.progress(), source.unit) == ((85, 300), "rows")
    (records,) = source.poll(0.0)
    assert records.offsets[0] == 85
    assert source.lag() == {Partition(str(path)): 300 - records.end}
    source.close()


def test_groups_before_a_position_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[int] = []
    original = parquet.ParquetFile.iter_batches

    def watched(self: Any, *args: Any, row_groups: list[int], **options: Any) -> Any:
        groups.extend(row_groups)
        return original(self, *args, row_groups=row_groups, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", watched)
    path = write(tmp_path / "a.parquet", CLICKS)
    source = source_of(path)
    source.open({Partition(str(path)): 130}, None)
    assert source.poll(0.0)[0].offsets[0] == 130
    source.close()
    assert groups == [3]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_damage_is_an_error_that_names_the_file(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a{suffix}", CLICKS)
    data = path.read_bytes()
    for damaged in (data[: len(data) // 2], b"\xff" * 9, data[:9], b""):
        path.write_bytes(damaged)
        with pytest.raises(SourceError) as error:
            read_all(source_of(path, kind=kind_of(path)))
        assert str(path) in str(error.value)


def test_two_columns_of_one_name_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if they are text, which is read as dictionaries."""
    path = tmp_path / "twice.parquet"
    texts = pa.array(["a", "b"] * 50)
    parquet.write_table(pa.table([texts, texts, texts], names=["x", "x", "y"]), path)
    assert main(["train", str(path), "--label", "y"]) == 2
    error = capsys.readouterr().err
    assert str(path) in error
    assert "'x'" in error
    assert "damaged" not in error


def test_a_compressed_file_of_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet.gz"
    path.write_bytes(gzip.compress(write(tmp_path / "x.parquet", CLICKS).read_bytes()))
    with pytest.raises(SourceError, match="compressed") as refused:
        read_all(source_of(path))
    assert "damaged" not in str(refused.value)


def test_a_file_that_was_replaced_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", CLICKS)
    source = source_of(path)
    source.open({}, None)
    identity = dict(source.identity())
    write(path, CLICKS[5:])
    with pytest.raises(SourceChangedError):
        source.open({Partition(str(path)): 10}, identity)


def test_files_with_other_columns(tmp_path: Path) -> None:
    first: list[dict[str, Any]] = [{"a": "x", "y": 1}, {"a": None, "y": 0}]
    paths = [
        write(tmp_path / "a.parquet", first),
        write(tmp_path / "b.parquet", [{"y": 1, "b": 2.5, "a": "x"}]),
        write(tmp_path / "c.parquet", [{"b": 2.5}]),
    ]
    decoder = decoder_of("parquet", sl.Names(), Fields(label="y"))
    events = Events()
    for one in read_all(source_of(*paths[:2])):
        decoder.decode(one.values, events)
    assert [events.row_of(k) for k in range(3)] == [[(0, 1.0)], [], [(1, 2.5), (0, 1.0)]]
    assert [events.label_of(k) for k in range(3)] == [1, 0, 1]
    (rows,) = read_all(source_of(paths[2]))
    with pytest.raises(TableMismatchError, match="'y'"):
        decoder.decode(rows.values, events)


LABELS: dict[str, tuple[Any, list[Any]]] = {
    "bool": (pa.array([True, False, None]), [True, False, None]),
    "integer": (pa.array([3, -1, None], pa.int8()), [3, -1, None]),
    "large": (pa.array([2**62 + 1, 5, None]), [2**62 + 1, 5, None]),
    "float": (pa.array([0.5, float("nan"), None]), [0.5, None, None]),
    "text": (pa.array(["spam", "ham", None]), ["spam", "ham", None]),
    "dictionary": (pa.array(["spam", "ham", None]).dictionary_encode(), ["spam", "ham", None]),
    "struct": (pa.array([{"y": "a"}, {"y": None}, None]), ["a", None, None]),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_any_type(name: str, tmp_path: Path) -> None:
    column, labels = LABELS[name]
    parquet.write_table(pa.table({"label": column, "x": [1.0, 2.0, 3.0]}), tmp_path / "a.parquet")
    (rows,) = read_all(source_of(tmp_path / "a.parquet"))
    label = "label.y" if name == "struct" else "label"
    events = Events()
    decoder_of("parquet", sl.Names(), Fields(label=label)).decode(rows.values, events)
    assert [events.label_of(k) for k in range(3)] == labels
    assert [events.row_of(k) for k in range(3)] == [[(0, 1.0)], [(0, 2.0)], [(0, 3.0)]][
        : len(labels)
    ] or None in labels


def test_weights_ids_and_times(tmp_path: Path) -> None:
    moments = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=k) for k in range(3)]
    table = pa.table(
        {"y": [True, False, True], "w": [0.5, 2.0, None], "k": [7, 8, None], "t": moments}
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    (rows,) = read_all(source_of(tmp_path / "a.parquet"))
    events = Events()
    fields = Fields(label="y", weight="w", id="k", time="t")
    decoder_of("parquet", sl.Names(), fields).decode(rows.values, events)
    assert events.weights.tolist() == [0.5, 2.0, 1.0]
    assert events.ids == [b"7", b"8", None]
    assert events.times.tolist() == [one.timestamp() for one in moments]
    with pytest.raises(TableMismatchError, match="'x'"):
        decoder_of("parquet", sl.Names({"x": "number"}), fields).decode(rows.values, Events())


def facts(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("guess", [[], ["--no-guess"]])
def test_commands_do_with_columns_what_they_do_with_lines(
    guess: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, CLICKS)), encoding="utf-8")
    paths = [str(tmp_path / "a.jsonl")]
    paths += [str(write(tmp_path / f"a{suffix}", CLICKS)) for suffix in SUFFIXES]
    changing = {"seconds", "events/s", "saved", "made at"}
    label = ["--label", "clicked"]
    results = []
    for path in paths:
        model = f"{path}.model"
        trained = facts(capsys, "train", path, *label, *guess, "--save", model)
        tested = facts(capsys, "test", model, path)
        solved = facts(capsys, "solve", path, *label, "--l2", "1e-3", "--shards", "1")
        assert main(["predict", model, path, "--probability"]) == 0
        predicted = capsys.readouterr().out
        results.append(
            (
                {key: value for key, value in trained.items() if key not in changing},
                tested,
                (solved["objective"], solved["rows"]),
                predicted,
            )
        )
    assert results[0][0]["events"] == 300
    for one in results[1:]:
        assert one == results[0]


def test_an_invalid_row_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [*CLICKS[:3], {**CLICKS[3], "price": float("inf")}, *CLICKS[4:9]]
    path = str(write(tmp_path / "a.parquet", wrong))
    command = ["train", path, "--label", "clicked", "--no-guess"]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "a.parquet: row 3" in error
    assert "price" in error
    assert facts(capsys, *command, "--on-invalid", "skip")["invalid"] == 1
    assert main([*command[:2], "--label", "bought"]) == 2
    assert "bought" in capsys.readouterr().err


def test_times_and_bytes_are_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        {
            "at": start + timedelta(hours=5 * k),
            "day": (start + timedelta(k)).date(),
            "raw": b"x",
            "y": k % 2,
        }
        for k in range(100)
    ]
    path = str(write(tmp_path / "a.parquet", rows))
    found = facts(capsys, "train", path, "--label", "y")["fields"]
    assert found["at"]["kind"].startswith("time(")
    assert found["day"]["kind"].startswith("time(")
    assert found["raw"] == {"kind": "ignore", "why": "bytes"}
    # undeclared, a time has no meaning
    assert main(["train", path, "--label", "y", "--no-guess"]) == 2
    assert "'at'" in capsys.readouterr().err


CONFIG = """
[source]
kind = "file"
paths = ["{paths}"]
batch = 16
[format]
kind = "{kind}"
label = "clicked"
[checkpoint]
path = "{state}"
every_events = 40
[dead_letters]
path = "{letters}"
[telemetry]
enabled = false
"""


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_daemon_resumes_at_its_row(suffix: str, tmp_path: Path) -> None:
    bad = {**CLICKS[0], "price": float("inf")}
    rows = [*CLICKS[:130], bad, *CLICKS[130:]]
    kind = kind_of(write(tmp_path / f"a{suffix}", rows[:200]))
    write(tmp_path / f"b{suffix}", rows[200:])
    states, letters = [], []
    for name, stops in (("whole", ["end"]), ("parts", ["57", "141", "222", "end"])):
        file, state = tmp_path / f"{name}.toml", tmp_path / name
        letters.append(tmp_path / f"{name}.jsonl")
        text = CONFIG.format(
            paths=f"{tmp_path}/*{suffix}", kind=kind, state=state, letters=letters[-1]
        )
        file.write_text(text, encoding="utf-8")
        for stop in stops:
            assert main(["run", str(file), "--until", stop]) == 0
        states.append(model_file.pack(checkpoints.model(state, "default")["state"]))
        (letter,) = letters[-1].read_text(encoding="utf-8").splitlines()
        found = json.loads(letter)
        assert found["headers"]["streamlearn.field"] == "price"
        assert json.loads(base64.b64decode(found["value_base64"])) == {**bad, "price": None}
    assert states[0] == states[1]


@pytest.mark.parametrize("count", range(8))
def test_whole_groups_that_are_skipped_are_not_read(count: int) -> None:
    sizes, groups = [2, 3, 2], []

    def read(group: int, _: object) -> Iterator[pa.RecordBatch]:
        groups.append(group)
        start = sum(sizes[:group])
        yield pa.record_batch({"x": list(range(start, start + sizes[group]))})

    file = ColumnFile(sizes, read)
    assert file.skip(count) == min(count, 7)
    ends = [2, 5, 7]
    assert groups == ([] if count in {0, *ends} else [sum(count > end for end in ends)])
    rest: list[int] = []
    while rows := file.take(10):
        rest += [json.loads(row)["x"] for row in rows]
    assert rest == list(range(count, 7))
    assert file.skip(1) == 0
