"""What one measuring run leaves behind: the GPU as it was, its measured ceilings, and a row per timed cell.

Plain data, without torch: a run is written where the GPU is and read anywhere. Times are microseconds here, as
the field quotes kernels; every prediction beside them is in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Gt
from pydantic import Strict

from ..schema import STRICT, Dimension, Large, Text

SCHEMA: Literal["mla-calc/validate-run/1"] = "mla-calc/validate-run/1"

EVERY_CELL = "every cell"
"""The case of a :class:`Skipped` that stands for all cells of its kernel: none of them was timed."""
CTRL_C = "Ctrl-C"
"""What :attr:`Run.stopped` says of a run that its user stopped."""
NAIVE_TOLERANCE = 1e-2
"""Most that the attention of a naive row may be off (``Row.relative_error``): its keys and values are rounded."""

Scope = Literal["attention", "absorbed", "naive"]
"""What a row timed: the attention kernel alone, or one of the cost model's two paths from end to end."""
Micros = Annotated[float, Strict(), Gt(0)]
Real = Annotated[float, Strict()]
"""A number: no text of one, and neither true nor false."""
Rate = Annotated[float, Strict(), Gt(0)]
Whole = Annotated[int, Strict()]
Truth = Annotated[bool, Strict()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One timed cell. ``heads`` are per rank; ``context`` counts the new tokens; queries are causal."""

    __pydantic_config__ = STRICT

    kernel: Text
    """What ran: ``hopper``, ``small``, ``tile64`` for our own; any name in a file of someone else."""
    scope: Scope = "attention"
    dtype: Text
    """Dtype of the products' operands: bf16, fp16."""
    cache: Text
    """Cache layout, by the name that ``--dtype`` takes: bf16, fp16 rows are ``bf16`` wide; fp8."""
    heads: Dimension
    batch: Dimension
    queries: Dimension
    context: Dimension
    time_us: Micros
    """Median over the repeats."""
    p10_us: Micros | None = None
    p90_us: Micros | None = None
    repeats: Dimension | None = None
    splits: Dimension | None = None
    """Pieces that the context of a request was cut into, where the kernel says."""
    picked: Truth | None = None
    """Whether the kernel is the one that the choice between ours takes; ``None`` where there is no such choice."""
    order: Annotated[int, Strict(), Ge(0)] | None = None
    """Position in the shuffled order of measurement; that of the pass whose time is kept."""
    parts_us: Mapping[Text, Micros] = field(default_factory=dict)
    """A path's kernels timed alone, by the cost model's names (``q_fold``, ``attention``, ``v_up``;
    ``up_proj``, ``assemble``, ``attention``). They need not add up to the whole."""
    detail: Text | None = None
    """Which implementation was the fastest, where several were tried (torch's attention backends)."""
    relative_error: Real | None = None
    """Of the implementation that ran, against float64, where it was compared in the cell itself: naive rows, at most
    :data:`NAIVE_TOLERANCE`. Our own kernels are checked before any timing (:attr:`Run.checks`)."""
    dropped: Mapping[Text, Text] = field(default_factory=dict)
    """Implementations that were tried in the cell and dropped, and why."""
    uncaptured: Text | None = None
    """Why the call, or one of its parts, was timed without a CUDA graph: launches are in its times. Such a row is
    shown; no fit, no estimate's error and no crossover is made from it. ``None``: all were captured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """What nvidia-smi says at one moment."""

    __pydantic_config__ = STRICT

    sm_mhz: Whole | None = None
    memory_mhz: Whole | None = None
    power_w: Real | None = None
    temperature_c: Whole | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The GPU and the software that a run was made with."""

    __pydantic_config__ = STRICT

    gpu: Text
    """The GPU preset's name."""
    device_name: Text
    """What the runtime calls the device."""
    compute_capability: Text
    sms: Dimension
    memory_bytes: Large
    l2_bytes: Large | None = None
    driver: Text
    cuda: Text
    torch: Text
    triton: Text
    python: Text
    forced: Truth = False
    """``--force``: the device is not the GPU that the run was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCeilings:
    """Ceilings measured in the same run, in the cost model's units."""

    __pydantic_config__ = STRICT

    copy_bytes_per_s: Rate | None = None
    """Device-to-device copy, counting bytes read and bytes written."""
    read_bytes_per_s: Rate | None = None
    gemm_flop_per_s: Mapping[Text, Rate] = field(default_factory=dict)
    """Best matrix product by dtype, over the shapes in ``gemm_shapes``."""
    gemm_shapes: Mapping[Text, tuple[Dimension, Dimension, Dimension]] = field(default_factory=dict)
    """The (m, n, k) that was the best, by dtype."""
    sustained_gemm_flop_per_s: Mapping[Text, Rate] = field(default_factory=dict)
    """The best product after seconds of nothing else, at the end of the run: at the clocks that power leaves it."""
    launch_s: Rate | None = None
    """An empty kernel in a replayed graph."""

    @property
    def highest_bytes_per_s(self) -> float:
        """The higher of both bandwidths; 0 where neither was measured."""
        return max(self.read_bytes_per_s or 0.0, self.copy_bytes_per_s or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One comparison with float64, made before any timing; also one that could not be made, which is not correct."""

    __pydantic_config__ = STRICT

    kernel: Text
    case: Text
    """What was drawn: ``bf16 h=16 Q=2 ragged``."""
    relative_error: Real | None
    """Frobenius, against float64; ``None`` where the output held NaN or the kernel failed."""
    tolerance: Real
    correct: Truth
    message: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A cell or a kernel that was not timed, and why."""

    __pydantic_config__ = STRICT

    kernel: Text
    case: Text
    reason: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """The model's attention shape that was measured."""

    __pydantic_config__ = STRICT

    model: Text
    kv_lora_rank: Dimension
    qk_rope_head_dim: Annotated[int, Strict(), Ge(0)]
    qk_nope_head_dim: Dimension
    v_head_dim: Dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of ``validate``: everything that the comparison needs, and nothing that can be recomputed."""

    __pydantic_config__ = STRICT

    schema: Literal["mla-calc/validate-run/1"] = SCHEMA
    id: Text
    """UTC start and GPU: ``20261130T013000Z-h200``."""
    started: Text
    finished: Text | None = None
    """``None``: the run was stopped, or is a checkpoint, and holds what was measured until then."""
    stopped: Text | None = None
    """What stopped it: :data:`CTRL_C`, or the last words of a device that failed; ``None``: nothing did."""
    version: Text
    """This tool's version."""
    plan: Text
    """``quick`` or ``full``."""
    seed: Whole
    machine: Machine
    geometry: Geometry
    ceilings: MeasuredCeilings
    before: Telemetry
    after: Telemetry | None = None
    checks: tuple[Check, ...] = ()
    rows: tuple[Row, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[Text, ...] = ()
