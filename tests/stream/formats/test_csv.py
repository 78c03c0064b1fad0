"""CSV: what Python and pandas write is read, whatever else comes is read as the grammar says."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn.errors import InvalidEventError, TableMismatchError
from streamlearn.stream import (
    CSVDecoder,
    CustomDecoder,
    Events,
    Fields,
    Files,
    JSONDecoder,
    Partition,
)
from streamlearn.stream.formats.csv import number, split_row
from streamlearn.stream.sources import file as file_module
from streamlearn.stream.sources.lines import Lines
from tests.reference import csv_text

if TYPE_CHECKING:
    import random

Quoting = Literal[0, 1, 2, 3]

EXAMPLES = settings(derandomize=True, max_examples=100, deadline=None, database=None)
SIZES = [1, 2, 3, 7, 64, 1 << 16]
DELIMITERS = [",", ";", "\t", "|", " ", "é", "€", "𝄞"]


def split(
    data: bytes, delimiter: str, size: int = 1 << 16, most: int = 1 << 20
) -> list[tuple[int, bytes]]:
    """Where the rows of data begin that is read in blocks of this size, and the rows."""
    lines, come = Lines("x", delimiter=delimiter), io.BytesIO(data)
    found: list[tuple[int, bytes]] = []
    while True:
        while not lines.waiting and lines.fill(lambda room: come.readinto(room[:size]), size):
            pass
        if not lines.waiting:
            lines.finish()
            if not lines.waiting:
                return found
        offsets, values, _ = lines.take(most)
        found += zip(offsets, values, strict=True)


def read(row: bytes, delimiter: str) -> list[str] | None:
    """The values of a row; None: it is refused."""
    try:
        return split_row(row, delimiter)
    except InvalidEventError:
        return None


def outcome(decoder: Any, records: Any) -> Any:
    """All that a decoder makes of records, the reasons of what it refuses aside."""
    events = Events()
    decoder.decode(records, events)
    seen = [
        ({decoder.reader.name_of(slot): x for slot, x in events.row_of(i)}, events.label_of(i))
        for i in range(len(events))
    ]
    times = [None if np.isnan(moment) else moment for moment in events.times]
    tags = (events.weights.tolist(), events.ids, times)
    return seen, tags, [bad.number for bad in events.invalid], decoder.reader.names()


# What Python writes

QUOTINGS = [
    getattr(csv, name)
    for name in ("QUOTE_MINIMAL", "QUOTE_ALL", "QUOTE_NONNUMERIC", "QUOTE_STRINGS", "QUOTE_NOTNULL")
    if hasattr(csv, name)
]
texts = st.text('ab,;"\n\r é€𝄞\t|', max_size=6)
cell_values = st.one_of(texts, st.integers(-9, 99), st.floats(allow_nan=False), st.none())


@EXAMPLES
@given(
    st.lists(st.lists(cell_values, min_size=2, max_size=4), max_size=8),
    st.sampled_from(DELIMITERS),
    st.sampled_from(QUOTINGS),
    st.sampled_from(["\r\n", "\n"]),
    st.sampled_from(SIZES),
)
@example([["a\nb", 'c"d'], ["", "\r"]], ",", csv.QUOTE_MINIMAL, "\r\n", 1)
def test_csv_from_python_is_read_back(
    table: list[list[Any]], delimiter: str, quoting: Quoting, end: str, size: int
) -> None:
    # Python before 3.13 quotes no \r of its own accord, and its reader takes it for a row's end
    if end == "\n" and quoting != csv.QUOTE_ALL:
        table = [[v.replace("\r", "") if isinstance(v, str) else v for v in row] for row in table]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows(table)
    text = out.getvalue()
    oracle = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    # a line of blanks is none here, such as a row of empty values between tabs
    kept = [row for row in oracle if "".join(row).strip(" \t\r") or delimiter not in " \t"]
    data = text.encode()
    for whole in (data, data.removesuffix(end.encode())):
        found = split(whole, delimiter, size)
        read_back = [split_row(value, delimiter) for _, value in found]
        if delimiter in " \t":
            read_back = [row for row in read_back if "".join(row).strip(" \t\r")]
        assert read_back == kept
        assert all(whole[at : at + len(value)] == value for at, value in found)


def test_rows_without_quotes_or_with_one_column() -> None:
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_NONE).writerows([["a", 1, 2.5], ["b c", -1, 1e300]])
    csv.writer(out).writerows([[""], ["x"], [None], ['"']])
    rows = [split_row(value, ",") for _, value in split(out.getvalue().encode(), ",")]
    expected = [["a", "1", "2.5"], ["b c", "-1", "1e+300"], [""], ["x"], [""], ['"']]
    assert rows == expected == list(csv.reader(io.StringIO(out.getvalue(), newline="")))


frames = st.lists(
    st.tuples(
        st.one_of(st.none(), st.text("ab,\"\n 'é", max_size=4)),
        st.one_of(st.none(), st.floats(allow_infinity=False)),
        st.integers(-(2**53), 2**53),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@EXAMPLES
@given(
    frames,
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.booleans(),
    st.sampled_from(["", "NA", "NaN", "None", "null"]),
    st.sampled_from(SIZES),
)
def test_csv_from_pandas_equals_json(
    table: list[tuple[Any, ...]], sep: str, quoting: Any, index: bool, missing: str, size: int
) -> None:
    frame = pd.DataFrame(table, columns=["text", "x", "n", "flag"]).astype({"text": object})
    data = frame.to_csv(sep=sep, quoting=quoting, index=index, na_rep=missing).encode()
    csv_reader, json_reader = sl.Names(), sl.Names()
    fields = Fields(label=None, ignored=("",) if index else ())
    decoder = CSVDecoder(csv_reader, fields, delimiter=sep, grow_always=True)
    decoder.set_types({"text": "text", "x": "numbers", "n": "numbers", "flag": "text"})
    records = []
    for text, x, n, flag in table:
        record: dict[str, Any] = {"n": n, "flag": str(flag)}
        if text is not None and text.strip().lower() not in csv_text.MISSING:
            record["text"] = text
        if x is not None and not math.isnan(x):
            record["x"] = x
        records.append(json.dumps(record).encode())
    found = outcome(decoder, [value for _, value in split(data, sep, size)])
    expected = outcome(JSONDecoder(json_reader, Fields(label=None), grow_always=True), records)
    assert found[:3] == expected[:3]


# What anybody writes

soup = st.lists(
    st.one_of(
        st.sampled_from([b'"', b'""', b",", b"\n", b"\r\n", b"\r", b'","', b'"\n', b'a","x\n']),
        st.sampled_from([b"a", b"1.5", b" ", b"\0", "é".encode(), b"\xc3", b"\xff", b"NA", b"-2"]),
        st.binary(max_size=3),
    ),
    max_size=40,
).map(b"".join)


@EXAMPLES
@given(soup, st.sampled_from([",", "é", "\t"]), st.sampled_from(SIZES), st.integers(1, 5))
@example(b'"a\nb"', ",", 1, 1)
@example(b'"a\nb"\r', ",", 1, 1)
@example(b'"a"\r,b\n1', ",", 1, 1)
@example('"a\nb"é"c"\xc3'.encode("latin-1"), "é", 1, 1)
@example(b'a","x\n' * 9 + b'y"z\n1,2\n', ",", 2, 3)
@example(b'a","x\n,"z"z\n' * 5 + b'a","x\n' * 3, ",", 5, 3)
def test_rows_follow_the_grammar(data: bytes, delimiter: str, size: int, most: int) -> None:
    data = data.removeprefix(b"\x1f\x8b\x08")  # which is refused
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        data = data[2:]
    found = split(data, delimiter, size, most)
    assert found == csv_text.rows(data, delimiter)
    for _, row in found:
        assert read(row, delimiter) == csv_text.values(row, delimiter)


@EXAMPLES
@given(soup, st.sampled_from([",", "é"]))
def test_any_bytes_are_a_record_or_refused(record: bytes, delimiter: str) -> None:
    """Such as those of Kafka, which nothing splits."""
    assert read(record, delimiter) == csv_text.values(record, delimiter)


number_texts = st.one_of(
    st.text("0123456789+-.eE _n", max_size=8),
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(
        ["inf", "1e400", "1e-400", "\u0661", "0x1", "1_0", " 7\t", "+.5", "2.", "-0", "+007"]
    ),
)


@EXAMPLES
@given(number_texts)
def test_numbers_equal_the_reference(text: str) -> None:
    found, expected = number(text), csv_text.number(text)
    assert (found, type(found)) == (expected, type(expected))


TEXT = {"c", "y", "k", "t"}
ONLY = {"x": "auto", "c": "auto", "*": "ignore"}
FIELDS: list[tuple[Fields, dict[str, str]]] = [
    (Fields(label="y", weight="w", id="k", time="t"), {}),
    (Fields(label="x", weight="w"), {"c": "ignore"}),
    (Fields(label="y", positive=("a", True), time="w", time_unit="ms"), ONLY),
    (Fields(label=None, id="x"), {}),
]
cell_texts = st.one_of(
    st.sampled_from(["a", "b", "1", "0.5", "-2", "NA", "", "True", "false", " 3 ", '"q"', "null"]),
    st.sampled_from(["2026-01-02T03:04:05", "1e3", "1e999", "x,y", "l\nm", "12345678901234567890"]),
    st.text(max_size=3),
)


@EXAMPLES
@given(
    st.lists(st.lists(cell_texts, min_size=6, max_size=6), max_size=8),
    st.sampled_from(FIELDS),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_rows_equal_the_reference(
    table: list[list[str]],
    roles: tuple[Fields, dict[str, str]],
    quoted: bool,
    chance: random.Random,
) -> None:
    fields, spec = roles
    columns = ["x", "c", "y", "w", "k", "t"]
    quoting: Quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    records = []
    for row in table:
        out = io.StringIO(newline="")
        csv.writer(out, quoting=quoting).writerow(row)
        record = bytearray(out.getvalue().encode("utf-8", "surrogatepass"))
        if chance.random() < 0.3:  # something goes wrong on its way
            record[chance.randrange(len(record))] = chance.choice(b'",\n\r1a \xff')
        records.append(bytes(record))
    text = TEXT | ({fields.id} if fields.id else set())
    words = TEXT - ({"x"} if "x" in fields.roles else set())

    def slow(record: bytes) -> Any:
        row = csv_text.values(record, ",")
        if row is None:
            raise ValueError(record)
        if not "".join(row).strip() and len(row) == 1:
            return None
        found = csv_text.event(row, columns, words | text, label=fields.label)
        if found is None:
            raise ValueError(record)
        for role in (fields.weight, fields.time):
            if role in found and isinstance(found[role], str):
                x = csv_text.number(found[role])
                found[role] = found[role] if x is None else x
        return found

    spec = {**spec, "x^c": "interaction"}
    readers = sl.Names(spec), sl.Names(spec)
    decoder = CSVDecoder(readers[0], fields, columns=columns)
    decoder.set_types({name: "text" if name in words else "numbers" for name in columns})
    expected = outcome(CustomDecoder(slow, readers[1], fields), records)
    assert outcome(decoder, records) == expected


@EXAMPLES
@given(st.lists(soup, max_size=9), st.sampled_from([",", "é"]), st.sampled_from(SIZES), texts)
def test_rows_in_place_equal_records(
    parts: list[bytes], delimiter: str, size: int, name: str
) -> None:
    """Read where they lie, without a copy of each, and whatever bytes they are."""
    columns = [name.strip(csv_text.BLANKS), "xx", "yy"]
    decoders = [
        CSVDecoder(
            sl.Hashing(6),
            Fields(label="yy", id="xx"),
            grow_always=True,
            delimiter=delimiter,
            columns=columns,
        )
        for _ in range(2)
    ]
    for decoder in decoders:
        decoder.set_types({columns[0]: "text", "xx": "numbers", "yy": "text"})
    data = b"1,2,3\n" + delimiter.encode().join(parts).removeprefix(b"\x1f\x8b\x08")
    lines, come = Lines("x", delimiter=delimiter), io.BytesIO(data)
    while lines.fill(lambda room: come.readinto(room[:size]), size):
        pass
    lines.finish()
    _, values, end = lines.take(1 << 20)
    assert end == len(data)
    batches = [Events(), Events()]
    decoders[0].decode(values, batches[0])
    decoders[1].decode(list(values), batches[1])
    seen = [
        (
            [(batch.row_of(i), batch.label_of(i)) for i in range(len(batch))],
            batch.ids, batch.invalid, batch.blank, batch.records, batch.byte_count, decoder.columns,
        )
        for batch, decoder in zip(batches, decoders, strict=True)
    ]  # fmt: skip
    assert seen[0] == seen[1]


# The table

GOOD = b"a,y\n1,0\n2,1\n"


@pytest.mark.parametrize(
    ("data", "bad", "labels"),
    [
        (b"\xef\xbb\xbf" + GOOD, [], [0, 1]),  # a byte-order mark
        (b"\n \n" + GOOD + b"\n\r\n3,0\n\n", [], [0, 1, 0]),  # blank lines
        (GOOD.replace(b"\n", b"\r\n"), [], [0, 1]),
        (GOOD + b"3\n", [2], [0, 1]),  # fields are missing
        (GOOD + b"3,1,\n", [2], [0, 1]),  # too many
        (GOOD + b"a,y\n3,0\n", [], [0, 1, 0]),  # files that were put together
        (GOOD + b"1,3\ny,a\n1,3\n", [], [0, 1, 3, 1]),
        (b"a,y\n1,\n,1\n?,0\n2,1\n", [], [None, 1, 0, 1]),  # missing values
        (b"a, y\n 1 ,\t0\n", [], [0]),  # blanks
        (b'"a","y"\n"1","0"\n', [], [0]),
        (GOOD + b'"1.5""x",1\n1,"1.5""0"\n', [2, 3], [0, 1]),  # quotes in what is to be a number
        (b"a\ty\n1\t0\n", [], [0]),
    ],
)
def test_tables(data: bytes, bad: list[int], labels: list[Any]) -> None:
    delimiter = "\t" if data.startswith(b"a\t") else ","
    rows = [value for _, value in split(data, delimiter)]
    decoder = CSVDecoder(sl.Names(), Fields(label="y"), delimiter=delimiter)
    decoder.set_types({"a": "numbers", "y": "numbers"} if b'""' in data else {})  # else inferred
    events = Events()
    decoder.decode(rows, events)
    assert [bad.number - 1 for bad in events.invalid] == bad
    assert [events.label_of(i) for i in range(len(events))] == labels
    assert decoder.reader.names() == ["a"]


def test_quotes_inside_unquoted_values_are_literal() -> None:
    record = b'5" disk,it"s,""x'
    assert split_row(record[:-4], ",") == ['5" disk', 'it"s']
    assert read(record, ",") is None
    assert split_row(b'a "b" c,1', ",") == next(csv.reader(['a "b" c,1']))


@pytest.mark.parametrize("name", ["", "a=b", "é", "x" * 300])
def test_any_name_of_a_column_is_a_name(name: str) -> None:
    reader = sl.Names()
    decoder = CSVDecoder(reader, Fields(label="y"))
    decoder.set_types({name: "numbers", "a": "text", "y": "text"})
    head = f"{name},a,y".encode()
    found = outcome(decoder, [head, b"1,b,u", b"2,c,u"])
    first = {name: 1.0, "a=b": 1.0} if name != "a=b" else {name: 2.0}
    assert found[0] == [(first, "u"), ({name: 2.0, "a=c": 1.0}, "u")]


def test_no_header_is_searched_after_the_first_rows() -> None:
    decoder = CSVDecoder(sl.Names(), Fields(label=None))
    found = outcome(decoder, [*[b"  "] * 1000, b'"a""b",c'])
    assert (found[0], len(found[2])) == ([], 1)


@pytest.mark.parametrize(
    "first", ["größe,y".encode("latin-1"), b"x,y\r1,2", b'"x,y', b'"x"a,y', b"PK\x03\x04\xff,y"]
)
def test_a_header_that_cannot_be_read_is_refused(first: bytes) -> None:
    decoder = CSVDecoder(sl.Names(), Fields(label=None))
    with pytest.raises(TableMismatchError, match="header"):
        decoder.decode([b"", first, b"1,2", b"3,4"], Events())
    assert decoder.columns == ()


def test_a_misspelled_column_is_suggested() -> None:
    with pytest.raises(TableMismatchError, match=r"did you mean clicked\?"):
        CSVDecoder(sl.Names(), Fields(label="Clikced"), columns=["user", "clicked"])


def test_boolean_labels_may_have_blanks_around_them() -> None:
    decoder = CSVDecoder(sl.Names(), Fields(label="y"))
    events = Events()
    decoder.decode([b"x,y", b"1, true", b"2,FALSE ", b"3,\ttrue"], events)
    assert [events.label_of(i) for i in range(3)] == [True, False, True]


def test_duplicate_names_are_refused() -> None:
    with pytest.raises(TableMismatchError):
        outcome(CSVDecoder(sl.Names(), Fields(label=None)), [b"a, a"])


def test_a_value_equal_to_a_column_name_is_not_a_header() -> None:
    decoder = CSVDecoder(sl.Names(), Fields(label="y"))
    found = outcome(decoder, [b"ad,y", b"ad,0", b"y,1", b'"ad","x""', b"y,ad", b"1,z"])
    assert [features for features, _ in found[0]] == [{"ad=ad": 1.0}, {"ad=y": 1.0}, {"ad=z": 1.0}]
    assert found[2] == [3]


@pytest.mark.parametrize("delimiter", [".", "1", "e", "-", '"', "\n", "\0", "", ",,", None])
def test_invalid_delimiters(delimiter: Any) -> None:
    with pytest.raises(ValueError, match="delimiter"):
        CSVDecoder(sl.Names(), delimiter=delimiter)
    if delimiter is not None:
        with pytest.raises(ValueError, match="delimiter"):
            Lines("x", delimiter=delimiter)


# Where rows end

MIB = 1 << 20


@pytest.mark.parametrize(("length", "whole"), [(MIB - 1, True), (MIB, False)])
@pytest.mark.parametrize("size", [1 << 12, 1 << 16, 1 << 22])
def test_a_row_with_line_breaks_has_at_most_one_mebibyte(
    length: int, whole: bool, size: int
) -> None:
    row = b'"a\n' + b"x" * (length - 4) + b'"'
    assert len(row) == length
    found = [value for _, value in split(row + b"\n1,2\n", ",", size)]
    assert found == ([row, b"1,2"] if whole else [*row.split(b"\n"), b"1,2"])
    # of one without line breaks nothing is asked
    row = row.replace(b"\n", b" ")
    assert [value for _, value in split(row + b"\n1,2\n", ",", size)] == [row, b"1,2"]


@pytest.mark.parametrize("line", [b'a","x\n', b'a","x\n,"z"z\n', b'a","' + b"x\n" * 9])
def test_open_quotes_take_linear_time(line: bytes) -> None:
    """Every byte is looked at a few times; hours, if it were once for each row before it."""
    count = 4 * MIB // len(line)
    found = split(b"".join([line * count, b"x" * 2 * MIB, b'y"z\n', line * count, b"1,2"]), ",")
    assert len(found) == 2 * count * line.count(b"\n") + 2
    assert found[-1][1] == b"1,2"


@pytest.mark.parametrize("middle", [b"x", b'a","x\n'])
@pytest.mark.parametrize("end", [b'"\n1,2\n', b'",\n', b'""'])
@pytest.mark.parametrize("spare", [-3, 0, 3])
def test_rows_follow_the_grammar_around_the_limit(middle: bytes, end: bytes, spare: int) -> None:
    """Where the limit may come between a quote and what tells whether it closes a value."""
    head = b'a,b\n1,"2\n'
    count = (MIB - len(head) - len(end) + spare) // len(middle)
    if b"\n" in middle:  # the reference reads every row anew
        head += b"x" * len(middle) * (count - 3)
        count = 3
    data = head + middle * count + end
    assert split(data, ",", 1 << 18) == csv_text.rows(data, ",")


def test_a_followed_file_waits_for_the_end_of_a_quote(tmp_path: Any) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'a,b\n1,"x\n')
    source = Files([path], follow=True, delimiter=",")
    source.open({}, None)
    [header] = source.poll(0.0)
    assert list(header.values) == [b"a,b"]
    for more in (b"", b"y", b'z""\n', b'"', b"\r"):
        with path.open("ab") as file:
            file.write(more)
        assert source.poll(0.0) == []
    with path.open("ab") as file:
        file.write(b"\n2,")
    [records] = source.poll(0.0)
    assert (records.offsets, list(records.values)) == ([4], [b'1,"x\nyz""\n"\r'])
    source.close()
    # what resumes there reads the rest
    again = Files([path], delimiter=",")
    again.open({records.partition: records.end}, source.identity())
    [rest] = again.poll(0.0)
    assert (rest.offsets, list(rest.values)) == ([records.end], [b"2,"])
    again.close()


@pytest.mark.parametrize("size", SIZES)
def test_reading_resumes_from_every_position(size: int) -> None:
    data = b'a,b\n1,"x\ny"\r\n\n"5,6\n7,8\n"9","\n"\n'
    whole = split(data, ",")
    assert [value for _, value in whole] == [
        b"a,b", b'1,"x\ny"\r', b'"5,6', b"7,8", b'"9","\n"'
    ]  # fmt: skip
    for k, (at, _) in enumerate(whole):
        assert [(at + other, row) for other, row in split(data[at:], ",", size)] == whole[k:]


@pytest.mark.parametrize("compressed", [False, True])
def test_skip_to_refuses_a_line_inside_quotes(
    compressed: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b'a,b\n1,"x\ny\n"\n\n5,"6\n7,8\n'
    path = tmp_path / ("x.csv.gz" if compressed else "x.csv")
    path.write_bytes(gzip.compress(data) if compressed else data)
    monkeypatch.setattr(file_module, "BLOCK", 5)
    source = Files([path], delimiter=",")
    begins = [at for at in range(len(data) + 1) if source.begins_line(Partition(str(path)), at)]
    rows = [0, *(at for at, _ in csv_text.rows(data, ","))]
    blank = data.index(b"\n\n") + 1
    assert begins == sorted({*rows, blank, len(data)})
    assert Files([path]).begins_line(Partition(str(path)), data.index(b"y"))


def test_types_are_inferred_from_the_first_rows_only() -> None:
    rows = [b"a,y", *itertools.repeat(b"1,0", 999), b"x,1"]
    decoder = CSVDecoder(sl.Names(), Fields(label="y"))
    _, _, bad, _ = outcome(decoder, rows)
    assert (decoder.types["a"], bad) == ("numbers", [1000])
    decoder = CSVDecoder(sl.Names(), Fields(label="y"))
    _, _, bad, _ = outcome(decoder, [rows[0], *rows[2:]])
    assert (decoder.types["a"], bad) == ("text", [])
