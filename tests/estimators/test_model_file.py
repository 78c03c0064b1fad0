"""Model files: a saved model resumes bit for bit; a damaged file is never loaded."""

from __future__ import annotations

import errno
import hashlib
import inspect
import os
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn.estimators import model_file

if TYPE_CHECKING:
    from pathlib import Path

L = sl.losses
AVERAGES = ("last", "uniform", "tail", "random")


def presets() -> list[type[Any]]:
    found = [getattr(sl, name) for name in sl.__all__]
    return [
        kind
        for kind in found
        if inspect.isclass(kind) and issubclass(kind, sl.LinearClassifier | sl.LinearRegressor)
    ]


def trained(model: Any, labels: list[Any], n: int = 40, seed: int = 0) -> Any:
    draw = np.random.default_rng(seed)
    for _ in range(n):
        k = int(draw.integers(len(labels)))
        model.learn_one({"x": float(draw.normal() + k), "user": f"u{k}", 3: 1.0}, labels[k])
    return model


def reloaded(model: Any, path: Path) -> Any:
    model.save(path)
    return type(model).load(path)


def assert_same_future(one: Any, other: Any, labels: list[Any]) -> None:
    assert model_file.pack(one.state()) == model_file.pack(other.state())
    for model in (one, other):
        trained(model, labels, 20, seed=1)
    assert model_file.pack(one.state()) == model_file.pack(other.state())
    assert one.score_one({"x": 0.3, "user": "u1"}) == other.score_one({"x": 0.3, "user": "u1"})


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("kind", presets(), ids=lambda kind: kind.__name__)
def test_every_estimator_resumes_from_its_file(
    kind: type[Any], average: str, tmp_path: Path
) -> None:
    labels = [1.5, -2.0, 0.25] if issubclass(kind, sl.LinearRegressor) else ["a", "b", "c"]
    model = trained(kind(average=average, seed=3), labels)
    assert_same_future(model, reloaded(model, tmp_path / "m"), labels)


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({"rule": sl.rules.AdaGrad(0.1), "loss": L.Softmax(), "batch": 3}, ["a", "b", "c"]),
        (
            {
                "rule": sl.rules.AdaGrad(0.1),
                "loss": L.MulticlassHinge({"spec": {"params": 4.0}}, 0.5),
                "penalty": sl.penalties.L1(0.01),
            },
            ["spec", "params", "c"],
        ),
        ({"rule": sl.rules.Mixture((sl.rules.CoinBetting(),)), "fit_intercept": False}, [0, 1]),
        ({"features": sl.Hashing(bits=6), "class_weight": {"features": 2.0}}, ["features", "b"]),
        ({"features": sl.Names({"x^user": "interaction"}), "class_weight": {1: 0.5}}, [1, 2]),
        ({"rule": sl.rules.DualAveraging(), "batch": 7}, [True, False]),
        ({}, [("a", 1), ("b", (2, None))]),
        ({}, [b"\x00", b"\xff", "\ud800", "é"]),
        ({}, [1, 2.5, -(10**30)]),
    ],
)
def test_options_and_labels_are_saved(
    options: dict[str, Any], labels: list[Any], tmp_path: Path
) -> None:
    model = trained(sl.LinearClassifier(**options), labels)
    loaded = reloaded(model, tmp_path / "m")
    assert loaded.labels == model.labels
    assert [type(label) for label in loaded.labels] == [type(label) for label in model.labels]
    assert loaded.params == model.params
    assert_same_future(model, loaded, labels)


def test_targets_are_saved(tmp_path: Path) -> None:
    model = sl.LinearRegressor(sl.rules.AdaGrad(0.1), L.MultiSquared())
    labels = [{"u": 1.0, "v": 2.0}, {"u": 0.0, "v": -1.0}]
    trained(model, labels)
    assert_same_future(model, reloaded(model, tmp_path / "m"), labels)


def small() -> bytes:
    model = trained(sl.LinearClassifier(sl.rules.AdaGrad(0.1)), ["a", "b"], 5)
    return model_file.pack(model.state())


SMALL = small()


def test_flipped_bits_are_detected() -> None:
    for place in range(len(SMALL)):
        damaged = bytearray(SMALL)
        damaged[place] ^= 1 << (place % 8)
        with pytest.raises(sl.ModelFileError):
            model_file.unpack(bytes(damaged))


def test_truncated_files_are_detected() -> None:
    for length in range(len(SMALL)):
        with pytest.raises(sl.ModelFileError):
            model_file.unpack(SMALL[:length])


@given(st.binary(max_size=200), st.integers(0, len(SMALL)), st.integers(0, 20))
def test_random_damage_is_detected(new: bytes, place: int, dropped: int) -> None:
    damaged = SMALL[:place] + new + SMALL[place + dropped :]
    if damaged != SMALL:
        with pytest.raises(sl.ModelFileError):
            model_file.unpack(damaged)


def signed(body: bytes) -> bytes:
    return body + hashlib.blake2b(body, digest_size=model_file.DIGEST).digest()


def test_newer_file_asks_for_an_upgrade() -> None:
    start = len(model_file.MAGIC)
    newer = model_file.HEAD.pack(model_file.VERSION + 1, 3)
    body = SMALL[:start] + newer + SMALL[start + model_file.HEAD.size : -model_file.DIGEST]
    with pytest.raises(sl.ModelFileError, match="upgrade"):
        model_file.unpack(signed(body))


@pytest.mark.parametrize(
    "header", [b"", b"{", b"\xff", b"[" * 100_000, b'{"$array": ["<f8", [9]]}']
)
def test_intact_file_with_another_header_is_refused(header: bytes) -> None:
    head = model_file.HEAD.pack(model_file.VERSION, len(header))
    with pytest.raises(sl.ModelFileError):
        model_file.unpack(signed(model_file.MAGIC + head + header))


@pytest.mark.parametrize(
    "data", [None, [], {}, {"estimator": "LinearClassifier"}, {"estimator": 1}]
)
def test_intact_file_without_a_model_is_refused(data: Any, tmp_path: Path) -> None:
    model_file.write(tmp_path / "m", data)
    with pytest.raises(sl.ModelFileError):
        sl.LinearClassifier.load(tmp_path / "m")


def test_nothing_in_a_file_is_pickled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("pickle was used")

    model = trained(sl.LinearClassifier(), ["a", "b"])
    for name in ("load", "loads", "dump", "dumps"):
        monkeypatch.setattr(pickle, name, refuse)
    reloaded(model, tmp_path / "m")
    assert b"numpy" not in (tmp_path / "m").read_bytes()


def test_equal_models_have_equal_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        trained(sl.LinearClassifier(class_weight={"a": 2.0}), ["a", "b"]).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    sl.LinearClassifier.load(tmp_path / "one").save(tmp_path / "three")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()


def test_unsupported_label_type_is_refused(tmp_path: Path) -> None:
    model = trained(sl.LinearClassifier(), [frozenset("a"), frozenset("b")])
    with pytest.raises(sl.ModelFileError, match="pickle"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_loading_with_another_class_names_the_right_one(tmp_path: Path) -> None:
    sl.PegasosClassifier().save(tmp_path / "m")
    assert isinstance(sl.LinearClassifier.load(tmp_path / "m"), sl.PegasosClassifier)
    with pytest.raises(sl.ModelFileError, match=r"PegasosClassifier\.load"):
        sl.LinearRegressor.load(tmp_path / "m")


def test_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    model = trained(sl.LinearClassifier(), ["a", "b"])
    model.save(path)
    old = path.read_bytes()
    trained(model, ["a", "b"])

    def full(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("part", ["cells", "pi", "totals", "members"])
def test_mixture_refuses_state_of_another_shape(part: str) -> None:
    model = sl.LinearClassifier()
    model.learn_one({"a": 1.0}, True)
    state = model.state(features=False)
    rule = state["learner"]["weights"]["rule"]
    rule[part] = np.zeros((5, 99)) if part == "cells" else [*rule[part], rule[part][0]]
    with pytest.raises(sl.ModelFileError, match="state"):
        sl.LinearClassifier().restore(state)


def test_full_disk_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        model_file.write(tmp_path / "m", {})
    assert caught.value.filename == str(tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "value",
    [
        {1: "a", (2, b"x"): [None, True]},
        {"$array": 1, "plain": {"$dict": 2}},
        {"nested": {5: {6: np.arange(3)}}},
        np.float32(0.5),
        [np.int64(3), np.True_, "text"],
        {"": []},
    ],
)
def test_any_plain_data_is_read_back(value: Any) -> None:
    assert plain(model_file.unpack(model_file.pack(value))) == plain(value)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
