"""Recorded measurements, each with the GPU, the model and the cache row that it is compared by.

A recording is a run of this tool (JSON) or anybody's CSV. A run records the dtype of its products, whose peak
bounds a row; of a CSV, which names the cache, it is found by operands.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from ..costs.layouts import Layout, latent_row_bytes
from ..data import read_text
from ..errors import InputError, shown
from ..hardware.gpu import GPU
from ..models.attention import MLA, Model
from ..models.load import load_model
from ..report import format as fmt
from ..schema import MAX_DIMENSION, build
from ..sizes import parse_count
from .operands import products_of
from .record import Geometry, MeasuredCeilings, Row, Run
from .recorded_csv import FILLED_BY, Line, Lines, number, read_lines
from .recorded_names import GpuOfLines, Presets, forced_note, gpu_of_run
from .store import MAX_RECORDING_BYTES, check_row, run_of_text
from .timed import geometry_of, mla_of, rank_mla

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
        return rank_mla(self.geometry, self.row.heads)

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
    forced: bool = False
    """Whether rows are compared with another GPU than theirs, by ``--force`` now or when they were measured."""

    @property
    def ceilings(self) -> MeasuredCeilings | None:
        """Those measured in the same run."""
        return self.run.ceilings if self.run else None


def read_recording(path: Path, fill: Fill) -> Recording:
    """The recording at ``path``: a run's JSON (by suffix or by its first character), anything else a CSV.

    Raises:
        InputError: a file that cannot be read or understood, named by file and line; names that no preset has;
            a column that is missing and that no option fills; rows of another GPU than ``fill.gpu`` without
            ``fill.force``; more heads than the model has.
    """
    text = read_text(path, MAX_RECORDING_BYTES, "a recording")
    source = str(path)
    if path.suffix.lower() == ".json" or text.lstrip().startswith("{"):
        return recording_of_run(run_of_text(text, source), source, fill)
    return _recording_of_csv(text, source, fill)


def recording_of_run(run: Run, source: str, fill: Fill) -> Recording:
    """The rows of a run of this tool, on the GPU that it was measured on.

    Raises:
        InputError: no rows, names that no preset has, another GPU without ``fill.force``, a model whose
            attention is not the one that was measured, or more heads than it has.
    """
    if fill.mma_dtype:
        raise InputError(f"--mma-dtype: {source} records the dtype of its products", "it is for a CSV")
    if not run.rows:
        raise InputError(f"{source}: the run holds no row: nothing was measured before it ended")
    presets = Presets()
    gpu, forced = gpu_of_run(run.machine, source, _options(fill, presets), presets, force=fill.force)
    notes = [forced] if forced else []
    model = presets.model(fill.model or run.geometry.model, source)
    _check_widths(run.geometry, model, source)
    if model.name != run.geometry.model:
        notes.append(f"Measured as {run.geometry.model}, compared as {model.name}: the widths are the same.")
    if fill.dtype:
        notes.append("--dtype is not used: every row of a run names its cache.")
    if run.finished is None:
        by = f" ({run.stopped})" if run.stopped else ""
        held = fmt.counted(len(run.rows), "row")
        notes.append(f"The run was stopped before its end{by}: it holds the {held} measured until then.")
    uncaptured = sum(row.uncaptured is not None for row in run.rows)
    if uncaptured:
        notes.append(
            f"Without a CUDA graph, launches in their times: {fmt.counted(uncaptured, 'row')}. They have bounds; no "
            "estimate is judged or fitted by them, and no crossover is made from them."
        )
    places = [(row, f"{source}: rows[{index}]") for index, row in enumerate(run.rows)]
    rows = tuple(_recorded(row, gpu, model, presets.layout(row.cache, where), where) for row, where in places)
    return Recording(
        source=source,
        rows=rows,
        run=run,
        notes=(*notes, *_row_notes(rows), *run.notes),
        forced=forced is not None,
    )


def _options(fill: Fill, presets: Presets) -> GPU | None:
    """The GPU of ``--gpu``, if it is given. What the options name is read whether rows need it or not.

    Raises:
        InputError: names that no preset has, in an option; no line of the file is to blame.
    """
    if fill.model:
        mla_of(presets.model(fill.model), "--model")
    if fill.dtype:
        presets.layout(fill.dtype)
    return presets.gpu(fill.gpu) if fill.gpu else None


def _check_widths(measured: Geometry, model: Model, source: str) -> None:
    own = geometry_of(model, source)
    differ = [
        f"{item.name} {getattr(measured, item.name)}, not {getattr(own, item.name)}"
        for item in fields(Geometry)
        if item.name != "model" and getattr(measured, item.name) != getattr(own, item.name)
    ]
    if differ:
        raise InputError(
            f"{source}: was measured with other widths than those of {model.name}: {'; '.join(differ)}",
            "--model takes the model, or its YAML or config, that was measured",
        )


def _recording_of_csv(text: str, source: str, fill: Fill) -> Recording:
    filled = frozenset(name for name in FILLED_BY if getattr(fill, name))
    read = read_lines(text, source, filled)
    presets = Presets()
    asked = _options(fill, presets)
    gpus = GpuOfLines(presets, asked, fill.gpu, fills=not _named(read, "gpu"), force=fill.force)
    rows = tuple(_csv_row(line, fill, presets, gpus) for line in read.lines)
    notes = [forced_note(list(gpus.others), asked)] if asked and gpus.others else []
    notes += [*_csv_notes(read, rows, fill), *_row_notes(rows)]
    return Recording(source=source, rows=rows, notes=tuple(notes), forced=bool(gpus.others))


def _csv_row(line: Line, fill: Fill, presets: Presets, gpus: GpuOfLines) -> Recorded:
    gpu = gpus.of(line)
    if fill.mma_dtype:
        _check_peak(gpu, fill.mma_dtype, f"--mma-dtype {fill.mma_dtype}")
    model = presets.model(presets.cell(line, "model", fill.model or DEFAULT_MODEL), line.where)
    cache = presets.cell(line, "dtype", fill.dtype)
    layout = presets.layout(cache, line.where)
    mla = mla_of(model, line.where)
    row_bytes = _row_bytes(layout, mla, line.where)
    row = build(
        Row,
        {
            "kernel": line.values["kernel"],
            "scope": _scope(line),
            "dtype": fill.mma_dtype or products_of(cache, layout, row_bytes, mla, gpu),
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
    _check_peak(gpu, row.dtype, where)
    mla = mla_of(model, where)
    if row.heads > mla.heads:
        raise InputError(
            f"{where}: {row.heads:,} heads are more than the {mla.heads:,} of {model.name}",
            "heads are those of one rank; --model says whose attention it is",
        )
    row_bytes = _row_bytes(layout, mla, where)
    return Recorded(row=row, gpu=gpu, model=model, layout=layout, row_bytes=row_bytes, where=where)


def _check_peak(gpu: GPU, dtype: str, where: str) -> None:
    try:
        gpu.peak_flop_per_s(dtype)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _row_notes(rows: Iterable[Recorded]) -> list[str]:
    """What is odd in rows: heads that no split of the model over ranks gives, and cells that stand twice."""
    odd: dict[str, set[int]] = {}
    cells: Counter[tuple[object, ...]] = Counter()
    for item in rows:
        row = item.row
        heads = mla_of(item.model).heads
        if heads % row.heads:
            odd.setdefault(f"{heads:,} of {item.model.name}", set()).add(row.heads)
        shape = (row.kernel, row.scope, row.dtype, row.cache, row.heads, row.batch, row.queries, row.context)
        cells[item.gpu.name, item.model.name, *shape] += 1
    notes = [
        f"Heads that do not divide the {whole}, as those of one rank would: {', '.join(map(str, sorted(found)))}."
        for whole, found in odd.items()
    ]
    twice = [count for count in cells.values() if count > 1]
    if twice:
        again = fmt.counted(sum(twice) - len(twice), "row")
        notes.append(f"{again} of a cell that stood before: {fmt.counted(len(twice), 'cell')} count more than once.")
    return notes


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
        for name, option in (("dtype", FILLED_BY["dtype"]), ("model", "--model"))
        if getattr(fill, name) and _named(read, name)
    ]
    return notes


def _named(read: Lines, column: str) -> bool:
    """Whether every line has a value in ``column``."""
    return all(line.values.get(column) for line in read.lines)
