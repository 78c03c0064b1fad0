"""Labels in the daemon: they close, and what is published keeps its meaning."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from streamlearn import config
from streamlearn.cli.main import main
from streamlearn.daemon import build
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.daemon.label_monitor import UNLABELED_RUN
from streamlearn.daemon.process.exits import Exit
from streamlearn.estimators import checkpoints, model_file
from streamlearn.estimators.classifier import LinearClassifier
from tests.support.loops import MemoryLog

if TYPE_CHECKING:
    from pathlib import Path

    from streamlearn.daemon.loop import Loop

TEXTS = ("no", "yes", "maybe")


def stream(n: int, labels: tuple[Any, ...] = (False, True), stray: Any = "false") -> list[bytes]:
    """Events with a stray label late in it."""
    draw = random.Random(3)
    found = []
    for i in range(n):
        event: dict[str, Any] = {"id": f"e{i}", "ad": f"a{draw.randrange(9)}", "x": draw.random()}
        if i % 7:
            event["y"] = stray if i == 5 * n // 6 else labels[draw.randrange(len(labels))]
        found.append(json.dumps(event).encode())
    return found


class Daemon:
    """A daemon over a file, with a checkpoint."""

    def __init__(self, directory: Path, lines: list[bytes], **changes: Any) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.log = directory, MemoryLog()
        path = directory / "events.jsonl"
        path.write_bytes(b"\n".join(lines) + b"\n")
        self.given: dict[str, Any] = {
            "source": {"kind": "file", "paths": [str(path)]},
            "format.label": "y",
            "format.id": "id",
            "learner": [{"name": "it"}],
            "predictions.path": str(directory / "predictions.jsonl"),
            "dead_letters.path": str(directory / "dead.jsonl"),
            "checkpoint.path": str(directory / "state"),
            "telemetry.port": 0,
            "regret.enabled": False,
            "run.until": "end",
            **changes,
        }

    code: int

    def run(self, **changes: Any) -> Loop:
        settings = config.parse("", overrides={**self.given, **changes})
        self.loop = build.loop(settings, self.log)
        self.code = self.loop.run()
        return self.loop

    @property
    def model(self) -> LinearClassifier:
        """Of its first learner."""
        found = next(iter(self.loop.pipeline.learners)).model
        assert isinstance(found, LinearClassifier)
        return found

    def published(self) -> list[dict[str, Any]]:
        text = (self.directory / "predictions.jsonl").read_text()
        return [json.loads(line)["value"] for line in text.splitlines()]

    def dead(self) -> list[dict[str, Any]]:
        text = (self.directory / "dead.jsonl").read_text()
        return [json.loads(line)["headers"] for line in text.splitlines()]

    def state(self) -> Any:
        """All that is kept of labels and of the model."""
        found = checkpoints.newest(self.directory / "state")
        assert found is not None
        data = found[1]
        kept = ("decoder", "labels", "join", "learners", "counts", "invalid_limit")
        return {name: model_file.pack(data[name]) for name in kept if name in data}

    def board(self, name: str) -> dict[tuple[str, ...], float]:
        [watching] = [
            one for one in self.loop.pipeline.observers if isinstance(one, TelemetryCollector)
        ]
        return watching.board.values(name)


@pytest.mark.parametrize("labels", [(False, True), ("no", "yes"), TEXTS])
def test_closing_of_labels_does_not_depend_on_batches_and_restarts(
    tmp_path: Path, labels: Any
) -> None:
    """Batches of every size around the event that closes the labels, and a restart after each."""
    lines = stream(60, labels, stray="other")
    closing = {"format.label_warmup": 20}
    whole = Daemon(tmp_path / "whole", lines, **closing)
    whole.run()
    assert whole.code == Exit.OK
    [closed] = whole.log.lines("labels closed")
    assert set(closed["labels"]) == set(labels)
    last = max(labels) if isinstance(labels[0], bool) else closed["labels"][-1]
    assert closed["positive"] == (None if labels is TEXTS else last)
    assert closed["after_events"] == (20 if isinstance(labels[0], str) else 3)
    probable = [("probability" in told) or ("probabilities" in told) for told in whole.published()]
    assert probable == sorted(probable)  # once there is one there always is
    assert 0 < sum(probable) < 60
    for size in range(1, 30):
        source = {**whole.given["source"], "batch": size}
        one = Daemon(tmp_path / f"{size}", lines, **closing)
        (tmp_path / f"{size}" / "events.jsonl").unlink()
        one.given["source"] = source
        one.run(**{"run.until": str(size)})
        one.run()
        assert one.published() == whole.published()
        mine, other = one.state(), whole.state()
        assert mine.keys() == other.keys()
        for name in mine:
            assert mine[name] == other[name] or name == "invalid_limit", (size, name)
        assert len(one.log.lines("labels closed")) == 1


def test_stray_label_is_a_dead_letter_and_does_not_change_learning(tmp_path: Path) -> None:
    lines = stream(3000, stray="other")
    stray = Daemon(tmp_path / "stray", lines)
    stray.run()
    clean = Daemon(tmp_path / "clean", [line for line in lines if b"other" not in line])
    clean.run()
    assert (stray.code, clean.code) == (Exit.OK, Exit.OK)
    assert stray.published() == clean.published()
    [letter] = stray.dead()
    assert letter["streamlearn.code"] == "label"
    assert letter["streamlearn.field"] == "y"
    assert stray.board("invalid_records_total")["label",] == 1
    assert stray.log.lines("invalid record")[0]["code"] == "label"
    spelled = Daemon(tmp_path / "spelled", stream(3000, stray="False"))
    spelled.run()
    assert spelled.dead() == []


def test_open_label_set_accepts_labels_at_any_time(tmp_path: Path) -> None:
    opened = Daemon(tmp_path, stream(300), **{"format.labels": "open"})
    opened.run()
    assert opened.code == Exit.OK
    assert opened.dead() == []
    assert opened.log.lines("labels closed") == []
    published = opened.published()
    assert not any("probability" in one for one in published)
    assert set(published[-1]["probabilities"]) == {
        "false",
        "true",
    }  # two share their text
    assert sum(published[-1]["probabilities"].values()) == pytest.approx(1.0)


def test_number_of_labels_is_limited(tmp_path: Path) -> None:
    lines = [json.dumps({"x": i % 3, "y": f"label {i}"}).encode() for i in range(400)]
    bounded = Daemon(
        tmp_path, lines, **{"format.max_classes": 10, "dead_letters.max_invalid_ratio": 1.0}
    )
    bounded.run()
    assert bounded.code == Exit.OK
    assert len(bounded.model.weights) == 10
    assert bounded.board("invalid_records_total")["label",] == 390


def test_declared_labels_can_be_added_later(tmp_path: Path) -> None:
    kept = Daemon(tmp_path, stream(200, ("no", "yes"), stray="no"), **{"format.label_warmup": 20})
    kept.run()
    more = {"format.labels": ["no", "yes", "maybe"]}
    kept.run(**{"format.labels": ["no", "maybe"]})
    assert kept.code == Exit.USAGE
    (tmp_path / "events.jsonl").write_bytes(
        b"\n".join(
            [*stream(200, ("no", "yes"), stray="no"), *stream(90, ("maybe", "no"), stray="no")]
        )
        + b"\n"
    )
    loop = kept.run(**more)
    assert kept.code == Exit.OK
    assert loop.pipeline.event_reader.labels.labels == ["no", "yes", "maybe"]
    assert kept.dead() == []
    last = kept.published()[-1]
    assert set(last["probabilities"]) == {"no", "yes", "maybe"}


@pytest.mark.parametrize(
    ("first", "then", "event"),
    [
        ({"format.label_warmup": 20}, {"format.label_warmup": 30}, None),
        ({"format.label_warmup": 20}, {"format.labels": ["maybe", "no"]}, None),
        ({"format.labels": ["no", "maybe"]}, {"format.labels": ["no", "maybe"]}, None),
        ({"format.labels": ["no", "maybe"]}, {"format.labels": [*TEXTS]}, "labels changed"),
        ({"format.labels": ["no", "maybe"]}, {"format.labels": "open"}, "labels changed"),
        ({"format.labels": "open"}, {"format.label_warmup": 20}, "labels closed"),
        ({"format.label_warmup": 9999}, {"format.label_warmup": 20}, "labels closed"),
    ],
)
def test_change_of_declared_labels_is_logged(
    first: dict[str, Any], then: dict[str, Any], event: str | None, tmp_path: Path
) -> None:
    """Where `probability` becomes that of another label, nobody has to find out by himself."""
    one = Daemon(tmp_path, stream(100, ("no", "maybe"), stray="no"))
    one.run(**first)
    one.log = MemoryLog()
    loop = one.run(**then)
    assert one.code == Exit.OK
    found = [*one.log.lines("labels changed"), *one.log.lines("labels closed")]
    if event is None:
        assert found == []
    else:
        [line] = found
        assert [line] == one.log.lines(event)
        assert line["positive"] == loop.pipeline.event_reader.labels.positive


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"format.label_warmup": 20}, {"format.labels": ["no", "maybe"]}),
        ({"format.labels": ["no", "maybe"]}, {"format.labels": ["maybe", "no"]}),
    ],
)
def test_another_positive_label_is_refused(
    first: dict[str, Any], then: dict[str, Any], tmp_path: Path
) -> None:
    """`probability` would be that of the other label, and scores have the other sign."""
    one = Daemon(tmp_path, stream(100, ("no", "maybe"), stray="no"))
    one.run(**first)
    assert one.code == Exit.OK
    one.run(**then)
    assert one.code == Exit.USAGE
    [line] = one.log.lines("stopped")[1:]
    assert json.dumps(one.model.labels) not in line["reason"]
    assert (
        f"format.labels = {json.dumps(kept_labels(one), separators=(',', ':'))}" in line["reason"]
    )


def kept_labels(one: Daemon) -> list[Any]:
    """Return the labels of the learner in the checkpoint."""
    found: list[Any] = checkpoints.model(one.directory / "state", "it")["state"]["labels"]
    return found


@pytest.mark.parametrize(
    ("labels", "changes"),
    [
        (("spam", "ham"), {"format.labels": ["ham", "spam"]}),
        (("ham", "spam"), {"format.labels": ["ham", "spam"]}),
        (("ham", "spam"), {"format.label_warmup": 9}),
        (("0", "1"), {"format.label_warmup": 9}),
        (("1", "0"), {"format.label_warmup": 9}),
        (("true", "false"), {"format.label_warmup": 9}),
        ((2, 1), {"format.label_warmup": 9}),
    ],
)
def test_the_positive_label_of_the_stream_is_that_of_the_model(
    labels: tuple[Any, ...], changes: dict[str, Any], tmp_path: Path
) -> None:
    """What serves, exports or measures a model has no other meaning of its score."""
    draw = random.Random(4)
    lines = [
        json.dumps({"x": draw.random(), "y": labels[i if i < 2 else draw.randrange(2)]}).encode()
        for i in range(60)
    ]
    one = Daemon(tmp_path, lines, **changes)
    positive = one.run().pipeline.event_reader.labels.positive
    assert one.code == Exit.OK
    assert one.model.labels[1] == positive
    last = one.published()[-1]
    assert (last["probability"] > 0.5) == (last["prediction"] == positive)
    again = Daemon(tmp_path, [*lines, *lines], **changes)
    again.run()
    assert again.code == Exit.OK
    assert again.model.labels[1] == positive


def test_a_learner_that_starts_later_has_the_same_positive_label(tmp_path: Path) -> None:
    lines = [json.dumps({"x": i, "y": ("spam", "ham")[i % 2]}).encode() for i in range(20)]
    one = Daemon(tmp_path, lines, **{"format.label_warmup": 9})
    one.run()
    rest = [json.dumps({"x": i, "y": ("ham", "spam")[i % 2]}).encode() for i in range(20)]
    two = Daemon(tmp_path, [*lines, *rest], **{"format.label_warmup": 9})
    loop = two.run(learner=[{"name": "it"}, {"name": "later"}])
    assert two.code == Exit.OK
    assert [one.model.outputs for one in loop.pipeline.learners] == [["spam", "ham"]] * 2


def test_a_learner_that_starts_from_a_file_keeps_its_positive_label(tmp_path: Path) -> None:
    model, path = LinearClassifier(), str(tmp_path / "a.model")
    for label in ("spam", "ham", "ham"):
        model.learn_one({"x": 1.0}, label)
    model.save(path)
    lines = [json.dumps({"x": i, "y": ("ham", "spam")[i % 2]}).encode() for i in range(20)]
    start = {"learner": [{"name": "it", "start": path}], "features.max_bytes": 0}
    one = Daemon(tmp_path, lines, **start, **{"format.label_warmup": 9})
    assert one.run().pipeline.event_reader.labels.positive == "ham"
    other = Daemon(tmp_path / "other", lines, **start, **{"format.labels": ["ham", "spam"]})
    other.run()
    assert other.code == Exit.USAGE


# What is published: a contract


TWO = {"format.labels": ["no", "yes"]}
CASES: dict[str, tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]] = {
    "two": (TWO, ("no", "yes"), {"prediction": str, "probability": float}),
    "booleans": ({}, (False, True), {"prediction": bool, "probability": float}),
    "positive": ({"format.positive": 3}, (1, 2, 3), {"prediction": bool, "probability": float}),
    "three": (
        {"format.labels": list(TEXTS)},
        TEXTS,
        {"prediction": str, "probabilities": dict[str, float]},
    ),
    "open": (
        {"format.labels": "open"},
        (1, 2),
        {"prediction": int, "probabilities": dict[str, float]},
    ),
    "no probability": (
        {**TWO, "learner": [{"name": "it", "loss": "Hinge()", "rule": "DualAveraging()"}]},
        ("no", "yes"),
        {"prediction": str},
    ),
    "not closed": ({}, ("a", "b"), {"prediction": str}),
    "regression": (
        {"learner": [{"name": "it", "task": "regression"}]},
        (0.5, 2.5),
        {"prediction": float, "value": float},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_schema_of_predictions(case: str, tmp_path: Path) -> None:
    """Fields and their types, for each kind of labels; others are not there."""
    changes, labels, fields = CASES[case]
    one = Daemon(tmp_path, stream(120, labels, stray=labels[0]), **changes)
    one.run()
    assert one.code == Exit.OK
    always = {"id": str, "learner": str, "step": int}
    records = one.published()[60:]
    assert len(records) == 60
    for record in records:
        assert record.keys() == (always | fields).keys()
        for name, kind in (always | fields).items():
            msgspec.convert(record[name], kind, strict=True)
        if "probability" in record:
            assert 0.0 <= record["probability"] <= 1.0
        if "probabilities" in record:
            shares = record["probabilities"]
            assert sum(shares.values()) == pytest.approx(1.0)
            assert shares[msgspec.json.encode(record["prediction"]).decode().strip('"')] == max(
                shares.values()
            )
    first = one.published()[0]  # before any label
    assert first["prediction"] is None or case == "regression"
    assert not first.keys() & {"probability", "probabilities"}
    lines = (tmp_path / "predictions.jsonl").read_text().splitlines()
    assert all(json.loads(line)["headers"]["schema"] == "1" for line in lines)


def test_positive_label_is_shared_by_all_learners(tmp_path: Path) -> None:
    """A learner that begins later may meet the labels in another order."""
    lines = [*stream(100, ("no",), stray="no"), *stream(100, ("yes",), stray="yes")]
    both = {"format.labels": ["yes", "no"], "predictions.learner": "late"}
    one = Daemon(tmp_path, lines, **both, learner=[{"name": "late"}])
    one.run()
    shares = one.model.predict_proba_one({"ad": "a1", "x": 0.5})
    assert one.model.labels == ["yes", "no"]
    assert one.loop.pipeline.event_reader.labels.positive == "no"
    last = one.published()[-1]
    assert last["prediction"] == "yes"
    assert last["probability"] < 0.5
    assert shares["no"] < 0.5


def test_predict_command_has_the_fields_of_the_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fields of the command are those of the daemon."""
    lines = stream(100, ("no", "yes"), stray="no")
    for name, changes in (
        ("two", {"format.labels": ["yes", "no"]}),
        ("open", {"format.labels": "open"}),
    ):
        one = Daemon(tmp_path / name, lines, **changes)
        one.run()
        events = str(tmp_path / name / "events.jsonl")
        capsys.readouterr()
        command = ["predict", str(tmp_path / name / "state"), events, "--id", "id", "--label", "y"]
        assert main([*command, "--json"]) == 0
        predictions = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        model = one.model
        event = json.loads(lines[5])
        features = {"ad": event["ad"], "x": event["x"]}
        share = model.predict_proba_one(features)["no" if name == "two" else model.labels[-1]]
        assert predictions[5]["probability"] == pytest.approx(share)
        assert "probabilities" not in predictions[5]


# Delayed labels


def pairs(n: int) -> list[bytes]:
    """Events, and their labels some records later."""
    draw, found = random.Random(5), []
    for i in range(n):
        found.append({"id": f"e{i}", "ad": f"a{draw.randrange(5)}"})
        if i > 3:
            found.append({"id": f"e{i - 3}", "y": "other" if i == n - 9 else TEXTS[i % 2]})
    return [json.dumps(one).encode() for one in found]


@pytest.mark.parametrize("size", [1, 2, 5, 18, 19, 20, 21, 22, 200])
def test_delayed_label_set_closes(size: int, tmp_path: Path) -> None:
    late = {"labels.hold_events": 50, "format.label_warmup": 8}
    whole = Daemon(tmp_path / "whole", pairs(40), **late)
    whole.run()
    assert whole.code == Exit.OK
    [line] = whole.log.lines("labels closed")
    assert (line["labels"], line["after_events"]) == (["no", "yes"], 8)
    [letter] = whole.dead()
    assert letter["streamlearn.code"] == "label"
    published = whole.published()
    assert sum("probability" in one for one in published) == 40 - 12
    one = Daemon(tmp_path / "cut", pairs(40), **late)
    (tmp_path / "cut" / "events.jsonl").unlink()
    one.given["source"] = {**whole.given["source"], "batch": size}
    one.run(**{"run.until": str(size)})
    one.run()
    assert one.published() == published
    assert one.state()["decoder"] == whole.state()["decoder"]


@pytest.mark.parametrize("topic", [None, "labels"])
def test_delayed_label_without_an_id_is_invalid(topic: str | None, tmp_path: Path) -> None:
    """Its record is invalid, so nothing of it stays: not its label, not its names."""
    changes: dict[str, Any] = {"labels.hold_events": 50, "format.label_warmup": 20}
    lines = pairs(40)
    stray = [json.dumps({"y": "stray"}).encode()]
    if topic is not None:
        labels = [line for line in lines if b'"y"' in line]
        (tmp_path / "labels.jsonl").write_bytes(
            b"\n".join([*labels[:4], *stray, *labels[4:]]) + b"\n"
        )
        lines, stray = [line for line in lines if b'"y"' not in line], [b'{"name": "new"}']
        paths = [str(tmp_path / "events.jsonl"), str(tmp_path / "labels.jsonl")]
        changes |= {"labels.topic": paths[1], "source.kind": "file", "source.paths": paths}
    one = Daemon(tmp_path, [*lines[:9], *stray, *lines[9:]], **changes)
    if topic is not None:
        del one.given["source"]
    loop = one.run()
    assert one.code == Exit.OK
    [line] = one.log.lines("labels closed")
    assert set(line["labels"]) == {"no", "yes"}
    assert {letter["streamlearn.code"] for letter in one.dead()} == {"id", "label"}
    assert "name=new" not in loop.pipeline.learners.reader.names()


# Labels that never come


@pytest.mark.parametrize("n", [3, UNLABELED_RUN + 1])
@pytest.mark.parametrize("late", [False, True])
def test_missing_positive_value_is_logged(n: int, late: bool, tmp_path: Path) -> None:
    """All events are learned as negatives, and the loss looks splendid."""
    lines = [json.dumps({"id": i, "x": i % 9}).encode() for i in range(n)]
    labels = [json.dumps({"id": i, "y": i % 2 == 0}).encode() for i in range(n)]
    if not late:
        labels = [a[:-1] + b"," + b[1:] for a, b in zip(lines, labels, strict=True)]
        lines = []
    changes: dict[str, Any] = {"labels.hold_events": 5000} if late else {}
    one = Daemon(tmp_path, [*lines, *labels], **{"format.positive": "true", **changes})
    one.run()
    assert one.code == Exit.OK
    [line] = one.log.lines("no positive labels")
    assert line["positive"] == ["true"]
    assert line["labels"] == [True, False]
    one.log = MemoryLog()
    right = Daemon(tmp_path / "right", [*lines, *labels], **{"format.positive": True, **changes})
    right.run()
    assert right.log.lines("no positive labels") == []
    some = Daemon(tmp_path / "some", [*lines, *labels], **{"format.positive": [5, True], **changes})
    some.run()
    [line] = some.log.lines("no positive labels")
    assert line["positive"] == [5]
    assert line["labels"] == [False]


def test_missing_label_field_is_logged(tmp_path: Path) -> None:
    lines = [
        json.dumps({"user": i % 9, "clicked": i % 2 == 0}).encode()
        for i in range(2 * UNLABELED_RUN)
    ]
    one = Daemon(tmp_path, lines, **{"format.label": "click"})
    one.run()
    assert one.code == Exit.NOTHING_LEARNED
    assert int(one.code) == 13
    [warning] = one.log.lines("no labels")
    assert warning["level"] == "warning"
    assert warning["field"] == "click"
    assert warning["similar"] == ["clicked"]
    assert UNLABELED_RUN <= warning["events"] <= 2 * UNLABELED_RUN
    assert one.board("events_since_label") == {(): 2 * UNLABELED_RUN}
    assert "clicked" in one.log.lines("stopped")[0]["reason"]


def test_renamed_label_field_is_logged(tmp_path: Path) -> None:
    lines = stream(300)
    renamed = [line.replace(b'"y"', b'"z"') for line in stream(UNLABELED_RUN + 5)]
    one = Daemon(tmp_path, [*lines, *renamed])
    one.run()
    assert one.code == Exit.OK  # something was learned
    assert len(one.log.lines("no labels")) == 1
    again = Daemon(tmp_path / "again", [*renamed, *lines])
    again.run()
    assert again.board("events_since_label")[()] < UNLABELED_RUN


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([], Exit.OK),
        ([b"{"] * 20, Exit.NOTHING_LEARNED),
        ([b'{"x": 1}'] * 20, Exit.NOTHING_LEARNED),
    ],
)
def test_exit_code_of_a_run_that_learned_nothing(
    lines: list[bytes], code: Exit, tmp_path: Path
) -> None:
    one = Daemon(tmp_path, lines or [b""])
    one.run()
    assert one.code == code
    assert one.log.lines("no labels") == []  # too few to say


def test_stopped_run_that_learned_nothing_succeeds(tmp_path: Path) -> None:
    """A daemon may be stopped between two records with labels."""
    one = Daemon(tmp_path, [b'{"x": 1}'] * 20)
    del one.given["run.until"]
    loop = build.loop(config.parse("", overrides={**one.given, "source.follow": True}), one.log)
    read = loop.pipeline.process

    def process(records: Any) -> None:
        read(records)
        loop.stop_requested.set()

    loop.pipeline.process = process  # type: ignore[method-assign]
    assert loop.run() == Exit.OK
    assert loop.pipeline.counts.events == 20


def test_run_that_waits_for_delayed_labels_succeeds(tmp_path: Path) -> None:
    lines = [json.dumps({"id": i, "x": 1}).encode() for i in range(UNLABELED_RUN + 50)]
    one = Daemon(tmp_path, lines, **{"labels.hold_events": 5000})
    one.run()
    assert one.code == Exit.OK
    assert one.log.lines("no labels") == []
    assert one.board("events_since_label") == {}


def test_a_table_without_the_label_gives_no_advice_to_skip_records(tmp_path: Path) -> None:
    one = Daemon(tmp_path, [b"x,z", b"1,2", b"3,4"], **{"format.kind": "csv"})
    one.given.pop("format.id")
    one.run()
    assert one.code == Exit.USAGE
    reason = one.log.lines("stopped")[0]["reason"]
    assert "events.jsonl" in reason
    assert "'y'" in reason
    assert "skip-to" not in reason
    assert "batch" not in reason


def test_labels_spelled_alike_are_logged(tmp_path: Path) -> None:
    lines = stream(300, ("yes", "Yes", "NO", "no"), stray="yes ")
    one = Daemon(tmp_path / "several", lines)
    one.run()
    groups = [
        set(group) for line in one.log.lines("labels spelled alike") for group in line["labels"]
    ]
    assert {"yes", "Yes"} <= groups[0] | groups[1]
    assert {"yes", "Yes", "yes "} in groups
    assert {"no", "NO"} in groups
    declared = Daemon(tmp_path / "declared", lines, **{"format.positive": ["yes", "Yes", "yes "]})
    declared.run()
    assert declared.log.lines("labels spelled alike") == []
