"""svmlight, Vowpal Wabbit's text, CSV: the rows of the same events, or refused with the reason."""

from __future__ import annotations

import io
import math
import struct
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import streamlearn as sl
from streamlearn.core import formats
from streamlearn.errors import TableMismatchError
from streamlearn.stream import (
    CSVDecoder,
    CustomDecoder,
    Events,
    Fields,
    JSONDecoder,
    SVMLightDecoder,
    VWDecoder,
    decoder_of,
)
from streamlearn.stream.sources.lines import Lines, size_and_nulls

LINES = formats.names(has_columns=False, has_schemas=False)
EXAMPLES = settings(derandomize=True, max_examples=60, deadline=None, database=None)
values = st.one_of(
    st.integers(-9, 9).map(float),
    st.floats(-1e9, 1e9, allow_nan=False),
    st.sampled_from([0.1, 1e300, 5e-324, 0.0]),
)
names = st.text(st.characters(codec="utf-8", exclude_characters=" \t\r\n|:\0"), min_size=1)


def named(reader: Any, row: list[tuple[int, float]]) -> dict[Any, bytes]:
    return {reader.name_of(slot): struct.pack("d", value) for slot, value in row}


def decode(decoder: Any, *records: bytes | None) -> Events:
    events = Events()
    decoder.decode(records, events)
    return events


@EXAMPLES
@given(
    st.lists(
        st.tuples(st.integers(-2, 2), st.dictionaries(st.integers(0, 99), values, max_size=6)),
        max_size=4,
    ),
    st.booleans(),
)
def test_svmlight_is_its_matrix(lines: list[tuple[int, dict[int, float]]], hashed: bool) -> None:
    reader: Any = sl.Hashing(5) if hashed else sl.Names()
    decoder = SVMLightDecoder(reader)
    records = [
        " ".join([f"{y:+d}", *(f"{j}:{x!r}" for j, x in row.items())]).encode() for y, row in lines
    ]
    events = decode(decoder, *records)
    assert not events.invalid
    assert [events.label_of(i) for i in range(len(events))] == [y for y, _ in lines]
    for i, (_, row) in enumerate(lines):
        again: Any = reader.fresh()
        assert named(reader, events.row_of(i)) == named(again, again.read_event(row))


@EXAMPLES
@given(
    st.lists(
        st.one_of(
            st.from_regex(r"-?(0|[1-9][0-9]{0,3})\.[0-9]{1,18}", fullmatch=True),
            st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{1,20}([eE][+-]?[0-9]{1,2})?", fullmatch=True),
            st.floats(-1000.0, 1000.0).map(repr),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_decimals_of_a_line_are_exact(texts: list[str]) -> None:
    line = " ".join(["1", *(f"{j}:{text}" for j, text in enumerate(texts))])
    expected = [(j, float(text)) for j, text in enumerate(texts) if float(text) != 0.0]
    for end in ("", " ", " 9:1 9:-1 # far from the end"):  # long and short ways to a number
        events = decode(SVMLightDecoder(sl.Names()), (line + end).encode())
        assert events.row_of(0) == expected


def test_numbers_of_every_length() -> None:
    texts = [
        f"{sign}{whole}.{'90123456789012345678'[first : first + n]}"
        for sign in ("", "-", "+")
        for whole in ("0", "7", "42", "919", "920", "1234", "00", "")
        for first in (0, 1, 8)
        for n in range(1, 20 - first)
    ]
    for text in texts:
        expected = [float(text)] if float(text) else []
        for line in (f"1 0:{text}", f"1 0:{text} 1:0"):
            events = decode(SVMLightDecoder(sl.Names()), line.encode())
            assert events.values.tolist() == expected
        for line in (f"1 | a:{text}", f"1 | a:{text} b"):
            events = decode(VWDecoder(sl.Names()), line.encode())
            assert events.values.tolist() == expected + [1.0] * line.endswith("b")
    for column in [c for k in range(1, 14) for c in (10 ** (k - 1), 10**k - 1)]:
        reader = sl.Names()
        events = decode(SVMLightDecoder(reader), f"1 {column}:1".encode())
        assert [reader.name_of(slot) for slot, _ in events.row_of(0)] == [column]


def test_a_file_written_by_sklearn_gives_the_model_of_its_matrix(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20)) * (rng.random((300, 20)) < 0.4)
    y = np.where(X[:, 0] > 0, 1, -1)
    dump_svmlight_file(X, y, str(tmp_path / "x"), zero_based=True, comment="made up", query_id=y)
    events = Events()
    one, other = sl.LinearClassifier(), sl.LinearClassifier()
    lines = (tmp_path / "x").read_bytes().splitlines()
    SVMLightDecoder(one.reader, Fields(), [one]).decode(lines, events)
    assert events.blank > 0
    one.progressive_events(events)
    X, y = load_svmlight_file(str(tmp_path / "x"))
    other.learn_rows(X, y.astype(int))
    assert one.weights == other.weights
    assert events.ids[0] == str(int(y[0])).encode()


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"x 1:2", "label"),
        (b"1,2 1:2", "label"),
        (b"1e999 1:2", "label"),
        (b"1 a:2", None),
        (b"1 -1:2", None),
        (b"1 1:", "1"),
        (b"1 1:nan", "1"),
        (b"1 1:1e999", "1"),
        (b"1 1:2:3", "1"),
        (b"1 1.5:2", None),
        (b"1 99999999999999999999:2", None),
        (b"1 1", None),
        (b"1 1:2\0", None),
        (b"\xff", "label"),
    ],
)
def test_invalid_lines_of_svmlight(line: bytes, field: str | None) -> None:
    reader = sl.Names()
    events = decode(SVMLightDecoder(reader), line, b"1 0:1")
    [(index, at, _, _)] = events.invalid
    assert (index, at) == (0, field)
    assert reader.names() == [0]


def test_svmlight_with_unusual_lines() -> None:
    reader = sl.Names()
    events = decode(
        SVMLightDecoder(reader), b"", b"  # nothing", b"-1.50 3:1 1:2 3:+.5e1 5:0 #x", b"1\r",
        b"1 5000000:1 2147483648:2 9000000:3", b"\t2\t7:1 ",
    )  # fmt: skip
    assert (events.invalid, events.blank, len(events)) == ([], 2, 4)
    assert events.row_of(0) == [(3, 6.0), (1, 2.0)]
    assert events.row_of(1) == []
    assert events.label_of(0) == -1.5
    assert [reader.name_of(slot) for slot, _ in events.row_of(2)] == [5000000, 2147483648, 9000000]
    assert reader.size == 6 + 3 + 1
    crossed = sl.Names({"1^2": "interaction"})
    events = decode(SVMLightDecoder(crossed), b"1 1:2 2:3 4:0.5")
    assert named(crossed, events.row_of(0))["1^2"] == struct.pack("d", 6.0)
    picked = sl.Names({"2": "ignore"})
    events = decode(SVMLightDecoder(picked), b"1 1:2 2:3")
    assert picked.names() == [1]


@EXAMPLES
@given(
    st.lists(
        st.dictionaries(
            st.one_of(st.just(""), names),
            st.dictionaries(names, values, min_size=1, max_size=4),
            max_size=3,
        ),
        max_size=4,
    )
)
def test_vw_is_its_event(batch: list[dict[str, dict[str, float]]]) -> None:
    reader = sl.Names({"a^b": "interaction", "a.x^b": "interaction"})
    again = sl.Names({"a^b": "interaction", "a.x^b": "interaction"})
    decoder = VWDecoder(reader)
    for event in batch:
        text = " ".join(
            f"|{space} " + " ".join(f"{name}:{x!r}" for name, x in row.items())
            for space, row in event.items()
        )
        if not event:
            text = "|"
        events = decode(decoder, f"1 {text}".encode())
        flat: list[tuple[str, Any]] = []
        for space, row in event.items():
            flat += list(row.items()) if space == "" else [(space, row)]
        if len({name for name, _ in flat}) < len(flat) or "'" in event:
            continue
        try:
            want = named(again, again.read_event(dict(flat)))
        except sl.InvalidEventError:
            assert events.invalid
            continue
        assert named(reader, events.row_of(0)) == want


def test_vw_line_by_line() -> None:
    reader = sl.Names()
    events = decode(
        VWDecoder(reader),
        b"1 |a x y:2 |b z", b"-1 0.5 'id1| w", b"| w:0", b"tag|a x", b"1 2 tag|a x",
        b"'t |a:2 x:1.5 y", b"", b"0 |a x x:3", b"1|a x", "1 |ü ö".encode(), b"1 |a x|b z\r\n",
    )  # fmt: skip
    assert events.invalid == []
    assert events.blank == 1
    labels = [events.label_of(i) for i in range(len(events))]
    assert labels == [1, -1, None, None, 1, None, 0, None, 1, 1]
    assert events.weights.tolist() == [1.0, 0.5, 1, 1, 2.0, 1, 1, 1, 1, 1]
    assert events.ids == [None, b"id1", None, b"tag", b"tag", b"t", None, b"1", None, None]
    rows = [{reader.name_of(j): x for j, x in events.row_of(i)} for i in range(len(events))]
    assert rows[0] == {"a.x": 1.0, "a.y": 2.0, "b.z": 1.0}
    assert rows[1] == {"w": 1.0}
    assert rows[2] == {}
    assert rows[5] == {"a.x": 3.0, "a.y": 2.0}
    assert rows[6] == {"a.x": 4.0}
    assert rows[8] == {"ü.ö": 1.0}
    assert rows[9] == {"a.x": 1.0, "b.z": 1.0}
    picked = sl.Names({"a": "auto", "b.z": "auto", "a.y": "ignore", "*": "ignore"})
    decode(VWDecoder(picked), b"1 |a x y|b z w|c q")
    assert picked.names() == ["a.x", "b.z"]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (b"1 a b", "|"),
        (b"x |a b", "'x'"),
        (b"1:2:0.5 |a b", "'1:2:0.5'"),
        (b"1 2 3 |a b", "'3'"),
        (b"1 -1 |a b", "'-1'"),
        (b"1 'x y |a b", "'y'"),
        (b"1 |a b:x", "'b'"),
        (b"1 |a b:", "'b'"),
        (b"1 |a b:1e999 c", "'1e999'"),
        (b"1 |a:x b", "'x'"),
        (b"1 |a:1e999 b", "'1e999'"),
        (b"1 |a:1e300 c b:1e10", "1e+300"),
        (b"1 |a b\xff", "UTF-8"),
        (b"1 |a\xff b", "UTF-8"),
        (b"1 |a b\0c", "zero byte"),
        (b"1 |a b:1:2", "'b'"),
    ],
)
@pytest.mark.parametrize("fields", [None, {"z": "number"}, {"z^y": "interaction"}])
def test_invalid_lines_of_vw(line: bytes, part: str, fields: Any) -> None:
    reader = sl.Names(fields)
    [(index, _, _, reason)] = decode(VWDecoder(reader), line).invalid
    assert index == 0
    assert part in reason
    assert reader.size == 0


def test_csv_types_labels_and_missing_values() -> None:
    reader = sl.Names()
    decoder = CSVDecoder(reader, Fields(label="y", weight="w", id="k"))
    events = decode(
        decoder, b"k,a,b,y,w", b'1,"x, ""y""",1.5,spam,2', b"2,NA,,ham,1\r", b"", b"k,a,b,y,w",
        b"3,z,2,,1", b"4,z,x,spam,1", b"5,z", b"6,z,2,spam,-1", b'7,"z,1,spam,1',
    )  # fmt: skip
    assert decoder.types == {"a": "text", "b": "text", "y": "text"}
    assert events.blank == 3
    assert [bad.number for bad in events.invalid] == [7, 8, 9]
    assert [events.label_of(i) for i in range(4)] == ["spam", "ham", None, "spam"]
    assert events.ids == [b"1", b"2", b"3", b"4"]
    assert events.weights.tolist() == [2.0, 1.0, 1.0, 1.0]
    assert reader.names()[:2] == ['a=x, "y"', "b=1.5"]
    again = CSVDecoder(reader, Fields(label="y", weight="w", id="k"))
    again.restore(decoder.state())
    assert decode(again, b"k,a,b,y,w", b"8,z,2,spam,1").ids == [b"8"]


def test_csv_files_with_columns_in_another_order() -> None:
    decoder = CSVDecoder(reader := sl.Names(), Fields(label="y"))
    events = decode(decoder, b"y,a,b", b"1,2,u", b"a, y,b", b"3,0,u", b"b,a,y", b"u,4,1", b"a,1,1")
    assert events.invalid == []
    assert events.blank == 3
    assert reader.names() == ["a", "b=u", "b=a"]
    assert events.labels.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert [dict(events.row_of(i))[0] for i in range(4)] == [2.0, 3.0, 4.0, 1.0]
    again = CSVDecoder(sl.Names(), Fields(label="y"))
    again.restore(decoder.state())
    assert decode(again, b"u,5,1", b"y,a,b", b"0,6,u").labels.tolist() == [1.0, 0.0]


def test_csv_without_required_columns() -> None:
    fields, spec = Fields(label="y"), {"k": "ignore", "a^b": "interaction", "*": "auto"}
    for header, words in ((b"k,a", "no column 'y'"), (b"y,a", "no column 'k'")):
        with pytest.raises(TableMismatchError, match=words):
            decode(CSVDecoder(sl.Names(spec), fields), header)
    with pytest.raises(TableMismatchError, match="';'"):
        decode(CSVDecoder(sl.Names(spec), fields), b"y;k")
    # what is only predicted
    decoder = CSVDecoder(sl.Names(spec), fields.unlabeled(), grow_always=True)
    with pytest.raises(TableMismatchError, match="'b'"):
        decode(CSVDecoder(sl.Names({"b": "category"}), fields.unlabeled()), b"a")
    assert len(decode(decoder, b"a", b"1")) == 1


def test_csv_with_some_known_types() -> None:
    decoder = CSVDecoder(reader := sl.Names(), Fields(label=None), grow_always=True)
    decoder.set_types({"zip": "text", "gone": "numbers"})
    decode(decoder, b"a,zip")
    decode(decoder, b"1,123")
    assert reader.names() == ["a", "zip=123"]


def test_csv_with_given_columns_and_types() -> None:
    reader = sl.Names()
    decoder = CSVDecoder(
        reader, Fields(label=None), grow_always=True, delimiter=";", columns=["a", "b"]
    )
    decoder.set_types({"a": "numbers", "b": "text"})
    events = decode(decoder, b"1;2", b"x;y")
    assert reader.names() == ["a", "b=2"]
    [(index, field, _, reason)] = events.invalid
    assert (index, field) == (1, "a")
    assert "numbers" in reason
    with pytest.raises(ValueError, match="'a'"):
        decode(CSVDecoder(reader, Fields(label=None)), b"a,a")
    with pytest.raises(ValueError, match="delimiter"):
        CSVDecoder(reader, delimiter=";;")


@pytest.mark.parametrize("kind", LINES)
@EXAMPLES
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=30),
            st.text("01.5e-+:| \t'\"#qid,ab\n\0é", max_size=40).map(str.encode),
        ),
        max_size=6,
    )
)
def test_any_bytes(kind: str, records: list[bytes]) -> None:
    reader = sl.Names()
    decoder = decoder_of(kind, reader, Fields(label=None), columns=["a", "b"])
    events = decode(decoder, *records, None)
    assert len(events) + len(events.invalid) + events.blank + events.tombstones == len(records) + 1
    assert np.isfinite(events.values).all()
    for i in range(len(events)):
        row = events.row_of(i)
        assert len(dict(row)) == len(row)
    for *_, reason in events.invalid:
        assert reason


words = st.text("01.5e-+:| \t'\"#qid,ab\r\0é", max_size=40).map(str.encode)
good = st.sampled_from(
    [b"1 | a:0.25 b:-1 \xc3\xa9", b"-1 2.5 'x|n:2 a b:3.0625", b"| c:1e-3", b"1 | p:1e308 p:1e308",
     b"+1 3:0.5 2:1e2 3:-7.25", b"2.5 qid:4 1:12.0 # two", b"1 3:1e308 3:1e308",
     b"7", b"b,a", b"1,0.5", b'{"a": 0.5, "b": "c"}']
)  # fmt: skip


@pytest.mark.parametrize("kind", LINES)
@EXAMPLES
@given(st.lists(st.one_of(words, good), max_size=8), st.booleans(), st.integers(1, 99))
def test_lines_in_place_equal_records(
    kind: str, lines: list[bytes], hashed: bool, size: int
) -> None:
    text = io.BytesIO(b"\n".join(lines))
    cut = Lines("x")
    readers: list[Any] = [
        sl.Hashing(4) if hashed else sl.Names({"n^a": "interaction"}) for _ in range(2)
    ]
    decoders = [decoder_of(kind, reader, Fields(label=None)) for reader in readers]
    batches = [Events(), Events()]
    refused = [0, 0]  # how often each refused the table
    while not any(refused):
        if not cut.waiting and not cut.fill(text.readinto, size):
            cut.finish()
            if not cut.waiting:
                break
        _, values, _ = cut.take(3)
        for k, given_as in enumerate((values, list(values))):
            try:
                decoders[k].decode(given_as, batches[k])
            except TableMismatchError:  # two columns of one name
                refused[k] += 1
    assert refused[0] == refused[1]
    if any(refused):
        return
    seen = [
        (
            [(events.row_of(i), events.label_of(i)) for i in range(len(events))],
            events.weights.tolist(), events.ids, events.index.tolist(), events.known.tolist(),
            events.invalid, events.blank, events.records, events.byte_count, reader.state(),
        )
        for events, reader in zip(batches, readers, strict=True)
    ]  # fmt: skip
    assert seen[0] == seen[1]
    assert seen[0][-2] == sum(len(line) for line in lines if line.strip(b" \t\r"))


def test_lines_are_a_sequence() -> None:
    cut = Lines("x")
    cut.fill(io.BytesIO(b"a\n \nbc\r\nd\n").readinto, 64)
    values: Any = cut.take(9)[1]
    assert values == [b"a", b"bc\r", b"d"] == list(values)
    assert (values[-1], values[1:], values[::-2], values[2:1]) == (b"d", [b"bc\r", b"d"],
                                                                   [b"d", b"a"], [])  # fmt: skip
    assert size_and_nulls(values) == size_and_nulls(list(values)) == (5, 0)
    assert size_and_nulls(values[1:2]) == (3, 0)
    with pytest.raises(IndexError, match="3"):
        values[3]


def test_formats_by_name() -> None:
    with pytest.raises(ValueError, match="svmlight"):
        decoder_of("xml", sl.Names())
    with pytest.raises(ValueError, match="nowhere:f"):
        decoder_of("nowhere:f", sl.Names())
    with pytest.raises(ValueError, match=r"3\.14"):
        decoder_of("math:pi", sl.Names())
    made = decoder_of("streamlearn.stream.formats.json:JSONDecoder", sl.Names())
    assert type(made) is JSONDecoder


def test_errors_of_a_custom_function_make_records_invalid() -> None:
    outcomes: list[Any] = [{"a": 1.0}, None, [1], {"a": math.nan}, {"b": object()}, KeyError("x")]

    def function(record: bytes) -> Any:
        outcome = outcomes[int(record)]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    reader = sl.Names()
    events = decode(CustomDecoder(function, reader), *(b"%d" % i for i in range(6)))
    assert [bad.number for bad in events.invalid] == [2, 3, 4, 5]
    assert (len(events), events.blank) == (1, 1)
    assert events.invalid[-1].reason == "KeyError: 'x'"


def test_csv_with_a_header_and_given_columns() -> None:
    """It is no event, or all columns would be of text."""
    decoder = CSVDecoder(reader := sl.Names(), Fields(label="y"), columns=["a", "y"])
    decoder.set_types({})
    events = decode(decoder, b"a,y", b"0.5,1", b"2,0", b"y, a", b"1,7")
    assert (len(events), events.blank, events.invalid) == (3, 2, [])
    assert decoder.types == {"a": "numbers", "y": "numbers"}
    assert reader.names() == ["a"]
    # other names than those of the first line are the columns' all the same
    decoder = CSVDecoder(sl.Names(), Fields(label="y"), columns=["y", "a"])
    assert len(decode(decoder, b"a,y", b"0.5,1")) == 2


def test_csv_with_many_columns() -> None:
    """In the time of their number, not of its square."""
    names = [b"c%d" % i for i in range(100_000)]
    begun = time.process_time()
    events = decode(
        CSVDecoder(sl.Names(), Fields(label="c0")), b",".join(names), b"1," * 99_999 + b"1"
    )
    assert len(events.row_of(0)) == 99_999
    assert time.process_time() - begun < 20.0
    with pytest.raises(TableMismatchError, match="'c7'"):
        decode(CSVDecoder(sl.Names(), Fields(label="c0")), b",".join([*names, b"c7"]))


BIG = [2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 2**63 - 1, -(2**63)]
TOO_BIG = [2**63, -(2**63) - 1, 2**64 - 1, 10**25]


def numbered(record: bytes) -> dict[str, int]:
    """A decoder of one's own, which gives integers of Python."""
    return {"id": int(record), "label": int(record)}


@pytest.mark.parametrize("kind", ["json", "csv", "vw", "svmlight", "module"])
def test_integers_that_no_float_holds_are_exact(kind: str) -> None:
    wanted = [*BIG, *TOO_BIG]
    written = {
        "json": [b'{"id": %d, "label": %d}' % (one, one) for one in wanted],
        "csv": [b"id,label"] + [b"%d,%d" % (one, one) for one in wanted],
        "vw": [b"%d '%d | a" % (one, one) for one in wanted],
        "svmlight": [b"%d qid:%d 1:1" % (one, one) for one in wanted],
        "module": [b"%d" % one for one in wanted],
    }

    fields = Fields(id="id" if kind in {"json", "csv", "module"} else None)
    for learners in ([], [sl.LinearClassifier()]):
        name = f"{__name__}:numbered" if kind == "module" else kind
        decoder, found = decoder_of(name, sl.Names(), fields, learners), Events()
        decoder.decode(written[kind], found)
        labels = [found.label_of(i) for i in range(len(found))]
        assert labels == BIG
        assert {type(label) for label in labels} == {int}
        assert found.ids == [b"%d" % one for one in BIG]
        assert [bad.field for bad in found.invalid] == ["label"] * len(TOO_BIG)


def test_regression_reads_large_integers_as_numbers() -> None:
    """They are not remembered one by one, as classes are."""
    decoder = decoder_of("json", sl.Names(), Fields(), [sl.LinearRegressor()])
    found = Events()
    decoder.decode([b'{"label": %d}' % one for one in BIG], found)
    assert found.labels.tolist() == [float(one) for one in BIG]
    assert decoder.classes == []


def test_the_length_of_a_label_is_limited() -> None:
    decoder, found = decoder_of("json", sl.Names(), Fields()), Events()
    decoder.decode([b'{"label": "%s"}' % (b"x" * n) for n in (1024, 1025, 5_000_000)], found)
    assert [len(str(label)) for label in decoder.classes] == [1024]
    assert [(bad.number, bad.field) for bad in found.invalid] == [(1, "label"), (2, "label")]
    positive, found = decoder_of("json", sl.Names(), Fields(positive=("yes",))), Events()
    positive.decode([b'{"label": "%s"}' % (b"x" * 5000), b'{"label": "yes"}'], found)
    assert found.labels.tolist() == [0.0, 1.0]  # no label is remembered here


def unwritable(record: bytes) -> dict[str, object]:
    """A decoder of one's own, whose ids no text can hold."""
    return {"id": 10**5000 if record == b"digits" else "\ud800", "x": 1.0}


def test_an_id_that_is_not_unicode_is_invalid() -> None:
    decoder = decoder_of(f"{__name__}:unwritable", sl.Names(), Fields(id="id"))
    decoder.decode([b"digits", b"surrogate"], found := Events())
    assert [(bad.number, bad.field) for bad in found.invalid] == [(0, "id"), (1, "id")]


def test_reasons_of_invalid_records_are_short() -> None:
    records = [b'{"%s": [1]}' % (b"k" * 1_000_000), b'{"x": "%s' % (b"y" * 1_000_000)]
    decoder_of("json", sl.Names(), Fields()).decode(records, found := Events())
    loud = decoder_of(f"{__name__}:loud", sl.Names(), Fields())
    loud.decode([b"z" * 1_000_000], other := Events())
    assert len(found.invalid) + len(other.invalid) == 3
    for _, field, _, reason in [*found.invalid, *other.invalid]:
        assert len(field or "") <= 1000
        assert len(reason) <= 1000


def loud(record: bytes) -> dict[str, object]:
    """A decoder of one's own, whose error quotes all it was given."""
    raise ValueError(record.decode())
