"""What both paths start from on a paged cache: a layer's query before any fold, the up-projections, the cached rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class PathInputs:
    """The tensors of one step of one layer; a path is built on them and reads them at each run."""

    q_nope: torch.Tensor
    """[batch, queries, heads, dn], not folded"""
    q_rope: torch.Tensor
    """[batch, queries, heads, dr]"""
    w_uk: torch.Tensor
    """[heads, dn, r], the up-projection of keys"""
    w_uv: torch.Tensor
    """[heads, dv, r], the up-projection of values"""
    cache: torch.Tensor
    """[pages, 64, r + dr]"""
    block_table: torch.Tensor
    """[batch, most pages], int32"""
    lengths: torch.Tensor
    """[batch], int32"""
    scale: float
    """Of the scores."""
    cache_scale: float = 1.0
    """Multiplies fp8 rows."""
