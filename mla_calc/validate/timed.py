"""What a cell times, as the cost model counts it: the one place for planning, measuring, fitting and comparing.

A cell is a :class:`~mla_calc.validate.case.Case` before it is timed and a :class:`~mla_calc.validate.record.Row`
after. Its heads are those of one rank, so its attention has these heads and TP is 1. Without torch.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

from ..costs.layouts import latent_row_bytes, load_layout
from ..costs.paths import PATHS, Kernel, Work
from ..errors import InputError
from ..models.attention import MLA, Model
from .record import Geometry, Row


class Cell(Protocol):
    """The axes of a cell: a row's or a case's."""

    @property
    def heads(self) -> int:
        """Of the rank."""

    @property
    def batch(self) -> int:
        """Requests."""

    @property
    def queries(self) -> int:
        """New tokens of a request."""

    @property
    def context(self) -> int:
        """Tokens of a request, the new ones included."""


def mla_of(model: Model, where: str | None = None) -> MLA:
    """The model's MLA shapes. Raises InputError, which begins with ``where``, for a model without a latent."""
    if model.mla is None:
        place = f"{where}: " if where else ""
        raise InputError(f"{place}{model.name} has no latent (no kv_lora_rank): `validate` is about MLA")
    return model.mla


def geometry_of(model: Model, where: str | None = None) -> Geometry:
    """The widths of the model's attention, as a run records them. Raises InputError as :func:`mla_of` does."""
    mla = mla_of(model, where)
    return Geometry(
        model=model.name,
        kv_lora_rank=mla.kv_lora_rank,
        qk_rope_head_dim=mla.qk_rope_head_dim,
        qk_nope_head_dim=mla.qk_nope_head_dim,
        v_head_dim=mla.v_head_dim,
    )


def rank_mla(geometry: Geometry, heads: int) -> MLA:
    """The attention of one rank, with its ``heads`` as all there are: any number."""
    return MLA(
        heads=heads,
        hidden_size=heads * geometry.v_head_dim,  # no kernel here reads the residual stream
        kv_lora_rank=geometry.kv_lora_rank,
        qk_nope_head_dim=geometry.qk_nope_head_dim,
        qk_rope_head_dim=geometry.qk_rope_head_dim,
        v_head_dim=geometry.v_head_dim,
        q_lora_rank=None,
    )


@cache
def row_bytes_of(layout: str, mla: MLA) -> int:
    """Bytes of a cached row of one token and layer, by a layout's name; read once: a run has thousands of rows.

    Raises:
        InputError: no such layout, or one that is not defined for these widths.
    """
    return latent_row_bytes(load_layout(layout), mla)


def work_of(cell: Cell, row_bytes: int) -> Work:
    """The step of a cell, whose cached rows take ``row_bytes`` each."""
    return Work(queries=cell.queries, context=cell.context, row_bytes=row_bytes, batch=cell.batch)


def step_of(row: Row, geometry: Geometry) -> tuple[MLA, Work]:
    """The attention and the step of a row whose cache is a layout of ours; raises as :func:`row_bytes_of`."""
    mla = rank_mla(geometry, row.heads)
    return mla, work_of(row, row_bytes_of(row.cache, mla))


def timed_kernels(scope: str, mla: MLA, work: Work) -> tuple[Kernel, ...]:
    """The cost model's kernels in a cell: a path's, or the absorbed path's attention alone."""
    path = PATHS["naive" if scope == "naive" else "absorbed"](mla, work)
    return path if scope != "attention" else tuple(kernel for kernel in path if kernel.name == "attention")
