"""What no type can say: which keys of a configuration need or exclude each other.

A check takes the tables it speaks of, by their names; it runs when all of them could be read.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    OPEN,
    CheckpointConfig,
    DeadLettersConfig,
    FeaturesConfig,
    FileSourceConfig,
    FormatConfig,
    KafkaSourceConfig,
    Label,
    LabelsConfig,
    PredictionsConfig,
    RunConfig,
    SecurityConfig,
    Source,
    SyntheticSourceConfig,
    milliseconds,
)
from streamlearn.core.nearest import nearest
from streamlearn.stream.sources.catalog import is_glob
from streamlearn.stream.sources.compression import is_compressed
from streamlearn.stream.sources.rows import checked

Found = Iterator[ConfigProblem]
FORMATS = ("json", "svmlight", "vw", "csv")
CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def check(tables: Mapping[str, Any], checks: Sequence[Callable[..., Found]]) -> list[ConfigProblem]:
    """All that is wrong with the tables, of which some may not be there."""
    found: list[ConfigProblem] = []
    for one in checks:
        wanted = list(inspect.signature(one).parameters)
        if all(name in tables for name in wanted):
            found += one(*(tables[name] for name in wanted))
    return found


def kafka(source: Source, checkpoint: CheckpointConfig | None) -> Found:
    """Topics, start and client of a Kafka source."""
    if not isinstance(source, KafkaSourceConfig):
        return
    if bool(source.topics) == bool(source.pattern):
        yield ConfigProblem("source.topics", "give `topics` or `pattern`, one of the two")
    yield from pattern("source.pattern", source.pattern)
    for i, name in enumerate(source.topics):
        yield from topic(f"source.topics[{i}]", name)
    if source.start not in {"earliest", "latest"}:
        yield from time("source.start", source.start, '"earliest", "latest" or ')
    if source.client == "confluent" and importlib.util.find_spec("confluent_kafka") is None:
        yield ConfigProblem(
            "source.client", "confluent is not installed: pip install 'streamlearn[fast]'"
        )
    if checkpoint is None:
        yield ConfigProblem(
            "checkpoint.path",
            "missing; models and positions of a Kafka source are kept in a directory",
        )


def security(source: Source) -> Found:
    """Login and encryption."""
    if not isinstance(source, KafkaSourceConfig):
        return
    given, path = source.security, "source.security"
    yield from login(given, path)
    for name in ("cafile", "certfile", "keyfile"):
        file = getattr(given, name)
        if file is not None and not Path(file).is_file():
            yield ConfigProblem(f"{path}.{name}", f"there is no file {file}")
        if file is not None and given.protocol in {"PLAINTEXT", "SASL_PLAINTEXT"}:
            yield ConfigProblem(f"{path}.{name}", 'needs protocol = "SSL" or "SASL_SSL"')
    if given.keyfile is not None and given.certfile is None:
        yield ConfigProblem(f"{path}.keyfile", "needs the `certfile` that it is the key of")


def login(given: SecurityConfig, path: str) -> Found:
    """What each mechanism needs."""
    sasl = given.protocol in {"SASL_PLAINTEXT", "SASL_SSL"}
    if sasl and given.mechanism is None:
        yield ConfigProblem(
            f"{path}.mechanism", f'missing; protocol = "{given.protocol}" logs in by one'
        )
    if given.protocol in {"PLAINTEXT", "SSL"} and given.mechanism is not None:
        yield ConfigProblem(f"{path}.mechanism", 'needs protocol = "SASL_SSL" or "SASL_PLAINTEXT"')
    token = given.mechanism == "OAUTHBEARER"
    if given.mechanism is not None and not token:
        for name in ("username", "password"):
            if getattr(given, name) is None:
                yield ConfigProblem(f"{path}.{name}", f"missing; {given.mechanism} needs it")
    if token and given.token_provider is None:
        yield ConfigProblem(f"{path}.token_provider", "missing; OAUTHBEARER needs it")
    if given.token_provider is not None:
        if not token:
            yield ConfigProblem(f"{path}.token_provider", 'needs mechanism = "OAUTHBEARER"')
        if not CALLABLE.fullmatch(given.token_provider):
            yield ConfigProblem(f"{path}.token_provider", "expected module:callable")


def files(source: Source) -> Found:
    """Files that are followed grow, so they are not packed."""
    if isinstance(source, FileSourceConfig) and source.follow:
        for i, path in enumerate(source.paths):
            if is_compressed(path):
                yield ConfigProblem(
                    f"source.paths[{i}]", "a packed file cannot be followed; use follow = false"
                )


def followed_tables(source: Source, format: FormatConfig) -> Found:  # noqa: A002 - the table's name
    """Files of a followed glob are read by turns, so the last header is not that of all."""
    if not isinstance(source, FileSourceConfig) or not source.follow:
        return
    if format.kind == "csv" and not format.columns and any(map(is_glob, source.paths)):
        yield ConfigProblem(
            "format.columns", "missing; files of a followed glob have their columns here"
        )


def synthetic(source: Source) -> Found:
    """Half way is known only if the end is."""
    if isinstance(source, SyntheticSourceConfig) and source.drift and source.events is None:
        yield ConfigProblem("source.drift", "needs `events`, half of which pass before it")
    if (
        isinstance(source, SyntheticSourceConfig)
        and source.stream == "delayed"
        and source.events is None
    ):
        yield ConfigProblem("source.events", 'missing; stream = "delayed" is made as a whole')


def fields(format: FormatConfig) -> Found:  # noqa: A002 - the table's name
    """Fields that play two parts, and those a format has not."""
    seen: dict[str, str] = {}
    for part in ("label", "weight", "id", "time"):
        name = getattr(format, part)
        if name is None:
            continue
        if format.kind in {"svmlight", "vw"}:
            yield ConfigProblem(
                f"format.{part}", f"{format.kind} has its own place for it; leave it out"
            )
        elif name in seen:
            yield ConfigProblem(f"format.{part}", f"{name!r} is the {seen[name]} already")
        seen[name] = part
        for key in ("include", "exclude"):
            if name in (getattr(format, key) or ()):
                yield ConfigProblem(
                    f"format.{key}", f"{name!r} is the {part}, no feature; leave it out"
                )
    for name in sorted(set(format.include or ()) & set(format.exclude)):
        yield ConfigProblem("format.exclude", f"{name!r} is in `include` too; take it out of one")


def labeled(
    format: FormatConfig,  # noqa: A002 - the table's name
    source: Source,
    labels: LabelsConfig | None,
) -> Found:
    """Where the label is."""
    if isinstance(source, SyntheticSourceConfig):
        if format.kind != "json":
            yield ConfigProblem(
                "format.kind", 'a synthetic source makes events in JSON; use "json"'
            )
    elif labels is not None and labels.label is not None:
        return
    elif format.label is None and format.kind in {"json", "csv"}:
        yield ConfigProblem("format.label", "missing; without labels nothing would be learned")


def late(
    format: FormatConfig,  # noqa: A002 - the table's name
    labels: LabelsConfig | None,
    source: Source,
    dead_letters: DeadLettersConfig,
) -> Found:
    """What labels that come late need."""
    made_up = isinstance(source, SyntheticSourceConfig)
    if labels is None:
        if isinstance(source, SyntheticSourceConfig) and source.stream == "delayed":
            yield ConfigProblem("labels", 'missing; the labels of stream = "delayed" come later')
        return
    if format.kind in {"svmlight", "vw"} or (format.kind == "csv" and labels.topic is not None):
        yield ConfigProblem(
            "format.kind", 'late labels are joined by the field of an id; use "json"'
        )
    if format.id is None and not made_up:
        yield ConfigProblem("format.id", "missing; labels find their events by it")
    timed = isinstance(source, KafkaSourceConfig) or made_up or format.time is not None
    if labels.hold_for is not None and not timed:
        yield ConfigProblem(
            "labels.hold_for", "needs format.time: it is the stream's time that counts"
        )
    known = declared(format)
    if labels.on_timeout != "drop" and known and labels.on_timeout not in known:
        yield ConfigProblem("labels.on_timeout", "is not among format.labels")
    if labels.orphans and dead_letters.topic is None and dead_letters.path is None:
        yield ConfigProblem("labels.orphans", "needs dead_letters.topic or dead_letters.path")


def label_topic(labels: LabelsConfig | None, source: Source) -> Found:
    """Where late labels are."""
    if labels is None:
        return
    if labels.topic is None:
        for name in ("id", "time"):
            if getattr(labels, name) is not None:
                yield ConfigProblem(f"labels.{name}", "needs `topic`; here it is as in [format]")
    elif not isinstance(source, KafkaSourceConfig):
        if not (isinstance(source, FileSourceConfig) and labels.topic in source.paths):
            yield ConfigProblem("labels.topic", "needs a Kafka source, or is one of source.paths")
    else:
        yield from topic("labels.topic", labels.topic)
        if source.pattern is not None and not matches(source.pattern, labels.topic):
            yield ConfigProblem(
                "labels.topic", "does not match source.pattern: it would not be read"
            )
        if labels.hold_for is not None and source.order != "time":
            yield ConfigProblem(
                "source.order",
                'late labels need order = "time": else a backlog of one topic times out before '
                "that of the other is read",
            )


def delimiter(format: FormatConfig) -> Found:  # noqa: A002 - the table's name
    """What stands between the values of CSV."""
    try:
        checked(format.delimiter)
    except ValueError as error:
        yield ConfigProblem("format.delimiter", str(error))


def formats(format: FormatConfig) -> Found:  # noqa: A002 - the table's name
    """The kind of format and its own keys."""
    if format.kind not in FORMATS and not CALLABLE.fullmatch(format.kind):
        choices = ", ".join(FORMATS)
        hint = nearest(format.kind, FORMATS)
        yield ConfigProblem("format.kind", f"expected {choices} or module:callable; {hint}")
    if format.kind != "csv":
        for name, default in (("delimiter", ","), ("columns", ()), ("text", None)):
            if getattr(format, name) != default:
                yield ConfigProblem(f"format.{name}", 'needs kind = "csv"')
    if len(set(format.columns)) < len(format.columns):
        yield ConfigProblem("format.columns", "a name appears twice")
    unknown = [name for name in format.text or () if format.columns and name not in format.columns]
    if unknown:
        yield ConfigProblem("format.text", f"{unknown[0]!r} is not among `columns`")
    for i, names in enumerate(format.interactions):
        if len(set(names)) < 2:
            yield ConfigProblem(
                f"format.interactions[{i}]", "expected two different fields or more"
            )


def classes(format: FormatConfig) -> Found:  # noqa: A002 - the table's name
    """Which labels there are."""
    known = declared(format)
    if known and any(value not in known for value in positives(format)):
        yield ConfigProblem("format.positive", "is not among `labels`")
    if known and min(len(set(known)), len(set(map(written, known)))) < max(2, len(known)):
        yield ConfigProblem("format.labels", "expected two or more, each written in another way")


def positives(format: FormatConfig) -> tuple[Label, ...]:  # noqa: A002 - the table's name
    """The label's values that mean true."""
    if isinstance(format.positive, tuple):
        return format.positive
    return () if format.positive is None else (format.positive,)


def declared(format: FormatConfig) -> tuple[Label, ...]:  # noqa: A002 - the table's name
    """All labels there are; none: they are not declared."""
    return () if format.labels == OPEN else tuple(format.labels)


def written(label: Label) -> str:
    """A label as the key of a table."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def slots(features: FeaturesConfig) -> Found:
    """What goes with hashing, and what with names."""
    hashed = features.kind == "hashing"
    for name in ("max_names", "max_bytes"):
        if hashed and getattr(features, name) not in {0, getattr(FeaturesConfig(), name)}:
            yield ConfigProblem(
                f"features.{name}", 'hashing is bounded by `bits`; use kind = "names"'
            )
    if 0 < features.max_bytes < 10_000:
        yield ConfigProblem("features.max_bytes", "expected at least 10000, or 0 for no limit")
    if not hashed and features.max_names is None and features.bits != FeaturesConfig().bits:
        yield ConfigProblem(
            "features.bits", 'needs kind = "hashing", or `max_names` with on_full = "hash"'
        )


def outputs(
    source: Source,
    predictions: PredictionsConfig,
    dead_letters: DeadLettersConfig,
    labels: LabelsConfig | None,
) -> Found:
    """Where predictions and dead letters go."""
    read = {*getattr(source, "topics", ()), None if labels is None else labels.topic}
    for name, output in (("predictions", predictions), ("dead_letters", dead_letters)):
        if output.topic is None:
            continue
        path = f"{name}.topic"
        if output.path is not None:
            yield ConfigProblem(path, "give `topic` or `path`, not both")
        yield from topic(path, output.topic)
        if not isinstance(source, KafkaSourceConfig):
            yield ConfigProblem(path, f"needs a Kafka source; use {name}.path")
        elif output.topic in read or matches(source.pattern, output.topic):
            yield ConfigProblem(
                path, f"{output.topic!r} is read by the source: events would go round"
            )
    if predictions.topic is not None and predictions.topic == dead_letters.topic:
        yield ConfigProblem(
            "dead_letters.topic", f"{predictions.topic!r} is that of the predictions"
        )
    if predictions.path is not None and predictions.path == dead_letters.path:
        yield ConfigProblem("dead_letters.path", f"{predictions.path!r} is that of the predictions")


def ending(source: Source, run: RunConfig) -> Found:
    """Whether the end is ever reached."""
    if run.until is None:
        return
    if run.until == "end":
        if isinstance(source, SyntheticSourceConfig) and source.events is None:
            yield ConfigProblem("run.until", "this source never ends; give it `events`")
        if isinstance(source, FileSourceConfig) and source.follow:
            yield ConfigProblem("run.until", "a followed file never ends; use follow = false")
    elif not run.until.isdigit():
        yield from time("run.until", run.until, '"end", a number of events, or ')
    elif int(run.until) == 0:
        yield ConfigProblem("run.until", "expected at least one event")


CHECKS: tuple[Callable[..., Found], ...] = (
    kafka,
    security,
    files,
    followed_tables,
    synthetic,
    delimiter,
    formats,
    classes,
    fields,
    labeled,
    late,
    label_topic,
    slots,
    outputs,
    ending,
)


def topic(path: str, name: str) -> Found:
    """Kafka's own rule for names of topics."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in {".", ".."}:
        yield ConfigProblem(path, f"{name!r} is no topic: letters, digits, . _ and -, at most 249")


def pattern(path: str, text: str | None) -> Found:
    """A regex that compiles."""
    try:
        re.compile(text or "")
    except re.error as error:
        yield ConfigProblem(path, f"is no regular expression: {error}")


def matches(text: str | None, name: str) -> bool:
    """Whether a pattern, if it is one, takes the topic."""
    try:
        return text is not None and re.fullmatch(text, name) is not None
    except re.error:
        return False


def time(path: str, text: str, others: str) -> Found:
    """A time, or one of the other things it may be."""
    try:
        milliseconds(text)
    except (ValueError, OverflowError):
        yield ConfigProblem(
            path, f"expected {others}a time such as 2026-01-31T00:00:00Z, got {text!r}"
        )
