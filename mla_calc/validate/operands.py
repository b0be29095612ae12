"""Whose peak bounds a row that somebody else measured: the dtype of the products that its kernel can have made.

A CSV names the cache. A kernel may multiply in the cache's own dtype or may widen it first, and a bound must hold for
any kernel: the fastest products count, whatever the kernel is called. A run of this tool records its products.
"""

from __future__ import annotations

from ..costs.layouts import Layout
from ..hardware.gpu import GPU
from ..models.attention import MLA

OUR_KERNELS = ("hopper", "small", "tile64")
"""As a run of this tool names them. Their products are 16-bit whatever the cache holds: fp8 rows are widened first."""
HALF = ("fp16", "float16", "half")
NARROW: dict[str, tuple[str, ...]] = {
    "fp8": ("fp8",),
    "fp8_ds_mla": ("fp8",),
    "nvfp4_ds_mla": ("fp4", "fp8"),
    "fp4": ("fp4", "fp8"),
    "q8_0": ("int8",),
    "q4_0": ("int8",),
}
"""The fastest products that a kernel could make of a layout's rows; where a GPU has none of them, bf16."""
ANY_NARROW = ("fp4", "fp8", "int8")
"""The same for a layout that is not one of ours and takes less than two bytes a value."""


def products_of(cache: str, layout: Layout, row_bytes: int, mla: MLA, gpu: GPU) -> str:
    """The dtype of the fastest products that a kernel could make of such cache rows on ``gpu``.

    ``cache`` is the name as it was written, which tells fp16 from bf16 where the layout does not. A kernel may
    multiply in the cache's own dtype, where the GPU has a peak for it.
    """
    if cache.lower() in HALF:
        return "fp16"
    peaks = {str(name): value for name, value in gpu.peak_tflops.items()}
    narrow = NARROW.get(layout.name, ANY_NARROW if row_bytes < 2 * mla.row_values else ())
    found = [name for name in narrow if peaks.get(name, 0) > peaks.get("bf16", 0)]
    return max(found, key=lambda name: peaks[name], default="bf16")
