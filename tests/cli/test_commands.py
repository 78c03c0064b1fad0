"""What every command has: help, examples that parse, one-line errors, exit codes, completion."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import streamlearn as sl
from streamlearn.cli.actions import check
from streamlearn.cli.main import COMMANDS, main, parser
from streamlearn.cli.parsing import INTERRUPTED
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.estimators import checkpoints

if TYPE_CHECKING:
    from pathlib import Path


def fails(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """One line on standard error, and exit code 2."""
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    said = capsys.readouterr().err
    assert code == Exit.USAGE
    assert said.count("\n") == 1
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_that_parse(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert "examples:" in capsys.readouterr().out
    lines = re.findall(r"^  streamlearn (.*)$", COMMANDS[name].EXAMPLES, re.MULTILINE)
    assert lines
    for line in lines:
        words = shlex.split(line.partition(" > ")[0], comments=True)  # as a shell takes it
        assert words[0] == name
        assert parser().parse_args(words).command == name


def test_alone_it_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in shown] == []


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.strip() == sl.__version__


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chekc"], "did you mean check?"),
        (["check"], "required: FILE"),
        (["check", "a", "b"], "unexpected argument 'b'"),
        (["check", "a", "--jsn"], "did you mean --json?"),
        (["check", "a", "--sets=1"], "did you mean --set?"),
        (["check", "none.toml"], "No such file"),
        (["run", "config/quickstart.toml", "--reset-offsets"], "--reset-offsets"),
        (["check", "a", "--set", "x"], "expected KEY=VALUE"),
        (["--versio"], "did you mean --version?"),
        (["completion", "bsh"], "did you mean bash?"),
        (["inspect", "none.model"], "none.model: No such file"),
        (["inspect", "none", "--learner", "a"], "none: No such file"),
        (["inspect", "m", "--top", "0"], "an integer >= 1, got '0'"),
        (["models", "list", "none"], "none is not a directory"),
    ],
)
def test_errors_are_one_line_with_the_remedy(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in fails(arguments, capsys)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Stop(Exit.FENCED, "taken over"), Exit.FENCED, "streamlearn check: taken over\n"),
        (KeyboardInterrupt(), INTERRUPTED, ""),
        (RuntimeError("odd"), Exit.CRASH, "RuntimeError: odd (run again with --debug"),
        (OSError(28, "No space left", "x"), Exit.USAGE, "x: No space left"),
    ],
)
def test_how_commands_end(
    error: BaseException,
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(_: object) -> int:
        raise error

    monkeypatch.setattr(check, "run", run)
    assert main(["check", "x"]) == code
    shown = capsys.readouterr().err
    assert said in shown
    assert "Traceback" not in shown
    main(["check", "x", "--debug"])
    assert ("Traceback" in capsys.readouterr().err) == isinstance(error, Exception)


def test_a_pipe_that_closes_is_no_error() -> None:
    command = f"{sys.executable} -m streamlearn completion zsh | head -1"
    run = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)  # noqa: S602
    assert run.stdout == "#compdef streamlearn\n"
    assert run.stderr == ""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_end_no_command(closed: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[source]\nkind = "synthetic"\nevents = 20\n')
    options = f"--until end --set telemetry.enabled=false --set checkpoint.path={tmp_path / 's'}"
    for command in (f"check {tmp_path / 'a.toml'}", f"run {tmp_path / 'a.toml'} {options}"):
        line = f"{sys.executable} -m streamlearn {command} {closed}"
        run = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
        assert (run.returncode, "Error" in run.stderr) == (0, False), run.stderr
    assert list((tmp_path / "s").glob("*.checkpoint"))


def test_begin_is_for_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[source]\nkind = "synthetic"\nevents = 20\n[telemetry]\nenabled = false\n')
    command = ["run", str(file)]
    assert main([*command, "--begin"]) == Exit.USAGE
    assert "checkpoint.path" in capsys.readouterr().err
    command += ["--set", f"checkpoint.path={tmp_path / 's'}", "--set", "checkpoint.required=true"]
    assert main([*command, "--until", "end"]) == Exit.NO_CHECKPOINT
    assert main([*command, "--until", "end", "--begin"]) == Exit.USAGE
    assert main([*command, "--begin"]) == Exit.OK
    assert records_of(tmp_path / "s") == 0
    assert main([*command, "--begin"]) == Exit.USAGE
    assert main([*command, "--until", "end"]) == Exit.OK
    assert records_of(tmp_path / "s") == 20


def records_of(directory: Path) -> int:
    """Return how many records the newest checkpoint has learned."""
    found = checkpoints.newest(directory)
    assert found is not None
    return int(found[1]["counts"]["records"])


HEAVY = {"numpy", "scipy", "msgspec", "rich", "river", "kafka", "prometheus_client"}


@pytest.mark.parametrize("arguments", [["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from streamlearn.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert run.stdout
    assert HEAVY.isdisjoint(run.stderr.split())
