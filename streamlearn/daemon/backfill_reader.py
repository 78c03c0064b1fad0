"""Read events of history and of the stream that follows it, each in its own format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.daemon.event_reader import EventReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.core.invalid_record import InvalidRecord
    from streamlearn.stream import Decoder
    from streamlearn.stream.polled import Polled
    from streamlearn.stream.sources.backfill import Backfill


class BackfillReader(EventReader):
    """Read the events before the cut from history, and the others from the stream.

    Both number labels alike, so that they are the same stream to the learners.
    """

    def __init__(self, source: Backfill, history: Decoder, stream: Decoder, cut: float) -> None:
        super().__init__(stream)
        self.source = source
        self.history = history
        self.stream = stream
        history.use_window(before=cut)
        stream.use_window(earliest=cut)
        history.share_labels(stream)

    @property
    def publishes(self) -> bool:
        """Whether predictions of the last batch are published: those of history come too late."""
        return self.decoder is self.stream

    def read(self, polled: Polled) -> list[InvalidRecord]:
        """Read a batch into `rows`; return the invalid records."""
        self.decoder = self.history if self.source.in_history else self.stream
        return super().read(polled)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"decoder": self.stream.state(), "history": self.history.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""
        super().restore(state)
        if "history" in state:  # otherwise the source refuses to be opened
            self.history.restore(state["history"])
        self.history.share_labels(self.stream)
