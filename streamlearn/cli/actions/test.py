"""Measure a saved model on labeled events, without learning."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn.cli import report, saved_models, waiting
from streamlearn.cli.decoded_batches import Pass, report_absent, report_positive, require_labels
from streamlearn.cli.progress import Bar
from streamlearn.cli.seen_fields import SeenFields
from streamlearn.cli.tables import show, show_facts, show_json
from streamlearn.config import arguments
from streamlearn.config.files import require_writable
from streamlearn.core.labels import label_text, positive_last
from streamlearn.daemon import build
from streamlearn.engine.events import Events
from streamlearn.errors import InvalidEventError
from streamlearn.features import Hashing, exact_names
from streamlearn.quality import ClassifierQuality, quality_of
from streamlearn.quality.importance import FieldImportance
from streamlearn.quality.ranking import calibration
from streamlearn.quality.segments import LossSegments

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options
    from streamlearn.cli.saved_models import Model
    from streamlearn.config import Config
    from streamlearn.quality import Quality
    from streamlearn.stream import Decoder

HASHED_SAMPLE = 20_000  # events that are decoded twice, for the names that a hash does not keep
MAX_ROWS = 20  # fields, in the table for people


@dataclass
class Tested:
    """What was measured."""

    model: Model
    quality: Quality
    importance: FieldImportance
    losses: LossSegments
    batches: Pass
    kept: float
    seen: SeenFields

    @property
    def facts(self) -> dict[str, Any]:
        """The numbers by name."""
        counts = {
            "events": self.batches.events,
            "labeled": self.quality.events,
            "invalid": self.batches.invalid,
        }
        kept = {} if self.kept == 1.0 else {"share of negatives kept": self.kept}
        return {**counts, **kept, **self.quality.facts()}


def run(options: Options) -> int:
    """Measure, and print the numbers."""
    if options.report is not None:
        require_writable(options.report, "--report", [*options.files, options.model])
    waiting.announce(options)
    model, notes = saved_models.load(options.model, options.learner)
    settings = arguments.settings(options, [], notes.get("format"))
    if "format" not in notes or settings.format.positive != saved_models.positive_of(notes):
        require_other_spelling(saved_models.labels_of(model, notes).labels, options)
    decoder = build.decoder(settings, model.reader)
    saved_models.recall(decoder, notes)
    tested = measured(model, settings, decoder, options)
    tested.seen.report("test")
    report_absent("test", tested.batches.absent, options)
    for line in tested.batches.examples:
        sys.stderr.write(f"invalid: {line}\n")
    require_labels(settings, tested.batches.events, tested.quality.events, decoder, options)
    report_positive("test", settings, decoder.labels.positive_seen)
    if options.report is not None:
        title = f"{Path(options.model).name} on {', '.join(map(brief, options.files))}"
        page = report.page(title, tested, notes, options.command_line)
        Path(options.report).write_text(page, encoding="utf-8")
    shares = tested.importance.shares()
    if options.json:
        show_json({**tested.facts, **tables(tested), "importance": shares})
        return 0
    show_facts(tested.facts)
    for title, rows in tables(tested).items():
        sys.stdout.write(f"\n{title}\n")
        show(rows)
    if shares:
        sys.stdout.write("\nimportance\n")
        some = list(shares.items())[:MAX_ROWS]
        show([{"field": name, "share of the score": f"{share:.1%}"} for name, share in some])
    if options.report is not None:
        sys.stdout.write(f"\nwritten: {options.report}\n")
    return 0


def require_other_spelling(labels: list[Any], options: Options) -> None:
    """Raise ValueError if --positive names the negative one of a model's two labels."""
    given = map(str.lower, options.positive or ())
    if len(labels) == 2 and (negative := label_text(positive_last(labels)[0])).lower() in given:
        raise ValueError(
            f"--positive {negative}: that is the negative label of the model; leave --positive out"
        )


def brief(name: str) -> str:
    """Return the name of a file without its directories."""
    return "standard input" if name == "-" else Path(name).name


def measured(model: Model, settings: Config, decoder: Decoder, options: Options) -> Tested:
    """Score all events, and measure what was predicted."""
    hashed = isinstance(model.reader, Hashing)
    names = exact_names(model.reader) if hashed else model.reader
    named = build.decoder(settings, names) if hashed else None
    source = build.source(settings.source, settings.format, sample=decoder.sample)
    with Bar("testing", quiet=options.json) as bar:
        batches = Pass(source, decoder, skip=options.on_invalid == "skip", on_batch=bar.update)
        tested = Tested(
            model,
            quality_of(model),
            FieldImportance(model, names),
            LossSegments(),
            batches,
            settings.format.kept,
            SeenFields(model),
        )
        again = Events()
        try:
            for events in batches:
                add(tested, events)
                tested.seen.add(events)
                if named is None:
                    tested.importance.add(events)
                elif batches.events <= HASHED_SAMPLE or not again.records:
                    again.clear()
                    named.decode(batches.latest, again)
                    tested.importance.add(again)
        finally:
            batches.close()
    return tested


def add(tested: Tested, events: Events) -> None:
    """Score a batch."""
    try:
        scored = tested.model.score_events(events, tested.model.score_measures)
    except InvalidEventError as error:
        raise ValueError(f"{error}; leave out such events, or train on them first") from None
    tested.quality.add(events, scored)
    tested.losses.add(scored.measures["loss"], events.weights)


def tables(tested: Tested) -> dict[str, list[dict[str, Any]]]:
    """Return the reliability of two classes, or the confusion of several, as rows."""
    quality = tested.quality
    if not isinstance(quality, ClassifierQuality):
        return {}
    if quality.binary:
        if not quality.has_probability:
            return {}
        bins = calibration(quality.ranking.groups())
        columns = zip(bins.predicted, bins.positive, bins.weight, strict=True)
        names = ("predicted", "positive", "weight")
        return {"reliability": [dict(zip(names, map(float, row), strict=True)) for row in columns]}
    labels, confusion = list(map(str, quality.model.labels)), quality.confusion
    return {
        "confusion": [
            {"label": label, **dict(zip(labels, map(float, row), strict=True))}
            for label, row in zip(labels, confusion, strict=True)
        ]
    }
