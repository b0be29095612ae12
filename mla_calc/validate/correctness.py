"""Every kernel against float64 before any of it is timed.

The data is drawn afresh from the seed. All that a kernel must not use holds NaN: the rows past a length, the pages
that no request owns, the output before the call. The lengths are ragged and stand at and beside page edges, and
the pages of a request are scattered over the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from .kernels.shape import PAGE, Device, Shape
from .record import Check, Geometry
from .references import absorbed_reference, relative_error

TOLERANCES = {"bf16": 3e-3, "fp16": 1e-3, "fp32": 1e-5}
"""Largest relative Frobenius error of a request, by the dtype of the products: two or three roundings to it."""
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp8": torch.float8_e4m3fn}
FP8_SCALE = 0.037
"""What stored fp8 rows stand for is this times their value: no power of two, so that a lost factor shows."""
RAGGED = (1, PAGE - 1, PAGE, PAGE + 1, 700, 2 * PAGE)
LONG = 2500
"""Keys of a request that is worth cutting into many pieces."""

Decode = Callable[..., torch.Tensor]
"""A function like ``kernels.absorbed_decode``."""
Refusal = Callable[[str, Shape, Device], str | None]
"""Why a kernel, by its name, does not run a shape on a device; ``None``: it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call to check. ``lengths`` that are shorter than the queries are raised to them, but for 0."""

    name: str
    heads: int
    queries: int = 1
    lengths: tuple[int, ...] = RAGGED
    dtype: str = "bf16"
    cache_dtype: str = "bf16"
    splits: int | None = None

    @property
    def label(self) -> str:
        """As the record names it."""
        cache = f" {self.cache_dtype} cache" if self.cache_dtype != self.dtype else ""
        splits = "" if self.splits is None else f" splits={self.splits}"
        return f"{self.dtype}{cache} h={self.heads} Q={self.queries}{splits} {self.name}"

    def keys(self) -> tuple[int, ...]:
        """Lengths with room for the queries."""
        return tuple(length and max(length, self.queries) for length in self.lengths)


@dataclass(frozen=True, slots=True)
class Draw:
    """The random tensors of a case, as ``absorbed_decode`` takes them."""

    q: torch.Tensor
    cache: torch.Tensor
    block_table: torch.Tensor
    lengths: torch.Tensor
    scale: float
    cache_scale: float


def gpu_cases() -> tuple[Case, ...]:
    """The cases of a run: all shapes in bf16, and what else depends on the dtype in fp16 and over an fp8 cache."""
    return (
        Case(name="ragged", heads=16),
        Case(name="ragged", heads=16, splits=1),
        Case(name="ragged", heads=128, queries=2),
        Case(name="ragged", heads=128, splits=1),
        Case(name="ragged", heads=12, queries=4),
        Case(name="over tiles", heads=16, queries=70, lengths=(70, 129, 700)),
        Case(name="long", heads=16, queries=2, lengths=(LONG, 3), splits=16),
        Case(name="long", heads=64, lengths=(LONG, 65), splits=8),
        Case(name="empty request", heads=16, lengths=(0, 65, 0)),
        Case(name="ragged", heads=16, queries=2, dtype="fp16", cache_dtype="fp16"),
        Case(name="ragged", heads=128, dtype="fp16", cache_dtype="fp16"),
        Case(name="ragged", heads=16, queries=2, cache_dtype="fp8"),
        Case(name="ragged", heads=128, cache_dtype="fp8", splits=4),
    )


def interpreter_cases() -> tuple[Case, ...]:
    """Small cases for Triton's interpreter, in the dtypes whose products it gets right."""
    small = tuple(
        case
        for dtype in ("fp16", "fp32")
        for case in (
            Case(name="ragged", heads=4, lengths=(1, 63, 64, 65), dtype=dtype, cache_dtype=dtype),
            Case(name="ragged", heads=3, queries=4, lengths=(4, 130, 65), dtype=dtype, cache_dtype=dtype, splits=1),
            Case(name="over tiles", heads=4, queries=18, lengths=(70,), dtype=dtype, cache_dtype=dtype),
            Case(name="long", heads=4, queries=2, lengths=(200, 5), dtype=dtype, cache_dtype=dtype, splits=3),
            Case(name="empty request", heads=4, lengths=(0, 65), dtype=dtype, cache_dtype=dtype),
        )
    )
    return (*small, Case(name="ragged", heads=4, queries=2, lengths=(65, 2), dtype="fp16", cache_dtype="fp8"))


def run_checks(
    kernels: Sequence[str], device: Device, *, torch_device: str | torch.device, seed: int, geometry: Geometry
) -> list[Check]:
    """Check the named kernels of this package on a GPU, each on the cases that it does not refuse.

    Args:
        kernels: names in ``kernels.KERNELS``.
        device: what the kernels are asked about.
        torch_device: where the tensors go.
        seed: of the data.
        geometry: the model's attention widths.
    """
    return _own_checks(kernels, gpu_cases(), device, torch_device=torch_device, seed=seed, geometry=geometry)


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
        context=max(case.keys()),
        kv_lora_rank=geometry.kv_lora_rank,
        qk_rope_head_dim=geometry.qk_rope_head_dim,
        dtype=case.dtype,
        cache_dtype=case.cache_dtype,
    )


def draw_case(case: Case, geometry: Geometry, seed: int, torch_device: str | torch.device) -> Draw:
    """Random tensors of a case; NaN wherever a cache row belongs to no request.

    Drawn on the CPU, so that a seed means the same data on every machine.
    """
    random = torch.Generator().manual_seed(seed)
    width = geometry.kv_lora_rank + geometry.qk_rope_head_dim
    keys = case.keys()
    owned = [-(-length // PAGE) for length in keys]
    most = max(1, *owned) + 1  # an entry more than any request has: a table is as wide as the engine allows
    spare = len(keys) + 3
    order = torch.randperm(sum(owned) + spare, generator=random)
    table = order[-1:].repeat(len(keys), most)  # an entry that is not used names a page of NaN
    cache_scale = FP8_SCALE if case.cache_dtype == "fp8" else 1.0
    cache = torch.full((len(order), PAGE, width), float("nan"))
    taken = 0
    for request, (length, pages) in enumerate(zip(keys, owned, strict=True)):
        table[request, :pages] = order[taken : taken + pages]
        taken += pages
        rows = torch.full((pages * PAGE, width), float("nan"))
        rows[:length] = torch.randn(length, width, generator=random) / cache_scale
        cache[table[request, :pages]] = rows.view(pages, PAGE, width)
    q = torch.randn(len(keys), case.queries, case.heads, width, generator=random)
    return Draw(
        q=q.to(DTYPES[case.dtype]).to(torch_device),
        cache=cache.to(DTYPES[case.cache_dtype]).to(torch_device),
        block_table=table.int().to(torch_device),
        lengths=torch.tensor(keys, dtype=torch.int32).to(torch_device),
        scale=(geometry.qk_nope_head_dim + geometry.qk_rope_head_dim) ** -0.5,
        cache_scale=cache_scale,
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
            max_length=max(case.keys()),
            kernel=kernel,
            splits=case.splits,
            kv_lora_rank=expected.shape[-1],
            out=out,
        )
        found = relative_error(out, expected)  # waits for the device: a fault of the kernel shows here
        error = None if found != found else found
        message = _failure(out, error, tolerance)
    except Exception as fault:  # whatever a compiler or a driver raises is a kernel that failed
        message = f"{type(fault).__name__}: {next(iter(str(fault).splitlines()), '')}"
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
