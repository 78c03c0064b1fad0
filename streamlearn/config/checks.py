"""Constraints between the keys of a configuration, beyond the types in `structs`.

A check names the tables it needs as its parameters; it runs if all of them could be read.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    OPEN_LABELS,
    BackfillConfig,
    CheckpointConfig,
    CustomSourceConfig,
    DeadLettersConfig,
    FeaturesConfig,
    FileSourceConfig,
    FormatConfig,
    KafkaSourceConfig,
    Label,
    LabelsConfig,
    PredictionsConfig,
    RecordFormatConfig,
    RegistryConfig,
    RunConfig,
    SecurityConfig,
    Source,
    StdinSourceConfig,
    SyntheticSourceConfig,
)
from streamlearn.core import formats
from streamlearn.core.formats import FORMATS, format_named
from streamlearn.core.nearest import nearest
from streamlearn.core.times import timestamp
from streamlearn.features.fields import Auto, FieldSpec, Ignore, Interaction, parse
from streamlearn.features.fields.interaction import fields_of
from streamlearn.features.fields.spec import OTHERS
from streamlearn.storage import location_problem
from streamlearn.stream.sources.compression import is_compressed
from streamlearn.stream.sources.file_inventory import is_glob
from streamlearn.stream.sources.rows import checked

Problems = Iterator[ConfigProblem]
CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def check(
    tables: Mapping[str, Any], checks: Sequence[Callable[..., Problems]]
) -> list[ConfigProblem]:
    """Run the checks whose tables were all read, and return every problem found."""
    found: list[ConfigProblem] = []
    for one in checks:
        names = list(inspect.signature(one).parameters)
        if all(name in tables for name in names):
            found += one(*(tables[name] for name in names))
    return found


def kafka(source: Source, checkpoint: CheckpointConfig | None) -> Problems:
    """Check the topics, start and client of a Kafka source."""
    if not isinstance(source, KafkaSourceConfig):
        return
    if bool(source.topics) == bool(source.pattern):
        yield ConfigProblem("source.topics", "set either `topics` or `pattern`")
    yield from regex("source.pattern", source.pattern)
    for i, name in enumerate(source.topics):
        yield from topic_name(f"source.topics[{i}]", name)
    if source.start not in {"earliest", "latest"}:
        yield from time("source.start", source.start, '"earliest", "latest" or ')
    if source.client == "confluent" and importlib.util.find_spec("confluent_kafka") is None:
        yield ConfigProblem(
            "source.client", "confluent is not installed; run pip install 'streamlearn[fast]'"
        )
    if checkpoint is None:
        yield ConfigProblem(
            "checkpoint.path",
            "missing; a Kafka source stores its models and positions there",
        )


def checkpoint_path(checkpoint: CheckpointConfig | None) -> Problems:
    """Check the location of the checkpoints."""
    if checkpoint is not None and (problem := location_problem(checkpoint.path)) is not None:
        yield ConfigProblem("checkpoint.path", problem)


def custom_source(source: Source) -> Problems:
    """Check the name of a source of the user."""
    if isinstance(source, CustomSourceConfig) and not CALLABLE.fullmatch(source.kind):
        yield ConfigProblem("source.kind", f"expected module:callable, got {source.kind!r}")


def security(source: Source) -> Problems:
    """Check encryption and authentication."""
    if not isinstance(source, KafkaSourceConfig):
        return
    given, path = source.security, "source.security"
    yield from authentication(given, path)
    for name in ("cafile", "certfile", "keyfile"):
        file = getattr(given, name)
        if file is not None and not Path(file).is_file():
            yield ConfigProblem(f"{path}.{name}", f"no such file: {file}")
        if file is not None and given.protocol in {"PLAINTEXT", "SASL_PLAINTEXT"}:
            yield ConfigProblem(f"{path}.{name}", 'requires protocol = "SSL" or "SASL_SSL"')
    if given.keyfile is not None and given.certfile is None:
        yield ConfigProblem(f"{path}.keyfile", "requires `certfile`, the certificate of this key")


def authentication(given: SecurityConfig, path: str) -> Problems:
    """Check that each mechanism has the keys it requires."""
    sasl = given.protocol in {"SASL_PLAINTEXT", "SASL_SSL"}
    if sasl and given.mechanism is None:
        yield ConfigProblem(
            f"{path}.mechanism", f'missing; protocol = "{given.protocol}" requires it'
        )
    if given.protocol in {"PLAINTEXT", "SSL"} and given.mechanism is not None:
        yield ConfigProblem(
            f"{path}.mechanism", 'requires protocol = "SASL_SSL" or "SASL_PLAINTEXT"'
        )
    token = given.mechanism == "OAUTHBEARER"
    if given.mechanism is not None and not token:
        for name in ("username", "password"):
            if getattr(given, name) is None:
                yield ConfigProblem(f"{path}.{name}", f"missing; {given.mechanism} requires it")
    if token and given.token_provider is None:
        yield ConfigProblem(f"{path}.token_provider", "missing; OAUTHBEARER requires it")
    if given.token_provider is not None:
        if not token:
            yield ConfigProblem(f"{path}.token_provider", 'requires mechanism = "OAUTHBEARER"')
        if not CALLABLE.fullmatch(given.token_provider):
            yield ConfigProblem(f"{path}.token_provider", "expected module:callable")


def followed_files(source: Source) -> Problems:
    """Refuse to follow compressed files, which cannot grow."""
    if isinstance(source, FileSourceConfig) and source.follow:
        for i, path in enumerate(source.paths):
            if is_compressed(path):
                yield ConfigProblem(
                    f"source.paths[{i}]",
                    "a compressed file cannot be followed; use follow = false",
                )


def followed_columns(source: Source, format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Require `columns` for followed globs: files are interleaved, so headers do not apply."""
    if not isinstance(source, FileSourceConfig) or not source.follow:
        return
    if format.kind == "csv" and not format.columns and any(map(is_glob, source.paths)):
        yield ConfigProblem(
            "format.columns", "missing; files of a followed glob are read without headers"
        )


def synthetic(source: Source) -> Problems:
    """Require the number of events where the stream depends on it."""
    if not isinstance(source, SyntheticSourceConfig) or source.events is not None:
        return
    if source.drift:
        yield ConfigProblem("source.drift", "requires `events`: it happens halfway")
    if source.stream == "delayed":
        yield ConfigProblem("source.events", 'missing; stream = "delayed" requires it')


def field_roles(format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check that each field has one role, and one that the format supports."""
    seen: dict[str, str] = {}
    for role in ("label", "weight", "id", "time"):
        name = getattr(format, role)
        if name is None:
            continue
        if not format_named(format.kind).names_fields:
            yield ConfigProblem(
                f"format.{role}", f"{format.kind} defines where the {role} is; remove this key"
            )
        elif name in seen:
            yield ConfigProblem(f"format.{role}", f"{name!r} is already the {seen[name]}")
        seen[name] = role


def field_kinds(features: FeaturesConfig, format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check the declarations of fields."""
    roles = {getattr(format, role): role for role in ("label", "weight", "id")}
    for name, text in features.fields.items():
        path = f"features.fields.{name}"
        problem = field_problem(name, text)
        if problem is not None:
            yield ConfigProblem(path, problem)
            continue
        field = parse(text)
        for one in fields_of(name) if isinstance(field, Interaction) else (name,):
            if one in roles and not isinstance(field, Ignore):
                yield ConfigProblem(path, f"{one!r} is the {roles[one]}, not a feature; remove it")
            elif one == format.time and one not in features.fields:
                yield ConfigProblem(path, f"{one!r} is the time: declare it, as 'time(hour)' say")
            elif one == format.time and isinstance(field, Auto):
                yield ConfigProblem(path, f"{one!r} is the time; what is it as a feature?")
            elif format.kind == "csv" and format.columns and one not in {*format.columns, OTHERS}:
                yield ConfigProblem(path, f"no column {one!r}; {nearest(one, format.columns)}")


def field_problem(name: str, text: str) -> str | None:
    """Return why this declaration of a field is invalid; None if it is valid."""
    try:
        FieldSpec({name: text})
    except ValueError as error:
        return str(error).removeprefix(f"field {name!r}: ")
    return None


def label_field(
    format: FormatConfig,  # noqa: A002 - the table's name
    source: Source,
    labels: LabelsConfig | None,
) -> Problems:
    """Check that labels can be found."""
    if isinstance(source, SyntheticSourceConfig):
        if format.kind != "json":
            yield ConfigProblem(
                "format.kind", 'a synthetic source generates JSON; use kind = "json"'
            )
    elif labels is not None and labels.label is not None:
        return
    elif format.label is None and format.kind in formats.names(names_fields=True):
        yield ConfigProblem("format.label", "missing; nothing is learned without labels")


def delayed_labels(
    format: FormatConfig,  # noqa: A002 - the table's name
    labels: LabelsConfig | None,
    source: Source,
    dead_letters: DeadLettersConfig,
) -> Problems:
    """Check what joining delayed labels requires."""
    generated = isinstance(source, SyntheticSourceConfig)
    if labels is None:
        if isinstance(source, SyntheticSourceConfig) and source.stream == "delayed":
            yield ConfigProblem("labels", 'missing; stream = "delayed" requires this table')
        return
    has_ids = format_named(format.kind).names_fields
    if not has_ids or (format.kind == "csv" and labels.topic is not None):
        yield ConfigProblem("format.kind", 'delayed labels require an id field; use kind = "json"')
    if format.id is None and not generated and not format.cloudevents:
        yield ConfigProblem("format.id", "missing; delayed labels are joined to events by id")
    if format.kept < 1.0:
        yield ConfigProblem(
            "format.kept",
            "cannot be used with [labels]: a label may come after its event was left out; put the "
            "weight into a field (format.weight)",
        )
    has_times = generated or isinstance(source, KafkaSourceConfig | CustomSourceConfig)
    timed = has_times or format.time is not None or format.cloudevents
    if labels.hold_for is not None and not timed:
        yield ConfigProblem("labels.hold_for", "requires format.time, which it is measured by")
    known = declared_labels(format)
    if labels.on_timeout != "drop" and known and labels.on_timeout not in known:
        yield ConfigProblem("labels.on_timeout", "not in format.labels")
    if labels.orphans and dead_letters.topic is None and dead_letters.path is None:
        yield ConfigProblem("labels.orphans", "requires dead_letters.topic or dead_letters.path")


def label_format(
    labels: LabelsConfig | None, source: Source, registry: RegistryConfig | None
) -> Problems:
    """Check the format of labels that have their own."""
    if labels is None or labels.format is None:
        return
    if labels.topic is None:
        yield ConfigProblem("labels.format", "requires labels.topic")
    if not format_named(labels.format.kind).nests:
        yield ConfigProblem("labels.format.kind", "delayed labels require an id field")
    yield from format_name(labels.format, "labels.format")
    yield from schema_origin(labels.format, "labels.format", registry, source)


def label_topic(labels: LabelsConfig | None, source: Source) -> Problems:
    """Check where delayed labels are read from."""
    if labels is None:
        return
    if labels.topic is None:
        for name in ("id", "time"):
            if getattr(labels, name) is not None:
                yield ConfigProblem(
                    f"labels.{name}", f"requires labels.topic; use format.{name} otherwise"
                )
    elif isinstance(source, FileSourceConfig | StdinSourceConfig | SyntheticSourceConfig):
        if labels.topic not in getattr(source, "paths", ()):
            yield ConfigProblem("labels.topic", "requires a Kafka source or one of source.paths")
    elif isinstance(source, KafkaSourceConfig):
        yield from topic_name("labels.topic", labels.topic)
        if source.pattern is not None and not matches(source.pattern, labels.topic):
            yield ConfigProblem("labels.topic", "does not match source.pattern")
        if labels.hold_for is not None and source.order != "time":
            yield ConfigProblem(
                "source.order",
                'labels.hold_for requires order = "time": otherwise a backlog in one topic times '
                "out before the other is read",
            )


def backfill(
    backfill: BackfillConfig | None,
    source: Source,
    format: FormatConfig,  # noqa: A002 - the table's name
    labels: LabelsConfig | None,
) -> Problems:
    """Check that history and stream can be told apart, and read as one."""
    if backfill is None:
        return
    if not isinstance(source, KafkaSourceConfig):
        yield ConfigProblem("backfill", "requires a Kafka source; list the files in source.paths")
    elif source.start != KafkaSourceConfig(bootstrap="b").start:
        yield ConfigProblem(
            "source.start", "not used with [backfill]; use its overlap_seconds or offsets"
        )
    if labels is not None:
        yield ConfigProblem(
            "backfill",
            "cannot be used with [labels]: events of history have their labels; train a model on "
            "them, and start from it (learner.start)",
        )
    if format.time is None:
        yield ConfigProblem("format.time", "missing; it tells what is history ([backfill])")
    yield from time("backfill.until", backfill.until, "")
    for name, offset in backfill.offsets.items():
        if not re.fullmatch(r".+:\d+", name) or offset < 0:
            yield ConfigProblem(
                "backfill.offsets", f'{name!r}: expected "topic:partition" = offset'
            )


def delimiter(format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check the separator of CSV."""
    try:
        checked(format.delimiter)
    except ValueError as error:
        yield ConfigProblem("format.delimiter", str(error))
    if format.delimiter == format.decimal == ",":
        yield ConfigProblem(
            "format.decimal",
            "is also the delimiter: set another one (format.delimiter, --delimiter)",
        )


def format_kind(format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check the kind of format and the keys that depend on it."""
    yield from format_name(format, "format")
    yield from installed("format.kind", format.kind)
    if format.kind != "csv":
        for name, default in (("delimiter", ","), ("decimal", "."), ("columns", ())):
            if getattr(format, name) != default:
                yield ConfigProblem(f"format.{name}", 'requires kind = "csv"')
    if len(set(format.columns)) < len(format.columns):
        yield ConfigProblem("format.columns", "duplicate name")


def event_root(format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check where events are in records."""
    for name in ("root", "cloudevents"):
        if getattr(format, name) and not format_named(format.kind).nests:
            what = "row" if format_named(format.kind).has_columns else "line"
            yield ConfigProblem(f"format.{name}", f"a {what} of {format.kind} is the event")
    if format.root is not None and format.cloudevents:
        yield ConfigProblem("format.root", "the event of a CloudEvent is its `data`")
    if format.root is not None and not all(format.root.split(".")):
        yield ConfigProblem("format.root", "expected names, with dots between them")


def format_name(table: RecordFormatConfig, path: str) -> Problems:
    """Check the name of a format."""
    if table.kind not in FORMATS and not CALLABLE.fullmatch(table.kind):
        choices, hint = ", ".join(FORMATS), nearest(table.kind, list(FORMATS))
        yield ConfigProblem(f"{path}.kind", f"expected {choices} or module:callable; {hint}")


def schemas(
    format: FormatConfig,  # noqa: A002 - the table's name
    registry: RegistryConfig | None,
    source: Source,
    labels: LabelsConfig | None,
) -> Problems:
    """Check where the schemas of binary records come from."""
    yield from schema_origin(format, "format", registry, source)
    if not format_named(format.kind).has_schemas:
        return
    yield from binary_source(format, source)
    key = "schema" if format.kind == "avro" else "descriptors"
    shared = labels is not None and labels.topic is not None and labels.format is None
    if shared and getattr(format, key) is not None:
        yield ConfigProblem(
            f"format.{key}",
            "is of all records, but labels.topic has others; set labels.format, or use the "
            "schemas of a [registry]",
        )


def registry_use(
    format: FormatConfig,  # noqa: A002 - the table's name
    registry: RegistryConfig | None,
    labels: LabelsConfig | None,
    predictions: PredictionsConfig,
    dead_letters: DeadLettersConfig,
) -> Problems:
    """Check that what needs a registry has one, with a topic to name subjects after."""
    kinds = [format.kind]
    if labels is not None and labels.format is not None:
        kinds.append(labels.format.kind)
    used = any(format_named(kind).has_schemas for kind in kinds)
    for name, output in (("predictions", predictions), ("dead_letters", dead_letters)):
        if not format_named(output.format).has_schemas:
            continue
        used = True
        path = f"{name}.format"
        if output.topic is None:
            yield ConfigProblem(path, f"requires {name}.topic; a file has JSON lines")
        elif registry is None:
            yield ConfigProblem(path, "requires the url of a [registry]")
        else:
            yield from installed(path, output.format)
    if registry is not None and not used:
        wanted = ", ".join(f'"{kind}"' for kind in formats.names(has_schemas=True))
        yield ConfigProblem("registry", f"not used; no format is one of {wanted}")


def binary_source(format: FormatConfig, source: Source) -> Problems:  # noqa: A002 - the table's name
    """Refuse sources of lines, which binary records are not."""
    if isinstance(source, StdinSourceConfig):
        yield ConfigProblem(
            "format.kind", f"standard input is read by lines; {format.kind} is read from files"
        )
    elif isinstance(source, FileSourceConfig) and not format_named(format.kind).in_files:
        yield ConfigProblem("format.kind", 'files of JSON have lines; use kind = "json"')
    elif isinstance(source, FileSourceConfig) and source.follow:
        yield ConfigProblem(
            "source.follow", f"files of {format.kind} are not followed; use follow = false"
        )


def schema_origin(
    table: RecordFormatConfig, path: str, registry: RegistryConfig | None, source: Source
) -> Problems:
    """Check that there is one origin of schemas."""
    for name, kind in (("schema", "avro"), ("descriptors", "protobuf"), ("message", "protobuf")):
        if getattr(table, name) is not None and table.kind != kind:
            yield ConfigProblem(f"{path}.{name}", f'requires kind = "{kind}"')
    if not format_named(table.kind).has_schemas:
        return
    in_files = isinstance(source, FileSourceConfig)
    if table.kind == "json-schema":
        if registry is None:
            yield ConfigProblem("registry.url", 'missing; kind = "json-schema" requires it')
        return
    key = "schema" if table.kind == "avro" else "descriptors"
    has_origin = registry is not None and not (in_files and table.kind == "protobuf")
    if getattr(table, key) is None and not has_origin and not (in_files and table.kind == "avro"):
        where = "" if in_files else ", or the url of a [registry]"
        yield ConfigProblem(f"{path}.{key}", f"missing; set it{where}")
    if (table.descriptors is None) != (table.message is None):
        yield ConfigProblem(f"{path}.message", "set both `descriptors` and `message`, or neither")


def installed(path: str, kind: str) -> Problems:
    """Check that the package which a format requires is installed."""
    wanted = format_named(kind)
    if wanted.package is not None and not is_installed(wanted.package):
        yield ConfigProblem(path, f"{kind} requires pip install 'streamlearn[{wanted.extra}]'")


def is_installed(package: str) -> bool:
    """Return whether a package can be imported."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


def registry_access(registry: RegistryConfig | None, run: RunConfig) -> Problems:
    """Check the address of the registry and its timeouts."""
    if registry is None:
        return
    for url in registry.url.split(","):
        parts = urlsplit(url.strip())
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            yield ConfigProblem("registry.url", "expected http://HOST:PORT or https://HOST:PORT")
        elif parts.username is not None:
            yield ConfigProblem("registry.url", "has a login; use `username` and `password`")
    requests = len(registry.url.split(",")) * registry.timeout_seconds
    if registry.wait_seconds + 2 * requests >= run.watchdog_seconds:
        yield ConfigProblem(
            "registry.wait_seconds",
            "with two requests of `timeout_seconds` to each address, expected less than "
            "run.watchdog_seconds",
        )


def registry_login(registry: RegistryConfig | None) -> Problems:
    """Check the authentication at the registry."""
    if registry is None:
        return
    if (registry.username is None) != (registry.password is None):
        yield ConfigProblem("registry.username", "set both `username` and `password`, or neither")
    if registry.token is not None and registry.username is not None:
        yield ConfigProblem("registry.token", "set either `token` or `username`")
    for name in ("cafile", "certfile", "keyfile"):
        file = getattr(registry, name)
        if file is not None and not Path(file).is_file():
            yield ConfigProblem(f"registry.{name}", f"no such file: {file}")
    if registry.keyfile is not None and registry.certfile is None:
        yield ConfigProblem("registry.keyfile", "requires `certfile`, the certificate of this key")


def label_values(format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check the declared labels."""
    known = declared_labels(format)
    if known and any(value not in known for value in positive_labels(format)):
        yield ConfigProblem("format.positive", "not in `labels`")
    if known and min(len(set(known)), len(set(map(label_text, known)))) < max(2, len(known)):
        yield ConfigProblem("format.labels", "expected at least two labels, each with its own text")


def positive_labels(format: FormatConfig) -> tuple[Label, ...]:  # noqa: A002 - the table's name
    """Return the label values that mean true."""
    if isinstance(format.positive, tuple):
        return format.positive
    return () if format.positive is None else (format.positive,)


def declared_labels(format: FormatConfig) -> tuple[Label, ...]:  # noqa: A002 - the table's name
    """Return the labels that are declared, if any."""
    return () if format.labels == OPEN_LABELS else tuple(format.labels)


def label_text(label: Label) -> str:
    """Return a label as the key of a TOML table."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def feature_limits(features: FeaturesConfig) -> Problems:
    """Check which limits apply to hashing and which to names."""
    hashed = features.kind == "hashing"
    for name in ("max_names", "max_bytes"):
        if hashed and getattr(features, name) not in {0, getattr(FeaturesConfig(), name)}:
            yield ConfigProblem(
                f"features.{name}", 'requires kind = "names"; `bits` is the limit of hashing'
            )
    if 0 < features.max_bytes < 10_000:
        yield ConfigProblem("features.max_bytes", "expected at least 10000, or 0 for no limit")
    if not hashed and features.max_names is None and features.bits != FeaturesConfig().bits:
        yield ConfigProblem(
            "features.bits", 'requires kind = "hashing", or `max_names` with on_full = "hash"'
        )


def outputs(
    source: Source,
    predictions: PredictionsConfig,
    dead_letters: DeadLettersConfig,
    labels: LabelsConfig | None,
) -> Problems:
    """Check the destinations of predictions and dead letters."""
    read = {*getattr(source, "topics", ()), None if labels is None else labels.topic}
    for name, output in (("predictions", predictions), ("dead_letters", dead_letters)):
        if output.topic is None:
            continue
        path = f"{name}.topic"
        if output.path is not None:
            yield ConfigProblem(path, "set either `topic` or `path`")
        yield from topic_name(path, output.topic)
        if not isinstance(source, KafkaSourceConfig):
            yield ConfigProblem(path, f"requires a Kafka source; use {name}.path")
        elif output.topic in read or matches(source.pattern, output.topic):
            yield ConfigProblem(
                path, f"{output.topic!r} is read by the source; use a topic that is not"
            )
    if predictions.topic is not None and predictions.topic == dead_letters.topic:
        yield ConfigProblem(
            "dead_letters.topic", f"{predictions.topic!r} is already used for predictions"
        )
    if predictions.path is not None and predictions.path == dead_letters.path:
        yield ConfigProblem(
            "dead_letters.path", f"{predictions.path!r} is already used for predictions"
        )


def run_until(source: Source, run: RunConfig) -> Problems:
    """Check that the end of the run can be reached."""
    if run.until is None:
        return
    if run.until == "end":
        if isinstance(source, SyntheticSourceConfig) and source.events is None:
            yield ConfigProblem("run.until", "the source never ends; set source.events")
        if isinstance(source, FileSourceConfig) and source.follow:
            yield ConfigProblem("run.until", "a followed file never ends; use follow = false")
    elif not run.until.isdigit():
        yield from time("run.until", run.until, '"end", a number of events, or ')
    elif int(run.until) == 0:
        yield ConfigProblem("run.until", "expected at least 1 event")


CHECKS: tuple[Callable[..., Problems], ...] = (
    kafka,
    checkpoint_path,
    custom_source,
    security,
    followed_files,
    followed_columns,
    synthetic,
    delimiter,
    format_kind,
    event_root,
    schemas,
    registry_use,
    registry_access,
    registry_login,
    label_values,
    field_roles,
    field_kinds,
    label_field,
    delayed_labels,
    backfill,
    label_topic,
    label_format,
    feature_limits,
    outputs,
    run_until,
)


def topic_name(path: str, name: str) -> Problems:
    """Apply Kafka's rule for topic names."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in {".", ".."}:
        yield ConfigProblem(
            path,
            f"{name!r} is not a topic name; use at most 249 letters, digits, dots, underscores "
            "and hyphens",
        )


def regex(path: str, text: str | None) -> Problems:
    """Check that a regular expression compiles."""
    try:
        re.compile(text or "")
    except re.error as error:
        yield ConfigProblem(path, f"not a regular expression: {error}")


def matches(pattern: str | None, name: str) -> bool:
    """Return whether the pattern is set, valid and matches the whole name."""
    try:
        return pattern is not None and re.fullmatch(pattern, name) is not None
    except re.error:
        return False


def time(path: str, text: str, others: str) -> Problems:
    """Check a time; `others` are the alternatives that the message lists."""
    try:
        timestamp(text)
    except (ValueError, OverflowError):
        yield ConfigProblem(
            path, f"expected {others}a time such as 2026-01-31T00:00:00Z, got {text!r}"
        )
