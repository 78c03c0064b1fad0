"""Conversion of command-line options about files and models to a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn import config
from streamlearn.config import OPEN_LABELS, ConfigError
from streamlearn.config.file_names import format_of
from streamlearn.config.files import expanded, require_files
from streamlearn.core import formats

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Set as AbstractSet

# the command-line option for each key
OPTIONS = {
    "source.paths": "FILE",
    "format.kind": "--format",
    "format.schema": "--schema",
    "format.descriptors": "--descriptors",
    "format.message": "--message",
    "format.label": "--label",
    "format.labels": "--labels",
    "format.positive": "--positive",
    "format.label_warmup": "--label-warmup",
    "format.max_classes": "--max-classes",
    "format.weight": "--weight",
    "format.kept": "--kept",
    "format.id": "--id",
    "format.delimiter": "--delimiter",
    "format.decimal": "--decimal",
    "format.columns": "--columns",
    "features.fields": "--field",
    "features.bits": "--hash",
    "features.max_names": "--max-names",
    "learner[0].name": "the model",
    "learner[0].task": "--regression",
    "learner[0].model": "--model",
    "learner[0].rule": "--rule",
    "learner[0].loss": "--loss",
    "learner[0].penalty": "--penalty",
    "learner[0].average": "--average",
    "learner[0].class_weight": "--class-weight",
    "learner[0].calibrated": "--calibrated",
    "learner[0].batch": "--batch",
    "learner[0].seed": "--seed",
}


def settings(
    options: Namespace, learners: list[dict[str, Any]], saved: dict[str, Any] | None = None
) -> config.Config:
    """Return the configuration of the options, which override `saved`, that of a saved model."""
    if "-" in options.files and len(options.files) > 1:
        raise ValueError("standard input (-) cannot be read together with files")
    saved = saved or {}
    given = format_keys(options, saved.get("format.kind"))
    given["features.max_names"] = getattr(options, "max_names", None)
    given["features.fields"] = declared_fields(getattr(options, "field", None))
    given["features.max_bytes"] = 0  # this limit is for daemons
    given["learner"] = learners or None
    if getattr(options, "hash", None) is not None:
        given |= {"features.kind": "hashing", "features.bits": options.hash}
    given = {key: value for key, value in given.items() if value is not None}
    csv = given.get("format.kind", saved.get("format.kind")) == "csv"
    if csv and given.get("format.decimal") == "," and "format.delimiter" not in given | saved:
        given["format.delimiter"] = ";"  # as spreadsheets write decimal commas
    source: dict[str, Any] = {"kind": "file", "paths": options.files}
    if options.files == ["-"]:
        source = {"kind": "stdin"}
    try:
        found = config.parse("", "", {**saved, **given, "source": source}, environ={})
    except ConfigError as error:
        raise ValueError(as_options(error, saved.keys() - given.keys(), options)) from None
    require_files(options.files)
    return found


def format_keys(options: Namespace, default: str | None) -> dict[str, Any]:
    """Return the [format] keys of the options; `default` is the format of a saved model."""
    delimiter = options.delimiter
    if delimiter is None and all(".tsv" in name for name in options.files):
        delimiter = "\t"
    return {
        "format.kind": options.format or guess_format(options.files, default),
        "format.schema": options.schema,
        "format.descriptors": options.descriptors,
        "format.message": options.message,
        "format.label": options.label,
        "format.labels": None if options.labels is None else parse_labels(options.labels),
        "format.label_warmup": options.label_warmup,
        "format.max_classes": options.max_classes,
        "format.positive": None if options.positive is None else parse_values(options.positive),
        "format.weight": options.weight,
        "format.kept": options.kept,
        "format.id": options.id,
        "format.delimiter": delimiter,
        "format.decimal": options.decimal,
        "format.columns": options.columns,
    }


def as_options(error: ConfigError, saved: AbstractSet[str], options: Namespace) -> str:
    """Describe problems by option; the keys in `saved` are from a saved model."""
    lines = []
    for path, text in error.problems:
        starts = {key: (f"{key}[", f"{key}.") for key in OPTIONS}
        key = next((key for key in OPTIONS if path == key or path.startswith(starts[key])), path)
        owner = " of the saved model" if key in saved else ""
        lines.append(f"{option(key, options)}{owner}: {text}")
    return "; ".join(lines)


def option(key: str, options: Namespace) -> str:
    """Return the option that gave a key."""
    if key == "learner[0].penalty" and getattr(options, "l1", None) is not None:
        return "--l1"
    return OPTIONS.get(key, key)


def learner_table(options: Namespace) -> dict[str, Any]:
    """Return the [[learner]] table of the options."""
    penalty = options.penalty
    if options.l1 is not None:
        if penalty is not None:
            raise ValueError("--l1 cannot be combined with --penalty; add L1 to the penalty")
        penalty = f"L1({options.l1!r})"
    given = {
        "name": "model",
        "task": "regression" if options.regression else None,
        "model": options.model,
        "rule": options.rule,
        "loss": options.loss,
        "penalty": penalty,
        "average": options.average,
        "class_weight": class_weights(options.class_weight),
        "calibrated": options.calibrated or None,
        "batch": options.batch,
        "seed": options.seed,
    }
    return {key: value for key, value in given.items() if value is not None}


def task_table(options: Namespace) -> dict[str, Any]:
    """Return the [[learner]] table of a command whose options do not describe a model."""
    return {"name": "model", "task": "regression" if options.regression else "classification"}


def model_options(options: Namespace) -> list[str]:
    """Return the options that describe a model and cannot be combined with a saved one."""
    table = learner_table(options)
    given = [option(f"learner[0].{key}", options) for key in table if key != "name"]
    given += ["--field"] if options.field else []
    given += ["--hash"] if options.hash is not None else []
    return given + (["--max-names"] if options.max_names is not None else [])


def class_weights(texts: list[str] | None) -> dict[str, float] | None:
    """Return the weights of LABEL=WEIGHT options by label.

    >>> class_weights(["spam=2", "true=0.5"])
    {'spam': 2.0, 'true': 0.5}
    """
    if not texts:
        return None
    found: dict[str, float] = {}
    for text in texts:
        label, sign, weight = text.rpartition("=")
        if label in found:
            raise ValueError(
                f"--class-weight {text}: the label has a weight already, {label}={found[label]:g}"
            )
        try:
            found[label] = float(weight)
        except ValueError:
            sign = ""
        if not sign:
            raise ValueError(f"--class-weight {text}: expected LABEL=WEIGHT, such as true=10")
    return found


def declared_fields(texts: list[str] | None) -> dict[str, str] | None:
    """Return the fields of NAME=KIND options; several names share a kind.

    >>> declared_fields(["user_id,ad_id=category", "price=number(log1p)"])
    {'user_id': 'category', 'ad_id': 'category', 'price': 'number(log1p)'}
    """
    if not texts:
        return None
    found: dict[str, str] = {}
    for text in texts:
        names, sign, kind = text.partition("=")
        if not sign or not names.strip():
            raise ValueError(f"--field {text}: expected NAME=KIND, such as user_id=category")
        for name in (part.strip() for part in names.split(",")):
            if found.setdefault(name, kind.strip()) != kind.strip():
                raise ValueError(f"--field {text}: {name} is already declared as {found[name]}")
    return found


def parse_labels(text: str) -> Any:
    """Return comma-separated labels as TOML values, or "open".

    >>> parse_labels("0,1,maybe"), parse_labels("open")
    ([0, 1, 'maybe'], 'open')
    """
    if text == OPEN_LABELS:
        return text
    return parse_values([part.strip() for part in text.split(",") if part.strip()])


def parse_values(texts: list[str]) -> list[Any]:
    """Return texts as TOML values."""
    return [config.parse_value(text) for text in texts]


def guess_format(files: list[str], default: str | None = None) -> str:
    """Return the format that the file names indicate, or else the default."""
    kinds = {format_of(name) for name in expanded(files)}
    if default is not None and kinds == {None}:
        return default
    if len(kinds) > 1 or None in kinds:
        require_files([name for name in files if Path(name).is_dir()])
        raise ValueError(
            f"the format of {', '.join(files)} cannot be determined from the name; "
            f"use --format {'|'.join(formats.names(in_files=True))}"
        )
    (kind,) = kinds
    return str(kind)
