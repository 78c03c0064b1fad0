"""Configuration: problems are reported together, by path; secrets are never printed."""

from __future__ import annotations

import contextlib
import json
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn import config
from streamlearn.config import ConfigError, effective, reading
from streamlearn.daemon import build
from streamlearn.stream import Fields
from tests.support.configurations import KAFKA, SYNTHETIC

if TYPE_CHECKING:
    from pathlib import Path

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
[features]
kind = "hashing"
bits = 18
fields = {"clicked" = "ignore", user = "category"}
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
    with pytest.raises(ConfigError) as error:
        config.parse(text, "clicks.toml", **options)
    assert str(error.value).startswith("clicks.toml: ")
    found: dict[str, str] = {}
    for path, message in error.value.problems:
        assert (f"{path}: {message}" if path else message) in str(error.value)
        found[path] = f"{found[path]}; {message}" if path in found else message
    return found


def test_a_source_is_a_complete_configuration() -> None:
    read = config.parse(SYNTHETIC)
    assert [learner.name for learner in read.learners] == ["default"]
    assert isinstance(config.estimators(read)["default"], sl.LinearClassifier)
    assert read.checkpoint is None
    assert read.format.label == "clicked"


@pytest.mark.parametrize("text", ["", "[sources]\nkind = 'stdin'\n"])
def test_a_missing_source_is_a_table(text: str) -> None:
    assert problems(text)["source"] == "missing; expected a table"


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("format.weight", "", "is empty"),
        ("telemetry.token", "", "is empty"),
        ("telemetry.token", "${NOTHING:-}", "is empty"),
        ("predictions.path", "", "is empty"),
        ("format.label_warmup", 2**63, "64 bits"),
        ("checkpoint.keep", "${LARGE:-9223372036854775808}", "64 bits"),
    ],
)
def test_what_no_setting_can_be_is_refused(key: str, value: Any, told: str) -> None:
    assert told in problems(SYNTHETIC, overrides={key: value}, environ={})[key]


def test_what_is_just_not_refused_is_read() -> None:
    given = {"format.label_warmup": 2**63 - 1, "telemetry.token": "t"}
    read = config.parse(SYNTHETIC, overrides=given)
    assert read.format.label_warmup == 2**63 - 1


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
    assert config.event_fields(read.format) == Fields(
        label="clicked", labels=(0, 1), positive=(1,), warmup=1000, max_classes=100
    )
    for model in (few, svm):
        assert model.features == sl.Hashing(18, {"clicked": "ignore", "user": "category"})


def test_secrets_are_never_printed() -> None:
    read = config.parse(FULL, environ={"PASSWORD": "hunter2"})
    shown = effective.text(read)
    forms = [repr(read), str(read), f"{read.source}", shown, json.dumps(effective.plain(read))]
    forms += [str(msgspec.structs.asdict(read))]
    assert not [form for form in forms if "hunter2" in form]
    assert 'password = "***"' in shown
    # nor in an error about it, or about a key that holds it by mistake
    wrong = {
        "source.topics": ["${PASSWORD}", 5],
        "source.security.password": 5,
        "telemetry.port": "${PASSWORD}",
        "log.level": "${PASSWORD}",
    }
    with pytest.raises(ConfigError) as error:
        config.parse(FULL, overrides=wrong, environ={"PASSWORD": "hunter2"})
    assert len(error.value.problems) == 4
    assert "hunter2" not in str(error.value)


def test_the_plan_is_an_equal_configuration() -> None:
    read = config.parse(FULL, environ={"PASSWORD": "x"})
    again = config.parse(effective.text(read), environ={})
    assert effective.plain(again) == effective.plain(read)
    assert effective.text(again) == effective.text(read)
    tomllib.loads(effective.text(config.parse(SYNTHETIC)))


def test_all_problems_are_reported_together() -> None:
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


def test_a_problem_says_what_is_expected() -> None:
    found = problems(
        SYNTHETIC,
        overrides={
            "sorce": {},
            "source.stream": "clicsk",
            "format.label": ["clicked"],
            "checkpoint": {"path": "state", "every_events": "many", "keep": 0},
        },
    )
    assert found == {
        "sorce": "unknown key; did you mean source?",
        "source.stream": 'expected one of "clicks", "spending", "spam", "delayed", got "clicsk"; '
        "did you mean clicks?",
        "format.label": "expected a string, got ['clicked']",
        "checkpoint.every_events": 'expected an integer >= 1, got "many"',
        "checkpoint.keep": "expected an integer >= 2, got 0",
    }


def test_what_is_overridden_is_left_as_it_was_given() -> None:
    given = {"source": {"kind": "synthetic", "events": 5}, "source.events": 7}
    read = config.parse(SYNTHETIC, overrides=given)
    assert isinstance(read.source, config.SyntheticSourceConfig)
    assert read.source.events == 7
    assert given == {"source": {"kind": "synthetic", "events": 5}, "source.events": 7}


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_a_missing_extra_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fastavro", "google", "google.protobuf"):
        monkeypatch.setitem(sys.modules, name, None)
    given = {"format.kind": kind, "registry.url": "http://a"}
    assert "streamlearn[registry]" in problems(KAFKA, overrides=given)["format.kind"]


@pytest.mark.parametrize("text", ["a = ", "[source]\n[source]", "\x00", "x = " + "[" * 5000])
def test_text_that_is_not_toml_is_a_problem_of_the_file(text: str) -> None:
    assert problems(text).keys() == {""}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'a = "\xff"')
    for name in ("none.toml", "latin.toml"):
        with pytest.raises(ConfigError) as error:
            config.load(tmp_path / name)
        assert error.value.name == str(tmp_path / name)
        assert [path for path, _ in error.value.problems] == [""]


def test_a_file_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(SYNTHETIC, encoding="utf-8-sig")
    assert config.load(path) == config.parse(SYNTHETIC)


def test_start_is_a_saved_model(tmp_path: Path) -> None:
    model = sl.LinearClassifier(penalty=sl.penalties.Zero())
    model.learn_one({"a": 1.0}, True)
    model.save(tmp_path / "old.model")
    start = {"learner": [{"name": "a", "start": str(tmp_path / "old.model")}]}
    read = config.parse(SYNTHETIC, overrides=start)
    assert config.estimators(read)["a"].weights == model.weights
    model = sl.LinearClassifier(features=sl.Names({"id": "ignore"}))
    model.learn_one({"a": 1.0}, True)
    model.save(tmp_path / "old.model")
    assert problems(SYNTHETIC, overrides=start).keys() == {"learner[0].start"}
    fields = {"features.fields": {"id": "ignore"}}
    read = config.parse(SYNTHETIC, overrides={**start, **fields})
    assert config.estimators(read)["a"].weights == model.weights
    (tmp_path / "old.model").write_bytes(b"nothing")
    assert problems(SYNTHETIC, overrides=start).keys() == {"learner[0].start"}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("${A}-${B:-y}", "1-y"),
        ("${A:-z}", "1"),
        ("${E:-z}", "z"),
        ("$A $${A}", "$A ${A}"),
        ("a${E}", "a"),
    ],
)
def test_references_are_replaced_from_the_environment(text: str, read: str) -> None:
    environ = {"A": "1", "E": ""}
    got = config.parse(SYNTHETIC, overrides={"format.label": text}, environ=environ)
    assert got.format.label == read


@pytest.mark.parametrize("text", ["${A", "${}", "${A B}", "${A:-b"])
def test_an_invalid_reference_is_a_problem(text: str) -> None:
    assert problems(SYNTHETIC, overrides={"format.label": text}).keys() == {"format.label"}


def test_a_reference_to_a_variable_that_is_not_set_names_it() -> None:
    found = problems(SYNTHETIC, overrides={"format.label": "${LABEL}"}, environ={})
    assert found.keys() == {"format.label"}
    assert "LABEL" in found["format.label"]


def test_a_reference_to_a_file_is_its_text(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2\n", encoding="utf-8")
    (tmp_path / "port").write_text("9470", encoding="utf-8")
    given = {
        "telemetry.token": f"${{file:{tmp_path}/token}}",
        "telemetry.port": f"${{file:{tmp_path}/port}}",
        "format.label": f"${{file:{tmp_path}/none:-click}}",
    }
    read = config.parse(SYNTHETIC, overrides=given, environ={})
    assert read.telemetry.token == config.Secret("hunter2")
    assert (read.telemetry.port, read.format.label) == (9470, "click")
    assert "hunter2" not in effective.text(read)


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff")
    for name in ("none", "binary", "."):
        found = problems(SYNTHETIC, overrides={"format.label": f"${{file:{tmp_path}/{name}}}"})
        assert found.keys() == {"format.label"}
        assert str(tmp_path) in found["format.label"]


def test_a_source_by_name_has_any_options() -> None:
    text = """
    [source]
    kind = "shop:orders"
    [source.options]
    batch = 5
    hosts = ["a", "${B}"]
    [source.options.login]
    password = "${B}"
    """
    read = config.parse(text, overrides={"format.label": "paid"}, environ={"B": "hunter2"})
    source = read.source
    assert isinstance(source, config.CustomSourceConfig)
    plain = {"batch": 5, "hosts": ["a", "hunter2"], "login": {"password": "hunter2"}}
    assert config.revealed(source.options) == plain
    assert "hunter2" not in effective.text(read)
    again = config.parse(effective.text(read), environ={}).source
    assert isinstance(again, config.CustomSourceConfig)
    assert (again.kind, again.options.keys()) == (source.kind, source.options.keys())
    for kind in ("shop:", "a b:c", "shop"):
        found = problems(text, overrides={"source.kind": kind, "format.label": "paid"})
        assert "source.kind" in found


def keys(kind: type[msgspec.Struct], path: str = "") -> list[str]:
    found = []
    for item in msgspec.structs.fields(kind):
        here = reading.join_path(path, item.encode_name)
        tables = [
            one
            for one in reading.union_members(reading.bare_type(item.type))
            if reading.is_struct(one)
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
def test_any_value_is_read_or_is_a_problem(change: dict[str, Any], kafka: bool) -> None:
    with contextlib.suppress(ConfigError):
        read = config.parse(KAFKA if kafka else SYNTHETIC, overrides=change, environ={})
        assert effective.plain(config.parse(effective.text(read), environ={})) == effective.plain(
            read
        )


def test_id_and_time_are_part_of_the_reading_because_they_are_not_features() -> None:
    def read(format_: str, **fields: str) -> dict[str, str]:
        given = {"features.fields": fields}
        return build.input_settings(
            config.parse(f"{SYNTHETIC}[format]\n{format_}", "x.toml", overrides=given)
        )

    aside = read("", at="ignore", name="ignore")
    assert read('id = "name"\ntime = "at"\ntime_unit = "ms"') == aside
    assert read('id = "at"', name="ignore") == aside
    assert read('id = "name"') != aside
    chosen = {"user": "auto", "ad": "auto", "*": "ignore"}
    assert read('id = "name"\ntime = "at"', **chosen) == read("", **chosen)
    assert read('id = "ad.name"', **chosen) != read("", **chosen)
