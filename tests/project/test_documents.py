"""The README and docs/ are correct: commands, configurations, names, links, generated pages.

pytest runs their Python examples as doctests.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from pyarrow import parquet

import streamlearn as sl
from streamlearn.cli import reference as cli
from streamlearn.cli.commands import evaluate, export, inspect, predict, solve, train
from streamlearn.cli.commands import test as cli_test
from streamlearn.cli.main import COMMANDS, main, parser
from streamlearn.config import Config, reading, reference
from streamlearn.daemon.process.exits import DESCRIPTIONS
from streamlearn.stream import Clicks, Synthetic
from streamlearn.telemetry import reference as metrics
from streamlearn.telemetry.catalog import METRICS, PREFIX, SERVER_METRICS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in DOCUMENTS}
BUILD = """
from Cython.Build import cythonize
from setuptools import Extension, setup
module = Extension("added", ["added.pyx"], extra_compile_args=["-O0"])
setup(ext_modules=cythonize([module], compiler_directives={"auto_pickle": False}))
"""
# documents whose commands run on a file of clicks
FILE_COMMANDS = (
    "docs/guides/choosing.md",
    "docs/guides/columns.md",
    "docs/guides/export.md",
    "docs/guides/fields.md",
    "docs/guides/tables.md",
    "docs/guides/testing.md",
)
TUTORIALS = ("docs/getting-started.md", "docs/guides/vowpal-wabbit.md")  # see test_tutorials.py
DOCUMENTED_BUCKET = "s3://bucket/clicks"
REPOSITORY = "https://github.com/streamlearn/streamlearn"
STATE = "state/clicks"  # commands with this directory run on its checkpoints
# tests/broker, tests/serving and tests/cli run these
RUN_ELSEWHERE = {"evaluate", "run", "replay", "publish", "serve", "solve"}
DAEMON = f"""
[source]
kind = "synthetic"
events = 4_000
[[learner]]
name = "default"
[[learner]]
name = "sparse"
rule = "DualAveraging(gamma=25.0)"
penalty = "L1(1e-4)"
[checkpoint]
path = "{STATE}"
every_events = 1_000
[regret]
enabled = false
[telemetry]
enabled = false
[run]
until = "end"
"""


def blocks(language: str) -> list[tuple[str, str]]:
    """Return the code blocks of a language, with the names of their documents."""
    pattern = re.compile(rf"```{language}(?: title=.*?)?\n(.*?)```", re.DOTALL)
    return [(name, found) for name, text in TEXTS.items() for found in pattern.findall(text)]


def commands() -> list[tuple[str, list[str]]]:
    """Return the commands of shell blocks, without redirections."""
    lines = [(name, line) for name, block in blocks("sh") for line in block.splitlines() if line]
    return [(name, shlex.split(re.sub(r" > \S+$", "", line))) for name, line in lines]


def prose() -> list[str]:
    """Return the text between backticks."""
    plain = [re.sub(r"```.*?```", "", text, flags=re.DOTALL) for text in TEXTS.values()]
    return [found for text in plain for found in re.findall(r"`([^`]+)`", text)]


def test_all_documents_exist() -> None:
    names = ("guides/choosing", "guides/daemon", "reference/configuration", "reference/metrics")
    assert TEXTS.keys() >= {"README.md", *(f"docs/{name}.md" for name in names)}


@pytest.mark.parametrize(
    ("name", "text"),
    [("cli", cli.text()), ("configuration", reference.text()), ("metrics", metrics.text())],
)
def test_generated_documents_are_up_to_date(name: str, text: str) -> None:
    assert "%%" not in text
    command = re.search(r"`(python -m \S+)`", text)
    assert command is not None
    assert TEXTS[f"docs/reference/{name}.md"] == text, f"{command[1]} > docs/reference/{name}.md"


def keys(kind: Any, path: str) -> list[tuple[str, Any]]:
    """Return all keys of a table and its subtables, by path."""
    found = []
    for item in msgspec.structs.fields(kind):
        where = f"{path}{item.encode_name}"
        found.append((where, item.type))
        inner = reading.bare_type(item.type)
        tables = getattr(inner, "__args__", ()) or (inner,)
        for table in [one for one in map(reading.bare_type, tables) if reading.is_struct(one)]:
            found += keys(table, f"{where}.")
    return found


def test_every_key_is_described() -> None:
    assert [path for path, kind in keys(Config, "") if not reading.description(kind)] == []


def test_every_metric_is_in_a_group() -> None:
    grouped = {metric.name for group in metrics.GROUPS.values() for metric in group}
    assert grouped == (METRICS | SERVER_METRICS).keys()


def descriptors() -> bytes:
    """What protoc makes of a file with the message `shop.Click`."""
    file = descriptor_pb2.FileDescriptorProto(name="clicks.proto", package="shop")
    file.message_type.add(name="Click")
    return bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


@pytest.mark.parametrize(("name", "text"), blocks("toml"))
def test_configurations_are_valid(
    name: str,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setenv("STREAMLEARN_TOKEN", "from a secret")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clicks.csv").touch()  # configurations read these
    parquet.write_table(pa.table({"clicked": [True]}), tmp_path / "clicks.parquet")
    (tmp_path / "shop.py").write_text(
        "from streamlearn.stream import Synthetic\ndef Orders(path): return Synthetic(events=3)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "history.jsonl").touch()
    (tmp_path / "clicks.pb").write_bytes(descriptors())
    file = tmp_path / f"{Path(name).stem}.toml"
    if DOCUMENTED_BUCKET in text:
        text = text.replace(DOCUMENTED_BUCKET, request.getfixturevalue("bucket"))
    file.write_text(text, encoding="utf-8")
    assert main(["check", str(file)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(("name", "text"), blocks("pycon"))
def test_examples_are_doctests(name: str, text: str) -> None:
    assert text.startswith(">>> "), name


@pytest.mark.parametrize(("name", "words"), commands())
def test_commands_parse(name: str, words: list[str]) -> None:
    assert words[0] == "streamlearn", name
    assert parser().parse_args(words[1:]).command == words[1]


def test_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events = click_events(300)
    (tmp_path / "clicks.jsonl").write_bytes(b"\n".join(events))
    rows = pa.Table.from_pylist([json.loads(event) for event in events])
    parquet.write_table(rows, tmp_path / "day-1.parquet")
    (tmp_path / "event.json").write_text(json.dumps({"user": "u1", "hour": 9}))
    monkeypatch.chdir(tmp_path)
    lines = [words[1:] for name, words in commands() if name in FILE_COMMANDS]
    assert {words[0] for words in lines} == {
        "evaluate",
        "export",
        "train",
        "test",
        "inspect",
        "predict",
    }
    for words in lines:
        assert main(words) == 0, capsys.readouterr().err
    monkeypatch.chdir(ROOT)
    for name, words in commands():
        if words[1] == "check" and name not in TUTORIALS:
            assert main(words[1:]) == 0, capsys.readouterr().err
    elsewhere = (*FILE_COMMANDS, *TUTORIALS)
    rest = {
        words[1]
        for name, words in commands()
        if name not in elsewhere and not {STATE, DOCUMENTED_BUCKET} & {*words}
    }
    assert rest - {"check"} == RUN_ELSEWHERE


def test_examples_in_help_texts_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only those on files; the one on a daemon's checkpoints is skipped."""
    events = click_events(300)
    (tmp_path / "clicks.jsonl").write_bytes(b"\n".join(events))
    (tmp_path / "tomorrow.jsonl").write_bytes(b"\n".join(events))
    (tmp_path / "a9a.svm").write_text("+1 1:1 3:0.5\n-1 2:1 3:0.1\n" * 50)
    with gzip.open(tmp_path / "day-1.csv.gz", "wt") as file:
        file.write("ad,price\n" + "a1,2.5\na2,3.5\n" * 50)
    (tmp_path / "event.json").write_text(json.dumps({"user": "u1", "hour": 9}))
    monkeypatch.chdir(tmp_path)
    for command in (train, predict, cli_test, solve, evaluate, inspect, export):
        for line in command.EXAMPLES.splitlines():
            words = shlex.split(re.sub(r" > \S+$", "", line), comments=True)[1:]
            if not {"/var/lib/clicks", "--ray"} & {*words}:
                assert main(words) == 0, (line, capsys.readouterr().err)


TABLES: dict[str, Any] = {
    "DualAveraging, Pegasos, Adaptive, Proximal": sl.DualAveragingClassifier,
    "FTRLProximal": sl.FTRLClassifier,
    "AdaGrad": partial(sl.LinearClassifier, sl.rules.AdaGrad(0.3)),
    "the default mixture": sl.LinearClassifier,
}


@pytest.mark.parametrize("name", TABLES)
def test_bytes_per_slot_are_documented(name: str, tmp_path: Path) -> None:
    sizes = []
    for bits in (12, 13):
        model = TABLES[name](features=sl.Hashing(bits=bits))
        model.learn_one({"a": 1.0}, True)
        model.save(tmp_path / "model")
        sizes.append((tmp_path / "model").stat().st_size)
    slot = (sizes[1] - sizes[0]) / 2**12
    assert f"| {name} | {slot:.0f} |" in TEXTS["docs/guides/daemon.md"]


def test_commands_on_checkpoints_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("daemon.toml").write_text(DAEMON, encoding="utf-8")
    assert main(["run", "daemon.toml"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["models", "list", STATE, "--json"]) == 0
    newest_last = sorted(row["checkpoint"] for row in json.loads(capsys.readouterr().out))
    lines = [words[1:] for _, words in commands() if STATE in words]
    assert {tuple(words[:2]) for words in lines} == {
        *(("models", what) for what in ("list", "diff", "rollback")),
        ("inspect", STATE),
    }
    for words in lines:
        given = [newest_last[-2] if re.fullmatch(r"\d+-\d+", word) else word for word in words]
        assert main(given) == 0, capsys.readouterr().err
        assert capsys.readouterr().out


def click_events(count: int) -> list[bytes]:
    """Return synthetic click events."""
    source = Synthetic(Clicks("clicks", 3, None), events=count)
    source.open({}, None)
    found: list[bytes] = []
    while not source.ended():
        found += [value for records in source.poll(1.0) for value in records.values if value]
    return found


def test_example_members_compile_and_are_correct(tmp_path: Path) -> None:
    """Examples from the package must equal its source; the others are compiled."""
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "streamlearn").rglob("*.pyx"))
    added = [text for _, text in blocks("cython") if text not in sources]
    assert [re.findall(r"cdef class (\w+)", text) for text in added] == [
        ["Expectile"],
        ["FixedStep"],
        ["Polyak"],
    ]
    (tmp_path / "added.pyx").write_text("\n\n".join(added), encoding="utf-8")
    (tmp_path / "setup.py").write_text(BUILD, encoding="utf-8")
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(build, cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    (file,) = tmp_path.glob("added.*.so")
    spec = importlib.util.spec_from_file_location("added", file)
    assert spec is not None
    assert spec.loader is not None
    added_module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(added_module)
    loss, rule = added_module.Expectile(3.0), added_module.FixedStep(0.1)
    for p in (-3.0, 0.0, 2.0):
        slope = loss.slope(p, 0.5)
        rise = loss.value(p + 1e-6, 0.5) - loss.value(p - 1e-6, 0.5)
        assert slope == pytest.approx(rise / 2e-6, abs=1e-8)
        assert loss.value(p, 0.5) + loss.conjugate(slope, 0.5) == pytest.approx(slope * p)
        half = p - loss.flow(p, 0.5, 0.2) * 0.2
        whole = p - loss.flow(p, 0.5, 0.4) * 0.4
        assert half - loss.flow(half, 0.5, 0.2) * 0.2 == pytest.approx(whole)
    for length in (1.0, 1e10, 1e300):  # the base's implicit step, where the slope is subnormal
        assert abs(loss.implicit(-5e-324, 0.0, length)) <= 5e-324
    model = sl.LinearRegressor(rule, loss, sl.penalties.L2(0.1), fit_intercept=False)
    same = sl.LinearRegressor(
        sl.rules.GradientDescent(0.1), loss, sl.penalties.L2(0.1), fit_intercept=False
    )
    for x, y in [(1.0, 2.0), (2.0, 1.0), (-1.0, 0.5)]:
        model.learn_one({"x": x}, y)
        same.learn_one({"x": x}, y)
    assert model.weights == pytest.approx(same.weights)
    with pytest.raises(sl.IncompatibleError, match="L2 and Zero"):
        sl.LinearRegressor(rule, loss, sl.penalties.L1(0.1))
    hinge, aggressive = sl.losses.Hinge(), sl.rules.PassiveAggressive("")
    pair = [sl.LinearClassifier(one, hinge) for one in (added_module.Polyak(), aggressive)]
    for x, label in [(1.0, True), (2.0, False), (-1.0, True)]:
        for one in pair:
            one.learn_one({"x": x, "y": 0.5}, label)
    assert pair[0].weights == pytest.approx(pair[1].weights)


def test_documented_commands_exist() -> None:
    named = {found for text in prose() for found in re.findall(r"^streamlearn ([a-z]+)", text)}
    assert named
    assert named <= COMMANDS.keys()


def test_documented_metrics_exist() -> None:
    named = {found for text in prose() for found in re.findall(rf"\b{PREFIX}\w+", text)}
    assert named
    assert named <= {PREFIX + name for name in METRICS | SERVER_METRICS}


def test_documented_keys_exist() -> None:
    known = {path for path, _ in keys(Config, "")}
    tables = "|".join(item.encode_name for item in msgspec.structs.fields(Config))
    named = {text for text in prose() if re.fullmatch(rf"({tables})\.[a-z_]+", text)}
    assert named
    assert named <= known


@pytest.mark.parametrize(
    "package", ["losses", "penalties", "rules", "hindsight", "regret", "sklearn"]
)
def test_every_public_name_is_in_the_api_reference(package: str) -> None:
    assert f"::: streamlearn.{package}\n" in TEXTS[f"docs/reference/api/{package}.md"]


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"\S+\.md$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(f"docs/{page}" for page in listed) == sorted(TEXTS.keys() - {"README.md"})


def test_exit_codes_are_documented() -> None:
    text = TEXTS["docs/reference/exit-codes.md"]
    documented = re.findall(r"^\| (\d+) \| (.*?) \|", text, re.MULTILINE)
    assert {int(code): text for code, text in documented} == {
        int(c): text for c, text in DESCRIPTIONS.items()
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=TEXTS)
def test_links_have_targets(path: Path) -> None:
    text = path.read_text("utf-8")
    for target in re.findall(rf"\]\({REPOSITORY}/blob/main/([^)]*)\)", text):
        assert (ROOT / target).is_file(), target
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", text):
        file = path.parent / target if target else path
        assert file.is_file(), target
        if not anchor:  # pictures have no titles
            continue
        titles = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
        slugs = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
        assert anchor in slugs, f"{target}#{anchor}"
