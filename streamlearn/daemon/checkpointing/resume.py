"""Resume from a checkpoint, with a configuration that may have changed.

Unchanged learners resume, new ones start here, and removed ones are archived as model files. A
changed learner is refused with the difference, unless it is to be reset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn.daemon.checkpointing import field_changes
from streamlearn.daemon.checkpointing.field_changes import FieldChanges
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.errors import InvalidEventError
from streamlearn.estimators import model_file
from streamlearn.stream import CSVDecoder, Files
from streamlearn.stream.formats.label_set import LabelSet

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from streamlearn.daemon.learners import Learner, Learners, Model
    from streamlearn.daemon.pipeline import Pipeline
    from streamlearn.daemon.process.log import Log
    from streamlearn.estimators.checkpoints import CheckpointId
    from streamlearn.storage import Store
    from streamlearn.stream import Decoder, Partition, Source

    Found = tuple[CheckpointId, dict[str, Any]]

ALL = "all"  # as in --reset all
ARCHIVE = "archive"  # the folder of the models of removed learners


@dataclass
class Changes:
    """What to do with each learner."""

    resumed: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    archived: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # the reasons
    fields: FieldChanges = field(default_factory=FieldChanges)


def compare_learners(
    saved: Mapping[str, Mapping[str, str]],
    configured: Mapping[str, Mapping[str, str]],
    reset: Collection[str],
    input_settings: tuple[Mapping[str, str], Mapping[str, str]],
    fields: FieldChanges | None = None,
) -> Changes:
    """Compare the learners of a checkpoint with those of the configuration.

    `saved` and `configured` are the settings of learners by name, and `input_settings` those of
    features and format, saved and configured, and `fields` the changes of declared fields.

    >>> compare_learners({"a": {"gamma": "1"}}, {"a": {"gamma": "2"}}, (), ({}, {})).refused
    ["learner 'a' has changed: gamma = 1 -> 2"]
    >>> compare_learners({"a": {"gamma": "1"}}, {"a": {"gamma": "2"}}, ("a",), ({}, {})).fresh
    ['a']
    """
    fields = fields or FieldChanges()
    changes = Changes(archived=[name for name in saved if name not in configured], fields=fields)
    everything = ALL in reset
    if input_settings[0] != input_settings[1] and not everything:
        changes.refused.append(
            f"the features or the format have changed: {describe_difference(*input_settings)}"
        )
    if not everything:
        changes.refused += fields.refused
    for name, settings in configured.items():
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
    """List the settings that differ, as `name = old -> new`."""
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{n} = {old.get(n, 'none')} -> {new.get(n, 'none')}" for n in names)


def resume(
    pipeline: Pipeline,
    found: Found | None,
    input_settings: Mapping[str, str],
    reset: Collection[str],
) -> Changes:
    """Restore the pipeline from the checkpoint; raise `Stop` if they do not match."""
    learners = pipeline.learners
    labels, delayed = pipeline.event_reader.labels, pipeline.event_reader.delayed
    changes = check_changes(found, learners, input_settings, reset, labels=labels, delayed=delayed)
    if found is None:
        return changes
    checkpoint_id, data = found
    same_features = keeps_features(data, input_settings)
    try:
        pipeline.restore(data, resumed=changes.resumed, features=same_features)
    except InvalidEventError as error:
        raise mismatch(checkpoint_id, error) from error
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
    delayed: bool,
) -> Changes:
    """Match learners with a checkpoint; raise `Stop` if they do not match."""
    names = list(learners.members)
    unknown = [name for name in reset if name != ALL and name not in names]
    if unknown:
        raise Stop(
            Exit.USAGE,
            f"--reset {unknown[0]}: no such learner; valid: {', '.join([*names, ALL])}",
        )
    if found is None:
        for learner in learners:
            know_labels_of(learner, labels)
        return Changes(fresh=names)
    checkpoint_id, data = found
    saved = {name: one["settings"] for name, one in data["learners"].items()}
    configured = {learner.name: learner.settings for learner in learners}
    others, fields = compare_input(data, input_settings)
    changes = compare_learners(saved, configured, reset, others, fields)
    if (held := held_count(data)) and not delayed and ALL not in reset:
        changes.refused.append(
            f"[labels] was removed while {held} events and labels are held for the join (a short "
            "labels.hold_for lets them time out; --reset all drops them)"
        )
    if changes.refused:
        raise Stop(
            Exit.USAGE,
            f"the configuration does not match the checkpoint {checkpoint_id.name}: "
            f"{'; '.join(changes.refused)}. {way_out(changes)}",
        )
    if keeps_features(data, input_settings):
        match_labels(found, changes, learners, labels)
    return changes


def match_labels(found: Found, changes: Changes, learners: Learners, labels: LabelSet) -> None:
    """Restore the labels; raise `Stop` if they are not those that the learners can learn."""
    checkpoint_id, data = found
    try:
        labels.restore(saved_labels(data))
    except InvalidEventError as error:
        raise mismatch(checkpoint_id, error) from error
    for name in changes.resumed:
        known = data["learners"][name]["model"]["state"].get("labels", [])
        if (problem := other_order(name, known, labels)) is not None:
            raise mismatch(checkpoint_id, problem)
    for name in changes.fresh:
        check_labels(name, learners[name].model, labels.labels)
        know_labels_of(learners[name], labels)


def know_labels_of(learner: Learner, labels: LabelSet) -> None:
    """Add the labels that a saved model has learned; raise `Stop` if they do not match."""
    known = learner.model.outputs if learner.learns == "classes" else []
    for label in known if not labels.declared else ():
        if label not in labels:
            labels.add(label)
    if (problem := other_order(learner.name, known, labels)) is not None:
        raise Stop(Exit.USAGE, problem)


def other_order(name: str, known: list[Any], labels: LabelSet) -> str | None:
    """Say what is wrong if of two labels another one was positive when a model learned them."""
    if len(known) != 2 or set(known) != set(labels.labels) or known == labels.order:
        return None
    before, now = (msgspec.json.encode(one[1]).decode() for one in (known, labels.order))
    return (
        f"{before} was the positive label when the learner {name!r} learned, and now it is {now}: "
        f"keep the order, format.labels = {msgspec.json.encode(known).decode()}"
    )


def way_out(changes: Changes) -> str:
    """Say what to do about refused changes."""
    if changes.refused == changes.fields.refused:
        return (
            'Undo the change, or declare the old field "ignore" and produce the new kind under '
            "another name; --reset all starts afresh from here"
        )
    return (
        "Undo the change, or start afresh from here with --reset NAME (--reset all if the "
        "features or the format have changed)"
    )


def keeps_features(data: Mapping[str, Any], input_settings: Mapping[str, str]) -> bool:
    """Return whether the slots of a checkpoint keep their meaning."""
    others, fields = compare_input(data, input_settings)
    return others[0] == others[1] and not fields.refused


def compare_input(
    data: Mapping[str, Any], input_settings: Mapping[str, str]
) -> tuple[tuple[dict[str, str], dict[str, str]], FieldChanges]:
    """Return the input settings except fields, saved and configured, and the changes of fields."""
    (old, before), (new, now) = map(
        field_changes.split, (data["features"]["input_settings"], input_settings)
    )
    names = data["features"]["state"].get("names", ())
    return (before, now), field_changes.compare(old, new, names)


def saved_labels(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the label set of a checkpoint, from the decoder that reads the labels."""
    found: dict[str, Any] = data["labels" if "labels" in data else "decoder"]["labels"]
    return found


def held_count(data: Mapping[str, Any]) -> int:
    """Count the events and labels that a checkpoint holds for the join."""
    segments = data.get("join", {}).get("pending", ())
    return sum(segment["live"] for segment in segments)


def mismatch(checkpoint_id: CheckpointId, error: InvalidEventError | str) -> Stop:
    """Build the `Stop` for labels that do not match the checkpoint."""
    return Stop(
        Exit.USAGE, f"the configuration does not match the checkpoint {checkpoint_id.name}: {error}"
    )


def check_labels(name: str, model: Model, seen: list[Any]) -> None:
    """Check that a new learner can learn the labels seen so far."""
    try:
        model.check_labels(seen)
    except InvalidEventError as error:
        raise Stop(
            Exit.USAGE, f"learner {name!r} cannot learn the labels seen so far, {seen}: {error}"
        ) from error


def archive_learners(
    store: Store, found: tuple[CheckpointId, dict[str, Any]], changes: Changes
) -> None:
    """Save removed learners as model files, before a checkpoint without them is written."""
    checkpoint_id, data = found
    for name in changes.archived:
        saved = data["learners"][name]["model"]
        state = {**saved["state"], "features": data["features"]["state"]}
        path = f"{ARCHIVE}/{name}-{checkpoint_id.name.removesuffix('.checkpoint')}.model"
        store.write(path, model_file.pieces({**saved, "state": state}))


def log_changes(log: Log, changes: Changes, pipeline: Pipeline, store: Store | None) -> None:
    """Log what happens to each learner."""
    for name in changes.resumed:
        learner = pipeline.learners[name]
        log.info("learner resumed", name=name, learned=learner.learned)
    at = {f"{topic}:{n}": position for (topic, n), position in pipeline.positions.items()}
    for name in changes.fresh:
        log.info("learner created", name=name, at=at or "start")
    if changes.fields:
        fields = changes.fields
        log.info(
            "fields changed", added=fields.added, dropped=fields.dropped, changed=fields.changed
        )
    for name in changes.archived:
        log.info("learner archived", name=name, directory=store and f"{store}/{ARCHIVE}")


def log_label_changes(pipeline: Pipeline, saved: Mapping[str, Any]) -> None:
    """Log a change of the declared labels: `probability` may now be that of another label."""
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
    """Read the header of a table that resumes without the columns in a checkpoint: after a skip."""
    if isinstance(source, Files) and isinstance(decoder, CSVDecoder) and not decoder.columns:
        decoder.infer([source.header()])


def check_skip_to(source: Source, to: Mapping[Partition, int]) -> None:
    """Raise `Stop` if a position of --skip-to does not exist in the source."""
    partitions = source.lag()
    unknown = [where for where in to if where not in partitions]
    if unknown:
        names = ", ".join(f"{where.topic}:{where.number}" for where in sorted(partitions)[:10])
        raise Stop(
            Exit.USAGE,
            f"--skip-to {unknown[0].topic}:{unknown[0].number}: no such partition; valid: "
            f"{names or 'none'}",
        )
    for where, at in to.items():
        if isinstance(source, Files) and not source.begins_line(where, at):
            raise Stop(
                Exit.USAGE,
                f"--skip-to {where.topic}:{where.number}:{at}: no line starts at this byte; "
                "use the byte offset of the start of a line",
            )


def apply_skip_to(log: Log, pipeline: Pipeline, to: Mapping[Partition, int]) -> None:
    """Move the positions forward, as requested after too many invalid records."""
    for where, position in to.items():
        now = pipeline.positions.get(where)
        if now is not None and position < now:
            raise Stop(
                Exit.USAGE,
                f"--skip-to {where.topic}:{where.number}:{position} is before the checkpoint's "
                f"position {now}; records cannot be unlearned",
            )
        pipeline.counts.skipped += 0 if now is None else position - now
        pipeline.positions[where] = position
        log.warning(
            "records skipped", topic=where.topic, partition=where.number, start=now, end=position
        )
    pipeline.invalid_limit.reset()
