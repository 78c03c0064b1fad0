"""Print a model's predictions for the events of files, one line each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import UNSET

from streamlearn import config
from streamlearn.cli import saved_models, waiting
from streamlearn.cli.decoded_batches import Pass, report_absent
from streamlearn.cli.progress import Bar
from streamlearn.cli.seen_fields import SeenFields
from streamlearn.config import arguments
from streamlearn.core.labels import label_text
from streamlearn.daemon import build
from streamlearn.daemon.outputs.predictions import predict_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.cli.parsing import Options
    from streamlearn.cli.saved_models import Model
    from streamlearn.core.arrays import Array
    from streamlearn.engine.events import Events
    from streamlearn.stream.formats.label_set import LabelSet

NAMES = ("id", "prediction", "probability", "probabilities", "value", "score")


def run(options: Options) -> int:
    """Predict, without learning."""
    waiting.announce(options)
    model, notes = saved_models.load(options.model, options.learner)
    # the label field is not a feature; it may be missing
    known = {"format.label": "label", **notes.get("format", {})}
    settings = arguments.settings(options, [], known)
    fields = config.event_fields(settings.format).unlabeled()
    decoder = build.decoder(settings, model.reader, fields=fields)
    # column types are those of training, not inferred from these lines
    saved_models.recall(decoder, notes)
    labels = saved_models.labels_of(model, notes)
    source = build.source(settings.source, settings.format, sample=decoder.sample)
    seen = SeenFields(model)
    write = sys.stdout.write
    with Bar("predicting", quiet=sys.stdout.isatty()) as bar:
        batches = Pass(source, decoder, skip=options.on_invalid == "skip", on_batch=bar.update)
        try:
            for events in batches:
                write("".join(lines(model, events, labels, options)))
                seen.add(events)
        finally:
            batches.close()
    seen.report("predict")
    report_absent("predict", batches.absent, options)
    for line in batches.examples:
        sys.stderr.write(f"invalid: {line}\n")
    if batches.invalid:
        sys.stderr.write(f"{batches.invalid} invalid lines have an empty prediction\n")
    return 0


def lines(model: Model, events: Events, labels: LabelSet, options: Options) -> Iterator[str]:
    """Return a line per record; it is empty for an invalid one."""
    events.weights[:] = 0.0  # learn nothing, also where the format itself has labels
    scores = model.progressive_events(events).scores
    predicted = outcomes(model, events, labels, scores)
    found = dict(zip(events.index.tolist(), predicted, strict=True))
    invalid = {bad.number for bad in events.invalid}
    for index in range(events.records):
        if index in found:
            yield line(found[index], options)
        elif index in invalid:
            yield "null\n" if options.json else "\n"


def outcomes(
    model: Model, events: Events, labels: LabelSet, scores: Array
) -> Iterator[dict[str, Any]]:
    """Return each event's outcome: what a daemon publishes, and the score."""
    ids = [None if key is None else key.decode(errors="replace") for key in events.ids]
    columns = predict_batch(model, scores, None, labels, np.ones(len(events), dtype=bool))
    listed = scores.tolist()
    if scores.ndim > 1:
        names = [label_text(label) for label in model.outputs]
        listed = [dict(zip(names, row, strict=True)) for row in listed]
    for row in zip(ids, *columns, listed, strict=True):
        yield {name: item for name, item in zip(NAMES, row, strict=True) if item is not UNSET}


def line(outcome: dict[str, Any], options: Options) -> str:
    """Return the line of one event."""
    if options.json:
        return msgspec.json.encode(outcome, enc_hook=str).decode() + "\n"
    value = outcome["prediction"]
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if len(text.splitlines()) > 1 or "\t" in text:
        text = msgspec.json.encode(text).decode()  # on one line
    if options.probability and "probability" in outcome:
        text += f"\t{outcome['probability']:.6f}"
    if options.probability:
        shares = outcome.get("probabilities", {})
        text += "".join(f"\t{label}={share:.6f}" for label, share in shares.items())
    return text + "\n"
