"""The identity behind absorption, checked in float64, and RoPE breaking it (docs/cost-model.md, section 8).

Expanded and absorbed scores, probabilities and outputs are the same numbers up to rounding. With RoPE on the
reconstructed key they are not: the matrix to fold is R(j-i) W_UK, another one for every distance j-i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InputError
from ..models.attention import MLA

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TOLERANCE = 1e-12
ROPE_THETA = 10_000.0
OUTPUT_WIDTH = 64
"""Columns of the random output projection: the identity does not depend on the hidden size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxAbsError:
    """Largest absolute differences between the two forms."""

    scores: float
    probabilities: float
    output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityCost:
    """What the check found on random data of the model's widths."""

    heads: int
    queries: int
    context: int
    seed: int
    max_abs_error: MaxAbsError
    tolerance: float
    holds: bool
    rope_folds_needed: int
    """Distances j-i in the block, each with a fold of its own, were RoPE applied to the rebuilt key."""
    rope_per_distance_error: float
    """Relative error of scores with one fold per distance: none, but nothing is saved."""
    rope_broken_error: float
    """Relative error (Frobenius) of scores with a single fold for all distances."""


def parity(mla: MLA, *, queries: int, context: int, heads: int, seed: int) -> ParityCost:
    """Compare both forms in float64 for ``queries`` causal queries at the end of ``context`` keys.

    ``heads`` of the model's heads are drawn, each with its own W_UK and W_UV; the rotated slice is separate
    and shared, the scale is (dn + dr)**-0.5 in both forms, and an output projection follows.

    Raises:
        InputError: more queries than context.
    """
    if queries > context:
        raise InputError(f"{queries:,} queries are more than the context of {context:,}, which counts them too")
    import numpy as np

    rng = np.random.default_rng(seed)
    rank, nope, rope, value = mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim, mla.v_head_dim
    latent = rng.normal(size=(context, rank))
    q, q_rope = rng.normal(size=(queries, heads, nope)), rng.normal(size=(queries, heads, rope))
    k_rope = rng.normal(size=(context, rope))
    # weights scaled so that keys and values come out near unit size, as trained ones do
    w_uk, w_uv = (rng.normal(size=(heads, rank, width)) * rank**-0.5 for width in (nope, value))
    w_o = rng.normal(size=(heads, value, OUTPUT_WIDTH)) * (heads * value) ** -0.5
    scale = (nope + rope) ** -0.5
    positions = np.einsum("qhd,sd->hqs", q_rope, k_rope)

    keys = np.einsum("sr,hrd->hsd", latent, w_uk)
    expanded = (np.einsum("qhd,hsd->hqs", q, keys) + positions) * scale
    folded = np.einsum("qhd,hrd->hqr", q, w_uk)
    absorbed = (np.einsum("hqr,sr->hqs", folded, latent) + positions) * scale
    seen, found = _softmax(expanded), _softmax(absorbed)
    values = np.einsum("sr,hrd->hsd", latent, w_uv)
    expanded_output = np.einsum("hqs,hsd,hdo->qo", seen, values, w_o, optimize=True)
    absorbed_output = np.einsum("hqs,sr,hrd,hdo->qo", found, latent, w_uv, w_o, optimize=True)
    error = MaxAbsError(
        scores=_gap(expanded, absorbed),
        probabilities=_gap(seen, found),
        output=_gap(expanded_output, absorbed_output),
    )
    broken, per_distance = _rope_errors(q[:, 0], keys[0], latent, w_uk[0])
    return ParityCost(
        heads=heads,
        queries=queries,
        context=context,
        seed=seed,
        max_abs_error=error,
        tolerance=TOLERANCE,
        holds=max(error.scores, error.probabilities, error.output) <= TOLERANCE,
        rope_folds_needed=context,
        rope_per_distance_error=per_distance,
        rope_broken_error=broken,
    )


def _rope_errors(q: Array, keys: Array, latent: Array, w_uk: Array) -> tuple[float, float]:
    """Relative errors of one head's scores under RoPE: with one fold for all, and with one per distance."""
    import numpy as np

    queries, context = len(q), len(keys)
    at = np.arange(context - queries, context)
    rotated = _rotate(q, at) @ _rotate(keys, np.arange(context)).T
    single = (q @ w_uk.T) @ latent.T
    # score(i, j) = q_i R(j-i) W_UK^T c_j: rotating q_i by i-j is that distance's own fold
    each = np.zeros((queries, context))
    for distance in range(context):
        rows = np.flatnonzero(at >= distance)
        keyed = at[rows] - distance
        folded = _rotate(q[rows], np.full(len(rows), distance)) @ w_uk.T
        each[rows, keyed] = np.einsum("qr,qr->q", folded, latent[keyed])
    mask = np.arange(context) <= at[:, None]
    return _relative(rotated * mask, single * mask), _relative(rotated * mask, each * mask)


def _rotate(x: Array, positions: NDArray[np.int64]) -> Array:
    """RoPE in the interleaved form: pair p of position t turns by t * theta**(-2p/d); an odd column stays."""
    import numpy as np

    half = x.shape[-1] // 2
    angle = positions[:, None] * ROPE_THETA ** (-np.arange(half) / max(half, 1))
    even, odd = x[:, 0 : 2 * half : 2], x[:, 1 : 2 * half : 2]
    turned = x.copy()
    turned[:, 0 : 2 * half : 2] = even * np.cos(angle) - odd * np.sin(angle)
    turned[:, 1 : 2 * half : 2] = even * np.sin(angle) + odd * np.cos(angle)
    return turned


def _softmax(scores: Array) -> Array:
    """Softmax over the last axis, with the causal mask of queries at the end of the context."""
    import numpy as np

    queries, context = scores.shape[-2:]
    visible = np.arange(context) <= np.arange(context - queries, context)[:, None]
    masked = np.where(visible, scores, -np.inf)
    weights = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True), dtype=np.float64)


def _gap(left: Array, right: Array) -> float:
    import numpy as np

    return float(np.abs(left - right).max())


def _relative(reference: Array, found: Array) -> float:
    import numpy as np

    return float(np.linalg.norm(found - reference) / np.linalg.norm(reference))
