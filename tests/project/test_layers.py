"""The layers of pyproject.toml, for compiled sources too: import-linter reads only .py."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "streamlearn"
CONTRACTS = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
}
SOURCES = sorted({*PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxd"), *PACKAGE.rglob("*.pxi")})
IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+)?c?import[ \t]+(.*)$", re.MULTILINE)


def layers() -> dict[str, tuple[int, str]]:
    """Return each member's height, and the sign that stands between it and its neighbors."""
    lines = reversed(CONTRACTS["layers"]["layers"])
    return {
        name: (height, "|" if "|" in line else ":")
        for height, line in enumerate(lines)
        for name in re.findall(r"\w+", line)
    }


def imports(path: Path) -> Iterator[str]:
    """Yield the members of the package that a Cython source imports or cimports."""
    here = ("streamlearn", *path.relative_to(PACKAGE).parent.parts)
    source = path.read_text(encoding="utf-8")
    for origin, names in IMPORT.findall(re.sub(r"[(\\]\s*\n\s*", " ", source)):
        first = [name.split()[0].strip("(,)") for name in names.split(",") if name.strip("() ")]
        dots = len(origin) - len(origin.lstrip("."))
        base = [*here[: len(here) - dots + 1]] if dots else []
        base += [part for part in origin.split(".") if part]
        for module in [[*base, *name.split(".")] for name in first]:
            if module[0] == "streamlearn" and len(module) > 1:
                yield module[1]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_compiled_source_knows_only_lower_layers(path: Path) -> None:
    member = path.relative_to(PACKAGE).parts[0].split(".")[0]
    if member == "__init__":
        return
    known = layers()
    assert member in known, f"give {member} a layer in pyproject.toml"
    height, sign = known[member]
    for other in set(imports(path)) - {member}:
        assert other in known, f"{path.name} imports streamlearn.{other}, which has no layer"
        level = known[other][0]
        assert level < height or (level == height and sign == ":"), f"{member} imports {other}"


def test_import_is_light() -> None:
    forbidden = CONTRACTS["light"]["forbidden_modules"]
    code = f"import streamlearn, sys; print([m for m in {forbidden} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_sources_that_are_not_compiled_say_so(tmp_path: Path) -> None:
    """As in a clone into which nothing was installed."""
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "streamlearn", ignore=compiled)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import streamlearn as sl; sl.Names"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "not compiled here" in run.stderr.splitlines()[-1]
