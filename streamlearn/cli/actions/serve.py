"""Serve predictions over HTTP."""

from __future__ import annotations

import dataclasses
import importlib.util
import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from streamlearn import config, serving
from streamlearn.cli import saved_models, served_models
from streamlearn.cli.commands.serve import ACTIONS
from streamlearn.cli.configured import load
from streamlearn.daemon.process.log import LibraryLogHandler, Log
from streamlearn.estimators import checkpoints
from streamlearn.serving import build, directory
from streamlearn.serving.http.options import Options as Served

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options

PACKAGES = ("starlette", "uvicorn", "uvloop", "httptools")


def run(options: Options) -> int:
    """Serve until a signal, or change what is served."""
    if options.action is not None:
        return served_models.run(options)
    if options.source in ACTIONS and not Path(options.source).exists():
        raise ValueError("name a configuration with [serve], or a directory of snapshots")
    if options.promoted is not None:
        raise ValueError(f"unexpected argument {options.promoted!r}")
    if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        raise ValueError(f"needs {', '.join(missing)}; run pip install 'streamlearn[serve]'")
    from streamlearn.serving.http import server  # noqa: PLC0415 - an extra

    with tempfile.TemporaryDirectory(prefix="streamlearn-serve-") as temporary:
        (counts := Path(temporary) / "counts").mkdir()
        settings, about = resolve(options, Path(temporary), counts)
        given = {"host": options.host, "port": options.port}
        serve = msgspec.structs.replace(
            about.settings, **{name: value for name, value in given.items() if value is not None}
        )
        if options.learner is not None and directory.entries(about.path):
            served_models.require(about.path, options.learner)
        learner = options.learner or about.learner
        about = dataclasses.replace(about, settings=serve, learner=learner)
        listening = server.listen(serve.host, serve.port)
        log = Log(settings.format, settings.level)
        logging.getLogger().addHandler(LibraryLogHandler(log))
        scheme = "http" if serve.certfile is None else "https"
        host = f"[{serve.host}]" if ":" in serve.host else serve.host
        log.info(
            "serving",
            url=f"{scheme}://{host}:{listening.getsockname()[1]}/",
            snapshots=str(about.path),
            workers=options.workers,
        )
        code = server.serve(about, listening, options.workers)
        log.info("stopped", exit=code)
        return code


def resolve(options: Options, temporary: Path, counts: Path) -> tuple[config.LogConfig, Served]:
    """Return the log's settings and what is served."""
    source = Path(options.source)
    if source.suffix == ".toml":
        options.file = options.source
        settings = load(options)
        return settings.log, build.options(settings, counts)
    if options.set:
        raise ValueError(f"--set overrides a configuration, but {source} is none")
    path = source
    if not source.is_dir():
        save_model(source, temporary / "model")
        path = temporary / "model"
    elif not directory.entries(source):
        path = source / "serving"
        if not directory.entries(path):
            save_checkpoint(source, temporary / "model")
            path = temporary / "model"
    return config.LogConfig(), Served(path=path, counts=counts)


def save_model(source: Path, path: Path) -> None:
    """Write a snapshot of a model file."""
    model, notes = saved_models.load(str(source))
    path.mkdir()
    fields = build.fields_of(notes)
    serving.save(model, path / directory.SnapshotFile(0, model.steps, "model").name, fields=fields)


def save_checkpoint(source: Path, path: Path) -> None:
    """Write snapshots of the learners of a checkpoint."""
    found = checkpoints.newest(source)
    if found is None:
        raise ValueError(f"{source} has neither snapshots nor a checkpoint")
    path.mkdir()
    for name in found[1]["learners"]:
        model, _ = saved_models.load(str(source), name)
        entry = directory.SnapshotFile(found[0].epoch, model.steps, name)
        version = serving.Version(entry.epoch, entry.events)
        serving.save(model, path / entry.name, name, version=version)
