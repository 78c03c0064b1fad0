"""Follow a directory of snapshots: the newest one of each learner, and what is promoted."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from streamlearn.errors import ModelFileError
from streamlearn.serving import arrays, directory, promotions
from streamlearn.serving.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from streamlearn.serving.directory import SnapshotFile

LOG = logging.getLogger("streamlearn.serve")


class Follower:
    """The newest snapshots of a directory by learner."""

    def __init__(self, path: Path, learners: Collection[str] = ()) -> None:
        self.path = path
        self.learners = learners
        self.snapshots: dict[str, Snapshot] = {}
        self.promoted: str | None = None  # the learner that serves everybody
        self._entries: dict[str, SnapshotFile] = {}
        self._failed: set[SnapshotFile] = set()
        self._damage = ""  # of the promotions, if any

    def newer(self) -> list[SnapshotFile]:
        """Return the newest snapshots of the directory that are not in use."""
        newest: dict[str, SnapshotFile] = {}
        for entry in directory.entries(self.path):
            wanted = not self.learners or entry.learner in self.learners
            if wanted and entry not in self._failed:
                newest.setdefault(entry.learner, entry)
        return [entry for name, entry in newest.items() if entry != self._entries.get(name)]

    async def update(self) -> None:
        """Exchange the snapshots for newer ones; files are read in a thread, ahead of use."""
        await self._read_promotions()
        for entry in await asyncio.to_thread(self.newer):
            path = self.path / entry.name
            try:
                content = await asyncio.to_thread(arrays.read, path)
                self.use(entry, Snapshot(path, before=self.before(entry), content=content))
            except FileNotFoundError:
                continue  # replaced by a newer one
            except ModelFileError as error:
                self._failed.add(entry)
                LOG.error("snapshot refused: %s", error)  # noqa: TRY400 - it names the file

    async def _read_promotions(self) -> None:
        """Read what is promoted; a damaged file changes nothing, and is reported once."""
        try:
            changes = await asyncio.to_thread(promotions.history, self.path)
        except ModelFileError as error:
            if str(error) != self._damage:
                LOG.error("promotions ignored: %s", error)  # noqa: TRY400 - it names the file
            self._damage = str(error)
        else:
            self.promoted, self._damage = promotions.current(changes), ""

    def before(self, entry: SnapshotFile) -> Snapshot | None:
        """Return the snapshot whose names a new one may share: its own, or another learner's."""
        own = self.snapshots.get(entry.learner)
        return own or next(iter(self.snapshots.values()), None)

    def use(self, entry: SnapshotFile, snapshot: Snapshot) -> None:
        """Serve a snapshot from the next request on."""
        self.snapshots[entry.learner] = snapshot
        self._entries[entry.learner] = entry

    async def follow(self, seconds: float) -> None:
        """Update for ever."""
        while True:
            try:
                await self.update()
            except Exception:
                LOG.exception("following %s failed", self.path)
            await asyncio.sleep(seconds)
