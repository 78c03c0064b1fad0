"""Find what would keep a configuration from running here: its files, formats and checkpoint.

No broker is contacted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from streamlearn import config
from streamlearn.config.files import refuse_input, require_writable
from streamlearn.daemon import build
from streamlearn.daemon.builders.sources import cut_at
from streamlearn.daemon.checkpointing import resume
from streamlearn.daemon.learners import Learners
from streamlearn.daemon.process.exits import Stop
from streamlearn.errors import ModelFileError, SourceError, StoreError
from streamlearn.estimators import checkpoints
from streamlearn.storage import is_url
from streamlearn.stream import Partition
from streamlearn.stream.formats.label_set import LabelSet
from streamlearn.stream.sources.backfill import cut_of, refuse_other_cut, refuse_unfinished
from streamlearn.stream.sources.file_inventory import expanded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def outputs(settings: config.Config) -> Iterator[config.ConfigProblem]:
    """Find output files that cannot be written."""
    yield from refused(settings, require_writable)


def loops(settings: config.Config) -> Iterator[config.ConfigProblem]:
    """Find output files that are also read as input: each record written would make the next."""
    yield from refused(settings, refuse_input)


def refused(
    settings: config.Config, check: Callable[[str, str, list[str]], None]
) -> Iterator[config.ConfigProblem]:
    """Find output files that a check refuses."""
    sources = list(getattr(settings.source, "paths", ()))
    for name, output in (
        ("predictions", settings.predictions),
        ("dead_letters", settings.dead_letters),
    ):
        if output.path not in (None, "-"):
            try:
                check(output.path, f"{name}.path", sources)
            except ValueError as error:
                yield config.ConfigProblem("", str(error))


def directories(settings: config.Config) -> Iterator[config.ConfigProblem]:
    """Find directories among the files to read."""
    for path in getattr(settings.source, "paths", ()):
        if Path(path).is_dir():
            files = f"{path.rstrip('/')}/*"
            yield config.ConfigProblem("source.paths", f"{path} is a directory; use {files!r}")


def checkpoint(settings: config.Config) -> Iterator[config.ConfigProblem]:
    """Find what keeps models and source from resuming from the newest checkpoint."""
    path, data = settings.checkpoint, None
    if path is not None and not is_url(path.path):
        yield from place_of(path.path)
    try:
        found = None if path is None else checkpoints.newest(path.path)
        if found is not None:
            data = found[1]
            reader = config.feature_reader(settings.features)
            resume.check_changes(
                found,
                Learners(config.estimators(settings), reader),
                build.input_settings(settings),
                labels=LabelSet(config.event_fields(settings.format)),
                delayed=settings.labels is not None,
            )
    except (ModelFileError, StoreError, Stop) as error:
        yield config.ConfigProblem("checkpoint.path", str(error))
    yield from history(settings, {} if data is None else data["source"])
    if settings.backfill is not None and not (data and cut_of(data["source"])[1]):
        try:
            expanded(settings.backfill.paths)
        except SourceError as error:
            yield config.ConfigProblem("backfill.paths", str(error))
    if isinstance(settings.source, config.KafkaSourceConfig) or [*directories(settings)]:
        return
    try:
        source = build.source(settings.source, settings.format)
    except ValueError as error:
        yield config.ConfigProblem("source", str(error))
        return
    if isinstance(settings.source, config.CustomSourceConfig):
        return  # it may be another broker
    try:
        positions = [] if data is None else data["positions"]
        at = {Partition(topic, number): position for topic, number, position in positions}
        source.open(at, None if data is None else data["source"])
    except SourceError as error:
        yield config.ConfigProblem("source", str(error))
    finally:
        source.close()


def place_of(path: str) -> Iterator[config.ConfigProblem]:
    """Find a directory in which no checkpoints can be written."""
    whole = Path(path).absolute()
    place = next(one for one in (whole, *whole.parents) if one.exists())
    if not os.access(place, os.W_OK):
        yield config.ConfigProblem("checkpoint.path", f"{place} is not writable")


def history(settings: config.Config, identity: Mapping[str, str]) -> Iterator[config.ConfigProblem]:
    """Find whether a checkpoint has learned another part of history."""
    try:
        if settings.backfill is None:
            refuse_unfinished(identity)
        elif identity:
            refuse_other_cut(identity, cut_at(settings.backfill))
    except SourceError as error:
        yield config.ConfigProblem("backfill", str(error))


def formats(settings: config.Config) -> Iterator[config.ConfigProblem]:
    """Find what keeps records from being decoded: an unknown format, columns without a field."""
    try:
        build.event_reader(settings, config.feature_reader(settings.features), ())
    except ValueError as error:
        yield config.ConfigProblem("format", str(error))
