"""How records become rows to be predicted and learnt: at once, or when their labels come.

The seam between the daemon and late labels. `At once` is the way of events that bring their labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamlearn.engine.events import Events

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.daemon.learners import Learner
    from streamlearn.daemon.observer import Bad
    from streamlearn.frames import Array
    from streamlearn.stream import Decoder, Records
    from streamlearn.stream.polled import Polled


class Reading(Protocol):
    """Records in, rows out; what it remembers is in the checkpoint."""

    late: bool  # whether labels come later
    decoder: Decoder  # of the events

    def read(self, polled: Polled) -> list[Bad]:
        """Read a batch, of which `rows` are what there is to do; what could not be read."""

    @property
    def rows(self) -> Events:
        """The rows of the last batch."""

    @property
    def predicted(self) -> Array:
        """Which of them were predicted, for the first time."""

    @property
    def learnt(self) -> Array:
        """The weight with which each of them is learnt and measured; 0: not."""

    def orphans(self) -> list[tuple[Records, str]]:
        """Records that have waited in vain, and the reason."""

    def begin(self, learners: Sequence[Learner]) -> None:
        """These learners learn the rows."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""


class AtOnce:
    """Events that bring their own labels."""

    late = False

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.rows = Events()

    def read(self, polled: Polled) -> list[Bad]:
        """Decode them."""
        self.rows.clear()
        self.decoder.decode(polled.values, self.rows, polled.order)
        return self.rows.bad

    @property
    def predicted(self) -> Array:
        """All of them."""
        return np.ones(len(self.rows), dtype=bool)

    @property
    def learnt(self) -> Array:
        """Those with a label."""
        return self.rows.learnt_weights()

    def orphans(self) -> list[tuple[Records, str]]:
        """None."""
        return []

    def begin(self, learners: Sequence[Learner]) -> None:
        """Nothing to prepare."""

    def state(self) -> dict[str, Any]:
        """The labels met."""
        return {"decoder": self.decoder.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.decoder.restore(state["decoder"])
