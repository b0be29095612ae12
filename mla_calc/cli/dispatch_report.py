"""What ``dispatch`` prints: tables, one sentence, notes, and how the first row's figures come about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ..costs.sparse import first_contexts
from ..engines.batch import Decision, Resolution, Row
from ..engines.preset import Engine
from ..engines.pricing import BatchCost, RowCost, Setting, batch_sums, price_batch, price_rows, row_kernels
from ..engines.pricing import Table as PricingTable
from ..engines.row_estimates import RowEstimates, estimate_rows
from ..engines.rules import Situation, rules_of
from ..hardware.gpu import GPU
from ..models.attention import Indexer
from ..report import format as fmt
from ..report.record import Cell, Explanation, Report, Table, plain
from . import estimates, request
from . import sparse as dsa

MOST_SHOWN = 40
"""Rows that a table lists, those that are alike as one; the JSON has all of them."""
BAR = 30
"""Characters of the longest bar of a scan."""


@dataclass(frozen=True, slots=True)
class Case:
    """A batch with what decides and prices it."""

    engine: Engine
    backend: str
    resolution: Resolution | None
    situation: Situation
    rows: tuple[Row, ...]
    table: PricingTable
    gpu: GPU | None
    mma_dtype: str
    indexer: Indexer | None
    """Of sparse attention, where that is what is priced."""
    named: bool
    """Whether the backend is the user's choice."""
    refusal: str | None
    """Why the engine would not take a backend that was named."""
    stored_as: str | None
    """The layout that the backend stores in place of the one asked for."""

    @property
    def setting(self) -> Setting:
        """What is the same for every row."""
        return self.table.setting


def _estimated(case: Case) -> RowEstimates:
    """Every row's estimates; none without a GPU that is calibrated, and none of sparse attention."""
    if case.gpu is None or not case.gpu.calibration or case.indexer:
        return RowEstimates()
    cache = case.stored_as or case.situation.cache_dtype
    return estimate_rows(case.gpu, case.rows, case.setting, dtype=case.mma_dtype, cache=cache)


def report_of(case: Case, decisions: Sequence[Decision], scanned: list[dict[str, Any]] | None, as_run: bool) -> Report:
    """The answer, without its explanations."""
    estimated = _estimated(case)
    costs, batch = price_rows(case.table, decisions, estimated.priced), price_batch(case.table, decisions)
    model, situation = case.situation.model, case.situation
    sources = request.input_sources((model,), (), case.gpu) | _engine_sources(case)
    return Report(
        command="dispatch",
        title=f"{model.name} in {case.engine.name}   {case.backend}, {situation.cache_dtype} cache, TP {situation.tp}",
        subtitle=request.gpu_phrase(case.gpu, case.mma_dtype) if case.gpu else "",
        inputs=_inputs(case, as_run),
        results={
            "backend": case.backend,
            "resolved": case.resolution is not None,
            "threshold": rules_of(case.engine).threshold(case.engine, case.backend, case.situation),
            "rows": _plain_rows(costs),
            "batch": plain(batch),
            "sparse": _sparse(case),
            "scan": scanned,
        },
        tables=tuple(_tables(case, costs, scanned)),
        sentence=_sentence(batch) + _scan_sentence(scanned),
        notes=(*_notes(case, costs, as_run), *_estimate_notes(case, estimated)),
        sources=request.source_list(sources),
        input_sources=sources,
        rows_path="rows",
    )


def _plain_rows(costs: Sequence[RowCost]) -> list[dict[str, Any]]:
    """As :func:`plain`, made once for the rows that are one record, which a batch has thousands of."""
    made = {id(cost): cost for cost in costs}
    records = {key: plain(cost) for key, cost in made.items()}
    return [records[id(cost)] for cost in costs]


def _sparse(case: Case) -> dict[str, Any] | None:
    """From which context on one sparse query takes less than a dense one; ``None`` where dense ones are priced."""
    if case.indexer is None:
        return None
    in_bytes, in_flop = first_contexts(case.setting.mla, case.indexer, case.setting.row_bytes, case.setting.tp)
    return {"first_context_bytes": in_bytes, "first_context_flop": in_flop}


def _engine_sources(case: Case) -> dict[str, tuple[str, ...]]:
    """Where the rule was read: the backend's or handler's own lines, or else the release's."""
    engine, name = case.engine, case.backend
    found = [backend.source for backend in engine.backends if backend.name == name]
    found += [handler.source for handler in engine.handlers if name in (handler.name, *handler.aliases)]
    whole = tuple(text for texts in engine.sources.values() for text in texts)
    return {f"{engine.name}, {name}": tuple(found) or whole}


_USUAL = {
    "deterministic": False,
    "context_parallel": False,
    "ragged": True,
    "chunked_prefix": True,
    "parallel_drafting": False,
    "force_mqa": False,
    "aiter": False,
}
"""Switches of the engines; those that differ from this are named among the inputs."""


def _inputs(case: Case, as_run: bool) -> dict[str, Any]:
    at = case.situation
    return {
        "model": at.model.name,
        "engine": case.engine.name,
        "gpu": case.gpu.name if case.gpu else None,
        "mma_dtype": case.mma_dtype,
        "dtype": at.cache_dtype,
        "tp": at.tp,
        "dcp": at.dcp,
        "spec_tokens": at.spec_tokens,
        "mode": at.mode,
        "graph": at.graph,
        "options": [name for name, usual in _USUAL.items() if getattr(at, name) is not usual],
        "as_run": as_run,
        "sparse": case.indexer is not None,
        "named": case.named,
        "dcp_interleave": at.interleave,
        "cc": at.compute_capability,
        "runner": at.runner,
        "threshold": at.threshold,
        "prefix_threshold": at.prefix_threshold,
        "rows": [f"{row.queries}:{row.prefix}" for row in case.rows],
    }


def _tables(case: Case, costs: Sequence[RowCost], scanned: list[dict[str, Any]] | None) -> list[Table]:
    timed = case.setting.ceilings is not None
    figures = (("absorbed_bound_s", "seconds"), ("naive_bound_s", "seconds"), ("regret_s", "seconds"))
    counts = (("absorbed.flop", "flop"), ("naive.flop", "flop"))
    alike = _alike(costs)[:MOST_SHOWN]
    several = any(len(indices) > 1 for indices in alike)
    rows = tuple(
        (
            *((f"{len(indices):,}x",) if several else ()),
            Cell(f"rows[{indices[0]}].queries"),
            Cell(f"rows[{indices[0]}].prefix"),
            Cell(f"rows[{indices[0]}].path", "text"),
            *(Cell(f"rows[{indices[0]}].{path}", kind) for path, kind in (figures if timed else counts)),
        )
        for indices in alike
    )
    named = ("absorbed", "naive", "regret") if timed else ("absorbed", "naive")
    caption = f"{'each row, ' if several else ''}per rank and layer, weights left out"
    tables = [Table((*(("rows",) if several else ()), "queries", "prefix", "path", *named), rows, caption)]
    shown = [costs[indices[0]] for indices in alike]
    if any(cost.absorbed_estimate_s or cost.naive_estimate_s for cost in shown):
        tables.append(_estimate_table([indices[0] for indices in alike]))
    tables.append(_rule_table(costs, alike))
    if scanned:
        tables.append(_scan_table(scanned))
    return tables


def _alike(costs: Sequence[RowCost]) -> list[list[int]]:
    """The places of the rows that are one record, in the order of the first of each."""
    found: dict[int, list[int]] = {}
    for index, cost in enumerate(costs):
        found.setdefault(id(cost), []).append(index)
    return list(found.values())


def _estimate_table(indices: Sequence[int]) -> Table:
    rows = tuple(
        (
            *(Cell(f"rows[{index}].{name}") for name in ("queries", "prefix")),
            *(
                cell
                for name in ("absorbed", "naive")
                for cell in (
                    Cell(f"rows[{index}].{name}_estimate_s", "short_seconds"),
                    Cell(f"rows[{index}].{name}_estimate_kernel", "text"),
                )
            ),
        )
        for index in indices
    )
    headers = ("queries", "prefix", "absorbed", "by", "naive", "by")
    return Table(headers, rows, "Estimated, each row as a step of its own, weights included")


def _rule_table(costs: Sequence[RowCost], alike: Sequence[Sequence[int]]) -> Table:
    """Every rule once, with the rows among those listed that it decided."""
    decided: dict[str, list[int]] = {}
    for indices in alike:
        decided.setdefault(costs[indices[0]].rule, []).extend(indices)
    rows = tuple((_numbers(sorted(each)), Cell(f"rows[{each[0]}].rule", "text")) for each in decided.values())
    return Table(("row", "rule"), rows)


def _numbers(indices: Sequence[int], most: int = 4) -> str:
    """Rising numbers, runs of three and more as ``2 to 9``, and how many are left after ``most`` of these."""
    runs = [[at for _, at in run] for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0])]
    parts = [part for run in runs for part in ([run] if len(run) > 2 else [[at] for at in run])]
    texts = [f"{part[0]:,} to {part[-1]:,}" if len(part) > 1 else f"{part[0]:,}" for part in parts[:most]]
    left = sum(map(len, parts[most:]))
    return ", ".join(texts) + (f", {left:,} more" if left else "")


def _scan_table(scanned: list[dict[str, Any]]) -> Table:
    worst = max(entry["regret_s"] for entry in scanned) or 1.0
    rows = tuple(
        (
            Cell(f"scan[{index}].threshold"),
            Cell(f"scan[{index}].absorbed_rows"),
            Cell(f"scan[{index}].regret_s", "seconds"),
            "#" * round(BAR * entry["regret_s"] / worst),
            "in force" if entry["in_force"] else "",
        )
        for index, entry in enumerate(scanned)
    )
    return Table(("threshold", "absorbed rows", "regret", "", ""), rows, "Regret of the batch by threshold")


def _sentence(batch: BatchCost) -> str:
    split = f"{fmt.counted(batch.absorbed_rows, 'row')} absorbed, {batch.naive_rows:,} expanded"
    if batch.chosen_bound_s is None or batch.best_bound_s is None or batch.regret_s is None:
        return f"{split}."
    taken, best = fmt.seconds(batch.chosen_bound_s), fmt.seconds(batch.best_bound_s)
    if batch.regret_s <= 0:
        return f"{split}. The batch takes {taken} a layer at least, and no other split that was tried is better."
    share = fmt.percent(batch.regret_s / batch.best_bound_s)
    return f"{split}. The batch takes {taken} a layer at least, {best} by the best split found: a regret of {share}."


def _scan_sentence(scanned: list[dict[str, Any]] | None) -> str:
    if not scanned:
        return ""
    least = min(entry["regret_s"] for entry in scanned)
    best = [entry for entry in scanned if entry["regret_s"] == least]
    if any(entry["in_force"] for entry in best):
        return " Of the thresholds tried none is better than the one in force."
    return f" The least regret, {fmt.seconds(least)}, is at a threshold of {best[0]['threshold']:,}."


def _notes(case: Case, costs: Sequence[RowCost], as_run: bool) -> list[str]:
    notes = []
    if case.refusal:
        notes.append(f"{case.engine.name} would refuse {case.backend} here: {case.refusal}.")
    if case.stored_as:
        notes.append(f"{case.backend} stores {case.situation.cache_dtype} as {case.stored_as}: its rows are priced.")
    if case.situation.dcp > 1:
        notes.append("DCP changes what is decided; FLOPs, bytes and bounds are without it.")
    if case.engine.engine == "vllm":
        notes.append("Rows are put into vLLM's own order before it decides, and listed in the order given.")
    if case.setting.ceilings is None:
        notes.append("No --gpu: times and regret are left out.")
    else:
        notes.append(
            "Regret is time lost, by bounds: a row's against its better path, the batch's against the best split found."
        )
    if not as_run:
        notes.append(
            "The gather of cached rows, the copy of the keys and the merge of chunks are not priced: --as-run."
        )
    found = _sparse(case)
    if found:
        notes += dsa.first_context_notes(**found)
    notes += dsa.notes(case.situation.model, case.indexer, case.setting.ceilings is not None)
    different = len(_alike(costs))
    if different > MOST_SHOWN:
        notes.append(f"The first {MOST_SHOWN} of {different:,} different rows are listed; the JSON has all rows.")
    return [*notes, *request.model_notes(case.situation.model)]


def _estimate_notes(case: Case, estimated: RowEstimates) -> list[str]:
    if case.gpu is None:
        return []
    unknown = ["attention is sparse: it was not measured"] if case.indexer else estimated.reasons
    notes = estimates.notes(case.gpu, estimated.sources, unknown, estimated.kernels)
    if estimated.sources:
        notes.append("A batch has no estimate: its rows share weights and launches, which each row's estimate holds.")
    return notes


def explanations(case: Case, decisions: Sequence[Decision], results: dict[str, Any]) -> tuple[Explanation, ...]:
    """How the first row's figures come about, and the batch's: kernels' counts, and the bounds that they give."""
    return (*_row_explanations(case), *_batch_explanations(case, decisions, results))


def _batch_explanations(case: Case, decisions: Sequence[Decision], results: dict[str, Any]) -> list[Explanation]:
    """The batch's sums over the rows of each path, and what is lost; the first row's loss too."""
    from ..costs.formulas import bound_text, ceiling_names  # only where they are asked for: start-up counts

    sums = batch_sums(case.table, decisions)
    names: dict[str, int | float] = {f"{path}_{kernel}_flop": flop for (path, kernel), (flop, _) in sums.items()}
    names |= {f"{path}_{kernel}_bytes": moved for (path, kernel), (_, moved) in sums.items()}
    kernels = [f"{path}_{kernel}" for path, kernel in sums]
    cite = "over the rows on each path, its weights once"
    found = [
        Explanation(f"batch.chosen_{figure}", " + ".join(f"{kernel}_{figure}" for kernel in kernels), names, cite)
        for figure in ("flop", "bytes")
    ]
    ceilings, row, batch = case.setting.ceilings, results["rows"][0], results["batch"]
    if ceilings is None:
        return found
    bound = " + ".join(bound_text(kernel) for kernel in kernels)
    found.append(Explanation("batch.chosen_bound_s", bound, names | ceiling_names(ceilings), cite))
    best: dict[str, int | float] = {name: batch[name] for name in ("chosen_bound_s", "best_bound_s", "regret_s")}
    if best["regret_s"] == best["chosen_bound_s"] - best["best_bound_s"]:  # or the rounding of the sums is left out
        cite = "against the best of all cuts of the rows, ordered by what absorption gains them"
        found.append(Explanation("batch.regret_s", "chosen_bound_s - best_bound_s", best, cite))
    if case.indexer is None:
        text, layers = "layers * regret_s", {"layers": case.setting.layers}
        found.append(Explanation("batch.total_regret_s", text, best | layers, "all layers that cache"))
    chosen = "absorbed" if row["path"] == "absorbed" else "naive"
    bounds = {f"{path}_bound_s": row[f"{path}_bound_s"] for path in ("absorbed", "naive")}
    if row["regret_s"] == bounds[f"{chosen}_bound_s"] - min(bounds.values()):
        text = f"{chosen}_bound_s - min(absorbed_bound_s, naive_bound_s)"
        found.append(Explanation("rows[0].regret_s", text, bounds, "against its better path, weights left out"))
    return found


def _row_explanations(case: Case) -> list[Explanation]:
    """The first row's."""
    from ..costs.formulas import bound_text, ceiling_names

    found = []
    ceilings = case.setting.ceilings
    for name in case.setting.paths:
        kernels = row_kernels(name, case.rows[0], case.setting)
        names: dict[str, int | float] = {f"{kernel.name}_flop": kernel.flop for kernel in kernels}
        names |= {f"{kernel.name}_bytes": kernel.bytes for kernel in kernels}
        for figure in ("flop", "bytes"):
            summed = " + ".join(f"{kernel.name}_{figure}" for kernel in kernels)
            found.append(Explanation(f"rows[0].{name}.{figure}", summed, names, "the sum over the path's kernels"))
        if ceilings:
            names |= ceiling_names(ceilings)
            bounds = " + ".join(bound_text(kernel.name) for kernel in kernels)
            cite = "one kernel after another, weights left out"
            found.append(Explanation(f"rows[0].{name}_bound_s", bounds, names, cite))
    return found
