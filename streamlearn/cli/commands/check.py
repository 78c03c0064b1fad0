"""`streamlearn check`: a configuration as `run` would find it here, and the plan it resolves to.

Files, and the checkpoint that `run` would resume from, are looked at; no broker is.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn import config
from streamlearn.cli.inputs import refuse_read, writable
from streamlearn.cli.parsing import json_option
from streamlearn.cli.tables import show_json
from streamlearn.config import plan
from streamlearn.config.expressions import shown
from streamlearn.daemon import build
from streamlearn.daemon.checkpointing import resume
from streamlearn.daemon.learners import Learners
from streamlearn.daemon.process.exits import Stop
from streamlearn.errors import ModelFileError, SourceError
from streamlearn.estimators import checkpoints
from streamlearn.stream import Partition
from streamlearn.stream.formats.label_set import LabelSet

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from streamlearn.cli.parsing import Options

HELP = "validate a configuration file and print what would run, secrets masked"
EXAMPLES = """\
  streamlearn check config/quickstart.toml
  streamlearn check config/clicks.toml --set checkpoint.path=/var/lib/clicks --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and what overrides it."""
    config_arguments(parser)
    json_option(parser)


def run(options: Options) -> int:
    """Print the plan: it is a configuration file itself."""
    read = load(options)
    if problems := [*outputs(read), *directories(read), *formats(read), *resumed(read)]:
        raise config.ConfigError(options.file, problems)
    models = {name: made_of(model) for name, model in config.estimators(read).items()}
    if options.json:
        show_json({"file": options.file, "config": plan.plain(read), "models": models})
        return 0
    sys.stdout.write(f"# {options.file} is valid; this is what it says, defaults included\n")
    for name, model in models.items():
        made = ", ".join(f"{key} {value}" for key, value in model.items())
        sys.stdout.write(f"# {name}: {made}\n")
    sys.stdout.write("\n" + plan.text(read))
    return 0


def outputs(read: config.Config) -> Iterator[config.ConfigProblem]:
    """What keeps files from being written."""
    for name, path, sources in written(read):
        try:
            writable(path, name, sources)
        except ValueError as error:
            yield config.ConfigProblem("", str(error))


def read_again(read: config.Config) -> Iterator[config.ConfigProblem]:
    """Files that are written and would be read as events: each would make the next."""
    for name, path, sources in written(read):
        try:
            refuse_read(path, name, sources)
        except ValueError as error:
            yield config.ConfigProblem("", str(error))


def written(read: config.Config) -> Iterator[tuple[str, str, list[str]]]:
    """The key and path of each file that is written, and what is read."""
    sources = list(getattr(read.source, "paths", ()))
    for name, output in (("predictions", read.predictions), ("dead_letters", read.dead_letters)):
        if output.path not in (None, "-"):
            yield f"{name}.path", output.path, sources


def directories(read: config.Config) -> Iterator[config.ConfigProblem]:
    """Directories where files are to be read."""
    for path in getattr(read.source, "paths", ()):
        if Path(path).is_dir():
            files = f"{path.rstrip('/')}/*"
            yield config.ConfigProblem(
                "source.paths", f"{path} is a directory: give the files in it, {files!r}"
            )


def resumed(read: config.Config) -> Iterator[config.ConfigProblem]:
    """What keeps models and source from going on where the checkpoint is; all of it."""
    kept, data = read.checkpoint, None
    try:
        found = None if kept is None else checkpoints.newest(Path(kept.path))
        if found is not None:
            data = found[1]
            learners = Learners(config.estimators(read), config.reader(read.features, read.format))
            labels = LabelSet(config.fields(read.format))
            late = read.labels is not None
            resume.fitted(found, learners, build.reading(read), labels=labels, late=late)
    except (ModelFileError, Stop) as error:
        yield config.ConfigProblem("checkpoint.path", str(error))
    if isinstance(read.source, config.KafkaSourceConfig) or [*directories(read)]:
        return
    source = build.source(read.source, read.format)
    try:
        positions = [] if data is None else data["positions"]
        at = {Partition(topic, number): position for topic, number, position in positions}
        source.open(at, None if data is None else data["source"])
    except SourceError as error:
        yield config.ConfigProblem("source", str(error))
    finally:
        source.close()


def formats(read: config.Config) -> Iterator[config.ConfigProblem]:
    """What keeps records from being read: a format that is not there, columns that lack a field."""
    try:
        build.reading_of(read, config.reader(read.features, read.format), ())
    except ValueError as error:
        yield config.ConfigProblem("format", str(error))


def made_of(model: Any) -> dict[str, str]:
    """What a model is made of."""
    rule, penalty, loss = model._parts()  # noqa: SLF001 - one of us
    return {"rule": shown(rule), "loss": shown(loss), "penalty": shown(penalty)}


def config_arguments(parser: argparse.ArgumentParser) -> None:
    """The configuration file, for every command that takes one."""
    parser.add_argument("file", metavar="FILE", help="a configuration file (TOML)")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a value that stands before the file's, such as source.start=latest",
    )


def load(options: Options, more: Mapping[str, Any] | None = None) -> config.Config:
    """The configuration that the options name."""
    overrides = dict(more or {})
    for text in options.set:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise ValueError(f"--set {text}: expected KEY=VALUE, such as source.start=latest")
        overrides[key.strip()] = config.value(value.strip())
    return config.load(options.file, overrides)
