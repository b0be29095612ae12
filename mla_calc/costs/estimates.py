"""What a path is estimated to take: the sum over its kernels' calibrations (docs/cost-model.md, section 5).

A path's implementation runs the cost model's kernels, and moves more besides: the naive one gathers cached rows and
assembles keys. Whatever was measured of an implementation is in its estimate, so a naive estimate holds steps that
the naive bound leaves out; and what the whole took beyond its parts, timed alone, is in it too. Which implementation
answers where none is named: the attention kernel that is taken for such a step, and the naive path as engines run it.
Everything is per rank and per layer, like the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arrays import maximum, stored_bytes
from ..hardware.calibration import Boundary, Calibration, Cell, PathName
from ..hardware.choice import TILE_ROWS, preference
from ..hardware.gpu import GPU
from ..hardware.latency import Estimate, Unknown, calibrations_of, estimate, first_estimate
from ..models.attention import MLA
from .paths import PATHS, Kernel, Work
from .sharding import heads_per_rank

if TYPE_CHECKING:
    from ..arrays import Floats

COPIES = frozenset({"gather", "assemble"})
"""What an implementation runs besides the cost model's kernels of its path."""
IN_PLACE = "naive_in_place"
"""The naive implementation whose up-projection writes keys where they belong: only rotary columns are copied. No
engine runs it, so that it answers by name alone."""
BOUNDARY = "boundary"
"""The part of an estimate that is what the whole took beyond the other parts."""
PARTS = {
    "absorbed": ("q_fold", "attention", "v_up"),
    "naive": ("gather", "up_proj", "assemble", "attention"),
}
"""Every kernel that :func:`implementation_kernels` gives."""


@dataclass(frozen=True, slots=True)
class Source:
    """A run that constants come from."""

    run: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathEstimate:
    """An estimated latency of one path, s, per rank and layer."""

    kernel: str
    """The implementation: the absorbed path's attention kernel, or the naive path's name."""
    seconds: float
    parts: tuple[tuple[str, Estimate], ...]
    """By the cost model's names, in the order in which they run."""
    boundary_s: float = 0.0
    """What the whole takes beyond its parts, mostly less than 0; 0 where that was not measured."""
    boundary: Boundary | None = None

    def part(self, name: str) -> Estimate | None:
        """The estimate of one part."""
        return next((estimate for part, estimate in self.parts if part == name), None)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The runs that the constants come from, each once."""
        items = [item.calibration for _, item in self.parts] + ([self.boundary] if self.boundary else [])
        return tuple(dict.fromkeys(source_of(item) for item in items))


def source_of(item: Calibration | Boundary) -> Source:
    """The run that these constants come from."""
    return Source(item.run, item.date.isoformat())


def cell_of(mla: MLA, work: Work) -> Cell:
    """One layer's step as a calibration's domain is asked about it."""
    return Cell(
        kv_lora_rank=mla.kv_lora_rank,
        qk_rope_head_dim=mla.qk_rope_head_dim,
        qk_nope_head_dim=mla.qk_nope_head_dim,
        v_head_dim=mla.v_head_dim,
        heads=heads_per_rank(mla, work.tp),
        batch=work.batch,
        queries=work.queries,
        context=work.context,
    )


def implementation_kernels(path: str, mla: MLA, work: Work, kernel: str | None) -> tuple[Kernel, ...]:
    """The kernels of one implementation of a path, in the order in which they run: the path's own, and copies.

    Of the naive one: cached rows gathered into a buffer, keys assembled from the up-projected part and the rotary
    part that all heads share. The implementation that writes in place copies the rotary columns alone.

    These copies are whole kernels, as they are timed: what each reads and writes, of all keys of the step, so that
    a fit finds the share of the bandwidth that it reaches. What an engine's copies add to a *bound* is counted
    elsewhere (``as_run_kernels`` in engines/pricing.py) and is another figure: on top of the path's own kernels,
    which there read the cached rows and write keys once already, for prefixes alone, with the merge of chunks.
    """
    own = PATHS[path](mla, work)
    if path != "naive":
        return own
    keys, heads = work.batch * work.context, heads_per_rank(mla, work.tp)
    nope = 0 if kernel == IN_PLACE else mla.qk_nope_head_dim
    rope = mla.qk_rope_head_dim
    gathered = stored_bytes(keys * mla.row_values, work.activation_bytes)
    assembled = stored_bytes(keys * (2 * heads * nope + (heads + 1) * rope), work.activation_bytes)
    gather = Kernel("gather", flop=0, cache_bytes=keys * work.row_bytes, weight_bytes=0, activation_bytes=gathered)
    assemble = Kernel("assemble", flop=0, cache_bytes=0, weight_bytes=0, activation_bytes=assembled)
    up_proj, attention = own
    return gather, up_proj, assemble, attention


def implementations(gpu: GPU, path: str, mla: MLA, *, dtype: str, cache: str) -> tuple[str, ...]:
    """Implementations of a path whose attention is calibrated on ``gpu`` with these widths, in the preset's order."""
    found = calibrations_of(gpu, path, "attention", dtype, cache)
    cell = cell_of(mla, Work(queries=1, context=1, row_bytes=1))
    return tuple(dict.fromkeys(item.kernel for item in found if item.kernel and item.measured_widths_of(cell)))


@dataclass(frozen=True, slots=True)
class Implementation:
    """One implementation of a path and its constants."""

    name: str
    parts: dict[str, tuple[Calibration, ...]]
    """Calibrations by part, the first that measured a step answers; a copy that no run measured is missing."""
    boundary: Boundary | None


class PathEstimator:
    """The estimates of one path of one attention on one GPU; its calibrations are looked up once.

    Args:
        gpu: the GPU whose calibrations are used.
        path: ``absorbed`` or ``naive``.
        mla: the attention's widths.
        dtype: of the products' operands.
        cache: name of the cache layout.
        kernel: the implementation; ``None``: of this tool's attention kernels the one that is taken for the step,
            or of others the fastest; the naive path as engines run it.
    """

    def __init__(
        self, gpu: GPU, path: PathName, mla: MLA, *, dtype: str, cache: str, kernel: str | None = None
    ) -> None:
        self.gpu, self.path, self.mla, self.dtype, self.cache = gpu, path, mla, dtype, cache
        self._capability_major = gpu.capability_major
        names: tuple[str, ...] = (kernel,) if kernel else ()
        if kernel is None:
            every = implementations(gpu, path, mla, dtype=dtype, cache=cache)
            ours = tuple(name for name in every if name in TILE_ROWS)
            names = ours if path == "absorbed" and ours else tuple(name for name in every if name != IN_PLACE)
        self.chooses = kernel is None and len(names) > 1 and names[0] in TILE_ROWS
        self.implementations = {name: self._implementation(name) for name in names}

    def _implementation(self, name: str) -> Implementation:
        cell = cell_of(self.mla, Work(queries=1, context=1, row_bytes=1))
        parts = {}
        for part in PARTS[self.path]:
            every = list(calibrations_of(self.gpu, self.path, part, self.dtype, self.cache, name))
            found = [item for item in every if item.measured_widths_of(cell)]
            if found or part not in COPIES:
                found = found or every  # others' limits are the reason why there is no estimate
                # an implementation's own constants come before those that all of them share
                parts[part] = tuple(sorted(found, key=lambda item: item.kernel is None))
        met = (self.path, name, self.dtype, self.cache)
        widths = (cell.kv_lora_rank, cell.qk_rope_head_dim, cell.qk_nope_head_dim, cell.v_head_dim)
        known = (item for item in self.gpu.boundaries if item.key == (*met, *map(str, widths)))
        return Implementation(name, parts, next(known, None))

    def taken(self, heads: int, batch: int, queries: int, context: int) -> str:
        """Of this tool's calibrated kernels, the one that is taken for such a step."""
        ordered = preference(
            rows=heads * queries,
            tokens=batch * context,
            fp8=self.cache == "fp8",
            capability_major=self._capability_major,
        )
        return next(name for name in ordered if name in self.implementations)

    def at(self, work: Work) -> PathEstimate | Unknown:
        """The estimate of one step; scalars alone."""
        refused = not_measured(work)
        if refused:
            return Unknown(refused)
        if not self.implementations:
            return Unknown(self.lacks())
        cell = cell_of(self.mla, work)
        if self.chooses:
            return self._sum(self.taken(cell.heads, cell.batch, cell.queries, cell.context), work, cell)
        found = [self._sum(name, work, cell) for name in self.implementations]
        estimates = [item for item in found if isinstance(item, PathEstimate)]
        return min(estimates, key=lambda item: item.seconds) if estimates else found[0]

    def lacks(self) -> str:
        """Why there is no estimate of any step."""
        return f"{self.gpu.name} has no calibration of the {self.path} path in {self.dtype}, cache {self.cache}"

    def _sum(self, name: str, work: Work, cell: Cell) -> PathEstimate | Unknown:
        chosen, parts = self.implementations[name], []
        for kernel in implementation_kernels(self.path, self.mla, work, name):
            if kernel.name not in chosen.parts:
                continue
            found = self._part(name, kernel, cell)
            if isinstance(found, Unknown):
                return found
            parts.append((kernel.name, found))
        total = sum(item.seconds for _, item in parts)
        beyond = boundary_s(chosen.boundary, sum(item.t0_s for _, item in parts))
        return PathEstimate(
            kernel=name, seconds=total + beyond, parts=tuple(parts), boundary_s=beyond, boundary=chosen.boundary
        )

    def _part(self, name: str, kernel: Kernel, cell: Cell) -> Estimate | Unknown:
        calibrations = self.implementations[name].parts[kernel.name]
        if not calibrations:
            where = f"{self.path} {kernel.name} in {self.dtype}, cache {self.cache}"
            return Unknown(f"{self.gpu.name} has no calibration of {name} {where}")
        for item in calibrations:
            found = estimate(item, cell, kernel.flop, kernel.bytes, self.gpu)
            if isinstance(found, Estimate):
                return found
        return first_estimate(calibrations, cell, kernel.flop, kernel.bytes, self.gpu)  # for the reason


def boundary_s(boundary: Boundary | None, t0_s: Floats) -> Floats:
    """What a boundary adds to a path, s: no more than the parts' t0 can be saved."""
    return maximum(boundary.us * 1e-6, -t0_s) if boundary else 0.0


def estimate_path(
    gpu: GPU, path: PathName, mla: MLA, work: Work, *, dtype: str, cache: str, kernel: str | None = None
) -> PathEstimate | Unknown:
    """The estimate of one step; :class:`PathEstimator` says what the arguments are. ``work`` has scalars alone."""
    return PathEstimator(gpu, path, mla, dtype=dtype, cache=cache, kernel=kernel).at(work)


def not_measured(work: Work) -> str | None:
    """What no run measures: pairs that are not causal, weights and activations of another width."""
    if not work.causal and work.queries > 1:
        return "rectangular blocks of queries are not measured, causal ones are"
    if work.weight_bytes != 2 or work.activation_bytes != 2:
        return "weights and activations of 2 bytes are measured"
    return None
