"""Start-up of ``mla-calc cache`` against the smallest typer and rich program with as many commands and options.

Both are started as installed programs are: a script of two lines imports a package whose bytecode is cached. They
run in turn, under the same interpreter. ``--imports`` lists what each imports and how long it takes.
"""

from __future__ import annotations

import argparse
import inspect
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mla_calc.cli.cache import cache
from mla_calc.cli.main import COMMANDS

SCRIPTS = {
    "mla-calc": "from mla_calc.cli.main import main\n\nmain()\n",
    "minimal": "from minimal_app import app\n\napp()\n",
}
ARGUMENTS = ["cache", "--model", "dsv3"]

HEAD = """\
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

app = typer.Typer()


def show(title):
    console = Console(highlight=False)
    table = Table(title=title, box=None)
    for header in {headers}:
        table.add_column(header, justify="right")
    for row in {rows}:
        table.add_row(*row)
    console.print(table)
"""
COMMAND = """

@app.command()
def {name}(
    model: Annotated[str, typer.Option("--model", "-m", help="A model.")],
{options}
) -> None:
    \"\"\"The {name} command.\"\"\"
    show(model)
"""
OPTION = '    option{i}: Annotated[str, typer.Option("--option{i}", help="Option number {i}.")] = "1",'


def minimal_app() -> str:
    """The source of the smallest comparable program: the same counts of commands, options and table cells."""
    options = len(inspect.signature(cache).parameters) - 1
    text = "\n".join(OPTION.format(i=index) for index in range(options))
    head = HEAD.format(
        headers=["", "per token", "", ""], rows=[["latent, cached", "70,272 B", "68.6 KiB", "70.3 kB"]] * 2
    )
    return head + "".join(COMMAND.format(name=name, options=text) for name in COMMANDS)


def environment(folder: Path) -> dict[str, str]:
    """Bytecode is cached in ``folder``, also where this environment or an editable install would have none."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def seconds(script: Path) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, str(script), *ARGUMENTS],
        stdout=subprocess.DEVNULL,
        check=True,
        env=environment(script.parent),
    )
    return time.perf_counter() - start


def alternate(scripts: dict[str, Path], runs: int, warm_up: int = 3) -> dict[str, list[float]]:
    """Wall seconds of every run; the programs take turns, so that a slow minute hits both."""
    times: dict[str, list[float]] = {name: [] for name in scripts}
    for turn in range(warm_up + runs):
        for name, script in scripts.items():
            taken = seconds(script)
            if turn >= warm_up:
                times[name].append(taken)
    return times


def imports(script: Path, most: int) -> list[tuple[int, int, str]]:
    """(microseconds of itself, with what it imports, module), the slowest of themselves first."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(script), *ARGUMENTS],
        capture_output=True,
        text=True,
        check=True,
        env=environment(script.parent),
    )
    found = re.findall(r"import time:\s+(\d+) \|\s+(\d+) \|\s*(\S+)", done.stderr)
    return sorted(((int(own), int(whole), name) for own, whole, name in found), reverse=True)[:most]


def machine() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", info.read_text()) if info.exists() else [platform.processor()]
    return f"{names[0] if names else 'unknown CPU'}, {os.cpu_count()} cores, Python {platform.python_version()}"


def report(times: dict[str, list[float]]) -> None:
    print(machine())
    for name, taken in times.items():
        low, middle, high = statistics.quantiles(taken, n=4)
        print(
            f"{name:10} median {middle * 1e3:6.1f} ms, quartiles {low * 1e3:.1f} to {high * 1e3:.1f}, {len(taken)} runs"
        )
    ratio = statistics.median(times["mla-calc"]) / statistics.median(times["minimal"])
    paired = sorted(ours / theirs for ours, theirs in zip(times["mla-calc"], times["minimal"], strict=True))
    print(f"ratio of medians {ratio:.3f}; of pairs, {paired[len(paired) // 4]:.3f} to {paired[-len(paired) // 4]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--imports", type=int, default=0, metavar="N", help="list the N slowest imports of each")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scripts = {name: Path(folder, f"run_{name.replace('-', '_')}.py") for name in SCRIPTS}
        for name, script in scripts.items():
            script.write_text(SCRIPTS[name], encoding="utf-8")
        Path(folder, "minimal_app.py").write_text(minimal_app(), encoding="utf-8")
        report(alternate(scripts, chosen.runs))
        for name, script in scripts.items() if chosen.imports else ():
            print(f"\n{name}: imports, microseconds: itself, with its own imports")
            for own, whole, module in imports(script, chosen.imports):
                print(f"{own:8,} {whole:8,}  {module}")


if __name__ == "__main__":
    main()
