"""Runs the examples of README.md and docs/*.md: what a page shows is what the command prints.

A ``console`` block holds ``$ mla-calc ...`` lines, each followed by its output. A line ``...`` stands for lines
that are left out, blanks at the end of a line do not count, and ``$ echo $?`` shows the exit code of the command
before it. It runs in a folder of its own that holds the page's files: the blocks that follow a comment
``<!-- file: NAME -->``, and files of the repository, each named by a comment ``<!-- repository: PATH -->`` and
reached by that path. A ``python`` block runs after those before it, in the repository's root. No example needs another
one to have run.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from difflib import unified_diff
from pathlib import Path

from sybil import Document, Example, Region, Sybil

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^<!-- file: ([\w.-]+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINKED = re.compile(r"^<!-- repository: ([\w./-]+) -->$", re.MULTILINE)
OMITTED = "..."
ROOT = Path(__file__).parent

os.environ.pop("COLUMNS", None)  # it says how wide what the commands print is, and pages and tests show the usual


def console_blocks(document: Document) -> Iterator[Region]:
    """The console blocks of a page, as examples."""
    for block in CONSOLE.finditer(document.text):
        yield Region(block.start(), block.end(), block[1], run_console)


def run_console(example: Example) -> str | None:
    """Run a block's commands; the first that prints something else than the page says is returned as a diff."""
    code = 0
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        put_files(example.document.text)
        for command, expected in commands_of(example.parsed):
            printed, code = run_command(command, code)
            if not matches(expected, printed):
                lines = unified_diff(expected, printed, "the page", "the command", lineterm="")
                return "\n".join((f"$ {command}", *lines))
    return None


def put_files(page: str) -> None:
    """Put the files that a page holds or names into the current folder."""
    for name, text in FILE.findall(page):
        Path(name).write_text(text, encoding="utf-8")
    for name in LINKED.findall(page):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).symlink_to((ROOT / name).resolve(strict=True))


def commands_of(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a block with the lines that the page shows under it."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert not parts[0].strip(), f"output without a command: {parts[0]!r}"
    return [(command, stripped(shown)) for command, shown in zip(parts[1::2], parts[2::2], strict=True)]


def run_command(command: str, last_code: int) -> tuple[list[str], int]:
    """The lines that a command prints, stdout before stderr, and its exit code."""
    if command == "echo $?":
        return [str(last_code)], 0
    program, *arguments = shlex.split(command)
    if program == "cat":
        return stripped("".join(Path(name).read_text(encoding="utf-8") for name in arguments)), 0
    assert program == "mla-calc", f"a console block runs mla-calc, not {program}"
    from mla_calc.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    return stripped(out.getvalue() + err.getvalue()), code


def stripped(text: str) -> list[str]:
    """Lines without the blanks at their ends and without empty lines at the end."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether the lines are the same, where an expected ``...`` stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == OMITTED else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def python_blocks(document: Document) -> Iterator[Region]:
    """The python blocks of a page, each as the lines of the page up to its end with all but code blanked."""
    blanked, done = "", 0
    for block in PYTHON.finditer(document.text):
        blanked += "\n" * document.text.count("\n", done, block.start(1)) + block[1]
        done = block.end(1)
        yield Region(block.start(), block.end(), blanked, run_python)


def run_python(example: Example) -> None:
    """Run a block after those before it; line numbers are the page's."""
    with chdir(ROOT):
        exec(compile(example.parsed, example.path, "exec"), {"__name__": "__main__"})


pytest_collect_file = Sybil(
    parsers=[console_blocks, python_blocks],
    patterns=["README.md", "docs/*.md"],
).pytest()
