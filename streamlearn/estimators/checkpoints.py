"""Checkpoints in a directory or an object store, which may be read while a daemon writes them.

    epoch-00000003                  who owns the models, and from which checkpoint it resumed
    00000003-00000017.checkpoint    the 17th of epoch 3: models, scores and positions in one file

File names and epochs decide which checkpoints are valid: all of the newest epoch, those of its
base's epoch up to the base, and so on back. A file that a superseded epoch wrote later is not
valid. If there is no epoch file, because checkpoints were copied, those of the newest
checkpoint's epoch are valid.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from streamlearn.errors import ModelFileError, StoreError
from streamlearn.estimators import model_file
from streamlearn.storage import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.storage import Location

LAYOUT = 1  # of a checkpoint's content; the file format has its own version
CHECKPOINT = re.compile(r"(\d{8})-(\d{8})\.checkpoint")
EPOCH = re.compile(r"epoch-(\d{8})")


class CheckpointId(NamedTuple):
    """A checkpoint: the `number`-th of an epoch.

    >>> CheckpointId(3, 17).name
    '00000003-00000017.checkpoint'
    """

    epoch: int
    number: int

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.epoch:08}-{self.number:08}.checkpoint"


@dataclass(frozen=True, slots=True)
class Epoch:
    """The time of one owner: from the exclusive creation of its file to that of the next."""

    number: int
    owner: str
    base: CheckpointId | None
    identity: str = ""  # of the models in the directory; the same in all epochs

    @property
    def name(self) -> str:
        """The file's name."""
        return epoch_name(self.number)

    def packed(self) -> bytes:
        """Return the content of the file."""
        base = None if self.base is None else list(self.base)
        fields = {"owner": self.owner, "base": base, "identity": self.identity}
        return json.dumps(fields).encode() + b"\n"


def epoch_name(number: int) -> str:
    """Return the name of an epoch's file."""
    return f"epoch-{number:08}"


def lease_name(number: int) -> str:
    """Return the name of the lease of an epoch in a directory."""
    return f"{epoch_name(number)}.lease"


def read_epoch(location: Location, number: int) -> Epoch | None:
    """Read an epoch; None if its file does not exist."""
    store, name = open_store(location), epoch_name(number)
    try:
        data = json.loads(store.read(name))
        base = None if data["base"] is None else CheckpointId(*map(int, data["base"]))
        return Epoch(number, str(data["owner"]), base, str(data["identity"]))
    except FileNotFoundError:
        return None
    except (LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{store}/{name}, which decides which checkpoints are valid, is damaged ({error!r}); "
            "copy the newest good checkpoint to a new place and resume from there"
        ) from error


def epochs(location: Location) -> list[int]:
    """Return the numbers of the epochs, newest first."""
    return epochs_of(names(location))


def epochs_of(names: list[str]) -> list[int]:
    """Return the numbers of the epochs among these files, newest first."""
    found = (EPOCH.fullmatch(name) for name in names)
    return sorted((int(match[1]) for match in found if match), reverse=True)


def all_ids(location: Location) -> list[CheckpointId]:
    """Return all checkpoints, valid or not, newest first."""
    return ids_of(names(location))


def ids_of(names: list[str]) -> list[CheckpointId]:
    """Return the checkpoints among these files, newest first."""
    found = (CHECKPOINT.fullmatch(name) for name in names)
    return sorted((CheckpointId(int(m[1]), int(m[2])) for m in found if m), reverse=True)


def names(location: Location) -> list[str]:
    """Return the names of all files; empty if the directory does not exist."""
    return open_store(location).names()


def valid(location: Location, names: list[str] | None = None) -> list[CheckpointId]:
    """Return the valid checkpoints, newest first; `names` are those of all files, if known."""
    store = open_store(location)
    names = store.names() if names is None else names
    present = ids_of(names)
    chain: list[CheckpointId] = []
    # Without epoch files, which were not copied, use the newest checkpoint's epoch.
    known = epochs_of(names) or [one.epoch for one in present[:1]]
    number, last = known[0] if known else None, None
    while number is not None:
        chain += [
            one for one in present if one.epoch == number and (last is None or one.number <= last)
        ]
        epoch = read_epoch(store, number)
        number, last = (None, None) if epoch is None or epoch.base is None else epoch.base
    return chain


def newest(
    location: Location, damaged: Callable[[CheckpointId, Exception], None] | None = None
) -> tuple[CheckpointId, dict[str, Any]] | None:
    """Return the newest intact checkpoint and its content; None if there is no checkpoint.

    Call `damaged` for each damaged checkpoint that is skipped.
    """
    store = open_store(location)
    for _ in range(10):
        chain = valid(store)
        if not chain:
            return None
        for checkpoint_id in chain:
            try:
                return checkpoint_id, read(store, checkpoint_id)
            except FileNotFoundError:
                break  # a running daemon has replaced it by a newer one: list again
            except (model_file.NewerFormatError, StoreError):
                raise
            except (OSError, ModelFileError) as error:
                if damaged is not None:
                    damaged(checkpoint_id, error)
        else:
            raise ModelFileError(
                f"{store}: all {len(chain)} checkpoints are damaged; restore a copy of one, or "
                "use another place to start from scratch"
            )
    raise ModelFileError(f"{store}: checkpoints are deleted faster than they can be read")


def read(location: Location, checkpoint_id: CheckpointId) -> dict[str, Any]:
    """Return the content of a checkpoint."""
    store = open_store(location)
    path = f"{store}/{checkpoint_id.name}"
    found = model_file.unpack(store.read(checkpoint_id.name), path)
    data: dict[str, Any] = found if isinstance(found, dict) else {}
    layout = data.get("checkpoint")
    if not isinstance(layout, int):
        raise ModelFileError(f"{path} is intact, but not a daemon's checkpoint")
    if layout > LAYOUT:
        raise model_file.NewerFormatError(
            f"{path} has checkpoint layout {layout}, but this version of streamlearn reads layouts "
            f"up to {LAYOUT}; upgrade streamlearn"
        )
    return data


def model(location: Location, learner: str | None) -> dict[str, Any]:
    """Return a learner of the newest checkpoint, in the form of a model file."""
    store = open_store(location)
    found = newest(store)
    if found is None:
        raise ModelFileError(f"{store} is a directory without a daemon's checkpoint")
    checkpoint_id, data = found
    learners = data["learners"]
    if learner is None and len(learners) == 1:
        (learner,) = learners
    if learner is None or learner not in learners:
        unknown = "" if learner is None else f"no learner {learner!r}: "
        raise ModelFileError(
            f"{unknown}{store}/{checkpoint_id.name} has the learners "
            f"{', '.join(sorted(learners))}; choose one by learner=NAME or --learner NAME"
        )
    return part(data, learner)


def part(data: dict[str, Any], learner: str) -> dict[str, Any]:
    """Return a learner of a checkpoint's content, in the form of a model file."""
    saved: dict[str, Any] = data["learners"][learner]["model"]
    state = {"features": data["features"]["state"], **saved["state"]}
    notes = {"decoder": data["decoder"]} if "decoder" in data else {}
    if "labels" in data:  # of records of their own
        notes["decoder"] = {**data["decoder"], "labels": data["labels"]["labels"]}
    return {**saved, "state": state, "notes": notes}
