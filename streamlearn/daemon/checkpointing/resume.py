"""Going on from a checkpoint with a configuration that may have changed since.

Learners that are the same go on, a new one begins here and says so, a removed one is archived as a
model file, and one that has changed is refused with the difference, unless it is to be reset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.checkpointing.durable import make_directory
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.errors import InvalidEventError
from streamlearn.estimators import model_file
from streamlearn.stream import CSVDecoder, Files
from streamlearn.stream.formats.label_set import LabelSet

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from streamlearn.daemon.learners import Learners, Model
    from streamlearn.daemon.pipeline import Pipeline
    from streamlearn.daemon.process.log import Log
    from streamlearn.estimators.checkpoints import Place
    from streamlearn.stream import Decoder, Partition, Source

    Found = tuple[Place, dict[str, Any]]

ALL = "all"  # as in --reset all


@dataclass
class Changes:
    """What is to be done with each learner."""

    resumed: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    archived: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # sentences


def compare_learners(
    saved: Mapping[str, Mapping[str, str]],
    wanted: Mapping[str, Mapping[str, str]],
    reset: Collection[str],
    input_settings: tuple[Mapping[str, str], Mapping[str, str]],
) -> Changes:
    """What a configuration means for the learners of a checkpoint.

    `saved` and `wanted` are the settings of learners by name, and `input_settings` the saved and
    the wanted settings of features and format.

    >>> compare_learners({"a": {"gamma": "1"}}, {"a": {"gamma": "2"}}, (), ({}, {})).refused
    ["learner 'a' has changed: gamma = 1 -> 2"]
    >>> compare_learners({"a": {"gamma": "1"}}, {"a": {"gamma": "2"}}, ("a",), ({}, {})).fresh
    ['a']
    """
    changes = Changes(archived=[name for name in saved if name not in wanted])
    everything = ALL in reset
    if input_settings[0] != input_settings[1] and not everything:
        changes.refused.append(
            "features have changed, which all learners share: "
            f"{describe_difference(*input_settings)}"
        )
    for name, settings in wanted.items():
        if name not in saved:
            changes.fresh.append(name)
        elif everything or name in reset:
            changes.fresh.append(name)
            changes.archived.append(name)
        elif saved[name] != settings:
            changes.refused.append(
                f"learner {name!r} has changed: {describe_difference(saved[name], settings)}"
            )
        else:
            changes.resumed.append(name)
    return changes


def describe_difference(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """The settings that differ, as `name = old -> new`."""
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{n} = {old.get(n, 'none')} -> {new.get(n, 'none')}" for n in names)


def resume(
    pipeline: Pipeline,
    found: Found | None,
    input_settings: Mapping[str, str],
    reset: Collection[str],
) -> Changes:
    """Bring the pipeline to where the checkpoint is; `Stop` if the two do not fit."""
    learners = pipeline.learners
    labels, late = pipeline.event_reader.labels, pipeline.event_reader.delayed
    changes = check_changes(found, learners, input_settings, reset, labels=labels, late=late)
    if found is None:
        return changes
    place, data = found
    same_features = data["features"]["input_settings"] == input_settings
    try:
        pipeline.restore(data, resumed=changes.resumed, features=same_features)
    except InvalidEventError as error:
        raise mismatch(place, error) from error
    if same_features:
        log_label_changes(pipeline, saved_labels(data))
    for name in changes.fresh:
        learners[name].created_at = {
            "events": pipeline.counts.events,
            "positions": [[*where, at] for where, at in pipeline.positions.items()],
        }
    return changes


def check_changes(
    found: Found | None,
    learners: Learners,
    input_settings: Mapping[str, str],
    reset: Collection[str] = (),
    *,
    labels: LabelSet,
    late: bool,
) -> Changes:
    """What a checkpoint means for learners that are fresh; `Stop` if they do not fit it."""
    names = list(learners.members)
    unknown = [name for name in reset if name != ALL and name not in names]
    if unknown:
        raise Stop(
            Exit.USAGE,
            f"--reset {unknown[0]}: there is no such learner; valid: {', '.join([*names, ALL])}",
        )
    if found is None:
        return Changes(fresh=names)
    place, data = found
    saved = {name: one["settings"] for name, one in data["learners"].items()}
    wanted = {learner.name: learner.settings for learner in learners}
    changes = compare_learners(
        saved, wanted, reset, (data["features"]["input_settings"], input_settings)
    )
    if (left := held_count(data)) and not late and ALL not in reset:
        changes.refused.append(
            f"[labels] is gone, and {left} events or labels wait for each other, which would be "
            "lost (with a short labels.hold_for they time out; --reset all drops them)"
        )
    if changes.refused:
        raise Stop(
            Exit.USAGE,
            f"the configuration does not fit the checkpoint {place.name}: "
            f"{'; '.join(changes.refused)}. Take the change back, or begin afresh from here with "
            "--reset NAME (--reset all if the features have changed)",
        )
    if data["features"]["input_settings"] == input_settings:
        try:
            labels.restore(saved_labels(data))
        except InvalidEventError as error:
            raise mismatch(place, error) from error
        for name in changes.fresh:
            check_labels(name, learners[name].model, labels.labels)
    return changes


def saved_labels(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint says of the labels, which may come in records of their own."""
    found: dict[str, Any] = data["labels" if "labels" in data else "decoder"]["labels"]
    return found


def held_count(data: Mapping[str, Any]) -> int:
    """How many events or labels a checkpoint holds that have not met."""
    segments = data.get("join", {}).get("waiting", ())
    return sum(segment["live"] for segment in segments)


def mismatch(place: Place, error: InvalidEventError) -> Stop:
    """The labels do not fit those of the checkpoint."""
    return Stop(Exit.USAGE, f"the configuration does not fit the checkpoint {place.name}: {error}")


def check_labels(name: str, model: Model, seen: list[Any]) -> None:
    """A learner that begins later must be able to learn the labels that were seen before."""
    try:
        model.check_labels(seen)
    except InvalidEventError as error:
        raise Stop(
            Exit.USAGE, f"learner {name!r} cannot join: the labels so far are {seen}: {error}"
        ) from error


def archive_learners(
    directory: Path, found: tuple[Place, dict[str, Any]], changes: Changes
) -> None:
    """Keep learners that are no longer wanted as model files, before checkpoints lack them."""
    place, data = found
    folder = directory / "archive"
    for name in changes.archived:
        make_directory(folder)
        saved = data["learners"][name]["model"]
        state = {**saved["state"], "features": data["features"]["state"]}
        path = folder / f"{name}-{place.name.removesuffix('.checkpoint')}.model"
        model_file.write(path, {**saved, "state": state})
        model_file.fsync_directory(folder)


def log_changes(log: Log, changes: Changes, pipeline: Pipeline, directory: Path | None) -> None:
    """Say what became of each learner."""
    for name in changes.resumed:
        learner = pipeline.learners[name]
        log.info("learner goes on", name=name, learned=learner.learned)
    at = {f"{topic}:{n}": position for (topic, n), position in pipeline.positions.items()}
    for name in changes.fresh:
        log.info("learner begins", name=name, at=at or "the start")
    for name in changes.archived:
        log.info("learner archived", name=name, directory=directory and directory / "archive")


def log_label_changes(pipeline: Pipeline, saved: Mapping[str, Any]) -> None:
    """Log that other labels are declared: `probability` may be that of another one from now on."""
    labels = pipeline.event_reader.labels
    if not saved["closed"]:
        if labels.closed:
            pipeline.log_labels()
        return
    before = LabelSet.complete(saved["labels"])
    if (
        not labels.closed
        or set(labels.labels) != set(before.labels)
        or (labels.positive != before.positive)
    ):
        pipeline.log.warning(
            "labels changed",
            labels=labels.labels if labels.closed else "open",
            positive=labels.positive,
            labels_before=before.labels,
            positive_before=before.positive,
        )


def restore_header(source: Source, decoder: Decoder) -> None:
    """The columns of a table that is gone on in, where no checkpoint has them: after a skip."""
    if isinstance(source, Files) and isinstance(decoder, CSVDecoder) and not decoder.columns:
        decoder.guess([source.header()])


def check_skip_to(source: Source, to: Mapping[Partition, int]) -> None:
    """`Stop` if something was to be skipped that the source does not have."""
    there = source.lag()
    unknown = [where for where in to if where not in there]
    if unknown:
        names = ", ".join(f"{where.topic}:{where.number}" for where in sorted(there)[:10])
        raise Stop(
            Exit.USAGE,
            f"--skip-to {unknown[0].topic}:{unknown[0].number}: the source has no such partition; "
            f"there: {names or 'none'}",
        )
    for where, at in to.items():
        if isinstance(source, Files) and not source.begins_line(where, at):
            raise Stop(
                Exit.USAGE,
                f"--skip-to {where.topic}:{where.number}:{at}: no line begins at this byte, and a "
                "part of one would be learned",
            )


def apply_skip_to(log: Log, pipeline: Pipeline, to: Mapping[Partition, int]) -> None:
    """Go on from these positions, as asked after too many bad events."""
    for where, position in to.items():
        now = pipeline.positions.get(where)
        if now is not None and position < now:
            raise Stop(
                Exit.USAGE,
                f"--skip-to {where.topic}:{where.number}:{position} lies before the checkpoint's "
                f"position {now}: what was learned cannot be unlearned",
            )
        pipeline.counts.skipped += 0 if now is None else position - now
        pipeline.positions[where] = position
        log.warning(
            "skipped as asked", topic=where.topic, partition=where.number, start=now, end=position
        )
    pipeline.tolerance.reset()
