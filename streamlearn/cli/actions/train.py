"""Train a model on files, and print its progressive loss at growing intervals.

The loss of an event is measured before the event is learned, so the mean is that of predictions on
unseen events: progressive validation. Later passes print the loss of events learned before.
"""

from __future__ import annotations

import shlex
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

import streamlearn
from streamlearn import config
from streamlearn.cli import saved
from streamlearn.cli.parsing import INTERRUPTED
from streamlearn.cli.passes import Pass, no_labels, regression_hint, require_learned
from streamlearn.cli.progress import Bar
from streamlearn.cli.progressive import ProgressiveCurve
from streamlearn.cli.tables import show_facts, show_json
from streamlearn.config import arguments, plan
from streamlearn.config.files import require_writable
from streamlearn.daemon import build
from streamlearn.daemon.label_monitor import UNLABELED_RUN
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.stream import CSVDecoder

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options
    from streamlearn.cli.progressive import Point
    from streamlearn.cli.saved import Model
    from streamlearn.core.arrays import Array
    from streamlearn.engine.events import Events

MAX_COLUMNS = 20  # of a table, in the summary
COLUMNS = "{:>10} {:>10} {:>10} {:>12} {:>10} {:>10} {:>8}"  # 76 wide, for a terminal of 80
HEADER = (
    COLUMNS.format("average", "since", "events", "events", "label", "predicted", "features"),
    COLUMNS.format("loss", "last", "learned", "weight", "", "", ""),
)


def run(options: Options) -> int:
    """Train, and print the summary."""
    model, settings, notes = prepared(options)
    decoder = build.decoder(settings, model.reader, [model])
    saved.recall(decoder, notes)
    trainer = Trainer(model, options)
    interrupted = False
    with Bar("pass 1", quiet=options.json) as bar:
        try:
            for number in range(options.passes):
                source = build.source(settings.source, settings.format)
                trainer.begin(number, bar)
                batches = Pass(
                    source, decoder, skip=options.on_invalid == "skip", on_batch=bar.update
                )
                try:
                    trainer.run(batches)
                finally:
                    batches.close()
        except KeyboardInterrupt:
            interrupted = True
        facts = trainer.facts()
    for line in trainer.invalid:
        sys.stderr.write(f"invalid: {line}\n")
    if not interrupted:
        require_learned(settings, facts["events"], facts["learned"], decoder, options)
        if options.positive and not trainer.positive:
            positives = " or ".join(map(repr, options.positive))
            warn(f"no label is {positives} (--positive): all events were learned as negative")
    if isinstance(decoder, CSVDecoder):
        facts["columns"] = columns(decoder.types, whole=options.json)
    if options.save is not None:
        model.save(options.save, notes=made(settings, trainer, decoder.state(), notes))
        facts["saved"] = options.save
    if options.json:
        show_json({**facts, "history": trainer.history})
    else:
        show_facts(facts, before="\n")
    if interrupted:
        sys.stderr.write("streamlearn train: interrupted; these are the results so far\n")
    return INTERRUPTED if interrupted else 0


def columns(types: dict[str, str], *, whole: bool) -> dict[str, str]:
    """Return the inferred types of columns, not all of them unless `whole`."""
    if whole or len(types) <= MAX_COLUMNS:
        return types
    some = dict(list(types.items())[:MAX_COLUMNS])
    return {**some, "more": f"{len(types) - MAX_COLUMNS:,}"}


def prepared(options: Options) -> tuple[Model, config.Config, dict[str, Any]]:
    """Return the model to train, new or saved, its settings and its notes."""
    if options.passes > 1 and "-" in options.files:
        raise ValueError("standard input can be read only once; use --passes 1, or files")
    if options.save is not None:
        require_writable(options.save, "--save", options.files)
    table = arguments.learner_table(options)
    if options.resume is None:
        settings = arguments.settings(options, [table])
        (model,) = config.estimators(settings).values()
        return model, settings, {}
    if extra := arguments.model_options(options):
        raise ValueError(f"{extra[0]} cannot be used with --resume: the model keeps its own")
    model, notes = saved.load(options.resume)
    return model, arguments.settings(options, [], notes.get("format")), notes


def made(
    settings: config.Config, trainer: Trainer, decoder: dict[str, Any], notes: dict[str, Any]
) -> dict[str, Any]:
    """Return the notes saved with the model: its origin, and how to read such events."""
    command = shlex.join(["streamlearn", *trainer.options.command_line])
    return {
        "made by": f"{command} (streamlearn {streamlearn.__version__})",
        "made at": datetime.now(UTC).isoformat(" ", "seconds"),
        "format": {f"format.{key}": item for key, item in plan.plain(settings.format).items()},
        "history": notes.get("history", []) + trainer.history,
        "decoder": decoder,
    }


class Trainer:
    """Trains a model batch by batch, and keeps its losses."""

    def __init__(self, model: Model, options: Options) -> None:
        self.model = model
        self.options = options
        self.history: list[dict[str, Any]] = []  # points of the first pass
        self.invalid: list[str] = []  # examples
        self.curves: list[ProgressiveCurve] = []
        self.batches: list[Pass] = []
        self.others = {name: ProgressiveCurve() for name in model.score_measures if name != "loss"}
        self.bar: Bar | None = None
        self.seconds = 0.0
        self.positive = 0  # events of the first pass whose label is True or 1
        self.warned = False  # about events without labels

    def begin(self, number: int, bar: Bar) -> None:
        """Start a pass."""
        self.bar = bar
        self.curves.append(ProgressiveCurve(self.options.progress))
        bar.restart(f"pass {number + 1} of {self.options.passes}")
        if number > 0 and not self.options.json:
            bar.print(f"pass {number + 1}: the loss is now that of events learned before")

    def run(self, batches: Pass) -> None:
        """Run one pass."""
        self.batches.append(batches)
        first, options = len(self.curves) == 1, self.options
        curve = self.curves[-1]
        begun = time.perf_counter()
        try:
            for events in batches:
                if first and not curve.events and isinstance(self.model, LinearClassifier):
                    warn(regression_hint(events))
                if first and options.positive:
                    self.positive += int(np.count_nonzero(events.labels == 1.0))
                wanted = ("loss", *self.others) if first else ("loss",)
                measures = {name: np.empty(len(events)) for name in wanted}
                known = np.empty(len(events)) if self.model.learns == "classes" else None
                given = measures if known is None else {**measures, "known": known}
                scores = self.model.progressive_events(events, given)
                for point in curve.add(measures["loss"], events.weights):
                    self.report(point, events, scores, known)
                if (
                    first
                    and not curve.events
                    and not self.warned
                    and batches.events >= UNLABELED_RUN
                ):
                    self.warned = True
                    warn(no_labels(batches.decoder, batches.events, options))
                for name in wanted[1:]:
                    for _ in self.others[name].add(measures[name], events.weights):
                        pass
        finally:
            self.seconds += time.perf_counter() - begun
            self.invalid += batches.examples
            end = curve.end()
            if first and (not self.history or end.events > self.history[-1]["events"]):
                self.history.append(row(end))

    def report(self, point: Point, events: Events, scores: Array, known: Array | None) -> None:
        """Keep a point, and print its line."""
        first = not self.history
        if len(self.curves) == 1:
            self.history.append(row(point))
        if self.options.json or self.bar is None:
            return
        for line in HEADER if first else ():
            self.bar.print(line)
        i = point.row
        (predicted,) = self.model.predictions(
            scores[i : i + 1], None if known is None else known[i : i + 1]
        )
        length = int(events.starts[i + 1] - events.starts[i])
        self.bar.print(
            COLUMNS.format(
                f"{point.loss:.6f}",
                f"{point.since:.6f}",
                point.events,
                f"{point.weight:.1f}",
                clipped(events.label_of(i)),
                clipped(predicted),
                length,
            )
        )

    def facts(self) -> dict[str, Any]:
        """Return the summary."""
        first = self.curves[0].end()
        batches = self.batches[0]
        total = sum(one.events for one in self.batches)
        found: dict[str, Any] = {
            "events": batches.events,
            "learned": first.events,
            "invalid": batches.invalid,
            "loss": first.loss,
            **{name.replace("_", " "): curve.end().loss for name, curve in self.others.items()},
        }
        if len(self.curves) > 1:
            found["loss of the last pass"] = self.curves[-1].end().loss
        found |= {
            "non-zeros": self.model.nonzero,
            "seconds": self.seconds,
            "events/s": round(total / self.seconds) if self.seconds else None,
        }
        return found


def row(point: Point) -> dict[str, Any]:
    """Return a point as it is printed and saved."""
    return {"events": point.events, "loss": point.loss, "since last": point.since}


def warn(message: str | None) -> None:
    """Print a warning, if any."""
    if message is not None:
        sys.stderr.write(f"streamlearn train: {message}\n")
        sys.stderr.flush()


def clipped(value: Any) -> str:
    """Return a label or a prediction, cut to its column."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = "".join(sign if sign.isprintable() else "\ufffd" for sign in text)
    return text if len(text) <= 10 else text[:8] + ".."
