"""The layers of pyproject.toml for compiled modules, which import-linter does not read."""

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
    """Return the level of each package, and the separator of its layer."""
    lines = reversed(CONTRACTS["layers"]["layers"])
    return {
        name: (height, "|" if "|" in line else ":")
        for height, line in enumerate(lines)
        for name in re.findall(r"\w+", line)
    }


def imports(path: Path) -> Iterator[str]:
    """Yield the packages of streamlearn that a Cython source imports or cimports."""
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
def test_compiled_modules_import_only_lower_layers(path: Path) -> None:
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


def test_importing_streamlearn_does_not_import_kafka_or_prometheus() -> None:
    forbidden = CONTRACTS["light"]["forbidden_modules"]
    code = f"import streamlearn, sys; print([m for m in {forbidden} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_importing_uncompiled_sources_raises_a_clear_error(tmp_path: Path) -> None:
    """Such as in a clone that was not installed."""
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "streamlearn", ignore=compiled)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import streamlearn as sl; sl.Names"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "not compiled here" in run.stderr.splitlines()[-1]
