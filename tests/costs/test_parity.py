"""The identity behind absorption, and RoPE breaking it.

Sources: docs/cost-model.md, section 8; the chapter; DeepSeek-V2, arXiv:2405.04434.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mla_calc.costs.parity import parity
from mla_calc.models.attention import MLA
from tests.shapes import CHEAP_CORE, DSV3, EVEN_CORES, MLAS, UNEVEN


def softmax(a: Any) -> Any:
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def chapter_snippet(absorbed_scale: Callable[[int, int, int], float]) -> tuple[float, float]:
    """The chapter's reference, with the scale of the absorbed form left open: errors of scores and output."""
    rng = np.random.default_rng(42)
    queries, context, rank, key_dim, value_dim, rope_dim = 3, 5, 4, 2, 3, 2
    c = rng.normal(size=(context, rank))
    q = rng.normal(size=(queries, key_dim))
    q_rope = rng.normal(size=(queries, rope_dim))
    k_rope = rng.normal(size=(context, rope_dim))
    uk = rng.normal(size=(rank, key_dim))
    uv = rng.normal(size=(rank, value_dim))
    expanded = (q @ (c @ uk).T + q_rope @ k_rope.T) * (key_dim + rope_dim) ** -0.5
    absorbed = ((q @ uk.T) @ c.T + q_rope @ k_rope.T) * absorbed_scale(key_dim, rope_dim, rank)
    output = softmax(expanded) @ (c @ uv) - (softmax(absorbed) @ c) @ uv
    return float(np.abs(absorbed - expanded).max()), float(np.abs(output).max())


def test_the_chapters_reference() -> None:
    # its two assertions: atol 1e-12
    scores, output = chapter_snippet(lambda key, rope, rank: (key + rope) ** -0.5)  # noqa: ARG005
    assert scores <= 1e-12
    assert output <= 1e-12


@pytest.mark.parametrize(
    "scale",
    [lambda key, rope, rank: (rank + rope) ** -0.5, lambda key, rope, rank: rank**-0.5 / 2],  # noqa: ARG005
    ids=["the row's width", "half the latent's"],
)
def test_another_scale_changes_the_function(scale: Callable[[int, int, int], float]) -> None:
    # the chapter: "replacing it with the latent width's square root changes the function"
    scores, output = chapter_snippet(scale)
    assert scores > 0.01
    assert output > 0.01


@pytest.mark.parametrize("seed", [0, 1, 42])
@pytest.mark.parametrize(("queries", "context"), [(1, 2), (3, 5), (8, 8), (4, 40)])
@pytest.mark.parametrize("mla", MLAS.values(), ids=MLAS)
def test_both_forms_agree(mla: MLA, queries: int, context: int, seed: int) -> None:
    # docs/cost-model.md, section 8: to 1e-12 in float64, whatever the shape
    found = parity(mla, queries=queries, context=context, heads=2, seed=seed)
    errors = found.max_abs_error
    assert max(errors.scores, errors.probabilities, errors.output) <= found.tolerance == 1e-12
    assert found.holds
    assert (found.heads, found.queries, found.context, found.seed) == (2, queries, context, seed)


def test_the_two_forms_are_computed_apart() -> None:
    """Rounding differs between two products in another order: errors of exactly 0 would be one form twice."""
    errors = parity(DSV3, queries=8, context=64, heads=4, seed=0).max_abs_error
    assert errors.scores > 0
    assert errors.probabilities > 0
    assert errors.output > 0


@pytest.mark.parametrize("seen", ["fold", "keys", "values"])
def test_an_error_in_one_form_is_caught(monkeypatch: pytest.MonkeyPatch, seen: str) -> None:
    """A fold, keys or values that are off by a billionth fail the check."""
    heads, queries, context = 3, 5, 7
    shapes = {
        "fold": (heads, queries, UNEVEN.kv_lora_rank),
        "keys": (heads, context, 16),
        "values": (heads, context, 24),
    }
    real, hits = np.einsum, []

    def off(*operands: Any, **options: Any) -> Any:
        result = real(*operands, **options)
        if result.shape == shapes[seen]:
            hits.append(result.shape)
            return result * (1 + 1e-9)
        return result

    def run() -> bool:
        return parity(UNEVEN, queries=queries, context=context, heads=heads, seed=7).holds

    assert run()
    monkeypatch.setattr(np, "einsum", off)
    if seen == "values":
        # values may be contracted with the probabilities in one call: then there is no such tensor to break
        assert not run() or not hits
    else:
        assert not run()
        assert hits


def test_probabilities_are_those_of_a_reference_with_the_models_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms against loops over the numbers that were drawn: scale (dn+dr)**-0.5, causal, softmax.

    The draws are told apart by their shapes, which all differ here.
    """
    heads, queries, context = 3, 5, 7
    rank, nope, turned = UNEVEN.kv_lora_rank, UNEVEN.qk_nope_head_dim, UNEVEN.qk_rope_head_dim
    drawn: dict[tuple[int, ...], Any] = {}
    real, real_exp, exponents = np.random.default_rng, np.exp, []

    class Recorder:
        def __init__(self, seed: int) -> None:
            self.generator = real(seed)

        def normal(self, size: tuple[int, ...]) -> Any:
            drawn[size] = self.generator.normal(size=size)
            return drawn[size]

    def exp(x: Any) -> Any:
        exponents.append(x)
        return real_exp(x)

    monkeypatch.setattr(np.random, "default_rng", Recorder)
    monkeypatch.setattr(np, "exp", exp)
    parity(UNEVEN, queries=queries, context=context, heads=heads, seed=9)
    c, k_rope = drawn[context, rank], drawn[context, turned]
    q, q_rope = drawn[queries, heads, nope], drawn[queries, heads, turned]
    w_uk = drawn[heads, rank, nope] * rank**-0.5  # as parity scales its weights
    expected = np.full((heads, queries, context), -np.inf)
    for head in range(heads):
        for i in range(queries):
            for j in range(context - queries + i + 1):
                key = np.concatenate([c[j] @ w_uk[head], k_rope[j]])
                query = np.concatenate([q[i, head], q_rope[i, head]])
                expected[head, i, j] = query @ key * (nope + turned) ** -0.5
    expected -= expected.max(axis=-1, keepdims=True)
    assert len(exponents) == 2
    for found in exponents:
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_seeds_draw_other_numbers() -> None:
    first, again, other = (parity(UNEVEN, queries=4, context=9, heads=2, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.rope_broken_error != other.rope_broken_error


# --- RoPE


def rope(x: Any, position: int) -> Any:
    """R(p) x: pairs turned by p * 10000**(-2i/d), as complex numbers."""
    half = len(x) // 2
    turned = (x[0::2] + 1j * x[1::2]) * np.exp(1j * position * 10000.0 ** (-np.arange(half) / half))
    return np.stack([turned.real, turned.imag], axis=1).ravel()


def test_rope_needs_a_fold_for_every_distance() -> None:
    """The chapter's derivation, written out: the matrix to fold is R(j-i) W_UK, another one per distance."""
    rng = np.random.default_rng(5)
    width, rank, length = 8, 12, 10
    q, c, uk = rng.normal(size=(length, width)), rng.normal(size=(length, rank)), rng.normal(size=(width, rank))
    single, each, scores = [], [], []
    folds: dict[int, Any] = {}
    for i in range(length):
        for j in range(i + 1):
            scores.append(rope(q[i], i) @ rope(uk @ c[j], j))
            single.append((uk.T @ q[i]) @ c[j])
            fold = folds.setdefault(j - i, np.array([rope(column, j - i) for column in uk.T]))
            each.append((fold @ q[i]) @ c[j])
    norm = np.linalg.norm(scores)
    assert np.linalg.norm(np.subtract(each, scores)) / norm < 1e-12
    assert np.linalg.norm(np.subtract(single, scores)) / norm > 0.1
    assert len(folds) == length
    # and the tool says so of the same widths
    found = parity(replace(EVEN_CORES, qk_nope_head_dim=width), queries=length, context=length, heads=1, seed=5)
    assert found.rope_folds_needed == len(folds)


@pytest.mark.parametrize(("queries", "context"), [(3, 5), (8, 8), (1, 40), (4, 40)])
@pytest.mark.parametrize("mla", [DSV3, UNEVEN, EVEN_CORES, CHEAP_CORE], ids=["dsv3", "uneven", "even", "cheap"])
def test_rope_on_the_rebuilt_key_breaks_absorption(mla: MLA, queries: int, context: int) -> None:
    # docs/cost-model.md, section 8: shown numerically, one fold per distance j-i
    found = parity(mla, queries=queries, context=context, heads=2, seed=11)
    assert found.rope_broken_error > 0.1
    assert found.rope_per_distance_error <= 1e-12
    distances = {i - j for i in range(context - queries, context) for j in range(i + 1)}
    assert found.rope_folds_needed == len(distances)


def test_odd_key_widths_keep_the_identity() -> None:
    found = parity(replace(UNEVEN, qk_nope_head_dim=7), queries=4, context=9, heads=2, seed=0)
    assert found.holds
    assert found.rope_broken_error > 0.1
    assert found.rope_per_distance_error <= 1e-12
