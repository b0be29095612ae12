"""Recomputing a published figure: the value that the cost engine gives for a preset's ``expect:`` entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InputError
from ..expected import UNITS, Expected, Options
from ..hardware.gpu import GPU
from ..hardware.load import load_gpu
from ..hardware.roofline import Ceilings, datasheet_ceilings
from ..models.attention import MLA, Model
from ..models.load import load_model
from .cache import DEFAULT_CONTEXT, cache_cost, token_bytes
from .crossover import flop_crossover
from .flops import flops_cost
from .intensity import intensity_cost
from .layouts import Layout, latent_row_bytes, load_layout
from .paths import Work
from .sharding import check_tp
from .workspace import workspace_cost

EXACT = 1e-9
"""Relative slack of a figure printed in full: what reading it as a float may lose."""


def miss(expected: Expected, found: Any) -> str | None:
    """What is wrong where ``found`` (in base units) is not the published figure, or ``None``."""
    if not isinstance(found, int | float):
        return f"published {expected.value:g} {expected.unit}, but the engine has no such figure ({found!r})"
    scale = UNITS[expected.unit]
    if _close(found / scale, expected):
        return None
    text = f"published {expected.value:g} {expected.unit}, computed {found / scale:.9g} {expected.unit}"
    slip = next((unit for unit in _siblings(expected.unit) if _close(found / UNITS[unit], expected)), None)
    return f"{text}; it is right in {slip}: a unit slip" if slip else text


def recompute(expected: Expected, model: Model, gpu: GPU | None) -> Any:
    """The record that the entry's command gives for ``model``; look the entry's key up in it.

    Raises:
        InputError: an option that the command does not have, or a value that does not fit the model.
    """
    options = expected.options
    command, accepted = _COMMANDS[expected.command]
    unknown = [name for name in options.given() if name not in (*accepted, "model", "gpu")]
    if unknown:
        raise InputError(f"{expected.command} has no option {unknown[0]!r}; it has {', '.join(accepted)}")
    if gpu is None and options.gpu is not None:
        gpu = load_gpu(options.gpu)
    check_tp(model, options.tp or 1)
    layout = load_layout(options.dtype or "bf16")
    ceilings = datasheet_ceilings(gpu, options.mma_dtype or "bf16") if gpu else None
    return command(model, layout, ceilings, options)


def _set(options: Options, *names: str) -> dict[str, Any]:
    """The options of ``names`` that are set: the others take the command's default."""
    return {name: value for name, value in options.given().items() if name in names}


def _cache(model: Model, layout: Layout, _: Ceilings | None, options: Options) -> Any:
    vs = tuple((load_model(name), layout) for name in (options.vs or "").split(",") if name)
    return cache_cost(model, layout, vs=vs, **_set(options, "tp", "mtp_layers", "context", "batch", "block_size"))


def _flops(model: Model, layout: Layout, ceilings: Ceilings | None, options: Options) -> Any:
    step = {"queries": 1, "context": DEFAULT_CONTEXT} | _set(options, "queries", "context", "batch", "tp")
    work = Work(row_bytes=latent_row_bytes(layout, _mla(model)), **step)
    return flops_cost(_mla(model), model.cached_layers, work, ceilings)


def _intensity(model: Model, layout: Layout, ceilings: Ceilings | None, options: Options) -> Any:
    return intensity_cost(model, layout, (options.tp or 1,), ceilings=ceilings, **_set(options, "queries"))


def _crossover(model: Model, _layout: Layout, _ceilings: Ceilings | None, options: Options) -> Any:
    return {"flop": flop_crossover(_mla(model), (options.context or DEFAULT_CONTEXT,))}


def _workspace(model: Model, layout: Layout, _: Ceilings | None, options: Options) -> Any:
    length = options.max_model_len or model.max_position_embeddings
    if length is None:
        raise InputError("workspace needs max_model_len: the model's own is not known")
    per_token = token_bytes(model, layout, tp=options.tp or 1).growing
    sizes = _set(options, "tp", "max_num_seqs", "block_size", "rows_cap")
    return workspace_cost(_mla(model), max_model_len=length, cache_bytes_per_token=per_token, **sizes)


def _mla(model: Model) -> MLA:
    if model.mla is None:
        raise InputError(f"{model.name} has no latent; cache and intensity take any model")
    return model.mla


Command = Callable[[Model, Layout, Ceilings | None, Options], Any]
_STEP = ("tp", "batch", "queries", "context", "dtype", "mma_dtype")
_COMMANDS: dict[str, tuple[Command, tuple[str, ...]]] = {
    "cache": (_cache, ("tp", "dtype", "vs", "mtp_layers", "context", "batch", "block_size")),
    "flops": (_flops, _STEP),
    "intensity": (_intensity, ("tp", "queries", "dtype", "mma_dtype")),
    "crossover": (_crossover, ("context",)),
    "workspace": (_workspace, ("tp", "dtype", "max_model_len", "max_num_seqs", "block_size", "rows_cap")),
}


def _close(value: float, expected: Expected) -> bool:
    return abs(value - expected.value) <= max(expected.rel, EXACT) * abs(expected.value)


def _siblings(unit: str) -> list[str]:
    """The unit of the same name counted the other way: GB for GiB, kB for KiB."""
    pairs = (("kB", "KiB"), ("MB", "MiB"), ("GB", "GiB"))
    return [other for pair in pairs if unit in pair for other in pair if other != unit]
