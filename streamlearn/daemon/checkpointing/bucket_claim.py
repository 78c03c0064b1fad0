"""Hold an epoch of an object store by conditional writes.

An epoch is an object that only one instance can create. Its owner renews it: each renewal replaces
the object, provided that nobody else has.

- A standby that sees no renewal for `lease_seconds` by its own clock ends the epoch by the same
  kind of write. It then loads the newest checkpoint, and creates the next epoch.
- From then on each renewal of the former owner is refused by the store. It confirms its epoch by a
  renewal after each upload, so a checkpoint that it counts as durable is one that the standby sees.
- An owner whose last renewal is too old by its own clock cannot know whether it still is the owner.
  It does nothing until a renewal succeeds.

No clock is compared with another one; clocks only have to run equally fast.
"""

from __future__ import annotations

import json
import math
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.checkpointing.claim import Claim, UnconfirmedError, fenced, store_gone
from streamlearn.daemon.process.faults import fault_point
from streamlearn.errors import ModelFileError, StoreError
from streamlearn.estimators import checkpoints
from streamlearn.estimators.checkpoints import epoch_name
from streamlearn.storage.conditional import ConditionalObjects

if TYPE_CHECKING:
    from streamlearn.daemon.process.exits import Stop
    from streamlearn.estimators.checkpoints import Epoch
    from streamlearn.storage import Store
    from streamlearn.storage.conditional import Version

RENEWALS = 5  # in the time of a lease
TRUSTED = 0.7  # of a lease, for which an owner relies on its last renewal
ENDED = "ended"  # in place of the lease, once the epoch is over


class BucketClaim(Claim):
    """A claim to the epochs of a prefix."""

    certain = False

    def __init__(self, store: Store, lease_seconds: float, instance: str) -> None:
        self.store = store
        self.lease_seconds = lease_seconds
        self.instance = instance
        self.renew_seconds = lease_seconds / RENEWALS
        self.objects = ConditionalObjects(str(store), max(self.renew_seconds, 1.0))
        self._checked = False  # whether the store has conditional writes
        # of others
        self._watched: dict[str, Any] | None = None
        self._watched_version: Version | None = None
        self._looked_at = 0.0
        self._idle_seconds = 0.0
        # of this instance
        self._fields: dict[str, Any] = {}
        self._version: Version = {}
        self._renewals = 0
        self._renewal_began: float | None = None  # the one whose outcome is not known
        self._trusted_until = 0.0
        self._lost: Stop | None = None
        self._problem = ""
        self._lock = threading.Lock()

    # -- of others --------------------------------------------------------------------------------

    def holder(self) -> str | None:
        """Return the owner of the newest epoch; None if there is none, or its epoch is over."""
        if not self._checked:
            self.objects.check()
            self._checked = True
        watched, now = self._watched, clock()
        if watched is not None and now - self._looked_at < self.renew_seconds / 2.0:
            return str(watched["owner"])
        try:
            return self._look(now)
        except StoreError:
            if watched is None:
                raise
            self._looked_at = clock()  # not again with every call
            return str(watched["owner"])

    def _look(self, now: float) -> str | None:
        """Read the watched epoch; end it if its lease has expired."""
        if self._watched is None:
            self.newest = max(checkpoints.epochs(self.store), default=0)
            if self.newest == 0:
                return None
        name = epoch_name(self.newest)
        try:
            data, version = self.objects.read(name)
            fields = parsed(data, f"{self.store}/{name}")
        except FileNotFoundError:
            fields = {"lease": ENDED}
        if fields["lease"] == ENDED:
            return "another instance" if self._newer_epoch() else None
        if version == self._watched_version:
            # a standby that was frozen itself did not observe the lease all the time
            self._idle_seconds += min(now - self._looked_at, self.renew_seconds)
        else:
            self.certain = self._watched is not None
            self._idle_seconds = 0.0
        self._watched, self._watched_version, self._looked_at = fields, version, now
        if self._idle_seconds <= max(self.lease_seconds, float(fields["lease"]["seconds"])):
            return str(fields["owner"])
        self._looked_at = -math.inf
        ended = {**fields, "lease": ENDED, "ended_by": self.instance}
        renewed = self.objects.replace(name, packed(ended), version) is None
        return str(fields["owner"]) if renewed else None

    def _newer_epoch(self) -> bool:
        """Watch a newer epoch from now on, if there is one."""
        epochs = checkpoints.epochs(self.store)
        if not epochs or epochs[0] < self.newest:
            raise store_gone(self.store)
        if epochs[0] == self.newest:
            return False
        self.stop_watching()
        self.newest = epochs[0]
        return True

    def stop_watching(self) -> None:
        """Forget the watched epoch."""
        self._watched = self._watched_version = None
        self.certain = False

    # -- of this instance -------------------------------------------------------------------------

    def create(self, epoch: Epoch) -> bool:
        """Create the epoch; return False if it exists."""
        lease = {"seconds": self.lease_seconds, "renewals": 0}
        self._fields = {**json.loads(epoch.packed()), "lease": lease}
        fault_point("claim")
        began = clock()
        version = self.objects.create(epoch.name, packed(self._fields))
        if version is None:
            return False
        fault_point("take-over")
        self.epoch, self._version = epoch.number, version
        self._trusted_until = began + TRUSTED * self.lease_seconds
        return True

    def lost_reason(self) -> Stop | None:
        """Return why the epoch is over; None while the last renewal is recent."""
        if self._lost is None and clock() >= self._trusted_until:
            raise UnconfirmedError(
                f"the lease of epoch {self.epoch} could not be renewed: {self._problem or 'frozen'}"
            )
        return self._lost

    def renew(self) -> None:
        """Replace the epoch by its next renewal."""
        with suppress(StoreError):
            self._renew()

    def confirm(self) -> None:
        """Renew now, or raise."""
        self._renew()
        super().confirm()

    def _renew(self) -> None:
        with self._lock:
            if self._lost is not None:
                return
            if self._renewal_began is None:  # else it is repeated with the same data
                self._renewal_began = clock()
                self._renewals += 1
            self._fields["lease"]["renewals"] = self._renewals
            name = epoch_name(self.epoch)
            try:
                version = self.objects.replace(name, packed(self._fields), self._version)
                if version is None:
                    self._lost = self._why_lost()
                    return
            except StoreError as error:
                self._problem = str(error)
                raise
            self._version = version
            self._trusted_until = self._renewal_began + TRUSTED * self.lease_seconds
            self._renewal_began = None

    def _why_lost(self) -> Stop:
        """Tell why the store refused a renewal."""
        try:
            self.objects.read(epoch_name(self.epoch))
        except FileNotFoundError:  # removed by the next owner, or with everything else
            if checkpoints.epochs(self.store)[:1] <= [self.epoch]:
                return store_gone(self.store)
        return fenced(self.store, self.epoch)

    def release(self) -> None:
        """End the own epoch."""
        with self._lock:
            if self.epoch == 0 or self._lost is not None:
                return
            self._lost = fenced(self.store, self.epoch)
            ended = {**self._fields, "lease": ENDED, "ended_by": self.instance}
            with suppress(StoreError):  # a standby then takes over when the lease expires
                self.objects.replace(epoch_name(self.epoch), packed(ended), self._version)


def clock() -> float:
    """Return seconds that also count while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def packed(fields: dict[str, Any]) -> bytes:
    """Return the content of an epoch."""
    return json.dumps(fields).encode() + b"\n"


def parsed(data: bytes, path: str) -> dict[str, Any]:
    """Return the fields of an epoch; one that was copied from a directory has no lease."""
    try:
        fields: dict[str, Any] = {"lease": ENDED, **json.loads(data)}
        if fields["lease"] != ENDED:
            float(fields["lease"]["seconds"])
    except (LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: {error!r}") from error
    return fields
