"""What is served: promotions, their history, and the loss of what was served."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn.cli.configured import load
from streamlearn.cli.tables import show_rows
from streamlearn.daemon.served_loss import ServedLosses
from streamlearn.estimators import checkpoints
from streamlearn.serving import build, directory, promotions

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options


NOTHING_MEASURED = (
    "nothing is measured yet: in the newest checkpoint, no event has both a label and the score "
    "that was served"
)


def run(options: Options) -> int:
    """Change what is served, or show it."""
    if (options.promoted is not None) != (options.action == "promote"):
        raise ValueError(
            "name the learner: streamlearn serve promote SOURCE LEARNER"
            if options.promoted is None
            else f"unexpected argument {options.promoted!r}"
        )
    if options.action == "arms":
        show_rows(arms(options), NOTHING_MEASURED, as_json=options.json)
        return 0
    path = snapshots_of(options)
    if options.action == "history":
        changes = [msgspec.to_builtins(one) for one in promotions.history(path)]
        nothing = "nothing was promoted: the configuration decides"
        show_rows(changes, nothing, as_json=options.json)
        return 0
    if options.action == "promote":
        require(path, options.promoted)
        if promotions.promote(path, options.promoted) is None:
            sys.stdout.write(f"{options.promoted} is promoted already; nothing changed\n")
            return 0
    else:
        promotions.revert(path)
    now = promotions.current(promotions.history(path))
    what = "as configured" if now is None else f"by {now}"
    sys.stdout.write(f"served {what} within a second\n")
    return 0


def require(path: Path, learner: str) -> None:
    """Raise ValueError if a directory has no snapshot of a learner."""
    known = sorted({entry.learner for entry in directory.entries(path)})
    if learner not in known:
        there = f"; there are: {', '.join(known)}" if known else " yet"
        raise ValueError(f"no snapshot of {learner!r} in {path}{there}")


def snapshots_of(options: Options) -> Path:
    """Return the directory of snapshots."""
    source = Path(options.source)
    if source.suffix == ".toml":
        options.file = options.source
        source = build.directory_of(load(options))
    elif (
        source.is_dir() and not directory.entries(source) and directory.entries(source / "serving")
    ):
        source /= "serving"
    if not source.is_dir():
        raise ValueError(f"{source} is no directory of snapshots")
    return source


def arms(options: Options) -> list[dict[str, Any]]:
    """Return the loss of what was served, from the newest checkpoint."""
    path: str | Path = options.source
    if Path(options.source).suffix == ".toml":
        options.file = options.source
        checkpoint = load(options).checkpoint
        if checkpoint is None:
            raise ValueError("the configuration has no [checkpoint]")
        path = checkpoint.path
    found = checkpoints.newest(path)
    if found is None:
        raise ValueError(f"{path} has no checkpoint yet")
    losses = ServedLosses()
    losses.restore(found[1]["observers"].get("served", {}).get("losses", []))
    return list(losses.rows())
