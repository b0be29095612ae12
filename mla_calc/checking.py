"""Checking presets, ours and other people's: the schema, the lints, and every published figure recomputed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    mappings: list[tuple[Path, dict[str, Any]]] = []
    failures: list[Failure] = []
    figures = 0
    files = _files(paths)
    for path in files:
        try:
            mapping = read_mapping(path)
        except InputError as error:
            failures.append(Failure(preset=_label(path), field="the file", message=str(error)))
            continue
        mappings.append((path, mapping))
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
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        inside = sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")]) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{path}: the folder holds no YAML file")
        found += inside
    return found


def _check_one(path: Path, mapping: dict[str, Any]) -> tuple[list[Failure], int]:
    name = _label(path)
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
        model = record if isinstance(record, Model) else _model_of(expected)
        found = lookup(plain(recompute(expected, model, record if isinstance(record, GPU) else None)), expected.key)
    except InputError as error:
        return [(field, str(error))]
    wrong = miss(expected, found)
    return [(field, f"{wrong} ({expected.source})")] if wrong else []


def _model_of(expected: Expected) -> Model:
    if expected.options.model is None:
        raise InputError("a GPU's figure needs options.model")
    return load_model(expected.options.model)


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


def _claimed_twice(mappings: Sequence[tuple[Path, dict[str, Any]]]) -> list[Failure]:
    """Names that two presets of one kind answer to: which one is meant would hang on the order of files.

    Files of other people are held against ours too.
    """
    checked = {path.resolve() for path, _ in mappings}
    ours = [path for folder, _ in KINDS.values() for path in preset_files(folder) if path.resolve() not in checked]
    claimed: dict[tuple[str | None, str], Path] = {}
    for path in ours:
        mapping = read_mapping(path)
        claimed |= {(kind_of(mapping), name): path for name in _lower_names(mapping, path)}
    failures = []
    for path, mapping in mappings:
        for name in sorted(_lower_names(mapping, path)):
            first = claimed.setdefault((kind_of(mapping), name), path)
            if first != path:
                message = f"{name!r} is claimed by {_label(first)} too"
                failures.append(Failure(preset=_label(path), field="aliases", message=message))
    return failures


def _lower_names(mapping: dict[str, Any], path: Path) -> set[str]:
    """Every name that must be one preset's own: those it answers to, and the devices that it is for."""
    devices = mapping.get("device_names")
    named = [*names_of(mapping, path), *(map(str, devices) if isinstance(devices, list) else ())]
    return {name.lower() for name in named if name}


def _label(path: Path) -> str:
    """A preset as failures name it: ours by folder and file, others by their path."""
    return str(path.relative_to(presets_root())) if path.is_relative_to(presets_root()) else str(path)
