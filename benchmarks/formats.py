"""Decode the same records in every format, from a file to rows.

python -m benchmarks.formats [--events N] [--rounds N]

A record has a label and eleven features, five of them text. svmlight has no text, so its columns
are numbered like a one-hot encoding. Nothing is learned. The Python baseline is `csv.reader` and a
dict of each row, without parsing numbers.
"""

import argparse
import csv
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

import streamlearn as sl
from benchmarks.report import alternate, table, unprepared
from streamlearn.stream import Events, Fields, Files, decoder_of

TEXT = 5
NUMBERS = 6
NAMES = 5_000
PYTHON = "csv.reader and a dict"
Record = dict[str, float | str]


def make_records(count: int, seed: int = 0) -> Iterator[Record]:
    """Generate records of words, decimals and a count, with a label of 0 or 1."""
    rng = np.random.default_rng(seed)
    words = [f"{prefix}-{k}" for k, prefix in enumerate(["shop", "news", "video", "mail"] * 1250)]
    texts = rng.integers(NAMES, size=(count, TEXT)).tolist()
    decimals = rng.normal(0.0, 10.0, size=(count, NUMBERS - 1)).round(4).tolist()
    counts = rng.integers(1000, size=count).tolist()
    labels = rng.integers(2, size=count).tolist()
    for text, decimal, whole, label in zip(texts, decimals, counts, labels, strict=True):
        record: Record = {f"category{k}": words[word] for k, word in enumerate(text)}
        record |= {f"measure{k}": x for k, x in enumerate(decimal)}
        yield {**record, "visits": whole, "label": label}


def write(directory: Path, count: int) -> dict[str, tuple[str, Path]]:
    """Write the records in every format; return the format and the path of each file."""
    records = list(make_records(count))
    files = {
        "JSON": ("json", directory / "x.jsonl"),
        "CSV": ("csv", directory / "x.csv"),
        "CSV, all values quoted": ("csv", directory / "quoted.csv"),
        "svmlight": ("svmlight", directory / "x.svm"),
        "Vowpal Wabbit's text": ("vw", directory / "x.vw"),
    }
    paths = {name: path for name, (_, path) in files.items()}
    write_json(paths["JSON"], records)
    write_csv(paths["CSV"], records, quoted=False)
    write_csv(paths["CSV, all values quoted"], records, quoted=True)
    columns: dict[str, int] = {}
    with paths["svmlight"].open("w", encoding="utf-8") as out:
        out.writelines(svmlight(record, columns) for record in records)
    with paths["Vowpal Wabbit's text"].open("w", encoding="utf-8") as out:
        out.writelines(vowpal_wabbit(record) for record in records)
    return files


def write_json(path: Path, records: list[Record]) -> None:
    """Write JSON lines."""
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in records)


def write_csv(path: Path, records: list[Record], *, quoted: bool) -> None:
    """Write CSV with a header."""
    with path.open("w", encoding="utf-8", newline="") as out:
        quoting: Literal[0, 1] = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
        writer = csv.DictWriter(out, list(records[0]), quoting=quoting)
        writer.writeheader()
        writer.writerows(records)


def svmlight(record: Record, columns: dict[str, int]) -> str:
    """Return a line of svmlight; a text becomes a column, numbered at first sight."""
    values = {}
    for name, value in record.items():
        if name != "label":
            text = isinstance(value, str)
            key = f"{name}={value}" if text else name
            values[columns.setdefault(key, len(columns) + 1)] = 1 if text else value
    features = " ".join(f"{column}:{value}" for column, value in sorted(values.items()))
    return f"{record['label']} {features}\n"


def vowpal_wabbit(record: Record) -> str:
    """Return a line of Vowpal Wabbit's text."""
    features = " ".join(
        f"{name}={value}" if isinstance(value, str) else f"{name}:{value}"
        for name, value in record.items()
        if name != "label"
    )
    return f"{record['label']} | {features}\n"


def read(kind: str, path: Path) -> int:
    """Read and decode a file; return the number of events."""
    decoder, events, count = decoder_of(kind, sl.Hashing(20), Fields(label="label")), Events(), 0
    source = Files([path])
    source.open({}, None)
    while not source.ended():
        for records in source.poll(0.0):
            events.clear()
            decoder.decode(records.values, events)
            count += len(events)
    source.close()
    return count


def read_dicts(path: Path) -> int:
    """Read a file by `csv.reader`, with a dict of each row; return the number of rows."""
    count = 0
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows)
        for row in rows:
            dict(zip(header, row, strict=True))
            count += 1
    return count


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        files = write(Path(directory), args.events)
        runs: dict[str, Callable[[], int]] = {
            name: partial(read, kind, path) for name, (kind, path) in files.items()
        }
        runs[PYTHON] = partial(read_dicts, files["CSV"][1])
        for name, run in runs.items():
            if (count := run()) != args.events:
                raise AssertionError(f"{name}: {count} of {args.events} records")
        prepared = {name: partial(unprepared, run) for name, run in runs.items()}
        timings = alternate(prepared, args.rounds)
    print(f"{args.events:,} records of 12 fields, 5 of text; median of {args.rounds} rounds\n")
    ratio = "{:.2f} ({:.2f} to {:.2f})"
    lines = [
        [
            name,
            timing.per_event(args.events),
            ratio.format(*timings["JSON"].ratio(timing)),
            ratio.format(*timing.ratio(timings[PYTHON])),
        ]
        for name, timing in timings.items()
    ]
    print(table(["format", "us/record", "time, JSON = 1", f"speed, {PYTHON} = 1"], lines))


if __name__ == "__main__":
    main()
