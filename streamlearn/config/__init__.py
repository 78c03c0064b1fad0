"""The daemon's configuration: one TOML file, completely validated before anything starts.

structs      the schema: tables, keys, defaults and descriptions
environment  substitution of ${NAME} and ${file:PATH}
reading      TOML tables to structs: unknown keys, wrong types
checks/      constraints between keys, by table
learners     the models of the [[learner]] tables
expressions  rules, losses, penalties and models written as calls
problems     ConfigError, which lists everything that is wrong
secret       text that is never printed
effective    the configuration with all defaults, as TOML
arguments    command-line options as a configuration
files        checks of input and output files
file_names   formats that the names of files tell
backfill     the files of [backfill] as a source
reference    generator of docs/reference/configuration.md
"""

from __future__ import annotations

import os
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn.config import checks, learners, reading
from streamlearn.config.checks.formats import declared_labels
from streamlearn.config.environment import expand
from streamlearn.config.learners import (
    ESTIMATORS,
    estimator,
    event_fields,
    feature_reader,
    label_fields,
)
from streamlearn.config.problems import ConfigError, ConfigProblem
from streamlearn.config.secret import Secret, revealed
from streamlearn.config.structs import (
    OPEN_LABELS,
    BackfillConfig,
    BestConfig,
    CheckpointConfig,
    Config,
    CustomSourceConfig,
    DeadLettersConfig,
    FeaturesConfig,
    FileSourceConfig,
    FleetConfig,
    FormatConfig,
    KafkaSourceConfig,
    LabelsConfig,
    LearnerConfig,
    LogConfig,
    PredictionsConfig,
    RecordFormatConfig,
    RegistryConfig,
    RegretConfig,
    RunConfig,
    SecurityConfig,
    ServeConfig,
    ServeLogConfig,
    Source,
    SplitConfig,
    StdinSourceConfig,
    SyntheticSourceConfig,
    TelemetryConfig,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ESTIMATORS",
    "OPEN_LABELS",
    "BackfillConfig",
    "BestConfig",
    "CheckpointConfig",
    "Config",
    "ConfigError",
    "ConfigProblem",
    "CustomSourceConfig",
    "DeadLettersConfig",
    "FeaturesConfig",
    "FileSourceConfig",
    "FleetConfig",
    "FormatConfig",
    "KafkaSourceConfig",
    "LabelsConfig",
    "LearnerConfig",
    "LogConfig",
    "PredictionsConfig",
    "RecordFormatConfig",
    "RegistryConfig",
    "RegretConfig",
    "RunConfig",
    "Secret",
    "SecurityConfig",
    "ServeConfig",
    "ServeLogConfig",
    "Source",
    "SplitConfig",
    "StdinSourceConfig",
    "SyntheticSourceConfig",
    "TelemetryConfig",
    "estimator",
    "estimators",
    "event_fields",
    "feature_reader",
    "label_fields",
    "load",
    "parse",
    "parse_value",
    "revealed",
]


def load(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read the configuration of a file; raise ConfigError with everything that is wrong with it.

    `overrides` are values by path, such as ``{"checkpoint.path": "state"}``, which replace those of
    the file. Relative paths in the file are relative to the working directory.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(
            str(path), [ConfigProblem("", f"cannot be read: {error.strerror}")]
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), [ConfigProblem("", "is not UTF-8")]) from None
    return parse(text, str(path), overrides, environ)


def parse(
    text: str,
    name: str = "configuration",
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    r"""Read the configuration of a TOML text.

    >>> config = parse('[source]\nkind = "synthetic"\nevents = 1000')
    >>> config.source.events, [learner.name for learner in config.learners]
    (1000, ['default'])
    >>> try:
    ...     parse('[source]\nkind = "synthetic"\nevent = 1000', "demo.toml")
    ... except ConfigError as error:
    ...     print(error)
    demo.toml: source.event: unknown key; did you mean events?
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(name, [ConfigProblem("", f"is not TOML: {error}")]) from None
    problems: list[ConfigProblem] = []
    for path, value in (overrides or {}).items():
        set_value(data, path, deepcopy(value), problems)  # later paths may be in it
    data = expand(data, os.environ if environ is None else environ, "", problems)
    tables = reading.read_fields(Config, data, "", problems)
    for item in msgspec.structs.fields(Config):
        if not item.required:
            tables.setdefault(item.name, item.default)
    tables["learners"] = tables["learners"] or (learners.DEFAULT,)
    known = {key: value for key, value in tables.items() if value is not reading.MISSING}
    reported = {problem.path for problem in problems}
    found = checks.check(known, (*checks.CHECKS, *learners.CHECKS))
    problems += [problem for problem in found if problem.path not in reported]
    if problems:
        raise ConfigError(name, problems)
    return learners.with_synthetic_fields(Config(**known))


def estimators(config: Config) -> dict[str, Any]:
    """Return new models by name, in the order of the file, which share one feature reader."""
    shared = feature_reader(config.features)
    labels = declared_labels(config.format)
    return {learner.name: estimator(learner, shared, labels) for learner in config.learners}


def parse_value(text: str) -> Any:
    """Return the value that the text is in TOML, or the text itself if it is not TOML.

    >>> parse_value("5"), parse_value('["a", "b"]'), parse_value("latest")
    (5, ['a', 'b'], 'latest')
    """
    try:
        found = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return found["value"] if len(found) == 1 else text


def set_value(data: dict[str, Any], path: str, value: Any, problems: list[ConfigProblem]) -> None:
    """Set the value at a path, and create the tables on the way."""
    *tables, key = path.split(".")
    for name in tables:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            problems.append(ConfigProblem(path, f"{name} is not a table"))
            return
    data[key] = value
