"""`streamlearn models`: the checkpoints of a daemon; list them, compare two, go back to one."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from streamlearn.cli.parsing import json_option, whole
from streamlearn.cli.tables import show, show_json
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.errors import ModelFileError
from streamlearn.estimators import checkpoints
from streamlearn.estimators.linear import Linear
from streamlearn.estimators.model_file import NewerFormat

if TYPE_CHECKING:
    import argparse

    from streamlearn.cli.parsing import Options
    from streamlearn.cli.saved import Model
    from streamlearn.estimators.checkpoints import Place

HELP = "list, compare and roll back the checkpoints of a daemon"
EXAMPLES = """\
  streamlearn models list /var/lib/clicks
  streamlearn models diff /var/lib/clicks 3-16 3-17 --learner sparse
  streamlearn models rollback /var/lib/clicks 3-16   # model and positions together
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action, the directory and its checkpoints."""
    parser.add_argument("action", choices=["list", "diff", "rollback"], help="what to do")
    parser.add_argument("directory", metavar="DIR", type=Path, help="checkpoint.path of the daemon")
    parser.add_argument(
        "checkpoints",
        metavar="CHECKPOINT",
        nargs="*",
        help="epoch and number, as in 3-17; diff compares the two newest if none is given",
    )
    parser.add_argument("--learner", metavar="NAME", help="compare this one only")
    parser.add_argument(
        "--top", metavar="N", type=whole, default=20, help="so many weights of each (20)"
    )
    json_option(parser)


def run(options: Options) -> int:
    """Do what is asked."""
    if not options.directory.is_dir():
        raise ValueError(f"{options.directory} is no directory of checkpoints")
    actions = {"list": listed, "diff": compared, "rollback": rolled_back}
    return actions[options.action](options)


def listed(options: Options) -> int:
    """Every checkpoint, the newest first, and whether a daemon may go on from it."""
    directory = options.directory
    valid = checkpoints.valid(directory)
    rows = []
    for place in checkpoints.places(directory):
        status = (directory / place.name).stat()
        rows.append(
            {
                "checkpoint": short(place),
                "written": datetime.fromtimestamp(status.st_mtime, UTC).isoformat(" ", "seconds"),
                "bytes": status.st_size,
                **summary(directory, place, counts=place in valid),
            }
        )
    if options.json:
        show_json(rows)
    elif rows:
        show(rows)
    else:
        sys.stdout.write(f"{directory} has no checkpoints\n")
    return 0


def summary(directory: Path, place: Place, *, counts: bool) -> dict[str, Any]:
    """What is in a checkpoint, in a few words, and whether it counts: damaged ones do not."""
    try:
        data = checkpoints.read(directory, place)
        models = {name: revive(directory, data, name) for name in data["learners"]}
    except NewerFormat as error:  # a daemon of this version does not pass it over: it ends
        return {"steps": None, "non-zeros": str(error), "counts": counts}
    except (ModelFileError, OSError, LookupError, TypeError, ValueError) as error:
        return {"steps": None, "non-zeros": f"damaged: {error}", "counts": False}
    sizes = [f"{name} {model.nonzero:,}" for name, model in models.items()]
    steps = max((model.steps for model in models.values()), default=0)
    return {"steps": steps, "non-zeros": ", ".join(sizes), "counts": counts}


def compared(options: Options) -> int:
    """What changed from one checkpoint to another."""
    directory, names = options.directory, options.checkpoints
    valid = checkpoints.valid(directory)
    if len(names) not in {0, 2}:
        raise ValueError("diff compares two checkpoints: the older first, or none for the newest")
    if not names and len(valid) < 2:
        raise ValueError(f"{directory} has {len(valid)} checkpoints, and diff compares two")
    old, new = [find(directory, name) for name in names] or [valid[1], valid[0]]
    before, after = (checkpoints.read(directory, place) for place in (old, new))
    known = {**before["learners"], **after["learners"]}
    if options.learner is not None and options.learner not in known:
        raise ValueError(f"there is no learner {options.learner!r}; valid: {', '.join(known)}")
    found = {
        name: changed(directory, before, after, name, options.top)
        for name in known
        if options.learner in {None, name}
    }
    if options.json:
        show_json({"old": short(old), "new": short(new), "learners": found})
        return 0
    for name, change in found.items():
        sys.stdout.write(f"{name}, {short(old)} to {short(new)}: {change['says']}\n")
        if change["weights"]:
            show(change["weights"])
        sys.stdout.write("\n")
    return 0


def changed(
    directory: Path, before: dict[str, Any], after: dict[str, Any], name: str, top: int
) -> dict[str, Any]:
    """How one learner changed."""
    for data, word in ((before, "is new"), (after, "was removed")):
        if name not in data["learners"]:
            return {"says": word, "weights": []}
    old, new = (revive(directory, data, name) for data in (before, after))
    was, now = (flat(model) for model in (old, new))
    moved = sorted({*was, *now}, key=lambda key: -abs(now.get(key, 0.0) - was.get(key, 0.0)))[:top]
    rows = [
        {"feature": key, "old": was.get(key, 0.0), "new": now.get(key, 0.0)}
        for key in moved
        if was.get(key, 0.0) != now.get(key, 0.0)
    ]
    came, went = len(now.keys() - was.keys()), len(was.keys() - now.keys())
    says = (
        f"{new.steps - old.steps:+,} steps, non-zeros {len(was):,} to {len(now):,} "
        f"({came:,} came, {went:,} went)"
    )
    return {"says": says, "weights": rows}


def flat(model: Model) -> dict[str, float]:
    """Weights by name, of several outputs too."""
    found: dict[str, float] = {}
    for name, value in model.weights.items():
        if isinstance(value, dict):
            found |= {f"{name}: {inner}": weight for inner, weight in value.items()}
        else:
            found[str(name)] = value
    return found


def rolled_back(options: Options) -> int:
    """Make an older checkpoint the one to go on from, as a new epoch that names it as its base."""
    if len(options.checkpoints) != 1:
        raise ValueError("rollback needs the checkpoint to go back to: see `models list`")
    directory = options.directory
    place = find(directory, options.checkpoints[0])
    if place not in checkpoints.valid(directory):
        raise ValueError(f"{short(place)} was written by an overtaken daemon: it does not count")
    found = place, checkpoints.read(directory, place)  # damaged ones are refused here
    ownership = Ownership(directory)
    ownership.acquire(lambda: found, wait=lambda: False)
    ownership.release()
    sys.stdout.write(
        f"the next daemon goes on from {short(place)}, model and positions, "
        f"as epoch {ownership.epoch + 1}\n"
    )
    return 0


def revive(directory: Path, data: dict[str, Any], name: str) -> Model:
    """One learner of a checkpoint's data."""
    return cast("Model", Linear.revived(checkpoints.part(data, name), directory))


def short(place: Place) -> str:
    """How a checkpoint is called on the command line."""
    return f"{place.epoch}-{place.number}"


def find(directory: Path, name: str) -> Place:
    """The checkpoint of this name."""
    known = {short(place): place for place in checkpoints.places(directory)}
    known |= {place.name: place for place in known.values()}
    if name not in known:
        there = ", ".join(short(place) for place in checkpoints.places(directory)) or "none"
        raise ValueError(f"{directory} has no checkpoint {name!r}; there: {there}")
    return known[name]
