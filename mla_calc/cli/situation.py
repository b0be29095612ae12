"""From the options of ``backends`` and ``dispatch`` to what an engine's rules look at."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from ..costs.layouts import load_layout
from ..costs.sharding import check_tp
from ..engines.rules import Situation
from ..errors import InputError, shown
from ..hardware.gpu import GPU
from ..hardware.load import load_gpu
from ..models.load import load_model
from ..sizes import parse_count
from . import complete, request

EngineName = Annotated[
    str, typer.Option("--engine", help="Engine release: vllm, sglang, vllm@0.29.", autocompletion=complete.engines)
]
Cc = Annotated[str | None, typer.Option("--cc", help="CUDA compute capability instead of a GPU: 9.0.")]
Aiter = Annotated[bool, typer.Option("--aiter", help="vLLM on ROCm: VLLM_ROCM_USE_AITER is set.")]

_CAPABILITY = re.compile(r"[0-9]{1,2}\.[0-9]")


def situation_of(
    model: str,
    gpu: str | None,
    cc: str | None,
    *,
    tp: str,
    dtype: str,
    block_size: str | None = None,
    dcp: str = "1",
    **more: Any,
) -> Situation:
    """What the rules look at, parsed and checked.

    Raises:
        InputError: a value that is not understood, both a GPU and a capability, or neither.
    """
    loaded = load_model(model)
    if loaded.mla is None:
        raise InputError(f"{loaded.name} is {request.kind(loaded)} (no kv_lora_rank): MLA backends are not for it")
    ranks, shards = parse_count(tp, "--tp", most=request.MAX_TP), parse_count(dcp, "--dcp", most=request.MAX_TP)
    check_tp(loaded, ranks)
    if ranks % shards:
        raise InputError(f"--dcp {shards} does not divide --tp {ranks}")
    card, capability = _device(gpu, cc)
    return Situation(
        model=loaded,
        tp=ranks,
        gpu=card,
        compute_capability=capability,
        cache_dtype=load_layout(dtype).name,
        block_size=None if block_size is None else parse_count(block_size, "--block-size", most=request.MAX_BLOCK),
        dcp=shards,
        **more,
    )


def _device(gpu: str | None, cc: str | None) -> tuple[GPU | None, str | None]:
    """The GPU, or the compute capability that stands for one."""
    if gpu is not None and cc is not None:
        raise InputError("--gpu and --cc both name a device: give one of them")
    if cc is not None:
        if not _CAPABILITY.fullmatch(cc.strip()):
            raise InputError(f"--cc {shown(cc)}: a compute capability is expected, such as 9.0")
        return None, cc.strip()
    if gpu is None:
        raise InputError("a backend is chosen by the GPU: give --gpu or --cc")
    return load_gpu(gpu), None
