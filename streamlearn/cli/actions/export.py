"""Write a model for other programs."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from streamlearn.cli import saved_models
from streamlearn.config.files import require_writable
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.export import document, expression
from streamlearn.losses import Logistic

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options
    from streamlearn.cli.saved_models import Model


def run(options: Options) -> int:
    """Export, to a file or to standard output."""
    if options.output is not None:
        require_writable(options.output, "--output", [options.model])
    model, _ = saved_models.load(options.model, options.learner)
    if options.to == "sklearn":
        write_pipeline(model, options)
        return 0
    text = sql(model) if options.to == "sql" else json.dumps(document(model), ensure_ascii=False)
    if options.output is None:
        sys.stdout.write(text + "\n")
    else:
        Path(options.output).write_text(text + "\n", encoding="utf-8")
    return 0


def sql(model: Model) -> str:
    """Return the expression, with a comment that says what it is."""
    meaning = "the score"
    if isinstance(model, LinearClassifier) and len(model.labels) == 2:
        meaning = f"above 0 the prediction is {model.labels[1]!r}"
        if isinstance(model.objective.loss, Logistic):
            meaning += "; its probability is 1 / (1 + exp(-score))"
    return f"-- {' '.join(meaning.split())}\n{expression(model)}"


def write_pipeline(model: Model, options: Options) -> None:
    """Write a scikit-learn pipeline with joblib."""
    if options.output is None:
        raise ValueError("--to sklearn writes a file; name it with --output FILE")
    if importlib.util.find_spec("sklearn") is None:
        raise ValueError("--to sklearn needs scikit-learn; run pip install 'streamlearn[sklearn]'")
    import joblib  # noqa: PLC0415 - an extra

    from streamlearn.export.pipeline import pipeline  # noqa: PLC0415 - an extra

    joblib.dump(pipeline(model), options.output)
