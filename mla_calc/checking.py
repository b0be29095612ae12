"""Checking presets, ours and other people's: the schema, the lints, and every published figure recomputed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .costs.expect import miss, recompute
from .costs.layouts import Layout
from .data import NOUNS, TELLING_KEYS, kind_of, names_of, preset_files, presets_root, read_mapping
from .engines.preset import Engine
from .errors import InputError
from .expected import Expected
from .hardware.gpu import GPU
from .hardware.lint import lint as lint_gpu
from .hardware.load import shipped_gpus
from .models.attention import Model
from .models.lint import lint as lint_model
from .models.load import load_model
from .report.record import lookup, plain
from .schema import build, problems

KINDS: dict[str, tuple[str, type[Any]]] = {
    "model": ("models", Model),
    "gpu": ("gpus", GPU),
    "engine": ("engines", Engine),
    "layout": ("layouts", Layout),
}
"""Kind of preset as the command line calls it: its folder and its record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that does not hold in one preset."""

    preset: str
    field: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What was checked and what did not hold."""

    presets: int
    figures: int
    """Published figures that were recomputed."""
    failures: tuple[Failure, ...]


def check_presets(paths: Sequence[Path] = ()) -> CheckResult:
    """Check the presets at ``paths`` (files, or folders of YAML files), or all that come with the package.

    Raises:
        InputError: a path that cannot be read, or a folder without a YAML file.
    """
    files = _files(paths)
    mappings = [(path, read_mapping(path)) for path in files]
    failures: list[Failure] = []
    figures = 0
    for path, mapping in mappings:
        found, counted = _check_one(path, mapping)
        failures += found
        figures += counted
    failures += _claimed_twice(mappings)
    return CheckResult(presets=len(files), figures=figures, failures=tuple(failures))


def _files(paths: Sequence[Path]) -> list[Path]:
    if not paths:
        return [path for folder, _ in KINDS.values() for path in preset_files(folder)]
    found: list[Path] = []
    for path in paths:
        inside = sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")]) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{path}: the folder holds no YAML file")
        found += inside
    return found


def _check_one(path: Path, mapping: dict[str, Any]) -> tuple[list[Failure], int]:
    name = str(path.relative_to(presets_root())) if path.is_relative_to(presets_root()) else str(path)
    folder = kind_of(mapping)
    if folder is None:
        keys = ", ".join(f"{key} (a {NOUNS[known]})" for known, key in TELLING_KEYS.items())
        return [Failure(preset=name, field="the file", message=f"is no preset: none of {keys} is a key of it")], 0
    kind, record_type = next((kind, record) for kind, (known, record) in KINDS.items() if known == folder)
    wrong = problems(record_type, mapping)
    if wrong:
        return [Failure(preset=name, field=field, message=message) for field, message in wrong], 0
    record = build(record_type, mapping, name)
    doubts = _LINTS[kind](record)
    expects: tuple[Expected, ...] = getattr(record, "expect", ())
    doubts += [doubt for index, item in enumerate(expects) for doubt in _figure(index, item, record)]
    return [Failure(preset=name, field=field, message=message) for field, message in doubts], len(expects)


def _figure(index: int, expected: Expected, record: Model | GPU) -> list[tuple[str, str]]:
    """The doubt about one published figure, if any."""
    field = f"expect[{index}] {expected.key}"
    try:
        model = record if isinstance(record, Model) else load_model(str(expected.options.get("model", "")))
        found = lookup(plain(recompute(expected, model, record if isinstance(record, GPU) else None)), expected.key)
    except InputError as error:
        return [(field, str(error))]
    wrong = miss(expected, found)
    return [(field, f"{wrong} ({expected.source})")] if wrong else []


def _lint_engine(engine: Engine) -> list[tuple[str, str]]:
    named = {backend.name for backend in engine.backends}
    laddered = [
        name
        for ladder in engine.ladder
        for name in (*ladder.dense, *(name for tail in ladder.sparse for name in tail.backends))
    ]
    unknown = [
        ("ladder", f"names {name}, which is no backend here") for name in laddered if named and name not in named
    ]
    return unknown if engine.registry and len(named) >= engine.registry.mla else []


def _lint_layout(layout: Layout) -> list[tuple[str, str]]:
    return [] if layout.sources.get("default") else [("sources", "has no default source")]


def _lint_gpu(gpu: GPU) -> list[tuple[str, str]]:
    return list(lint_gpu(gpu, shipped_gpus()))


_LINTS: dict[str, Callable[[Any], list[tuple[str, str]]]] = {
    "model": lint_model,
    "gpu": _lint_gpu,
    "engine": _lint_engine,
    "layout": _lint_layout,
}


def _claimed_twice(mappings: Iterable[tuple[Path, dict[str, Any]]]) -> list[Failure]:
    """Names that two presets of one kind answer to: which one is meant would hang on the order of files."""
    claimed: dict[tuple[str | None, str], Path] = {}
    failures = []
    for path, mapping in mappings:
        for name in {name.lower() for name in names_of(mapping, path) if name}:
            first = claimed.setdefault((kind_of(mapping), name), path)
            if first != path:
                failures.append(
                    Failure(preset=path.name, field="aliases", message=f"{name!r} is claimed by {first.name} too")
                )
    return failures
