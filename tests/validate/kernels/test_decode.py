"""The function of tensors: what it refuses, and which kernel it takes. The results are checked in test_correctness."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from mla_calc.errors import InputError
from mla_calc.validate.kernels import Device, Shape, absorbed_decode, pick
from mla_calc.validate.kernels import decode as decode_module

H200 = Device(sms=132, capability=(9, 0), shared_bytes=227 * 1024)
A100 = Device(sms=108, capability=(8, 0), shared_bytes=163 * 1024)
TURING = Device(sms=40, capability=(7, 5), shared_bytes=64 * 1024)
SHAPE = Shape(batch=128, queries=1, heads=128, context=4096)


def tensors(**changed: Any) -> dict[str, Any]:
    """Arguments that go together: 2 requests of 3 pages, 4 heads, rows of 64 + 16."""
    return {
        "q": torch.zeros(2, 1, 4, 80, dtype=torch.float16),
        "cache": torch.zeros(6, 64, 80, dtype=torch.float16),
        "block_table": torch.zeros(2, 3, dtype=torch.int32),
        "lengths": torch.ones(2, dtype=torch.int32),
        "scale": 0.1,
        "kv_lora_rank": 64,
        **changed,
    }


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are taken as if they were on an A100; nothing is launched before they are checked."""
    monkeypatch.setattr(decode_module, "device_of", lambda _: A100)


@pytest.mark.usefixtures("on_a_gpu")
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"q": torch.zeros(2, 4, 80, dtype=torch.float16)}, "q has 3 dimensions: 4 are expected"),
        ({"q": torch.zeros(2, 0, 4, 80, dtype=torch.float16)}, "q is empty"),
        ({"q": torch.zeros(2, 1, 4, 80, dtype=torch.int32)}, "q is torch.int32"),
        ({"q": torch.zeros(2, 1, 80, 4, dtype=torch.float16).transpose(2, 3)}, "q is contiguous"),
        ({"cache": torch.zeros(6, 32, 80, dtype=torch.float16)}, r"cache is \[6, 32, 80\]: \[pages, 64, 80\]"),
        ({"cache": torch.zeros(6, 64, 80, dtype=torch.bfloat16)}, "cache is torch.bfloat16: torch.float16"),
        ({"block_table": torch.zeros(2, 3, dtype=torch.int64)}, "block_table and lengths are int32"),
        ({"block_table": torch.zeros(3, 3, dtype=torch.int32)}, "q has 2 requests, block_table 3, lengths 2"),
        ({"lengths": torch.ones(2)}, "block_table and lengths are int32"),
        ({"cache": torch.zeros(6 * 64 * 80 + 1, dtype=torch.float16)[1:].view(6, 64, 80)}, "cache does not begin at"),
        ({"q": torch.zeros(2 * 4 * 80 + 1, dtype=torch.float16)[1:].view(2, 1, 4, 80)}, "q does not begin at a mult"),
        ({"kv_lora_rank": 81}, "kv_lora_rank is 81, q is 80 wide"),
        ({"kv_lora_rank": 0}, "kv_lora_rank is 0"),
        ({"kv_lora_rank": 48}, "kv_lora_rank 48 is no power of two from 16 on"),
        ({"kv_lora_rank": 32, "kernel": "tile64"}, "qk_rope_head_dim 48 is neither 0 nor a power of two"),
        ({"scale": 0.0}, "scale 0.0 and cache_scale 1.0 are positive and finite"),
        ({"scale": float("nan")}, "scale nan"),
        ({"cache_scale": 2.0}, "cache_scale is for fp8 rows; these are torch.float16"),
        ({"max_length": 193}, "max_length is 193: the block table has room for 192 rows"),
        ({"max_length": 0}, "max_length is 0"),
        ({"kernel": "smal"}, "no kernel is named 'smal'; there are hopper, small, tile64"),
        ({"kernel": "hopper"}, "the hopper kernel cannot run this shape: made for compute capability 9.0"),
        ({"splits": 4}, "splits is 4: from 1 to the 3 pages"),
        ({"splits": 0}, "splits is 0"),
        ({"out": torch.zeros(2, 1, 4, 80, dtype=torch.float16)}, r"out is torch.float16 \[2, 1, 4, 80\]"),
        ({"q": torch.zeros(2, 1, 4, 80), "cache": torch.zeros(6, 64, 80)}, "float32 is for the interpreter alone"),
    ],
)
def test_what_does_not_go_together_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        absorbed_decode(**tensors(**changed))


def test_tensors_on_a_cpu_are_refused() -> None:
    with pytest.raises(InputError, match="the kernels run on a CUDA device; these tensors are on cpu"):
        absorbed_decode(**tensors())


@pytest.mark.parametrize(
    ("shape", "device", "kernel"),
    [
        (SHAPE, H200, "hopper"),
        (replace(SHAPE, heads=16, batch=1), H200, "small"),
        (replace(SHAPE, heads=16, batch=128, context=65_536), H200, "hopper"),
        (replace(SHAPE, heads=128, batch=1, context=65_536), H200, "hopper"),
        (replace(SHAPE, cache_dtype="fp8"), H200, "tile64"),
        (replace(SHAPE, cache_dtype="fp8", heads=16), H200, "small"),
        (replace(SHAPE, kv_lora_rank=256, qk_rope_head_dim=32), H200, "tile64"),
        (SHAPE, A100, "tile64"),
        (replace(SHAPE, heads=16), A100, "small"),
        (SHAPE, replace(H200, capability=(12, 0), shared_bytes=99 * 1024), "small"),
    ],
)
def test_the_choice(shape: Shape, device: Device, kernel: str) -> None:
    assert pick(shape, device) == kernel


def test_no_kernel_for_an_old_gpu() -> None:
    with pytest.raises(InputError, match=r"no kernel runs this shape: .*compute capability 7\.5 is below 8\.0"):
        pick(SHAPE, TURING)
