"""Constraints of [source], [backfill], [checkpoint] and [run]."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

from streamlearn.config.checks.values import CALLABLE, Problems, local_path, regex, time, topic_name
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    BackfillConfig,
    CheckpointConfig,
    CustomSourceConfig,
    FileSourceConfig,
    FormatConfig,
    KafkaSourceConfig,
    LabelsConfig,
    RunConfig,
    SecurityConfig,
    Source,
    SyntheticSourceConfig,
)
from streamlearn.storage import location_problem
from streamlearn.stream.sources.compression import is_compressed
from streamlearn.stream.sources.file_inventory import is_glob

if TYPE_CHECKING:
    from collections.abc import Callable


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


def files(source: Source, backfill: BackfillConfig | None) -> Problems:
    """Check that files are local."""
    read = (("source", source), ("backfill", backfill))
    for name, table in read:
        for i, path in enumerate(getattr(table, "paths", ())):
            yield from local_path(f"{name}.paths[{i}]", path)


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


def run_until(source: Source, run: RunConfig) -> Problems:
    """Check that the end of the run can be reached."""
    if run.until is None:
        return
    until = str(run.until)
    if until == "end":
        if isinstance(source, SyntheticSourceConfig) and source.events is None:
            yield ConfigProblem("run.until", "the source never ends; set source.events")
        if isinstance(source, FileSourceConfig) and source.follow:
            yield ConfigProblem("run.until", "a followed file never ends; use follow = false")
    elif not until.isdigit():
        yield from time("run.until", until, '"end", a number of events, or ')
    elif int(until) == 0:
        yield ConfigProblem("run.until", "expected at least 1 event")


CHECKS: tuple[Callable[..., Problems], ...] = (
    kafka,
    checkpoint_path,
    custom_source,
    security,
    files,
    followed_files,
    followed_columns,
    synthetic,
    backfill,
    run_until,
)
