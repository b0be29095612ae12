"""What an absorbed or an expanded decode must return, in float64, from the same paged cache that a kernel reads.

Plain torch on any device, loops over the requests: slow, and right by being short. Only the rows that a request
owns are gathered, so nothing that stands past a length can reach a result.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..errors import InputError

MOST_VALUES = 1 << 26
"""Values of the largest temporary, 512 MiB of float64: queries and heads are taken in pieces that fit."""


def absorbed_reference(
    q: torch.Tensor,
    cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float,
    *,
    kv_lora_rank: int,
    cache_scale: float = 1.0,
) -> torch.Tensor:
    """Attention of folded queries over latent rows, float64 [batch, queries, heads, kv_lora_rank].

    Args:
        q: [batch, queries, heads, width], the nope part folded into the latent space and then the rotary part.
        cache: [pages, rows of a page, width]; the first ``kv_lora_rank`` values of a row are its value too.
        block_table: [batch, most pages], the pages of each request in order.
        lengths: [batch], keys of each request, the new tokens included.
        scale: of the scores.
        kv_lora_rank: values of the latent part of a row.
        cache_scale: what a stored value is multiplied by (fp8 rows).

    The queries are a request's last tokens: query i of Q sees the keys before ``length - Q + i + 1``. One that
    sees no key (a length of 0, or less than Q) gives zeros.

    Raises:
        InputError: shapes that do not belong together, or a length that its pages do not hold.
    """
    _check(q, cache, block_table, lengths, cache.shape[-1])
    batch, queries, heads, _ = q.shape
    out = torch.zeros(batch, queries, heads, kv_lora_rank, dtype=torch.float64, device=q.device)
    for request, length in enumerate(lengths.tolist()):
        rows = request_rows(cache, block_table[request], length, cache_scale)
        latent = rows[:, :kv_lora_rank]
        for piece in _pieces(queries, heads * length):
            scores = torch.einsum("qhd,sd->hqs", q[request, piece].double(), rows) * scale
            weights = _softmax(scores, _visible(piece, queries, length, q.device))
            out[request, piece] = torch.einsum("hqs,sr->qhr", weights, latent)
    return out


def expanded_reference(
    q_nope: torch.Tensor,
    q_rope: torch.Tensor,
    w_uk: torch.Tensor,
    w_uv: torch.Tensor,
    cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float,
    *,
    cache_scale: float = 1.0,
) -> torch.Tensor:
    """Attention over keys and values rebuilt for every head, float64 [batch, queries, heads, dv].

    Args:
        q_nope: [batch, queries, heads, dn], not folded.
        q_rope: [batch, queries, heads, dr].
        w_uk: [heads, dn, r], the up-projection of keys.
        w_uv: [heads, dv, r], the up-projection of values.
        cache: as in ``absorbed_reference``, as are the rest and the mask.

    Raises:
        InputError: as in ``absorbed_reference``.
    """
    heads, nope, rank = w_uk.shape
    if q_nope.shape[2:] != (heads, nope) or q_rope.shape[:3] != q_nope.shape[:3] or w_uv.shape[::2] != (heads, rank):
        raise InputError(
            f"queries of {tuple(q_nope.shape)} and {tuple(q_rope.shape)} do not fit weights of "
            f"{tuple(w_uk.shape)} and {tuple(w_uv.shape)}"
        )
    _check(q_nope, cache, block_table, lengths, rank + q_rope.shape[-1])
    batch, queries = q_nope.shape[:2]
    out = torch.zeros(batch, queries, heads, w_uv.shape[1], dtype=torch.float64, device=q_nope.device)
    for request, length in enumerate(lengths.tolist()):
        rows = request_rows(cache, block_table[request], length, cache_scale)
        latent, k_rope = rows[:, :rank], rows[:, rank:]
        for head in range(heads):
            keys = torch.cat((latent @ w_uk[head].double().T, k_rope), dim=-1)
            values = latent @ w_uv[head].double().T
            query = torch.cat((q_nope[request, :, head], q_rope[request, :, head]), dim=-1).double()
            for piece in _pieces(queries, length):
                scores = (query[piece] @ keys.T * scale).unsqueeze(0)
                weights = _softmax(scores, _visible(piece, queries, length, query.device))
                out[request, piece, head] = weights[0] @ values
    return out


def request_rows(cache: torch.Tensor, pages: torch.Tensor, length: int, cache_scale: float = 1.0) -> torch.Tensor:
    """The ``length`` rows of one request in order, float64 [length, width]."""
    page = cache.shape[1]
    used = pages[: -(-length // page)].long()
    # as bytes where a value is one: not every device indexes fp8
    rows = cache.view(torch.uint8)[used].view(cache.dtype) if cache.element_size() == 1 else cache[used]
    return rows.reshape(-1, cache.shape[-1])[:length].double() * cache_scale


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest Frobenius error of a request (first axis) relative to what is expected of it.

    By request, since short contexts give large outputs, which would hide an error of a long one. NaN or an
    infinity in ``found`` gives NaN; where zeros are expected, anything else gives infinity.
    """
    if not bool(torch.isfinite(found).all()):
        return float("nan")
    gap = (found.double() - expected).flatten(1).norm(dim=1)
    size = expected.flatten(1).norm(dim=1)
    relative = torch.where(gap == 0, torch.zeros_like(gap), gap / size)
    return float(relative.max())


def _check(q: torch.Tensor, cache: torch.Tensor, block_table: torch.Tensor, lengths: torch.Tensor, width: int) -> None:
    """Refuse tensors that do not belong together."""
    if q.ndim != 4 or cache.ndim != 3 or cache.shape[-1] != width:
        raise InputError(f"queries of {tuple(q.shape)} do not fit {tuple(cache.shape)} cache rows of {width} values")
    if block_table.shape[0] != q.shape[0] or lengths.shape != q.shape[:1]:
        raise InputError(
            f"{q.shape[0]} requests have a table of {tuple(block_table.shape)} and lengths of {tuple(lengths.shape)}"
        )
    longest, most = int(lengths.max()), block_table.shape[1] * cache.shape[1]
    if longest > most or int(lengths.min()) < 0:
        raise InputError(f"a length of {longest:,} is outside of 0 to {most:,}, what the block table holds")


def _pieces(queries: int, values_per_query: int) -> Iterator[slice]:
    """Slices of the queries, each with a score matrix of at most ``MOST_VALUES``."""
    step = max(1, MOST_VALUES // max(1, values_per_query))
    for start in range(0, queries, step):
        yield slice(start, min(start + step, queries))


def _visible(piece: slice, queries: int, length: int, device: torch.device) -> torch.Tensor:
    """Which keys each query of a piece sees, bool [queries of the piece, length]."""
    last = torch.arange(piece.start, piece.stop, device=device) + (length - queries)
    return torch.arange(length, device=device) <= last[:, None]


def _softmax(scores: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
    """Softmax over the visible keys of [heads, queries, keys]; zeros for a query that sees none."""
    weights = torch.softmax(scores.masked_fill(~visible, float("-inf")), dim=-1)
    return weights.masked_fill(~visible, 0.0)
