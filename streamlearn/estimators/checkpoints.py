"""A directory of checkpoints, as anyone may read it while a daemon writes it.

    epoch-00000003                  who owns the models, and which checkpoint it went on from
    00000003-00000017.checkpoint    the 17th of epoch 3: models, scores and positions in one file

What counts follows from the names and the epochs alone: all checkpoints of the newest epoch, those
that its base's epoch had written up to the base, and so on back. A file that an overtaken epoch
wrote later is not among them. Where no epoch is there, for checkpoints were copied, those of the
newest one's epoch count.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamlearn.errors import ModelFileError
from streamlearn.estimators import model_file

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

LAYOUT = 1  # of what a checkpoint holds; the file's own format has a version of its own
CHECKPOINT = re.compile(r"(\d{8})-(\d{8})\.checkpoint")
EPOCH = re.compile(r"epoch-(\d{8})")


class Place(NamedTuple):
    """Which checkpoint: the `number`-th of an epoch.

    >>> Place(3, 17).name
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
    """One owner's time: from the exclusive creation of its file to that of the next."""

    number: int
    owner: str
    base: Place | None
    identity: str = ""  # of the directory's models, the same in all epochs

    @property
    def name(self) -> str:
        """The file's name."""
        return epoch_name(self.number)

    def packed(self) -> bytes:
        """What is in the file."""
        base = None if self.base is None else list(self.base)
        told = {"owner": self.owner, "base": base, "identity": self.identity}
        return json.dumps(told).encode() + b"\n"


def epoch_name(number: int) -> str:
    """The name of an epoch's file."""
    return f"epoch-{number:08}"


def read_epoch(directory: Path, number: int) -> Epoch | None:
    """The epoch of this number, None if it is not there (any more)."""
    path = directory / epoch_name(number)
    try:
        data = json.loads(path.read_bytes())
        base = None if data["base"] is None else Place(*map(int, data["base"]))
        return Epoch(number, str(data["owner"]), base, str(data["identity"]))
    except FileNotFoundError:
        return None
    except (LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{path} is damaged ({error!r}): it says which checkpoints count; "
            "move the newest good checkpoint to a directory of its own and go on from there"
        ) from error


def epochs(directory: Path) -> list[int]:
    """The numbers of the epochs there, newest first."""
    found = (EPOCH.fullmatch(name) for name in names(directory))
    return sorted((int(match[1]) for match in found if match), reverse=True)


def places(directory: Path) -> list[Place]:
    """Every checkpoint there, whether it counts or not, newest first."""
    found = (CHECKPOINT.fullmatch(name) for name in names(directory))
    return sorted((Place(int(m[1]), int(m[2])) for m in found if m), reverse=True)


def names(directory: Path) -> list[str]:
    """What is in the directory; nothing if there is none."""
    try:
        return [entry.name for entry in directory.iterdir()]
    except FileNotFoundError:
        return []


def valid(directory: Path) -> list[Place]:
    """The checkpoints that count, newest first."""
    there = places(directory)
    chain: list[Place] = []
    # Checkpoints that were copied without their epochs: the newest one's epoch counts.
    known = epochs(directory) or [place.epoch for place in there[:1]]
    number, last = known[0] if known else None, None
    while number is not None:
        chain += [
            place
            for place in there
            if place.epoch == number and (last is None or place.number <= last)
        ]
        epoch = read_epoch(directory, number)
        number, last = (None, None) if epoch is None or epoch.base is None else epoch.base
    return chain


def newest(
    directory: Path, damaged: Callable[[Place, Exception], None] | None = None
) -> tuple[Place, dict[str, Any]] | None:
    """The newest checkpoint that is sound, and what is in it; None if there is no checkpoint.

    `damaged` is told of each that was passed over.
    """
    for _ in range(10):
        chain = valid(directory)
        if not chain:
            return None
        for place in chain:
            try:
                return place, read(directory, place)
            except FileNotFoundError:
                break  # a running daemon has replaced it by a newer one: look again
            except model_file.NewerFormat:
                raise
            except (OSError, ModelFileError) as error:
                if damaged is not None:
                    damaged(place, error)
        else:
            raise ModelFileError(
                f"{directory}: all of its {len(chain)} checkpoints are damaged; put back a copy of "
                "one, or move the directory away to begin afresh"
            )
    raise ModelFileError(f"{directory}: its checkpoints vanish faster than they can be read")


def read(directory: Path, place: Place) -> dict[str, Any]:
    """What is in a checkpoint."""
    path = directory / place.name
    found = model_file.read(path)
    data: dict[str, Any] = found if isinstance(found, dict) else {}
    layout = data.get("checkpoint")
    if not isinstance(layout, int):
        raise ModelFileError(f"{path} is a sound file, but not a checkpoint of a daemon")
    if layout > LAYOUT:
        raise model_file.NewerFormat(
            f"{path} is a checkpoint of layout {layout}; this streamlearn reads up to {LAYOUT}: "
            "upgrade it"
        )
    return data


def model(path: str | os.PathLike[str], learner: str | None) -> dict[str, Any]:
    """One learner of the newest checkpoint in a directory, as a model's own file has it."""
    found = newest(Path(path))
    if found is None:
        raise ModelFileError(f"{path} is a directory without a checkpoint of a daemon")
    place, data = found
    learners = data["learners"]
    if learner is None and len(learners) == 1:
        (learner,) = learners
    if learner is None or learner not in learners:
        raise ModelFileError(
            f"{Path(path) / place.name} has the learners {', '.join(sorted(learners))}; "
            "say which: learner=NAME, or --learner NAME on the command line"
        )
    return part(data, learner)


def part(data: dict[str, Any], learner: str) -> dict[str, Any]:
    """One learner of what is in a checkpoint, as a model's own file has it."""
    saved: dict[str, Any] = data["learners"][learner]["model"]
    state = {**saved["state"], "features": data["features"]["state"]}
    notes = {"decoder": data["decoder"]} if "decoder" in data else {}
    if "labels" in data:  # which come in records of their own
        notes["decoder"] = {**data["decoder"], "labels": data["labels"]["labels"]}
    return {**saved, "state": state, "notes": notes}
