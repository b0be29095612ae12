"""How prefixes are cut into chunks, against vllm#50613 and counts by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mla_calc.costs.chunks import Chunk, equal_chunks, equal_share, greedy_chunks
from mla_calc.errors import InputError

VECTOR = [60_000] + [16] * 31
"""vllm#50613: one request with 60,000 tokens of context and 31 with 16."""


def test_the_vector_of_vllm_50613() -> None:
    # before: 65,536 // 32 = 2,048 rows each, ceil(60,000 / 2,048) = 30; now 60,496 <= 65,536 is one
    assert len(equal_chunks(VECTOR, 65_536, 16)) == 30
    assert [chunk.tokens for chunk in greedy_chunks(VECTOR, 65_536, 16)] == [60_496]


def test_sglang_divides_among_all_rows() -> None:
    # sglang 0.5.23 forward_batch_deepseek_mha_mixin.py:204-216: 131,072 // 32 = 4,096; ceil(60,000 / 4,096) = 15
    assert len(equal_chunks(VECTOR, 131_072, sharers=32)) == 15


def test_who_takes_a_share() -> None:
    # 100 rows more that have no prefix: in vLLM 0.26 (mla_attention.py:1533-1540) they are no prefills with context
    more = VECTOR + [0] * 100
    assert len(equal_chunks(more, 65_536, 16)) == 30
    # SGLang divides by the batch: 131,072 // 132 = 992; 60 * 992 = 59,520, so ceil(60,000 / 992) = 61
    assert len(equal_chunks(more, 131_072, sharers=132)) == 61


def test_a_split_is_on_a_page() -> None:
    # 100 rows, pages of 64: 70 + 30 fit, so the second row gives nothing before its first page boundary
    chunks = greedy_chunks([70, 200], 100, 64)
    assert [[(piece.row, piece.start, piece.tokens) for piece in chunk.pieces] for chunk in chunks] == [
        [(0, 0, 70)],
        [(1, 0, 64)],
        [(1, 64, 64)],
        [(1, 128, 72)],
    ]


def test_exactly_full_and_one_more() -> None:
    assert len(greedy_chunks([128], 128, 64)) == 1
    assert [chunk.tokens for chunk in greedy_chunks([129], 128, 64)] == [128, 1]


def test_rows_without_a_prefix_take_nothing() -> None:
    assert greedy_chunks([0, 0], 64, 64) == ()
    assert equal_chunks([0, 0], 64, 64) == ()
    assert [piece.row for piece in greedy_chunks([0, 5], 64, 64)[0].pieces] == [1]


def test_too_small_a_workspace() -> None:
    with pytest.raises(InputError, match="63"):
        greedy_chunks([1], 63, 64)
    with pytest.raises(InputError, match="share"):
        equal_chunks([1, 1, 1], 128, 64)


def covered(chunks: tuple[Chunk, ...], prefixes: list[int]) -> bool:
    """Whether every prefix is taken once, in order and without a gap."""
    at = [0] * len(prefixes)
    for chunk in chunks:
        for piece in chunk.pieces:
            if piece.start != at[piece.row]:
                return False
            at[piece.row] += piece.tokens
    return at == prefixes


@given(st.lists(st.integers(0, 5000), max_size=12), st.integers(64, 4096))
def test_every_token_is_taken_once(prefixes: list[int], rows: int) -> None:
    for chunks in (greedy_chunks(prefixes, rows, 64), equal_chunks(prefixes, rows)):
        assert covered(chunks, prefixes)
        assert all(0 < chunk.tokens <= rows for chunk in chunks)
        assert all(chunk.tokens == sum(piece.tokens for piece in chunk.pieces) for chunk in chunks)
    # no plan of so many rows has fewer chunks than all tokens need
    assert len(greedy_chunks(prefixes, rows, 64)) >= -(-sum(prefixes) // rows)


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=6), st.integers(8, 4_096), st.booleans())
def test_the_share_counts_the_chunks(prefixes: list[int], rows: int, every: bool) -> None:
    sharers = len(prefixes) if every else None
    share, count = equal_share(prefixes, rows, sharers=sharers)
    assert count == len(equal_chunks(prefixes, rows, sharers=sharers))
    assert not any(prefixes) or share == rows // (sharers or sum(map(bool, prefixes)))


def test_a_plan_of_millions_of_pieces_is_refused() -> None:
    # 131,072 // 20,000 = 6 tokens each: ceil(4,096 / 6) = 683 chunks of 20,000 pieces, 13,660,000 in all
    with pytest.raises(InputError, match="take 683 chunks of 13,660,000 pieces in all"):
        equal_chunks([4_096] * 20_000, 131_072, sharers=20_000)
    assert equal_share([4_096] * 20_000, 131_072, sharers=20_000) == (6, 683)
