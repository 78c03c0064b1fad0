"""`streamlearn train`: files to a model, with its progressive loss on the way.

The loss of an event is measured before the event is learned, so the mean is that of predictions on
events not seen before: progressive validation. In later passes it is not, and they say so.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

import streamlearn
from streamlearn import config
from streamlearn.cli import inputs, saved
from streamlearn.cli.curve import ProgressiveCurve
from streamlearn.cli.learning import Pass, doubt
from streamlearn.cli.parsing import INTERRUPTED, json_option, whole
from streamlearn.cli.progress import Bar
from streamlearn.cli.tables import show_facts, show_json
from streamlearn.config import plan
from streamlearn.daemon import build
from streamlearn.daemon.unlabeled import MANY
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.stream import CSVDecoder

if TYPE_CHECKING:
    from streamlearn.cli.curve import Point
    from streamlearn.cli.parsing import Options
    from streamlearn.cli.saved import Model
    from streamlearn.engine.events import Events
    from streamlearn.estimators.frames import Array

HELP = "learn a model from files, and print its progressive loss at growing intervals"
EXAMPLES = """\
  streamlearn train clicks.jsonl --label clicked --save clicks.model
  streamlearn train a9a.svm --model "PegasosClassifier(l2=1e-4)" --passes 3
  streamlearn train "day-*.csv.gz" --label price --regression --hash 20 --on-bad skip
  streamlearn train tomorrow.jsonl --resume clicks.model --save clicks.model
"""
COLUMNS_SHOWN = 20
COLUMNS = "{:>10} {:>10} {:>10} {:>12} {:>10} {:>10} {:>8}"  # 76 wide, for a terminal of 80
HEADER = (
    COLUMNS.format("average", "since", "events", "events", "label", "predicted", "features"),
    COLUMNS.format("loss", "last", "learned", "weight", "", "", ""),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare files, format, model and what becomes of it."""
    inputs.format_arguments(parser)
    inputs.feature_arguments(parser)
    inputs.learner_arguments(parser)
    parser.add_argument("--passes", metavar="N", type=whole, default=1, help="over the files (1)")
    parser.add_argument("--save", metavar="MODEL", help="write the model to this file")
    parser.add_argument("--resume", metavar="MODEL", help="go on with this model")
    parser.add_argument(
        "--progress",
        metavar="STEP",
        type=step,
        default=2.0,
        help="a factor (2.0), or a whole number of events, from one line to the next",
    )
    json_option(parser)


def step(text: str) -> float:
    """A factor above 1 with a decimal point, or a whole number."""
    try:
        value = int(text) if text.isdigit() else float(text)
    except ValueError:
        value = 0
    if not 1 <= value < math.inf or (value == 1 and isinstance(value, float)):
        raise argparse.ArgumentTypeError(
            f"expected a factor above 1, such as 2.0, or a whole number of events; got {text!r}"
        )
    return value


def run(options: Options) -> int:
    """Learn, and say how it went."""
    model, settings, notes = prepared(options)
    decoder = build.decoder(settings, model._model.reader, [model])  # noqa: SLF001 - one of us
    saved.recall(decoder, notes)
    teacher = Teacher(model, options)
    interrupted = False
    with Bar("pass 1", quiet=options.json) as bar:
        try:
            for number in range(options.passes):
                source = build.source(settings.source, settings.format)
                teacher.begin(number, bar)
                batches = Pass(source, decoder, skip=options.on_bad == "skip", tell=bar.update)
                try:
                    teacher.learn(batches)
                finally:
                    batches.close()
        except KeyboardInterrupt:
            interrupted = True
        facts = teacher.facts()
    for line in teacher.complaints:
        sys.stderr.write(f"bad: {line}\n")
    if not interrupted:
        inputs.refuse_nothing(settings, facts["events"], facts["learned"], decoder, options)
        if options.positive and not teacher.positive:
            wanted = " or ".join(map(repr, options.positive))
            teacher.ask(
                f"no label is {wanted} (--positive), so all events were learned as negatives: "
                "labels are compared as they are written"
            )
    if isinstance(decoder, CSVDecoder):
        facts["columns"] = columns(decoder.types, whole=options.json)
    if options.save is not None:
        model.save(options.save, notes=made(settings, teacher, decoder.state(), notes))
        facts["saved"] = options.save
    if options.json:
        show_json({**facts, "history": teacher.history})
    else:
        show_facts(facts, before="\n")
    if interrupted:
        sys.stderr.write("streamlearn train: interrupted; this is how far it came\n")
    return INTERRUPTED if interrupted else 0


def columns(types: dict[str, str], *, whole: bool) -> dict[str, str]:
    """What the columns of a table were taken for; for people the first ones."""
    if whole or len(types) <= COLUMNS_SHOWN:
        return types
    some = dict(list(types.items())[:COLUMNS_SHOWN])
    return {**some, "and more": f"{len(types) - COLUMNS_SHOWN:,}"}


def prepared(options: Options) -> tuple[Model, config.Config, dict[str, Any]]:
    """The model to teach, fresh or as it was saved, and how lines are read."""
    if options.passes > 1 and "-" in options.files:
        raise ValueError("standard input can be read once: give --passes 1, or files")
    if options.save is not None:
        inputs.writable(options.save, "--save", options.files)
    table = inputs.learner(options)
    if options.resume is None:
        settings = inputs.settings(options, [table])
        (model,) = config.estimators(settings).values()
        return model, settings, {}
    extra = [inputs.OPTIONS[f"learner[0].{key}"] for key in table if key != "name"]
    extra += ["--hash"] * (options.hash is not None) + ["--max-names"] * (
        options.max_names is not None
    )
    if extra:
        raise ValueError(f"{extra[0]}: the model of --resume says it; leave it out")
    model, notes = saved.load(options.resume)
    return model, inputs.settings(options, [], notes.get("format")), notes


def made(
    settings: config.Config, teacher: Teacher, decoder: dict[str, Any], notes: dict[str, Any]
) -> dict[str, Any]:
    """What is kept beside the model: where it came from, and how to read such events."""
    command = shlex.join(["streamlearn", *teacher.options.command_line])
    return {
        "made by": f"{command} (streamlearn {streamlearn.__version__})",
        "made at": datetime.now(UTC).isoformat(" ", "seconds"),
        "format": {f"format.{key}": item for key, item in plan.plain(settings.format).items()},
        "history": notes.get("history", []) + teacher.history,
        "decoder": decoder,
    }


class Teacher:
    """Teaches a model batch by batch, and remembers how it did."""

    def __init__(self, model: Model, options: Options) -> None:
        self.model = model
        self.options = options
        self.history: list[dict[str, Any]] = []  # of the first pass
        self.complaints: list[str] = []
        self.curves: list[ProgressiveCurve] = []
        self.batches: list[Pass] = []
        self.others = {name: ProgressiveCurve() for name in model.measured if name != "loss"}
        self.bar: Bar | None = None
        self.seconds = 0.0
        self.positive = 0  # events of the first pass whose label is True or 1
        self.warned = False  # of events without labels

    def begin(self, number: int, bar: Bar) -> None:
        """A pass begins."""
        self.bar = bar
        self.curves.append(ProgressiveCurve(self.options.progress))
        bar.title(f"pass {number + 1} of {self.options.passes}")
        if number > 0 and not self.options.json:
            bar.say(f"pass {number + 1}: the loss is now that of events learned before")

    def learn(self, batches: Pass) -> None:
        """One pass."""
        self.batches.append(batches)
        first, options = len(self.curves) == 1, self.options
        curve = self.curves[-1]
        begun = time.perf_counter()
        try:
            for events in batches:
                if first and not curve.events and isinstance(self.model, LinearClassifier):
                    self.ask(doubt(events))
                if first and options.positive:
                    self.positive += int(np.count_nonzero(events.labels == 1.0))
                wanted = ("loss", *self.others) if first else ("loss",)
                measures = {name: np.empty(len(events)) for name in wanted}
                known = np.empty(len(events)) if self.model.learns == "classes" else None
                given = measures if known is None else {**measures, "known": known}
                scores = self.model.progressive_events(events, given)
                for point in curve.add(measures["loss"], events.weights):
                    self.told(point, events, scores, known)
                if first and not curve.events and not self.warned and batches.events >= MANY:
                    self.warned = True
                    self.ask(inputs.no_labels(batches.decoder, batches.events, options))
                for name in wanted[1:]:
                    for _ in self.others[name].add(measures[name], events.weights):
                        pass
        finally:
            self.seconds += time.perf_counter() - begun
            self.complaints += batches.named
            end = curve.end()
            if first and (not self.history or end.events > self.history[-1]["events"]):
                self.history.append(row(end))

    def ask(self, question: str | None) -> None:
        """Say what may be meant otherwise, and go on."""
        if question is not None:
            sys.stderr.write(f"streamlearn train: {question}\n")
            sys.stderr.flush()

    def told(self, point: Point, events: Events, scores: Array, known: Array | None) -> None:
        """Print a line, and remember it."""
        first = not self.history
        if len(self.curves) == 1:
            self.history.append(row(point))
        if self.options.json or self.bar is None:
            return
        for line in HEADER if first else ():
            self.bar.say(line)
        i = point.row
        (predicted,) = self.model.predicted(
            scores[i : i + 1], None if known is None else known[i : i + 1]
        )
        length = int(events.starts[i + 1] - events.starts[i])
        self.bar.say(
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
        """How it went."""
        first = self.curves[0].end()
        batches = self.batches[0]
        total = sum(one.events for one in self.batches)
        found: dict[str, Any] = {
            "events": batches.events,
            "learned": first.events,
            "bad": batches.bad,
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
    """A point as it is shown and saved."""
    return {"events": point.events, "loss": point.loss, "since last": point.since}


def clipped(value: Any) -> str:
    """A label or a prediction in its column."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = "".join(sign if sign.isprintable() else "\ufffd" for sign in text)
    return text if len(text) <= 10 else text[:8] + ".."
