"""Every kernel compiled, without a GPU, for each generation that it says it runs on: it fits the shared memory there.

The compiler and the assembler come with Triton. What a block may take of shared memory is from NVIDIA's CUDA C++
programming guide, table "technical specifications per compute capability".
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from mla_calc.validate.kernels import KERNELS, PAGE, Device
from mla_calc.validate.kernels import combine as combine_module
from mla_calc.validate.kernels import hopper as hopper_module
from mla_calc.validate.kernels import tiled as tiled_module
from mla_calc.validate.kernels.call import checked

SHARED_KIB = {(8, 0): 163, (8, 6): 99, (8, 9): 99, (9, 0): 227, (10, 0): 227, (12, 0): 99}
SMS = 132
# name: heads, queries, batch, context, r, dr, dtype, cache dtype
SHAPES = {
    "deepseek": (128, 1, 128, 4096, 512, 64, torch.bfloat16, torch.bfloat16),
    "deepseek, one request": (16, 2, 1, 4096, 512, 64, torch.float16, torch.float16),
    "fp8 rows": (16, 1, 64, 4096, 512, 64, torch.bfloat16, torch.float8_e4m3fn),
    "minicpm3": (40, 1, 8, 2048, 256, 32, torch.bfloat16, torch.bfloat16),
    "no rotary part": (32, 1, 8, 2048, 512, 0, torch.bfloat16, torch.bfloat16),
}
TILE64_LACKS_ROOM = {"deepseek", "deepseek, one request", "fp8 rows"}
"""On 99 KiB: 64 rows of 576 columns are 72 KiB, and two steps of 16 keys 36 KiB more."""


class FakeDriver:
    """Stands for a device of one compute capability: enough for the compiler, which asks for nothing else."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self.number = capability[0] * 10 + capability[1]
        self.target = GPUTarget("cuda", self.number, 32)

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return self.number  # a kernel remembers what it is compiled for by the device

    def get_current_stream(self, _: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


class Compiled:
    """Takes a kernel's place: where it would be launched, it is compiled."""

    def __init__(self, kernel: Any, found: list[Any]) -> None:
        self.kernel, self.found = kernel, found

    def __getitem__(self, grid: Any) -> Any:
        def compiled(*arguments: Any, **options: Any) -> None:
            self.found.append(self.kernel.warmup(*arguments, grid=grid, **options))

        return compiled


@pytest.fixture(autouse=True)
def no_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    active = driver._active
    yield
    driver._active = active


def compiled(kernel: str, shape: str, capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> list[Any] | str:
    """What a launch would run, compiled for ``capability``; or why the kernel refuses."""
    heads, queries, batch, context, rank, rope, dtype, cache_dtype = SHAPES[shape]
    device = Device(sms=SMS, capability=capability, shared_bytes=SHARED_KIB[capability] * 1024)
    call = checked(
        torch.zeros(batch, queries, heads, rank + rope, dtype=dtype),
        torch.zeros(2, PAGE, rank + rope, dtype=torch.float32).to(cache_dtype),
        torch.zeros(batch, context // PAGE, dtype=torch.int32),
        torch.full((batch,), context, dtype=torch.int32),
        0.1,
        1.0,
        None,
        rank,
        None,
        device,
    )
    reason = KERNELS[kernel].refusal(call.shape, device)
    if reason:
        return reason
    found: list[Any] = []
    for module, name in (
        (hopper_module, "_decode_hopper"),
        (tiled_module, "_decode_tile"),
        (combine_module, "_merge_splits"),
    ):
        monkeypatch.setattr(module, name, Compiled(getattr(module, name), found))
    driver.set_active(FakeDriver(capability))
    KERNELS[kernel].launch(call, KERNELS[kernel].schedule(call.shape, device))
    return found


@pytest.mark.parametrize("capability", SHARED_KIB)
@pytest.mark.parametrize("kernel", ["small", "tile64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_plain_kernels_fit_every_generation(
    kernel: str, shape: str, capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compiled(kernel, shape, capability, monkeypatch)
    if shape == "fp8 rows" and capability < (8, 9):
        assert found == "fp8 rows need compute capability 8.9"
    elif kernel == "tile64" and SHARED_KIB[capability] == 99 and shape in TILE64_LACKS_ROOM:
        assert found == "99 KiB of shared memory hold no two steps of 576 columns"
    else:
        assert not isinstance(found, str), found
        for part in found:
            assert part.metadata.shared <= SHARED_KIB[capability] * 1024
            assert part.asm["cubin"]


@pytest.mark.parametrize("shape", ["deepseek", "deepseek, one request"])
def test_the_hopper_kernel_keeps_its_registers(shape: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # if the groups' registers do not fit, the assembler ignores the trade or serialises the products, without an
    # error: what shows is the lack of setmaxnreg, or spilling
    found = compiled("hopper", shape, (9, 0), monkeypatch)
    assert not isinstance(found, str), found
    kernel = found[0]
    assert kernel.metadata.shared <= hopper_module.SHARED_BYTES
    assert "setmaxnreg.inc" in kernel.asm["ptx"] or "setmaxnreg.dec" in kernel.asm["ptx"]
    assert "wgmma.mma_async" in kernel.asm["ptx"]
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(kernel.asm["cubin"])
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    usage = subprocess.run([tool, "-res-usage", cubin], capture_output=True, text=True, check=True).stdout
    registers, stack = (int(re.search(rf"{name}:(\d+)", usage)[1]) for name in ("REG", "STACK"))  # type: ignore[index]
    assert registers == hopper_module.REGISTERS_AT_ENTRY
    assert stack <= 64


@pytest.mark.parametrize("capability", [(8, 0), (10, 0), (12, 0)])
def test_the_hopper_kernel_is_for_hopper(capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    reason = compiled("hopper", "deepseek", capability, monkeypatch)
    assert reason == f"made for compute capability 9.0, this device has {capability[0]}.{capability[1]}"
