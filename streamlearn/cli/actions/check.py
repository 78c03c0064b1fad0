"""Check a configuration as `run` would find it here, and print the plan it resolves to.

Files and the checkpoint that `run` would resume from are read, also from an object store, where
nothing is written, and the newest schemas of a registry; no broker is contacted.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from streamlearn import config
from streamlearn.cli.actions.field_examples import examples
from streamlearn.cli.configured import load
from streamlearn.cli.tables import show_json
from streamlearn.config import effective
from streamlearn.config.expressions import unparse
from streamlearn.daemon import preflight
from streamlearn.errors import TableMismatchError
from streamlearn.estimators import checkpoints
from streamlearn.storage import open_store

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options


def run(options: Options) -> int:
    """Print the plan, which is a configuration file itself."""
    settings = load(options)
    if problems := [
        *preflight.outputs(settings),
        *preflight.directories(settings),
        *preflight.formats(settings),
        *preflight.checkpoint(settings),
    ]:
        raise config.ConfigError(options.file, problems)
    start = starting_point(settings)
    models = {name: parts(model) for name, model in config.estimators(settings).items()}
    try:
        fields = examples(settings)
    except TableMismatchError as error:
        problem = config.ConfigProblem("format", str(error))
        raise config.ConfigError(options.file, [problem]) from None
    if options.json:
        found = {"config": effective.plain(settings), "models": models, "start": start}
        show_json({"file": options.file, **found, "fields": fields})
        return 0
    sys.stdout.write(f"# {options.file} is valid; the plan, with defaults:\n")
    for name, model in models.items():
        made = ", ".join(f"{key} {value}" for key, value in model.items())
        sys.stdout.write(f"# {name}: {made}\n")
    for name, field in fields.items():
        told = ", ".join(field[key] for key in ("type", "kind") if key in field)
        sys.stdout.write(f"# field {name}: {told}{example(field.get('example'))}\n")
    sys.stdout.write(f"# start: {start}\n\n{effective.text(settings)}")
    return 0


def example(found: dict[str, float] | str | None) -> str:
    """Return what a field becomes as text.

    >>> example({"price": 1.5, "city=Rome": 1.0}), example(None)
    (', such as price (1.5), city=Rome', '')
    """
    if isinstance(found, str):
        return f", {found}"
    if not found:
        return ""
    features = [name if value == 1.0 else f"{name} ({value:.4g})" for name, value in found.items()]
    return f", such as {', '.join(features)}"


def starting_point(settings: config.Config) -> str:
    """Tell where `run` would start."""
    if settings.checkpoint is None:
        return "from scratch, without checkpoints"
    store = open_store(settings.checkpoint.path)
    names = store.names()
    valid = checkpoints.valid(store, names)
    epoch = max([0, *checkpoints.epochs_of(names)]) + 1
    if not valid:
        return f"from scratch, as epoch {epoch} of {store}"
    return f"from {store}/{valid[0].name}, as epoch {epoch}"


def parts(model: Any) -> dict[str, str]:
    """Return the expressions of a model's rule, loss and penalty."""
    loss, penalty, _ = model.objective
    return {"rule": unparse(model.rules[0]), "loss": unparse(loss), "penalty": unparse(penalty)}
