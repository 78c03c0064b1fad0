"""Hold out the last records of files: the model is tested on them instead of learning them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.decoded_batches import Pass
from streamlearn.daemon import build
from streamlearn.errors import InvalidEventError
from streamlearn.quality import quality_of
from streamlearn.stream.sources.parts import SourcePart, count_records

if TYPE_CHECKING:
    from typing import Any

    from streamlearn import config
    from streamlearn.cli.parsing import Options
    from streamlearn.cli.progress import Bar
    from streamlearn.cli.saved_models import Model


def training_records(settings: config.Config, options: Options) -> int | None:
    """Return how many of the first records are learned; None: all."""
    amount = options.holdout
    if amount is None:
        return None
    if options.files == ["-"]:
        raise ValueError("--holdout cannot be used with standard input, which is read only once")
    records = count_records(build.source(settings.source, settings.format))
    held = amount if isinstance(amount, int) else round(amount * records)
    if not 0 < held < records:
        raise ValueError(f"--holdout: {held:,} of {records:,} records would be held out")
    return records - held


def tested(
    model: Model,
    settings: config.Config,
    start: int,
    state: dict[str, Any],
    options: Options,
    bar: Bar,
) -> dict[str, Any]:
    """Score what was held out with the trained model, and return its quality.

    `state` is that of the decoder: the columns are those of the training.
    """
    decoder = build.decoder(settings, model.reader)
    decoder.restore(state)
    source = SourcePart(build.source(settings.source, settings.format), start)
    quality = quality_of(model)
    bar.restart("held out")
    batches = Pass(source, decoder, skip=options.on_invalid == "skip", on_batch=bar.update)
    try:
        for events in batches:
            try:
                scored = model.score_events(events, model.score_measures)
            except InvalidEventError as error:
                raise ValueError(f"the held-out records have a new label: {error}") from None
            quality.add(events, scored)
    finally:
        batches.close()
    counts = {"events": batches.events, "labeled": quality.events, "invalid": batches.invalid}
    return {**counts, **quality.facts()}
