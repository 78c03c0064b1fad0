"""Files in shards: their features, labels and invalid records."""

from __future__ import annotations

import csv
import gzip
import json
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import streamlearn as sl
from streamlearn.errors import InvalidEventError
from streamlearn.features import Hashing, Names
from streamlearn.hindsight import solve_shards
from streamlearn.hindsight.sharded import LocalHost
from streamlearn.hindsight.sharded.files import FileShard, LossLabels, file_shards
from streamlearn.hindsight.sharded.problem import load_shards
from streamlearn.stream import Fields
from streamlearn.stream.sources import stretch

if TYPE_CHECKING:
    from pathlib import Path

L, P, M = sl.losses, sl.penalties, sl.hindsight.multivariate
RNG = np.random.default_rng(4)
EVENTS: list[dict[str, Any]] = [
    {"user": f"u{RNG.integers(9)}", "age": int(RNG.integers(90)), "ad": f"a{RNG.integers(5)}"}
    for _ in range(200)
]
for event in EVENTS:
    event["clicked"] = (event["age"] > 40) != (event["ad"] == "a1")
FIELDS = Fields(label="clicked")


def json_files(folder: Path, events: Any = EVENTS) -> list[Path]:
    """Write three files of unlike size, one of them compressed."""
    paths = [folder / "a.jsonl", folder / "b.jsonl", folder / "c.jsonl.gz"]
    for path, part in zip(paths, (events[:20], events[20:150], events[150:]), strict=True):
        data = "".join(json.dumps(one) + "\n" for one in part).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return paths


def test_a_shard_is_named_by_its_files(tmp_path: Path) -> None:
    paths = json_files(tmp_path)
    for count, more in ((1, ""), (2, " (and 1 more)"), (3, " (and 2 more)")):
        found = file_shards(paths[:count], format="json", fields=FIELDS, features=Names(), shards=1)
        assert [shard.name for shard in found] == [f"{paths[0]}{more}"]


@pytest.mark.parametrize("features", [Names(), Hashing(10)], ids=repr)
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_files_have_one_solution_however_they_are_divided(
    tmp_path: Path, features: Any, shards: int
) -> None:
    paths = json_files(tmp_path)
    found = file_shards(paths, format="json", fields=FIELDS, features=features, shards=shards)
    assert len(found) == shards
    solution = solve_shards(found, L.Logistic(), P.L2(1e-3), gap=1e-9)
    merged = tmp_path / "all.jsonl"
    merged.write_text("".join(json.dumps(one) + "\n" for one in EVENTS))
    whole = file_shards([merged], format="json", fields=FIELDS, features=features)
    expected = solve_shards(whole, L.Logistic(), P.L2(1e-3), gap=1e-9)
    assert solution.objective == pytest.approx(expected.objective, abs=2e-9)
    assert sorted(solution.w) == pytest.approx(sorted(expected.w), abs=1e-3)
    assert solution.labels == [False, True]


def written(path: Path) -> Path:
    """Write the events to one file in the format of its name."""
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, EVENTS[0].keys())
            writer.writeheader()
            writer.writerows(EVENTS)
    elif path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(EVENTS), path, row_group_size=30)
    else:
        path.write_text("".join(json.dumps(one) + "\n" for one in EVENTS))
    return path


@pytest.mark.parametrize("features", [Names(), Names({"age": "buckets(4, warmup=20)"})], ids=repr)
@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_a_file_that_is_divided_has_one_solution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, features: Any
) -> None:
    monkeypatch.setattr(stretch, "SMALLEST", 1)
    path = written(tmp_path / f"a.{kind}")
    given: dict[str, Any] = {"format": kind, "fields": FIELDS, "features": features}
    shards = file_shards([path], shards=3, **given)
    assert len(shards) == 3
    loaded = load_shards(shards, L.Logistic(), P.L2(1e-3), LocalHost())
    assert [one.rows for one in loaded.surveys if one.rows] != [len(EVENTS)]
    assert loaded.rows == len(EVENTS)
    found = solve_shards(shards, L.Logistic(), P.L2(1e-3), gap=1e-9)
    whole = solve_shards(file_shards([path], **given), L.Logistic(), P.L2(1e-3), gap=1e-9)
    assert found.objective == pytest.approx(whole.objective, abs=2e-9)
    assert found.labels == whole.labels


def test_an_invalid_record_of_a_divided_file_has_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretch, "SMALLEST", 1)
    path = written(tmp_path / "a.jsonl")
    with path.open("a") as file:
        file.write("{\n")
    shards = file_shards([path], format="json", fields=FIELDS, shards=4)
    with pytest.raises(InvalidEventError, match=rf"a\.jsonl:{len(EVENTS) + 1}: "):
        solve_shards(shards, L.Logistic(), P.L2(0.1))


def test_columns_have_the_names_of_all_shards(tmp_path: Path) -> None:
    found = file_shards(json_files(tmp_path), format="json", fields=FIELDS)
    loaded = load_shards(found, L.Logistic(), P.L2(0.1), LocalHost())
    users = {("user", one["user"]) for one in EVENTS} | {("ad", one["ad"]) for one in EVENTS}
    assert loaded.names is not None
    assert set(map(str, loaded.names)) == {f"{key}={value}" for key, value in users} | {"age"}
    assert loaded.problem.features == len(loaded.names)
    assert loaded.rows == len(EVENTS)


def test_weights_count_and_unlabeled_events_do_not(tmp_path: Path) -> None:
    path, doubled = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    weighted = [{**one, "w": 1 + i % 2} for i, one in enumerate(EVENTS)]
    repeated = [one for i, one in enumerate(EVENTS) for _ in range(1 + i % 2)]
    ignored = [{"user": "nobody"}, {**EVENTS[0], "w": 0}]
    for target, events in ((path, weighted + ignored), (doubled, repeated)):
        target.write_text("".join(json.dumps(one) + "\n" for one in events))
    solutions = [
        solve_shards(
            file_shards([target], format="json", fields=Fields(label="clicked", weight="w")),
            L.Logistic(),
            P.L2(0.01),
            gap=1e-9,
        )
        for target in (path, doubled)
    ]
    np.testing.assert_allclose(solutions[0].w, solutions[1].w, atol=1e-4)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"clicked": true, "age": [[1]]}', r"b\.jsonl:131: .*age"),
        ('{"clicked": [1]}', r"b\.jsonl:131: .*clicked"),
        ("{", r"b\.jsonl:131: "),
    ],
)
def test_an_invalid_record_is_named_before_anything_starts(
    tmp_path: Path, line: str, named: str
) -> None:
    paths = json_files(tmp_path)
    with paths[1].open("a") as file:
        file.write(line + "\n")
    steps: list[Any] = []
    with pytest.raises(InvalidEventError, match=named):
        solve_shards(
            file_shards(paths, format="json", fields=FIELDS),
            L.Logistic(),
            P.L2(0.1),
            callback=steps.append,
        )
    assert not steps
    skipping = file_shards(paths, format="json", fields=FIELDS, skip=True)
    loaded = load_shards(skipping, L.Logistic(), P.L2(0.1), LocalHost())
    assert loaded.rows == len(EVENTS)
    assert [one.invalid for one in loaded.surveys] == [0, 1, 0]
    assert [len(one.examples) for one in loaded.surveys] == [0, 1, 0]


def test_a_label_that_the_loss_does_not_accept_is_an_invalid_record(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("2 1:1\n-3 1:1\n")
    with pytest.raises(InvalidEventError, match=r"a\.svm:2: .*Poisson"):
        solve_shards(file_shards([tmp_path / "a.svm"], format="svmlight"), L.Poisson(), P.L2(0.1))
    assert LossLabels(L.Squared()).learns == "numbers"
    assert LossLabels(L.Softmax()).learns == "classes"


def test_groups_are_read_from_a_field(tmp_path: Path) -> None:
    rows = [{"y": i % 3, "x": i, "q": f"q{i // 10}"} for i in range(40)]
    for name, part in (("a", rows[:20]), ("b", rows[20:])):
        (tmp_path / name).write_text("".join(json.dumps(one) + "\n" for one in part))
    shards = file_shards(
        [tmp_path / "a", tmp_path / "b"], format="json", fields=Fields(label="y"), group="q"
    )
    assert solve_shards(shards, M.NDCG(), P.L2(0.1)).gap <= 1e-4


def test_a_group_in_two_shards_is_named(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text('{"y": 1, "q": "shoes"}\n{"y": 0, "q": "shoes"}\n')
    paths = [tmp_path / "a", tmp_path / "b"]
    shards = file_shards(paths, format="json", fields=Fields(label="y"), group="q")
    with pytest.raises(ValueError, match=r"group 'shoes' is in .*a and in .*b"):
        solve_shards(shards, M.NDCG(), P.L2(0.1))


def test_files_with_groups_are_not_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretch, "SMALLEST", 1)
    path = written(tmp_path / "a.jsonl")
    assert len(file_shards([path], format="json", fields=FIELDS, group="user", shards=4)) == 1


def test_columns_of_unlike_type_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,zip\n1,123\n0,456\n")
    (tmp_path / "b.csv").write_text("label,zip\n1,12A\n0,456\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    with pytest.raises(ValueError, match=r"'zip' has numbers in .*a\.csv, but text in .*b\.csv"):
        solve_shards(file_shards(paths, format="csv"), L.Logistic(), P.L2(0.1))
    features = Names({"zip": "category"})
    named = file_shards(paths, format="csv", features=features)
    assert solve_shards(named, L.Logistic(), P.L2(0.1)).labels == [0, 1]


def test_a_shard_is_small_until_it_is_loaded(tmp_path: Path) -> None:
    (shard,) = file_shards(json_files(tmp_path), format="json", fields=FIELDS, shards=1)
    again = pickle.loads(pickle.dumps(shard))
    assert isinstance(again, FileShard)
    loss = L.Logistic()
    np.testing.assert_array_equal(again.load(loss).X.data, shard.load(loss).X.data)
    assert len(pickle.dumps(shard)) < 2_000


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_a_shard_of_one_row(tmp_path: Path, weight: float) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"x": 2.0, "w": weight, "clicked": True}))
    fields = Fields(label="clicked", weight="w")
    [shard] = file_shards([path], format="json", fields=fields, features=Names(), shards=1)
    data = shard.load(L.Logistic())
    assert data.X.toarray().tolist() == [[2.0]]
    assert data.weights is None if weight == 1.0 else data.weights == [weight]
