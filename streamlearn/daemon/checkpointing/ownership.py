"""Own a store of checkpoints: one daemon at a time, proved by epochs.

An epoch is a file that only one process can create, and holds from then on: see `DirectoryClaim`
and `BucketClaim`. When its owner is dead or frozen, a standby takes over.

Taking over means creating epoch N+1, which names the checkpoint it resumes from. The owner of epoch
N looks for that file before each publish, rename and commit. A checkpoint it renames too late is
ignored (streamlearn.estimators.checkpoints), so a frozen owner that wakes up does no harm.

If the store is moved, emptied or unmounted, the owner's epoch goes with it. The owner then
stops with its own exit code instead of writing to what replaced the store.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.checkpointing.directory_claim import DirectoryClaim
from streamlearn.daemon.process.exits import Exit, Stop, exit_code
from streamlearn.errors import StoreError
from streamlearn.estimators import checkpoints
from streamlearn.estimators.checkpoints import CheckpointId, Epoch
from streamlearn.storage import Store, open_store
from streamlearn.storage.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.daemon.checkpointing.claim import Claim
    from streamlearn.storage import Location

    Found = tuple[CheckpointId, dict[str, Any]] | None

LOOK_SECONDS = 0.1  # between two looks at an owner that may be dead
GRACE_SECONDS = 0.5  # for the loop to notice by itself that it lost the store


class Ownership:
    """One instance's ownership of a store."""

    def __init__(
        self,
        location: Location,
        *,
        lease_seconds: float = 10.0,
        report: Callable[[Stop], None] | None = None,
    ) -> None:
        self.store = open_store(location)
        self.report = report
        self.instance = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.models_id = ""  # shared by all owners of this store
        self.claim = claim_of(self.store, lease_seconds, self.instance)
        self._renewer: _Renewer | None = None

    @property
    def epoch(self) -> int:
        """The epoch of this instance; 0 if there is none yet."""
        return self.claim.epoch

    # -- becoming the owner -----------------------------------------------------------------------

    def acquire(
        self, load: Callable[[], Found], *, wait: Callable[[], bool], advice: str = ""
    ) -> Found:
        """Become the owner; return the checkpoint that `load` found.

        While another instance is the owner, `wait` blocks briefly and returns whether to keep
        waiting; if not, raise `Stop`. `advice`: what else than to stop that instance would help.
        """
        try:
            return self._acquire(load, wait, advice)
        except StoreError as error:
            raise Stop(exit_code(error), str(error)) from error
        except OSError as error:
            raise Stop(
                Exit.CHECKPOINT,
                f"{self.store} cannot hold checkpoints: {error.strerror or error}; use a "
                "writable directory on a file system with hard links and locks",
            ) from error

    def _acquire(self, load: Callable[[], Found], wait: Callable[[], bool], advice: str) -> Found:
        claim = self.claim
        try:
            while True:
                owner = claim.holder()
                if owner is not None:
                    if wait():
                        continue
                    if claim.certain:
                        raise Stop(
                            Exit.OWNED,
                            f"{self.store} is owned by {owner}; stop that instance first{advice}",
                        )
                    time.sleep(LOOK_SECONDS)
                    continue
                before = checkpoints.valid(self.store)
                found = load()
                if checkpoints.valid(self.store)[:1] != before[:1]:
                    continue  # a frozen owner woke up and wrote one
                # a checkpoint may have been copied here without its epoch
                number = max([claim.newest, *(one.epoch for one in before)]) + 1
                if self._create(number, None if found is None else found[0]):
                    return found
        finally:
            claim.stop_watching()

    def _create(self, number: int, base: CheckpointId | None) -> bool:
        """Create the epoch and start to renew it; return False if another instance was faster."""
        self.models_id = self._previous_models_id() or secrets.token_hex(8)
        if not self.claim.create(Epoch(number, self.instance, base, self.models_id)):
            return False
        self._renewer = _Renewer(self)
        self._renewer.start()
        return True

    def _previous_models_id(self) -> str:
        """Return the identity of the models from the previous epoch; "" if there is none."""
        for number in checkpoints.epochs(self.store):
            if (before := checkpoints.read_epoch(self.store, number)) is not None:
                return before.identity
        return ""

    # -- being the owner --------------------------------------------------------------------------

    def check(self) -> None:
        """Stop if this instance is no longer the owner; `UnconfirmedError` if that is unknown."""
        if (stop := self.claim.lost_reason()) is not None:
            raise stop

    def confirm(self) -> None:
        """Stop if this instance was no longer the owner when its last write was complete."""
        self.claim.confirm()

    def release(self) -> None:
        """Let a standby take over immediately; may be called twice."""
        if self._renewer is not None:
            self._renewer.stop()
            self._renewer = None
        self.claim.release()


def claim_of(store: Store, lease_seconds: float, instance: str) -> Claim:
    """Return the kind of claim that a store supports."""
    if isinstance(store, Directory):
        return DirectoryClaim(store, lease_seconds)
    from streamlearn.daemon.checkpointing.bucket_claim import (  # noqa: PLC0415 - obstore is optional
        BucketClaim,
    )

    return BucketClaim(store, lease_seconds, instance)


class _Renewer(threading.Thread):
    """Renew the claim, and end a process that lost the store without noticing."""

    def __init__(self, ownership: Ownership) -> None:
        super().__init__(name="lease", daemon=True)
        self.ownership = ownership
        self.stopped = threading.Event()

    def run(self) -> None:
        """Renew until stopped."""
        claim, report = self.ownership.claim, self.ownership.report
        while True:
            start = time.monotonic()
            claim.renew()
            if (stop := self._lost_reason()) is not None:
                if not self.stopped.wait(GRACE_SECONDS):
                    if report is not None:
                        report(stop)
                    os._exit(stop.code)
                return
            if self.stopped.wait(max(start + claim.renew_seconds - time.monotonic(), LOOK_SECONDS)):
                return

    def _lost_reason(self) -> Stop | None:
        try:
            return self.ownership.claim.lost_reason()
        except StoreError:  # the store does not answer: the loop waits
            return None

    def stop(self) -> None:
        """Stop renewing."""
        self.stopped.set()
        if self is not threading.current_thread():
            self.join()
