"""Programs and files from Go modules, built or fetched once into the user's cache.

`python -m tests.support.go` builds all programs that tests need.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.broker.apache_kafka import Unavailable

# the program of a package, at a version of its module
PROGRAMS = {
    "minio": ("github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c"),
    "helm": ("helm.sh/helm/v3/cmd/helm", "v3.22.0"),
}


def go(*arguments: str, **environ: str) -> str:
    """Run go; return what it printed."""
    program = shutil.which("go")
    if program is None:
        raise Unavailable("Go 1.24 or newer is needed on the path")
    done = subprocess.run(
        [program, *arguments],
        env={**os.environ, "GOFLAGS": "-buildvcs=false", **environ},
        cwd=tempfile.gettempdir(),  # outside of any module
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unavailable(f"go {' '.join(arguments)}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def program(name: str) -> Path:
    """Return a program, built if it is not in the user's cache."""
    package, version = PROGRAMS[name]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "streamlearn" / f"{name}-{version}" / name
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as work:
            go("install", f"{package}@{version}", GOBIN=work)
            Path(work, name).replace(path)  # whole or not at all
    return path


def module(path: str, version: str) -> Path:
    """Return the directory of a module's files, fetched if they are not in Go's cache."""
    return Path(json.loads(go("mod", "download", "-json", f"{path}@{version}"))["Dir"])


if __name__ == "__main__":
    for one in PROGRAMS:
        sys.stdout.write(f"{program(one)}\n")
