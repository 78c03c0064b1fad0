"""Save what the demo learned, and events to use it on, with the commands that do."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn.cli import saved_models
from streamlearn.stream.sources.synthetic import write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.cli.saved_models import Model
    from streamlearn.config import Config
    from streamlearn.stream import Clicks

SAMPLE = 10_000  # events
MODEL_FILE, EVENTS_FILE = "clicks.model", "clicks.jsonl"
COMMANDS = f"""\
  cd {{place}}
  streamlearn test {MODEL_FILE} {EVENTS_FILE} --report report.html
  streamlearn predict {MODEL_FILE} {EVENTS_FILE} --probability
  streamlearn inspect {MODEL_FILE}
  streamlearn train {EVENTS_FILE} --label clicked --holdout last:20%
"""
WITHOUT = """\
  streamlearn train --help
  streamlearn run --help
"""


class DemoFiles:
    """The directory that a model and a sample of events are written to."""

    def __init__(self, settings: Config, directory: str | None, command: Sequence[str]) -> None:
        self.settings = settings
        self.directory = directory  # None: nothing is saved
        self.command = command
        self.error: str | None = None  # why nothing was saved

    def save(self, model: Model, decoder: dict[str, Any], stream: Clicks, seen: int) -> bool:
        """Write the model and the events after those it has seen; False if that is impossible."""
        if self.directory is None:
            return False
        place = Path(self.directory)
        try:
            place.mkdir(parents=True, exist_ok=True)
            notes = saved_models.origin(self.settings, self.command, decoder)
            model.save(place / MODEL_FILE, notes=notes)
            write(place / EVENTS_FILE, stream, SAMPLE, start=seen)
        except OSError as error:
            self.error = str(error)
            return False
        return True

    def text(self, name: str, *, is_saved: bool) -> str:
        """Return what was saved, and what to do next."""
        if is_saved:
            place = shlex.quote(str(self.directory))
            return (
                f"Saved in {self.directory}: {MODEL_FILE}, which is {name}, and {EVENTS_FILE}, "
                f"{SAMPLE:,} events that follow.\nTry next:\n{COMMANDS.format(place=place)}"
            )
        why = "" if self.error is None else f"Nothing was saved ({self.error}); use --save DIR. "
        return f"{why}Try next, with files or a Kafka of your own:\n{WITHOUT}"
