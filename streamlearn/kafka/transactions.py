"""The transactions of one owner's output: brokers refuse those of the owner before it.

All owners of a checkpoint use the same transactional id. A new one that initializes it ends the
transaction that was open, unseen by readers of committed records, and from then on brokers refuse
what the one before still sends: also a frozen process that wakes up with full buffers.

A thread commits, some times a second, for a commit waits for the broker. Whoever sends waits
meanwhile.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from streamlearn.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMIT_SECONDS = 0.25  # for which records wait at most until their transaction is committed
INIT_SECONDS = 20.0
LONGEST_SECONDS = 900.0  # Kafka's transaction.max.timeout.ms, where nothing else is configured


class Fencing(NamedTuple):
    """What an owner's transactions are called, and after which silence the broker ends one."""

    role: str
    seconds: float

    def id(self, client_id: str, identity: str) -> str:
        """Return the transactional id; access is granted to the prefix `client_id-`."""
        return f"{client_id}-{identity}-{self.role}"

    @property
    def timeout_ms(self) -> int:
        """For how long a transaction may be open."""
        return int(1000 * min(self.seconds, LONGEST_SECONDS))


class Transactions:
    """Transactions of one producer, one after another.

    Parameters
    ----------
    begin, commit, abort
        Of the producer. `commit` may wait for a broker that is away until its argument is set, and
        raises a `SinkError` if the transaction is lost.
    """

    def __init__(
        self,
        begin: Callable[[], None],
        commit: Callable[[threading.Event], None],
        abort: Callable[[], None],
    ) -> None:
        self._begin = begin
        self._commit = commit
        self._abort = abort
        self._open = self._ending = self._wanted = False
        self._sending = 0  # threads that are handing over records
        self._begun = 0.0
        self._error: SinkError | None = None
        self._closed = threading.Event()
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="kafka-commit", daemon=True)
        self._thread.start()

    @contextmanager
    def sending(self, seconds: float) -> Iterator[bool]:
        """Send records in a transaction; False if the one before is being committed so long."""
        with self._change:
            ready = self._change.wait_for(lambda: self._error or not self._ending, seconds)
            self._check()
            if ready:
                if not self._open:
                    self._begin()
                    self._open, self._begun = True, time.monotonic()
                    self._change.notify_all()
                self._sending += 1
        try:
            yield bool(ready)
        finally:
            if ready:
                with self._change:
                    self._sending -= 1
                    self._change.notify_all()

    def commit(self, seconds: float) -> bool:
        """Commit what was sent before; False if that takes longer."""
        self.hurry()
        with self._change:
            done = self._change.wait_for(lambda: self._error or not self._wanted, seconds)
            self._check()
        return bool(done)

    def hurry(self) -> None:
        """Have the open transaction committed as soon as nobody is sending."""
        with self._change:
            self._wanted = self._open
            self._change.notify_all()

    def close(self) -> None:
        """Abort what was not committed: whoever resumes from the checkpoint sends it again."""
        self._closed.set()
        with self._change:
            self._change.notify_all()
        self._thread.join(1.0)
        if self._open and not self._ending and self._error is None:
            self._abort()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while self._await_due():
            try:
                self._commit(self._closed)
            except SinkError as error:
                self._end(error)
                return
            except Exception as error:  # noqa: BLE001 -- a thread's error is the sender's
                self._end(SinkError(f"a transaction was not committed: {error!r}"))
                return
            self._end(None)

    def _await_due(self) -> bool:
        """Wait until a transaction is to be committed, and nobody is sending; False: no more."""
        with self._change:
            while not self._closed.is_set():
                left = self._begun + COMMIT_SECONDS - time.monotonic()
                if self._open and (self._wanted or left <= 0.0):
                    self._ending = True
                    self._change.wait_for(lambda: not self._sending)
                    return True
                self._change.wait(left if self._open else None)
        return False

    def _end(self, error: SinkError | None) -> None:
        with self._change:
            self._open = self._wanted = self._ending = False
            self._error = error
            self._change.notify_all()
