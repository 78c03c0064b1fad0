"""Values of options: edges are taken or refused, and defaults are those in the help."""

from __future__ import annotations

import argparse
import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import config
from streamlearn.cli import options, parsing
from streamlearn.cli.actions import evaluate, inspect
from streamlearn.cli.commands import run, serve, solve, train
from streamlearn.cli.main import COMMANDS, parser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# what each function makes of texts, and what it refuses
VALUES: dict[Callable[[str], Any], tuple[dict[str, Any], list[str]]] = {
    parsing.whole: ({"1": 1, "12": 12}, ["0", "-1", "1.5", "x", ""]),
    parsing.seed: ({"0": 0, f"{2**63 - 1}": 2**63 - 1}, ["-1", f"{2**63}", "1.0"]),
    parsing.seconds: ({"0.001": 0.001, "5": 5.0}, ["0", "-1", "inf", "nan", "x"]),
    serve.port: ({"0": 0, "65535": 65535}, ["-1", "65536", "x"]),
    run.position: (
        {"a:b:0:0": ("a:b", 0, 0), "t:3:17": ("t", 3, 17)},
        ["t:-1:0", "t:0:-1", "t:0", "t:x:0"],
    ),
    train.holdout: (
        {"last:20%": 0.2, "last:99.9%": 0.999, "last:1": 1, "last:5000": 5000},
        ["20%", "last:0", "last:0%", "last:100%", "last:-1", "last:1.5", "last:x"],
    ),
    train.step: (
        {"2.0": 2.0, "1.001": 1.001, "1": 1, "5000": 5000},
        ["1.0", "0", "0.5", "-2", "inf", "nan", "x"],
    ),
    solve.strength: ({"0": 0.0, "1e-9": 1e-9, "3": 3.0}, ["-1e-9", "inf", "nan", "x"]),
    options.delimiter: ({"\\t": "\t", ";": ";"}, []),
    options.names: ({"a, b,,c ": ["a", "b", "c"], "": []}, []),
}
PLAIN = {int, float}
# of options whose default depends on the configuration
DEFAULTS: dict[str, object] = {
    "--label-warmup": config.FormatConfig().label_warmup,
    "--max-classes": config.FormatConfig().max_classes,
    "--batch": config.LearnerConfig(name="a").batch,
    "--average": config.LearnerConfig(name="a").average,
    "--host": config.ServeConfig().host,
    "--port": config.ServeConfig().port,
    "publish --seed": 0,
    "--top": inspect.TOP,
    "evaluate --seconds": evaluate.SECONDS,
}


def actions() -> Iterator[tuple[str, argparse.Action]]:
    for name in COMMANDS:
        for action in parser().commands[name].actions:
            yield name, action


def test_all_functions_are_known() -> None:
    used = {getattr(one.type, "func", one.type) for _, one in actions() if one.type is not None}
    assert used - PLAIN == VALUES.keys()


def test_edges_of_integers() -> None:
    for _, action in actions():
        if isinstance(action.type, partial) and action.type.func is parsing.whole:
            least = action.type.keywords["least"]
            assert action.type(str(least)) == least
            with pytest.raises(argparse.ArgumentTypeError):
                action.type(str(least - 1))


@pytest.mark.parametrize("read", VALUES, ids=lambda read: read.__name__)
def test_edges(read: Callable[[str], Any]) -> None:
    taken, refused = VALUES[read]
    for text, value in taken.items():
        found = read(text)
        assert found == pytest.approx(value) if isinstance(value, float) else found == value
        assert type(found) is type(value)
    for text in refused:
        with pytest.raises((argparse.ArgumentTypeError, ValueError)):
            read(text)


def test_defaults_are_those_in_the_help() -> None:
    checked = 0
    for command, action in actions():
        said = re.search(r"\(default: ([^,;)]+)", action.help or "")
        name = (action.option_strings or [action.dest])[-1]
        own = DEFAULTS.get(f"{command} {name}", DEFAULTS.get(name, action.default))
        if said is None or own is None or own == math.inf:
            continue
        assert said[1] == str(own) or math.isclose(float(said[1]), float(str(own)))
        checked += 1
    assert checked > 20
