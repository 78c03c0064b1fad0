"""Parquet to a learned model, compared with the same rows as JSON lines, and with river on pandas.

python -m benchmarks.columns [--events N] [--rounds N] [--river-events N]

A table of twelve columns: a label, six numbers and five texts. Both files are read, decoded and
learned by the default classifier in batches, and by a plain one, with decoding in a thread beside
it. The river user's way is pandas.read_parquet and `learn_many` in chunks: texts by its
OneHotEncoder, or numbers alone. Memory is the growth of the process while ten times the rows of one
file are learned.
"""

import argparse
import resource
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from pyarrow import parquet
from river import compose, linear_model, preprocessing

import streamlearn as sl
from benchmarks.formats import NUMBERS, TEXT, make_records, write_json
from benchmarks.report import alternate, table, unprepared
from streamlearn.stream import Fields, Files, Source, decoded_batches, decoder_of, prefetched
from streamlearn.stream.sources.record_files import RecordFiles, counter_of, opener_of

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 10_000  # rows of river's batches
TEXTS = [f"category{k}" for k in range(TEXT)]
MEASURES = [*(f"measure{k}" for k in range(NUMBERS - 1)), "visits"]


def source_of(path: Path) -> Source:
    """Return the source of a file."""
    open_file = opener_of(kind_of(path))
    if open_file is None:
        return Files([path])
    return RecordFiles([path], open_file, count=counter_of("parquet"))


def kind_of(path: Path) -> str:
    """Return the format of a file."""
    return "parquet" if path.suffix == ".parquet" else "json"


def learn(path: Path, rule: sl.rules.Rule | None = None) -> int:
    """Learn a file; return the number of events."""
    model = sl.LinearClassifier(rule, features=sl.Hashing(20))
    decoder = decoder_of(kind_of(path), model.reader, Fields(label="label"), [model])
    count, source = 0, source_of(path)
    for batch in prefetched(decoded_batches(source, decoder)):
        if batch is not None:
            model.progressive_events(batch[1])
            count += len(batch[1])
    source.close()
    return count


def decode(path: Path) -> int:
    """Decode a file; return the number of events."""
    decoder = decoder_of(kind_of(path), sl.Hashing(20), Fields(label="label"))
    count, source = 0, source_of(path)
    for batch in decoded_batches(source, decoder):
        count += 0 if batch is None else len(batch[1])
    source.close()
    return count


def library(path: Path) -> int:
    """Learn a file by `learn_arrow`."""
    model = sl.LinearClassifier(features=sl.Hashing(20))
    file = parquet.ParquetFile(path)
    reader = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
    model.learn_arrow(reader, label="label")
    return int(file.metadata.num_rows)


def river(path: Path, columns: list[str]) -> int:
    """Learn some columns of a file by river, in chunks."""
    X = pd.read_parquet(path, columns=[*columns, "label"])
    y = X.pop("label")
    numbers: Any = compose.Select(*MEASURES) | preprocessing.StandardScaler()
    texts: Any = compose.Select(*TEXTS) | preprocessing.OneHotEncoder()
    features = numbers + texts if set(TEXTS) <= set(columns) else numbers
    model = features | linear_model.LogisticRegression()
    for start in range(0, len(X), CHUNK):
        stop = start + CHUNK
        model.learn_many(X.iloc[start:stop], y.iloc[start:stop])
    return len(X)


def growth(path: Path, times: int) -> float:
    """Return by how many megabytes the process grows while a file is learned again and again."""
    learn(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(times):
        learn(path)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.columns", description=__doc__)
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--river-events", type=int, default=20_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        records = list(make_records(args.events))
        lines, columns = Path(directory, "x.jsonl"), Path(directory, "x.parquet")
        few = Path(directory, "few.parquet")
        write_json(lines, records)
        parquet.write_table(pa.Table.from_pylist(records), columns)
        parquet.write_table(pa.Table.from_pylist(records[: args.river_events]), few)
        runs: dict[str, Callable[[], int]] = {
            "JSON lines, learned": partial(learn, lines),
            "Parquet, learned": partial(learn, columns),
            "Parquet, learn_arrow": partial(library, columns),
            "JSON lines, gradient descent": partial(learn, lines, sl.rules.GradientDescent(0.1)),
            "Parquet, gradient descent": partial(learn, columns, sl.rules.GradientDescent(0.1)),
            "JSON lines, decoded": partial(decode, lines),
            "Parquet, decoded": partial(decode, columns),
            "river, numbers alone": partial(river, columns, MEASURES),
        }
        for name, run in runs.items():
            if (count := run()) != args.events:
                raise AssertionError(f"{name}: {count} of {args.events} rows")
        timings = alternate({name: partial(unprepared, run) for name, run in runs.items()},
                            args.rounds)  # fmt: skip
        begun = time.perf_counter()
        river(few, [*MEASURES, *TEXTS])
        with_texts = (time.perf_counter() - begun) / args.river_events
        grown = growth(columns, 10)
    print(f"{args.events:,} rows of 12 columns, 5 of text; median of {args.rounds} rounds\n")
    ratio = "{:.2f} ({:.2f} to {:.2f})"
    ours = timings["Parquet, learned"]
    rows = [
        [name, timing.per_event(args.events), ratio.format(*ours.ratio(timing))]
        for name, timing in timings.items()
    ]
    print(table(["", "per row", "times Parquet, learned"], rows))
    print(f"\nriver with texts, {args.river_events:,} rows: {1e6 * with_texts:.1f} us a row")
    print(f"memory: {grown:+.0f} MB after ten times the rows")


if __name__ == "__main__":
    main()
