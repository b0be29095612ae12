"""vLLM's ladder: what a release picks, and the gate that refused each backend above it.

Expected values were read in the wheels of vllm 0.33.0 (g4ba787ec9) and 0.29.0 (g98dff2a81); file and line at each.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mla_calc.engines.load import load_engine
from mla_calc.engines.vllm import StoredResolution, backend_named, cache_names, is_quantised, resolve
from mla_calc.errors import InputError
from mla_calc.hardware.load import load_gpu
from mla_calc.models.attention import Model
from mla_calc.models.load import load_model


def picked(
    release: str, model: str | Model, capability: str, dtype: str, tp: int = 8, block: int | None = None, dcp: int = 1
) -> StoredResolution:
    found = load_model(model) if isinstance(model, str) else model
    assert found.mla is not None
    return resolve(
        load_engine(release),
        model=found,
        cache_dtype=dtype,
        heads_per_rank=found.mla.heads // tp,
        compute_capability=capability,
        block_size=block,
        dcp=dcp,
    )


def reason(resolution: StoredResolution, name: str) -> str:
    return next(rung.reason for rung in resolution.ladder if rung.name == name)


# The order of vllm 0.33.0, vllm/platforms/cuda.py:84-155, with the gates of each backend's file.
RESOLVED = [
    ("dsv3", "9.0", "bf16", 8, "FLASH_ATTN_MLA"),  # flashattn_mla.py:69
    ("dsr1", "9.0", "auto", 8, "FLASH_ATTN_MLA"),
    ("dsv3", "9.0", "fp8", 8, "FLASHMLA"),  # flashattn_mla.py:42 lists no fp8
    ("dsv3", "10.0", "bf16", 8, "FLASHINFER_MLA"),  # flashinfer_mla.py:220
    ("dsv3", "10.3", "fp8", 8, "FLASHINFER_MLA"),
    ("dsv3", "8.0", "bf16", 8, "TRITON_MLA"),  # triton_mla.py:140
    ("dsv3", "8.6", "bf16", 8, "TRITON_MLA"),
    ("dsv3", "8.9", "bf16", 8, "TRITON_MLA"),
    ("dsv3", "12.0", "bf16", 8, "TRITON_MLA"),  # cuda.py:134-138
    ("dsv3.2", "9.0", "bf16", 8, "FLASH_ATTN_MLA_SPARSE"),  # flashattn_mla_sparse.py:83
    ("dsv3.2", "9.0", "fp8", 8, "FLASHMLA_SPARSE"),  # flashattn_mla_sparse.py:43 lists no fp8
    ("dsv3.2", "10.0", "fp8", 8, "FLASHINFER_MLA_SPARSE"),  # cuda.py:104-109
    ("dsv3.2", "10.0", "fp8_e4m3", 8, "FLASHINFER_MLA_SPARSE"),
    ("dsv3.2", "10.0", "fp8_ds_mla", 8, "FLASHMLA_SPARSE"),  # flashinfer_mla_sparse.py:134
    ("dsv3.2", "10.0", "nvfp4_ds_mla", 8, "FLASHMLA_SPARSE"),  # flashmla_sparse.py:154
    ("dsv3.2", "10.0", "bf16", 8, "FLASH_ATTN_MLA_SPARSE_FA4"),  # 16 heads; cuda.py:113-118
    ("dsv3.2", "10.0", "bf16", 16, "FLASH_ATTN_MLA_SPARSE_FA4"),  # 8 heads
    ("dsv3.2", "10.0", "bf16", 4, "FLASHMLA_SPARSE"),  # 32 heads; cuda.py:119-123
    ("dsv3.2", "10.0", "bf16", 1, "FLASHMLA_SPARSE"),
    ("dsv3.2", "12.0", "auto", 8, "FLASHINFER_MLA_SPARSE_SM120"),  # flashinfer_mla_sparse.py:193
    ("dsv3.2", "8.0", "bf16", 8, None),
    ("dsv3.2", "8.9", "fp8", 8, None),
    # Rows of 512 values put the SM90 one first: cuda.py:144-148.
    ("glm-5.3-flash", "9.0", "bf16", 8, "FLASHINFER_MLA_SPARSE_SM90"),
    ("glm-5.3-flash", "9.0", "fp8", 8, "FLASHINFER_MLA_SPARSE_SM90"),
    ("glm-5.3-flash", "9.0", "fp8_ds_mla", 8, "FLASHMLA_SPARSE"),  # flashmla_sparse.py:219-249
    ("glm-5.3-flash", "10.0", "bf16", 8, "FLASHINFER_MLA_SPARSE"),  # FA4 takes rows of 576 alone
]


@pytest.mark.parametrize(("model", "capability", "dtype", "tp", "name"), RESOLVED)
def test_resolved_defaults(model: str, capability: str, dtype: str, tp: int, name: str | None) -> None:
    found = picked("vllm@0.33", model, capability, dtype, tp)
    assert found.resolved == name
    assert [rung.name for rung in found.ladder if rung.accepted] == ([name] if name else [])


# vllm 0.29.0, vllm/platforms/cuda.py:97-145: no FA4 one and no SM90 one yet.
CHAPTER = [
    ("dsv3", "9.0", "bf16", 8, "FLASH_ATTN_MLA"),
    ("dsv3", "9.0", "fp8", 8, "FLASHMLA"),
    ("dsv3", "10.0", "bf16", 8, "FLASHINFER_MLA"),
    ("dsv3", "8.9", "fp8", 8, "TRITON_MLA"),
    ("dsv3", "12.0", "bf16", 8, "TRITON_MLA"),
    ("dsv3.2", "9.0", "bf16", 8, "FLASH_ATTN_MLA_SPARSE"),
    ("dsv3.2", "9.0", "fp8", 8, "FLASHMLA_SPARSE"),
    ("dsv3.2", "10.0", "bf16", 8, "FLASHINFER_MLA_SPARSE"),  # 16 heads; with 17 or more FLASHMLA_SPARSE is first
    ("dsv3.2", "10.0", "bf16", 4, "FLASHMLA_SPARSE"),
    ("dsv3.2", "10.0", "fp8_ds_mla", 8, "FLASHMLA_SPARSE"),  # flashinfer_mla_sparse.py:112
    ("dsv3.2", "12.0", "auto", 8, "FLASHINFER_MLA_SPARSE_SM120"),
    ("dsv3.2", "8.0", "bf16", 8, None),
    ("glm-5.3-flash", "10.0", "bf16", 8, None),  # rows of 512: flashinfer_mla_sparse.py:57, flashmla_sparse.py:118
]


@pytest.mark.parametrize(("model", "capability", "dtype", "tp", "name"), CHAPTER)
def test_resolved_at_the_chapters_time(model: str, capability: str, dtype: str, tp: int, name: str | None) -> None:
    assert picked("vllm@0.29", model, capability, dtype, tp).resolved == name


def test_every_rung_of_one_ladder() -> None:
    """vllm 0.33.0, vllm/platforms/cuda.py:139-155, for DeepSeek-V3.2 on Hopper with an fp8 cache."""
    found = picked("vllm@0.33", "dsv3.2", "9.0", "fp8")
    assert [(rung.name, rung.reason.split(",")[0]) for rung in found.ladder] == [
        ("FLASH_ATTN_MLA", "attention of DeepSeek-V3.2 is sparse (DSA)"),
        ("FLASHMLA", "attention of DeepSeek-V3.2 is sparse (DSA)"),
        ("FLASHINFER_MLA", "attention of DeepSeek-V3.2 is sparse (DSA)"),
        ("TRITON_MLA", "attention of DeepSeek-V3.2 is sparse (DSA)"),
        ("FLASH_ATTN_MLA_SPARSE", "cache dtype fp8 is not among those that it takes: auto"),
        ("FLASHMLA_SPARSE", "the first that takes DeepSeek-V3.2 on 9.0; fp8 is stored as fp8_ds_mla"),
        ("FLASHINFER_MLA_SPARSE_SM90", "not reached"),
    ]


def with_mla(name: str, **changes: int) -> Model:
    model = load_model(name)
    assert model.mla is not None
    return replace(model, mla=replace(model.mla, **changes))


@pytest.mark.parametrize(
    ("model", "capability", "dtype", "block", "name", "gate"),
    [
        ("dsv3", "9.0", "fp8_ds_mla", None, "FLASH_ATTN_MLA_SPARSE", "dense, and this backend is for sparse models"),
        ("dsv3", "10.0", "fp8_ds_mla", None, "FLASH_ATTN_MLA", "runs on compute capability 9.x, this GPU is 10.0"),
        # declared, and refused by the dense kernel: flashmla.py:74, ops/flashmla.py:51
        ("dsv3", "10.0", "fp8_ds_mla", None, "FLASHMLA", "declares 10.x, but its dense kernel refuses all but 9.x"),
        ("dsv3", "10.0", "fp8_ds_mla", None, "TRITON_MLA", "not among those that it takes: auto, float16, bfloat16"),
        ("dsv3", "8.6", "fp8", None, "TRITON_MLA", "its kernel reads fp8 from compute capability 8.9 on"),
        ("dsv3", "7.5", "bf16", None, "TRITON_MLA", "its kernel reads bfloat16 from compute capability 8.0 on"),
        ("minicpm3", "9.0", "bf16", None, "FLASH_ATTN_MLA", "takes rows of 320 or 512 or 576 values, this model's"),
        ("glm-4.7-flash", "10.0", "bf16", 48, "FLASHINFER_MLA", "pages of a multiple of 32 or 64 tokens, not of 48"),
        ("dsv3", "9.0", "fp8", 32, "FLASHMLA", "pages of a multiple of 64 tokens, not of 32"),
        ("dsv3", "9.0", "bf16", 8, "FLASH_ATTN_MLA", "pages of a multiple of 16 tokens, not of 8"),
    ],
)
def test_a_refusal_names_its_gate(
    model: str, capability: str, dtype: str, block: int | None, name: str, gate: str
) -> None:
    found = picked("vllm@0.33", model, capability, dtype, block=block)
    assert gate in reason(found, name)
    assert found.resolved != name


@pytest.mark.parametrize(("block", "name"), [(128, "FLASHMLA"), (64, "FLASHMLA"), (65, None), (63, None)])
def test_a_page_may_span_several_of_the_kernels(block: int, name: str | None) -> None:
    """vllm 0.33.0, vllm/v1/attention/backend.py:122-138: a multiple of the kernel's 64 is a page too."""
    assert picked("vllm@0.33", "dsv3", "9.0", "fp8", block=block).resolved == name


def test_dimensions_refuse() -> None:
    """flashinfer_mla.py:240-249 and tokenspeed_mla.py:164-170; what is left below them on 10.x is CUTLASS_MLA."""
    found = picked("vllm@0.33", with_mla("dsv3", qk_nope_head_dim=96), "10.0", "fp8")
    assert reason(found, "FLASHINFER_MLA") == "it takes qk_nope_head_dim 64 or 128 or 192, this model has 96"
    assert reason(found, "TOKENSPEED_MLA") == "it takes qk_nope_head_dim 128, this model has 96"
    assert found.resolved == "CUTLASS_MLA"


@pytest.mark.parametrize(("topk", "name"), [(2047, None), (2048, "FLASHINFER_MLA_SPARSE_SM120"), (2049, None)])
def test_sm120_takes_one_topk(topk: int, name: str | None) -> None:
    """flashinfer_mla_sparse.py:233-238."""
    model = load_model("dsv3.2")
    assert model.indexer is not None
    changed = replace(model, indexer=replace(model.indexer, topk=topk))
    found = picked("vllm@0.33", changed, "12.0", "fp8")
    assert found.resolved == name
    if name is None:
        assert f"takes index_topk 2048, this model has {topk}" in reason(found, "FLASHINFER_MLA_SPARSE_SM120")


@pytest.mark.parametrize(
    ("topk", "heads", "dcp", "name"),
    [
        (2048, 16, 1, "FLASH_ATTN_MLA_SPARSE_FA4"),
        (2047, 16, 1, "FLASHINFER_MLA_SPARSE"),
        (2049, 16, 1, "FLASHINFER_MLA_SPARSE"),
        (2048, 15, 1, "FLASHINFER_MLA_SPARSE"),
        (2048, 17, 1, "FLASHMLA_SPARSE"),
        (2048, 16, 4, "FLASH_ATTN_MLA_SPARSE_FA4"),  # 64 gathered
        (2048, 16, 8, "FLASHINFER_MLA_SPARSE"),  # 128 gathered: not under DCP
    ],
)
def test_fa4_wants_whole_tiles_and_known_heads(topk: int, heads: int, dcp: int, name: str) -> None:
    """flashattn_mla_sparse.py:319-341, and cuda.py:113 for the 16 heads."""
    model = load_model("dsv3.2")
    assert model.indexer is not None
    found = resolve(
        load_engine("vllm@0.33"),
        model=replace(model, indexer=replace(model.indexer, topk=topk)),
        cache_dtype="bf16",
        heads_per_rank=heads,
        compute_capability="10.0",
        dcp=dcp,
    )
    assert found.resolved == name


def test_no_dcp() -> None:
    """flashattn_mla_sparse.py:111: under DCP the next one is taken."""
    found = picked("vllm@0.33", "dsv3.2", "9.0", "bf16", dcp=2)
    assert reason(found, "FLASH_ATTN_MLA_SPARSE") == "it has no decode context parallelism"
    assert found.resolved == "FLASHMLA_SPARSE"


@pytest.mark.parametrize(
    ("model", "aiter", "name"),
    [
        ("dsv3", True, "ROCM_AITER_MLA"),
        ("dsv3", False, "TRITON_MLA"),  # VLLM_ROCM_USE_AITER is off by default: vllm/envs.py:1267
        ("dsv3.2", False, "ROCM_AITER_MLA_SPARSE"),
    ],
)
def test_rocm(model: str, aiter: bool, name: str) -> None:
    """vllm 0.33.0, vllm/platforms/rocm.py:531-551."""
    for release in ("vllm@0.33", "vllm@0.29"):
        found = resolve(
            load_engine(release),
            model=load_model(model),
            cache_dtype="bf16",
            heads_per_rank=16,
            gpu=load_gpu("mi300x"),
            aiter=aiter,
        )
        assert found.resolved == name


@pytest.mark.parametrize(
    ("model", "capability", "dtype", "stored"),
    [
        ("dsv3.2", "9.0", "fp8", "fp8_ds_mla"),  # mla_attention.py:359-376
        ("dsv3.2", "10.0", "fp8", "fp8"),
        ("dsv3.2", "12.0", "auto", "fp8_ds_mla"),
        ("dsv3.2", "12.0", "bf16", "fp8_ds_mla"),
        ("dsv3", "9.0", "bf16", "bfloat16"),
    ],
)
def test_what_is_stored(model: str, capability: str, dtype: str, stored: str) -> None:
    assert picked("vllm@0.33", model, capability, dtype).stored_as == stored


def test_what_was_not_read_is_no_guess() -> None:
    release = load_engine("vllm@0.33")
    blank = tuple(
        replace(item, kv_cache_dtypes=None) if item.name == "FLASH_ATTN_MLA" else item for item in release.backends
    )
    unlisted = tuple(item for item in release.backends if item.name != "FLASH_ATTN_MLA")
    for backends, gap in ((blank, "its cache dtypes were"), (unlisted, "its gates were")):
        found = resolve(
            replace(release, backends=backends),
            model=load_model("dsv3"),
            cache_dtype="bf16",
            heads_per_rank=16,
            compute_capability="9.0",
        )
        assert found.resolved is None
        assert found.ladder[0].reason == f"{gap} not read in 0.33.0: whether it is taken is not known"
        assert {rung.reason for rung in found.ladder[1:]} == {"not reached"}


def test_assumptions_are_named() -> None:
    found = picked("vllm@0.33", "dsv3", "9.0", "bf16")
    assert found.ladder[0].reason.endswith("; assumed: FlashAttention 3 on sm_90")


def test_a_gpu_says_its_own_capability() -> None:
    found = resolve(
        load_engine("vllm"), model=load_model("dsv3"), cache_dtype="fp8", heads_per_rank=16, gpu=load_gpu("h200")
    )
    assert found.resolved == "FLASHMLA"


def test_a_gpu_whose_capability_is_not_known_is_named() -> None:
    announced = replace(load_gpu("h200"), name="NVIDIA Next", compute_capability=None)
    with pytest.raises(InputError, match="that of NVIDIA Next is not known") as refused:
        resolve(load_engine("vllm"), model=load_model("dsv3"), cache_dtype="fp8", heads_per_rank=16, gpu=announced)
    assert refused.value.hint is not None
    assert "compute_capability" in refused.value.hint
    assert "--cc" in refused.value.hint


def test_sparse_can_be_forced_dense() -> None:
    """Without DSA a model with an indexer is a dense one."""
    found = resolve(
        load_engine("vllm"),
        model=load_model("dsv3.2"),
        cache_dtype="bf16",
        heads_per_rank=16,
        compute_capability="9.0",
        sparse=False,
    )
    assert found.resolved == "FLASH_ATTN_MLA"


@pytest.mark.parametrize("capability", [None, "", "nine", "9.", "9.0.0", "-9", "９"])
def test_a_bad_capability(capability: str | None) -> None:
    with pytest.raises(InputError, match="compute capability"):
        resolve(
            load_engine("vllm"),
            model=load_model("dsv3"),
            cache_dtype="bf16",
            heads_per_rank=16,
            compute_capability=capability,
        )


def test_no_ladder() -> None:
    with pytest.raises(InputError, match="for GPUs of Google"):
        resolve(
            load_engine("vllm"),
            model=load_model("dsv3"),
            cache_dtype="bf16",
            heads_per_rank=16,
            gpu=load_gpu("tpu-v6e"),
        )
    with pytest.raises(InputError, match="no ladder of vLLM was read for xpu"):
        resolve(load_engine("vllm"), model=load_model("dsv3"), cache_dtype="bf16", heads_per_rank=16, platform="xpu")
    with pytest.raises(InputError, match="which backends it takes was not read"):
        resolve(
            load_engine("sglang"),
            model=load_model("dsv3"),
            cache_dtype="bf16",
            heads_per_rank=16,
            compute_capability="9.0",
        )


def test_no_latent_attention() -> None:
    with pytest.raises(InputError, match="no latent attention"):
        resolve(
            load_engine("vllm"),
            model=load_model("llama3-70b"),
            cache_dtype="bf16",
            heads_per_rank=8,
            compute_capability="9.0",
        )


@pytest.mark.parametrize(
    ("dtype", "names", "quantised"),
    [
        ("bf16", ("bfloat16", "auto"), False),
        ("auto", ("auto",), False),
        ("fp16", ("float16",), False),
        ("FP8", ("fp8",), True),
        ("fp8_ds_mla", ("fp8_ds_mla",), True),
        ("nvfp4_ds_mla", ("nvfp4_ds_mla",), True),
    ],
)
def test_cache_names(dtype: str, names: tuple[str, ...], quantised: bool) -> None:
    assert cache_names(dtype) == names
    assert is_quantised(dtype) is quantised


def test_a_cache_dtype_that_vllm_has_not() -> None:
    with pytest.raises(InputError, match="vLLM has no cache dtype fp4"):
        cache_names("fp4")


@pytest.mark.parametrize(("release", "total", "mla"), [("vllm@0.33", 50, 25), ("vllm@0.29", 37, 19)])
def test_registry(release: str, total: int, mla: int) -> None:
    """vllm/v1/attention/backends/registry.py, TORCH_SDPA and CUSTOM counted; the chapter's 37 and 19 are 0.29's."""
    registry = load_engine(release).registry
    assert registry is not None
    assert (registry.total, registry.mla) == (total, mla)
    assert registry.mla == registry.mla_directory + registry.model_directories


def test_a_backend_by_name() -> None:
    assert backend_named(load_engine("vllm"), "flashmla").name == "FLASHMLA"
    with pytest.raises(InputError, match="no MLA backend FLASHMLAA"):
        backend_named(load_engine("vllm"), "FLASHMLAA")
