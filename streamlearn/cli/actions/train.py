"""Train a model on files, and print its progressive loss at growing intervals.

The loss of an event is measured before the event is learned, so the mean is that of predictions on
unseen events: progressive validation. Later passes print the loss of events learned before.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from streamlearn import config
from streamlearn.cli import saved_models, waiting
from streamlearn.cli.decoded_batches import (
    Pass,
    no_labels,
    regression_hint,
    report_absent,
    report_positive,
    require_labels,
    spelling_hint,
)
from streamlearn.cli.guessing import Guesses, understand, with_delimiter
from streamlearn.cli.holdout import tested, training_records
from streamlearn.cli.parsing import INTERRUPTED
from streamlearn.cli.progress import Bar
from streamlearn.cli.progressive import ProgressiveCurve
from streamlearn.cli.seen_fields import report_declared
from streamlearn.cli.tables import show_facts, show_json
from streamlearn.config import arguments
from streamlearn.config.files import require_writable
from streamlearn.daemon import build
from streamlearn.daemon.label_monitor import UNLABELED_RUN
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.guesses import ROWS
from streamlearn.quality import RegressorQuality, quality_of
from streamlearn.stream import CSVDecoder
from streamlearn.stream.sources.parts import SourcePart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.cli.parsing import Options
    from streamlearn.cli.progressive import CurvePoint
    from streamlearn.cli.saved_models import Model
    from streamlearn.engine.events import Events
    from streamlearn.estimators.scored_events import ScoredEvents
    from streamlearn.stream import Decoder, Source

FAR = 200.0  # standard deviations of the labels: from there on their differences come late
MAX_COLUMNS = 20  # of a table, in the summary
COLUMNS = "{:>10} {:>10} {:>10} {:>12} {:>10} {:>10} {:>8}"  # 76 wide, for a terminal of 80
HEADER = (
    COLUMNS.format("average", "since", "events", "events", "label", "predicted", "features"),
    COLUMNS.format("loss", "last", "learned", "weight", "", "", ""),
)


def run(options: Options) -> int:
    """Train, and print the summary."""
    waiting.announce(options)
    training = prepared(options)
    model, settings = training.model, training.settings
    decoder = build.decoder(settings, model.reader, [model])
    saved_models.recall(decoder, training.notes)
    trainer = Trainer(model, options)
    interrupted = False
    with Bar("pass 1", quiet=options.json) as bar:
        try:
            for number in range(options.passes):
                trainer.begin(number, bar)
                batches = Pass(
                    training.source(number),
                    decoder,
                    skip=options.on_invalid == "skip",
                    on_batch=bar.update,
                    on_first=partial(training.guesses.show, bar) if number == 0 else None,
                )
                try:
                    trainer.run(batches)
                finally:
                    batches.close()
                if training.first.interrupted:
                    raise KeyboardInterrupt  # noqa: TRY301 - which was held back until here
        except KeyboardInterrupt:
            interrupted = True
        facts = trainer.facts()
        for line in trainer.invalid:
            sys.stderr.write(f"invalid: {line}\n")
        if not interrupted:
            require_labels(settings, facts["events"], facts["learned"], decoder, options)
        if options.save is not None and (trainer.learned or not interrupted):
            model.save(options.save, notes=made(training, trainer, decoder.state()))
            facts["saved"] = options.save
        held_out = None
        if training.stop is not None and not interrupted:
            held_out = tested(model, settings, training.stop, decoder.state(), options, bar)
    report(training, trainer, decoder, facts, held_out)
    if interrupted:
        what = "these are the results so far" if trainer.learned else "nothing was learned"
        sys.stderr.write(f"streamlearn train: interrupted; {what}\n")
    return INTERRUPTED if interrupted else 0


def report(
    training: Training,
    trainer: Trainer,
    decoder: Decoder,
    facts: dict[str, Any],
    held_out: dict[str, Any] | None,
) -> None:
    """Print the summary, and what may be wrong."""
    options, guesses = trainer.options, training.guesses
    for line in guesses.contradictions(trainer.dropped):
        warn(line)
    report_absent("train", trainer.batches[0].absent, options)
    report_declared("train", trainer.model.reader, options)
    for hint in hints(trainer):
        warn(hint)
    if trainer.learned:
        report_positive("train", training.settings, decoder.labels.positive_seen)
    if isinstance(decoder, CSVDecoder) and not guesses.fields:
        facts["columns"] = columns(decoder.types, whole=options.json)
    if options.json:
        more = {"holdout": held_out} if held_out is not None else {}
        fields = {"fields": guesses.facts()} if guesses else {}
        show_json({**facts, **more, **fields, "history": trainer.history})
        return
    show_facts(facts, before="\n")
    if held_out is not None:
        sys.stdout.write("\nheld out, with the model as it is now\n")
        show_facts(held_out)


def offset_hint(mean: float, spread: float) -> str | None:
    """Return a hint if labels are so far from 0 that differences of them are learned slowly.

    >>> offset_hint(1e6, 50.0)
    'the labels are far from 0 for their spread: 1e+06 ± 50; they are learned faster minus 1e+06'
    """
    if not 0.0 < FAR * spread < abs(mean):
        return None
    return (
        f"the labels are far from 0 for their spread: {mean:.4g} ± {spread:.3g}; they are learned "
        f"faster minus {mean:.4g}"
    )


def hints(trainer: Trainer) -> Iterator[str | None]:
    """Yield what may be wrong with the options, and with the labels."""
    model, options = trainer.model, trainer.options
    if not trainer.learned:
        return
    if isinstance(trainer.quality, RegressorQuality):
        yield offset_hint(*trainer.quality.mean_and_spread)
    if isinstance(model, LinearClassifier):
        if not options.labels:
            yield spelling_hint(model.labels)
        weighted = set(model.class_weight or {})
        for label in sorted(weighted.difference(model.labels), key=str):
            yield f"no label is {label!r} (--class-weight)"


def columns(types: dict[str, str], *, whole: bool) -> dict[str, str]:
    """Return the inferred types of columns, not all of them unless `whole`."""
    if whole or len(types) <= MAX_COLUMNS:
        return types
    some = dict(list(types.items())[:MAX_COLUMNS])
    return {**some, "more": f"{len(types) - MAX_COLUMNS:,}"}


@dataclass
class Training:
    """What is trained, and on what."""

    model: Model
    guesses: Guesses
    notes: dict[str, Any]  # of the model that is trained further
    first: SourcePart  # of the first pass
    stop: int | None  # the first record that is held out

    @property
    def settings(self) -> config.Config:
        """The configuration."""
        return self.guesses.settings

    def source(self, number: int) -> Source:
        """Return the source of a pass."""
        return self.first if number == 0 else part_of(self.settings, self.stop)


def prepared(options: Options) -> Training:
    """Return the model to train, new or saved, and what it is trained on."""
    if options.passes > 1 and "-" in options.files:
        raise ValueError("standard input can be read only once; use --passes 1, or files")
    if options.save is not None:
        require_writable(options.save, "--save", options.files)
    table = arguments.learner_table(options)
    if options.resume is not None:
        if extra := arguments.model_options(options):
            raise ValueError(f"{extra[0]} cannot be used with --resume: the model keeps its own")
        model, notes = saved_models.load(options.resume, options.learner)
        settings = arguments.settings(options, [], notes.get("format"))
        if "format" in notes and settings.format.positive != saved_models.positive_of(notes):
            raise ValueError(
                "--positive cannot be changed with --resume: the model's labels would change their "
                "meaning; leave it out, or train a new model"
            )
        stop = training_records(settings, options)
        return Training(model, Guesses(settings), notes, part_of(settings, stop), stop)
    if options.learner is not None:
        raise ValueError("--learner is for --resume; --model and --rule describe a new model")
    settings = with_delimiter(arguments.settings(options, [table]), options)
    stop = training_records(settings, options)
    source = part_of(settings, stop)
    with waiting.first_rows(options, ROWS):
        guesses = understand(settings, source, options)
    (model,) = config.estimators(guesses.settings).values()
    return Training(model, guesses, {}, source, stop)


def part_of(settings: config.Config, stop: int | None) -> SourcePart:
    """Return the records that are learned."""
    return SourcePart(build.source(settings.source, settings.format), stop=stop)


def made(training: Training, trainer: Trainer, decoder: dict[str, Any]) -> dict[str, Any]:
    """Return the notes saved with the model, with its losses."""
    history = training.notes.get("history", []) + trainer.history
    return {
        **saved_models.origin(training.settings, trainer.options.command_line, decoder),
        "history": history,
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
        self.quality = quality_of(model)  # of the first pass
        self.dropped: dict[str, int] = {}  # values that did not fit their fields, by field
        self.bar: Bar | None = None
        self.seconds = 0.0
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
                wanted = self.model.score_measures if first else ("loss",)
                scored = self.model.progressive_events(events, wanted)
                for point in curve.add(scored.measures["loss"], events.weights):
                    self.report(point, events, scored)
                if (
                    first
                    and not curve.events
                    and not self.warned
                    and batches.events >= UNLABELED_RUN
                ):
                    self.warned = True
                    warn(no_labels(batches.decoder, batches.events, options))
                if first:
                    self.quality.add(events, scored)
        finally:
            self.seconds += time.perf_counter() - begun
            self.invalid += batches.examples
            if first:
                self.dropped = self.model.reader.dropped()
            end = curve.end()
            if first and (not self.history or end.events > self.history[-1]["events"]):
                self.history.append(row(end))

    def report(self, point: CurvePoint, events: Events, scored: ScoredEvents) -> None:
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
            scored.scores[i : i + 1], scored.known_labels[i : i + 1]
        )
        length = int(events.starts[i + 1] - events.starts[i])
        self.bar.print(
            COLUMNS.format(
                loss_text(point.loss),
                loss_text(point.since),
                point.events,
                f"{point.weight:.1f}",
                clipped(events.label_of(i)),
                clipped(predicted),
                length,
            )
        )

    @property
    def learned(self) -> int:
        """The number of events learned in the first pass."""
        return self.curves[0].events if self.curves else 0

    def facts(self) -> dict[str, Any]:
        """Return the summary."""
        batches = self.batches[0]
        total = sum(one.events for one in self.batches)
        found: dict[str, Any] = {
            "events": batches.events,
            "learned": self.learned,
            "invalid": batches.invalid,
            **self.quality.facts(),
        }
        if len(self.curves) > 1:
            found["loss of the last pass"] = self.curves[-1].end().loss
        found |= {
            "non-zeros": self.model.nonzero,
            "seconds": self.seconds,
            "events/s": round(total / self.seconds) if self.seconds else None,
        }
        return found


def row(point: CurvePoint) -> dict[str, Any]:
    """Return a point as it is printed and saved."""
    return {"events": point.events, "loss": point.loss, "since last": point.since}


def warn(message: str | None) -> None:
    """Print a warning, if any."""
    if message is not None:
        sys.stderr.write(f"streamlearn train: {message}\n")
        sys.stderr.flush()


def loss_text(value: float) -> str:
    """Return a loss in its column.

    >>> loss_text(0.25), loss_text(1234567.0)
    ('0.250000', '1.2346e+06')
    """
    return f"{value:.6f}" if value < 999.0 else f"{value:.4e}"


def clipped(value: Any) -> str:
    """Return a label or a prediction, cut to its column."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = "".join(sign if sign.isprintable() else "\ufffd" for sign in text)
    return text if len(text) <= 10 else text[:8] + ".."
