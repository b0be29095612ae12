"""The options of ``report``, read and checked: a wrong one is refused before a page is begun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..costs.layouts import load_layout
from ..costs.sharding import check_tp, misfit
from ..engines.load import load_engine
from ..errors import InputError
from ..explore.state import State
from ..models.attention import Model
from ..models.load import load_model
from ..report import format as fmt
from ..sizes import parse_count, parse_size
from . import request
from .report_sections import Asked
from .report_subject import Subject

BESIDE_MLA = ("llama3-70b", "glm-4.5", "qwen3-235b", "llama2-7b")
BESIDE_GQA = ("deepseek-v3", "kimi-k2", "minicpm3-4b")
"""What stands beside a model where nothing else is asked for: the first of the other kind that runs at the TP."""
ENGINES = ("vllm", "sglang")
CHUNK = "512"
"""New tokens of the prefill that engines dispatch, where nothing else is asked for."""
PASSED = ("weight_bytes", "max_model_len", "cache_budget")
"""Options that go to other commands as they are."""


@dataclass(frozen=True, slots=True)
class _Step:
    """The step's numbers, read."""

    tp: int
    batch: int
    queries: int
    context: int


def checked(asked: dict[str, Any]) -> tuple[Subject, Asked]:
    """The options of ``report``, as text, checked before anything is asked of other commands.

    Raises:
        InputError: one that is not understood, or does not fit the model or another one.
    """
    loaded, layout = load_model(asked["model"]), load_layout(asked["dtype"])
    card, _ = request.ceilings_of(asked["gpu"], asked["mma_dtype"])
    assert card is not None
    step = _read(asked)
    check_tp(loaded, step.tp)
    groups = _groups(asked, step.tp)
    beside = request.each_once(load_model, request.listed(asked["vs"], "--vs") or _beside(loaded, step.tp))
    vs, others = tuple(beside), tuple(beside.values())
    for other in others:
        check_tp(other, step.tp)
    _check_passed(asked)
    engines = request.each_once(load_engine, request.listed(asked["engine"], "--engine") or ENGINES)
    if asked["sparse"] and loaded.indexer is None:
        raise InputError(f"--sparse: {loaded.name} has no indexer")
    gpu = card.name if asked["gpu"] == "auto" else asked["gpu"]
    chunk, no_chunk = _chunk(asked["chunk"], step)
    group_batch = State(batch=step.batch, dp=groups).group_batch
    subject = Subject(
        model=loaded,
        gpu=card,
        layout=layout,
        vs=others,
        engines=tuple(engines.values()),
        typed={"model": asked["model"], "gpu": gpu, "dtype": asked["dtype"]},
        vs_typed=vs,
    )
    about = Asked(
        **{name: asked[name] for name in ("model", "dp", "dtype", "mma_dtype", "gpus", "sparse", *PASSED)},
        gpu=gpu,
        tp=str(step.tp),
        batch=str(step.batch),
        queries=str(step.queries),
        context=str(step.context),
        vs=vs,
        engines=tuple((typed, release.name) for typed, release in engines.items()),
        groups=groups,
        group_batch=str(group_batch),
        rows=f"{group_batch}x{step.queries}:{step.context - step.queries}",
        chunk=None if chunk is None else str(chunk),
        chunk_rows=None if chunk is None else f"{chunk}:{step.context - chunk}",
        no_chunk=no_chunk,
        latent=loaded.mla is not None,
    )
    return subject, about


def _read(asked: dict[str, Any]) -> _Step:
    """The axes of the step, each of one value."""
    axes = request.axes(asked["tp"], asked["batch"], asked["queries"], asked["context"])
    step = _Step(**{name: request.one(getattr(axes, name), f"--{name}") for name in _Step.__slots__})
    if step.queries > step.context:
        raise InputError(f"--queries {step.queries:,} is more than --context {step.context:,}, which counts them too")
    return step


def _chunk(text: str | None, step: _Step) -> tuple[int | None, str]:
    """New tokens of the chunk, or ``None`` and why there is none. Raises InputError for a typed one of no use."""
    kept = parse_count(CHUNK if text is None else text, "--chunk")
    new, one = fmt.counted(kept, "new token"), kept == 1
    if kept >= step.context:
        why = f"{new} {'leaves none before it' if one else 'leave none before them'} in a context of {step.context:,}"
    elif kept <= step.queries:
        why = f"{new} {'is' if one else 'are'} no more than the step's --queries {step.queries:,}"
    else:
        return kept, ""
    if text is not None:
        raise InputError(f"--chunk {kept:,} does not count here: {why}")
    return None, why


def _groups(asked: dict[str, Any], tp: int) -> int:
    """The data-parallel groups: as given, or what the GPUs leave. Raises InputError for ranks that are not the GPUs."""
    from ..costs.placement import MAX_GPUS
    from .capacity import Ranks

    given = [name for name in ("dp", "gpus") if asked[name] is not None]
    counts = {name: parse_count(asked[name], f"--{name}", most=MAX_GPUS) for name in given}
    dp: int = Ranks(counts.pop("gpus", None), {"tp": tp, **counts}).placement().dp
    return dp


def _check_passed(asked: dict[str, Any]) -> None:
    """Refuse such an option that is not understood, which every section would refuse."""
    if asked["weight_bytes"] is not None:
        request.weight_width(asked["weight_bytes"])
    if asked["max_model_len"] is not None:
        parse_count(asked["max_model_len"], "--max-model-len")
    if asked["cache_budget"] is not None:
        parse_size(asked["cache_budget"], "--cache-budget")


def _beside(model: Model, tp: int) -> tuple[str, ...]:
    """The model that stands beside where none is named."""
    usual = BESIDE_MLA if model.mla else BESIDE_GQA
    return next(((name,) for name in usual if misfit(load_model(name), tp) is None), ())
