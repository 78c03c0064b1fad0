"""What a configuration describes, as objects: the source, and the decoder of its records."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn.daemon import config
from streamlearn.stream import Decoder, JSONDecoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.features import Reader
    from streamlearn.stream import Source

DECODERS: dict[str, type[Decoder]] = {"json": JSONDecoder}


def decoder(settings: config.Config, reader: Reader, learners: Sequence[Any] = ()) -> Decoder:
    """What makes events of the source's records."""
    fields = config.fields(settings.format)
    kind = settings.format.kind
    if kind in DECODERS:
        return DECODERS[kind](reader, fields, learners)
    raise NotImplementedError


def source(settings: config.Source) -> Source:
    """Where records come from."""
    raise NotImplementedError
