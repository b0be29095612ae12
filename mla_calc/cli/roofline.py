"""``mla-calc roofline``: where each kernel sits under a GPU's ceilings, and where it goes as an axis moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..costs.estimates import Source
from ..costs.flops import FlopsCost, with_estimates
from ..costs.intensity import ridge_heads_times_queries
from ..costs.layouts import latent_row_bytes, load_layout
from ..costs.paths import Work
from ..costs.ridge import heads_times_queries
from ..costs.roofline import HeadsTimesQueries, Point, Roof, points_of, ridges_of, roofs_of
from ..costs.sharding import check_tp
from ..costs.sparse import indexer_of
from ..costs.trajectories import FOLLOWED, Trajectory, trajectory
from ..errors import InputError
from ..hardware.gpu import GPU
from ..models.load import load_model
from ..report.record import Report, plain
from . import estimates, options, request
from . import roofline_options as own
from . import sparse as dsa
from .command import add_command
from .roofline_asked import Asked
from .roofline_figure import chart, moves
from .roofline_roofs import MOST_GPUS
from .roofline_tables import AXIS_NAMES, sentence_of, short_names, tables_of

if TYPE_CHECKING:
    from .roofline_measured import Overlay

app = options.command_app()

KERNELS_OF_BOTH = 6
"""Kernels of both paths together, the indexer's among them: what one grid point adds to the answer."""
TICKS = {"tp": "TP", "batch": "B", "context": "S", "queries": "Q"}
AT_BOUND = "At its bound a kernel is on the roof: the best that the ceilings allow, never a latency."
NOT_DRAWN = "The figure has no estimates beside measured kernels or other GPUs; JSON has them."
HIGHEST = "Of several measured values of one ceiling the highest makes the ridge{}."
ROOFS_OVERLAID = (
    "Where GPUs share a panel the datasheets' roofs alone are drawn; tables and JSON have the measured ones."
)
NO_CHART = f"No chart: one tells at most {MOST_GPUS} GPUs apart."


def answer(
    model: options.Model,
    *,
    gpu: own.Gpus = None,
    tp: options.Tp = "1",
    batch: options.Batch = "1",
    queries: options.Queries = "1",
    context: options.Context = "4096",
    over: own.Over = None,
    causal: options.Causal = True,
    dtype: options.Dtype = "bf16",
    mma_dtype: own.MmaDtypes = "bf16",
    weight_bytes: options.WeightBytes = "2",
    sparse: options.Sparse = False,
    path: own.WhichPath = "both",
    follow: own.Follow = "attention",
    levels: own.Levels = "memory",
    layout: own.Layout = "overlay",
    measured: own.MeasuredFile = None,
    explain: options.Explain = False,
) -> Report:
    """Where each kernel sits under a GPU's ceilings, and where it crosses the ridge.

    Raises:
        InputError: no GPU, an option that is not understood, or one that does not fit the model or another option.
    """
    loaded, cache = load_model(model), load_layout(dtype)
    mla, indexer = request.mla_of(loaded, "roofline"), indexer_of(loaded, sparse)
    axes = request.axes(tp, batch, queries, context)
    view = own.view_of(over, levels, layout, path, follow, axes)
    cards = own.cards_of(gpu)
    dtypes, has, missing = own.dtypes_of(mma_dtype, cards)
    width, row = request.weight_width(weight_bytes), latent_row_bytes(cache, mla)
    works = tuple(axes.works(row_bytes=row, causal=causal, weight_bytes=width))
    request.check_records(len(works) * len(cards) * KERNELS_OF_BOTH)
    asked = Asked(
        model=loaded, mla=mla, layout=cache, indexer=indexer, cards=cards, dtypes=dtypes, has=has, axes=axes,
        works=works, view=view,
    )  # fmt: skip
    recorded = _overlay(measured, model, asked)
    report = _report(asked, recorded, weight_bytes, str(measured) if measured else None, missing)
    if explain:
        from .roofline_explained import explanations_of

        assert isinstance(report.results, dict)
        report = replace(report, explanations=explanations_of(asked, report.results))
    # without one, the file of a figure is refused where it would be drawn
    return replace(report, chart=chart(report), chart_on_terminal=True) if _has_chart(asked) else report


roofline = add_command(app, answer, chart)


def _overlay(measured: Any, model: str, asked: Asked) -> Overlay | None:
    if measured is None:
        return None
    from pathlib import Path

    from .roofline_measured import overlay_of

    path = Path(measured)
    if path.is_dir():
        raise InputError(f"--measured {path}: is a folder; the file of a run or a CSV is expected")
    return overlay_of(path, model, asked)


def _report(
    asked: Asked, recorded: Overlay | None, weight_bytes: str, measured: str | None, missing: list[str]
) -> Report:
    points, priced_notes = _points(asked)
    roofs = [roof for card in asked.cards for roof in roofs_of(card, asked.has[card.name])]
    if recorded:
        roofs = [roof for roof in roofs if roof.kind != "measured" or roof.gpu not in recorded.replaced]
        roofs += recorded.roofs
        points += recorded.points
    results = {
        "ridge_heads_times_queries": plain([_heads_times_queries(asked, card) for card in asked.cards]),
        "roofs": plain(roofs),
        "ridges": plain(ridges_of(roofs)),
        "points": plain(points),
        "trajectories": [_with_ticks(plain(item), asked) for item in _trajectories(asked)],
    }
    sources: dict[str, tuple[str, ...]] = {}
    for card in asked.cards:
        sources |= request.input_sources((asked.model,), (asked.layout,), card)
    return Report(
        command="roofline",
        title=f"{asked.model.name}   {request.geometry(asked.model)}, {asked.layout.name}",
        subtitle=request.gpu_phrase(asked.cards[0], asked.dtype) if len(asked.cards) == 1 else "",
        inputs={
            "model": asked.model.name,
            "gpu": [card.name for card in asked.cards],
            "dtype": asked.layout.name,
            "mma_dtype": list(asked.dtypes),
            "weight_bytes": request.as_json(request.weight_width(weight_bytes)),
            **request.axes_of(asked.works, ("tp", "batch", "queries", "context")),
            "pairs": "causal" if asked.works[0].causal else "rectangular",
            "sparse": asked.indexer is not None,
            "path": asked.view.paths[0] if len(asked.view.paths) == 1 else "both",
            "follow": asked.view.follow,
            "over": list(asked.view.over),
            "drawn": list(asked.view.drawn),
            "levels": list(asked.view.levels),
            "layout": asked.view.layout,
            "measured": measured,
        },
        results=results,
        tables=tables_of(results, asked.view, asked.axes),
        sentence=sentence_of(results, asked.view),
        notes=(
            AT_BOUND,
            request.LEFT_OUT,
            "FLOPs, bytes and times are per rank and per layer.",
            *_measured_roofs(asked, roofs),
            *missing,
            *_without_level(asked, results["ridges"]),
            *_not_drawn(asked, results["trajectories"], points),
            *dsa.notes(asked.model, asked.indexer, with_bounds=True),
            *request.model_notes(asked.model),
            *request.context_notes(asked.model, asked.axes.context),
            *priced_notes,
            *(recorded.notes if recorded else ()),
        ),
        sources=request.source_list(sources),
        input_sources=sources,
        rows_path="points",
    )


def _has_chart(asked: Asked) -> bool:
    """Whether there are no more GPUs than a figure tells apart."""
    return len(asked.cards) <= MOST_GPUS


def _overlaid(asked: Asked) -> bool:
    """Whether GPUs share a panel."""
    return len(asked.cards) > 1 and asked.view.layout == "overlay"


def _measured_roofs(asked: Asked, roofs: Sequence[Roof]) -> Iterator[str]:
    """Which of the measured roofs make a ridge, and which are drawn."""
    measured = [(roof.gpu, roof.dtype, roof.level) for roof in roofs if roof.kind == "measured"]
    drawn = _has_chart(asked) and not _overlaid(asked)
    if len(set(measured)) < len(measured):
        yield HIGHEST.format(" and is drawn" if drawn else "")
    if measured and _has_chart(asked) and not drawn:
        yield ROOFS_OVERLAID


def _without_level(asked: Asked, ridges: list[dict[str, Any]]) -> Iterator[str]:
    """What is to be said of levels that a GPU has no bandwidth of."""
    has = {(ridge["gpu"], ridge["level"]) for ridge in ridges}
    for card in asked.cards:
        lacking = [level for level in asked.view.levels if (card.name, level) not in has]
        if lacking:
            yield f"{card.name} has no {' or '.join(lacking)} bandwidth: its roof is left out."


def _not_drawn(asked: Asked, trajectories: Sequence[dict[str, Any]], points: Sequence[Point]) -> Iterator[str]:
    """What is to be said of what the figure leaves out, or that there is none."""
    if not _has_chart(asked):
        yield NO_CHART
        return
    yield from _unmoved(asked, trajectories)
    if _estimates_left_out(asked, points):
        yield NOT_DRAWN


def _unmoved(asked: Asked, trajectories: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What is to be said of axes asked for that have no trajectory in the figure."""
    shown = [item for item in trajectories if item["kernel"] == asked.view.follow]
    still = [
        axis for axis in asked.view.drawn if not any(moves(item) for item in shown if item["axis"] == axis)
    ]  # fmt: skip
    if still:
        names = " and ".join(AXIS_NAMES[axis] for axis in still)
        yield f"No trajectory over {names} is drawn: the intensity changes by 2 % at most along it."


def _estimates_left_out(asked: Asked, points: Sequence[Point]) -> bool:
    """Whether there are estimates that the figure has no room for."""
    kinds = {point.kind for point in points}
    return "estimate" in kinds and (_overlaid(asked) or "measured" in kinds)


def _points(asked: Asked) -> tuple[list[Point], list[str]]:
    """The kernels of the paths asked for at every grid point, and what is to be said of their estimates."""
    found: list[Point] = []
    notes: list[str] = []
    for card in asked.cards:
        costs: list[FlopsCost] = []
        unknown: list[str] = []
        for work in asked.works:
            check_tp(asked.model, work.tp)
            cost, reasons = _cost(asked, card, work)
            costs.append(cost)
            unknown += reasons
            heads = asked.mla.heads // work.tp
            points = points_of(cost, card, asked.dtype, asked.ceilings(card), heads)
            found += [point for point in points if point.path in asked.view.paths]
        if card.calibration:
            notes += _estimate_notes(card, costs, unknown)
    return found, notes


def _cost(asked: Asked, card: GPU, work: Work) -> tuple[FlopsCost, tuple[str, ...]]:
    cost = asked.cost(card, work)
    if not card.calibration:
        return cost, ()
    return with_estimates(
        cost, card, asked.mla, asked.model.cached_layers, work, dtype=asked.dtype, cache=asked.layout.name
    )


def _estimate_notes(card: GPU, costs: Sequence[FlopsCost], unknown: Sequence[str]) -> list[str]:
    estimated = [path.estimated for cost in costs for path in (cost.absorbed, cost.naive) if path.estimated]
    sources = [Source(part.run, part.date) for item in estimated for part in item.parts]
    return estimates.notes(card, sources, unknown, [item.kernel for item in estimated])


def _trajectories(asked: Asked) -> Iterator[Trajectory]:
    """Attention and whole paths over every axis asked for, from the first step on."""
    for card in asked.cards:
        for axis in asked.view.over:
            values = asked.values(axis)
            for path in asked.view.paths:
                for kernel in FOLLOWED:
                    subject = asked.subject(card, path, kernel)
                    yield trajectory(subject, axis, values, gpu=card.name, dtype=asked.dtype, path=path)


def _with_ticks(item: dict[str, Any], asked: Asked) -> dict[str, Any]:
    """A trajectory with what each place of its course is called, ``TP 8`` or ``S 4k``, and its label in a figure.

    The step that all trajectories start from is labelled once, and not at all where a kernel's name stands there.
    Where GPUs share a panel, and their colours, only the first has labels but for crossings, and labels say whose.
    """
    own = getattr(asked.works[0], item["axis"])
    named = item["kernel"] == "path" and item["axis"] == asked.view.drawn[0]
    overlaid = _overlaid(asked)
    ticked = not overlaid or item["gpu"] == asked.cards[0].name
    path = "naive " if overlaid and item["path"] == "naive" else ""
    name = f"{short_names([card.name for card in asked.cards])[item['gpu']]} " if overlaid else ""
    crossed: set[float] = set()
    for place in item["course"]:
        place["tick"] = f"{TICKS[item['axis']]} {_tick(place['value'])}"
        if place["at_ridge"]:
            # values that do not rise may take the way over the ridge there and back
            place["label"] = "" if place["value"] in crossed else f"{name}{path}{place['tick']}"
            crossed.add(place["value"])
        else:
            place["label"] = f"{path}{place['tick']}" if ticked and (place["value"] != own or named) else ""
    return item


def _tick(value: float) -> str:
    if isinstance(value, int):
        return f"{value // 1024}k" if value % 1024 == 0 else f"{value:,}"
    return f"{value:,.4g}"


def _heads_times_queries(asked: Asked, card: GPU) -> HeadsTimesQueries:
    ceilings = asked.ceilings(card)
    return HeadsTimesQueries(
        gpu=card.name,
        dtype=asked.dtype,
        by_context=None if asked.indexer else ridge_heads_times_queries(asked.mla, asked.layout, ceilings),
        with_query_and_output=heads_times_queries(asked.subject(card, "absorbed", "attention")),
    )
