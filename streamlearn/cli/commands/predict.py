"""`streamlearn predict`: a model's predictions for the events of files, one line each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import UNSET

from streamlearn.cli import inputs, saved
from streamlearn.cli.learning import Pass
from streamlearn.cli.progress import Bar
from streamlearn.config import OPEN
from streamlearn.daemon import build
from streamlearn.daemon.outputs.predictions import predictions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from streamlearn.cli.parsing import Options
    from streamlearn.cli.saved import Model
    from streamlearn.config import Config
    from streamlearn.engine.events import Events
    from streamlearn.stream.formats.label_set import LabelSet

NAMES = ("id", "prediction", "probability", "probabilities", "value", "score")
HELP = "print a model's predictions for the events of files, one line each, in their order"
EXAMPLES = """\
  streamlearn predict clicks.model tomorrow.jsonl > predictions.txt
  streamlearn predict clicks.model tomorrow.jsonl --probability
  streamlearn predict /var/lib/clicks "day-*.csv.gz" --learner sparse --label price --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the model, the files, and what to print."""
    parser.add_argument(
        "model", metavar="MODEL", help="a model file, or a directory of checkpoints"
    )
    inputs.format_arguments(parser)
    parser.add_argument("--learner", metavar="NAME", help="which learner of the checkpoints")
    parser.add_argument(
        "--probability",
        action="store_true",
        help="print it too, where the loss defines one: that of the positive one of two labels, or"
        " of each of more, as label=probability",
    )
    parser.add_argument("--json", action="store_true", help="lines of JSON, with id and score")


def run(options: Options) -> int:
    """Predict, and learn nothing."""
    model, notes = saved.load(options.model, options.learner)
    # the label is set aside where there is one, and none is needed
    known = {"format.label": "label", **notes.get("format", {})}
    settings = unlabeled(inputs.settings(options, [], known))
    decoder = build.decoder(settings, model._model.reader)  # noqa: SLF001 - one of us
    # what these lines look like counts for nothing: the model knows what it has learned
    saved.recall(decoder, notes)
    labels = saved.labels_of(model, notes)
    source = build.source(settings.source, settings.format)
    write = sys.stdout.write
    with Bar("predicting", quiet=sys.stdout.isatty()) as bar:
        batches = Pass(source, decoder, skip=options.on_bad == "skip", tell=bar.update)
        try:
            for events in batches:
                write("".join(lines(model, events, labels, options)))
        finally:
            batches.close()
    for line in batches.named:
        sys.stderr.write(f"bad: {line}\n")
    if batches.bad:
        sys.stderr.write(f"{batches.bad} bad lines have an empty prediction\n")
    return 0


def unlabeled(settings: Config) -> Config:
    """The settings by which no event has a label or a weight, so that none is learned."""
    format = settings.format  # noqa: A001 - the table's name
    roles = [name for name in (format.label, format.weight) if name is not None]
    aside = () if format.include is not None else roles
    without = msgspec.structs.replace(
        format,
        label=None,
        labels=OPEN,
        positive=None,
        weight=None,
        exclude=(*format.exclude, *aside),
    )
    return msgspec.structs.replace(settings, format=without)


def lines(model: Model, events: Events, labels: LabelSet, options: Options) -> Iterator[str]:
    """A line for each record: of those that are bad it is empty."""
    events.weights[:] = 0.0  # so that none is learned: some formats have labels of their own
    scores = model.progressive_events(events)
    told = outcomes(model, events, labels, scores)
    found = dict(zip(events.index.tolist(), told, strict=True))
    bad = {index for index, _, _ in events.bad}
    for index in range(events.records):
        if index in found:
            yield line(found[index], options)
        elif index in bad:
            yield "null\n" if options.json else "\n"


def outcomes(
    model: Model, events: Events, labels: LabelSet, scores: Any
) -> Iterator[dict[str, Any]]:
    """What is to be said of each event: what a daemon publishes, with the score."""
    ids = [None if key is None else key.decode(errors="replace") for key in events.ids]
    told = predictions(model, scores, None, labels, np.ones(len(events), dtype=bool))
    columns = np.asarray(scores).tolist()
    for row in zip(ids, *told, columns, strict=True):
        yield {name: item for name, item in zip(NAMES, row, strict=True) if item is not UNSET}


def line(outcome: dict[str, Any], options: Options) -> str:
    """One event's line."""
    if options.json:
        return msgspec.json.encode(outcome, enc_hook=str).decode() + "\n"
    value = outcome["prediction"]
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if options.probability and "probability" in outcome:
        text += f"\t{outcome['probability']:.6f}"
    if options.probability:
        shares = outcome.get("probabilities", {})
        text += "".join(f"\t{label}={share:.6f}" for label, share in shares.items())
    return text + "\n"
