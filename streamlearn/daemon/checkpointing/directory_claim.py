"""Hold an epoch of a directory by a lock and a lease.

The owner locks the file of its epoch while it lives, and renews a lease next to it:

- If the lock is free, the owner is dead, and a standby takes over immediately.
- If the lock is held, but the lease has not changed for `lease_seconds` by the standby's clock, the
  owner is frozen, and the standby takes over as well.
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from streamlearn.core.files import PART, fsync_directory, lock, make_directory
from streamlearn.daemon.checkpointing.claim import Claim, fenced, store_gone
from streamlearn.daemon.process.faults import fault_point
from streamlearn.estimators import checkpoints
from streamlearn.estimators.checkpoints import Epoch, epoch_name, lease_name

if TYPE_CHECKING:
    from pathlib import Path

    from streamlearn.daemon.process.exits import Stop
    from streamlearn.storage.directory import Directory

RENEW_SECONDS = 0.25
MAX_CHECK_SECONDS = 0.5  # the most that one check of an unchanged lease counts


class DirectoryClaim(Claim):
    """A claim to the epochs of a directory."""

    renew_seconds = RENEW_SECONDS

    def __init__(self, store: Directory, lease_seconds: float) -> None:
        self.store = store
        self.directory = store.path
        self.lease_seconds = lease_seconds
        self._watched: int | None = None  # the handle of the watched epoch
        self._lease: bytes | None = None
        self._checked_at = 0.0
        self._idle_seconds = 0.0
        self._lock: int | None = None  # the handle of the own epoch
        self._epoch_file = self._next_epoch_file = ""
        self._epoch_inode = (0, 0)  # another file may get the name of the epoch
        self._renewals = 0

    # -- of others --------------------------------------------------------------------------------

    def holder(self) -> str | None:
        """Return the live owner; None if there is none."""
        epochs = checkpoints.epochs(self.store)
        number = epochs[0] if epochs else 0
        if number < self.newest:  # the newest is never removed
            raise store_gone(self.store)
        if number != self.newest or self._watched is None:
            self.stop_watching()
            self.newest = number
            self._lease = None
            if number == 0:
                return None
            try:
                self._watched = os.open(self.directory / epoch_name(number), os.O_RDWR)
            except FileNotFoundError:
                return "another instance"  # a newer epoch exists by now: check again
        try:
            lock(self._watched)
        except BlockingIOError:
            return self._lock_holder()
        return None  # keep its lock until the next epoch is claimed

    def _lock_holder(self) -> str | None:
        """Return the owner that holds the lock; None if its lease has expired."""
        now = time.monotonic()
        try:
            lease = lease_path(self.directory, self.newest).read_bytes()
        except FileNotFoundError:
            lease = b""
        if lease != self._lease:
            self._lease, self._idle_seconds = lease, 0.0
        else:
            # a standby that was frozen itself did not observe the lease all the time
            self._idle_seconds += min(now - self._checked_at, MAX_CHECK_SECONDS)
        self._checked_at = now
        if self._idle_seconds > self.lease_seconds:
            return None
        epoch = checkpoints.read_epoch(self.store, self.newest)
        return "another instance" if epoch is None else epoch.owner

    def stop_watching(self) -> None:
        """Release the owner's lock."""
        if self._watched is not None:
            os.close(self._watched)
            self._watched = None

    # -- of this instance -------------------------------------------------------------------------

    def create(self, epoch: Epoch) -> bool:
        """Create the epoch as a hard link, and hold its lock; return False if it exists."""
        make_directory(self.directory)
        temporary = self.directory / f".{epoch.name}.{secrets.token_hex(8)}{PART}"
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            lock(handle)
            os.write(handle, epoch.packed())
            os.fsync(handle)
            fault_point("claim")
            os.link(temporary, self.directory / epoch.name)
        except (
            FileExistsError,
            FileNotFoundError,
        ):  # another instance created it, and maybe removed it
            os.close(handle)
            return False
        except BaseException:
            os.close(handle)
            raise
        finally:
            temporary.unlink(missing_ok=True)
        fault_point("take-over")
        fsync_directory(self.directory)
        self._lock, self.epoch = handle, epoch.number
        self._epoch_file = os.fspath(self.directory / epoch.name)
        self._next_epoch_file = os.fspath(self.directory / epoch_name(epoch.number + 1))
        self._epoch_inode = inode(os.fstat(handle))
        return True

    def lost_reason(self) -> Stop | None:
        """Return why this instance lost the directory; None while it is the owner.

        Old epochs are removed oldest first, so a removed epoch implies a newer one.
        """
        # called with every poll, with prepared names: building paths takes longer than the check
        if self._epoch_exists() and not os.path.exists(self._next_epoch_file):  # noqa: PTH110
            return None
        try:
            overtaken = checkpoints.epochs(self.store)[:1] > [self.epoch]
        except OSError:  # the file system is gone
            overtaken = False
        return fenced(self.store, self.epoch) if overtaken else store_gone(self.store)

    def _epoch_exists(self) -> bool:
        """Tell whether the epoch file of this instance is still in place."""
        try:
            return inode(os.stat(self._epoch_file)) == self._epoch_inode  # noqa: PTH116
        except OSError:
            return False

    def renew(self) -> None:
        """Renew the lease, unless another instance has the directory by now."""
        if self.lost_reason() is not None:
            return
        self._renewals += 1
        with suppress(OSError):  # on a full disk a standby takes over, which is noticed
            write_lease(lease_path(self.directory, self.epoch), self._renewals)

    def release(self) -> None:
        """Release the own lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def inode(status: os.stat_result) -> tuple[int, int]:
    """Identify a file independently of its name."""
    return status.st_dev, status.st_ino


def write_lease(path: Path, count: int) -> None:
    """Write the lease in place, which works on a full disk too."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(handle, b"%020d\n" % count, 0)
    finally:
        os.close(handle)


def lease_path(directory: Path, epoch: int) -> Path:
    """Return the path of the lease of an epoch."""
    return directory / lease_name(epoch)
