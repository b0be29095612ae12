"""``mla-calc capacity``: tokens and requests that fit on GPUs, in which layout, and how many GPUs it takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..costs.capacity import MAX_CACHE_BYTES, Memory, Plan
from ..costs.layouts import load_layout
from ..costs.placement import AXES, MAX_GPUS, Placement, check_placement
from ..costs.search import CapacityCost, Step, capacity_cost, fewest_gpus, search
from ..costs.tokens import Form, cached_attention, check_mtp
from ..costs.weights import stored_weights
from ..errors import InputError, shown
from ..hardware.gpu import GPU
from ..models.attention import MLA, Model
from ..models.load import load_model
from ..report import format as fmt
from ..report.record import Report
from ..sizes import MAX_DIGITS, parse_count, parse_size
from . import options, request
from .capacity_figure import chart, with_best
from .capacity_report import Asked, report_of
from .command import add_command
from .complete import forms

if TYPE_CHECKING:
    from ..engines.preset import Engine

app = options.command_app()

UNKNOWN_CONTEXT = 4096
"""Tokens of a request where neither is said how long they are nor known how long they may be."""
_PERCENT = re.compile(r"0*([0-9]+)(?:\.([0-9]{1,9}))?\s*%")
RESERVE_EXPECTED = "a share such as 10% or a size such as 8GiB is expected"


@dataclass(frozen=True, slots=True)
class Ranks:
    """What was said of the placement; ``None`` where it was left open."""

    gpus: int | None
    fixed: dict[str, int]

    def placement(self) -> Placement:
        """The one placement that is meant: what is left open is 1, and DP takes the GPUs that remain.

        Raises:
            InputError: the ranks are not the GPUs.
        """
        at = {name: self.fixed.get(name, 1) for name in AXES}
        named = at["tp"] * at["pp"]
        if self.gpus is not None and "dp" not in self.fixed:
            if self.gpus % named:
                raise InputError(f"TP {at['tp']} x PP {at['pp']} = {named} does not divide --gpus {self.gpus}")
            at["dp"] = self.gpus // named
        placed = Placement(**at)
        if self.gpus not in (None, placed.gpus):
            raise InputError(
                f"TP {placed.tp} x DP {placed.dp} x PP {placed.pp} are {placed.gpus:,} GPUs; --gpus says {self.gpus:,}"
            )
        if placed.gpus > MAX_GPUS:
            raise InputError(f"{placed.gpus:,} GPUs; at most {MAX_GPUS:,} are accepted")
        return placed


def answer(
    model: options.Model,
    *,
    gpu: options.Gpu = None,
    gpus: Annotated[str | None, typer.Option("--gpus", help="GPUs in all.", show_default="TP x DP x PP")] = None,
    tp: Annotated[str | None, typer.Option("--tp", help="Tensor-parallel ranks.", show_default="1")] = None,
    dp: Annotated[
        str | None, typer.Option("--dp", help="Data-parallel attention groups.", show_default="what GPUs remain")
    ] = None,
    dcp: Annotated[
        str | None, typer.Option("--dcp", help="Ranks of a TP group that a request's tokens spread over.")
    ] = None,
    pp: Annotated[str | None, typer.Option("--pp", help="Pipeline stages.", show_default="1")] = None,
    ep: Annotated[
        str | None,
        typer.Option("--ep", help="Ranks that share all weights but attention's.", show_default="a stage's"),
    ] = None,
    dtype: options.Dtype = "bf16",
    cache_form: Annotated[
        str,
        typer.Option("--cache-form", help="What is cached of MLA: latent or expanded.", autocompletion=forms),
    ] = "latent",
    pad_head_dim: Annotated[
        str | None, typer.Option("--pad-head-dim", help="Expanded: width that keys and values are padded to.")
    ] = None,
    mtp_layers: Annotated[str, typer.Option("--mtp-layers", help="MTP layers that cache too.")] = "0",
    engine: Annotated[str, typer.Option("--engine", help="vllm or sglang, of a release: vllm@0.29.")] = "vllm",
    block_size: options.BlockSize = "64",
    max_model_len: options.MaxModelLen = None,
    max_num_seqs: options.MaxNumSeqs = "256",
    rows_cap: Annotated[str | None, typer.Option("--rows-cap", help="Workspace rows at most.")] = None,
    reserve: Annotated[str, typer.Option("--reserve", help="Kept free on each GPU: 10% or 8GiB.")] = "10%",
    weight_bytes: Annotated[
        str | None,
        typer.Option("--weight-bytes", help="Bytes per weight: 0.5, 1, 2 or 4.", show_default="the checkpoint's"),
    ] = None,
    cache_budget: Annotated[
        str | None, typer.Option("--cache-budget", help="Cache of one GPU, instead of working it out: 40GiB.")
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", "-s", help="Tokens of a request.", show_default="--max-model-len")
    ] = None,
    batch: Annotated[str, typer.Option("--batch", "-b", help="Requests of the decode step that is bounded.")] = "1",
    for_context: Annotated[
        str | None, typer.Option("--for-context", help="Find the fewest GPUs for requests of this many tokens.")
    ] = None,
    for_requests: Annotated[
        str | None, typer.Option("--for-requests", help="How many such requests.", show_default="1")
    ] = None,
    search_all: Annotated[bool, typer.Option("--search", help="Every layout of the GPUs, the best first.")] = False,
    explain: options.Explain = False,
    given: frozenset[str] = frozenset(),
) -> Report:
    """Tokens and requests that fit on GPUs: weights, workspace and cache under TP, DP, DCP and PP.

    ``given``: the options that were typed, of which one that does not count is refused.

    Raises:
        InputError: an option that is not understood, or does not fit the model or another option.
    """
    loaded, layout = load_model(model), load_layout(dtype)
    ranks = _ranks(gpus, {"tp": tp, "dp": dp, "dcp": dcp, "pp": pp})
    wanted = _wanted(for_context, for_requests, ranks)
    if search_all and ranks.gpus is None and wanted is None:
        raise InputError("--search lays out a number of GPUs: give --gpus")
    from ..engines.load import load_engine

    named, (chosen, ceilings) = load_engine(engine), request.ceilings_of(gpu, "bf16")
    width = request.weight_width(weight_bytes) if weight_bytes is not None else None
    block = parse_count(block_size, "--block-size", most=request.MAX_BLOCK)
    form = request.cache_form(cache_form, pad_head_dim)
    workspace = named.workspace is not None and isinstance(cached_attention(loaded, form), MLA)
    for name, why in _unused(loaded, named, form, given).items():
        if name in given:
            raise InputError(f"--{name.replace('_', '-')} does not count here: {why}")
    memory = _memory(chosen, cache_budget, reserve)
    needed = workspace and cache_budget is None
    memory = replace(memory, max_model_len=_longest(max_model_len, loaded, needed))
    if memory.cache_bytes is None:
        memory = replace(
            memory,
            stored=stored_weights(loaded, width),
            rule=named.workspace,
            max_num_seqs=parse_count(max_num_seqs, "--max-num-seqs", most=request.MAX_SEQS),
            rows_cap=parse_count(rows_cap, "--rows-cap") if rows_cap is not None else None,
        )
    plan = Plan(
        model=loaded,
        layout=layout,
        memory=memory,
        context=_context(for_context, context, memory.max_model_len, max_model_len is not None),
        form=form,
        mtp_layers=parse_count(mtp_layers, "--mtp-layers", least=0, most=1024),
        ep=parse_count(ep, "--ep", most=MAX_GPUS) if ep is not None else None,
        indexer_whole=named.engine == "sglang",
        block_size=block,
    )
    check_mtp(loaded, plan.mtp_layers)
    step = Step(ceilings=ceilings, batch=parse_count(batch, "--batch"), weight_bytes=2 if width is None else width)
    asked = Asked(
        plan=plan,
        step=step,
        gpu=chosen,
        engine=named,
        reserve=reserve,
        wanted=wanted,
        searched=search_all,
        context_unknown=for_context is None and context is None and memory.max_model_len is None,
    )
    cost = _cost(asked, step, ranks)
    return with_best(report_of(asked, cost, explain), plan, cost)


capacity = add_command(app, answer, chart)


def _cost(asked: Asked, step: Step, ranks: Ranks) -> CapacityCost:
    """The record asked for: of one placement, of the best of all, or of the fewest GPUs that are enough."""
    plan = asked.plan
    if asked.wanted is not None:
        found = fewest_gpus(plan, asked.wanted, step, ranks.fixed)
        if found is None:
            raise InputError(
                f"no legal layout of up to {MAX_GPUS:,} GPUs holds {fmt.counted(asked.wanted, 'request')} of"
                f" {fmt.counted(plan.context, 'token')}"
            )
        one = (
            search(plan, found.gpus, step, ranks.fixed, asked.wanted)
            if asked.searched
            else capacity_cost(plan, found, step)
        )
        return replace(one, gpus_needed=found.gpus)
    if asked.searched:
        assert ranks.gpus is not None
        return search(plan, ranks.gpus, step, ranks.fixed)
    at = ranks.placement()
    check_placement(plan.model, at, plan.form, plan.ep)
    return capacity_cost(plan, at, step)


def _ranks(gpus: str | None, axes: dict[str, str | None]) -> Ranks:
    fixed = {name: parse_count(text, f"--{name}", most=MAX_GPUS) for name, text in axes.items() if text is not None}
    return Ranks(parse_count(gpus, "--gpus", most=MAX_GPUS) if gpus is not None else None, fixed)


def _wanted(for_context: str | None, for_requests: str | None, ranks: Ranks) -> int | None:
    """Requests that are to fit, or ``None`` where the number of GPUs is given instead."""
    if for_context is None:
        if for_requests is not None:
            raise InputError("--for-requests needs --for-context: how long the requests are")
        return None
    if ranks.gpus is not None:
        raise InputError("--for-context finds the number of GPUs: leave out --gpus")
    return parse_count(for_requests, "--for-requests") if for_requests is not None else 1


def _unused(model: Model, engine: Engine, form: Form, given: frozenset[str]) -> dict[str, str]:
    """The options that this answer would not look at, each with the reason."""
    found: dict[str, str] = {}
    if "for_context" in given:
        found["context"] = "--for-context says how long the requests are"
    latent = isinstance(cached_attention(model, form), MLA)
    workspace = ("rows_cap", "max_num_seqs")
    if "cache_budget" in given:
        stands = "--cache-budget stands for memory, weights, workspace and reserve"
        found |= dict.fromkeys(("reserve", *workspace), stands)
    elif not latent:
        found |= dict.fromkeys(workspace, "without a cached latent there is no workspace")
    elif engine.workspace is None:
        found |= dict.fromkeys(workspace, f"{engine.name} sets no workspace aside at the start")
    if "gpu" not in given or not latent:
        needs = "the decode bound's, which needs --gpu and an MLA model whose latent is cached"
        found["batch"] = f"it is {needs}"
        if "cache_budget" in given:
            found["weight_bytes"] = f"without weights to place it is {needs}"
    return found


def _longest(text: str | None, model: Model, needed: bool) -> int | None:
    """The longest request, as given or the model's own; ``None`` where that is not known and not ``needed``."""
    if text is None and model.max_position_embeddings is None and not needed:
        return None
    return request.one(request.max_model_lens(text, model), "--max-model-len")


def _context(for_context: str | None, context: str | None, longest: int | None, limited: bool) -> int:
    """Tokens of a request; ``limited``: the longest request was given, and an engine refuses longer ones."""
    option, text = ("--context", context) if for_context is None else ("--for-context", for_context)
    if text is None:
        return longest or UNKNOWN_CONTEXT
    tokens = parse_count(text, option)
    if limited and longest is not None and tokens > longest:
        raise InputError(f"{option} {text.strip()}: with --max-model-len {longest:,} no request is longer than that")
    return tokens


def _memory(gpu: GPU | None, cache_budget: str | None, reserve: str) -> Memory:
    """What one GPU has: the cache as given, or its memory and the reserve."""
    if cache_budget is not None:
        budget = parse_size(cache_budget, "--cache-budget")
        if not 1 <= budget <= MAX_CACHE_BYTES:
            raise InputError(f"--cache-budget {cache_budget.strip()}: 1 B to 1024TiB is accepted")
        return Memory(cache_bytes=budget)
    if gpu is None:
        raise InputError("what fits depends on a GPU: give --gpu", "or the cache of one GPU: --cache-budget 40GiB")
    if gpu.memory.reported_mib is None:
        raise InputError(
            f"what the driver reports as the memory of {gpu.name} is not known",
            "give the cache of one GPU: --cache-budget 40GiB",
        )
    memory = gpu.memory.reported_mib << 20
    return Memory(memory_bytes=memory, reserve_bytes=_reserve(reserve, memory))


def _reserve(text: str, memory: int) -> int:
    """Bytes kept free: a size, or a percentage of the memory, rounded down."""
    share = text.strip()
    if not share.endswith("%"):
        size = parse_size(text, "--reserve", RESERVE_EXPECTED)
        if size > memory:
            raise InputError(f"--reserve {share}: more than the {memory:,} B that the GPU has")
        return size
    match = _PERCENT.fullmatch(share)
    if not match:
        raise InputError(f"--reserve {shown(text)}: {RESERVE_EXPECTED}")
    whole, decimals = match[1], match[2] or ""
    parts, scale = int(whole[:MAX_DIGITS] + decimals), int("100" + "0" * len(decimals))
    if parts > scale:
        raise InputError(f"--reserve {shown(share)}: at most 100% is accepted")
    return memory * parts // scale
