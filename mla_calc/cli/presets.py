"""``mla-calc presets``: the data, its sources, its arithmetic, and its JSON Schema."""

from __future__ import annotations

import json
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..checking import KINDS, CheckResult, check_presets
from ..data import find_preset, names_of, preset_files, read_mapping
from ..errors import InputError, nearest, shown
from ..report import format as fmt
from ..report.record import Cell, Report, Table, plain
from ..report.write import emit
from ..schema import adapter, build
from . import complete, options

app = options.command_app()

Kind = Enum("Kind", {name: name for name in KINDS}, type=str)  # type: ignore[misc]
MODEL = Kind("model")
TABLES_OF_THEIR_OWN = ("sources", "notes", "expect", "calibration", "boundaries", "crossovers")


@app.callback()
def presets() -> None:
    """The presets: list, show one with its sources, check published figures, print the JSON Schema."""


@app.command("list")
def list_presets(
    kind: Annotated[Kind | None, typer.Option("--kind", help="Only presets of this kind.")] = None,
    format_name: options.Format = None,
    output: options.Output = None,
) -> None:
    """Every preset: its name, what it answers to, and where its figures were read."""
    wanted = [kind.value] if kind else list(KINDS)
    entries = [entry for name in wanted for entry in _entries(name)]
    rows = tuple(
        (
            Cell(f"presets[{index}].id", "text"),
            Cell(f"presets[{index}].kind", "text"),
            _short_list([name for name in entry["aliases"] if "/" not in name]),
        )
        for index, entry in enumerate(entries)
    )
    counted = ", ".join(f"{name} {sum(entry['kind'] == name for entry in entries)}" for name in _kinds(entries))
    report = Report(
        command="presets-list",
        title=f"{fmt.counted(len(entries), 'preset')}   {counted}",
        inputs={"kind": kind.value if kind else None},
        results={"presets": entries},
        tables=(Table(("preset", "kind", "also"), rows),),
        sentence="`mla-calc presets show NAME` has the figures with their sources.",
        rows_path="presets",
    )
    emit(report, format_name, output, False)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A preset's name or alias.", autocompletion=complete.anything)],
    format_name: options.Format = None,
    output: options.Output = None,
) -> None:
    """One preset: every figure, and its sources; what runs measured in short, the JSON has all of it."""
    kind, path, mapping = _find(name)
    record = plain(build(KINDS[kind][1], mapping, path.name))
    figures = {key: value for key, value in record.items() if key not in TABLES_OF_THEIR_OWN}
    rows = tuple((key, Cell(f"preset.{key}", "text")) for key in _leaves(figures))
    sources = [f"{field}: {text}" for field, texts in record.get("sources", {}).items() for text in texts]
    report = Report(
        command="presets-show",
        title=f"{record['name']}   {kind} preset {path.stem}",
        inputs={"name": name},
        results={"kind": kind, "id": path.stem, "preset": record},
        tables=(Table(("figure", "value"), rows), *_run_tables(record), *_expect_table(record)),
        sentence="",
        notes=tuple(record.get("notes", ())),
        sources=tuple(sources),
        show_sources=True,
    )
    emit(report, format_name, output, False)


@app.command("check")
def check(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="YAML presets, or folders of them; none checks our own.")
    ] = None,
    format_name: options.Format = None,
    output: options.Output = None,
) -> None:
    """Recompute every published figure and lint the data; exit 1 if anything does not hold."""
    result = check_presets(paths or ())
    emit(_check_report(result, paths or []), format_name, output, False)
    if result.failures:
        raise typer.Exit(1)


@app.command("schema")
def schema(
    kind: Annotated[Kind, typer.Argument(help="Which kind of preset.")] = MODEL,
) -> None:
    """The JSON Schema of a kind of preset, for editors."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"mla-calc {kind.value} preset",
        **adapter(KINDS[kind.value][1]).json_schema(),
    }
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def _leaves(value: Any, prefix: str = "") -> list[str]:
    """Paths of all figures that are set; a list of plain values is one of them."""
    found = []
    for key, child in value.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(child, dict):
            found += _leaves(child, path)
        elif isinstance(child, list) and any(isinstance(item, dict) for item in child):
            found += [leaf for index, item in enumerate(child) for leaf in _leaves(item, f"{path}[{index}]")]
        elif child not in (None, []):
            found.append(path)
    return found


def _short_list(names: list[str], most: int = 40) -> str:
    """As many names as fit, whole; an ellipsis stands for the rest."""
    text = ""
    for name in names:
        longer = f"{text}, {name}" if text else name
        if len(longer) > most:
            return f"{text}, ..." if text else "..."
        text = longer
    return text


def _entries(kind: str) -> list[dict[str, Any]]:
    folder = KINDS[kind][0]
    return [_entry(kind, path, read_mapping(path)) for path in preset_files(folder)]


def _entry(kind: str, path: Path, mapping: dict[str, Any]) -> dict[str, Any]:
    sources = mapping.get("sources") or {}
    first = next((texts[0] for texts in (sources.get("default"), *sources.values()) if texts), None)
    shown_kind = next((name for name in ("mla", "gqa") if name in mapping), kind)
    return {
        "id": path.stem,
        "name": mapping["name"],
        "kind": shown_kind,
        "aliases": [name for name in names_of(mapping, path)[2:] if name],
        "source": first,
    }


def _kinds(entries: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(entry["kind"] for entry in entries))


def _find(name: str) -> tuple[str, Path, dict[str, Any]]:
    for kind, (folder, _) in KINDS.items():
        try:
            path, mapping = find_preset(folder, name)
        except InputError:
            continue
        return kind, path, mapping
    raise InputError(
        f"no preset is named {shown(name)}",
        nearest(name, complete.anything("")) or "`mla-calc presets list` shows all of them",
    )


def _run_tables(record: dict[str, Any]) -> tuple[Table, ...]:
    """What runs on a GPU left in its preset: a line for each kernel and each path, and how many crossovers."""
    kernels: tuple[tuple[str | Cell, ...], ...] = tuple(
        (
            *(Cell(f"preset.calibration[{index}].{key}", "text") for key in ("path", "part", "kernel")),
            *(Cell(f"preset.calibration[{index}].{key}", "text") for key in ("dtype", "cache")),
            Cell(f"preset.calibration[{index}].fit.rows"),
            Cell(f"preset.calibration[{index}].fit.held_out.median_ape", "percent") if item["fit"]["held_out"] else "-",
        )
        for index, item in enumerate(record.get("calibration", ()))
    )
    paths: tuple[tuple[str | Cell, ...], ...] = tuple(
        (
            *(Cell(f"preset.boundaries[{index}].{key}", "text") for key in ("path", "kernel", "dtype", "cache")),
            Cell(f"preset.boundaries[{index}].us", "number"),
            Cell(f"preset.boundaries[{index}].fit.rows"),
            Cell(f"preset.boundaries[{index}].fit.held_out.median_ape", "percent") if item["fit"]["held_out"] else "-",
        )
        for index, item in enumerate(record.get("boundaries", ()))
    )
    met: tuple[tuple[str | Cell, ...], ...] = tuple(
        (
            *(Cell(f"preset.crossovers[{index}].{key}", "text") for key in ("run", "dtype", "cache")),
            f"{len(item['at']):,}",
        )
        for index, item in enumerate(record.get("crossovers", ()))
    )
    tables = (
        Table(("path", "part", "kernel", "dtype", "cache", "rows", "error"), kernels, "Calibrated (held-out median)"),
        Table(
            ("path", "kernel", "dtype", "cache", "us", "rows", "error"),
            paths,
            "Whole paths, beyond the sum of their parts",
        ),
        Table(("run", "dtype", "cache", "crossovers"), met, "Crossovers measured"),
    )
    return tuple(table for table in tables if table.rows)


def _expect_table(record: dict[str, Any]) -> tuple[Table, ...]:
    rows = tuple(
        (
            f"{item['command']} {item['key']}",
            Cell(f"preset.expect[{index}].value", "number"),
            item["unit"],
        )
        for index, item in enumerate(record.get("expect", ()))
    )
    return (Table(("published figure", "value", "unit"), rows, "Recomputed by `presets check`"),) if rows else ()


def _check_report(result: CheckResult, paths: list[Path]) -> Report:
    rows = tuple(
        tuple(Cell(f"failures[{index}].{field}", "text") for field in ("preset", "field", "message"))
        for index in range(len(result.failures))
    )
    figures = fmt.counted(result.figures, "published figure")
    wrong = len(result.failures)
    verdict = f"{wrong} {'does' if wrong == 1 else 'do'} not hold" if wrong else "all hold"
    return Report(
        command="presets-check",
        title=f"{fmt.counted(result.presets, 'preset')} checked   {figures} recomputed",
        inputs={"paths": [str(path) for path in paths]},
        results=plain(result),
        tables=(Table(("preset", "field", "what does not hold"), rows),) if rows else (),
        sentence=f"Schema, sources, lints and figures: {verdict}.",
        csv_columns=("preset", "field", "message"),
        rows_path="failures",
    )
