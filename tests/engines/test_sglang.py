"""SGLang's handlers at every boundary, its default backends, its class chain and its plan of chunks.

Expected values are worked out by hand from sglang 0.5.23 and 0.5.18: ``H`` is
sglang/srt/models/deepseek_common/attention_backend_handler.py (of 0.5.23 where no release is named).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mla_calc.engines import sglang
from mla_calc.engines.batch import Row
from mla_calc.engines.load import load_engine
from mla_calc.engines.preset import Engine
from mla_calc.errors import InputError
from mla_calc.hardware.load import load_gpu
from mla_calc.models.attention import Model
from mla_calc.models.load import load_model

NEW = load_engine("sglang@0.5.23")
OLD = load_engine("sglang@0.5.18")
V3 = load_model("deepseek-v3")
V32 = load_model("deepseek-v3.2")
K3 = load_model("kimi-k3")
NOPE = load_model("glm-5.3-flash")
T = 8192  # sglang 0.5.23 environ.py:723
C = 131072  # :724


def decide(backend: str, *rows: tuple[int, int], engine: Engine = NEW, model: Model = V3, **options: Any) -> str:
    """The path of a batch of (queries, prefix), on Hopper unless told otherwise."""
    return rule(backend, *rows, engine=engine, model=model, **options)[0]


def rule(
    backend: str, *rows: tuple[int, int], engine: Engine = NEW, model: Model = V3, **options: Any
) -> tuple[str, str]:
    given = [Row(queries, prefix) for queries, prefix in rows]
    defaults: dict[str, Any] = {"major": 9, "heads_per_rank": 16}
    decisions = sglang.dispatch(engine, backend, given, model=model, **(defaults | options))
    assert len(decisions) == len(rows)
    assert len(set(decisions)) == 1  # one decision for the batch
    return decisions[0].path, decisions[0].rule


# --- the shared rule, H:108-140

ONE_SHOT = ("flashinfer", "flashmla", "fa3")  # H:25


@pytest.mark.parametrize("engine", [NEW, OLD], ids=["0.5.23", "0.5.18"])
@pytest.mark.parametrize("backend", ONE_SHOT)
@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        (0, "mha_one_shot"),
        (1, "absorbed"),
        (T - 1, "absorbed"),
        (T, "mha_one_shot"),
        (T + 1, "mha_one_shot"),
    ],
)
def test_the_threshold(engine: Engine, backend: str, prefix: int, path: str) -> None:
    assert decide(backend, (100, prefix), engine=engine) == path


@pytest.mark.parametrize("backend", ONE_SHOT)
@pytest.mark.parametrize(("length", "path"), [(C - 1, "mha_one_shot"), (C, "mha_one_shot"), (C + 1, "mha_chunked")])
@pytest.mark.parametrize("prefix", [0, T])
def test_one_shot_up_to_the_capacity(backend: str, length: int, path: str, prefix: int) -> None:
    assert decide(backend, (length - prefix, prefix)) == path


@pytest.mark.parametrize(
    ("engine", "backend", "major"), [(NEW, "fa4", 10), (NEW, "fa4", 11), (OLD, "fa4", 10), (OLD, "cutlass_mla", 10)]
)
@pytest.mark.parametrize(
    ("prefix", "path"),
    [(0, "mha_chunked"), (1, "absorbed"), (T - 1, "absorbed"), (T, "mha_chunked"), (T + 1, "mha_chunked")],
)
def test_the_threshold_without_one_shot(engine: Engine, backend: str, major: int, prefix: int, path: str) -> None:
    # H:25 lists neither, so H:136-138 goes on to chunks however small the batch; 0.5.18 H:151-164
    assert decide(backend, (100, prefix), engine=engine, major=major) == path


def test_prefixes_and_lengths_are_summed_over_the_batch() -> None:
    # H:92-105: 2 x 4,096 reach 8,192 though no row does; one cached token anywhere ends a cold batch
    assert decide("fa3", (10, 4096), (10, 4096)) == "mha_one_shot"
    assert decide("fa3", (10, 4096), (10, 4095)) == "absorbed"
    assert decide("fa3", (4000, 0), (4000, 1)) == "absorbed"
    assert decide("fa3", (65536, 0), (65536, 0)) == "mha_one_shot"
    assert decide("fa3", (65536, 0), (65537, 0)) == "mha_chunked"
    # a mixed batch: the decodes' contexts count as prefixes
    assert decide("fa3", (1, 8000), (192, 192)) == "mha_one_shot"


@pytest.mark.parametrize(
    ("backend", "rows", "options", "sentence"),
    [
        (
            "fa3",
            (808, 8192),
            {},
            "the prefixes sum to 8,192 >= 8,192: expanded, in one shot since 9,000 <= 131,072",
        ),
        ("fa3", (1000, 0), {}, "no row has a prefix: expanded, in one shot since 1,000 <= 131,072"),
        ("fa3", (1, 8191), {"mode": "extend"}, "the prefixes sum to 8,191, which is more than 0 and less than 8,192:"),
        ("fa3", (1, 8191), {}, "the batch is a decode: absorbed"),
        (
            "fa3",
            (1000, 131072),
            {},
            "the prefixes sum to 131,072 >= 8,192: expanded, in chunks since 132,072 > 131,072",
        ),
        ("fa3", (131073, 0), {}, "in chunks since 131,073 > 131,072; there is no prefix to cut"),
        ("fa4", (9, 8192), {"major": 10}, "expanded, in chunks since fa4 has no one-shot form"),
        ("intel_xpu", (9, 9000), {}, "the prefixes sum to 9,000 and chunked prefixes are off with intel_xpu:"),
        ("flashmla", (9, 9000), {"graph": True}, "inside a captured prefill graph flashmla keeps one path: absorbed"),
        ("torch_native", (9, 0), {}, "torch_native has no handler and takes triton's: no row has a prefix: expanded"),
        ("aiter", (1, 131072), {"mode": "extend"}, "expanded, in chunks since 131,073 > 131,072"),
        ("dsa", (100, 1948), {}, "the longest row has 2,048 <= 2,048, and 2,048 <= 131,072: expanded, dense and"),
        ("dsa", (100, 1949), {}, "the longest row has 2,049 > 2,048: absorbed"),
    ],
)
def test_the_rule_is_said_with_its_numbers(
    backend: str, rows: tuple[int, int], options: dict[str, Any], sentence: str
) -> None:
    said = rule(backend, rows, **options)[1]
    assert sentence in said
    assert "\n" not in said


# --- the chapter's statements


def test_chapter_cold_prefill_takes_mha() -> None:
    assert decide("flashmla", (4096, 0)) == "mha_one_shot"


def test_chapter_a_short_extend_over_a_small_prefix_is_absorbed() -> None:
    assert decide("flashmla", (16, 512)) == "absorbed"


def test_chapter_a_large_prefix_takes_mha() -> None:
    assert decide("flashmla", (16, 8192)) == "mha_one_shot"


def test_chapter_a_captured_prefill_is_absorbed() -> None:
    assert decide("flashmla", (4096, 0), graph=True) == "absorbed"


def test_chapter_disabled_ragged_is_absorbed_with_flashinfer_and_flashmla_only() -> None:
    assert {backend: decide(backend, (4096, 0), ragged=False, engine=OLD) for backend in ONE_SHOT} == {
        "flashinfer": "absorbed",
        "flashmla": "absorbed",
        "fa3": "mha_one_shot",
    }


def test_chapter_threshold_zero_widens_mha_and_never_forces_absorption() -> None:
    for backend in ONE_SHOT:
        for prefix in (0, 1, T - 1, T, T + 1):
            assert decide(backend, (100, prefix), prefix_threshold=0) == "mha_one_shot"
        assert decide(backend, (1, 100), prefix_threshold=0) == "absorbed"  # a decode stays one


@pytest.mark.parametrize(("backend", "options"), [("trtllm_mla", {}), ("aiter", {}), ("triton", {}), ("dsa", {})])
def test_the_other_handlers_do_not_know_the_threshold(backend: str, options: dict[str, Any]) -> None:
    for prefix in (0, 1, T, 3000):
        paths = {decide(backend, (100, prefix), prefix_threshold=own, **options) for own in (None, 0, 1, 1 << 20)}
        assert len(paths) == 1


@pytest.mark.parametrize(("prefix", "path"), [(499, "absorbed"), (500, "mha_one_shot"), (501, "mha_one_shot")])
def test_another_threshold(prefix: int, path: str) -> None:
    assert decide("fa3", (100, prefix), prefix_threshold=500) == path


@pytest.mark.parametrize(("queries", "path"), [(99, "mha_one_shot"), (100, "mha_one_shot"), (101, "mha_chunked")])
def test_another_capacity(queries: int, path: str) -> None:
    assert decide("fa3", (queries, 0), chunk_capacity=100) == path


# --- decode against extend, and what pins the absorbed path

EXPANDS_COLD = ["flashinfer", "flashmla", "fa3", "intel_xpu", "trtllm_mla", "aiter", "triton", "dsa", "ascend"]


@pytest.mark.parametrize("backend", EXPANDS_COLD)
def test_a_batch_of_one_token_rows_is_a_decode(backend: str) -> None:
    assert decide(backend, (1, 0), (1, 0)) == "absorbed"
    assert decide(backend, (1, 0), (1, 0), mode="extend") != "absorbed"
    assert decide(backend, (1, 0), (2, 0)) != "absorbed"
    assert decide(backend, (1, 0), (2, 0), mode="decode") == "absorbed"


@pytest.mark.parametrize(
    ("backend", "path"),
    [
        ("flashinfer", "absorbed"),  # H:112-113
        ("flashmla", "absorbed"),
        ("fa3", "absorbed"),
        ("intel_xpu", "absorbed"),
        ("trtllm_mla", "absorbed"),  # H:172-173
        ("triton", "absorbed"),  # H:234-235
        ("dsa", "absorbed"),  # layers/attention/dsa_backend.py:4050-4053
        ("aiter", "mha"),  # H:188-189
        ("ascend", "mha"),  # H:75-89 does not ask
    ],
)
def test_graph_capture(backend: str, path: str) -> None:
    assert decide(backend, (100, 0), graph=True) == path


@pytest.mark.parametrize(
    ("backend", "path"),
    [
        ("flashinfer", "absorbed"),  # H:117-118
        ("flashmla", "absorbed"),
        ("fa3", "absorbed"),
        ("intel_xpu", "absorbed"),
        ("dsa", "absorbed"),  # dsa_backend.py:4076
        ("trtllm_mla", "mha_chunked"),  # the others do not ask
        ("triton", "mha"),
        ("aiter", "mha"),
    ],
)
@pytest.mark.parametrize("engine", [NEW, OLD], ids=["0.5.23", "0.5.18"])
def test_context_parallel_prefill(engine: Engine, backend: str, path: str) -> None:
    assert decide(backend, (100, 0), context_parallel=True, engine=engine) == path


@pytest.mark.parametrize(
    ("backend", "path"),
    [
        ("fa3", "absorbed"),  # H:149-150
        ("triton", "absorbed"),  # H:238-239
        ("flashinfer", "mha_one_shot"),  # the others do not ask
        ("flashmla", "mha_one_shot"),
        ("trtllm_mla", "mha_chunked"),
        ("aiter", "mha"),
    ],
)
def test_deterministic_inference(backend: str, path: str) -> None:
    assert decide(backend, (100, 0), deterministic=True) == path


@pytest.mark.parametrize(
    ("engine", "backend", "path"),
    [
        (NEW, "flashinfer", "absorbed"),  # H:121-123: ragged disabled, or no rope
        (NEW, "flashmla", "absorbed"),
        (NEW, "fa3", "mha_one_shot"),
        (OLD, "flashinfer", "mha_one_shot"),  # 0.5.18 H:113-115: the flag only
        (OLD, "flashmla", "mha_one_shot"),
    ],
)
def test_a_model_without_rope(engine: Engine, backend: str, path: str) -> None:
    assert decide(backend, (100, 0), engine=engine, model=NOPE) == path


# --- chunked prefixes, arg_groups/choices.py:233-240 and server_args.py:215-224 of 0.5.18


@pytest.mark.parametrize(
    ("engine", "names"),
    [
        (NEW, {"flashinfer", "fa3", "fa4", "flashmla", "cutedsl_mla", "trtllm_mla"}),
        (
            OLD,
            {"flashinfer", "fa3", "fa4", "flashmla", "cutedsl_mla", "cutlass_mla", "trtllm_mla", "tokenspeed_mla"},
        ),
    ],
)
def test_which_handlers_keep_chunked_prefixes(engine: Engine, names: set[str]) -> None:
    assert {handler.name for handler in engine.handlers if handler.chunked_prefix} == names


@pytest.mark.parametrize("prefix", [1, T - 1, T, T + 1, 100_000])
def test_intel_xpu_expands_without_prefixes_only(prefix: int) -> None:
    assert decide("intel_xpu", (100, prefix)) == "absorbed"
    assert decide("intel_xpu", (100, prefix), prefix_threshold=0) == "absorbed"
    assert decide("intel_xpu", (100, 0)) == "mha_chunked"


@pytest.mark.parametrize("backend", [*ONE_SHOT, "trtllm_mla"])
def test_disabled_chunked_prefixes(backend: str) -> None:
    cold = "mha_chunked" if backend == "trtllm_mla" else "mha_one_shot"
    assert decide(backend, (100, 0), chunked_prefix=False) == cold
    assert decide(backend, (100, 1), chunked_prefix=False) == "absorbed"
    assert decide(backend, (100, T), chunked_prefix=False) == "absorbed"


# --- the other handlers


@pytest.mark.parametrize("engine", [NEW, OLD], ids=["0.5.23", "0.5.18"])
@pytest.mark.parametrize("backend", ["trtllm_mla", "tokenspeed_mla", "cutedsl_mla"])
@pytest.mark.parametrize("prefix", [0, 1, T - 1, T, T + 1, C + 1])
def test_no_threshold(engine: Engine, backend: str, prefix: int) -> None:
    # H:171-181, 0.5.18 H:180-183; cutedsl_mla's prefill is trtllm_mla (arg_groups/overrides.py:1233-1259)
    assert decide(backend, (100, prefix), engine=engine, major=10) == "mha_chunked"
    assert decide(backend, (1, prefix), engine=engine, major=10) == "absorbed"


@pytest.mark.parametrize(("major", "platform"), [(8, "cuda"), (9, "cuda"), (12, "cuda"), (None, "rocm")])
@pytest.mark.parametrize("engine", [NEW, OLD], ids=["0.5.23", "0.5.18"])
def test_fa4_off_its_gpus_asks_nothing(engine: Engine, major: int | None, platform: str) -> None:
    # H:164-165 comes before the mode, the graph and determinism
    for prefix in (0, 1, T):
        assert decide("fa4", (100, prefix), engine=engine, major=major, platform=platform) == "mha_chunked"
    for options in ({"mode": "decode"}, {"graph": True}, {"deterministic": True}, {"context_parallel": True}):
        assert decide("fa4", (1, 5), engine=engine, major=major, platform=platform, **options) == "mha_chunked"


@pytest.mark.parametrize("option", ["deterministic", "graph", "context_parallel"])
def test_fa4_on_its_gpus(option: str) -> None:
    assert decide("fa4", (100, 0), major=10) == "mha_chunked"
    assert decide("fa4", (100, 0), major=10, **{option: True}) == "absorbed"
    assert decide("fa4", (1, 100), major=10) == "absorbed"


@pytest.mark.parametrize(
    ("length", "dcp", "path"),
    [
        (C - 1, 1, "mha"),
        (C, 1, "mha"),
        (C + 1, 1, "mha_chunked"),
        (C, 2, "mha_one_shot"),
        (C + 1, 2, "mha_chunked"),
    ],
)
@pytest.mark.parametrize("prefix", [0, 1, T])
def test_aiter(length: int, dcp: int, path: str, prefix: int) -> None:
    # H:190-195
    assert decide("aiter", (length - prefix, prefix), dcp=dcp, platform="rocm", major=None) == path
    assert decide("aiter", (length - prefix, prefix), dcp=dcp, engine=OLD) == "mha"  # 0.5.18 H:192-193


@pytest.mark.parametrize("engine", [NEW, OLD], ids=["0.5.23", "0.5.18"])
@pytest.mark.parametrize(
    ("prefix", "path"), [(0, "mha"), (1, "absorbed"), (T - 1, "absorbed"), (T, "absorbed"), (T + 1, "absorbed")]
)
def test_triton(engine: Engine, prefix: int, path: str) -> None:
    assert decide("triton", (100, prefix), engine=engine) == path
    assert decide("torch_native", (100, prefix), engine=engine) == path  # H:53-55
    assert decide("triton", (C + 1, prefix), engine=engine) == path


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({}, "mha_chunked"),
        ({"gfx95": False}, "absorbed"),
        ({"cache_dtype": "bf16"}, "absorbed"),
        ({"heads_per_rank": 24}, "absorbed"),
        ({"dcp": 2}, "absorbed"),
        ({"mode": "decode"}, "absorbed"),
        ({"deterministic": True}, "absorbed"),
        ({"engine": OLD}, "absorbed"),  # not in 0.5.18
        ({"model": load_model("glm-5.2")}, "absorbed"),
    ],
)
def test_triton_packs_kimi_k3s_fp8_prefix_on_gfx95(change: dict[str, Any], path: str) -> None:
    # H:214-230: 12 local heads are 96 over TP 8
    options = {"platform": "rocm", "major": None, "gfx95": True, "heads_per_rank": 12, "cache_dtype": "fp8"}
    assert decide("triton", (100, 1), **({"model": K3} | options | change)) == path


@pytest.mark.parametrize("backend", ["dsa", "nsa", "DSA"])
@pytest.mark.parametrize(("prefix", "path"), [(1947, "mha_one_shot"), (1948, "mha_one_shot"), (1949, "absorbed")])
def test_dsa_is_dense_up_to_the_top_k(backend: str, prefix: int, path: str) -> None:
    # layers/attention/dsa_backend.py:4071-4072: the longest row, new tokens included, against 2,048
    assert decide(backend, (100, prefix), (5, 10), model=V32) == path


def test_dsa_takes_the_models_top_k() -> None:
    # arg_groups/model_hook.py:282-296
    assert V32.indexer is not None
    other = replace(V32, indexer=replace(V32.indexer, topk=512))
    assert [decide("dsa", (queries, 0), model=other) for queries in (511, 512, 513)] == [
        "mha_one_shot",
        "mha_one_shot",
        "absorbed",
    ]
    assert decide("dsa", (513, 0), model=other, dense_threshold=513) == "mha_one_shot"
    assert decide("dsa", (2, 0), model=other, dense_threshold=0) == "absorbed"


@pytest.mark.parametrize(("more", "path"), [(0, "mha_one_shot"), (1, "absorbed")])
def test_dsa_fits_the_capacity_or_is_sparse(more: int, path: str) -> None:
    # 64 rows of 2,048 are 131,072 (dsa_backend.py:4074-4075)
    rows = [(2048, 0)] * 64
    assert decide("dsa", *rows, *[(1, 0)] * more, model=V32) == path


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"major": 8}, "absorbed"),  # dsa_backend.py:4066-4070
        ({"major": 9}, "mha_one_shot"),
        ({"major": 10}, "mha_one_shot"),
        ({"major": 11}, "absorbed"),
        ({"major": 12}, "absorbed"),
        ({"major": None, "platform": "rocm", "gfx95": True}, "mha_one_shot"),
        ({"major": None, "platform": "rocm"}, "absorbed"),
        ({"cache_dtype": "fp8"}, "mha_one_shot"),
        ({"cache_dtype": "fp8_ds_mla"}, "mha_one_shot"),
        ({"cache_dtype": "fp4"}, "absorbed"),
        ({"dcp": 2}, "absorbed"),  # :568-570
        ({"dcp": 2, "engine": OLD}, "mha_one_shot"),  # 0.5.18 :3327-3340 does not ask
    ],
)
def test_where_dsa_is_dense(options: dict[str, Any], path: str) -> None:
    assert decide("dsa", (100, 0), **({"model": V32} | options)) == path


@pytest.mark.parametrize("prefix", [0, 1, T, C + 1])
def test_ascend(prefix: int) -> None:
    # H:75-89; DSA_NPU goes through attn_mqa (hardware_backend/npu/modules/deepseek_v2_attention_mla_npu.py:553)
    assert decide("ascend", (100, prefix)) == "mha"
    assert decide("ascend", (100, prefix), model=V32) == "absorbed"


# --- names


def test_every_handler_has_a_predicate_that_was_read() -> None:
    for engine in (NEW, OLD):
        assert all(handler.kind in sglang.PREDICATES for handler in engine.handlers)
        assert {handler.kind for handler in engine.handlers} == set(sglang.PREDICATES)


@pytest.mark.parametrize("engine", [NEW, OLD], ids=["0.5.23", "0.5.18"])
def test_the_threshold_lists_the_handlers_that_reach_it(engine: Engine) -> None:
    assert engine.prefix_threshold is not None
    reach = {item.name for item in engine.handlers if item.kind in ("shared", "fa4") and item.chunked_prefix}
    assert set(engine.prefix_threshold.handlers) == reach


def test_removed_backends() -> None:
    # 0.5.23 arg_groups/choices.py:69-99 has no cutlass_mla, and tokenspeed_mla as a deprecated alias
    assert sglang.handler_of(OLD, "cutlass_mla").handler.name == "cutlass_mla"
    with pytest.raises(InputError, match="no attention backend 'cutlass_mla'"):
        sglang.handler_of(NEW, "cutlass_mla")
    assert sglang.handler_of(OLD, "tokenspeed_mla").handler.name == "tokenspeed_mla"
    assert sglang.handler_of(NEW, "tokenspeed_mla").handler.name == "cutedsl_mla"


def test_an_unknown_backend_gets_a_hint() -> None:
    with pytest.raises(InputError, match="it takes flashinfer") as caught:
        sglang.handler_of(NEW, "trtlm_mla")
    assert caught.value.hint is not None
    assert "trtllm_mla" in caught.value.hint


def test_names_are_listed_once() -> None:
    names = sglang.backend_names(NEW)
    assert len(names) == len(set(names))
    assert {"fa3", "nsa", "torch_native"} < set(names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefix_threshold": -1}, "the prefix threshold is 0 or more tokens"),
        ({"dense_threshold": -1}, "the dense threshold is 0 or more tokens"),
        ({"chunk_capacity": 0}, "the chunk capacity is at least 1 token"),
    ],
)
def test_wrong_overrides(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        decide("fa3", (1, 1), **options)


@pytest.mark.parametrize("backend", ["fa4", "dsa"])
def test_a_rule_that_needs_the_gpu(backend: str) -> None:
    with pytest.raises(InputError, match="needs the GPU's compute capability"):
        decide(backend, (10, 0), major=None)


def test_refusals() -> None:
    with pytest.raises(InputError, match="at least one row"):
        sglang.dispatch(NEW, "fa3", [], model=V3, heads_per_rank=16)
    with pytest.raises(InputError, match="has no MLA"):
        decide("fa3", (10, 0), model=load_model("llama3-70b"))
    unread = replace(NEW, handlers=tuple(replace(item, kind=None) for item in NEW.handlers))
    with pytest.raises(InputError, match="the rule of fa3 was not read"):
        decide("fa3", (10, 0), engine=unread)
    for name in ("prefix_threshold", "chunk_capacity"):
        with pytest.raises(InputError, match="was not read"):
            decide("fa3", (10, T), engine=replace(NEW, **{name: None}))
    with pytest.raises(InputError, match="was not read"):
        sglang.resolve(replace(NEW, default_backends=()), model=V3, major=9, platform="cuda", heads_per_rank=16)
    with pytest.raises(InputError, match="none is known"):
        sglang.resolve(NEW, model=V3, major=None, platform="cuda", heads_per_rank=16)


# --- the default backend, arg_groups/model_override_base.py:277-351 and model_overrides/deepseek_v2.py:37-187


@pytest.mark.parametrize("engine", [NEW, OLD], ids=["0.5.23", "0.5.18"])
@pytest.mark.parametrize(
    ("model", "major", "platform", "heads", "backend"),
    [
        ("deepseek-v3", 9, "cuda", 16, "fa3"),
        ("deepseek-r1", 9, "cuda", 128, "fa3"),
        ("deepseek-v3", 10, "cuda", 16, "trtllm_mla"),
        ("deepseek-r1", 10, "cuda", 16, "trtllm_mla"),
        ("kimi-k2", 10, "cuda", 8, "trtllm_mla"),  # DeepseekV3ForCausalLM
        ("kimi-k2.5", 10, "cuda", 8, "trtllm_mla"),  # KimiK25ForConditionalGeneration
        ("mistral-large-3", 10, "cuda", 16, "trtllm_mla"),  # MistralLarge3ForCausalLM
        ("longcat-flash", 10, "cuda", 8, "trtllm_mla"),  # LongcatFlashForCausalLM
        ("kimi-k3", 10, "cuda", 12, "trtllm_mla"),  # model_overrides/kimi_k3.py:122-135
        ("deepseek-v2", 10, "cuda", 16, "flashinfer"),  # V3's heads, but DeepseekV2ForCausalLM, hidden 5120
        ("deepseek-v2-lite", 10, "cuda", 16, "flashinfer"),
        ("deepseek-v2", 9, "cuda", 16, "fa3"),
        ("deepseek-v3", 8, "cuda", 16, "triton"),
        ("deepseek-v3", 11, "cuda", 16, "triton"),
        ("deepseek-v3", 12, "cuda", 16, "triton"),
        ("deepseek-v3", None, "rocm", 16, "aiter"),
        ("deepseek-v3", None, "rocm", 128, "aiter"),
        ("deepseek-v3", None, "rocm", 15, "triton"),
        ("deepseek-v3", None, "rocm", 17, "triton"),
        ("deepseek-v3", None, "rocm", 32, "triton"),
        ("deepseek-v3.2", 9, "cuda", 16, "dsa"),
        ("deepseek-v3.2", 10, "cuda", 16, "dsa"),
        ("glm-5.2", None, "rocm", 16, "dsa"),
    ],
)
def test_default_backends(
    engine: Engine, model: str, major: int | None, platform: Any, heads: int, backend: str
) -> None:
    found = sglang.resolve(engine, model=load_model(model), major=major, platform=platform, heads_per_rank=heads)
    assert found.resolved == backend
    assert [rung.accepted for rung in found.ladder] == [False] * (len(found.ladder) - 1) + [True]
    assert found.ladder[-1].name == backend
    assert all(rung.reason for rung in found.ladder)


@pytest.mark.parametrize(
    ("gpu", "backend"),
    [("h200", "fa3"), ("b200", "trtllm_mla"), ("b300", "trtllm_mla"), ("rtx-5090", "triton"), ("a100", "triton")],
)
def test_default_backends_of_gpus(gpu: str, backend: str) -> None:
    major = load_gpu(gpu).capability_major
    assert sglang.resolve(NEW, model=V3, major=major, platform="cuda", heads_per_rank=16).resolved == backend


def test_every_default_leads_to_a_handler_of_its_name() -> None:
    for engine in (NEW, OLD):
        for line in engine.default_backends:
            handler, detour = sglang.handler_of(engine, line.backend)
            assert (handler.name, detour) == (line.backend, None)


def test_the_reasons_for_each_line_passed_over() -> None:
    found = sglang.resolve(NEW, model=V3, major=12, platform="cuda", heads_per_rank=16)
    assert [(rung.name, rung.reason) for rung in found.ladder] == [
        ("dsa", "the model has no indexer"),
        ("trtllm_mla", "for 10.x, and the compute capability is 12.x"),
        ("trtllm_mla", "for 10.x, and the compute capability is 12.x"),
        ("fa3", "for 9.x, and the compute capability is 12.x"),
        ("flashinfer", "for 10.x, and the compute capability is 12.x"),
        ("aiter", "for rocm, and the platform is cuda"),
        ("triton", "no line before it holds"),
    ]


def test_the_family_is_told_by_its_dimensions() -> None:
    found = sglang.resolve(NEW, model=V3, major=10, platform="cuda", heads_per_rank=16)
    assert "the model's dimensions (128 heads, hidden 7168, 512/64/128/128) are those of" in found.ladder[-1].reason
    other = sglang.resolve(NEW, model=load_model("deepseek-v2"), major=10, platform="cuda", heads_per_rank=16)
    assert "(128 heads, hidden 5120, 512/64/128/128) are none of those of" in other.ladder[1].reason
    amd = sglang.resolve(NEW, model=V3, major=None, platform="rocm", heads_per_rank=32)
    assert amd.ladder[-2].reason == "for 16 or 128 query heads, and a rank has 32 query heads"


def test_gfx95() -> None:
    assert {name: sglang.is_gfx95(load_gpu(name)) for name in ("mi355x", "mi300x", "h200")} == {
        "mi355x": True,
        "mi300x": False,
        "h200": False,
    }


# --- the class chain: 0.5.18 layers/attention/{cutlass_mla,flashmla,trtllm_mla,cutedsl_mla,tokenspeed_mla}_backend.py


@pytest.mark.parametrize(
    ("engine", "chain"),
    [
        (
            OLD,
            {
                "CutlassMLABackend": "FlashInferMLAAttnBackend",
                "FlashMLABackend": "FlashInferMLAAttnBackend",
                "TRTLLMMLABackend": "FlashInferMLAAttnBackend",
                "CuteDslMLABackend": "TRTLLMMLABackend",
                "TokenspeedMLABackend": "TRTLLMMLABackend",
            },
        ),
        (
            NEW,
            {
                "FlashMLABackend": "FlashInferMLAAttnBackend",
                "TRTLLMMLABackend": "FlashInferMLAAttnBackend",
                "CuteDslMLABackend": "TRTLLMMLABackend",
                "CuteDslMLAPrefillBackend": "TRTLLMMLABackend",
            },
        ),
    ],
)
def test_class_chain(engine: Engine, chain: dict[str, str]) -> None:
    assert dict(engine.class_chain) == chain


# --- the chunks, model_executor/forward_batch_deepseek_mha_mixin.py:193-215


def plan(prefixes: list[int], capacity: int | None = None) -> list[list[int]]:
    """Tokens of each row, chunk by chunk."""
    found = []
    for chunk in sglang.chunk_plan(NEW, [Row(10, prefix) for prefix in prefixes], capacity):
        tokens = [0] * len(prefixes)
        for piece in chunk.pieces:
            tokens[piece.row] += piece.tokens
        assert chunk.tokens == sum(tokens)
        found.append(tokens)
    return found


@pytest.mark.parametrize(
    ("capacity", "share", "count", "last"),
    [
        (C, 4096, 15, 2656),  # 60,000 - 14 x 4,096
        (65536, 2048, 30, 608),  # 60,000 - 29 x 2,048: vllm#50613's 30 chunks before it packed greedily
    ],
)
def test_the_rows_of_vllm_50613(capacity: int, share: int, count: int, last: int) -> None:
    found = plan([60_000] + [16] * 31, capacity)
    assert len(found) == count
    assert found[0] == [share] + [16] * 31
    assert found[1:-1] == [[share] + [0] * 31] * (count - 2)
    assert found[-1] == [last] + [0] * 31


def test_the_capacity_is_the_releases_own() -> None:
    assert [plan([length]) for length in (C - 1, C, C + 1)] == [[[C - 1]], [[C]], [[C], [1]]]


def test_a_row_without_prefix_takes_its_share_too() -> None:
    assert plan([100, 0], 100) == [[50, 0], [50, 0]]
    assert plan([100], 100) == [[100]]
    assert plan([100, 30, 0], 100) == [[33, 30, 0], [33, 0, 0], [33, 0, 0], [1, 0, 0]]


def test_nothing_to_cut() -> None:
    assert plan([0, 0]) == []
    assert plan([]) == []


def test_more_rows_than_capacity() -> None:
    assert plan([2, 1], 2) == [[1, 1], [1, 0]]
    with pytest.raises(InputError, match="3 rows share"):
        plan([1, 1, 1], 2)


def test_the_plan_of_an_engine_that_cuts_otherwise() -> None:
    with pytest.raises(InputError, match="not known to cut prefixes in equal shares"):
        sglang.chunk_plan(replace(NEW, chunk_plan="greedy"), [Row(1, 1)])
