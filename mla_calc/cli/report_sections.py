"""The sections of a page of ``report``: what each asks the other commands for, in the order a reviewer reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import typer

from ..errors import InputError
from ..report import format as fmt
from ..report.page import KeyFigure, Part, Section
from ..report.record import Cell, Report
from ..shell import joined
from . import request
from .command import GIVEN

MAP_CONTEXTS = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
"""Contexts of the crossover's map, beside the step's."""
DISPATCH_WEIGHT_BYTES = 2
"""Of a weight, as ``dispatch`` prices a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The step and the cluster, as the options' texts; the names are those of the other commands' options."""

    model: str
    gpu: str
    tp: str
    dp: str | None
    batch: str
    queries: str
    context: str
    dtype: str
    mma_dtype: str
    vs: tuple[str, ...]
    engines: tuple[tuple[str, str], ...]
    """Releases, each as it was typed and by its name."""
    gpus: str | None
    sparse: bool
    weight_bytes: str | None
    max_model_len: str | None
    cache_budget: str | None
    groups: int
    """Data-parallel groups, given or what the GPUs leave."""
    group_batch: str
    """Requests of the fullest group: what its ranks store and work on. Only capacity takes ``batch``, of all groups."""
    rows: str
    """The requests of the fullest group, as ``dispatch`` lists them."""
    chunk: str | None
    """New tokens of a chunk of a prefill, or ``None`` where the step leaves no room for one."""
    chunk_rows: str | None
    """That chunk over the same context, as ``dispatch`` lists it."""
    no_chunk: str
    """Why there is none; empty: there is one."""
    latent: bool
    """Whether the model's attention is MLA."""

    @property
    def step(self) -> dict[str, Any]:
        """What the commands that price one step all take."""
        return {
            "model": self.model,
            "gpu": self.gpu,
            "tp": self.tp,
            "batch": self.group_batch,
            "context": self.context,
            "dtype": self.dtype,
            "mma_dtype": self.mma_dtype,
            "weight_bytes": self.weight_bytes,
            "sparse": self.sparse,
        }


def group_phrase(asked: Asked) -> str:
    """How many requests a data-parallel group has."""
    requests = fmt.counted(int(asked.group_batch), "request")
    even = int(asked.group_batch) * asked.groups == int(asked.batch)
    return f"{requests} in each group" if even else f"{requests} in the fullest group"


def _of_group(asked: Asked) -> str:
    """Of which requests a section is, where they are not all."""
    if asked.groups == 1:
        return ""
    requests = fmt.counted(int(asked.batch), "request")
    return f" For the fullest of {asked.groups:,} DP groups: {int(asked.group_batch):,} of {requests}."


def sections_of(asked: Asked, subject: Report) -> tuple[Section, ...]:
    """Every section with its answers; one that is refused says why."""
    about = Section(
        name="subject",
        title="The model and the GPU",
        text="Peaks are dense, with fp32 accumulation. What was measured stands apart from the datasheet's ceilings.",
        parts=(Part(name="subject", report=subject),),
    )
    return (about, *(make(asked) for make in _SECTIONS))


def _cache(asked: Asked) -> Section:
    options = {"model": asked.model, "tp": asked.tp, "dtype": asked.dtype, "vs": asked.vs}
    of_group = _of_group(asked)
    of_group += " The cluster is that group's ranks." if of_group else ""
    return Section(
        name="cache",
        title="Cache",
        text=f"What one token and all requests take: once, on each rank, and in the cluster.{of_group}",
        sums_up=True,
        parts=(ask("cache", options | {"context": asked.context, "batch": asked.group_batch}, figure=True),),
    )


def _cost(asked: Asked) -> Section:
    return Section(
        name="cost",
        title="Cost of the step",
        text="Both paths kernel by kernel: work, traffic, the least time that the ceilings allow, and an estimate"
        f" where the kernel was measured on this GPU.{_of_group(asked)}",
        sums_up=True,
        parts=(ask("flops", asked.step | {"queries": asked.queries}),),
    )


def _roofline(asked: Asked) -> Section:
    return Section(
        name="roofline",
        title="Roofline",
        text=f"Where each kernel of both paths stands under the GPU's ceilings.{_of_group(asked)}",
        parts=(ask("roofline", asked.step | {"queries": asked.queries}, figure=True),),
    )


def _intensity(asked: Asked) -> Section:
    options = {"model": asked.model, "gpu": asked.gpu, "queries": asked.queries, "vs": asked.vs,
               "dtype": asked.dtype, "mma_dtype": asked.mma_dtype, "sparse": asked.sparse}  # fmt: skip
    if asked.sparse:
        options["context"] = asked.context
    return Section(
        name="intensity",
        title="Intensity against TP",
        text="FLOP per byte of cache that decode reads, and how near the ridge that is.",
        sums_up=True,
        parts=(
            ask("intensity", options | {"tp": asked.tp}),
            ask("intensity", options, name="intensity-by-tp", figure=True),
        ),
    )


def _crossover(asked: Asked) -> Section:
    options = asked.step | {"engine": tuple(typed for typed, _ in asked.engines)}
    return Section(
        name="crossover",
        title="Crossover of the paths",
        text="From how many queries the naive path is cheaper: by FLOPs, by bound, by estimate, as measured where a run"
        f" on this GPU did, and where the engines switch.{_of_group(asked)}",
        sums_up=True,
        parts=(ask("crossover", options), *_maps(asked, options)),
    )


def _maps(asked: Asked, options: dict[str, Any]) -> Iterator[Part]:
    """The map over contexts at the step's batch, and that of one request where only its boundary was measured."""
    contexts = ",".join(map(str, _map_contexts(int(asked.context))))
    over = options | {"context": contexts}
    here = ask("crossover", over, name="crossover-map", figure=True, tables=False)
    if here.report is None:
        return  # refused for what the answer before it says
    yield here
    if _measured(here) or asked.group_batch == "1":
        return
    text = "At one request, which was measured"
    alone = ask("crossover", over | {"batch": "1"}, name="crossover-map-1", text=text, figure=True, tables=False)
    if _measured(alone):
        yield alone


def _map_contexts(context: int) -> list[int]:
    """The map's contexts: the step's, whose label needs room, and those that are not within half an octave of it."""
    return sorted({context, *(each for each in MAP_CONTEXTS if max(each, context) ** 2 > 2 * min(each, context) ** 2)})


def _measured(part: Part) -> bool:
    results = part.report.results if part.report is not None else {}
    return isinstance(results, dict) and results.get("measured") is not None


def _dispatch(asked: Asked) -> Section:
    parts: list[Part] = []
    step = "the step" if asked.groups == 1 else "the step of a group"
    for engine, release in asked.engines:
        for rows, what in ((asked.rows, step), (asked.chunk_rows, "a chunk of a prefill")):
            if rows is not None:
                options = {"model": asked.model, "rows": rows, "gpu": asked.gpu, "engine": engine, "tp": asked.tp,
                           "dtype": asked.dtype, "mma_dtype": asked.mma_dtype, "sparse": asked.sparse}  # fmt: skip
                name = f"dispatch-{len(parts)}"
                parts.append(ask("dispatch", options, name=name, text=f"{release}, {what}"))
    shown = _merged(parts)
    if asked.no_chunk and any(part.report is not None for part in parts):
        shown += (Part(name="dispatch-chunk", reason=f"no chunk of a prefill: {asked.no_chunk}."),)
    return Section(
        name="dispatch",
        title="What the engines choose",
        text="Which path an engine takes, by which rule, and the time that loses against the better one."
        f"{_of_group(asked)}{_of_dispatch(asked)}",
        sums_up=True,
        parts=shown,
    )


def _of_dispatch(asked: Asked) -> str:
    """How the section's weights differ from the page's: ``dispatch`` has no option for them."""
    other = asked.weight_bytes is not None and request.weight_width(asked.weight_bytes) != DISPATCH_WEIGHT_BYTES
    return f" Weights are of {DISPATCH_WEIGHT_BYTES} bytes here: dispatch knows no others." if other else ""


def _workspace(asked: Asked) -> Section:
    options = {"model": asked.model, "tp": asked.tp, "dtype": asked.dtype, "max_model_len": asked.max_model_len}
    return Section(
        name="workspace",
        title="Workspace of a chunked prefill",
        text="What is set aside for keys and values that are expanded, per rank, and the cache in its place.",
        parts=_merged(
            [
                ask("workspace", options | {"engine": engine}, name=f"workspace-{place}", text=release)
                for place, (engine, release) in enumerate(asked.engines)
            ]
        ),
    )


def _capacity(asked: Asked) -> Section:
    names = ("model", "gpu", "gpus", "tp", "dp", "dtype", "context", "max_model_len", "cache_budget")
    options: dict[str, Any] = {name: getattr(asked, name) for name in names}
    options["engine"] = asked.engines[0][0]
    if asked.latent:
        options["batch"] = asked.batch
    if _weights_count(asked):
        options["weight_bytes"] = asked.weight_bytes
    parts = [ask("capacity", options, figure=asked.gpus is None)]
    if asked.gpus is not None:
        searched = {key: value for key, value in options.items() if key not in ("tp", "dp")}
        searched["search_all"] = True
        parts.append(ask("capacity", searched, name="layouts", text="Every layout of these GPUs", figure=True))
    return Section(
        name="capacity",
        title="Capacity",
        text=f"Tokens and requests that fit beside the weights.{_of_capacity(asked)}",
        sums_up=True,
        parts=tuple(parts),
    )


def _weights_count(asked: Asked) -> bool:
    """Whether ``capacity`` looks at the bytes of a weight: to place them, or for the decode bound of a latent."""
    return asked.latent or asked.cache_budget is None


def _of_capacity(asked: Asked) -> str:
    """How the section's numbers differ from the page's step, whose options ``capacity`` has not all."""
    found = ""
    if asked.weight_bytes is not None and not _weights_count(asked):
        found += " --weight-bytes does not count: --cache-budget says what the cache has, so no weights are placed."
    other = [
        text
        for differs, text in (
            (asked.sparse, "dense attention"),
            (asked.queries != "1", "one query to a request"),
            (asked.mma_dtype != "bf16", "products in bf16"),
        )
        if differs
    ]
    if asked.latent and other:
        found += f" The decode bound here is not of the page's step but of {', '.join(other)}: capacity knows no other."
    return found


_SECTIONS: tuple[Callable[[Asked], Section], ...] = (
    _cache, _cost, _roofline, _intensity, _crossover, _dispatch, _workspace, _capacity,
)  # fmt: skip


def key_figures(asked: Asked) -> tuple[KeyFigure, ...]:
    """The numbers at the top of the page: where each is looked up."""
    one = asked.groups == 1
    attention = "absorbed attention" if one else "absorbed attention of a group"
    step = "" if one else " in the step of a group"
    return (
        KeyFigure(label="cache of a token", section="cache", cell=Cell("bytes_per_token", "binary")),
        KeyFigure(
            label="cache of all requests, per rank" if one else "cache of all requests of a group, per rank",
            section="cache",
            cell=Cell("per_rank_total_bytes", "binary"),
        ),
        KeyFigure(
            label=f"{attention}, all layers, at least",
            section="cost",
            cell=Cell("absorbed.total_bound_s", "seconds"),
        ),
        KeyFigure(
            label=f"{attention}, all layers, by estimate",
            section="cost",
            cell=Cell("absorbed.total_estimate_s", "short_seconds"),
        ),
        KeyFigure(
            label=f"of the ridge, decode at TP {asked.tp}",
            section="intensity",
            cell=Cell("by_tp[0].ridge_share", "percent"),
        ),
        KeyFigure(
            label=f"queries from which naive wins{step}, by bound",
            section="crossover",
            cell=Cell("time.by_context[0].first_queries_naive_wins"),
        ),
        KeyFigure(label="different tokens that fit", section="capacity", cell=Cell("unique_tokens")),
        KeyFigure(label=f"requests of {int(asked.context):,} that fit", section="capacity", cell=Cell("requests")),
    )


def ask(
    command: str,
    options: dict[str, Any],
    *,
    name: str = "",
    figure: bool = False,
    text: str = "",
    tables: bool = True,
) -> Part:
    """What ``command`` answers to ``options``, with its figure where one is asked for, or why it refuses.

    ``name`` is that of its figure on the page, the command's where that is the only one.
    """
    figures = import_module(f".{command}_figure", __package__) if figure else None
    needed = getattr(figures, "NEEDS", {})
    kept = {name: value for name, value in (options | needed).items() if value not in (None, False, ())}
    module = import_module(f".{command}", __package__)
    about: dict[str, Any] = {
        "name": name or command,
        "command": command_line(command, module.app, kept),
        "text": text,
        "tables": tables,
    }
    try:
        report = answer_of(module.answer, kept)
    except InputError as error:
        return Part(**about, reason=reason_of(error))
    chart, reason = None, ""
    if figures is not None:
        try:
            chart = figures.chart(report)
        except InputError as error:
            reason = f"the figure: {reason_of(error)}"
    return Part(**about, report=report, chart=chart, reason=reason)


def answer_of(answer: Callable[..., Report], options: Mapping[str, Any]) -> Report:
    """The answer to the options as the command line gives them, explained."""
    more = {GIVEN: frozenset(options)} if GIVEN in inspect.signature(answer).parameters else {}
    found = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    return answer(**found, **more, explain=True)


def reason_of(error: InputError) -> str:
    """A refusal as one text, with the hint if it has one."""
    return str(error) + (f" ({error.hint})" if error.hint else "") + "."


def command_line(command: str, app: typer.Typer, options: Mapping[str, Any]) -> str:
    """The command line of these options of ``app``, in their order; a list is one option with commas."""
    parameters = typer.main.get_command(app).params
    spelled = {each.name: next(text for text in each.opts if text.startswith("--")) for each in parameters}
    words = ["mla-calc", command]
    for name, value in options.items():
        words.append(spelled[name])
        if value is not True:
            words.append(",".join(value) if isinstance(value, tuple) else str(value))
    return joined(words)


def _merged(parts: list[Part]) -> tuple[Part, ...]:
    """One of the parts where all are refused for the same reason."""
    same = len({part.reason for part in parts}) == 1 and parts[0].report is None
    return (replace(parts[0], text=""),) if same else tuple(parts)
