"""Chunked prefill's buffers.

Sources: docs/cost-model.md, section 6; vLLM's comment as the chapter quotes it; vllm 0.33.0
model_executor/layers/attention/mla_attention.py, "mla_attention.py" below.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mla_calc.costs.cache import cache_cost
from mla_calc.costs.layouts import load_layout
from mla_calc.costs.workspace import VLLM, SparseScratch, expansion_cost, workspace_cost, workspace_rows
from mla_calc.engines.load import load_engine
from mla_calc.models.attention import Indexer
from tests.shapes import DSV3, NOPE, UNEVEN, model

GIB = 2**30
PER_TOKEN = 70_272
DSV3_LENGTH = 163_840


def test_dsv3_defaults() -> None:
    # the chapter works vLLM's comment: 72 MiB of rows become 3 GiB of keys, 42.7x; 2 GiB of values beside
    cost = workspace_cost(DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN)
    assert cost.rows == cost.rows_cap == 65_536
    assert cost.latent_bytes == 75_497_472 == 72 * 2**20
    assert cost.k_bytes == 3_221_225_472 == 3 * GIB
    assert cost.v_bytes == 2_147_483_648 == 2 * GIB
    assert cost.expansion_ratio == pytest.approx(42.67, abs=0.005)
    assert cost.expansion_ratio == 192 * 128 / 576
    # mla_attention.py:3043-3045, 2952: kv_nope, then k beside it; 934-947: the profile run reserves kv_nope alone
    assert cost.kv_nope_bytes == cost.reserved_bytes == 4 * GIB
    assert cost.transient_peak_bytes == 7 * GIB
    assert (cost.tp, cost.max_num_seqs, cost.block_size) == (1, 256, 64)
    assert cost.cache_tokens_given_back is None


def test_the_comments_own_label_is_twice_its_formula() -> None:
    # "2*(576)*(64*1024) = 144mb"
    cost = workspace_cost(DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN)
    assert cost.latent_bytes * 2 == 144 * 2**20


def test_the_older_cap_of_vllm_25290() -> None:
    # the comment before vllm-project/vllm#25290: 128k rows, "288mb / 6gb": 144 MiB and 6 GiB
    cost = workspace_cost(DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN, rows_cap=128 * 1024)
    assert (cost.rows, cost.latent_bytes, cost.k_bytes) == (131_072, 144 * 2**20, 6 * GIB)


@pytest.mark.parametrize("tp", [1, 2, 8, 128])
def test_transients_divide_by_tp_and_the_rows_do_not(tp: int) -> None:
    cost = workspace_cost(DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN, tp=tp)
    assert cost.latent_bytes == 75_497_472
    assert cost.kv_nope_bytes * tp == 4 * GIB
    assert cost.k_bytes * tp == 3 * GIB
    assert cost.v_bytes * tp == 2 * GIB
    assert cost.transient_peak_bytes * tp == 7 * GIB
    if tp == 8:  # half a gibibyte of kv_nope and 384 MiB of keys: 512 + 384 = 896 MiB
        assert cost.transient_peak_bytes == 896 * 2**20


@pytest.mark.parametrize(
    ("length", "requests", "block", "cap", "rows"),
    [
        # the cap decides
        (163_840, 256, 64, 65_536, 65_536),
        (8192, 1, 64, 65_536, 65_536),
        # 8 full-length requests decide
        (1024, 16, 64, 65_536, 8192),
        (8191, 1, 1, 65_536, 65_528),
        # 4 pages per request decide
        (1024, 256, 16, 65_536, 16_384),
        (10, 100, 64, 65_536, 25_600),
        # both alike
        (2048, 64, 64, 65_536, 16_384),
        # rounded up to the block: 800 -> 13 * 64, 8 -> 1 block, the cap itself -> 1366 * 48
        (100, 1, 64, 65_536, 832),
        (1, 1, 1, 65_536, 8),
        (1, 1, 3, 65_536, 12),
        (163_840, 256, 48, 65_536, 65_568),
        # a smaller cap
        (163_840, 256, 64, 1000, 1024),
        (163_840, 256, 64, 1, 64),
        (100, 1, 64, 800, 832),
        (100, 1, 64, 799, 832),
        (100, 1, 16, 799, 800),
    ],
)
def test_rows_by_hand(length: int, requests: int, block: int, cap: int, rows: int) -> None:
    # mla_attention.py:2329-2354: min(max(8*len, 4*seqs*block), cap), then aligned to the block
    assert workspace_rows(VLLM, length, requests, block, cap) == rows
    cost = workspace_cost(
        DSV3,
        max_model_len=length,
        cache_bytes_per_token=PER_TOKEN,
        max_num_seqs=requests,
        block_size=block,
        rows_cap=cap,
    )
    assert cost.rows == rows
    assert cost.latent_bytes == rows * 1152
    assert cost.k_bytes == rows * 128 * 192 * 2
    assert cost.v_bytes == rows * 128 * 128 * 2
    assert cost.kv_nope_bytes == rows * 128 * 256 * 2


def test_a_model_without_rope_has_no_copy_of_its_keys() -> None:
    # mla_attention.py:2952: without a rotated part no keys are assembled
    cost = workspace_cost(NOPE, max_model_len=DSV3_LENGTH, cache_bytes_per_token=11_264)
    assert cost.kv_nope_bytes == 65_536 * 64 * 512 * 2 == 4 * GIB
    assert cost.transient_peak_bytes == cost.kv_nope_bytes
    assert cost.k_bytes == 65_536 * 64 * 256 * 2


def test_uneven_widths_by_hand() -> None:
    # 12 heads on 4 ranks, dn 16, dr 6, dv 24, r 40
    cost = workspace_cost(UNEVEN, max_model_len=1, cache_bytes_per_token=92, tp=4, max_num_seqs=1, block_size=8)
    assert cost.rows == 32
    assert cost.latent_bytes == 32 * 46 * 2
    assert cost.k_bytes == 32 * 3 * 22 * 2
    assert cost.v_bytes == 32 * 3 * 24 * 2
    assert cost.kv_nope_bytes == 32 * 3 * 40 * 2
    assert cost.transient_peak_bytes == 32 * 3 * (40 + 22) * 2


def test_a_gibibyte_of_it_is_15_279_tokens() -> None:
    # docs/cost-model.md, section 6
    assert GIB // cache_cost(model(DSV3, 61), load_layout("bf16")).bytes_per_token == 15_279


def test_what_it_takes_the_place_of() -> None:
    """The rows and what the profile run reserves, in tokens: (72 MiB + 4 GiB) / 70,272 B."""
    cost = workspace_cost(DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN)
    assert cost.cache_tokens_worth == (75_497_472 + 4 * GIB) // 70_272 == 62_193


@pytest.mark.parametrize(
    ("cap", "tp", "tokens"),
    [
        # (65,536 - 32,768) rows of 1,152 + 65,536 B, over 70,272 B
        (32_768, 1, 31_096),
        (8192, 1, 57_344 * 66_688 // 70_272),
        # at TP 8 the reserved part is an eighth: 1,152 + 8,192 B
        (32_768, 8, 32_768 * 9344 // 70_272),
        # 1,000 rows are 1,024
        (1000, 1, 64_512 * 66_688 // 70_272),
    ],
)
def test_what_a_smaller_cap_gives_back(cap: int, tp: int, tokens: int) -> None:
    cost = workspace_cost(DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN, tp=tp, rows_cap=cap)
    assert cost.cache_tokens_given_back == tokens
    # given back and still taken are what was taken, up to a token lost to rounding
    full = workspace_cost(DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN, tp=tp)
    assert 0 <= full.cache_tokens_worth - cost.cache_tokens_worth - tokens <= 1


def test_a_cap_that_changes_nothing_gives_nothing_back() -> None:
    # 8 * 100 rows are below either cap
    cost = workspace_cost(DSV3, max_model_len=100, cache_bytes_per_token=PER_TOKEN, max_num_seqs=1, rows_cap=32_768)
    assert (cost.rows, cost.cache_tokens_given_back) == (832, 0)


def test_a_larger_cap_takes_tokens() -> None:
    # 65,536 rows more of 66,688 B each: 62,193.3 tokens of 70,272 B, so the cache holds 62,194 fewer
    cost = workspace_cost(DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN, rows_cap=131_072)
    assert cost.cache_tokens_given_back == -62_194


# --- decode context parallelism, DSA models, fp8 buffers, SGLang


@pytest.mark.parametrize(("dcp", "mib"), [(1, 72), (2, 108), (4, 90), (8, 81)])
def test_the_buffer_under_dcp(dcp: int, mib: int) -> None:
    # vllm 0.33.0 mla_attention.py:2463-2481: rows + rows / dcp of 1,152 B
    cost = workspace_cost(DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN, dcp=dcp)
    assert cost.latent_bytes == mib * 2**20


def test_rows_under_dcp_are_aligned_to_the_shares() -> None:
    # lcm(64, 3 * 5) = 960; 65,536 rounded up to it
    cost = workspace_cost(DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN, dcp=3, interleave=5)
    assert cost.rows == 66_240 == 69 * 960


def test_an_fp8_buffer_has_half_the_bytes_but_not_under_dcp() -> None:
    # vllm 0.33.0 mla_attention.py:2357-2396: 36 MiB; under DCP the model's dtype always
    def latent(dcp: int) -> int:
        sizes = {"max_model_len": DSV3_LENGTH, "cache_bytes_per_token": PER_TOKEN}
        return workspace_cost(DSV3, **sizes, dcp=dcp, buffer_value_bytes=1).latent_bytes

    assert (latent(1), latent(2)) == (36 * 2**20, 108 * 2**20)


V32 = Indexer(heads=64, head_dim=128, topk=2048, layers=61)


@pytest.mark.parametrize(("requests", "rows"), [(1, 2048), (31, 63_488), (32, 65_536), (256, 65_536)])
def test_the_further_cap_of_sparse_models(requests: int, rows: int) -> None:
    # vllm 0.33.0 sparse_mla_attention.py:272-294: max_num_seqs * index_topk; the profile keeps the dense rule
    cost = workspace_cost(
        DSV3, max_model_len=DSV3_LENGTH, cache_bytes_per_token=PER_TOKEN, max_num_seqs=requests, indexer=V32
    )
    assert cost.rows == rows
    assert cost.reserved_rows == 65_536
    assert cost.reserved_bytes == 4 * 2**30  # vllm#57170: reserved for dense rows


def test_what_sparse_backends_keep_besides() -> None:
    # vllm 0.33.0 flashmla_sparse.py:336-344 and indexer.py:916-927: V3.2 at 163,840
    scratch = SparseScratch(
        prefill_factor=5,
        indexer_factor=40,
        long_length=262_144,
        long_prefill_factor=2,
        long_indexer_factor=16,
        source="vllm 0.33.0",
    )
    rule = replace(VLLM, sparse_scratch=scratch)

    def besides(length: int) -> tuple[int, int]:
        cost = workspace_cost(DSV3, max_model_len=length, cache_bytes_per_token=PER_TOKEN, rule=rule, indexer=V32)
        assert cost.held_bytes == (
            cost.latent_bytes + cost.reserved_bytes + cost.sparse_prefill_bytes + cost.indexer_buffer_bytes
        )
        return cost.sparse_prefill_bytes, cost.indexer_buffer_bytes

    assert besides(163_840) == (943_718_400, 865_075_200)
    assert besides(262_144) == (5 * 262_144 * 1152, 40 * 262_144 * 132)
    assert besides(262_145) == (2 * 262_145 * 1152, 16 * 262_145 * 132)


def test_what_was_not_read_of_a_release_is_not_zero() -> None:
    # V3.2 takes 70,272 + 61 * 132 = 78,324 B a token; 72 MiB and 4 GiB, nothing known besides
    sizes = {"max_model_len": DSV3_LENGTH, "cache_bytes_per_token": 78_324}
    unread = replace(VLLM, sparse_scratch=None)
    cost = workspace_cost(DSV3, **sizes, rule=unread, indexer=V32)
    assert (cost.sparse_prefill_bytes, cost.indexer_buffer_bytes) == (None, None)
    assert cost.held_bytes == 4_370_464_768 == 72 * 2**20 + 4 * GIB
    assert cost.cache_tokens_worth == 55_799
    # a dense model has none to read
    dense = workspace_cost(DSV3, **sizes, rule=unread)
    assert (dense.sparse_prefill_bytes, dense.indexer_buffer_bytes) == (0, 0)


def test_the_rule_without_an_engine_is_that_of_0_33() -> None:
    preset = load_engine("vllm@0.33").workspace
    assert preset
    assert preset.sparse_scratch
    assert VLLM.sparse_scratch
    assert replace(VLLM, sparse_scratch=None, source="") == replace(preset, sparse_scratch=None, source="")
    assert replace(VLLM.sparse_scratch, source="") == replace(preset.sparse_scratch, source="")


def test_a_page_for_every_request_before_0_28() -> None:
    # vllm 0.26 mla_attention.py:1710-1714: the cap gives way to one page per request
    rule = replace(VLLM, at_least_a_page_per_request=True)
    assert workspace_rows(rule, 1000, 2048, 64) == 2048 * 64
    assert workspace_rows(VLLM, 1000, 2048, 64) == 65_536


def test_sglangs_expansion() -> None:
    # sglang 0.5.23, chunk capacity 131,072, TP 1: kv 8 GiB and k 6 GiB
    cost = expansion_cost(DSV3, rows=131_072)
    assert (cost.kv_nope_bytes, cost.k_bytes) == (8 * 2**30, 6 * 2**30)
    assert cost.transient_peak_bytes == 14 * 2**30
    assert expansion_cost(DSV3, rows=131_072, tp=8).k_bytes == 6 * 2**27
    assert (cost.latent_bytes, cost.reserved_bytes) == (None, None)
