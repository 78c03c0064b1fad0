"""The claim of one instance to a store: how it holds an epoch, and how others see that it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from streamlearn.daemon.process.exits import Exit, Fenced, Stop
from streamlearn.errors import StoreError

if TYPE_CHECKING:
    from streamlearn.estimators.checkpoints import Epoch
    from streamlearn.storage import Store


class UnconfirmedError(StoreError):
    """Whether this instance is still the owner is not known: the store does not answer."""


class Claim(ABC):
    """A claim to the epochs of a store.

    The claim first watches the epoch of the current owner, then creates the next one and holds it.
    """

    newest = 0  # the epoch that is watched, 0 if there is none
    epoch = 0  # the epoch that is held, 0 if there is none yet
    certain = True  # whether a holder is known to be alive; otherwise watch it for some time
    renew_seconds: float

    # -- of others --------------------------------------------------------------------------------

    @abstractmethod
    def holder(self) -> str | None:
        """Return who holds the newest epoch; None if nobody does any more, or there is none."""

    @abstractmethod
    def stop_watching(self) -> None:
        """Forget the watched epoch."""

    # -- of this instance -------------------------------------------------------------------------

    @abstractmethod
    def create(self, epoch: Epoch) -> bool:
        """Create an epoch and hold it; return False if another instance was faster."""

    @abstractmethod
    def lost_reason(self) -> Stop | None:
        """Return why the epoch is no longer held; None while it is.

        Called with every poll, so this must be fast. Raise `UnconfirmedError` if it is not known.
        """

    @abstractmethod
    def renew(self) -> None:
        """Show that this instance is alive."""

    def confirm(self) -> None:
        """Make sure, after a write, that the epoch was still held when the write was complete."""
        if (stop := self.lost_reason()) is not None:
            raise stop

    @abstractmethod
    def release(self) -> None:
        """Let another instance take over immediately; may be called twice."""


def fenced(store: Store, epoch: int) -> Fenced:
    """Build the `Stop` of an instance that another one replaced."""
    return Fenced(
        f"epoch {epoch} of {store} is over: another instance took over, and "
        "learns again what this one learned since its last checkpoint"
    )


def store_gone(store: Store) -> Stop:
    """Build the `Stop` of an instance whose store disappeared."""
    return Stop(
        Exit.NO_CHECKPOINT,
        f"{store} was moved, emptied or unmounted while in use, so nothing more can be saved; "
        "restore it before the next start, which would find no checkpoint",
    )
