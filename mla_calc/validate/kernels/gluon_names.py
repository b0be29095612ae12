"""Gluon under one set of names: Triton 3.6 and 3.9 spell a few of them differently."""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import tma

aggregate = triton.aggregate if hasattr(triton, "aggregate") else triton.language.core._aggregate
group_barrier = gl.thread_barrier if hasattr(gl, "thread_barrier") else gl.barrier
"""Waits for the threads of the block or, in a specialised part, of this warp group alone."""
load_tile = tma.async_load if hasattr(tma, "async_load") else tma.async_copy_global_to_shared
"""Starts the copy of one descriptor tile into shared memory; its bytes count on a barrier."""

__all__ = ["aggregate", "gl", "gluon", "group_barrier", "load_tile"]
