"""Transactions of an owner's output, which fence earlier owners.

All owners of a checkpoint use the same transactional id. When a new owner initializes it, the
brokers abort the open transaction and from then on reject what earlier owners send, such as a
frozen process that wakes up with full buffers.

A thread commits a few times a second, because a commit blocks on the broker. Senders wait
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

COMMIT_SECONDS = 0.25  # maximum age of a transaction until it is committed
INIT_SECONDS = 20.0
LONGEST_SECONDS = 900.0  # Kafka's default transaction.max.timeout.ms


class Fencing(NamedTuple):
    """The name of an owner's transactions, and the silence after which brokers abort one."""

    role: str
    seconds: float

    def id(self, client_id: str, identity: str) -> str:
        """Return the transactional id, which begins with `client_id-` for access rules."""
        return f"{client_id}-{identity}-{self.role}"

    @property
    def timeout_ms(self) -> int:
        """Maximum time that a transaction may be open."""
        return int(1000 * min(self.seconds, LONGEST_SECONDS))


class Transactions:
    """Transactions of one producer, one after another.

    Parameters
    ----------
    begin, commit, abort
        Of the producer. `commit` may wait for an unreachable broker until its argument is set, and
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
        self._sending = 0  # threads that are sending records
        self._begun = 0.0
        self._error: SinkError | None = None
        self._closed = threading.Event()
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="kafka-commit", daemon=True)
        self._thread.start()

    @contextmanager
    def sending(self, seconds: float) -> Iterator[bool]:
        """Send records in a transaction; False if committing the previous one takes longer."""
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
        """Commit the open transaction; False if this takes longer."""
        self.hurry()
        with self._change:
            done = self._change.wait_for(lambda: self._error or not self._wanted, seconds)
            self._check()
        return bool(done)

    def hurry(self) -> None:
        """Request a commit of the open transaction as soon as nobody is sending."""
        with self._change:
            self._wanted = self._open
            self._change.notify_all()

    def close(self) -> None:
        """Abort the open transaction: whoever resumes from the checkpoint sends it again."""
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
        """Wait until a commit is due and nobody is sending; False if closed."""
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
