"""Where errors are raised: a test of a package's refusals finds those that it leaves out."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Site = tuple[str, int]  # the name of a file, and a line


def raises(module: ModuleType) -> dict[Site, Site]:
    """Return the statements of a module, or of a package, that raise an error, by each line."""
    file = Path(module.__file__ or "")
    files = file.parent.glob("*.py") if file.stem == "__init__" else [file]
    return {
        (str(path), line): (str(path), node.lineno)
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def raised(call: Callable[[], object], kind: type[Exception]) -> set[Site]:
    """Return the lines that a call's error, and those behind it, were raised at."""
    found = set()
    with pytest.raises(kind) as caught:
        call()
    error: BaseException | None = caught.value
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            found.add((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
        error = error.__context__
    return found


def unreached(modules: list[str], reached: set[Site]) -> set[Site]:
    """Return the statements of these modules that raise an error, and were not reached."""
    sites = {line: site for name in modules for line, site in raises(sys.modules[name]).items()}
    assert sites
    return set(sites.values()) - {sites[line] for line in reached if line in sites}
