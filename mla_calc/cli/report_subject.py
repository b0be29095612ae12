"""What a page of ``report`` is about: the model and the GPU as their presets hold them, and the presets' versions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..costs.layouts import Layout
from ..data import find_preset, looks_like_path
from ..engines.preset import Engine
from ..errors import InputError
from ..hardware.gpu import GPU
from ..models.attention import Model
from ..report import format as fmt
from ..report.page import Version
from ..report.record import Cell, Report, Table, lookup, plain
from . import request

DIGEST = 12
"""Hexadecimal digits of a file's SHA-256 that a page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the options name, loaded, beside the names as they were typed."""

    model: Model
    gpu: GPU
    layout: Layout
    vs: tuple[Model, ...]
    engines: tuple[Engine, ...]
    typed: dict[str, str]
    """By kind of preset: how model, GPU and layout were named."""
    vs_typed: tuple[str, ...]


def subject_report(subject: Subject, mma_dtype: str) -> Report:
    """Geometry, ceilings and what was measured of the GPU, as their presets have them."""
    model, gpu = subject.model, subject.gpu
    results = {"model": _kept(model, _OF_MODEL), "gpu": _kept(gpu, _OF_GPU)}
    sources = request.input_sources((model,), (subject.layout,), gpu)
    notes = request.model_notes(model)
    if model.status != "config":  # of a config they are among these already
        notes += [f"{model.name}: {note}" for note in model.notes]
    notes += [f"{gpu.name}: {note}" for note in gpu.notes]
    if not gpu.measured:
        notes.append(f"{gpu.name}: no measured ceiling is known; ceilings are the datasheet's.")
    tables = [
        Table(("figure", "", "symbol"), tuple(_model_rows(model, results)), model.name),
        Table(("ceiling", "", "unit"), tuple(_gpu_rows(gpu, results)), f"{gpu.name}, as the datasheet has it"),
    ]
    if gpu.measured:
        tables.append(_measured_table(gpu))
    return Report(
        command="report",
        title=f"{model.name}   {request.geometry(model)}",
        subtitle=request.gpu_phrase(gpu, mma_dtype),
        inputs={"model": model.name, "gpu": gpu.name},
        results=results,
        tables=tuple(tables),
        sentence="",
        notes=tuple(notes),
        sources=request.source_list(sources),
        input_sources=sources,
    )


_OF_MODEL = (
    "name",
    "hf",
    "status",
    "mla",
    "gqa",
    "cached_layers",
    "transformer_layers",
    "windowed",
    "recurrent",
    "indexer",
    "mtp_layers",
    "max_position_embeddings",
    "parameters",
    "weights",
)
_OF_GPU = (
    "name",
    "vendor",
    "architecture",
    "status",
    "compute_capability",
    "sms",
    "clock_mhz",
    "peak_tflops",
    "memory",
    "l2_mib",
    "link",
    "measured",
)


def _kept(record: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: plain(getattr(record, name)) for name in names}


_MODEL_ROWS = (
    ("query heads", "{}.heads", "integer", "h"),
    ("KV heads", "{}.kv_heads", "integer", ""),
    ("hidden size", "{}.hidden_size", "integer", "H"),
    ("latent", "{}.kv_lora_rank", "integer", "r, kv_lora_rank"),
    ("rotated part of a key, shared", "{}.qk_rope_head_dim", "integer", "dr, qk_rope_head_dim"),
    ("rest of a key, per head", "{}.qk_nope_head_dim", "integer", "dn, qk_nope_head_dim"),
    ("key, per head", "{}.qk_head_dim", "integer", "qk_head_dim"),
    ("value, per head", "{}.v_head_dim", "integer", "dv, v_head_dim"),
    ("query's own latent", "{}.q_lora_rank", "integer", "q_lora_rank"),
    ("layers that cache", "cached_layers", "integer", "L"),
    ("transformer layers", "transformer_layers", "integer", ""),
    ("sliding-window layers", "windowed.layers", "integer", ""),
    ("their window", "windowed.window", "integer", "tokens"),
    ("layers of linear attention", "recurrent.layers", "integer", ""),
    ("layers with an indexer (DSA)", "indexer.layers", "integer", ""),
    ("keys that it chooses", "indexer.topk", "integer", "top-k"),
    ("MTP layers in the checkpoint", "mtp_layers", "integer", ""),
    ("longest context", "max_position_embeddings", "integer", "tokens"),
    ("parameters", "parameters.total", "number", ""),
    ("of which active per token", "parameters.active", "number", ""),
    ("stored as", "weights.dtype", "text", ""),
)
_GPU_ROWS = (
    ("memory bandwidth", "memory.bandwidth_tbs", "number", "TB/s"),
    ("memory, as the driver reports it", "memory.reported_mib", "integer", "MiB"),
    ("memory, as it is sold", "memory.label_gb", "number", "GB"),
    ("L2 cache", "l2_mib", "number", "MiB"),
    ("multiprocessors", "sms", "integer", ""),
    ("link to other GPUs, one way", "link.one_way_gbs", "number", "GB/s"),
)


def _model_rows(model: Model, results: dict[str, Any]) -> Iterator[tuple[str | Cell, ...]]:
    attention = "mla" if model.mla else "gqa"
    yield "attention", request.kind(model), ""
    for label, path, kind, letters in _MODEL_ROWS:
        at = f"model.{path.format(attention)}"
        if _known(results, at):
            yield label, Cell(at, kind), letters


def _gpu_rows(gpu: GPU, results: dict[str, Any]) -> Iterator[tuple[str | Cell, ...]]:
    for dtype in gpu.peak_tflops:
        unit = fmt.rate_unit(dtype)
        yield f"dense peak, {dtype}", Cell(f"gpu.peak_tflops.{dtype}", "number"), unit
    for label, path, kind, unit in _GPU_ROWS:
        if _known(results, f"gpu.{path}"):
            yield label, Cell(f"gpu.{path}", kind), unit


def _known(results: dict[str, Any], path: str) -> bool:
    try:
        return lookup(results, path) is not None
    except InputError:
        return False


def _measured_table(gpu: GPU) -> Table:
    rows = tuple(
        (
            Cell(f"gpu.measured[{index}].quantity", "text"),
            Cell(f"gpu.measured[{index}].value", "number"),
            _unit(item.quantity),
            Cell(f"gpu.measured[{index}].date", "text"),
            Cell(f"gpu.measured[{index}].source", "text"),
        )
        for index, item in enumerate(gpu.measured)
    )
    return Table(("measured", "", "unit", "date", "by"), rows, f"{gpu.name}, as it was measured")


def _unit(quantity: str) -> str:
    """The unit that a measured quantity's name ends with; empty of one that ends otherwise, as it may in a file."""
    return {"tflops": "TFLOP/s", "tbs": "TB/s"}.get(quantity.rpartition("_")[2], "")


def versions(subject: Subject) -> tuple[Version, ...]:
    """The tool, and every preset or config that the page was made from, by digest and date where it has one."""
    from .. import __version__

    named = [("models", name, model.name) for name, model in zip(subject.vs_typed, subject.vs, strict=True)]
    return (
        Version(what="mla-calc", version=__version__),
        _version("models", subject.typed["model"], subject.model.name),
        _version("gpus", subject.typed["gpu"], subject.gpu.name, _gpu_date(subject.gpu)),
        _version("layouts", subject.typed["dtype"], f"cache layout {subject.layout.name}"),
        *(_version(*each) for each in named),
        *(
            _version("engines", engine.name, engine.name, f"released {engine.date.isoformat()}")
            for engine in subject.engines
        ),
    )


def _gpu_date(gpu: GPU) -> str:
    """The newest measurement that is in the preset."""
    dates = [item.date for items in (gpu.measured, gpu.calibration, gpu.crossovers) for item in items]
    return f"measured until {max(dates).isoformat()}" if dates else ""


def _version(kind: str, typed: str, what: str, date: str = "") -> Version:
    path, name = _file_of(kind, typed)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:DIGEST]
    return Version(what=what, version=f"{name}, sha256 {digest}", date=date)


def _file_of(kind: str, typed: str) -> tuple[Path, str]:
    """The file that was read for a name, and what a page calls it: never by where this machine has it."""
    if not looks_like_path(typed):
        try:
            path, _ = find_preset(kind, typed)
        except InputError:
            pass  # a folder or file of such a name, as load_model takes it
        else:
            return path, f"presets/{kind}/{path.name}"
    from ..models.config import find_config

    path = Path(typed).expanduser()
    path = find_config(path) if kind == "models" else path
    return path, path.name
