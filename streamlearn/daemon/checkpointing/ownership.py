"""Own a checkpoint directory: one daemon at a time, proved by epochs.

An epoch is a file that only one process can create (a hard link that must not exist yet). Its owner
locks the file while it lives, and renews a lease next to it:

- If the lock is free, the owner is dead, and a standby takes over immediately.
- If the lock is held, but the lease has not changed for `lease_seconds` by the standby's clock, the
  owner is frozen, and the standby takes over as well.

Taking over means creating epoch N+1, which names the checkpoint it resumes from. The owner of epoch
N looks for that file before each publish, rename and commit. A checkpoint it renames too late is
ignored (streamlearn.estimators.checkpoints), so a frozen owner that wakes up does no harm.

If the directory is moved, emptied or unmounted, the owner's epoch goes with it. The owner then
stops with its own exit code instead of writing to what replaced the directory.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from streamlearn.core.files import PART, fsync_directory, lock, make_directory
from streamlearn.daemon.process.exits import Exit, Fenced, Stop
from streamlearn.daemon.process.faults import fault_point
from streamlearn.estimators import checkpoints
from streamlearn.estimators.checkpoints import CheckpointId, Epoch, epoch_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Found = tuple[CheckpointId, dict[str, Any]] | None

RENEW_SECONDS = 0.25
MAX_CHECK_SECONDS = 0.5  # the most that one check of an unchanged lease counts
GRACE_SECONDS = 0.5  # for the loop to notice by itself that it lost the directory


class Ownership:
    """One instance's claim to a checkpoint directory."""

    def __init__(
        self,
        directory: Path,
        *,
        lease_seconds: float = 10.0,
        report: Callable[[Stop], None] | None = None,
    ) -> None:
        self.directory = directory
        self.lease_seconds = lease_seconds
        self.report = report
        self.instance = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.epoch = 0  # none yet
        self.models_id = ""  # shared by all owners of this directory
        self._epoch_file = self._next_epoch_file = ""
        self._epoch_inode = (0, 0)  # another file may get the name of the epoch
        self._lock: int | None = None
        self._renewer: _Renewer | None = None

    # -- becoming the owner -----------------------------------------------------------------------

    def acquire(self, load: Callable[[], Found], *, wait: Callable[[], bool]) -> Found:
        """Become the owner; return the checkpoint that `load` found.

        While another instance is the owner, `wait` blocks briefly and returns whether to keep
        waiting; if not, raise `Stop`.
        """
        try:
            return self._acquire(load, wait)
        except OSError as error:
            raise Stop(
                Exit.CHECKPOINT,
                f"{self.directory} cannot hold checkpoints: {error.strerror or error}; use a "
                "writable directory on a file system with hard links and locks",
            ) from error

    def _acquire(self, load: Callable[[], Found], wait: Callable[[], bool]) -> Found:
        watch = _OwnerWatch(self.directory, self.lease_seconds)
        try:
            while True:
                owner = watch.owner()
                if owner is not None:
                    if not wait():
                        raise Stop(
                            Exit.OWNED,
                            f"{self.directory} is owned by {owner}; stop that instance first, or "
                            "set checkpoint.standby = true to wait for it",
                        )
                    continue
                before = checkpoints.valid(self.directory)
                found = load()
                if checkpoints.valid(self.directory)[:1] != before[:1]:
                    continue  # a frozen owner woke up and wrote one
                # a checkpoint may have been copied here without its epoch
                number = max([watch.newest, *(one.epoch for one in before)]) + 1
                if self._claim(number, None if found is None else found[0]):
                    return found
        finally:
            watch.close()

    def _claim(self, number: int, base: CheckpointId | None) -> bool:
        """Create the epoch; return False if another instance was faster."""
        make_directory(self.directory)
        self.models_id = self._previous_models_id() or secrets.token_hex(8)
        epoch = Epoch(number, self.instance, base, self.models_id)
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
        self._lock, self.epoch = handle, number
        self._epoch_file = os.fspath(self.directory / epoch.name)
        self._next_epoch_file = os.fspath(self.directory / epoch_name(number + 1))
        self._epoch_inode = inode(os.fstat(handle))
        self._renewer = _Renewer(self)
        self._renewer.start()
        return True

    def _previous_models_id(self) -> str:
        """Return the identity of the models from the previous epoch; "" if there is none."""
        for number in checkpoints.epochs(self.directory):
            if (before := checkpoints.read_epoch(self.directory, number)) is not None:
                return before.identity
        return ""

    # -- being the owner --------------------------------------------------------------------------

    def lost_reason(self) -> Stop | None:
        """Return why this instance lost the directory; None while it is the owner.

        Old epochs are removed oldest first, so a removed epoch implies a newer one.
        """
        # called with every poll, with prepared names: building paths takes longer than the check
        if self._epoch_exists() and not os.path.exists(self._next_epoch_file):  # noqa: PTH110
            return None
        try:
            overtaken = checkpoints.epochs(self.directory)[:1] > [self.epoch]
        except OSError:  # the file system is gone
            overtaken = False
        if not overtaken:
            return directory_gone(self.directory)
        return Fenced(
            f"epoch {self.epoch} of {self.directory} is over: another instance took over, and "
            "learns again what this one learned since its last checkpoint"
        )

    def _epoch_exists(self) -> bool:
        """Tell whether the epoch file of this instance is still in place."""
        try:
            return inode(os.stat(self._epoch_file)) == self._epoch_inode  # noqa: PTH116
        except OSError:
            return False

    def check(self) -> None:
        """Stop if this instance is no longer the owner."""
        if (stop := self.lost_reason()) is not None:
            raise stop

    def release(self) -> None:
        """Let a standby take over immediately; may be called twice."""
        if self._renewer is not None:
            self._renewer.stop()
            self._renewer = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class _Renewer(threading.Thread):
    """Renew the lease, and end a process that lost the directory without noticing."""

    def __init__(self, ownership: Ownership) -> None:
        super().__init__(name="lease", daemon=True)
        self.ownership = ownership
        self.stopped = threading.Event()

    def run(self) -> None:
        """Renew until stopped."""
        ownership = self.ownership
        path = lease_path(ownership.directory, ownership.epoch)
        count = 0
        while True:
            count += 1
            stop = ownership.lost_reason()
            if stop is not None:
                if not self.stopped.wait(GRACE_SECONDS):
                    if ownership.report is not None:
                        ownership.report(stop)
                    os._exit(stop.code)
                return
            with suppress(OSError):  # on a full disk a standby takes over, which is noticed
                write_lease(path, count)
            if self.stopped.wait(RENEW_SECONDS):
                return

    def stop(self) -> None:
        """Stop renewing."""
        self.stopped.set()
        if self is not threading.current_thread():
            self.join()


def inode(status: os.stat_result) -> tuple[int, int]:
    """Identify a file independently of its name."""
    return status.st_dev, status.st_ino


def directory_gone(directory: Path) -> Stop:
    """Build the `Stop` of an instance whose directory disappeared."""
    return Stop(
        Exit.NO_CHECKPOINT,
        f"{directory} was moved, emptied or unmounted while in use, so nothing more can be saved; "
        "restore it before the next start, which would find no checkpoint",
    )


def write_lease(path: Path, count: int) -> None:
    """Write the lease in place, which works on a full disk too."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(handle, b"%020d\n" % count, 0)
    finally:
        os.close(handle)


def lease_path(directory: Path, epoch: int) -> Path:
    """Return the path of the lease of an epoch."""
    return directory / f"{epoch_name(epoch)}.lease"


class _OwnerWatch:
    """Watch the owner from a standby."""

    def __init__(self, directory: Path, lease_seconds: float) -> None:
        self.directory = directory
        self.lease_seconds = lease_seconds
        self.newest = 0
        self._handle: int | None = None
        self._lease: bytes | None = None
        self._checked_at = 0.0
        self._idle_seconds = 0.0

    def owner(self) -> str | None:
        """Return the live owner; None if there is none."""
        epochs = checkpoints.epochs(self.directory)
        number = epochs[0] if epochs else 0
        if number < self.newest:  # the newest is never removed
            raise directory_gone(self.directory)
        if number != self.newest or self._handle is None:
            self.close()
            self.newest = number
            self._lease = None
            if number == 0:
                return None
            try:
                self._handle = os.open(self.directory / epoch_name(number), os.O_RDWR)
            except FileNotFoundError:
                return "another instance"  # a newer epoch exists by now: check again
        try:
            lock(self._handle)
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
        epoch = checkpoints.read_epoch(self.directory, self.newest)
        return "another instance" if epoch is None else epoch.owner

    def close(self) -> None:
        """Release the owner's lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
