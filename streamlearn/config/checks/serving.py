"""Constraints between the keys of [serve] and the rest of a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from streamlearn.config.checks.values import Problems, local_path, matches, topic_name
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    CheckpointConfig,
    FormatConfig,
    KafkaSourceConfig,
    LabelsConfig,
    ServeConfig,
    Source,
)
from streamlearn.storage import is_url

if TYPE_CHECKING:
    from collections.abc import Callable


def access(serve: ServeConfig | None, checkpoint: CheckpointConfig | None) -> Problems:
    """Check what is served, and that no version of it is used twice."""
    if serve is None:
        return
    if checkpoint is None:
        yield ConfigProblem("checkpoint.path", "missing; [serve] counts versions by its epochs")
    elif serve.path is None and is_url(checkpoint.path):
        yield ConfigProblem(
            "serve.path", "missing; snapshots are written to a directory, not to object storage"
        )
    yield from local_path("serve.path", serve.path)
    if (serve.certfile is None) != (serve.keyfile is None):
        yield ConfigProblem("serve.certfile", "set both `certfile` and `keyfile`, or neither")
    for name in ("certfile", "keyfile"):
        file = getattr(serve, name)
        if file is not None and not Path(file).is_file():
            yield ConfigProblem(f"serve.{name}", f"no such file: {file}")


def log(
    serve: ServeConfig | None,
    source: Source,
    format: FormatConfig,  # noqa: A002 - the table's name
    labels: LabelsConfig | None,
) -> Problems:
    """Check that what is served and logged is joined with its label, and learned."""
    if serve is None or serve.log is None:
        return
    topic = serve.log.topic
    yield from topic_name("serve.log.topic", topic)
    if not isinstance(source, KafkaSourceConfig):
        yield ConfigProblem("serve.log.topic", "requires a Kafka source")
        return
    if topic not in source.topics and not matches(source.pattern, topic):
        yield ConfigProblem(
            "serve.log.topic", f"{topic!r} is not read by the source; add it to source.topics"
        )
    if labels is None or labels.topic in {None, topic}:
        yield ConfigProblem("labels.topic", "missing; the labels of [serve.log] need their own")
    if format.kind != "json":
        yield ConfigProblem("format.kind", '[serve.log] writes JSON; use kind = "json"')


def split(serve: ServeConfig | None) -> Problems:
    """Check the shares of the arms."""
    if serve is None or serve.split is None:
        return
    arms = serve.split.arms
    if len(arms) < 2:
        yield ConfigProblem("serve.split.arms", "expected at least two arms")
    elif abs(sum(arms.values()) - 1.0) > 1e-9:
        yield ConfigProblem(
            "serve.split.arms", f"shares must add up to 1, not {sum(arms.values())}"
        )


CHECKS: tuple[Callable[..., Problems], ...] = (access, log, split)
