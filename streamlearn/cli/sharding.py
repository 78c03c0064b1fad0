"""Files in shards: where they are, and how their events were learned."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from streamlearn import config
from streamlearn.config.files import expanded
from streamlearn.daemon import build
from streamlearn.hindsight.sharded import LocalHost
from streamlearn.hindsight.sharded.files import FileShard
from streamlearn.stream.sources.stretch import cut_of, stretches

if TYPE_CHECKING:
    from contextlib import ExitStack

    from streamlearn.cli.parsing import Options
    from streamlearn.features import Reader
    from streamlearn.hindsight.sharded import Host
    from streamlearn.hindsight.sharded.files import FileSource, LossLabels, Opened
    from streamlearn.stream import Decoder


def refuse_standard_input(options: Options) -> None:
    """Raise ValueError if standard input is to be divided."""
    if "-" in options.files:
        raise ValueError("standard input (-) cannot be divided into shards; give files")


def chosen_host(options: Options, stack: ExitStack) -> tuple[Host, int]:
    """Return where shards are, and how many there are."""
    if options.ray is None:
        return LocalHost(), options.shards or os.cpu_count() or 1
    from streamlearn.fleet.cluster import connected  # noqa: PLC0415 - optional
    from streamlearn.fleet.shards import RayHost  # noqa: PLC0415 - optional

    ray = stack.enter_context(connected(options.ray))
    cores = int(ray.cluster_resources().get("CPU", 1))
    return stack.enter_context(RayHost(ray)), options.shards or cores


@dataclass(frozen=True)
class Opening:
    """How the files of a shard are opened: as configured, and as in an earlier pass if it is known.

    reader, decoder: their states after that pass.
    """

    settings: config.Config
    reader: dict[str, Any] | None = None
    decoder: dict[str, Any] | None = None

    def __call__(self, paths: tuple[str, ...], labels: LossLabels) -> Opened:
        """Return the source of files, and a decoder with features of its own."""
        settings = self.settings
        source = build.source(config.FileSourceConfig(paths=paths), settings.format)
        reader = config.feature_reader(settings.features)
        if self.reader is not None:
            reader.restore(self.reader)
        decoder = build.decoder(settings, reader, [labels])
        if self.decoder is not None:
            decoder.restore(self.decoder)
        return cast("FileSource", source), decoder


def opening_after(settings: config.Config, reader: Reader, decoder: Decoder) -> Opening:
    """Return how files are opened again after a pass, so that each event gets the same features.

    Buckets that learn their edges begin anew: the first events had none.
    """
    state = {name: item for name, item in reader.state().items() if name != "buckets"}
    return Opening(settings, state, decoder.state())


def divided(
    opening: Opening, options: Options, shards: int, *, grouped: bool = False
) -> list[FileShard]:
    """Divide the files into so many shards; those with groups stay whole."""
    table = opening.settings.format
    cut = None if grouped else cut_of(table.kind, table.delimiter)
    return [
        FileShard(part, opening, grouped, options.on_invalid == "skip")
        for part in stretches(list(expanded(options.files)), shards, cut)
    ]
