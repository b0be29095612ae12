"""What a path is estimated to take: the sum over its kernels' calibrations (docs/cost-model.md, section 5).

A path's implementation runs the cost model's kernels, and moves more besides: the naive one gathers cached rows and
assembles keys. Whatever was measured of an implementation is in its estimate, so a naive estimate holds steps that
the naive bound leaves out. Everything is per rank and per layer, like the bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..arrays import stored_bytes
from ..hardware.calibration import Cell, Estimate, PathName, Unknown, calibrations_of, estimate_kernel
from ..hardware.gpu import GPU
from ..models.attention import MLA
from .paths import PATHS, Kernel, Work
from .sharding import heads_per_rank

COPIES = frozenset({"gather", "assemble"})
"""What an implementation runs besides the cost model's kernels of its path."""
IN_PLACE = "naive_in_place"
"""The naive implementation whose up-projection writes keys where they belong: only rotary columns are copied."""


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

    def part(self, name: str) -> Estimate | None:
        """The estimate of one part."""
        return next((estimate for part, estimate in self.parts if part == name), None)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The runs that the constants come from, each once."""
        found = (Source(item.calibration.run, item.calibration.date.isoformat()) for _, item in self.parts)
        return tuple(dict.fromkeys(found))


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


def implementations(gpu: GPU, path: str, dtype: str, cache: str) -> tuple[str, ...]:
    """Implementations of a path whose attention is calibrated on ``gpu``, in the preset's order."""
    found = calibrations_of(gpu, path, "attention", dtype, cache)
    return tuple(dict.fromkeys(item.kernel for item in found if item.kernel is not None))


def estimate_path(
    gpu: GPU, path: PathName, mla: MLA, work: Work, *, dtype: str, cache: str, kernel: str | None = None
) -> PathEstimate | Unknown:
    """The estimate of one path: of ``kernel``, or of the fastest implementation that is calibrated for this step.

    Args:
        gpu: the GPU whose calibrations are used.
        path: ``absorbed`` or ``naive``.
        mla: the attention's widths.
        work: the step; scalars alone.
        dtype: of the products' operands.
        cache: name of the cache layout.
        kernel: the implementation, if one is meant.
    """
    refused = _not_measured(work)
    if refused:
        return Unknown(refused)
    names = (kernel,) if kernel else implementations(gpu, path, dtype, cache)
    shared: dict[str, Estimate] = {}
    found = [_implementation(gpu, path, mla, work, dtype, cache, name, shared) for name in names]
    estimates = [item for item in found if isinstance(item, PathEstimate)]
    if estimates:
        return min(estimates, key=lambda item: item.seconds)
    for item in found:
        if isinstance(item, Unknown):
            return item
    return Unknown(f"{gpu.name} has no calibration of the {path} path in {dtype}, cache {cache}")


def _not_measured(work: Work) -> str | None:
    """What no run measures: pairs that are not causal, weights and activations of another width."""
    if not work.causal and work.queries > 1:
        return "rectangular blocks of queries are not measured, causal ones are"
    if work.weight_bytes != 2 or work.activation_bytes != 2:
        return "weights and activations of 2 bytes are measured"
    return None


def _implementation(
    gpu: GPU, path: str, mla: MLA, work: Work, dtype: str, cache: str, name: str, shared: dict[str, Estimate]
) -> PathEstimate | Unknown:
    """The sum over one implementation's parts; ``shared`` keeps those that are the same in all of them."""
    cell, parts = cell_of(mla, work), []
    for kernel in implementation_kernels(path, mla, work, name):
        if kernel.name in COPIES and not _any(calibrations_of(gpu, path, kernel.name, dtype, cache, name)):
            continue
        found = shared.get(kernel.name) or estimate_kernel(
            gpu, path, kernel.name, dtype, cache, name, cell, kernel.flop, kernel.bytes
        )
        if isinstance(found, Unknown):
            return found
        if all(item.kernel is None for item in calibrations_of(gpu, path, kernel.name, dtype, cache)):
            shared[kernel.name] = found
        parts.append((kernel.name, found))
    return PathEstimate(kernel=name, seconds=sum(item.seconds for _, item in parts), parts=tuple(parts))


def _any(items: Iterable[object]) -> bool:
    return next(iter(items), None) is not None
