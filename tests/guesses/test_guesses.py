"""Guesses: what columns of known kinds are taken for, and what follows when later rows differ."""

from __future__ import annotations

import csv
import io
import json
import tomllib
import uuid
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.cli.main import main
from streamlearn.config import effective
from streamlearn.features.fields import FieldSpec
from streamlearn.guesses import Column, columns_of, guess_delimiter, guess_fields, sample
from streamlearn.stream import Fields

if TYPE_CHECKING:
    from pathlib import Path

N = 2000
START = datetime(2026, 1, 1, tzinfo=UTC)
rng = np.random.default_rng(7)
# popular values anywhere, as ids have
CODES = rng.permutation(5000)[:300][rng.zipf(1.4, N) % 300]
DATES = ["soon"] * (N // 100) + [f"{n % 28 + 1}/{n % 7 + 1}/2026" for n in range(N - N // 100)]
HEAVY = rng.lognormal(3.0, 1.2, N).round(2)


def some(values: Any) -> list[Any]:
    return list(np.asarray(values).tolist())


KINDS: dict[str, tuple[str, list[Any], str]] = {
    "row numbers": ("row", list(range(10, N + 10)), "ignore"),
    "row numbers, downwards": ("row", list(range(N, 0, -1)), "ignore"),
    "elapsed time": ("elapsed", some(np.cumsum(rng.exponential(1.0, N))), "ignore"),
    "shuffled keys": ("a", some(rng.permutation(N)), "ignore"),
    "unique ids": ("order_id", some(rng.choice(10**9, N, replace=False)), "ignore"),
    "uuids": ("a", [str(uuid.UUID(int=int(n))) for n in rng.integers(1 << 62, size=N)], "ignore"),
    "hashes": ("a", [f"{n:016x}" for n in rng.integers(1 << 62, size=N)], "ignore"),
    "lists of measurements": ("a", [[0.5, float(n)] for n in range(N)], "ignore"),
    "integer ids": ("user_id", some(rng.integers(800, size=N)), "category"),
    "ids in text": ("userId", [str(n) for n in rng.integers(800, size=N)], "category"),
    "few integers": ("rooms", some(rng.integers(1, 9, N)), "category"),
    "codes": ("c14", some(CODES), "category"),
    "codes far from zero": ("c20", some(rng.integers(77_000, 77_200, N)), "category"),
    "leading zeros": ("a", [f"{n:05d}" for n in rng.integers(300, size=N)], "category"),
    "leading zeros of two digits": (
        "a",
        [f"{n:02d}" for n in rng.integers(99, size=N)],
        "category",
    ),
    "nearly all dates": ("a", DATES, "time"),
    "words": ("city", some(rng.choice(["Rome", "Paris", "Berlin"], N)), "category"),
    "few long texts": ("a", some(rng.choice(["a rather long text", "another one"], N)), "category"),
    "bools": ("a", some(rng.random(N) < 0.5), "category"),
    "one value": ("a", ["web"] * N, "category"),
    "one number": ("a", [3] * N, "category"),
    "several types": ("a", some(np.arange(N) % 7)[: N // 2] + ["x", "y"] * (N // 4), "category"),
    "floats": ("a", some(rng.normal(size=N)), "number"),
    "evenly growing decimals": ("a", [round(0.1 * n, 1) for n in range(N)], "ignore"),
    "rounded ones, which repeat": ("a", [round(0.04 * n, 1) for n in range(N)], "ignore"),
    "few decimals, in order": ("a", [n * 5 // N / 2 for n in range(N)], "number"),
    "numbers in text": ("a", [f"{x:.3f}" for x in rng.normal(5.0, 1.0, N)], "number"),
    "numbers and a little text": ("a", [*some(rng.normal(size=N - 9)), *["n/k"] * 9], "number"),
    "heavy tail": ("a", some(HEAVY), "number"),
    "quantities": ("area", some(rng.normal(900, 300, N).round().astype(int)), "number"),
    "round quantities": ("loan", some(100 * rng.integers(1, 300, N)), "number"),
    "flags": ("a", some(rng.integers(2, size=N)), "number"),
    "counts": ("a", some(rng.poisson(0.3, N)), "number"),
    "years": ("a", some(rng.integers(1950, 2020, N)), "number"),
    "seconds": ("ts", some(1.7e9 + rng.integers(10**6, size=N)), "time"),
    "ascending milliseconds": (
        "a",
        some(np.sort(rng.integers(17 * 10**11, 18 * 10**11, N))),
        "time",
    ),
    "ISO 8601": ("a", [(START + timedelta(hours=n)).isoformat() for n in range(N)], "time"),
    "dates with points": (
        "a",
        [f"{START + timedelta(n % 300):%d.%m.%Y}" for n in range(N)],
        "time",
    ),
    "dates with slashes": (
        "a",
        [f"{START + timedelta(n % 99):%m/%d/%y}" for n in range(N)],
        "time",
    ),
    "times of day": (
        "a",
        [f"{START + timedelta(0, 999 * n):%d-%b-%Y %H:%M}" for n in range(N)],
        "time",
    ),
    "dates as numbers": (
        "a",
        [int(f"{START + timedelta(n % 99):%Y%m%d}") for n in range(N)],
        "time",
    ),
    "dates of any order": ("a", [f"{n % 12 + 1}/{n % 7 + 1}/2026" for n in range(N)], "category"),
    "versions": ("a", [f"{n % 12 + 1}.{n % 7 + 1}.{n % 20}" for n in range(N)], "category"),
    "dates": ("a", [date(2024, 1, 1 + n % 28) for n in range(N)], "time"),
    "prose": ("a", [" ".join(map(str, row)) for row in rng.integers(99, size=(N, 6))], "text"),
    "links": ("a", [f"https://x.org/{n}/{n % 9}" for n in range(N)], "text"),
    "lists": ("a", [["a", "b"], ["c"]] * (N // 2), "list"),
    "lists in text": ("a", ["a|b", "c", "b|c"] * (N // 3), "list"),
    "separators between what never recurs": (
        "a",
        [f"{a:06x}|{b:06x}" for a, b in rng.integers(1 << 24, size=(N - 2, 2))] + ["x|y"] * 2,
        "ignore",
    ),
    "nothing": ("a", [None] * N, "auto"),
    "empty lists": ("a", [[]] * N, "auto"),
}


@pytest.mark.parametrize("case", KINDS)
def test_what_columns_are_taken_for(case: str) -> None:
    name, values, kind = KINDS[case]
    found = guess_fields([Column(name, values)])[name]
    assert found.field.kind == kind
    assert found.reason
    FieldSpec({name: str(found.field)})  # is valid


@pytest.mark.parametrize("case", ["heavy tail", "quantities", "years", "flags", "counts", "floats"])
def test_how_numbers_are_centered(case: str) -> None:
    name, values, _ = KINDS[case]
    field = guess_fields([Column(name, values)])[name].field
    assert isinstance(field, sl.fields.Number)
    assert field.log1p == (case == "heavy tail")
    assert (field.center != 0.0) == (case in {"heavy tail", "quantities", "years"})
    x = np.log1p(values) if field.log1p else np.asarray(values)
    if field.center:
        assert abs(field.center - x.mean()) < 0.1 * x.std()
    assert field.invalid == "category"


def test_missing_numbers_have_an_indicator_unless_nearly_all_are_missing() -> None:
    for missing, indicator in ((0.0, False), (0.1, True), (0.9, False)):
        values = [
            x if u >= missing else None for x, u in zip(some(HEAVY), rng.random(N), strict=True)
        ]
        field = guess_fields([Column("x", values)])["x"].field
        assert isinstance(field, sl.fields.Number)
        assert field.indicator == indicator


@pytest.mark.parametrize(
    ("present", "kind"),
    [
        ([1.5, 2.5, 7.0], "number"),
        (["1.5", "2.5", "7"], "number"),
        (["a", "b", "a"], "category"),
        ([True, False], "category"),
        (["a", 3], "category"),
        ([["a", "b"], ["c"]], "list"),
    ],
)
def test_a_column_that_nearly_all_rows_lack(present: list[Any], kind: str) -> None:
    found = guess_fields([Column("a", present + [None] * N)])["a"]
    assert found.field.kind == kind
    assert found.reason


@pytest.mark.parametrize("width", [1, 7])
def test_a_sample_is_of_the_first_rows(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for rows, values, expected in ((30, 1000, 30), (1000, 30 * width, 30), (1000, 1000, 50)):
        monkeypatch.setattr(sample, "ROWS", rows)
        monkeypatch.setattr(sample, "VALUES", values)
        records = [json.dumps(dict.fromkeys(map(str, range(width)), 1)).encode()] * 50
        assert sample.TableSample(records, "json", Fields()).rows == expected


@pytest.mark.parametrize("huge", [1e300, -1e308])
def test_a_number_whose_square_is_infinite_prints_no_warning(huge: float) -> None:
    values = [n % 7 - 3.5 for n in range(N)] + [huge, 1.7e308]
    field = guess_fields([Column("x", some(values))])["x"].field
    assert isinstance(field, sl.fields.Number)
    assert field.center == 0.0


def test_months_are_features_where_seasons_return() -> None:
    for days, month in ((90, False), (900, True)):
        values = [(START + timedelta(days=days * n / N)).isoformat() for n in range(N)]
        field = guess_fields([Column("x", values)])["x"].field
        assert isinstance(field, sl.fields.Time)
        assert (field.hour, field.weekday, field.month) == (True, True, month)


@pytest.mark.parametrize("every", [2, 5, 10])
def test_times_of_which_some_are_at_midnight_have_hours(every: int) -> None:
    """Whatever the distance between those is."""
    hours = [n // every * 24 + n % every for n in range(5000)]
    values = [(START + timedelta(hours=n)).isoformat() for n in hours]
    field = guess_fields([Column("x", values)])["x"].field
    assert isinstance(field, sl.fields.Time)
    assert field.hour


@pytest.mark.parametrize(
    ("form", "order"),
    [("%d.%m.%Y", "dmy"), ("%d/%m/%Y", "dmy"), ("%m/%d/%Y %I:%M %p", "mdy"), ("%Y/%m/%d", "ymd")],
)
def test_the_order_of_dates(form: str, order: str) -> None:
    values = [f"{START + timedelta(hours=5 * n):{form}}" for n in range(N)]
    field = guess_fields([Column("x", values)])["x"].field
    assert isinstance(field, sl.fields.Time)
    assert (field.order, field.hour, field.month) == (order, "%I" in form, True)
    of_iso = sl.Names(fields={"x": sl.fields.Time(hour=field.hour, weekday=True, month=True)})
    other = sl.Names(fields={"x": field})
    for n in range(0, N, 7):
        moment = START + timedelta(hours=5 * n)
        row = of_iso.read_event({"x": moment})
        assert [of_iso.names()[slot] for slot, _ in row] == [
            other.names()[slot] for slot, _ in other.read_event({"x": values[n]})
        ]


def test_dates_whose_order_is_not_clear_are_asked_about() -> None:
    guess = guess_fields([Column("x", [f"{n % 12 + 1}/{n % 7 + 1}/2026" for n in range(N)])])["x"]
    for order in ("dmy", "mdy"):
        assert f"time(order={order})" in guess.reason


def test_inner_fields_are_columns() -> None:
    rows = [{"user": {"id": n % 5, "geo": {"city": "Rome"}}, "x": n} for n in range(50)]
    names = ["user.id", "user.geo.city", "x"]
    assert [one.name for one in columns_of(rows)] == names
    absent: list[dict[str, Any]] = [{"user": None, "x": 1}, {"user": {"id": 1, "geo": None}}]
    assert {one.name for one in columns_of([*absent, *rows])} == {*names}
    assert [one.name for one in columns_of([{"user": None}])] == ["user"]


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [
        ("a;b;y", ";"),
        ("a;b", ";"),
        ("a", ","),
        ("a\tb\ty", "\t"),
        ("a|b|y", "|"),
        ("a,b;c,y", ","),
        ('"a,b";y', ";"),
        ("y", ","),
    ],
)
def test_delimiters(header: str, delimiter: str) -> None:
    assert guess_delimiter(header.encode(), "y") == delimiter


# -- in the commands


def table(rows: int = 400) -> list[dict[str, Any]]:
    found = []
    for n in range(rows):
        user, hour = int(rng.integers(30)), int(rng.integers(24))
        found.append(
            {
                "": n,
                "key": f"k{n:06d}",
                "user_id": user + 1000,
                "ts": (START + timedelta(hours=hour, days=n % 9)).isoformat(),
                "price": round(float(rng.lognormal(3.0, 1.2)), 2) if n % 9 else None,
                "note": " ".join(f"w{k}" for k in rng.integers(50, size=6)),
                "y": int(user % 3 == 0),
            }
        )
    return found


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def as_json(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def trained(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> dict[str, Any]:
    assert main(["train", str(path), "--label", "y", "--json", *options]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


def test_the_same_table_in_any_format_gives_the_same_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table()
    texts = {"a.csv": as_csv(rows), "b.csv": as_csv(rows, ";"), "c.jsonl": as_json(rows)}
    found = []
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        facts = trained(capsys, tmp_path / name, "--save", str(tmp_path / "m"))
        model = sl.LinearClassifier.load(tmp_path / "m")
        found.append((facts["fields"], facts["loss"], sorted(map(str, model.weights.items()))))
        assert {
            name: one["kind"] for name, one in facts["fields"].items()
        } == model.reader.fields.texts
    assert found[0] == found[1] == found[2]
    kinds = {name: one["kind"].partition("(")[0] for name, one in found[0][0].items()}
    assert kinds == {
        "": "ignore",
        "key": "ignore",
        "user_id": "category",
        "ts": "time",
        "price": "number",
        "note": "text",
    }


def test_decimal_commas_are_guessed_and_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, given = [], table()
    for name in ("points", "commas"):
        rows = [dict(row) for row in given]
        for n, row in enumerate(rows):
            price = row["price"]
            row["y"] = f"{price or 1.5:.2f}"
            row["big"] = f"{37.5 * n:,.2f}" if name == "commas" else f"{37.5 * n:.2f}"
            if name == "commas":
                row["y"] = row["y"].replace(".", ",")
                row["big"] = row["big"].translate(str.maketrans(",.", ".,"))
                row["price"] = None if price is None else str(price).replace(".", ",")
        path, saved = tmp_path / f"{name}.csv", str(tmp_path / f"{name}.model")
        path.write_text(as_csv(rows, ";"))
        facts = trained(capsys, path, "--save", saved)
        assert main(["test", saved, str(path), "--json"]) == 0
        tested = json.loads(capsys.readouterr().out)
        assert main(["predict", saved, str(path)]) == 0
        found.append((facts["fields"], facts["R2"], tested, capsys.readouterr().out))
    assert found[0] == found[1]
    path = tmp_path / "commas.csv"
    assert main(["train", str(path), "--label", "y"]) == 0
    printed = capsys.readouterr().out.partition("   average")[0]
    assert tomllib.loads(printed)["format"] == {"delimiter": ";", "decimal": ","}
    assert "R2" not in trained(capsys, path, "--decimal", ".", "--max-classes", "900")


def test_what_is_printed_is_a_configuration_that_reads_events_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(as_csv(table(), ";"))
    assert main(["train", str(path), "--label", "y", "--save", str(tmp_path / "m")]) == 0
    printed = capsys.readouterr().out.partition("   average")[0]
    given = tomllib.loads(printed)
    assert given["format"] == {"delimiter": ";"}
    model = sl.LinearClassifier.load(tmp_path / "m")
    assert given["features"]["fields"] == model.reader.fields.texts
    text = f'{printed}\n[source]\nkind = "stdin"\n'
    read = config.parse(text, overrides={"format.kind": "csv", "format.label": "y"})
    assert effective.plain(read.features)["fields"] == model.reader.fields.texts


def test_guesses_are_overruled_and_turned_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(as_json(table()))
    facts = trained(capsys, path, "--field", "user_id=number", "--field", "key=category")
    assert facts["fields"]["user_id"] == {"kind": "number", "why": "declared"}
    assert facts["fields"]["key"]["kind"] == "category"
    assert facts["fields"]["ts"]["kind"].startswith("time")
    for options in (["--no-guess"], ["--field", "*=auto"]):
        assert "fields" not in trained(capsys, path, *options)


def test_a_model_that_is_trained_further_keeps_its_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, saved = tmp_path / "a.jsonl", tmp_path / "m"
    path.write_text(as_json(table()))
    trained(capsys, path, "--save", str(saved))
    before = sl.LinearClassifier.load(saved).reader.fields
    path.write_text(as_json([{"user_id": 0.5 * n, "y": n % 2} for n in range(200)]))
    assert "fields" not in trained(capsys, path, "--resume", str(saved), "--save", str(saved))
    assert sl.LinearClassifier.load(saved).reader.fields == before


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_later_rows_that_differ_are_learned_and_reported(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table(11_000)
    for n in range(10_000, 11_000):
        rows[n] |= {"price": "high" if n % 2 else "low", "ts": "someday", "user_id": f"u{n % 3}"}
    path, saved = tmp_path / f"a.{suffix}", tmp_path / "m"
    path.write_text(as_csv(rows) if suffix == "csv" else as_json(rows))
    assert main(["train", str(path), "--label", "y", "--json", "--save", str(saved)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["learned"] == 11_000
    names = {"price=high", "price=low", "user_id=u1", "price"}
    assert names <= set(sl.LinearClassifier.load(saved).weights)
    lines = [line for line in err.splitlines() if "1,000 values" in line]
    assert ["'ts'" in line or "'price'" in line for line in lines] == [True, True]


def test_labels_that_are_numbers_are_a_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, saved = tmp_path / "a.csv", tmp_path / "m"
    rows = [{"x": n % 10, "y": 3.5 * (n % 10) + n % 7} for n in range(500)]
    path.write_text(as_csv(rows))
    assert trained(capsys, path, "--save", str(saved))["R2"] > 0.5
    assert isinstance(sl.LinearRegressor.load(saved), sl.LinearRegressor)
    assert "R2" not in trained(capsys, path, "--labels", "open", "--max-classes", "500")


def test_rare_classes_of_the_first_rows_are_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    rows = [{"x": n % 10, "y": "abc"[n % 3]} for n in range(3000)]
    rows[2500]["y"] = "d"
    path.write_text(as_csv(rows))
    assert trained(capsys, path)["learned"] == 3000
    assert main(["train", str(path), "--label", "y", "--no-guess"]) == 2


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("classes", [(0, 1), ("ham", "spam"), (False, True), (3, 7)])
@pytest.mark.parametrize("place", [0, 3, 250])
def test_a_label_that_occurs_once_beside_two_classes_is_not_valid(
    suffix: str,
    classes: tuple[Any, Any],
    place: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, saved = tmp_path / f"a.{suffix}", str(tmp_path / "m")
    rows: list[dict[str, Any]] = [{"x": n % 10, "y": classes[n % 2]} for n in range(300)]
    rows[place]["y"] = "hamm"
    path.write_text(as_csv(rows) if suffix == "csv" else as_json(rows))
    assert main(["train", str(path), "--label", "y"]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert "'hamm'" in err
    assert "--labels" in err
    facts = trained(capsys, path, "--on-invalid", "skip", "--save", saved)
    assert (facts["learned"], facts["invalid"]) == (299, 1)
    assert sorted(sl.LinearClassifier.load(saved).labels) == sorted(classes)
    assert trained(capsys, path, "--labels", "open")["learned"] == 300


def test_a_boolean_that_is_spelled_is_no_class_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, saved = tmp_path / "a.jsonl", str(tmp_path / "m")
    rows = [{"x": n % 10, "y": n % 2 == 0} for n in range(300)]
    path.write_text(as_json([{"x": 1, "y": "false"}, *rows]))
    assert trained(capsys, path, "--save", saved)["learned"] == 301
    assert sorted(sl.LinearClassifier.load(saved).labels) == [False, True]


@pytest.mark.parametrize(
    "line",
    [
        '{"x": 1, "y": [1]}',
        '{"x": 1, "y": {"a": 1}}',
        '{"y": 1, "x": ' + "[" * 9999 + "]" * 9999 + "}",
    ],
)
def test_records_that_are_no_events_are_left_to_the_decoder(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(as_json([{"x": n % 10, "y": n % 2} for n in range(50)]) + line + "\n")
    facts = trained(capsys, path, "--on-invalid", "skip")
    assert (facts["learned"], facts["invalid"]) == (50, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--label", "z"],
        ["train", "--label", "y", "--weight", "x"],
        ["evaluate", "--label", "y", "--learners", "default,Foo"],
        ["evaluate", "--label", "z"],
    ],
)
def test_nothing_is_printed_before_an_error(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(as_csv([{"x": -(n % 10), "y": n % 2} for n in range(50)]))
    assert main([arguments[0], str(path), *arguments[1:]]) == 2
    assert not capsys.readouterr().out


def test_decimal_commas_imply_semicolons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, saved = tmp_path / "a.csv", str(tmp_path / "m")
    path.write_text("x;y\n" + "".join(f"{n % 10},5;{n % 2}\n" for n in range(50)))
    facts = trained(capsys, path, "--decimal", ",", "--no-guess", "--save", saved)
    assert facts["columns"] == {"x": "numbers", "y": "numbers"}
    assert main(["test", saved, str(path)]) == 0


# -- held-out rows


def test_held_out_rows_are_scored_by_the_saved_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table(1000)
    path, first, last = (tmp_path / f"{name}.csv" for name in ("all", "first", "last"))
    path.write_text(as_csv(rows))
    first.write_text(as_csv(rows[:800]))
    last.write_text(as_csv(rows[800:]))
    saved = [str(tmp_path / name) for name in ("a", "b")]
    for amount in ("last:20%", "last:200"):
        facts = trained(capsys, path, "--holdout", amount, "--save", saved[0])
        alone = trained(capsys, first, "--save", saved[1])
        assert facts["learned"] == 800
        assert facts["loss"] == alone["loss"]
        assert main(["test", saved[1], str(last), "--json"]) == 0
        tested = json.loads(capsys.readouterr().out)
        shared = facts["holdout"].keys() & tested.keys()
        assert {"loss", "ROC area", "events"} <= shared
        assert {key: facts["holdout"][key] for key in shared} == {
            key: tested[key] for key in shared
        }


@pytest.mark.parametrize(
    "amount", ["last:0%", "last:100%", "first:20%", "20%", "last:x", "last:-3", "last:nan%"]
)
def test_amounts_that_cannot_be_held_out(amount: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,1\n2,0\n")
    with pytest.raises(SystemExit):
        main(["train", str(tmp_path / "a.csv"), "--label", "y", "--holdout", amount])


def test_all_rows_cannot_be_held_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,1\n2,0\n")
    assert main(["train", str(tmp_path / "a.csv"), "--label", "y", "--holdout", "last:9"]) == 2
    assert main(["train", "-", "--format", "csv", "--label", "y", "--holdout", "last:9"]) == 2
    assert capsys.readouterr().err.count("--holdout") == 2


def test_class_weights_and_l1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, saved = tmp_path / "a.jsonl", tmp_path / "m"
    path.write_text(as_json(table()))
    given = ["--class-weight", "1=5", "--l1", "1e-3", "--save", str(saved)]
    trained(capsys, path, *given)
    model = sl.LinearClassifier.load(saved)
    assert model.class_weight == {1: 5.0}
    assert model.objective.penalty == sl.penalties.L1(1e-3)
    trained(capsys, path, "--class-weight", "1=5", "--class-weight", "7=2")
    for wrong in (
        ["--l1", "1", "--penalty", "L1(1)"],
        ["--l1", "nan"],
        ["--l1", "1", "--resume", str(saved)],
        ["--class-weight", "1"],
        ["--class-weight", "1=-2"],
    ):
        assert main(["train", str(path), "--label", "y", *wrong]) == 2
        assert wrong[0] in capsys.readouterr().err
