"""Shards on Ray: the same bits as in one process, whatever is killed."""

from __future__ import annotations

import json
import os
import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import streamlearn as sl
from streamlearn.cli.main import main
from streamlearn.errors import InvalidEventError
from streamlearn.fleet.shards import RayHost
from streamlearn.hindsight import ArrayShard, Step, solve_shards
from streamlearn.hindsight.sharded.files import file_shards
from streamlearn.stream import Clicks, Fields
from streamlearn.stream.sources import stretch

if TYPE_CHECKING:
    from pathlib import Path

L, P = sl.losses, sl.penalties
RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 8))
SIGNS = np.where(X @ RNG.normal(size=8) + RNG.normal(size=300) > 0, 1, -1)
SHARDS = [
    ArrayShard(X[:40], SIGNS[:40]),
    ArrayShard(X[:0], SIGNS[:0]),
    ArrayShard(X[40:], SIGNS[40:]),
]


@pytest.mark.parametrize(
    ("loss", "penalty", "method"),
    [
        (L.Logistic(), P.L2(1e-3), "newton-cg"),
        (L.Logistic(), P.L1(1e-3), "owlqn"),
        (L.Hinge(), P.L2(1e-3), "bundle-ls"),
        (L.Softmax(), P.L2(1e-3), "lbfgs"),
    ],
)
def test_workers_find_the_same_bits_as_threads(
    ray: Any, loss: Any, penalty: Any, method: str
) -> None:
    given: dict[str, Any] = {"method": method, "fit_intercept": True, "max_iter": 6}
    local = solve_shards(SHARDS, loss, penalty, **given)
    with RayHost(ray) as host:
        found = solve_shards(SHARDS, loss, penalty, host=host, **given)
    np.testing.assert_array_equal(found.w, local.w)
    assert found.lower_bound == local.lower_bound


def test_killed_workers_are_rebuilt_and_the_result_is_the_same_to_the_bit(
    ray: Any, tmp_path: Path
) -> None:
    paths = []
    for k in range(3):
        paths.append(tmp_path / f"{k}.jsonl")
        events = [
            {"y": int(y), **{f"x{j}": float(x) for j, x in enumerate(row)}}
            for row, y in zip(X[k::3], SIGNS[k::3], strict=True)
        ]
        paths[-1].write_text("".join(json.dumps(one) + "\n" for one in events))
    shards = file_shards(paths, format="json", fields=Fields(label="y"))
    given: dict[str, Any] = {"method": "bundle-ls", "gap": 1e-6, "max_iter": 13}
    expected = solve_shards(shards, L.Hinge(), P.L2(1e-3), **given)
    assert expected.iterations == 13
    killed: list[int] = []
    with RayHost(ray) as host:

        def kill(step: Step) -> None:
            if step.iteration in {3, 7, 11}:  # one after the other
                killed.append(host.process_ids()[step.iteration % 3])
                os.kill(killed[-1], signal.SIGKILL)

        found = solve_shards(shards, L.Hinge(), P.L2(1e-3), host=host, callback=kill, **given)
        assert not set(killed) & set(host.process_ids())
    assert len(set(killed)) == 3
    np.testing.assert_array_equal(found.w, expected.w)
    assert [step[:3] for step in found.history] == [step[:3] for step in expected.history]


def test_a_parquet_file_is_divided_among_workers(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretch, "SMALLEST", 1)
    columns = {f"x{j}": X[:, j] for j in range(8)}
    texts = [f"ad{k}" for k in np.arange(300) % 7]
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"y": SIGNS, "ad": texts, **columns}), path, row_group_size=40)
    shards = file_shards([path], format="parquet", fields=Fields(label="y"), shards=3)
    assert len(shards) == 3
    given: dict[str, Any] = {"method": "lbfgs", "gap": 1e-9, "max_iter": 8}
    local = solve_shards(shards, L.Logistic(), P.L2(1e-3), **given)
    with RayHost(ray) as host:

        def kill(step: Step) -> None:
            if step.iteration == 4:
                os.kill(host.process_ids()[1], signal.SIGKILL)

        found = solve_shards(shards, L.Logistic(), P.L2(1e-3), host=host, callback=kill, **given)
    np.testing.assert_array_equal(found.w, local.w)
    assert len(found.w) == 8 + 7


def test_evaluate_solves_all_events_on_workers(
    ray: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ray.is_initialized()
    path = tmp_path / "clicks.jsonl"
    path.write_bytes(b"\n".join(Clicks("clicks", 2).values(0, 3000)))
    given = [str(path), "--label", "clicked", "--learners", "PegasosClassifier(l2=0.1)", "--json"]
    found = []
    for more in ([], ["--memory-bytes", "20000", "--ray", "auto", "--shards", "2"]):
        assert main(["evaluate", *given, *more]) == 0
        found.append(json.loads(capsys.readouterr().out)["learners"][0])
    assert found[1]["regret"] == pytest.approx(found[0]["regret"], abs=2e-4 * 3000)


def test_shards_may_be_more_than_cores(ray: Any) -> None:
    shards = [ArrayShard(X[k::6], SIGNS[k::6]) for k in range(6)]
    assert len(shards) > ray.cluster_resources()["CPU"]
    local = solve_shards(shards, L.Logistic(), P.L2(0.1))
    with RayHost(ray) as host:
        found = solve_shards(shards, L.Logistic(), P.L2(0.1), host=host)
    np.testing.assert_array_equal(found.w, local.w)


def test_an_invalid_record_of_a_worker_is_named(ray: Any, tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    paths[0].write_text('{"label": 1, "x": 2}\n')
    paths[1].write_text('{"label": 0, "x": 2}\n{"label": [1], "x": 2}\n')
    with RayHost(ray) as host, pytest.raises(InvalidEventError, match=r"b\.jsonl:2: .*label"):
        solve_shards(file_shards(paths, format="json"), L.Logistic(), P.L2(0.1), host=host)


def test_workers_end_with_their_host(ray: Any) -> None:
    with RayHost(ray) as host:
        solve_shards(SHARDS, L.Logistic(), P.L2(0.1), host=host)
        (first, *_) = host.process_ids()
        assert os.path.exists(f"/proc/{first}")  # noqa: PTH110 - a process
    assert host.process_ids() == []


@pytest.mark.parametrize(
    ("cpus", "shards", "each"), [(4.0, 3, 1.0), (4.0, 4, 1.0), (4.0, 8, 0.5), (2.0, 3, 0.6666)]
)
def test_more_shards_than_cores_share_them(cpus: float, shards: int, each: float) -> None:
    given: dict[str, Any] = {}

    class Asked(Exception):
        """The options of the actors."""

    def options(**found: Any) -> None:
        given.update(found)
        raise Asked

    ray: Any = SimpleNamespace(
        cluster_resources=lambda: {"CPU": cpus},
        remote=lambda _: SimpleNamespace(options=options),
    )
    with pytest.raises(Asked), RayHost(ray) as host:
        host.load([SHARDS[0]] * shards, L.Logistic())
    assert given["num_cpus"] == each
    assert shards * each <= max(cpus, shards * 1.0)
