"""Bytes of cache per token over TP, of several models and forms side by side: what the figure of `cache` draws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .cache import CacheCost


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAtTp:
    """Bytes of one token, over all layers, in one form at one TP; sliding-window layers apart."""

    name: str
    """The model, and the form where the same model stands there in another one too."""
    cached: bool
    """Whether it is what is cached; ``False``: what the same tokens would take in the other form."""
    tp: int
    bytes_per_token: int
    per_rank_bytes_per_token: int
    cluster_bytes_per_token: int
    ratio: float = 1.0
    """``bytes_per_token`` over those of the first model: of its latent form, where it has one."""


def tokens_by_tp(model: str, costs: Iterable[CacheCost]) -> tuple[TokenAtTp, ...]:
    """The model's token as it is cached, in the other form, and those of ``vs``; TP by TP.

    Args:
        model: its name.
        costs: of the same model at every TP.
    """
    return tuple(found for cost in costs for found in _with_ratios(model, cost))


def _with_ratios(model: str, cost: CacheCost) -> Iterator[TokenAtTp]:
    tokens = list(_at(model, cost))
    latent_is_other = cost.cache_form == "expanded" and cost.latent_bytes_per_token is not None
    base = tokens[1 if latent_is_other else 0].bytes_per_token
    return (replace(token, ratio=token.bytes_per_token / base) for token in tokens)


def _named(model: str, form: str, cost: CacheCost) -> str:
    """The model and the form, and what is cached beside it in either form."""
    return f"{model}, {form}{' and indexer keys' if cost.indexer_layers else ''}"


def _at(model: str, cost: CacheCost) -> Iterator[TokenAtTp]:
    other = _other_form(model, cost)
    yield TokenAtTp(
        name=_named(model, cost.cache_form, cost) if other else model,
        cached=True,
        tp=cost.tp,
        bytes_per_token=cost.bytes_per_token,
        per_rank_bytes_per_token=cost.per_rank_bytes_per_token,
        cluster_bytes_per_token=cost.cluster_bytes_per_token,
    )
    if other:
        yield other
    for beside in cost.vs:
        yield TokenAtTp(
            name=beside.model,
            cached=True,
            tp=cost.tp,
            bytes_per_token=beside.bytes_per_token,
            per_rank_bytes_per_token=beside.per_rank_bytes_per_token,
            cluster_bytes_per_token=beside.cluster_bytes_per_token,
        )


def _other_form(model: str, cost: CacheCost) -> TokenAtTp | None:
    """The expanded keys and values in bf16, whose heads TP shards, or the latent, which stands on every rank.

    Indexer keys stand on every rank beside both, so that forms differ by what is expanded alone. ``None`` for a model
    without a latent.
    """
    latent, expanded, keys = cost.latent_bytes_per_token, cost.expanded_bytes_per_token, cost.indexer_bytes_per_token
    if latent is None or expanded is None:
        return None
    if cost.cache_form == "expanded":
        form, copy, rank, cluster = "latent", latent, latent, latent * cost.tp
    else:
        form, copy, rank, cluster = "expanded", expanded, expanded // cost.tp, expanded
    return TokenAtTp(
        name=_named(model, form, cost),
        cached=False,
        tp=cost.tp,
        bytes_per_token=copy + keys,
        per_rank_bytes_per_token=rank + keys,
        cluster_bytes_per_token=cluster + keys * cost.tp,
    )
