"""Constraints of [predictions] and [dead_letters]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.config.checks.values import Problems, local_path, matches, topic_name
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    DeadLettersConfig,
    KafkaSourceConfig,
    LabelsConfig,
    PredictionsConfig,
    Source,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def outputs(
    source: Source,
    predictions: PredictionsConfig,
    dead_letters: DeadLettersConfig,
    labels: LabelsConfig | None,
) -> Problems:
    """Check the destinations of predictions and dead letters."""
    read = {*getattr(source, "topics", ()), None if labels is None else labels.topic}
    for name, output in (("predictions", predictions), ("dead_letters", dead_letters)):
        yield from local_path(f"{name}.path", output.path)
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
    published = predictions.topic is not None or predictions.path is not None
    if predictions.learner not in {None, "best"} and not published:
        yield ConfigProblem(
            "predictions.learner",
            "no predictions are published; set predictions.topic or predictions.path",
        )
    if predictions.topic is not None and predictions.topic == dead_letters.topic:
        yield ConfigProblem(
            "dead_letters.topic", f"{predictions.topic!r} is already used for predictions"
        )
    if predictions.path is not None and predictions.path == dead_letters.path:
        yield ConfigProblem(
            "dead_letters.path", f"{predictions.path!r} is already used for predictions"
        )


CHECKS: tuple[Callable[..., Problems], ...] = (outputs,)
