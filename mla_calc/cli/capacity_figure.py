"""The best layouts in the results of ``capacity``, and the figure of them: memory of a GPU, tokens, requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..report import format as fmt
from ..report.chart import Axis, Bars, Chart, Look, Mark, Panel, Rows, Rule, Shown
from ..report.record import Report, plain

if TYPE_CHECKING:
    from ..costs.capacity import Plan
    from ..costs.search import CapacityCost

NEEDS: dict[str, Any] = {}
"""Options of `capacity` that add what the figure draws: none."""
GIB = float(1 << 30)
PARTS = {
    "weights_bytes": ("weights", Look("blue")),
    "cache_bytes": ("cache", Look("green")),
    "workspace_bytes": ("workspace", Look("pink")),
    "reserve_bytes": ("reserve", Look("soft")),
}
"""From the left; the narrow ones last, since their numbers stand at the end."""
TOKENS = Bars(
    Rows("best"),
    "label",
    "unique_tokens",
    "integer",
    look=Look("orange"),
    shown=(Shown("requests", "requests", "integer"), Shown("decode, bound", "total_decode_bound_s", "seconds")),
)


def with_best(report: Report, plan: Plan, cost: CapacityCost) -> Report:
    """The report with ``best`` in its results: of the layouts asked for, the best few."""
    from ..costs.capacity_memory import best_layouts

    assert isinstance(report.results, dict)
    return replace(report, results=report.results | {"best": plain(best_layouts(plan, cost.layouts))})


def chart(report: Report) -> Chart:
    """A bar of each of the best layouts for a GPU's memory, the unique tokens, and the requests that fit."""
    assert isinstance(report.results, dict)
    results = report.results
    names = Axis("", "category", kind="text")
    gpus = f"{results['gpus']:,} x {report.inputs['gpu'] or 'GPU'}"
    title = "unique tokens"
    if results["requests"] is not None:
        title += f" (requests of {results['context']:,})"
    # without an end of its own an axis of nothing but zeros ends anywhere
    tokens = Axis("millions of tokens", unit=1e6, high=None if results["unique_tokens"] else 1e6)
    memory = "memory of one GPU" if results["per_gpu"]["memory_bytes"] is not None else "cache of one GPU, as given"
    return Chart(
        title=f"What fits on {gpus}: {report.inputs['model']}",
        caption=_caption(report),
        panels=(
            Panel(Axis("GiB on one GPU", unit=GIB), names, tuple(_memory(results)), memory, stacked=True),
            Panel(tokens, names, (TOKENS,), title),
        ),
    )


def _memory(results: dict[str, Any]) -> Iterator[Mark]:
    for key, (label, look) in PARTS.items():
        if any(record[key] for record in results["best"]):
            yield Bars(Rows("best"), "name", key, "gib", label, look, (Shown(label, key, "bytes"),))
    if results["per_gpu"]["memory_bytes"] is not None:
        yield Rule("per_gpu.memory_bytes", "x", label="memory, as reported", look=Look("ink", dash="dashed"))


def _caption(report: Report) -> str:
    assert isinstance(report.results, dict)
    inputs, results = report.inputs, report.results
    parts = [report.title.replace("   ", ": ", 1)]
    if results["cache_form"] != "latent":
        parts.append("keys and values expanded")
    parts.append(inputs["engine"])
    legal = sum(layout["legal"] for layout in results["layouts"])
    shown = len(results["best"])
    parts.append(f"the best {shown} of {fmt.counted(legal, 'layout')}" if legal > shown else "all layouts asked for")
    if results["pp"] > 1:
        parts.append("of the largest stage")
    return "  ·  ".join(parts)
