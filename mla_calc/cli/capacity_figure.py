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
    """What fills one GPU's memory, and the unique tokens, with the requests that fit; these only where any fit."""
    assert isinstance(report.results, dict)
    results = report.results
    names = Axis("", "category", kind="text")
    gpus = f"{results['gpus']:,} x {report.inputs['gpu'] or 'GPU'}"
    memory = "memory of one GPU" if results["per_gpu"]["memory_bytes"] is not None else "cache of one GPU, as given"
    if not _fits(results):
        memory += ": nothing fits"
    panels = [Panel(Axis("GiB on one GPU", unit=GIB), names, tuple(_memory(results)), memory, stacked=True)]
    if _fits(results):
        panels.append(Panel(Axis("millions of tokens", unit=1e6), names, (TOKENS,), _tokens_title(results)))
    what = "What fits" if _fits(results) else "Nothing fits"
    return Chart(title=f"{what} on {gpus}: {report.inputs['model']}", caption=_caption(report), panels=tuple(panels))


def _fits(results: dict[str, Any]) -> bool:
    return any(record["unique_tokens"] for record in results["best"])


def _tokens_title(results: dict[str, Any]) -> str:
    if results["requests"] is None:
        return "unique tokens"
    return f"unique tokens (requests of {results['context']:,})"


def _memory(results: dict[str, Any]) -> Iterator[Mark]:
    for key, (label, look) in PARTS.items():
        if any(record[key] for record in results["best"]):
            yield Bars(Rows("best"), "name", key, "gib", label, look, (Shown(label, key, "bytes"),))
    if results["per_gpu"]["memory_bytes"] is not None:
        yield Rule("per_gpu.memory_bytes", "x", label="memory, as reported", look=Look("ink", dash="dashed"))


def _caption(report: Report) -> str:
    assert isinstance(report.results, dict)
    inputs, results = report.inputs, report.results
    # why nothing fits, after the title says that it does not
    parts = [] if _fits(results) else report.sentence.rstrip(".").split(": ")[1:]
    parts.append(report.title.replace("   ", ": ", 1))
    if inputs["weights_dtype"] is not None:
        parts.append(f"weights in {inputs['weights_dtype']}")
    if results["cache_form"] != "latent":
        width = results["pad_head_dim"]
        parts.append("keys and values expanded" + (f", padded to a width of {width}" if width else ""))
    parts.append(
        "dense attention"
        if results["indexer_copies"] is None
        else "DSA: indexer keys cached too; decode bound of dense attention"
    )
    if results["mtp_layers"]:
        parts.append(f"{fmt.counted(results['mtp_layers'], 'MTP layer')} included")
    if _fits(results) and results["fixed_bytes_per_request"]:
        parts.append("tokens without the windows and states of requests")
    parts.append(inputs["engine"])
    stages = [record["pp"] > 1 for record in results["best"]]
    if any(stages):
        parts.append("a GPU of the largest stage" + ("" if all(stages) else " where PP is above 1"))
    parts.append(_layouts(report))
    return "  ·  ".join(parts)


def _layouts(report: Report) -> str:
    """Which layouts are drawn."""
    assert isinstance(report.results, dict)
    if not report.inputs["search"]:
        return (
            "the one layout asked for" if report.inputs["requests_wanted"] is None else "the first layout that holds it"
        )
    legal = sum(layout["legal"] for layout in report.results["layouts"])
    shown = len(report.results["best"])
    if legal == 1:
        return "the only legal layout"
    if not _fits(report.results):
        return f"none of {legal:,} legal layouts fits; {shown} are drawn"
    return f"the best {shown} of {legal:,} legal layouts" if legal > shown else f"all {legal:,} legal layouts"
