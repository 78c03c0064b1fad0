"""Which labels a stream may have: in every format, and whatever the batches are."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import streamlearn as sl
from streamlearn.errors import InvalidEventError
from streamlearn.stream import CSVDecoder, Decoder, Events, Fields, decoder_of
from streamlearn.stream.formats.label_set import LabelSet

CLOSING = Fields(label="y", weight="w", warmup=1000)
NUMBERS = ("svmlight", "vw")


def line(kind: str, label: Any, weight: float = 1.0) -> bytes:
    """An event with this label, as the format has it."""
    if kind == "svmlight":
        return f"{label} 1:1".encode()
    if kind == "vw":
        return f"{label} {weight} | a".encode()
    if kind == "csv":
        return f"1,{json.dumps(label)},{weight}".encode()
    return json.dumps({"a": 1, "y": label, "w": weight}).encode()


def loads(record: bytes) -> Any:
    """A format of one's own."""
    return json.loads(record)


def decoder(
    kind: str, fields: Fields = CLOSING, model: Any = None, *, number: bool = False
) -> Decoder:
    options: dict[str, Any] = {}
    if kind == "csv":
        options = {"columns": ("a", "y", "w")}
    kind = f"{__name__}:loads" if kind == "custom" else kind
    made = decoder_of(kind, sl.Names(), fields, [model or sl.LinearClassifier()], **options)
    if isinstance(made, CSVDecoder):
        made.set_types({"a": "numbers", "y": "numbers" if number else "text"})
    return made


def read(one: Decoder, *lines: bytes) -> Events:
    events = Events()
    one.decode(list(lines), events)
    return events


def labels_of(events: Events) -> list[Any]:
    return [events.label_of(i) for i in range(len(events))]


@pytest.mark.parametrize("kind", ["json", "custom", "csv", "svmlight", "vw"])
@pytest.mark.parametrize("pair", [(False, True), (1, 0), (-1, 1)])
def test_a_pair_of_labels_closes_immediately(kind: str, pair: tuple[Any, Any]) -> None:
    if kind in NUMBERS:
        pair = (int(pair[0]), int(pair[1]))
    one = decoder(kind, number=not isinstance(pair[0], bool))
    read(one, line(kind, pair[0]))
    assert not one.labels.closed
    read(one, line(kind, pair[1]))
    assert (one.labels.closed, one.labels.closed_at) == (True, 2)
    assert one.labels.labels == list(pair)
    assert one.labels.positive == max(pair)
    events = read(one, line(kind, pair[0]), line(kind, 3), line(kind, pair[1]))
    assert labels_of(events) == list(pair)
    assert [bad.number for bad in events.invalid] == [1]
    assert one.labels.labels == list(pair)


@pytest.mark.parametrize("kind", ["json", "custom"])
def test_booleans_may_be_spelled(kind: str) -> None:
    one = decoder(kind)
    events = read(one, *(line(kind, label) for label in (True, "false", "True", "FALSE", "no")))
    assert labels_of(events) == [True, False, True, False]
    assert all(isinstance(label, bool) for label in labels_of(events))
    assert [(bad.number, bad.field) for bad in events.invalid] == [(4, "y")]
    # where the first label is text, so are those
    texts = decoder(kind)
    assert labels_of(read(texts, line(kind, "true"), line(kind, "other"))) == ["true", "other"]
    assert not texts.labels.closed
    # what is declared comes first
    for fields in (Fields(label="y", labels=(False, True)), Fields(label="y", positive=(True,))):
        assert labels_of(read(decoder(kind, fields), line(kind, "True"))) == [True]


@pytest.mark.parametrize("kind", ["json", "custom"])
@pytest.mark.parametrize(
    ("labels", "known", "positive"),
    [
        (["true", False, True, "true"], ["false", "true"], "true"),
        (["False", True, False, "true"], ["False", "true"], "true"),
        (["1", 0, 1, 1.0, "0"], ["0", "1"], "1"),
        (["1.0", 0, 1, 1.0], ["0", "1.0"], "1.0"),
        ([1, "0", "1", "1.0", 0], [1, 0], 1),
        (["9007199254740993", 9007199254740993, "a"], ["9007199254740993", "a"], "a"),
    ],
)
def test_a_label_of_another_type_is_no_other_class(
    kind: str, labels: list[Any], known: list[Any], positive: Any
) -> None:
    """One string among booleans or numbers, even the first, is not a third class."""
    one = decoder(kind, Fields(label="y", warmup=len(labels)))
    events = read(one, *(line(kind, label) for label in labels))
    assert not events.invalid
    assert (one.labels.labels, one.labels.closed, one.labels.positive) == (known, True, positive)
    assert set(labels_of(events)) == set(known)
    events = read(one, *(line(kind, label) for label in [*labels, "01", "no", [], 5, True]))
    assert {bad.number for bad in events.invalid} >= {len(labels) + i for i in range(4)}
    assert set(labels_of(events)) == set(known)


@pytest.mark.parametrize("kind", ["json", "custom"])
@pytest.mark.parametrize("fields", [{"warmup": 1000}, {"labels": (0, 1)}, {}])
def test_an_equal_label_of_another_type_is_the_first_one(kind: str, fields: Any) -> None:
    """So the type of a prediction does not depend on the record that was learned first."""
    one = decoder(kind, Fields(label="y", **fields))
    labels = [1, False, True, 0.0] if "labels" in fields else [1, 0, False, True, 0.0]
    events = read(one, *(line(kind, label) for label in labels))
    assert {type(label) for label in labels_of(events)} == {int}
    assert type(one.resolve_label(False)) is int
    model = sl.LinearClassifier()
    model.progressive_events(events)
    assert {type(label) for label in model.predict_proba_one({"a": 1})} == {int}


def test_open_and_declared_labels_keep_their_types() -> None:
    free = decoder("json", Fields(label="y"))
    assert labels_of(read(free, line("json", "1"), line("json", 1))) == ["1", 1]
    fixed = decoder("json", Fields(label="y", labels=("1", "0")))
    events = read(fixed, line("json", "1"), line("json", 1), line("json", "0"))
    assert (labels_of(events), [bad.number for bad in events.invalid]) == (["1", "0"], [1])
    assert fixed.labels.positive == "0"  # the last one


@pytest.mark.parametrize("strays", [1, 9])
def test_a_stray_text_leaves_labels_numbers_in_a_table(strays: int) -> None:
    one = decoder_of("csv", sl.Names(), CLOSING, [sl.LinearClassifier()])
    rows = [b"1,%d,1" % (i % 2) for i in range(990)]
    rows[500:500] = [b"1,oops,1"] * strays
    events = read(one, b"a,y,w", *rows)
    assert one.labels.labels == [0, 1]
    assert [bad.number for bad in events.invalid] == [501 + i for i in range(strays)]
    mapped = Fields(label="y", positive=(1,))
    of_ones = decoder_of("csv", sl.Names(), mapped, [sl.LinearClassifier()])
    assert labels_of(read(of_ones, b"a,y,w", *rows)).count(True) == 495
    free = decoder_of("csv", sl.Names(), Fields(label="y"), [sl.LinearClassifier()])
    assert not read(free, b"a,y,w", *rows).invalid
    many = decoder_of("csv", sl.Names(), CLOSING, [sl.LinearClassifier()])
    read(many, b"a,y,w", *[b"1,%d,1" % (i % 3) for i in range(50)], b"1,3a,1")
    assert many.labels.labels == ["0", "1", "2", "3a"]


def test_a_positive_number_is_found_in_a_column_of_text() -> None:
    one = decoder_of("csv", sl.Names(), Fields(label="y", positive=(1,)), [sl.LinearClassifier()])
    rows = [b"1,1,1", b"1,0,1", b"1,1.0,1", b"1,-1,1", b"1,oops,1", b"1,nan,1"]
    events = read(one, b"a,y,w", *rows)
    assert labels_of(events)[:5] == [True, False, True, False, False]
    texts = decoder("json", Fields(label="y", positive=("1",)))
    assert labels_of(read(texts, line("json", "1"), line("json", "1.0"))) == [True, False]


def test_what_a_regression_learns_is_numbers_whatever_the_first_rows_are() -> None:
    model = sl.LinearRegressor()
    one = decoder_of("csv", sl.Names(), CLOSING, [model])
    rows = [b"1,unknown,1"] * 3 + [b"1,2.5,1"] * 5
    events = read(one, b"a,y,w", *rows)
    assert labels_of(events) == [2.5] * 5
    assert [bad.number for bad in events.invalid] == [1, 2, 3]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_closing_depends_only_on_the_order_of_events(size: int) -> None:
    """Only learned events count: with a label, of weight above 0, and valid."""
    stream: list[tuple[Any, float]] = [("a", 1), (None, 1), ("z", 0), ("b", 1), ("a", 2), ([], 1)]
    stream += [("c", 1), ("b", 1), ("d", 1), ("a", 1)]
    lines = [line("json", *one) for one in stream]
    one = decoder("json", Fields(label="y", weight="w", warmup=5))
    bad: list[int] = []
    for start in range(0, len(lines), size):
        before = one.labels.state()
        events = read(one, *lines[start : start + size])
        bad += [start + bad.number for bad in events.invalid]
        again = decoder("json", Fields(label="y", weight="w", warmup=5))
        again.restore({"classes": [], "labels": before})  # as after a crash
        read(again, *lines[start : start + size])
        assert again.labels.state() == one.labels.state()
    assert bad == [5, 8]
    state = one.labels.state()
    assert (state["labels"], state["closed"], state["events"]) == (["a", "b", "c"], True, 6)
    assert one.labels.closed_at == 5
    assert one.labels.positive is None


def test_labels_stay_open_until_there_are_two() -> None:
    one = decoder("json", Fields(label="y", warmup=3))
    read(one, *[line("json", "a")] * 10)
    assert not one.labels.closed
    read(one, line("json", "b"))
    assert one.labels.closed
    assert one.labels.closed_at == 11


def test_open_labels_never_close() -> None:
    one = decoder("json", Fields(label="y"))
    events = read(one, *(line("json", label) for label in (True, False, "false", 7, 2.5)))
    assert labels_of(events) == [True, False, "false", 7, 2.5]
    assert not one.labels.closed
    assert one.labels.positive is None


@pytest.mark.parametrize("warmup", [None, 1000])
def test_max_classes_limits_the_labels(warmup: int | None) -> None:
    one = decoder("json", Fields(label="y", warmup=warmup, max_classes=20))
    numbers = read(one, *(line("json", label) for label in range(2, 60)))
    assert labels_of(numbers) == list(range(2, 22))
    assert len(numbers.invalid) == 38
    assert labels_of(read(one, *(line("json", label) for label in range(60)))) == [*range(2, 22)]
    texts = decoder("json", Fields(label="y", warmup=warmup, max_classes=20))
    assert len(read(texts, *(line("json", f"l{k}") for k in range(60)))) == 20


def test_numbers_to_be_predicted_are_not_classes() -> None:
    one = decoder("json", Fields(label="y", warmup=2, max_classes=3), sl.LinearRegressor())
    assert len(read(one, *(line("json", label) for label in range(60)))) == 60
    assert one.labels.labels == []
    assert not one.labels.closed


def test_only_declared_labels_are_allowed() -> None:
    one = decoder("json", Fields(label="y", labels=("ham", "spam"), warmup=1, max_classes=1))
    events = read(one, *(line("json", label) for label in ("spam", "egg", "ham")))
    assert labels_of(events) == ["spam", "ham"]
    assert [bad.number for bad in events.invalid] == [1]
    assert one.labels.positive == "spam"  # the one declared last, whichever comes first
    positive = decoder("json", Fields(label="y", positive=("x", "y")))
    assert labels_of(read(positive, line("json", "x"), line("json", "q"))) == [True, False]
    assert positive.labels.labels == [False, True]


def test_a_label_of_weight_0_is_learned_where_its_weight_is_that_of_another_record() -> None:
    """Delayed labels are read so (`grow_always`)."""
    fields = Fields(label="y", weight="w", labels=None, warmup=1000)
    late = decoder_of("json", sl.Names(), fields, [sl.LinearClassifier()], grow_always=True)
    read(late, line("json", True), line("json", False))
    assert len(read(late, line("json", 7, 0.0)).invalid) == 1
    assert len(read(late, line("json", "text", 0.0)).invalid) == 1


def test_labels_declared_later_take_precedence_after_a_restart() -> None:
    kept = decoder("json", Fields(label="y", warmup=2))
    read(kept, line("json", "a"), line("json", "b"))
    state = kept.state()
    more = decoder("json", Fields(label="y", labels=("a", "b", "c")))
    more.restore(state)
    assert more.labels.labels == ["a", "b", "c"]
    with pytest.raises(InvalidEventError):
        decoder("json", Fields(label="y", labels=("a", "c"))).restore(state)
    opened = decoder("json", Fields(label="y"))
    opened.restore(state)
    assert not opened.labels.closed
    assert len(read(opened, line("json", "c"))) == 1
    later = decoder("json", Fields(label="y", warmup=50))
    later.restore(state)  # they closed once
    assert later.labels.closed
    sooner = decoder("json", Fields(label="y", warmup=1))
    saved = {**state["labels"], "labels": ["a", "b"], "closed": False, "events": 2}
    sooner.restore({**state, "labels": saved})
    assert sooner.labels.closed


def test_complete_labels() -> None:
    assert LabelSet.complete([1, 0]).positive == 1
    assert LabelSet.complete(["b", "a"]).positive == "a"
    assert LabelSet.complete(["a"]).positive is None


def test_field_names() -> None:
    record = json.dumps({"a": 1, "context": {"clicked": True}}).encode()
    assert set(read_names("json", record)) == {"a", "context", "context.clicked"}
    assert set(read_names("custom", record)) == {"a", "context", "context.clicked"}
    assert read_names("csv", b"1,x,1") == ["a", "y", "w"]
    assert read_names("vw", b"1 | a") == []


def read_names(kind: str, record: bytes) -> list[str]:
    one = decoder(kind)
    read(one, record)
    return one.field_names()


@pytest.mark.parametrize("kind", ["json", "custom", "csv", "vw"])
def test_a_weight_that_would_make_every_sum_infinite_is_invalid(kind: str) -> None:
    one = decoder(kind, number=True)
    events = read(one, *(line(kind, i % 2, w) for i, w in enumerate([1.0, 1e100, 1e101, 1e308])))
    assert [(bad.number, bad.code) for bad in events.invalid] == [(2, "weight"), (3, "weight")]
    assert (events.weights.tolist(), one.labels.events) == ([1.0, 1e100], 2)


@pytest.mark.parametrize(
    "labels", [[1, 2], [2, 1], [1, 0], ["1", "0"], ["b", "a"], [2, 1, 3], ["2", "1", "x"]]
)
@pytest.mark.parametrize("declared", [False, True])
def test_what_is_learned_does_not_depend_on_how_far_decoding_is_ahead(
    labels: list[Any], declared: bool
) -> None:
    fields = Fields(label="y", labels=tuple(labels)) if declared else Fields(label="y", warmup=50)
    draw = random.Random(1)
    lines = []
    for i in range(400):
        event: dict[str, Any] = {f"f{draw.randrange(30)}": draw.gauss(0, 1) for _ in range(5)}
        place = 0 if i < 20 else (event.get("f1", 0) + event.get("f2", 0) > 0) + i % 2
        lines.append(json.dumps(event | {"y": labels[place % len(labels)]}).encode())
    found = []
    for ahead in (0, 1, 3, len(lines)):
        model = sl.LinearClassifier(seed=0)
        one = decoder_of("json", model.reader, fields, [model])
        waiting: list[Events] = []
        for record in lines:
            waiting.append(read(one, record))
            if len(waiting) > ahead:
                model.progressive_events(waiting.pop(0))
        for events in waiting:
            model.progressive_events(events)
        found.append((model.labels, model.weights, model.intercept))
    assert all(learned == found[0] for learned in found)
