"""Constraints of [fleet]."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from streamlearn.config.checks.formats import declared_labels
from streamlearn.config.checks.values import is_installed
from streamlearn.config.learners import estimator, event_fields, feature_reader
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    OPEN_LABELS,
    BackfillConfig,
    DeadLettersConfig,
    FeaturesConfig,
    FleetConfig,
    FormatConfig,
    KafkaSourceConfig,
    LabelsConfig,
    LearnerConfig,
    PredictionsConfig,
    RunConfig,
    ServeConfig,
    Source,
)
from streamlearn.errors import TableMismatchError
from streamlearn.estimators.merging import why_no_merge
from streamlearn.stream import CSVDecoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.config.checks.values import Problems

READERS, WORKERS = "fleet.readers", "fleet.workers"
USE_READERS = "use fleet.readers"  # with one learner, everything works


def processes(
    fleet: FleetConfig,
    source: Source,
    features: FeaturesConfig,
    format: FormatConfig,  # noqa: A002 - the table's name
    backfill: BackfillConfig | None,
) -> Problems:
    """Check what several processes require: that each decodes a record like all others."""
    if fleet.min_workers > fleet.workers:
        yield ConfigProblem(
            "fleet.min_workers", f"is above fleet.workers, {fleet.workers}, the most there are"
        )
    if fleet.readers == 0 and fleet.workers == 1:
        return
    path = READERS if fleet.readers else WORKERS
    if fleet.readers and fleet.workers > 1:
        yield ConfigProblem(WORKERS, "workers read for themselves; set either readers or workers")
    if not is_installed("ray"):
        yield ConfigProblem(path, "requires Ray; run pip install 'streamlearn[ray]'")
    if not isinstance(source, KafkaSourceConfig):
        yield ConfigProblem(path, "requires a Kafka source, whose partitions they share")
    if backfill is not None:
        yield ConfigProblem(path, "requires that history was learned; remove [backfill] then")
    if features.kind != "hashing":
        yield ConfigProblem(
            "features.kind",
            f'{path} requires "hashing": a table of names would differ between processes',
        )
    if format.labels == OPEN_LABELS:
        yield ConfigProblem("format.labels", f"{path} requires labels that close; declare them")
    if format.kind == "csv" and infers_types(features, format):
        yield ConfigProblem(
            "format.columns",
            f"{path} requires `columns`, `labels` and a declaration of every column in "
            "[features.fields]: their types are not inferred",
        )


def infers_types(features: FeaturesConfig, format: FormatConfig) -> bool:  # noqa: A002 - the table's name
    """Return whether the types of columns would be inferred from the first records."""
    fields = event_fields(format)
    with suppress(TableMismatchError):  # is reported by other checks
        decoder = CSVDecoder(feature_reader(features), fields, columns=format.columns)
        return not format.columns or decoder.sample > 0
    return False


def one_stream(
    fleet: FleetConfig,
    source: Source,
    labels: LabelsConfig | None,
    run: RunConfig,
) -> Problems:
    """Refuse with workers what needs all records in one order."""
    if fleet.workers == 1:
        return
    if labels is not None:
        yield ConfigProblem(
            "labels", f"with workers, an event and its label may meet nowhere; {USE_READERS}"
        )
    if isinstance(source, KafkaSourceConfig) and source.order == "time":
        yield ConfigProblem(
            "source.order", f"with workers, there is no order across partitions; {USE_READERS}"
        )
    if run.until not in {None, "end"}:
        yield ConfigProblem("run.until", f'with workers, only "end"; {USE_READERS} for others')


def outputs(
    fleet: FleetConfig,
    predictions: PredictionsConfig,
    dead_letters: DeadLettersConfig,
    serve: ServeConfig | None,
) -> Problems:
    """Refuse with workers outputs that only one process can write."""
    if fleet.workers == 1:
        return
    for name, output in (("predictions", predictions), ("dead_letters", dead_letters)):
        if output.path is not None:
            yield ConfigProblem(f"{name}.path", "workers cannot share a file; use a topic")
    if predictions.best is not None:
        yield ConfigProblem(
            "predictions.best", f"with workers, each would choose its own; {USE_READERS}"
        )
    if serve is not None and serve.log is not None:
        yield ConfigProblem("serve.log", f"requires the join of one process; {USE_READERS}")


def models(
    fleet: FleetConfig,
    learners: tuple[LearnerConfig, ...],
    features: FeaturesConfig,
    format: FormatConfig,  # noqa: A002 - the table's name
) -> Problems:
    """Check that what workers learn can be merged."""
    if fleet.workers == 1:
        return
    shared = feature_reader(features)
    for i, learner in enumerate(learners):
        with suppress(ValueError):  # is reported by other checks
            reason = why_no_merge(estimator(learner, shared, declared_labels(format)))
            if reason is not None:
                yield ConfigProblem(
                    f"learner[{i}]", f"workers cannot learn it: {reason}, or {USE_READERS}"
                )


CHECKS: tuple[Callable[..., Problems], ...] = (processes, one_stream, outputs, models)
