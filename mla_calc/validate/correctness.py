"""Every kernel against float64 before any of it is timed.

The data is drawn afresh from the seed (:mod:`.check_cases`); the output holds NaN before the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from .check_cases import FAR_VALUES, Case, Draw, draw_case, gpu_cases, interpreter_cases
from .faults import told
from .kernels.shape import Device, Shape
from .record import NAIVE_TOLERANCE, Check, Geometry
from .references import absorbed_reference, relative_error

TOLERANCES = {"bf16": 3e-3, "fp16": 1e-3, "fp32": 1e-5}
"""Largest relative Frobenius error of a request, by the dtype of the products: two or three roundings to it."""
POOL_SHARE = 4
"""A cache of so many values is drawn where it takes at most one in this many of the free bytes."""
PATHS = "absorbed path"
"""The kernel that a :class:`Check` of a whole path names."""

Decode = Callable[..., torch.Tensor]
"""A function like ``kernels.absorbed_decode``."""
Refusal = Callable[[str, Shape, Device], str | None]
"""Why a kernel, by its name, does not run a shape on a device; ``None``: it does."""


def run_checks(
    kernels: Sequence[str],
    device: Device,
    *,
    torch_device: str | torch.device,
    seed: int,
    geometry: Geometry,
    free_bytes: int,
) -> list[Check]:
    """Check the named kernels of this package on a GPU, each on the cases that it does not refuse.

    Args:
        kernels: names in ``kernels.KERNELS``.
        device: what the kernels are asked about.
        torch_device: where the tensors go.
        seed: of the data.
        geometry: the model's attention widths.
        free_bytes: memory that may be taken. A cache of 2^31 values is left out where it is over a quarter of that.
    """
    fits = free_bytes >= POOL_SHARE * 2 * FAR_VALUES
    cases = [case for case in gpu_cases() if fits or not case.far]
    return _own_checks(kernels, cases, device, torch_device=torch_device, seed=seed, geometry=geometry)


def interpreter_checks(kernels: Sequence[str], *, seed: int, geometry: Geometry) -> list[Check]:
    """The same, tiny, on the CPU under ``TRITON_INTERPRET=1``, which is to be set before Triton is imported.

    Raises:
        InputError: it is not set.
    """
    from .kernels import device_of

    device = device_of(torch.empty(0))
    return _own_checks(kernels, interpreter_cases(), device, torch_device="cpu", seed=seed, geometry=geometry)


def check_cases(
    kernels: Sequence[str],
    cases: Sequence[Case],
    device: Device,
    *,
    decode: Decode,
    refusal: Refusal,
    torch_device: str | torch.device,
    seed: int,
    geometry: Geometry,
) -> list[Check]:
    """A Check for every case of every kernel that accepts it; a kernel that raises is a failed one.

    The data of a case is the same for all kernels. Ctrl-C passes through.
    """
    checks = []
    for position, case in enumerate(cases):
        takers = [name for name in kernels if refusal(name, shape_of(case, geometry), device) is None]
        if not takers:
            continue
        draw = draw_case(case, geometry, seed + position, torch_device)
        expected = absorbed_reference(
            draw.q,
            draw.cache,
            draw.block_table,
            draw.lengths,
            draw.scale,
            kv_lora_rank=geometry.kv_lora_rank,
            cache_scale=draw.cache_scale,
        )
        checks += [_check(name, case, draw, expected, decode) for name in takers]
    return checks


def shape_of(case: Case, geometry: Geometry) -> Shape:
    """The shape that a kernel is asked about."""
    return Shape(
        batch=len(case.lengths),
        queries=case.queries,
        heads=case.heads,
        context=max(case.lengths),
        kv_lora_rank=geometry.kv_lora_rank,
        qk_rope_head_dim=geometry.qk_rope_head_dim,
        dtype=case.dtype,
        cache_dtype=case.cache_dtype,
    )


def path_check(case: str, error_of: Callable[[], float]) -> Check:
    """A whole path against the expanded float64 reference; ``error_of`` runs both. One that raises is a failed one."""
    error: float | None = None
    message = None
    try:
        error = error_of()
        if not error <= NAIVE_TOLERANCE:
            message = f"relative error {error:.2e}, more than {NAIVE_TOLERANCE:.0e}"
    except Exception as fault:  # as of a kernel
        message = told(fault)
    return Check(
        kernel=PATHS,
        case=case,
        relative_error=error if error == error else None,
        tolerance=NAIVE_TOLERANCE,
        correct=message is None,
        message=message,
    )


def _own_checks(
    kernels: Sequence[str],
    cases: Sequence[Case],
    device: Device,
    *,
    torch_device: str | torch.device,
    seed: int,
    geometry: Geometry,
) -> list[Check]:
    """``check_cases`` with this package's kernels."""
    from .kernels import KERNELS, absorbed_decode

    def refusal(name: str, shape: Shape, on: Device) -> str | None:
        return KERNELS[name].refusal(shape, on)

    return check_cases(
        kernels,
        cases,
        device,
        decode=absorbed_decode,
        refusal=refusal,
        torch_device=torch_device,
        seed=seed,
        geometry=geometry,
    )


def _check(kernel: str, case: Case, draw: Draw, expected: torch.Tensor, decode: Decode) -> Check:
    """One call against what is expected of it."""
    tolerance = TOLERANCES[case.dtype]
    out = torch.full_like(expected, float("nan"), dtype=draw.q.dtype)
    error: float | None = None
    message = None
    try:
        decode(
            draw.q,
            draw.cache,
            draw.block_table,
            draw.lengths,
            draw.scale,
            cache_scale=draw.cache_scale,
            max_length=max(case.lengths),
            kernel=kernel,
            splits=case.splits,
            kv_lora_rank=expected.shape[-1],
            out=out,
        )
        found = relative_error(out, expected)  # waits for the device: a fault of the kernel shows here
        error = None if found != found else found
        message = _failure(out, error, tolerance)
    except Exception as fault:  # whatever a compiler or a driver raises is a kernel that failed
        message = told(fault)
    return Check(
        kernel=kernel,
        case=case.label,
        relative_error=error,
        tolerance=tolerance,
        correct=message is None,
        message=message,
    )


def _failure(out: torch.Tensor, error: float | None, tolerance: float) -> str | None:
    """What is wrong with an output, or ``None``."""
    if error is None:
        wrong = int((~torch.isfinite(out)).sum())
        return f"{wrong:,} of {out.numel():,} values are NaN or infinite"
    if error > tolerance:
        return f"relative error {error:.2e}, more than {tolerance:.0e}"
    return None
