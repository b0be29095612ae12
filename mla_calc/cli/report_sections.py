"""The sections of a page of ``report``: what each asks the other commands for, in the order a reviewer reads."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import typer

from ..errors import InputError
from ..report.page import KeyFigure, Part, Section
from ..report.record import Cell, Report
from .command import GIVEN

MAP_CONTEXTS = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
"""Contexts of the crossover's map, beside the step's."""


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
    rows: str
    """The step's requests, as ``dispatch`` lists them."""
    chunk_rows: str | None
    """A chunk of a prefill over the same context, or ``None`` where the context has no room for one."""
    latent: bool
    """Whether the model's attention is MLA."""

    @property
    def step(self) -> dict[str, Any]:
        """What the commands that price one step all take."""
        return {
            "model": self.model,
            "gpu": self.gpu,
            "tp": self.tp,
            "batch": self.batch,
            "context": self.context,
            "dtype": self.dtype,
            "mma_dtype": self.mma_dtype,
            "weight_bytes": self.weight_bytes,
            "sparse": self.sparse,
        }


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
    return Section(
        name="cache",
        title="Cache",
        text="What one token and all requests take: once, on each rank, and in the cluster.",
        sums_up=True,
        parts=(ask("cache", options | {"context": asked.context, "batch": asked.batch}, figure=True),),
    )


def _cost(asked: Asked) -> Section:
    return Section(
        name="cost",
        title="Cost of the step",
        text="Both paths kernel by kernel: work, traffic, the least time that the ceilings allow, and an estimate"
        " where the kernel was measured on this GPU.",
        sums_up=True,
        parts=(ask("flops", asked.step | {"queries": asked.queries}),),
    )


def _roofline(asked: Asked) -> Section:
    return Section(
        name="roofline",
        title="Roofline",
        text="Where each kernel of both paths stands under the GPU's ceilings.",
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
        " on this GPU did, and where the engines switch.",
        sums_up=True,
        parts=(ask("crossover", options), *_maps(asked, options)),
    )


def _maps(asked: Asked, options: dict[str, Any]) -> Iterator[Part]:
    """The map over contexts at the step's batch, and that of one request where only its boundary was measured."""
    contexts = ",".join(map(str, sorted({*MAP_CONTEXTS, int(asked.context)})))
    over = options | {"context": contexts}
    here = ask("crossover", over, name="crossover-map", figure=True, tables=False)
    if here.report is None:
        return  # refused for what the answer before it says
    yield here
    if _measured(here) or asked.batch == "1":
        return
    text = "At one request, which was measured"
    alone = ask("crossover", over | {"batch": "1"}, name="crossover-map-1", text=text, figure=True, tables=False)
    if _measured(alone):
        yield alone


def _measured(part: Part) -> bool:
    results = part.report.results if part.report is not None else {}
    return isinstance(results, dict) and results.get("measured") is not None


def _dispatch(asked: Asked) -> Section:
    parts: list[Part] = []
    for engine, release in asked.engines:
        for rows, what in ((asked.rows, "the step"), (asked.chunk_rows, "a chunk of a prefill")):
            if rows is not None:
                options = {"model": asked.model, "rows": rows, "gpu": asked.gpu, "engine": engine, "tp": asked.tp,
                           "dtype": asked.dtype, "mma_dtype": asked.mma_dtype, "sparse": asked.sparse}  # fmt: skip
                name = f"dispatch-{len(parts)}"
                parts.append(ask("dispatch", options, name=name, text=f"{release}, {what}"))
    return Section(
        name="dispatch",
        title="What the engines choose",
        text="Which path an engine takes, by which rule, and the time that loses against the better one.",
        sums_up=True,
        parts=_merged(parts),
    )


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
    names = ("model", "gpu", "gpus", "tp", "dp", "dtype", "context", "weight_bytes", "max_model_len", "cache_budget")
    options: dict[str, Any] = {name: getattr(asked, name) for name in names}
    options["engine"] = asked.engines[0][0]
    if asked.latent:
        options["batch"] = asked.batch
    parts = [ask("capacity", options, figure=asked.gpus is None)]
    if asked.gpus is not None:
        searched = {key: value for key, value in options.items() if key not in ("tp", "dp")}
        searched["search_all"] = True
        parts.append(ask("capacity", searched, name="layouts", text="Every layout of these GPUs", figure=True))
    return Section(
        name="capacity",
        title="Capacity",
        text="Tokens and requests that fit beside the weights.",
        sums_up=True,
        parts=tuple(parts),
    )


_SECTIONS: tuple[Callable[[Asked], Section], ...] = (
    _cache, _cost, _roofline, _intensity, _crossover, _dispatch, _workspace, _capacity,
)  # fmt: skip


def key_figures(asked: Asked) -> tuple[KeyFigure, ...]:
    """The numbers at the top of the page: where each is looked up."""
    return (
        KeyFigure(label="cache of a token", section="cache", cell=Cell("bytes_per_token", "binary")),
        KeyFigure(
            label="cache of all requests, per rank", section="cache", cell=Cell("per_rank_total_bytes", "binary")
        ),
        KeyFigure(
            label="absorbed attention, all layers, at least",
            section="cost",
            cell=Cell("absorbed.total_bound_s", "seconds"),
        ),
        KeyFigure(
            label="absorbed attention, all layers, by estimate",
            section="cost",
            cell=Cell("absorbed.total_estimate_s", "short_seconds"),
        ),
        KeyFigure(
            label=f"of the ridge, decode at TP {asked.tp}",
            section="intensity",
            cell=Cell("by_tp[0].ridge_share", "percent"),
        ),
        KeyFigure(
            label="queries from which naive wins, by bound",
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
    return shlex.join(words)


def _merged(parts: list[Part]) -> tuple[Part, ...]:
    """One of the parts where all are refused for the same reason."""
    same = len({part.reason for part in parts}) == 1 and parts[0].report is None
    return (replace(parts[0], text=""),) if same else tuple(parts)
