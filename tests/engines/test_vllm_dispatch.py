"""vLLM's dispatch: rows at, one below and one above every boundary, in both releases and both orders.

Expected values were read in the wheels of vllm 0.33.0 (g4ba787ec9) and 0.29.0 (g98dff2a81); file and line at each.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from mla_calc.engines.batch import Decision, Row
from mla_calc.engines.load import load_engine as read_engine
from mla_calc.engines.preset import Backend, Engine
from mla_calc.engines.vllm import backend_named, dispatch, effective_threshold
from mla_calc.engines.vllm_dispatch import decode_rows, engine_order
from mla_calc.errors import InputError
from mla_calc.models.attention import Model
from mla_calc.models.load import load_model as read_model


@cache
def load_engine(name: str) -> Engine:
    """Read once: there are hundreds of cases."""
    return read_engine(name)


@cache
def load_model(name: str) -> Model:
    return read_model(name)


RELEASES = ["vllm-0.29", "vllm-0.33"]
"""Of vLLM 0.26.0 the chunk plan alone was read."""
BY_HEADS = {4: 1024, 8: 128, 16: 128, 32: 128, 64: 256, 128: 1024}
"""vllm 0.33.0 flashinfer_mla_sparse.py:268, flashmla_sparse.py:366-369 on 10.x; 0.29.0 flashinfer_mla_sparse.py:260."""
BY_HEADS_SM90 = {4: 256, 8: 256, 16: 128, 32: 128, 64: 256, 128: 256}
"""vllm 0.33.0 flashmla_sparse.py:370-371, flashattn_mla_sparse.py:142; 0.29.0 flashattn_mla_sparse.py:149."""
ONES = [
    "FLASHINFER_MLA",  # inherited from mla_attention.py:2301, like the others with 1
    "TOKENSPEED_MLA",
    "CUTLASS_MLA",
    "TRITON_MLA",
    "ROCM_AITER_MLA",
    "ROCM_AITER_TRITON_MLA",
    "CPU_MLA",
    "AMX_MLA",
    "ROCM_AITER_MLA_SPARSE",  # rocm_aiter_mla_sparse.py:457
    "FLASHMLA_SPARSE_DSV4",  # models/deepseek_v4/sparse_mla.py:138
    "FLASHINFER_MLA_SPARSE_DSV4",
    "FLASHMLA_SPARSE_DSV41",  # models/deepseek_v41/sparse_mla.py:188
    "FLASHMLA_MEGA_ATTN_DSV41",
]
THRESHOLDS: dict[str, dict[int, dict[int, int]]] = {
    "FLASH_ATTN_MLA": {9: dict.fromkeys(BY_HEADS, 512)},  # flashattn_mla.py:129
    "FLASHMLA": {9: dict.fromkeys(BY_HEADS, 128)},  # flashmla.py:112
    "FLASHMLA_SPARSE": {10: BY_HEADS, 9: BY_HEADS_SM90},
    "FLASHINFER_MLA_SPARSE": {10: BY_HEADS},
    "FLASHINFER_MLA_SPARSE_SM120": {12: BY_HEADS},
    "FLASHINFER_MLA_SPARSE_SM90": {9: BY_HEADS},
    "FLASH_ATTN_MLA_SPARSE_FA4": {10: BY_HEADS},
    "FLASH_ATTN_MLA_SPARSE": {9: BY_HEADS_SM90},
    **{name: {10: dict.fromkeys(BY_HEADS, 1)} for name in ONES},
}
"""Query tokens, by backend, compute capability's major and query heads per rank."""

CASES = [
    pytest.param(release, backend.name, major, heads, tokens, id=f"{release}-{backend.name}-{major}-{heads}")
    for release in RELEASES
    for backend in load_engine(release).backends
    if backend.decode_threshold is not None
    for major, table in THRESHOLDS[backend.name].items()
    for heads, tokens in table.items()
]


def decide(backend: str, rows: list[tuple[int, int]], release: str = "vllm@0.33", **more: Any) -> list[Decision]:
    engine = load_engine(release)
    found = backend_named(engine, backend)
    more = {"heads_per_rank": 16, "tp": 8, "major": 9} | more
    model = load_model(more.pop("model", "dsv3" if found.kind == "dense" else "dsv3.2"))
    return list(dispatch(engine, found, [Row(*row) for row in rows], model=model, **more))


def paths(backend: str, rows: list[tuple[int, int]], release: str = "vllm@0.33", **more: Any) -> list[str]:
    return [decision.path for decision in decide(backend, rows, release, **more)]


def threshold(backend: str, release: str = "vllm@0.33", **more: Any) -> int:
    engine = load_engine(release)
    more = {"heads_per_rank": 16, "major": 9} | more
    return effective_threshold(engine, backend_named(engine, backend), **more)[0]


@pytest.mark.parametrize(("release", "name", "major", "heads", "tokens"), CASES)
def test_every_backend_at_its_threshold(release: str, name: str, major: int, heads: int, tokens: int) -> None:
    """A lone extend of T - 1 or T queries is absorbed; one of T + 1 is not (short enough for a sparse one's MHA)."""
    above = "absorbed" if name == "AMX_MLA" else "mha"  # amx_mla.py:20-27: its prefill is latent too
    for queries, path in ((tokens - 1, "absorbed"), (tokens, "absorbed"), (tokens + 1, above)):
        if queries:
            found = decide(name, [(queries, 1)], release, major=major, heads_per_rank=heads)
            assert [item.path for item in found] == [path], queries
            assert (f"<= {name}'s threshold of {tokens:,}" in found[0].rule) is (queries <= tokens)


@pytest.mark.parametrize(("release", "name", "major", "heads", "tokens"), CASES)
def test_every_backend_beside_a_decode(release: str, name: str, major: int, heads: int, tokens: int) -> None:
    """Beside a row of one query a longer one is decode only where lengths may differ (backends/utils.py:872-892)."""
    support = backend_named(load_engine(release), name).query_len_support
    for queries in (tokens - 1, tokens, tokens + 1):
        if queries < 2:
            continue
        inside = queries <= tokens and support == "varlen"
        expected = ["absorbed", "absorbed" if inside or name == "AMX_MLA" else "mha"]
        assert paths(name, [(1, 9), (queries, 1)], release, major=major, heads_per_rank=heads) == expected, queries


class TestTheChapter:
    def test_flashmla_is_uniform(self) -> None:
        """flashmla.py:111-112: 128, but a 100-token extend behind decodes of one query goes to MHA."""
        found = decide("FLASHMLA", [(1, 4096), (100, 4096), (1, 8192)])
        assert [item.path for item in found] == ["absorbed", "mha", "absorbed"]
        assert found[1].rule == (
            "100 queries <= FLASHMLA's threshold of 128, but one call decodes rows of one length and the leading "
            "rows have 1: MHA"
        )

    def test_flashmla_takes_equal_extends(self) -> None:
        """backends/utils.py:884-892: leading rows as long as the first are decode rows, 100 here."""
        assert paths("FLASHMLA", [(100, 4096), (100, 9)]) == ["absorbed", "absorbed"]
        assert paths("FLASHMLA", [(100, 4096), (101, 9)]) == ["absorbed", "mha"]

    def test_flash_attn_mla_has_512(self) -> None:
        """flashattn_mla.py:128-129: the same extend is a decode row."""
        found = decide("FLASH_ATTN_MLA", [(1, 4096), (1, 8192), (100, 4096)])
        assert [item.path for item in found] == ["absorbed"] * 3
        assert found[2].rule == "100 queries <= FLASH_ATTN_MLA's threshold of 512: a decode row"
        assert decide("FLASH_ATTN_MLA", [(600, 4096)])[0].rule == (
            "600 queries > FLASH_ATTN_MLA's threshold of 512: MHA"
        )

    def test_triton_mla_has_one(self) -> None:
        assert paths("TRITON_MLA", [(1, 4096), (2, 4096)]) == ["absorbed", "mha"]

    def test_three_definitions_of_decode(self) -> None:
        """One model, one batch, three backends: 128, 512 and 1."""
        batch = [(128, 4096), (128, 4096)]
        assert paths("FLASHMLA", batch) == ["absorbed", "absorbed"]
        assert paths("FLASH_ATTN_MLA", batch) == ["absorbed", "absorbed"]
        assert paths("TRITON_MLA", batch) == ["mha", "mha"]

    def test_a_cold_short_prefill_is_absorbed(self) -> None:
        """backends/utils.py:872-877 looks at the length alone."""
        found = decide("FLASH_ATTN_MLA", [(100, 0)])
        assert found[0].path == "absorbed"
        assert found[0].rule.endswith("a decode row, although nothing of it is cached")

    def test_behind_a_long_extend_the_order_decides(self) -> None:
        """V1 puts rows without a prefix last (backends/utils.py:939-995), V2 the short ones first (:2507)."""
        batch = [(1000, 4096), (100, 0), (1, 9)]
        assert paths("FLASH_ATTN_MLA", batch, runner="v2") == ["mha", "absorbed", "absorbed"]
        found = decide("FLASH_ATTN_MLA", batch, runner="v1")
        assert [item.path for item in found] == ["mha", "mha", "absorbed"]
        assert found[1].rule == (
            "100 queries <= FLASH_ATTN_MLA's threshold of 512, but behind a row of 1,000 in the engine's order: MHA"
        )

    def test_v2_is_the_default(self) -> None:
        """config/vllm.py:731-765; in 0.29.0 :645-677."""
        batch = [(1000, 4096), (100, 0), (1, 9)]
        for release in RELEASES:
            assert load_engine(release).model_runner == "v2"
            assert paths("FLASH_ATTN_MLA", batch, release) == ["mha", "absorbed", "absorbed"]


class TestThreshold:
    @pytest.mark.parametrize(("drafts", "tokens"), [(0, 1), (1, 2), (3, 4), (7, 8)])
    @pytest.mark.parametrize("name", ["TRITON_MLA", "FLASHINFER_MLA", "TOKENSPEED_MLA", "ROCM_AITER_MLA_SPARSE"])
    def test_speculation_raises_one(self, name: str, drafts: int, tokens: int) -> None:
        """backend.py:572-589; dense by query_len_support (mla_attention.py:2502), sparse always."""
        assert threshold(name, spec_tokens=drafts, major=10) == tokens

    def test_single_only_stays(self) -> None:
        """cutlass_mla.py inherits SINGLE_ONLY."""
        assert threshold("CUTLASS_MLA", spec_tokens=3, major=10) == 1

    @pytest.mark.parametrize(("drafts", "tokens"), [(126, 128), (127, 128), (128, 129)])
    def test_speculation_never_lowers(self, drafts: int, tokens: int) -> None:
        assert threshold("FLASHMLA", spec_tokens=drafts) == tokens

    def test_parallel_drafting(self) -> None:
        """backend.py:586 adds the drafts once more under V1; 0.29.0 backend.py:639-643 under both."""
        more: dict[str, Any] = {"spec_tokens": 4, "parallel_drafting": True, "major": 10}
        assert threshold("FLASHINFER_MLA", runner="v2", **more) == 5
        assert threshold("FLASHINFER_MLA", runner="v1", **more) == 9
        assert threshold("FLASHINFER_MLA", "vllm@0.29", runner="v2", **more) == 9
        assert threshold("FLASHINFER_MLA", runner="v1", spec_tokens=0, parallel_drafting=True, major=10) == 1

    @pytest.mark.parametrize(
        ("name", "major", "interleave", "tokens"),
        [
            ("FLASHMLA", 9, 1, 1),  # backend.py:679-683: no varlen under DCP
            ("FLASH_ATTN_MLA", 9, 1, 512),  # flashattn_mla.py:138-145
            ("FLASH_ATTN_MLA", 9, 2, 1),
            ("FLASHMLA_SPARSE", 9, 1, 128),  # flashmla_sparse.py:380
            ("FLASHMLA_SPARSE", 9, 64, 1),
            ("FLASHINFER_MLA_SPARSE", 10, 64, 128),  # flashinfer_mla_sparse.py:274
            ("TRITON_MLA", 9, 1, 1),
        ],
    )
    def test_dcp(self, name: str, major: int, interleave: int, tokens: int) -> None:
        assert threshold(name, major=major, dcp=2, interleave=interleave) == tokens

    def test_dcp_takes_what_speculation_gave(self) -> None:
        assert threshold("FLASHMLA", dcp=2, spec_tokens=3) == 1
        assert threshold("FLASHINFER_MLA", dcp=2, spec_tokens=3, major=10) == 4

    def test_dcp_in_a_batch(self) -> None:
        assert paths("FLASHMLA", [(100, 9), (100, 9), (1, 9)], dcp=2) == ["mha", "mha", "absorbed"]

    def test_the_sentence(self) -> None:
        engine = load_engine("vllm")
        found = effective_threshold(
            engine, backend_named(engine, "TRITON_MLA"), heads_per_rank=16, major=9, spec_tokens=3, dcp=2
        )
        assert found == (
            1,
            "TRITON_MLA's threshold is 1, raised to 4 by 3 draft tokens, lowered to 1 by DCP 2",
        )

    def test_an_override_stands_for_the_constant(self) -> None:
        assert threshold("FLASHMLA", override=7) == 7
        assert threshold("FLASHMLA", override=7, spec_tokens=7) == 8
        assert threshold("FLASHMLA", override=7, dcp=2) == 1
        assert paths("TRITON_MLA", [(64, 9)], threshold_override=64) == ["absorbed"]
        assert paths("TRITON_MLA", [(65, 9)], threshold_override=64) == ["mha"]

    @pytest.mark.parametrize(
        ("name", "more", "match"),
        [
            ("XPU_MLA_SPARSE", {}, "no decode threshold was read"),
            ("FLASHMLA_SPARSE", {"major": None}, "hangs on the compute capability"),
            ("FLASHMLA", {"override": 0}, "0 is no threshold"),
            ("FLASH_ATTN_MLA_SPARSE", {"dcp": 2}, "no decode context parallelism"),  # flashattn_mla_sparse.py:111
            ("FLASHINFER_MLA", {"dcp": 2, "interleave": 2, "major": 10}, "interleave of 1"),  # :156-161
            ("ROCM_AITER_MLA", {"dcp": 2, "spec_tokens": 1}, "under DCP was not read"),
        ],
    )
    def test_refusals(self, name: str, more: dict[str, Any], match: str) -> None:
        with pytest.raises(InputError, match=match):
            threshold(name, **more)

    def test_what_was_not_read_is_no_guess(self) -> None:
        engine = load_engine("vllm")
        unread = replace(backend_named(engine, "TRITON_MLA"), query_len_support=None)
        with pytest.raises(InputError, match="whether drafts raise its threshold was not read"):
            effective_threshold(engine, unread, heads_per_rank=16, major=9, spec_tokens=1)
        blank = replace(engine, parallel_drafting_runners=None)
        with pytest.raises(InputError, match="parallel drafting"):
            effective_threshold(blank, unread, heads_per_rank=16, major=9, spec_tokens=1, parallel_drafting=True)


class TestOrder:
    def test_v2(self) -> None:
        """sort_batch_req_ids, v1/worker/gpu/model_runner.py:2507-2519: drafts, then the verified length, then short."""
        rows = [Row(50, 0), Row(1, 9), Row(4, 9), Row(2, 9), Row(4, 0)]
        assert engine_order(rows, "v2", 4, spec_tokens=3) == (2, 4, 1, 3, 0)
        assert engine_order(rows, "v2", 1) == (1, 3, 2, 4, 0)

    def test_v1(self) -> None:
        """backends/utils.py:939-995: decode, short extend, long extend, prefill."""
        rows = [Row(1, 0), Row(600, 9), Row(512, 9), Row(513, 9), Row(1, 9)]
        assert engine_order(rows, "v1", 512) == (4, 2, 1, 3, 0)

    def test_drafts_lead_under_uniform(self) -> None:
        """With 3 drafts rows of 4 lead, so a row that lost its drafts is MHA beside them: FLASHMLA is uniform."""
        assert paths("FLASHMLA", [(1, 9), (4, 9), (4, 9)], spec_tokens=3) == ["mha", "absorbed", "absorbed"]
        assert paths("TRITON_MLA", [(4, 9), (5, 9)], spec_tokens=3) == ["absorbed", "mha"]

    @pytest.mark.parametrize(
        ("queries", "tokens", "uniform", "count"),
        [
            ([], 1, True, 0),
            ([1, 1], 1, True, 2),
            ([2], 1, True, 0),
            ([1, 512], 512, False, 2),
            ([1, 513], 512, False, 1),
            ([1, 513, 2], 512, False, 1),  # everything after the first long one is MHA
            ([513, 1], 512, False, 0),
            ([128, 128, 127], 128, True, 2),
            ([127, 128], 128, True, 1),
            ([129, 129], 128, True, 0),
        ],
    )
    def test_split(self, queries: list[int], tokens: int, uniform: bool, count: int) -> None:
        """backends/utils.py:872-908."""
        assert decode_rows(queries, tokens, uniform) == count

    def test_results_are_in_the_order_given(self) -> None:
        batch = [(900, 0), (1, 5), (700, 3), (512, 1)]
        assert paths("FLASH_ATTN_MLA", batch) == ["mha", "absorbed", "mha", "absorbed"]
        assert paths("FLASH_ATTN_MLA", batch[::-1]) == ["absorbed", "mha", "absorbed", "mha"]

    def test_no_rows(self) -> None:
        assert decide("FLASH_ATTN_MLA", []) == []


FLASHMLA_192 = {
    1: [(2048, 1536), (4096, 4096)],
    2: [(2048, 512), (4096, 1024), (8192, 4096)],
    4: [(2048, 512), (4096, 1024), (8192, 1536), (16384, 8192)],
    8: [(2048, 512), (4096, 512), (8192, 1024), (16384, 2048), (32768, 16384)],
}
FLASHINFER_192 = {8: [(2048, 512), (4096, 1024), (8192, 1024), (16384, 2048), (32768, 32768)]}
"""vllm 0.33.0 mla_attention.py:1786-1830, 0.29.0 :1631-1666; by TP: (longest sequence, least queries)."""
PAIRS = [
    pytest.param(release, name, tp, keys, least, id=f"{release}-{name}-tp{tp}-{keys}")
    for name, table in (
        ("FLASHMLA_SPARSE", FLASHMLA_192),
        ("FLASHINFER_MLA_SPARSE", FLASHINFER_192),
        ("FLASH_ATTN_MLA_SPARSE_FA4", FLASHINFER_192),  # mla_attention.py:1882-1884: FlashInfer's rows
    )
    for release in RELEASES
    if any(item.name == name and item.decode_threshold is not None for item in load_engine(release).backends)
    for tp, pairs in table.items()
    for keys, least in pairs
    if keys > 2048  # up to index_topk it is dense MHA anyway
]


class TestSparse:
    @pytest.mark.parametrize(("release", "name", "tp", "keys", "least"), PAIRS)
    def test_masked_mha_by_queries(self, release: str, name: str, tp: int, keys: int, least: int) -> None:
        """At the pair's longest sequence: MHA from its least queries on, and not with one fewer."""
        heads = 16  # keeps the decode threshold at 128, out of the way
        for queries, path in ((least - 1, "absorbed"), (least, "mha"), (least + 1, "mha")):
            if queries <= keys:
                row = (queries, keys - queries)
                found = paths(name, [row], release, tp=tp, major=10, heads_per_rank=heads)
                assert found == [path], queries

    @pytest.mark.parametrize(("release", "name", "tp", "keys", "least"), PAIRS)
    def test_masked_mha_by_keys(self, release: str, name: str, tp: int, keys: int, least: int) -> None:
        """One key more is the next pair's business, or nobody's."""
        tables = {"FLASHMLA_SPARSE": FLASHMLA_192}
        later = [pair for pair in tables.get(name, FLASHINFER_192)[tp] if pair[0] > keys]
        for length, needed in ((keys - 1, least), (keys, least), (keys + 1, later[0][1] if later else None)):
            queries = least - 1 if least == keys else least
            path = "mha" if needed is not None and queries >= needed else "absorbed"
            found = paths(name, [(queries, length - queries)], release, tp=tp, major=10, heads_per_rank=16)
            assert found == [path], length

    @pytest.mark.parametrize(("keys", "path"), [(2047, "mha"), (2048, "mha"), (2049, "absorbed")])
    def test_dense_mha_up_to_topk(self, keys: int, path: str) -> None:
        """sparse_mla_attention.py:136-144; Hopper has no masked MHA."""
        found = decide("FLASHMLA_SPARSE", [(1000, keys - 1000), (1, 90000)])
        assert [item.path for item in found] == [path, "absorbed"]
        assert (f"{keys:,} keys <= index_topk 2,048: dense MHA" in found[0].rule) is (path == "mha")

    def test_the_longest_decides_for_all(self) -> None:
        """mla_attention.py:1229-1236: max_query_len and prefill_max_seq_len of the batch."""
        assert paths("FLASHMLA_SPARSE", [(300, 0), (2000, 0)]) == ["mha", "mha"]
        assert paths("FLASHMLA_SPARSE", [(300, 0), (2049, 0)]) == ["absorbed", "absorbed"]
        assert paths("FLASHMLA_SPARSE", [(300, 0), (4096, 0)], major=10) == ["mha", "mha"]

    @pytest.mark.parametrize(
        ("more", "why"),
        [
            ({"major": 9}, "needs compute capability 10.x"),
            ({"cache_quantised": True}, "needs an unquantised cache"),
            ({"dcp": 2}, "there is none under DCP"),
            ({"tp": 16}, "no row for FLASHMLA_SPARSE at TP 16"),
            ({"model": "longcat-2.0"}, "none for the dimensions"),
            ({"force_mqa": True}, "sparse_mla_force_mqa"),
        ],
    )
    def test_no_masked_mha(self, more: dict[str, Any], why: str) -> None:
        """sparse_mla_attention.py:99-133, mla_attention.py:1215-1240."""
        assert paths("FLASHMLA_SPARSE", [(4096, 0)], major=10) == ["mha"]
        found = decide("FLASHMLA_SPARSE", [(4096, 0)], **({"major": 10} | more))
        assert found[0].path == "absorbed"
        assert why in found[0].rule

    def test_force_mqa_also_below_topk(self) -> None:
        assert paths("FLASHMLA_SPARSE", [(1000, 0)]) == ["mha"]
        assert paths("FLASHMLA_SPARSE", [(1000, 0)], force_mqa=True) == ["absorbed"]

    @pytest.mark.parametrize(
        ("tp", "row", "path"),
        [
            # pure prefill: mla_attention.py:1818-1857, any number of queries up to the length
            (1, (8192, 0), "mha"),
            (1, (8193, 0), "absorbed"),
            (2, (20480, 0), "mha"),
            (2, (20481, 0), "absorbed"),
            # with a prefix TP 1 has no pair; the others have their own
            (1, (8000, 1), "absorbed"),
            (2, (4096, 2048), "mha"),
            (2, (4095, 2049), "absorbed"),
            (2, (4096, 2049), "absorbed"),  # 6145 keys: the next pair wants 8192 queries
            (2, (8192, 2048), "mha"),
            (2, (8192, 2049), "absorbed"),
            (8, (32768, 16384), "mha"),
            (8, (32767, 16385), "absorbed"),
        ],
    )
    def test_rows_of_256(self, tp: int, row: tuple[int, int], path: str) -> None:
        """GLM-5's dimensions, (256, 256); with a prefix another table holds. More than 128 queries, so no decode."""
        found = paths("FLASHMLA_SPARSE", [row], model="glm-5.2", tp=tp, major=10, heads_per_rank=16)
        assert found == [path]

    @pytest.mark.parametrize(("count", "path"), [(1, "mha"), (2, "absorbed")])
    def test_masks_have_to_fit(self, count: int, path: str) -> None:
        """sparse_mla_attention.py:67,70-97: 32,768 queries by 1,024 words of 4 B are the whole 128 MiB."""
        found = decide("FLASHMLA_SPARSE", [(32768, 0)] * count, major=10)
        assert {item.path for item in found} == {path}
        assert ("outgrow" in found[0].rule) is (path == "absorbed")

    def test_a_sparse_backend_needs_an_indexer(self) -> None:
        with pytest.raises(InputError, match="DeepSeek-V3 has no indexer"):
            decide("FLASHMLA_SPARSE", [(4096, 0)], model="dsv3")
        assert paths("FLASHMLA_SPARSE", [(1, 4096)], model="dsv3") == ["absorbed"]


def stripped(engine: Engine, **changes: Any) -> tuple[Engine, Backend]:
    changed = replace(engine, **changes)
    return changed, backend_named(changed, "FLASHMLA_SPARSE")


def test_releases_without_facts() -> None:
    common: dict[str, Any] = {"heads_per_rank": 16, "tp": 8, "major": 10}
    engine, backend = stripped(load_engine("vllm"), model_runner=None)
    with pytest.raises(InputError, match="model runner"):
        dispatch(engine, backend, [Row(1, 1)], model=load_model("dsv3.2"), **common)
    engine, backend = stripped(load_engine("vllm"), sparse_prefill=None)
    with pytest.raises(InputError, match="sparse prefill was not read"):
        dispatch(engine, backend, [Row(4096, 1)], model=load_model("dsv3.2"), **common)
    engine, backend = stripped(load_engine("vllm"))
    with pytest.raises(InputError, match="which lengths it decodes together was not read"):
        dispatch(engine, replace(backend, query_len_support=None), [Row(1, 1)], model=load_model("dsv3.2"), **common)
    with pytest.raises(InputError, match="no latent attention"):
        dispatch(engine, backend, [Row(1, 1)], model=load_model("llama3-70b"), **common)
