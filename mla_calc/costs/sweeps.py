"""The sweeps: for each command, the columns that a grid of its points gives.

Every column comes from the functions that price a single point, and equals what they give to the last bit.
Names of columns are the keys of that command's JSON, flattened with dots. What has no value (bounds without a
GPU, latent bytes of a GQA model) has no column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from .cache import CacheCost, cache_cost, token_bytes, totals
from .flops import cheaper, path_figures
from .grid import Setting, Sweep
from .intensity import (
    context_token_bytes,
    core_flop_per_context_token,
    intensity_figures,
    sparse_intensity_figures,
)
from .layouts import latent_row_bytes
from .paths import Work
from .sparse import paths_of
from .workspace import WorkspaceCost, workspace_cost

if TYPE_CHECKING:
    from .grid import Column


def _names(record: type[Any], ending: str) -> list[str]:
    return [item.name for item in fields(record) if item.name.endswith(ending)]


def _flops(setting: Setting, points: Mapping[str, Column]) -> dict[str, Column]:
    """Both paths: the columns of ``flops``, without its kernels."""
    work = Work(
        queries=points["queries"],
        context=points["context"],
        row_bytes=latent_row_bytes(setting.layout, setting.mla),
        batch=points["batch"],
        tp=points["tp"],
        causal=setting.causal,
        weight_bytes=setting.weight_bytes,
    )
    columns = dict(points)
    indexing = setting.indexer.layers if setting.indexer else 0
    for name, path in paths_of(setting.indexer).items():
        figures = path_figures(path(setting.mla, work), setting.model.cached_layers, setting.ceilings, indexing)
        columns |= {f"{name}.{key}": column for key, column in figures.items() if column is not None}
    compared = {"fewer_flop": "flop", "fewer_bytes": "bytes", "lower_bound": "bound_s"}
    for name, key in compared.items():
        if f"naive.{key}" in columns:
            columns[name] = cheaper(columns[f"absorbed.{key}"], columns[f"naive.{key}"])
    return columns


TOKEN_FIGURES = (*_names(CacheCost, "bytes_per_token"), "expanded_to_latent_ratio")
"""Columns of ``cache`` that TP alone decides."""


def _cache(setting: Setting, points: Mapping[str, Column]) -> dict[str, Column]:
    """The columns of ``cache``: what a token takes, and the totals of all requests."""
    model, layout = setting.model, setting.layout
    tps, which = _distinct(points["tp"])
    copy = token_bytes(model, layout)
    parts: Any = _table([token_bytes(model, layout, tp=tp) for tp in tps], ("main", "indexer", "windowed"), which)
    token_figures = _table([cache_cost(model, layout, tp=tp) for tp in tps], TOKEN_FIGURES, which)
    return {**points, **token_figures, **totals(model, copy, replace(copy, **parts), **points)}


def _intensity(setting: Setting, points: Mapping[str, Column]) -> dict[str, Column]:
    """The columns of ``intensity``, whose list by TP has a row for each number of queries."""
    import numpy as np

    attention, layout = setting.model.attention, setting.layout
    columns: dict[str, Column] = {}
    for tp in _distinct(points["tp"])[0]:
        rows = points["tp"] == tp
        flop = points["queries"][rows] * core_flop_per_context_token(attention, tp)
        figures = intensity_figures(flop, context_token_bytes(attention, layout, tp), setting.ceilings)
        for name, column in figures.items():
            if column is not None:
                columns.setdefault(name, np.empty(rows.shape, dtype=column.dtype))[rows] = column
    return {**points, **columns}


def _sparse_intensity(setting: Setting, points: Mapping[str, Column]) -> dict[str, Column]:
    """The columns of ``intensity --sparse``, which has a context too."""
    assert setting.indexer
    figures = sparse_intensity_figures(setting.mla, setting.layout, setting.indexer, setting.ceilings, **points)
    return {**points, **{name: column for name, column in figures.items() if column is not None}}


WORKSPACE_FIGURES = ("rows", *_names(WorkspaceCost, "_bytes"), "expansion_ratio", "cache_tokens_worth")


def _workspace(setting: Setting, points: Mapping[str, Column]) -> dict[str, Column]:
    """The columns of ``workspace``, whose record holds arrays where its sizes are arrays."""
    import numpy as np

    tps, which = _distinct(points["tp"])
    held = np.array([token_bytes(setting.model, setting.layout, tp=tp).growing for tp in tps])[which]
    sizes: Any = {**points, "cache_bytes_per_token": held}
    cost = workspace_cost(setting.mla, rule=setting.rule, indexer=setting.model.indexer, **sizes)
    figures = {name: getattr(cost, name) for name in WORKSPACE_FIGURES}
    known = {name: figure for name, figure in figures.items() if figure is not None}
    return {**points, **{name: np.broadcast_to(figure, which.shape) for name, figure in known.items()}}


def _distinct(column: Column) -> tuple[list[int], Column]:
    """The distinct values, and the place of each entry's value among them."""
    import numpy as np

    values, which = np.unique(column, return_inverse=True)
    return values.tolist(), which


def _table(records: list[Any], names: tuple[str, ...], which: Any = slice(None)) -> dict[str, Column]:
    """Fields of records as columns, a record's figures at every place that ``which`` gives it."""
    import numpy as np

    known = [name for name in names if getattr(records[0], name) is not None]
    return {name: np.array([getattr(record, name) for record in records])[which] for name in known}


SWEEPS: dict[str, Sweep] = {
    "flops": Sweep(
        axes=("tp", "batch", "queries", "context"),
        columns=_flops,
        settings=("ceilings", "causal", "weight_bytes", "indexer"),
        mla_only=True,
    ),
    "cache": Sweep(axes=("tp", "batch", "context", "block_size"), columns=_cache),
    "intensity": Sweep(axes=("tp", "queries"), columns=_intensity, settings=("ceilings", "indexer")),
    "workspace": Sweep(
        axes=("tp", "max_model_len", "max_num_seqs", "block_size"),
        columns=_workspace,
        settings=("rule",),
        mla_only=True,
    ),
}
"""The sweeps by command; the first is what `sweep` does without one."""

SPARSE_SWEEPS: dict[str, Sweep] = SWEEPS | {
    "intensity": Sweep(
        axes=("tp", "queries", "context"),
        columns=_sparse_intensity,
        settings=("ceilings", "indexer"),
        mla_only=True,
    ),
}
"""The same with an indexer to price: with topk rows, an intensity is one at a context."""
