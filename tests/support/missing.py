"""Programs that tests require: without them a test is skipped, and in CI fails."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

PACKAGES = {"promtool": "prometheus", "chromedriver": "chromium-driver"}


def skip_unless_ci(reason: object) -> NoReturn:
    """Skip the test; in CI, where everything is installed, fail it."""
    if "CI" in os.environ:
        pytest.fail(f"tests must not be skipped in CI: {reason}")
    pytest.skip(str(reason))


def require_program(program: str) -> str:
    """Return the path of a program."""
    package = PACKAGES.get(program, program)
    return shutil.which(program) or skip_unless_ci(
        f"{program} is not installed; install the Debian package {package}"
    )
