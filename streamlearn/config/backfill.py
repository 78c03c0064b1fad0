"""The files of a backfill, as a source with its format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from streamlearn.config.file_names import format_of
from streamlearn.config.structs import FileSourceConfig

if TYPE_CHECKING:
    from streamlearn.config.structs import BackfillConfig, FormatConfig


def history_source(backfill: BackfillConfig) -> FileSourceConfig:
    """Return the source of the files; absolute paths differ from all names of topics."""
    return FileSourceConfig(paths=tuple(str(Path(path).absolute()) for path in backfill.paths))


def history_format(backfill: BackfillConfig, stream: FormatConfig) -> FormatConfig:
    """Return the format of the files: fields have the roles that they have in the stream."""
    found = {format_of(path) for path in backfill.paths}
    kind = backfill.kind or (found.pop() if len(found) == 1 else None) or stream.kind
    if kind == stream.kind:
        return stream
    others = {"schema": None, "descriptors": None, "message": None, "columns": ()}
    return replace(stream, kind=kind, delimiter=backfill.delimiter, **others)
