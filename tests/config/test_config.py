"""Configuration: all that is wrong is told at once, by its path; secrets are never printed."""

from __future__ import annotations

import contextlib
import json
import tomllib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn import config
from streamlearn.config import ConfigError, plan, reading
from streamlearn.daemon import build
from streamlearn.stream import Fields

if TYPE_CHECKING:
    from pathlib import Path

SYNTHETIC = '[source]\nkind = "synthetic"\nevents = 100\n'
KAFKA = """
[source]
kind = "kafka"
bootstrap = "localhost:9092"
topics = ["clicks"]
[format]
label = "clicked"
[checkpoint]
path = "state"
"""
FULL = """
[source]
kind = "kafka"
bootstrap = "${BROKERS:-localhost:9092}"
topics = ["clicks", "views"]
start = 2026-01-31T00:00:00Z
client = "confluent"
[source.security]
protocol = "SASL_SSL"
mechanism = "SCRAM-SHA-512"
username = "reader"
password = "${PASSWORD}"
[format]
kind = "csv"
label = "clicked"
labels = [0, 1]
positive = 1
columns = ["clicked", "user"]
interactions = [["user", "ad"]]
[features]
kind = "hashing"
bits = 18
[[learner]]
name = "few"
rule = "DualAveraging(gamma=5.0)"
penalty = "L1(1e-3)"
class_weight = {1 = 2.0}
[[learner]]
name = "svm"
model = "PegasosClassifier(l2=1e-4)"
[predictions]
topic = "predictions"
learner = "best"
[predictions.best]
by = "error"
[dead_letters]
topic = "dead"
[checkpoint]
path = "state"
[telemetry]
port = "${PORT:-9465}"
token = "${PASSWORD}"
"""


def problems(text: str, **options: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as refusal:
        config.parse(text, "clicks.toml", **options)
    assert str(refusal.value).startswith("clicks.toml: ")
    found: dict[str, str] = {}
    for path, said in refusal.value.problems:
        assert (f"{path}: {said}" if path else said) in str(refusal.value)
        found[path] = f"{found[path]}; {said}" if path in found else said
    return found


def test_defaults_are_a_whole_configuration() -> None:
    read = config.parse(SYNTHETIC)
    assert [learner.name for learner in read.learners] == ["default"]
    assert isinstance(config.estimators(read)["default"], sl.LinearClassifier)
    assert read.checkpoint is None
    assert read.format.label == "clicked"


def test_every_key_is_read() -> None:
    read = config.parse(FULL, environ={"PASSWORD": "hunter2", "PORT": "9999"})
    assert isinstance(read.source, config.KafkaSourceConfig)
    assert read.source.bootstrap == "localhost:9092"
    assert read.source.start == "2026-01-31T00:00:00+00:00"
    assert read.source.security.password == config.Secret("hunter2")
    assert read.telemetry.port == 9999
    few, svm = config.estimators(read).values()
    assert few.rule == sl.rules.DualAveraging(5.0)
    assert few.penalty == sl.penalties.L1(1e-3)
    assert few.class_weight == {1: 2.0}
    assert isinstance(svm, sl.PegasosClassifier)
    assert config.fields(read.format) == Fields(
        label="clicked", labels=(0, 1), positive=(1,), warmup=1000, max_classes=100
    )
    for model in (few, svm):
        assert model.features == sl.Hashing(18, [("user", "ad")])


def test_secrets_are_in_no_printed_form() -> None:
    read = config.parse(FULL, environ={"PASSWORD": "hunter2"})
    shown = plan.text(read)
    forms = [repr(read), str(read), f"{read.source}", shown, json.dumps(plan.plain(read))]
    forms += [str(msgspec.structs.asdict(read))]
    assert not [form for form in forms if "hunter2" in form]
    assert 'password = "***"' in shown
    # nor when something is wrong with it, or where it stands by mistake
    wrong = {
        "source.topics": ["${PASSWORD}", 5],
        "source.security.password": 5,
        "telemetry.port": "${PASSWORD}",
        "log.level": "${PASSWORD}",
    }
    with pytest.raises(ConfigError) as refusal:
        config.parse(FULL, overrides=wrong, environ={"PASSWORD": "hunter2"})
    assert len(refusal.value.problems) == 4
    assert "hunter2" not in str(refusal.value)


def test_the_plan_is_read_back() -> None:
    read = config.parse(FULL, environ={"PASSWORD": "x"})
    again = config.parse(plan.text(read), environ={})
    assert plan.plain(again) == plan.plain(read)
    assert plan.text(again) == plan.text(read)
    tomllib.loads(plan.text(config.parse(SYNTHETIC)))


def test_all_problems_are_told_at_once() -> None:
    found = problems(
        """
        [sorce]
        [source]
        kind = "kafka"
        bootstrap = 5
        topcis = ["clicks"]
        [format]
        label = "clicked"
        weight = "clicked"
        [[learner]]
        name = "a b"
        rule = "Pegaso"
        [[learner]]
        name = "x"
        rule = "Pegasos"
        penalty = "L1(1e-3)"
        [telemetry]
        token = "${TOKEN}"
        [checkpoint]
        path = "state"
        every_events = "many"
        keep = 0
        """,
        environ={},
    )
    assert set(found) == {
        "sorce",
        "source.bootstrap",
        "source.topcis",
        "source.topics",
        "format.weight",
        "learner[0].name",
        "learner[0].rule",
        "learner[1].rule",
        "telemetry.token",
        "checkpoint.every_events",
        "checkpoint.keep",
    }
    assert found["sorce"] == "unknown key; did you mean source?"
    assert found["checkpoint.keep"] == "expected a whole number >= 2, got 0"
    assert found["checkpoint.every_events"] == 'expected a whole number >= 1, got "many"'
    assert "did you mean Pegasos?" in found["learner[0].rule"]
    assert "use L2(strength > 0)" in found["learner[1].rule"]
    assert "TOKEN is not set" in found["telemetry.token"]


@pytest.mark.parametrize(
    ("base", "change", "path", "said"),
    [
        (SYNTHETIC, {"source.kind": "kafak"}, "source.kind", "did you mean kafka?"),
        (SYNTHETIC, {"source": 5}, "source", "expected a table, got 5"),
        (SYNTHETIC, {"learner": {}}, "learner", "expected tables [[learner]]"),
        (SYNTHETIC, {"learner": [5]}, "learner[0]", "expected a table"),
        (SYNTHETIC, {"source.seed": True}, "source.seed", "got true"),
        (SYNTHETIC, {"source.seed": 2**70}, "source.seed", "expected a whole number"),
        (SYNTHETIC, {"regret.cpu_share": float("nan")}, "regret.cpu_share", "a number > 0"),
        (SYNTHETIC, {"run.until": "someday"}, "run.until", '"end", a number of events, or a time'),
        (SYNTHETIC, {"run.until": "0"}, "run.until", "at least one"),
        (
            SYNTHETIC,
            {"run": {"until": "end"}, "source": {"kind": "synthetic"}},
            "run.until",
            "never ends",
        ),
        (SYNTHETIC, {"source": {"kind": "synthetic", "drift": True}}, "source.drift", "`events`"),
        (
            SYNTHETIC,
            {"features": {"max_names": 5, "kind": "hashing"}},
            "features.max_names",
            "names",
        ),
        (
            SYNTHETIC,
            {"features": {"max_bytes": 50_000, "kind": "hashing"}},
            "features.max_bytes",
            "names",
        ),
        (SYNTHETIC, {"features.max_bytes": 5}, "features.max_bytes", "at least 10000"),
        (
            SYNTHETIC,
            {
                "source": {"kind": "file", "paths": ["*.csv"], "follow": True},
                "format": {"kind": "csv", "label": "y"},
            },
            "format.columns",
            "followed glob",
        ),
        (SYNTHETIC, {"features.bits": 31}, "features.bits", "<= 30"),
        (SYNTHETIC, {"predictions.topic": "out"}, "predictions.topic", "predictions.path"),
        (SYNTHETIC, {"predictions.learner": "svm"}, "predictions.learner", "valid: default, best"),
        (SYNTHETIC, {"predictions.learner": "best"}, "predictions.best.by", "missing"),
        (SYNTHETIC, {"predictions.best": {"by": "error"}}, "predictions.learner", '"best"'),
        (
            SYNTHETIC,
            {
                "predictions": {"learner": "best", "best": {"by": "log_loss"}},
                "learner": [{"name": "a"}, {"name": "svm", "loss": "Hinge()"}],
            },
            "predictions.best.by",
            "'svm' has no probability",
        ),
        (
            SYNTHETIC,
            {"predictions": {"learner": "best", "best": {"by": "squared"}}},
            "predictions.best.by",
            "needs numbers",
        ),
        (SYNTHETIC, {"learner": [{"name": "a"}] * 2}, "learner[1].name", "taken"),
        (SYNTHETIC, {"learner": [{"name": "best"}]}, "learner[0].name", "use another"),
        (
            SYNTHETIC,
            {"learner": [{"name": "a", "rule": "Pegasos()", "model": "PegasosClassifier()"}]},
            "learner[0].rule",
            "is a part of `model`",
        ),
        (
            SYNTHETIC,
            {"learner": [{"name": "a", "model": "PegasosRegressor"}]},
            "learner[0].model",
            "",
        ),
        (
            SYNTHETIC,
            {"learner": [{"name": "a", "model": "PegasosClassifier(features=Hashing(3))"}]},
            "learner[0].model",
            "[features]",
        ),
        (
            SYNTHETIC,
            {"learner": [{"name": "a", "start": "none.model"}]},
            "learner[0].start",
            "no file",
        ),
        (
            SYNTHETIC,
            {"learner": [{"name": "a", "loss": "Squared()"}]},
            "learner[0].loss",
            "LinearRegressor",
        ),
        (
            SYNTHETIC,
            {"learner": [{"name": "a", "task": "regression"}, {"name": "b"}]},
            "learner",
            "the same `task`",
        ),
        (
            SYNTHETIC,
            {"format.positive": 1, "learner": [{"name": "a", "task": "regression"}]},
            "format.positive",
            "learns numbers",
        ),
        (SYNTHETIC, {"source.stream": "spending"}, "learner[0].task", 'task = "regression"'),
        (SYNTHETIC, {"format.kind": "vw"}, "format.kind", "JSON"),
        (
            KAFKA,
            {"format.positive": [0, 2], "format.labels": [0, 1]},
            "format.positive",
            "`labels`",
        ),
        (
            SYNTHETIC,
            {"format.labels": [0, 1], "learner": [{"name": "a", "class_weight": {"2": 1.0}}]},
            "learner[0].class_weight.2",
            "not among",
        ),
        (KAFKA, {"source.topics": []}, "source.topics", "one of the two"),
        (KAFKA, {"source.pattern": "a("}, "source.pattern", "no regular expression"),
        (KAFKA, {"source.topics": ["a b"]}, "source.topics[0]", "no topic"),
        (KAFKA, {"source.start": "yesterday"}, "source.start", '"earliest", "latest" or a time'),
        (KAFKA, {"source.client": "confluence"}, "source.client", "did you mean confluent?"),
        (KAFKA, {"predictions.topic": "clicks"}, "predictions.topic", "round"),
        (KAFKA, {"dead_letters.topic": "clicks"}, "dead_letters.topic", "round"),
        (KAFKA, {"dead_letters": {"topic": "a", "path": "b"}}, "dead_letters.topic", "not both"),
        (
            KAFKA,
            {"predictions.topic": "a", "dead_letters.topic": "a"},
            "dead_letters.topic",
            "predictions",
        ),
        (
            KAFKA,
            {"source.security.mechanism": "PLAIN"},
            "source.security.username",
            "PLAIN needs it",
        ),
        (
            KAFKA,
            {"source.security": {"mechanism": "PLAIN", "protocol": "SSL"}},
            "source.security.mechanism",
            "SASL_SSL",
        ),
        (KAFKA, {"source.security.protocol": "SASL_SSL"}, "source.security.mechanism", "missing"),
        (KAFKA, {"source.security.cafile": "/none"}, "source.security.cafile", "no file"),
        (KAFKA, {"format.label": None}, "format.label", "missing"),
        (KAFKA, {"format.kind": "jsn"}, "format.kind", "did you mean json?"),
        (KAFKA, {"format.kind": "vw"}, "format.label", "its own place"),
        (KAFKA, {"format.delimiter": ";"}, "format.delimiter", "csv"),
        (KAFKA, {"format.kind": "csv", "format.delimiter": "."}, "format.delimiter", "numbers"),
        (KAFKA, {"format.include": ["clicked"]}, "format.include", "is the label"),
        (KAFKA, {"format.positive": 2, "format.labels": [0, 1]}, "format.positive", "`labels`"),
        (
            KAFKA,
            {"source": {"kind": "file", "paths": ["a.gz"], "follow": True}},
            "source.paths[0]",
            "packed",
        ),
        (KAFKA, {"source.x.y": 1, "source.kind": "kafka"}, "source.x", "unknown key"),
        (KAFKA, {"source.kind.y": 1}, "source.kind.y", "no table"),
    ],
)
def test_what_cannot_be_run_is_refused(
    base: str, change: dict[str, Any], path: str, said: str
) -> None:
    found = problems(base, overrides=change)
    assert path in found
    assert said in found[path]


def test_kafka_needs_a_checkpoint() -> None:
    assert "checkpoint.path" in problems(KAFKA.split("[checkpoint]", maxsplit=1)[0])


@pytest.mark.parametrize("text", ["a = ", "[source]\n[source]", "\x00", "x = " + "[" * 5000])
def test_what_is_not_toml(text: str) -> None:
    assert "is not TOML" in problems(text)[""]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read: No such file"):
        config.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'a = "\xff"')
    with pytest.raises(ConfigError, match="not UTF-8"):
        config.load(tmp_path / "latin.toml")


def test_a_file_may_begin_with_a_mark_of_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(SYNTHETIC, encoding="utf-8-sig")
    assert config.load(path) == config.parse(SYNTHETIC)


def test_a_start_is_a_saved_model(tmp_path: Path) -> None:
    model = sl.LinearClassifier(penalty=sl.penalties.Zero())
    model.learn_one({"a": 1.0}, True)
    model.save(tmp_path / "old.model")
    start = {"learner": [{"name": "a", "start": str(tmp_path / "old.model")}]}
    read = config.parse(SYNTHETIC, overrides=start)
    assert config.estimators(read)["a"].weights == model.weights
    (tmp_path / "old.model").write_bytes(b"nothing")
    assert "not a streamlearn model" in problems(SYNTHETIC, overrides=start)["learner[0].start"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("${A}-${B:-y}", "1-y"),
        ("${A:-z}", "1"),
        ("${E:-z}", "z"),
        ("$A $${A}", "$A ${A}"),
        ("${E}", ""),
    ],
)
def test_references_to_the_environment(text: str, read: str) -> None:
    environ = {"A": "1", "E": ""}
    got = config.parse(SYNTHETIC, overrides={"format.label": text}, environ=environ)
    assert got.format.label == read


@pytest.mark.parametrize("text", ["${A", "${}", "${A B}", "${A:-b"])
def test_references_that_are_none(text: str) -> None:
    assert (
        "expected ${NAME}" in problems(SYNTHETIC, overrides={"format.label": text})["format.label"]
    )


def keys(kind: type[msgspec.Struct], path: str = "") -> list[str]:
    found = []
    for item in msgspec.structs.fields(kind):
        here = reading.joined(path, item.encode_name)
        tables = [
            one for one in reading.alternatives(reading.plain(item.type)) if reading.is_struct(one)
        ]
        found += [here, *(key for one in tables for key in keys(one, here))]
    return found


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["${X}", "best", "kafka", "hashing", "end", "json", "Pegasos()", "L1(1)"]),
    st.lists(st.one_of(st.text(max_size=3), st.integers(), st.just("${X:-y}")), max_size=2),
    st.dictionaries(
        st.sampled_from(["name", "kind", "rule", "x"]), st.text(max_size=3), max_size=2
    ),
    st.datetimes(),
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(keys(config.Config)), VALUES, max_size=4), st.booleans())
def test_whatever_is_given_is_read_or_refused_by_path(change: dict[str, Any], kafka: bool) -> None:
    with contextlib.suppress(ConfigError):
        read = config.parse(KAFKA if kafka else SYNTHETIC, overrides=change, environ={})
        assert plan.plain(config.parse(plan.text(read), environ={})) == plan.plain(read)


def test_every_key_has_a_description() -> None:
    def undescribed(kind: type[msgspec.Struct]) -> list[str]:
        return [
            f"{kind.__name__}.{item.name}"
            for item in msgspec.structs.fields(kind)
            if not reading.description(item.type)
        ]

    tables = [
        kind
        for kind in vars(config).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    ]
    assert [name for kind in tables for name in undescribed(kind)] == []


def test_id_and_time_are_of_the_reading_in_that_they_are_no_features() -> None:
    def read(format_: str) -> dict[str, str]:
        return build.input_settings(config.parse(f"{SYNTHETIC}[format]\n{format_}", "x.toml"))

    aside = read('exclude = ["at", "name"]')
    assert read('id = "name"\ntime = "at"\ntime_unit = "ms"') == aside
    assert read('id = "at"\nexclude = ["name"]') == aside
    assert read('id = "name"') != aside
    chosen = read('include = ["user", "ad"]')
    assert read('include = ["user", "ad"]\nid = "name"\ntime = "at"') == chosen
    assert read('include = ["user", "ad"]\nid = "ad.name"') != chosen
