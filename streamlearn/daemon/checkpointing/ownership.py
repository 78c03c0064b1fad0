"""Who owns the models of a checkpoint directory: one daemon at a time, proved by epochs.

An epoch is a file that only one can create (a hard link that must not exist yet). Its owner holds
the file's lock for as long as it lives, and renews a lease beside it:

- the lock is free: the owner is dead, and a standby takes over at once;
- the lock is held, but the lease has not changed for `lease_seconds` by the standby's own clock:
  the owner is frozen, and a standby takes over all the same.

To take over is to create epoch N+1, which names the checkpoint that it goes on from. The owner of
epoch N looks for it before each publish, rename and commit. What it renames too late counts for
nothing (streamlearn.estimators.checkpoints), so a frozen owner that wakes up does no harm.

A directory that is moved away, emptied or unmounted takes the owner's epoch with it: the owner ends
as well, with a reason of its own, instead of writing into what is there now.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.checkpointing.durable import PART, make_directory
from streamlearn.daemon.process.exits import Exit, Fenced, Stop
from streamlearn.daemon.process.faults import fault_point
from streamlearn.estimators import checkpoints
from streamlearn.estimators.checkpoints import Epoch, Place, epoch_name
from streamlearn.estimators.model_file import fsync_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Found = tuple[Place, dict[str, Any]] | None

RENEW_SECONDS = 0.25
MAX_CHECK_SECONDS = 0.5  # what one look at an unchanged lease counts at most
GRACE_SECONDS = 0.5  # for the loop to notice by itself that it was overtaken


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
        self.models_id = ""  # what all owners of this directory have in common
        self._epoch_file = self._next_epoch_file = ""  # the files of this epoch and the next
        self._epoch_inode = (0, 0)  # of the first: another file may come to have its name
        self._lock: int | None = None
        self._renewer: _Renewer | None = None

    # -- becoming the owner -----------------------------------------------------------------------

    def acquire(self, load: Callable[[], Found], *, wait: Callable[[], bool]) -> Found:
        """Become the owner; what `load` found to go on from.

        While another is the owner, `wait` is asked whether to go on waiting (and takes its time);
        when it says no, `Stop` is raised.
        """
        try:
            return self._acquire(load, wait)
        except OSError as error:
            raise Stop(
                Exit.CHECKPOINT,
                f"{self.directory} cannot hold checkpoints: {error.strerror or error}; it must be "
                "a writable directory of a file system that has hard links and locks",
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
                            f"{self.directory} belongs to {owner}; stop that one first (a daemon "
                            "with checkpoint.standby = true would wait for it)",
                        )
                    continue
                before = checkpoints.valid(self.directory)
                found = load()
                if checkpoints.valid(self.directory)[:1] != before[:1]:
                    continue  # a frozen owner woke up and wrote another
                # a checkpoint may have been put here without its epoch
                later = max([watch.newest, *(one.epoch for one in before)]) + 1
                if self._claim(later, None if found is None else found[0]):
                    return found
        finally:
            watch.close()

    def _claim(self, number: int, base: Place | None) -> bool:
        """Create the epoch; False if another was faster."""
        make_directory(self.directory)
        self.models_id = self._previous_models_id() or secrets.token_hex(8)
        epoch = Epoch(number, self.instance, base, self.models_id)
        temporary = self.directory / f".{epoch.name}.{secrets.token_hex(8)}{PART}"
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(handle, epoch.packed())
            os.fsync(handle)
            fault_point("claim")
            os.link(temporary, self.directory / epoch.name)
        except (FileExistsError, FileNotFoundError):  # created, and even tidied up, by another
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
        self._epoch_inode = identity(os.fstat(handle))
        self._renewer = _Renewer(self)
        self._renewer.start()
        return True

    def _previous_models_id(self) -> str:
        """The identity that the epoch before had; "" if there is none."""
        for number in checkpoints.epochs(self.directory):
            if (before := checkpoints.read_epoch(self.directory, number)) is not None:
                return before.identity
        return ""

    # -- being the owner --------------------------------------------------------------------------

    def lost_reason(self) -> Stop | None:
        """Why the models are no longer this instance's; None: they are.

        Old epochs are removed in their order, the oldest first.
        """
        # looked at with every poll, by ready names: to build paths takes longer than to look
        if self._epoch_exists() and not os.path.exists(self._next_epoch_file):  # noqa: PTH110
            return None
        try:
            overtaken = checkpoints.epochs(self.directory)[:1] > [self.epoch]
        except OSError:  # a file system that is gone
            overtaken = False
        if not overtaken:
            return directory_gone(self.directory)
        return Fenced(
            f"epoch {self.epoch} of {self.directory} is over: another instance took over and "
            "learns by itself what this one has learned since"
        )

    def _epoch_exists(self) -> bool:
        """Whether the epoch that this instance created still has its name."""
        try:
            return identity(os.stat(self._epoch_file)) == self._epoch_inode  # noqa: PTH116
        except OSError:
            return False

    def check(self) -> None:
        """Stop if the models are no longer this instance's."""
        if (stop := self.lost_reason()) is not None:
            raise stop

    def release(self) -> None:
        """Let a standby take over at once; may be called twice."""
        if self._renewer is not None:
            self._renewer.end()
            self._renewer = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class _Renewer(threading.Thread):
    """Renews the lease, and ends a process that lost the models and does not notice."""

    def __init__(self, ownership: Ownership) -> None:
        super().__init__(name="lease", daemon=True)
        self.ownership = ownership
        self.lost_reason = threading.Event()

    def run(self) -> None:
        """Renew until the end."""
        ownership = self.ownership
        path = lease_path(ownership.directory, ownership.epoch)
        count = 0
        while True:
            count += 1
            stop = ownership.lost_reason()
            if stop is not None:
                if not self.lost_reason.wait(GRACE_SECONDS):
                    if ownership.report is not None:
                        ownership.report(stop)
                    os._exit(stop.code)
                return
            with suppress(OSError):  # a full disk: whoever takes over for it will be noticed
                write_lease(path, count)
            if self.lost_reason.wait(RENEW_SECONDS):
                return

    def end(self) -> None:
        """No more renewals."""
        self.lost_reason.set()
        if self is not threading.current_thread():
            self.join()


def identity(status: os.stat_result) -> tuple[int, int]:
    """Which file this is, whatever its name."""
    return status.st_dev, status.st_ino


def directory_gone(directory: Path) -> Stop:
    """What ends an instance whose directory is another now."""
    return Stop(
        Exit.NO_CHECKPOINT,
        f"{directory} was moved away, emptied or unmounted while it was in use, so nothing more "
        "can be saved; put it back before the next start, which would find no checkpoint",
    )


def write_lease(path: Path, count: int) -> None:
    """Write the lease in place: a disk that is full has room for what is there already."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(handle, b"%020d\n" % count, 0)
    finally:
        os.close(handle)


def lease_path(directory: Path, epoch: int) -> Path:
    """Where the owner of an epoch shows that it lives."""
    return directory / f"{epoch_name(epoch)}.lease"


class _OwnerWatch:
    """A standby's view of the owner."""

    def __init__(self, directory: Path, lease_seconds: float) -> None:
        self.directory = directory
        self.lease_seconds = lease_seconds
        self.newest = 0
        self._handle: int | None = None
        self._lease: bytes | None = None
        self._checked_at = 0.0
        self._idle_seconds = 0.0

    def owner(self) -> str | None:
        """Who owns the models; None: nobody that is alive."""
        there = checkpoints.epochs(self.directory)
        number = there[0] if there else 0
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
                return "another instance"  # and a newer one by now: look again
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._lock_holder()
        return None  # and we hold its lock until we have claimed the next epoch

    def _lock_holder(self) -> str | None:
        """The owner that holds the lock, unless it has not renewed its lease for too long."""
        now = time.monotonic()
        try:
            lease = lease_path(self.directory, self.newest).read_bytes()
        except FileNotFoundError:
            lease = b""
        if lease != self._lease:
            self._lease, self._idle_seconds = lease, 0.0
        else:
            # a standby that was frozen itself has not seen the owner silent all the while
            self._idle_seconds += min(now - self._checked_at, MAX_CHECK_SECONDS)
        self._checked_at = now
        if self._idle_seconds > self.lease_seconds:
            return None
        epoch = checkpoints.read_epoch(self.directory, self.newest)
        return "another instance" if epoch is None else epoch.owner

    def close(self) -> None:
        """Let go of the owner's lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
