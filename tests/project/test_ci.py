"""CI, pre-commit and the Makefile run the same checks, and what they name exists."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import streamlearn
from tests.support.missing import require_program

ROOT = Path(__file__).parents[2]
LINT = (ROOT / ".ci" / "lint").read_text("utf-8")
CHECKS = re.findall(r"^        ([a-z]+)\) ", LINT, re.MULTILINE)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_all_checks_run_by_default_and_before_a_commit() -> None:
    default = re.search(r"\|\| set -- (.*)", LINT)
    assert default is not None
    assert sorted(default[1].split()) == sorted(CHECKS)
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    entries = [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    assert sorted(entries) == sorted(f".ci/lint {check}" for check in CHECKS)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_what_exists(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job.get("steps", ())]
    for command in [step["run"] for step in steps if "run" in step]:
        for file in re.findall(r"(?:^|\s)((?:\.ci|tests|tools)/[\w/.]+)", command):
            assert (ROOT / file).exists(), file
    extras = re.findall(r"-e \.\[([\w,]+)\]", path.read_text("utf-8"))
    named = {extra for found in extras for extra in found.split(",")}
    assert named <= PROJECT["optional-dependencies"].keys()


def test_a_release_has_the_version_of_the_package() -> None:
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
    script = release["jobs"]["version"]["steps"][-1]["run"].splitlines()[:2]
    for tag, code in ((f"v{streamlearn.__version__}", 0), ("v99", 1)):
        environ = {**os.environ, "GITHUB_REF_NAME": tag}
        command = [require_program("bash"), "-ec", "\n".join(script)]
        done = subprocess.run(command, check=False, cwd=ROOT, env=environ)
        assert done.returncode == code


def test_the_site_and_the_package_name_one_repository() -> None:
    site = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert f"repo_url: {PROJECT['urls']['Source']}\n" in site
    assert f"site_url: {PROJECT['urls']['Documentation']}\n" in site


def test_make_names_the_targets_of_the_guide() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert re.findall(r"^\| `make (\w+)` \|", guide, re.MULTILINE) == targets
