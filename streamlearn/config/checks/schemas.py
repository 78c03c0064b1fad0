"""Constraints of schemas and of [registry]."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from streamlearn.config.checks.values import Problems, installed
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    DeadLettersConfig,
    FileSourceConfig,
    FormatConfig,
    LabelsConfig,
    PredictionsConfig,
    RecordFormatConfig,
    RegistryConfig,
    RunConfig,
    Source,
    StdinSourceConfig,
)
from streamlearn.core import formats
from streamlearn.core.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable


def schemas(
    format: FormatConfig,  # noqa: A002 - the table's name
    registry: RegistryConfig | None,
    source: Source,
    labels: LabelsConfig | None,
) -> Problems:
    """Check where the schemas of binary records come from."""
    yield from schema_origin(format, "format", registry, source)
    if not format_named(format.kind).has_schemas:
        return
    yield from binary_source(format, source)
    key = "schema" if format.kind == "avro" else "descriptors"
    shared = labels is not None and labels.topic is not None and labels.format is None
    if shared and getattr(format, key) is not None:
        yield ConfigProblem(
            f"format.{key}",
            "is of all records, but labels.topic has others; set labels.format, or use the "
            "schemas of a [registry]",
        )


def registry_use(
    format: FormatConfig,  # noqa: A002 - the table's name
    registry: RegistryConfig | None,
    labels: LabelsConfig | None,
    predictions: PredictionsConfig,
    dead_letters: DeadLettersConfig,
) -> Problems:
    """Check that what needs a registry has one, with a topic to name subjects after."""
    kinds = [format.kind]
    if labels is not None and labels.format is not None:
        kinds.append(labels.format.kind)
    used = any(format_named(kind).has_schemas for kind in kinds)
    for name, output in (("predictions", predictions), ("dead_letters", dead_letters)):
        if not format_named(output.format).has_schemas:
            continue
        used = True
        path = f"{name}.format"
        if output.topic is None:
            yield ConfigProblem(path, f"requires {name}.topic; a file has JSON lines")
        elif registry is None:
            yield ConfigProblem(path, "requires the url of a [registry]")
        else:
            yield from installed(path, output.format)
    if registry is not None and not used:
        wanted = ", ".join(f'"{kind}"' for kind in formats.names(has_schemas=True))
        yield ConfigProblem("registry", f"not used; no format is one of {wanted}")


def binary_source(format: FormatConfig, source: Source) -> Problems:  # noqa: A002 - the table's name
    """Refuse sources of lines, which binary records are not."""
    if isinstance(source, StdinSourceConfig):
        yield ConfigProblem(
            "format.kind", f"standard input is read by lines; {format.kind} is read from files"
        )
    elif isinstance(source, FileSourceConfig) and not format_named(format.kind).in_files:
        yield ConfigProblem("format.kind", 'files of JSON have lines; use kind = "json"')
    elif isinstance(source, FileSourceConfig) and source.follow:
        yield ConfigProblem(
            "source.follow", f"files of {format.kind} are not followed; use follow = false"
        )


def schema_origin(
    table: RecordFormatConfig, path: str, registry: RegistryConfig | None, source: Source
) -> Problems:
    """Check that there is one origin of schemas."""
    for name, kind in (("schema", "avro"), ("descriptors", "protobuf"), ("message", "protobuf")):
        if getattr(table, name) is not None and table.kind != kind:
            yield ConfigProblem(f"{path}.{name}", f'requires kind = "{kind}"')
    if not format_named(table.kind).has_schemas:
        return
    in_files = isinstance(source, FileSourceConfig)
    if table.kind == "json-schema":
        if registry is None:
            yield ConfigProblem("registry.url", 'missing; kind = "json-schema" requires it')
        return
    key = "schema" if table.kind == "avro" else "descriptors"
    has_origin = registry is not None and not (in_files and table.kind == "protobuf")
    if getattr(table, key) is None and not has_origin and not (in_files and table.kind == "avro"):
        where = "" if in_files else ", or the url of a [registry]"
        yield ConfigProblem(f"{path}.{key}", f"missing; set it{where}")
    if (table.descriptors is None) != (table.message is None):
        yield ConfigProblem(f"{path}.message", "set both `descriptors` and `message`, or neither")


def registry_access(registry: RegistryConfig | None, run: RunConfig) -> Problems:
    """Check the address of the registry and its timeouts."""
    if registry is None:
        return
    for url in registry.url.split(","):
        parts = urlsplit(url.strip())
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            yield ConfigProblem("registry.url", "expected http://HOST:PORT or https://HOST:PORT")
        elif parts.username is not None:
            yield ConfigProblem("registry.url", "has a login; use `username` and `password`")
    requests = len(registry.url.split(",")) * registry.timeout_seconds
    if registry.wait_seconds + 2 * requests >= run.watchdog_seconds:
        yield ConfigProblem(
            "registry.wait_seconds",
            "with two requests of `timeout_seconds` to each address, expected less than "
            "run.watchdog_seconds",
        )


def registry_login(registry: RegistryConfig | None) -> Problems:
    """Check the authentication at the registry."""
    if registry is None:
        return
    if (registry.username is None) != (registry.password is None):
        yield ConfigProblem("registry.username", "set both `username` and `password`, or neither")
    if registry.token is not None and registry.username is not None:
        yield ConfigProblem("registry.token", "set either `token` or `username`")
    for name in ("cafile", "certfile", "keyfile"):
        file = getattr(registry, name)
        if file is not None and not Path(file).is_file():
            yield ConfigProblem(f"registry.{name}", f"no such file: {file}")
    if registry.keyfile is not None and registry.certfile is None:
        yield ConfigProblem("registry.keyfile", "requires `certfile`, the certificate of this key")


CHECKS: tuple[Callable[..., Problems], ...] = (
    schemas,
    registry_use,
    registry_access,
    registry_login,
)
