"""What reaches a command whose options are taken as they were typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from mla_calc.cli.as_typed import take_as_typed
from mla_calc.errors import InputError

got: dict[str, Any] = {}
app = typer.Typer()


@app.command()
def command(
    model: Annotated[str, typer.Option("--model")],
    tp: Annotated[str, typer.Option("--tp", callback=lambda value: f"{value}!")] = "1",
    gpu: Annotated[str | None, typer.Option("--gpu")] = None,
    vs: Annotated[list[str] | None, typer.Option("--vs")] = None,
    output: Annotated[Path | None, typer.Option("--output")] = None,
    explain: Annotated[bool, typer.Option("--explain")] = False,
) -> None:
    got.update(model=model, tp=tp, gpu=gpu, vs=vs, output=output, explain=explain)


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("--model x", {}),
        ("--model x --tp 8", {"tp": "8!"}),
        ("--model x --gpu h100 --vs a --vs b", {"gpu": "h100", "vs": ["a", "b"]}),
        ("--model x --output a.svg --explain", {"output": Path("a.svg"), "explain": True}),
        ("--model= --gpu=", {"model": "", "gpu": ""}),
    ],
)
def test_values_are_those_that_typer_gives(line: str, given: dict[str, Any]) -> None:
    expected = {"model": "x", "tp": "1!", "gpu": None, "vs": None, "output": None, "explain": False} | given
    for taken in (typer.main.get_command(app), take_as_typed(typer.main.get_command(app))):
        got.clear()
        taken.main(args=line.split(), standalone_mode=False)
        assert got == expected


@pytest.mark.parametrize("line", ["", "--model", "--tp 8", "--model x --explain=maybe", "--model x --what"])
def test_what_typer_refuses_is_refused(line: str) -> None:
    messages = []
    for taken in (typer.main.get_command(app), take_as_typed(typer.main.get_command(app))):
        with pytest.raises(Exception, match=r".+") as error:
            taken.main(args=line.split(), standalone_mode=False)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("--model x --model y", "--model is given twice"),
        ("--model x --tp 1 --tp=1 --tp 2", "--tp is given 3 times"),
        ("--model x --output a --output b", "--output is given twice"),
        ("--model x --explain --explain", "--explain is given twice"),
        ("--model x --vs a --vs a", None),
    ],
)
def test_an_option_of_one_value_is_given_once(line: str, refused: str | None) -> None:
    taken = take_as_typed(typer.main.get_command(app))
    if refused is None:
        taken.main(args=line.split(), standalone_mode=False)
        assert got["vs"] == ["a", "a"]
        return
    with pytest.raises(InputError, match=refused):
        taken.main(args=line.split(), standalone_mode=False)


def test_completion_takes_a_line_as_it_is() -> None:
    taken = take_as_typed(typer.main.get_command(app))
    taken.make_context("command", ["--model", "x", "--tp", "1", "--tp", "2"], resilient_parsing=True)


def test_a_command_line_of_text_loads_no_pydantic() -> None:
    code = (
        "from mla_calc.cli.main import run; import sys; assert run(sys.argv[1:]) == 0; print('pydantic' in sys.modules)"
    )
    for line in (["explore", "--print"], ["--version"]):
        done = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, text=True, check=True)
        assert done.stdout.endswith("False\n")


@pytest.mark.parametrize("line", ["--help --help", "--model x --model y --help"])
def test_help_is_given_whatever_else_stands_there(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    taken = take_as_typed(typer.main.get_command(app))
    taken.main(args=line.split(), standalone_mode=False)
    assert "--model" in capsys.readouterr().out
