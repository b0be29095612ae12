"""``mla-calc backends``: an engine's MLA backends, and which one it takes for a model on a GPU."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..engines.batch import Resolution
from ..engines.load import load_engine
from ..engines.preset import Engine
from ..engines.rules import rules_of
from ..errors import InputError
from ..report.record import Cell, Report, Table, plain
from . import options
from .command import add_command
from .situation import Aiter, Cc, EngineName, situation_of

app = options.command_app()


def answer(
    *,
    engine: EngineName = "vllm",
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="The model that a backend is resolved for.", autocompletion=options.models),
    ] = None,
    gpu: options.Gpu = None,
    cc: Cc = None,
    tp: Annotated[str, typer.Option("--tp", help="Tensor-parallel ranks.")] = "1",
    dtype: options.Dtype = "bf16",
    block_size: Annotated[str | None, typer.Option("--block-size", help="Tokens per page, where it is set.")] = None,
    dcp: Annotated[str, typer.Option("--dcp", help="Decode-context-parallel ranks.")] = "1",
    aiter: Aiter = False,
    explain: options.Explain = False,  # noqa: ARG001  (nothing here comes of a formula)
    given: frozenset[str] = frozenset(),
) -> Report:
    """An engine's MLA backends, and the ladder resolved: the one taken, and what refused those above it.

    ``given``: the options that were typed, of which one that does not count is refused.

    Raises:
        InputError: an option that is not understood, or does not fit the model or another option.
    """
    loaded = load_engine(engine)
    if model is None:
        _refuse_without_model(given)
    resolution = None
    title = "inventory"
    inputs: dict[str, Any] = {"engine": loaded.name, "model": None}
    if model is not None:
        situation = situation_of(model, gpu, cc, tp=tp, dtype=dtype, block_size=block_size, dcp=dcp, aiter=aiter)
        resolution = rules_of(loaded).resolve(loaded, situation)
        where = situation.gpu.name if situation.gpu else f"compute capability {situation.compute_capability}"
        title = f"{situation.model.name}, {situation.cache_dtype} cache, {where}, TP {situation.tp}"
        inputs |= {"model": situation.model.name, "gpu": situation.gpu.name if situation.gpu else None}
        inputs |= {"cc": situation.compute_capability, "tp": situation.tp, "dtype": situation.cache_dtype}
    return _report(loaded, resolution, title, inputs)


backends = add_command(app, answer)


OF_A_MODEL = ("gpu", "cc", "tp", "dtype", "block_size", "dcp", "aiter")
"""Options that resolve the ladder, which takes a model."""


def _refuse_without_model(given: frozenset[str]) -> None:
    for name in OF_A_MODEL:
        if name in given:
            raise InputError(f"{options.spelled(name)} resolves the ladder for a model: give --model")


def _report(engine: Engine, resolution: Resolution | None, title: str, inputs: dict[str, Any]) -> Report:
    inventory = _inventory(engine)
    results: dict[str, Any] = {
        "resolved": resolution.resolved if resolution else None,
        "ladder": plain(resolution.ladder) if resolution else [],
        "registry": {"total": engine.registry.total, "mla": engine.registry.mla} if engine.registry else None,
        "inventory": inventory,
        "chain": [{"name": name, "inherits": parent} for name, parent in engine.class_chain.items()],
    }
    return Report(
        command="backends",
        title=f"{engine.name}   {title}",
        inputs=inputs,
        results=results,
        tables=tuple(_tables(engine, results)),
        sentence=_sentence(engine, resolution),
        notes=tuple(engine.notes),
        sources=tuple(text for texts in engine.sources.values() for text in texts),
        rows_path="ladder" if resolution else "inventory",
        input_sources={entry["name"]: (entry["source"],) for entry in inventory},
    )


def _inventory(engine: Engine) -> list[dict[str, Any]]:
    """What the preset lists: vLLM's backends, SGLang's handlers."""
    if engine.backends:
        return [
            {
                "name": backend.name,
                "kind": backend.kind,
                "platform": backend.platform,
                "compute_capability_major": list(backend.compute_capability_major),
                "gates_read": backend.gates_read,
                "decode_threshold": plain(backend.decode_threshold),
                "query_len_support": backend.query_len_support,
                "kv_cache_dtypes": plain(backend.kv_cache_dtypes),
                "source": backend.source,
            }
            for backend in engine.backends
        ]
    return [
        {"name": handler.name, "aliases": list(handler.aliases), "rule": handler.rule, "source": handler.source}
        for handler in engine.handlers
    ]


def _tables(engine: Engine, results: dict[str, Any]) -> list[Table]:
    rows: tuple[tuple[str | Cell, ...], ...]
    if results["ladder"]:
        rows = tuple(
            (
                Cell(f"ladder[{index}].name", "text"),
                "taken" if rung["name"] == results["resolved"] and rung["accepted"] else "no",
                Cell(f"ladder[{index}].reason", "text"),
            )
            for index, rung in enumerate(results["ladder"])
        )
        return [Table(("backend", "", "why"), rows)]
    if engine.backends:
        return [_backend_table(results["inventory"])]
    rows = tuple(
        (Cell(f"inventory[{index}].name", "text"), Cell(f"inventory[{index}].rule", "text"))
        for index in range(len(results["inventory"]))
    )
    chain: tuple[tuple[str | Cell, ...], ...] = tuple(
        (Cell(f"chain[{index}].name", "text"), Cell(f"chain[{index}].inherits", "text"))
        for index in range(len(results["chain"]))
    )
    tables = [Table(("handler", "rule"), rows)] if rows else []
    return [*tables, Table(("class", "inherits"), chain)] if chain else tables


SHORT_KINDS = {"deepseek_v4": "V4", "deepseek_v41": "V4.1"}
"""Kinds that take a shorter name in the table, so that the names of backends fit 80 columns."""


def _backend_table(inventory: list[dict[str, Any]]) -> Table:
    rows = tuple(
        (
            Cell(f"inventory[{index}].name", "text"),
            SHORT_KINDS.get(entry["kind"], entry["kind"]),
            _threshold(entry["decode_threshold"]),
            Cell(f"inventory[{index}].query_len_support", "text"),
            _majors(entry),
        )
        for index, entry in enumerate(inventory)
    )
    return Table(("backend", "kind", "threshold", "rows", "on"), rows)


def _threshold(threshold: Any) -> str:
    if isinstance(threshold, list):
        values = [tokens for table in threshold for tokens in (*table["by_heads"].values(), table["otherwise"])]
        return f"{min(values):,} to {max(values):,}"
    return "-" if threshold is None else f"{threshold:,}"


def _majors(entry: dict[str, Any]) -> str:
    if entry["platform"] != "cuda":
        return str(entry["platform"])
    if not entry["gates_read"]:
        return "-"
    return ", ".join(f"{major}.x" for major in entry["compute_capability_major"]) or "any"


def _sentence(engine: Engine, resolution: Resolution | None) -> str:
    text = ""
    if engine.registry:
        share = f"{engine.registry.mla} of the {engine.registry.total} attention backends"
        text = f"{share} that {engine.name} registers are for MLA."
    if resolution is None:
        return text
    taken = f"{engine.name} takes {resolution.resolved}" if resolution.resolved else "No backend accepts this"
    return f"{taken}. {text}".strip()
