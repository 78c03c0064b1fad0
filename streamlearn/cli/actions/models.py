"""List, compare and roll back the checkpoints of a daemon."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from streamlearn.cli.tables import show, show_json, show_rows
from streamlearn.core.nearest import nearest
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.errors import ModelFileError
from streamlearn.estimators import checkpoints
from streamlearn.estimators.linear import Linear
from streamlearn.estimators.model_file import NewerFormatError
from streamlearn.storage import open_store
from streamlearn.storage.directory import Directory

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options
    from streamlearn.cli.saved_models import Model
    from streamlearn.estimators.checkpoints import CheckpointId
    from streamlearn.storage import Store


def run(options: Options) -> int:
    """Run the subcommand."""
    store = open_store(options.location)
    if isinstance(store, Directory) and not store.path.is_dir():
        raise ValueError(f"{store} is not a directory")
    actions = {"list": list_all, "diff": diff, "rollback": roll_back}
    return actions[options.action](store, options)


def list_all(store: Store, options: Options) -> int:
    """List the checkpoints, newest first, and whether a daemon may resume from them."""
    entries = {entry.name: entry for entry in store.entries()}
    valid = checkpoints.valid(store, list(entries))
    rows = [
        {
            "checkpoint": short(checkpoint_id),
            "written": timestamp(entries[checkpoint_id.name].written),
            "bytes": entries[checkpoint_id.name].bytes,
            **summary(store, checkpoint_id, valid=checkpoint_id in valid),
        }
        for checkpoint_id in checkpoints.ids_of(list(entries))
    ]
    show_rows(rows, f"{store} has no checkpoints", as_json=options.json)
    return 0


def summary(store: Store, checkpoint_id: CheckpointId, *, valid: bool) -> dict[str, Any]:
    """Summarize a checkpoint; damaged ones are not valid."""
    try:
        data = checkpoints.read(store, checkpoint_id)
        models = {name: revive(store, data, name) for name in data["learners"]}
    except NewerFormatError as error:  # a daemon of this version stops at it
        return {"steps": None, "non-zeros": str(error), "valid": valid}
    except (ModelFileError, OSError, LookupError, TypeError, ValueError) as error:
        return {"steps": None, "non-zeros": f"damaged: {error}", "valid": False}
    sizes = [f"{name} {model.nonzero:,}" for name, model in models.items()]
    steps = max((model.steps for model in models.values()), default=0)
    return {"steps": steps, "non-zeros": ", ".join(sizes), "valid": valid}


def diff(store: Store, options: Options) -> int:
    """Show what changed between two checkpoints."""
    names = options.checkpoints
    valid = checkpoints.valid(store)
    if len(names) not in {0, 2}:
        raise ValueError("diff takes two checkpoints, the older first, or none for the two newest")
    if not names and len(valid) < 2:
        raise ValueError(f"{store} has {len(valid)} valid checkpoints; diff needs two")
    old, new = [find(store, name) for name in names] or [valid[1], valid[0]]
    before, after = (checkpoints.read(store, checkpoint_id) for checkpoint_id in (old, new))
    known = {**before["learners"], **after["learners"]}
    if options.learner is not None and options.learner not in known:
        raise ValueError(f"unknown learner {options.learner!r}; {nearest(options.learner, known)}")
    found = {
        name: changed(store, before, after, name, options.top)
        for name in known
        if options.learner in {None, name}
    }
    if options.json:
        show_json({"old": short(old), "new": short(new), "learners": found})
        return 0
    for name, change in found.items():
        sys.stdout.write(f"{name}, {short(old)} to {short(new)}: {change['summary']}\n")
        if change["weights"]:
            show(change["weights"])
        sys.stdout.write("\n")
    return 0


def changed(
    store: Store, before: dict[str, Any], after: dict[str, Any], name: str, top: int
) -> dict[str, Any]:
    """Return how one learner changed."""
    for data, word in ((before, "added"), (after, "removed")):
        if name not in data["learners"]:
            return {"summary": word, "weights": []}
    old, new = (revive(store, data, name) for data in (before, after))
    old_weights, new_weights = (flat(model) for model in (old, new))
    names = {*old_weights, *new_weights}
    moved = sorted(
        names, key=lambda name: -abs(new_weights.get(name, 0.0) - old_weights.get(name, 0.0))
    )[:top]
    rows = [
        {"feature": name, "old": old_weights.get(name, 0.0), "new": new_weights.get(name, 0.0)}
        for name in moved
        if old_weights.get(name, 0.0) != new_weights.get(name, 0.0)
    ]
    added = len(new_weights.keys() - old_weights.keys())
    removed = len(old_weights.keys() - new_weights.keys())
    summary = (
        f"{new.steps - old.steps:+,} steps, non-zeros {len(old_weights):,} to {len(new_weights):,} "
        f"({added:,} added, {removed:,} removed)"
    )
    return {"summary": summary, "weights": rows}


def flat(model: Model) -> dict[str, float]:
    """Return weights by name; with several outputs, by output and name."""
    found: dict[str, float] = {}
    for name, value in model.weights.items():
        if isinstance(value, dict):
            found |= {f"{name}: {inner}": weight for inner, weight in value.items()}
        else:
            found[str(name)] = value
    return found


def roll_back(store: Store, options: Options) -> int:
    """Start a new epoch based on an older checkpoint, from which the next daemon resumes."""
    if len(options.checkpoints) != 1:
        raise ValueError("rollback takes one checkpoint; see `streamlearn models list`")
    checkpoint_id = find(store, options.checkpoints[0])
    if checkpoint_id not in checkpoints.valid(store):
        raise ValueError(
            f"{short(checkpoint_id)} was written by a fenced daemon; use a valid checkpoint"
        )
    found = checkpoint_id, checkpoints.read(store, checkpoint_id)  # damaged ones are refused here
    ownership = Ownership(store)
    ownership.acquire(lambda: found, wait=lambda: False)
    ownership.release()
    sys.stdout.write(
        f"the next daemon resumes from {short(checkpoint_id)} (model and positions) "
        f"as epoch {ownership.epoch + 1}\n"
    )
    return 0


def revive(store: Store, data: dict[str, Any], name: str) -> Model:
    """Return one learner of a checkpoint."""
    return cast("Model", Linear.from_file_data(checkpoints.part(data, name), str(store)))


def timestamp(seconds: float) -> str:
    """Return seconds since 1970 as a time."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "seconds")


def short(checkpoint_id: CheckpointId) -> str:
    """Return the name of a checkpoint on the command line."""
    return f"{checkpoint_id.epoch}-{checkpoint_id.number}"


def find(store: Store, name: str) -> CheckpointId:
    """Return the checkpoint of a name."""
    ids = checkpoints.all_ids(store)
    known = {short(one): one for one in ids}
    known |= {one.name: one for one in ids}
    if name not in known:
        valid = ", ".join(map(short, ids)) or "none"
        raise ValueError(f"{store} has no checkpoint {name!r}; valid: {valid}")
    return known[name]
