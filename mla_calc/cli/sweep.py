"""``mla-calc sweep``: a grid of points to CSV, JSON or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..costs.grid import Axes, Setting, Sweep, check_grid, chunks, grid_points, left_out
from ..costs.layouts import load_layout
from ..costs.sparse import indexer_of
from ..costs.sweeps import SPARSE_SWEEPS, SWEEPS
from ..costs.workspace import VLLM, WorkspaceRule
from ..engines.load import load_engine
from ..engines.preset import Engine
from ..errors import InputError, nearest
from ..hardware.gpu import GPU
from ..models.attention import Model
from ..models.load import load_model
from ..report.columns import FORMATS, Envelope, chosen_format, write
from ..report.write import STDOUT
from ..sizes import MAX_TOKENS, parse_counts
from . import complete, options, request
from . import sparse as dsa

app = options.command_app()

MOST = {"tp": request.MAX_TP, "block_size": request.MAX_BLOCK, "max_num_seqs": request.MAX_SEQS}
"""Largest value of an axis, where it is not that of a number of tokens."""
ALWAYS = frozenset({"command", "model", "dtype", "format_name", "output"})
"""Parameters that every sweep takes."""
SETTING_OPTIONS = {
    "ceilings": ("gpu", "mma_dtype"),
    "causal": ("causal",),
    "weight_bytes": ("weight_bytes",),
    "indexer": ("sparse",),
    "rule": ("engine",),
}
"""Parameters behind the fields of a setting."""


@app.command()
def sweep(
    ctx: typer.Context,
    model: options.Model,
    command: Annotated[
        str,
        typer.Argument(
            help="Whose figures: flops (both paths), cache, intensity or workspace.",
            autocompletion=complete.one_of(SWEEPS),
        ),
    ] = "flops",
    gpu: options.Gpu = None,
    tp: options.Tp = "1",
    batch: options.Batch = "1",
    queries: options.Queries = "1",
    context: options.Context = "4096",
    dtype: options.Dtype = "bf16",
    mma_dtype: options.MmaDtype = "bf16",
    weight_bytes: options.WeightBytes = "2",
    causal: options.Causal = True,
    sparse: options.Sparse = False,
    max_model_len: options.MaxModelLen = None,
    max_num_seqs: options.MaxNumSeqs = "256",
    block_size: options.BlockSize = "64",
    engine: Annotated[
        str, typer.Option("--engine", help="Whose workspace rule: vllm@0.29.", autocompletion=complete.engines)
    ] = "vllm",
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="csv, json or parquet.",
            autocompletion=complete.one_of(FORMATS),
            show_default="the suffix of --output, or csv",
        ),
    ] = None,
    output: options.Output = None,
) -> None:
    """Every point of a grid to CSV, JSON or Parquet: millions of points in seconds, one row each."""
    output = None if output == STDOUT else output
    chosen = _sweep_of(command, sparse)
    _check_options(ctx, command, chosen)
    form, loaded = chosen_format(format_name, output), load_model(model)
    if chosen.mla_only:
        request.mla_of(loaded, f"sweep {command}")
    device, ceilings = request.ceilings_of(gpu, mma_dtype)
    release = load_engine(engine) if "rule" in chosen.settings else None
    setting = Setting(
        model=loaded,
        layout=load_layout(dtype),
        ceilings=ceilings,
        causal=causal,
        weight_bytes=request.weight_width(weight_bytes),
        indexer=indexer_of(loaded, sparse),
        rule=_rule(release) if release else VLLM,
    )
    texts = {
        "tp": tp,
        "batch": batch,
        "queries": queries,
        "context": context,
        "max_model_len": max_model_len,
        "max_num_seqs": max_num_seqs,
        "block_size": block_size,
    }
    axes = {name: _axis(name, texts[name], loaded) for name in chosen.axes}
    _run(_Job(command, chosen, setting, axes, device, mma_dtype, release), form, output)


def _rule(engine: Engine) -> WorkspaceRule:
    if engine.engine == "sglang":
        raise InputError(
            f"sweep workspace: {engine.name} sets no workspace aside",
            "`workspace --engine sglang` has what it expands",
        )
    if engine.workspace is None:
        raise InputError(f"sweep workspace: no workspace rule was read for {engine.name}")
    return engine.workspace


@dataclass(frozen=True, slots=True)
class _Job:
    command: str
    sweep: Sweep
    setting: Setting
    axes: Axes
    gpu: GPU | None
    mma_dtype: str
    engine: Engine | None


def _run(job: _Job, form: str, output: Path | None) -> None:
    check_grid(job.sweep, job.setting, job.axes)
    total, dropped = grid_points(job.sweep, job.axes), left_out(job.sweep, job.axes)
    if dropped:
        sys.stderr.write(f"mla-calc: {_dropped(dropped, total)}\n")
    with _progress(total, output) as advance:
        write(chunks(job.sweep, job.setting, job.axes, advance), _envelope(job, dropped, total), form, output)


def _sweep_of(command: str, sparse: bool) -> Sweep:
    if command not in SWEEPS:
        raise InputError(f"sweep {command}: one of {', '.join(SWEEPS)} is accepted", nearest(command, SWEEPS))
    return SPARSE_SWEEPS[command] if sparse else SWEEPS[command]


def _check_options(ctx: typer.Context, command: str, chosen: Sweep) -> None:
    """Refuse an option that this sweep would not look at."""
    used = {option for field in chosen.settings for option in SETTING_OPTIONS[field]} | {*chosen.axes}
    given = options.given(ctx)
    for parameter in ctx.command.params:
        if parameter.name in given - used - ALWAYS:
            axes = ", ".join(options.spelled(axis) for axis in chosen.axes)
            raise InputError(f"{parameter.opts[0]}: `sweep {command}` does not depend on it", f"its axes are {axes}")


def _axis(name: str, text: str | None, model: Model) -> tuple[int, ...]:
    if name == "max_model_len":
        return request.max_model_lens(text, model)
    assert text is not None  # every other axis has a default
    return parse_counts(text, options.spelled(name), most=MOST.get(name, MAX_TOKENS))


def _dropped(dropped: int, total: int) -> str:
    return f"{dropped:,} of {total:,} points have more queries than context and are left out"


def _envelope(job: _Job, dropped: int, total: int) -> Envelope:
    notes = [f"{_dropped(dropped, total)}."] if dropped else []
    if "ceilings" in job.sweep.settings and job.gpu is None:
        notes.append(request.NO_GPU)
    if job.command == "flops":
        notes += [request.PER_RANK, request.LEFT_OUT]
    if job.setting.indexer:
        notes += dsa.notes(job.setting.model, job.setting.indexer, with_bounds=job.gpu is not None)
    if job.engine and job.setting.model.indexer and job.setting.rule.sparse_scratch is None:
        notes.append(
            f"What sparse backends keep besides was not read for {job.engine.name}: sparse_prefill_bytes and "
            "indexer_buffer_bytes are left out, and held_bytes and cache_tokens_worth are without them."
        )
    sources = request.input_sources((job.setting.model,), (job.setting.layout,), job.gpu)
    return Envelope(
        schema="mla-calc/sweep/1",
        inputs=_inputs(job),
        notes=(*notes, *request.model_notes(job.setting.model)),
        sources=request.source_list(sources),
    )


def _inputs(job: _Job) -> dict[str, Any]:
    setting = job.setting
    values: dict[str, Any] = {
        "command": job.command,
        "model": setting.model.name,
        "dtype": setting.layout.name,
    }
    of_settings: dict[str, dict[str, Any]] = {
        "ceilings": {"gpu": job.gpu.name, "mma_dtype": job.mma_dtype} if job.gpu else {"gpu": None},
        "causal": {"causal": setting.causal},
        "weight_bytes": {"weight_bytes": request.as_json(setting.weight_bytes)},
        "indexer": {"sparse": True} if setting.indexer else {},
        "rule": {"engine": job.engine.name} if job.engine else {},
    }
    for field in job.sweep.settings:
        values |= of_settings[field]
    return values | {name: list(job.axes[name]) for name in job.sweep.axes}


@contextmanager
def _progress(total: int, output: Path | None) -> Iterator[Callable[[int], object]]:
    """A progress bar on stderr while a file is written, if someone watches."""
    if output is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), "points", TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda points: progress.advance(task, points)
