"""The float64 references against each other, against loops over plain numbers, and at the edges."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from mla_calc.errors import InputError
from mla_calc.validate import references
from mla_calc.validate.references import absorbed_reference, expanded_reference, relative_error
from tests.validate.paged import PAGE, Drawn, drawn


def absorbed(data: Drawn, cache_scale: float = 1.0) -> torch.Tensor:
    return absorbed_reference(
        data.folded(),
        data.cache,
        data.block_table,
        data.lengths,
        data.scale,
        kv_lora_rank=data.w_uk.shape[-1],
        cache_scale=cache_scale,
    )


def brought_up(data: Drawn, latent: torch.Tensor) -> torch.Tensor:
    return torch.einsum("bqhr,hvr->bqhv", latent, data.w_uv)


def by_hand(data: Drawn) -> list[float]:
    """Absorbed attention of one request by loops over Python floats, flat in [queries, heads, rank]."""
    q, table, length = data.folded()[0].tolist(), data.block_table[0].tolist(), int(data.lengths[0])
    rows = [data.cache[table[at // PAGE], at % PAGE].tolist() for at in range(length)]
    rank, out = data.w_uk.shape[-1], []
    for i, query in enumerate(q):
        seen = rows[: length - len(q) + i + 1]
        for head in query:
            weights = [math.exp(data.scale * sum(a * b for a, b in zip(head, row, strict=True))) for row in seen]
            total = sum(weights)
            out += [sum(w * row[c] for w, row in zip(weights, seen, strict=True)) / total for c in range(rank)]
    return out


@pytest.mark.parametrize(("length", "queries"), [(1, 1), (5, 3), (66, 2), (64, 1), (4, 4)])
def test_absorbed_against_loops_over_plain_numbers(length: int, queries: int) -> None:
    data = drawn([length], queries=queries)
    assert absorbed(data).flatten().tolist() == pytest.approx(by_hand(data), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("queries", [1, 2, 4, 70])
def test_both_forms_agree_through_the_fold(queries: int) -> None:
    # edges of pages, and rows past every length hold NaN
    data = drawn([max(queries, n) for n in (1, 63, 64, 65, 128, 200)], queries=queries)
    latent, expanded = absorbed(data), expanded_reference(*data.arguments())
    assert torch.isfinite(latent).all()
    assert (brought_up(data, latent) - expanded).abs().max() <= 1e-12


def test_one_key_gives_its_own_latent() -> None:
    data = drawn([1, 1])
    for request in (0, 1):
        row = data.cache[data.block_table[request, 0], 0, :16]
        assert torch.equal(absorbed(data)[request, 0], row.expand(3, -1))


def test_the_masks_of_queries() -> None:
    # query i of 3 over 7 keys is the only query of a context of 5 + i keys
    data = drawn([7], queries=3)
    together = absorbed(data)
    for i in range(3):
        alone = replace(
            data, q_nope=data.q_nope[:, i : i + 1], q_rope=data.q_rope[:, i : i + 1], lengths=data.lengths - 2 + i
        )
        assert torch.allclose(together[:, i], absorbed(alone)[:, 0], rtol=1e-13, atol=0)
        assert torch.allclose(
            expanded_reference(*data.arguments())[:, i],
            expanded_reference(*alone.arguments())[:, 0],
            rtol=1e-12,
            atol=1e-15,
        )


def test_queries_that_see_nothing_give_zeros() -> None:
    data = drawn([0, 2, 5], queries=4)
    out, expanded = absorbed(data), expanded_reference(*data.arguments())
    assert torch.equal(out[0], torch.zeros_like(out[0]))
    assert torch.equal(out[1, :2], torch.zeros_like(out[1, :2]))
    assert torch.equal(expanded[1, :2], torch.zeros_like(expanded[1, :2]))
    assert (out[1, 2:] != 0).all()
    assert (out[2] != 0).all()


def test_taken_in_pieces_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = drawn([70, 200], queries=9)
    whole, expanded = absorbed(data), expanded_reference(*data.arguments())
    monkeypatch.setattr(references, "MOST_VALUES", 1300)  # two queries of 3 heads and 200 keys, 6 of 1 head
    assert torch.allclose(absorbed(data), whole, rtol=1e-13, atol=1e-15)
    assert torch.allclose(expanded_reference(*data.arguments()), expanded, rtol=1e-13, atol=1e-15)


def test_fp8_rows_are_read_with_their_scale() -> None:
    data = drawn([65, 3], cache_dtype=torch.float8_e4m3fn)
    scaled = replace(data, cache=data.cache.double() * 0.25)
    assert torch.equal(absorbed(data, cache_scale=0.25), absorbed(scaled))
    assert torch.equal(expanded_reference(*data.arguments(), cache_scale=0.25), expanded_reference(*scaled.arguments()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lengths": torch.tensor([65, 3])}, "a length of 65 is outside of 0 to 64"),
        ({"lengths": torch.tensor([-1, 3])}, "outside of 0 to 64"),
        ({"lengths": torch.tensor([3])}, "2 requests"),
        ({"block_table": torch.zeros(1, 1, dtype=torch.int32)}, "2 requests"),
        ({"cache": torch.zeros(4, 64, 19)}, "do not fit"),
        ({"w_uk": torch.zeros(2, 8, 16)}, "do not fit"),
    ],
)
def test_tensors_that_do_not_belong_together(change: dict[str, torch.Tensor], said: str) -> None:
    data = replace(drawn([5, 3]), **change)
    with pytest.raises(InputError, match=said):
        expanded_reference(*data.arguments())


def test_the_error_is_that_of_the_worst_request() -> None:
    expected = torch.tensor([[300.0, 400.0], [3.0, 4.0]], dtype=torch.float64)
    found = expected + torch.tensor([[0.0, 1.0], [0.5, 0.0]], dtype=torch.float64)
    assert relative_error(found, expected) == pytest.approx(0.1)
    assert relative_error(expected, expected) == 0.0


def test_the_error_of_zeros_and_of_nan() -> None:
    zeros = torch.zeros(2, 3, dtype=torch.float64)
    assert relative_error(zeros, zeros) == 0.0
    assert relative_error(zeros + 1e-9, zeros) == math.inf
    for bad in (math.nan, math.inf):
        spoilt = torch.ones(2, 3, dtype=torch.float64)
        spoilt[1, 1] = bad
        assert math.isnan(relative_error(spoilt, torch.ones(2, 3, dtype=torch.float64)))
