"""Publish snapshots while the daemon learns: copied between two batches, written by a thread."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.collectors.observer import Observer
from streamlearn.features import Names
from streamlearn.serving import directory, snapshot_content

if TYPE_CHECKING:
    from pathlib import Path

    from streamlearn import config
    from streamlearn.daemon.batch import Batch
    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.daemon.process.log import Log
    from streamlearn.daemon.status import Status
    from streamlearn.features import Reader
    from streamlearn.serving.snapshot_content import Copy
    from streamlearn.stream.formats.fields import Fields


class Publisher(Observer):
    """Write snapshots of learners every `settings.every_seconds`, if there is anything new.

    The first ones are written at the start, when a standby takes over as well, and the last ones
    at the end.
    """

    def __init__(
        self,
        path: Path,
        settings: config.ServeConfig,
        fields: Fields,
        log: Log,
    ) -> None:
        self.path = path
        self.settings = settings
        self.fields = {name: value for name, value in asdict(fields).items() if value is not None}
        self.log = log
        self.epoch = 0
        self.learners: Learners | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
        self._writing: Future[None] | None = None
        self._copied_at = 0.0
        self._changed = False
        self._names = 0  # in the file of this epoch
        self._versions: dict[str, int] = {}

    @property
    def names_file(self) -> str:
        """The names of this epoch's features."""
        return f"names-{self.epoch:010}.jsonl"

    def on_start(self, learners: Learners, status: Status) -> None:
        """Publish what was loaded."""
        self.learners, self.epoch = learners, status.epoch
        self.path.mkdir(parents=True, exist_ok=True)
        for entry in directory.entries(self.path):
            if entry.epoch >= self.epoch:  # of other models: their checkpoints are gone
                self.log.warning("snapshot of other models deleted", name=entry.name)
                (self.path / entry.name).unlink(missing_ok=True)
        directory.append_names(self.path / self.names_file, [], start=True)
        self._publish(learners)

    def on_batch(self, batch: Batch) -> None:
        """Note that the models changed."""
        self._changed = (
            self._changed
            or any(result.count for result in batch.results.values())
            or bool(batch.events.learned_weights().any())  # corrections are not counted as learned
        )

    def on_tick(self, status: Status) -> None:
        """Publish if it is time."""
        if self.learners is None or status.state != "active" or not self._changed:
            return
        due = time.monotonic() - self._copied_at >= self.settings.every_seconds
        if due and (self._writing is None or self._writing.done()):
            self._publish(self.learners)

    def on_end(self) -> None:
        """Publish the last versions."""
        self._collect()
        if self.learners is not None and self._changed:
            self._publish(self.learners)
        self._pool.shutdown(wait=True)
        self._collect()

    def _publish(self, learners: Learners) -> None:
        """Copy the models, and let the thread write them."""
        self._collect()
        self._copied_at, self._changed = time.monotonic(), False
        names = new_names(learners.reader, self._names)
        served = self.settings.learners
        copies = [
            (one.name, self._version(one), snapshot_content.copy(one.model, learners.reader))
            for one in learners
            if not served or one.name in served
        ]
        self._writing = self._pool.submit(self._write, names, copies)

    def _version(self, learner: Learner) -> int:
        """Return the events learned, or more where nothing but a correction was learned since."""
        last = self._versions.get(learner.name, -1)
        self._versions[learner.name] = max(learner.learned, last + 1)
        return self._versions[learner.name]

    def _write(self, names: list[Any], copies: list[tuple[str, int, Copy]]) -> None:
        directory.append_names(self.path / self.names_file, names, start=self._names == 0)
        self._names += len(names)
        for learner, events, copy in copies:
            name = directory.SnapshotFile(self.epoch, events, learner).name
            header, content = copy.content()
            directory.write(
                self.path / name,
                {**header, "fields": self.fields},
                content,
                learner=learner,
                version=(self.epoch, events),
                names_file=self.names_file,
            )
            directory.prune(self.path, learner, self.settings.keep)

    def _collect(self) -> None:
        """Report what the thread could not write; the next snapshot is written in its place."""
        if self._writing is None:
            return
        error = self._writing.exception()
        self._writing = None
        if error is not None:
            self._changed = True
            self._restart_names()
            self.log.rate_limited("snapshot", "error", "snapshot failed", error=str(error))

    def _restart_names(self) -> None:
        """Count the names in the file, which may lack some after an error, or be gone."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with (self.path / self.names_file).open("rb+") as file:
                text = file.read()
                end = text.rfind(b"\n") + 1
                file.truncate(end)
            self._names = text.count(b"\n")
        except OSError:
            self._names = 0


def new_names(reader: Reader, start: int) -> list[Any]:
    """Return the names from the `start`-th on."""
    return reader.saved_names(start) if isinstance(reader, Names) else []
