"""The calls that kernels are checked on, and their random tensors.

All that a kernel must not use holds NaN: the rows past a length, the pages that no request owns; entries of the block
table past a request name such a page or, in cases of their own, none at all. The lengths are ragged and stand at and
beside page edges, and the pages of a request are scattered over the cache. The sizes are those that are timed, up to
65,536 keys, 128 requests, 1,024 queries and a cache of more values than 32 bits count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .kernels.shape import PAGE
from .record import Geometry

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp8": torch.float8_e4m3fn}
FP8_SCALE = 0.037
"""What stored fp8 rows stand for is this times their value: no power of two, so that a lost factor shows."""
RAGGED = (1, PAGE - 1, PAGE, PAGE + 1, 700, 2 * PAGE)
RAGGED_4 = (4, *RAGGED[1:])
"""The same with room for 4 queries."""
LONG = 2500
"""Keys of a request that is worth cutting into many pieces."""
MANY = tuple(97 * request % 3001 for request in range(128))
"""128 lengths without order, from 0 to 3,000."""
NO_PAGES = (-1, 1_000_000)
"""What a block table may hold where a request has no page."""
FAR_VALUES = 1 << 31
"""Values of a cache from which on the place of one does not fit in 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call to check."""

    name: str
    heads: int
    queries: int = 1
    lengths: tuple[int, ...] = RAGGED
    dtype: str = "bf16"
    cache_dtype: str = "bf16"
    splits: int | None = None
    no_pages: bool = False
    """Whether entries of the block table past a request hold :data:`NO_PAGES`, not the number of a page of NaN."""
    far: bool = False
    """Whether the pages lie behind :data:`FAR_VALUES` others of NaN."""
    large: bool = False
    """Drawn where the kernel runs: millions of values. Other cases are drawn on the CPU, the same everywhere."""

    @property
    def label(self) -> str:
        """As the record names it."""
        cache = f" {self.cache_dtype} cache" if self.cache_dtype != self.dtype else ""
        splits = "" if self.splits is None else f" splits={self.splits}"
        return f"{self.dtype}{cache} h={self.heads} Q={self.queries}{splits} {self.name}"


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
    """The cases of a run."""
    return (*shape_cases(), *size_cases())


def shape_cases() -> tuple[Case, ...]:
    """All shapes in bf16, and what else depends on the dtype in fp16 and over an fp8 cache; small."""
    return (
        Case(name="ragged", heads=16),
        Case(name="ragged", heads=16, splits=1),
        Case(name="ragged", heads=128, queries=2, lengths=RAGGED_4),
        Case(name="ragged", heads=128, splits=1),
        Case(name="ragged", heads=12, queries=4, lengths=RAGGED_4),
        Case(name="over tiles", heads=16, queries=70, lengths=(70, 129, 700)),
        Case(name="long", heads=16, queries=2, lengths=(LONG, 3), splits=16),
        Case(name="long", heads=64, lengths=(LONG, 65), splits=8),
        Case(name="empty request", heads=16, lengths=(0, 65, 0)),
        Case(name="fewer keys than queries", heads=16, queries=4, lengths=(1, 3, 66, 0)),
        Case(name="fewer keys than queries", heads=16, queries=70, lengths=(1, 65, 200), splits=3),
        Case(name="fewer keys than queries", heads=128, queries=9, lengths=(8, 1, 130)),
        Case(name="entries that are no page", heads=16, queries=2, lengths=(65, 0, 700, 2), no_pages=True),
        Case(name="entries that are no page", heads=128, lengths=(65, 1, 700), splits=5, no_pages=True),
        Case(name="ragged", heads=16, queries=2, lengths=RAGGED_4, dtype="fp16", cache_dtype="fp16"),
        Case(name="ragged", heads=128, dtype="fp16", cache_dtype="fp16"),
        Case(name="ragged", heads=16, queries=2, lengths=RAGGED_4, cache_dtype="fp8"),
        Case(name="ragged", heads=128, cache_dtype="fp8", splits=4),
        Case(name="entries that are no page", heads=16, lengths=(65, 1, 700), cache_dtype="fp8", no_pages=True),
    )


def size_cases() -> tuple[Case, ...]:
    """As large as what is timed, cut as the schedule cuts it unless the name says otherwise."""
    return (
        Case(name="64k keys", heads=16, lengths=(65_536, 3), large=True),
        Case(name="64k keys", heads=128, queries=2, lengths=(65_531, 640), large=True),
        Case(name="64k keys", heads=16, lengths=(65_536, 3), cache_dtype="fp8", large=True),
        Case(name="many splits", heads=16, lengths=(8_192, 70), splits=128, large=True),
        Case(name="128 requests", heads=16, lengths=MANY, large=True),
        Case(name="128 requests", heads=128, lengths=MANY, large=True),
        Case(name="many queries, few keys", heads=16, queries=1_000, lengths=(70, 1_030, 1), large=True),
        Case(name="many queries", heads=128, queries=1_024, lengths=(1_030,), large=True),
        Case(name="behind 2^31 values", heads=16, queries=2, lengths=(700, 65), far=True, large=True),
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
            Case(
                name="fewer keys than queries", heads=4, queries=18, lengths=(1, 17, 70), dtype=dtype, cache_dtype=dtype
            ),
            Case(
                name="entries that are no page",
                heads=4,
                lengths=(130, 0, 5),
                dtype=dtype,
                cache_dtype=dtype,
                splits=2,
                no_pages=True,
            ),
        )
    )
    return (*small, Case(name="ragged", heads=4, queries=2, lengths=(65, 2), dtype="fp16", cache_dtype="fp8"))


def draw_case(case: Case, geometry: Geometry, seed: int, torch_device: str | torch.device) -> Draw:
    """Random tensors of a case; NaN wherever a cache row belongs to no request."""
    drawn_on = torch.device(torch_device) if case.large else torch.device("cpu")
    random = torch.Generator(device=drawn_on).manual_seed(seed)
    width = geometry.kv_lora_rank + geometry.qk_rope_head_dim
    owned = [-(-length // PAGE) for length in case.lengths]
    order = torch.randperm(sum(owned) + len(owned) + 3, generator=random, device=drawn_on)
    table = _table(case, owned, order)
    cache_scale = FP8_SCALE if case.cache_dtype == "fp8" else 1.0
    before = -(-FAR_VALUES // (PAGE * width)) if case.far else 0
    # filled with NaN in its own dtype: a far one would be twice as large in float32
    cache = torch.empty(before + len(order), PAGE, width, dtype=DTYPES[case.cache_dtype], device=torch_device)
    cache.fill_(float("nan"))
    for request, (length, pages) in enumerate(zip(case.lengths, owned, strict=True)):
        rows = torch.full((pages * PAGE, width), float("nan"), device=drawn_on)
        rows[:length] = torch.randn(length, width, generator=random, device=drawn_on) / cache_scale
        at = table[request, :pages].to(torch_device) + before
        _as_bytes(cache)[at] = _as_bytes(rows.view(pages, PAGE, width).to(cache.dtype).to(torch_device))
    if case.far:
        table += before
    q = torch.randn(len(owned), case.queries, case.heads, width, generator=random, device=drawn_on)
    return Draw(
        q=q.to(DTYPES[case.dtype]).to(torch_device),
        cache=cache,
        block_table=table.int().to(torch_device),
        lengths=torch.tensor(case.lengths, dtype=torch.int32).to(torch_device),
        scale=(geometry.qk_nope_head_dim + geometry.qk_rope_head_dim) ** -0.5,
        cache_scale=cache_scale,
    )


def _table(case: Case, owned: Sequence[int], order: torch.Tensor) -> torch.Tensor:
    """The block table, [requests, pages]: an entry more than any request has, since engines allow for the longest."""
    most = max(1, *owned) + 1
    # an entry that is not used names the last page of the order, which holds NaN
    unused = torch.tensor(NO_PAGES, device=order.device) if case.no_pages else order[-1:]
    table = unused.repeat(len(owned), -(-most // len(unused)))[:, :most].clone()
    taken = 0
    for request, pages in enumerate(owned):
        table[request, :pages] = order[taken : taken + pages]
        taken += pages
    return table


def _as_bytes(values: torch.Tensor) -> torch.Tensor:
    """fp8 values as bytes: not every device indexes them."""
    return values.view(torch.uint8) if values.element_size() == 1 else values
