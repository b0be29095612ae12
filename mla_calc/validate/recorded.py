"""Recorded measurements, each with the GPU, the model and the cache row that it is compared by.

A recording is a run of this tool (JSON) or anybody's CSV. A run records the dtype of its products, whose peak
bounds a row; of a CSV, which names the cache, it is found by operands.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ..costs.layouts import Layout, latent_row_bytes, load_layout
from ..data import looks_like_path, read_text
from ..errors import InputError, shown
from ..hardware.gpu import GPU
from ..hardware.load import gpu_of_device, load_gpu
from ..models.attention import MLA, Model
from ..models.load import load_model
from ..schema import MAX_DIMENSION, build
from ..sizes import parse_count
from .operands import products_of
from .record import Geometry, MeasuredCeilings, Row, Run
from .recorded_csv import FILLED_BY, Line, Lines, number, read_lines
from .store import check_row, run_of_text

DEFAULT_MODEL = "dsv3"
SCOPES = ("attention", "absorbed", "naive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """What the options say where a file does not; names as they were typed."""

    gpu: str | None = None
    model: str | None = None
    dtype: str | None = None
    mma_dtype: str | None = None
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One measured row; ``row.dtype`` is the dtype of the products whose peak bounds it."""

    row: Row
    gpu: GPU
    model: Model
    layout: Layout
    """How a cached row is stored; ``row.cache`` is its name."""
    row_bytes: int
    """Bytes of a cached row of one token and layer."""
    where: str
    """File and line, or file and index."""

    @property
    def mla(self) -> MLA:
        """The model's attention with the heads that the row has: those of one rank, and any number."""
        return replace(mla_of(self.model, self.where), heads=self.row.heads)

    @property
    def geometry(self) -> Geometry:
        """The attention's widths."""
        return geometry_of(self.model, self.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The rows of one file or of one run."""

    source: str
    rows: tuple[Recorded, ...]
    run: Run | None = None
    """``None``: a CSV, which has neither ceilings nor checks."""
    notes: tuple[str, ...] = ()

    @property
    def ceilings(self) -> MeasuredCeilings | None:
        """Those measured in the same run."""
        return self.run.ceilings if self.run else None


def read_recording(path: Path, fill: Fill) -> Recording:
    """The recording at ``path``: a run's JSON (by suffix or by its first character), anything else a CSV.

    Raises:
        InputError: a file that cannot be read or understood, named by file and line; names that no preset has;
            a column that is missing and that no option fills; a run of another GPU than ``fill.gpu``.
    """
    text = read_text(path)
    source = str(path)
    if path.suffix.lower() == ".json" or text.lstrip().startswith("{"):
        return recording_of_run(run_of_text(text, source), source, fill)
    return _recording_of_csv(text, source, fill)


def recording_of_run(run: Run, source: str, fill: Fill) -> Recording:
    """The rows of a run of this tool, on the GPU that it was measured on.

    Raises:
        InputError: no rows, names that no preset has, another GPU without ``fill.force``, or a model whose
            attention is not the one that was measured.
    """
    if fill.mma_dtype:
        raise InputError(f"--mma-dtype: {source} records the dtype of its products", "it is for a CSV")
    if not run.rows:
        raise InputError(f"{source}: the run holds no row: nothing was measured before it ended")
    presets = _Presets()
    gpu, notes = _gpu_of_run(run, source, fill, presets)
    model = presets.model(fill.model or run.geometry.model, source)
    if replace(geometry_of(model, source), model=run.geometry.model) != run.geometry:
        raise InputError(
            f"{source}: was measured with the attention of {run.geometry.model}; {model.name} has other widths",
            "--model takes the model, or its YAML or config, that was measured",
        )
    if fill.dtype:
        notes.append("--dtype is not used: every row of a run names its cache.")
    if run.finished is None:
        notes.append(f"The run was stopped before its end: it holds the {len(run.rows):,} rows measured until then.")
    rows = []
    for index, row in enumerate(run.rows):
        where = f"{source}: rows[{index}]"
        rows.append(_recorded(row, gpu, model, presets.layout(row.cache, where), where))
    return Recording(source=source, rows=tuple(rows), run=run, notes=(*notes, *run.notes))


def mla_of(model: Model, where: str) -> MLA:
    """The model's MLA shapes. Raises InputError for a model without a latent."""
    if model.mla is None:
        raise InputError(f"{where}: {model.name} has no latent (no kv_lora_rank): `validate` is about MLA")
    return model.mla


def geometry_of(model: Model, where: str) -> Geometry:
    """The widths of the model's attention, as a run records them."""
    mla = mla_of(model, where)
    return Geometry(
        model=model.name,
        kv_lora_rank=mla.kv_lora_rank,
        qk_rope_head_dim=mla.qk_rope_head_dim,
        qk_nope_head_dim=mla.qk_nope_head_dim,
        v_head_dim=mla.v_head_dim,
    )


_Preset = TypeVar("_Preset")


@dataclass(frozen=True, slots=True)
class _Presets:
    """Presets by the names that rows have, each read once. Errors begin with the place of the row."""

    known: dict[tuple[str, str], Any] = field(default_factory=dict)

    def gpu(self, name: str, where: str = "") -> GPU:
        return self._found("gpu", name, where, _gpu_named)

    def model(self, name: str, where: str = "") -> Model:
        return self._found("model", name, where, load_model)

    def layout(self, name: str, where: str = "") -> Layout:
        return self._found("dtype", name, where, load_layout)

    def cell(self, line: Line, column: str, option: str | None) -> str:
        """The name in a cell, or that of the option; a file's cell names a preset, an option may be a path."""
        name = line.values.get(column) or option
        if name is None:
            raise InputError(f"{line.where}: {column} is empty", f"{FILLED_BY[column]} fills it")
        if line.values.get(column) and (looks_like_path(name) or (name.lower() == "auto" and column == "gpu")):
            raise InputError(f"{line.where}: {column} is {shown(name)}: the name of a preset is expected")
        return name

    def _found(self, kind: str, name: str, where: str, load: Callable[[str], _Preset]) -> _Preset:
        found: _Preset | None = self.known.get((kind, name))
        if found is None:
            try:
                found = self.known[kind, name] = load(name)
            except InputError as error:
                raise InputError(f"{where}: {error}" if where else str(error), error.hint) from None
        return found


def _gpu_named(name: str) -> GPU:
    """A GPU by its preset's name or alias, or by the exact name that the runtime has for the device."""
    try:
        return load_gpu(name)
    except InputError:
        if looks_like_path(name) or name.strip().lower() == "auto":
            raise
        try:
            return gpu_of_device(name.strip())
        except InputError:
            pass
        raise


def _gpu_of_run(run: Run, source: str, fill: Fill, presets: _Presets) -> tuple[GPU, list[str]]:
    device = run.machine.device_name
    notes = [f"FORCED: the run was made on {device}, which is not {run.machine.gpu}."] if run.machine.forced else []
    if fill.gpu is None:
        try:
            return presets.gpu(run.machine.gpu, source), notes
        except InputError as error:
            raise InputError(str(error), "--gpu names its preset or YAML file") from None
    asked = presets.gpu(fill.gpu)
    if run.machine.gpu in (asked.name, *asked.aliases) or device in asked.device_names:
        return asked, notes
    if not fill.force:
        raise InputError(
            f"--gpu {asked.name}: {source} was recorded on {device}, which is another GPU",
            "--force compares them all the same, and the report says so",
        )
    return asked, [*notes, f"FORCED: rows measured on {device} are compared with the ceilings of {asked.name}."]


def _recording_of_csv(text: str, source: str, fill: Fill) -> Recording:
    filled = frozenset(name for name in FILLED_BY if getattr(fill, name))
    read = read_lines(text, source, filled)
    presets = _Presets()
    rows = tuple(_csv_row(line, fill, presets) for line in read.lines)
    return Recording(source=source, rows=rows, notes=tuple(_csv_notes(read, rows, fill)))


def _csv_row(line: Line, fill: Fill, presets: _Presets) -> Recorded:
    gpu = presets.gpu(presets.cell(line, "gpu", fill.gpu), line.where)
    model = presets.model(presets.cell(line, "model", fill.model or DEFAULT_MODEL), line.where)
    cache = presets.cell(line, "dtype", fill.dtype)
    layout = presets.layout(cache, line.where)
    mla = mla_of(model, line.where)
    kernel = line.values["kernel"]
    row_bytes = _row_bytes(layout, mla, line.where)
    row = build(
        Row,
        {
            "kernel": kernel,
            "scope": _scope(line),
            "dtype": fill.mma_dtype or products_of(cache, layout, row_bytes, mla, kernel, gpu),
            "cache": layout.name,
            **{name: _count(line, name) for name in ("heads", "batch", "queries", "context")},
            "time_us": number(line.values["time_us"], line.where, "time_us"),
            **{
                name: number(line.values[name], line.where, name)
                for name in ("p10_us", "p90_us")
                if line.values.get(name)
            },
        },
        line.where,
    )
    check_row(row, line.where)
    return _recorded(row, gpu, model, layout, line.where)


def _recorded(row: Row, gpu: GPU, model: Model, layout: Layout, where: str) -> Recorded:
    try:
        gpu.peak_flop_per_s(row.dtype)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    row_bytes = _row_bytes(layout, mla_of(model, where), where)
    return Recorded(row=row, gpu=gpu, model=model, layout=layout, row_bytes=row_bytes, where=where)


def _row_bytes(layout: Layout, mla: MLA, where: str) -> int:
    try:
        return latent_row_bytes(layout, mla)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _scope(line: Line) -> str:
    scope = line.values.get("scope", "").lower() or "attention"
    if scope not in SCOPES:
        raise InputError(f"{line.where}: scope is {shown(scope)}: one of {', '.join(SCOPES)} is accepted")
    return scope


def _count(line: Line, column: str) -> int:
    return parse_count(line.values[column], f"{line.where}: {column}", most=MAX_DIMENSION)


def _csv_notes(read: Lines, rows: tuple[Recorded, ...], fill: Fill) -> list[str]:
    notes = []
    if read.ignored:
        notes.append(f"Columns that are not read: {', '.join(read.ignored)}.")
    if fill.model is None and not _named(read, "model"):
        notes.append(f"Rows without a model are taken as those of {load_model(DEFAULT_MODEL).name} (--model).")
    if "scope" not in read.columns:
        notes.append("There is no scope column: every row is taken as the attention kernel alone.")
    if fill.mma_dtype:
        notes.append(f"Bounds use the {fill.mma_dtype} peak for every row (--mma-dtype).")
    elif any(item.row.dtype not in ("bf16", "fp16") for item in rows):
        notes.append(
            "Rows of a narrow cache are bound by the fastest products that a kernel could make of them: a bound must "
            "hold for any kernel. --mma-dtype bf16 takes the peak of kernels that widen their rows."
        )
    notes += [
        f"{option} is not used: every row of the file names its own."
        for name, option in (*FILLED_BY.items(), ("model", "--model"))
        if getattr(fill, name) and _named(read, name)
    ]
    return notes


def _named(read: Lines, column: str) -> bool:
    """Whether every line has a value in ``column``."""
    return all(line.values.get(column) for line in read.lines)
