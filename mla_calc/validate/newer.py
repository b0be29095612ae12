"""What a GPU preset holds once a newer run was calibrated into it: which older records go, and what is lost by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from ..hardware.calibration import Boundary, Calibration, Fit
from ..hardware.crossovers import Crossovers
from ..hardware.gpu import GPU

MOST_NAMED = 6
"""Kernels or paths that a note names."""

Kept = TypeVar("Kept", Boundary, Crossovers)


def merged(
    before: GPU,
    calibrations: Sequence[Calibration],
    crossovers: Sequence[Crossovers],
    boundaries: Sequence[Boundary],
) -> GPU:
    """The preset ``before`` with the records of a newer run."""
    return replace(
        before,
        calibration=_newer_constants(before.calibration, calibrations),
        boundaries=_newer(_of_old_parts(before.boundaries, calibrations), boundaries),
        crossovers=_newer(before.crossovers, crossovers),
    )


def narrower(before: GPU, after: GPU) -> tuple[str, ...]:
    """Notes on what ``after`` holds less of."""
    fits = [text for item in before.calibration if (text := _less_of(item, after.calibration))]
    fits += [text for path in before.boundaries if (text := _less_of_path(path, after.boundaries))]
    notes = []
    if fits:
        further = f"; {len(fits) - MOST_NAMED} further ones" if len(fits) > MOST_NAMED else ""
        notes.append(f"Older fits were replaced by lesser ones: {'; '.join(fits[:MOST_NAMED])}{further}.")
    for old in before.crossovers:
        new = next(item for item in after.crossovers if item.key == old.key)
        lost = {_place(at) for at in old.at} - {_place(at) for at in new.at}
        if lost:
            notes.append(
                f"Measured crossovers in {old.dtype}, cache {old.cache}: {len(old.at):,} were replaced by "
                f"{len(new.at):,}; of {len(lost):,} places there is none now."
            )
    return tuple(notes)


def _newer_constants(known: Sequence[Calibration], found: Sequence[Calibration]) -> tuple[Calibration, ...]:
    """Newer ones where the older stood, or behind; kernels that were timed by themselves first, as in a run."""
    left = [(place, item) for place, item in enumerate(known) if not any(_replaces(new, item) for new in found)]
    put = [(next((place for place, old in enumerate(known) if _replaces(new, old)), len(known)), new) for new in found]
    in_order = [item for _, item in sorted((*left, *put), key=lambda placed: placed[0])]
    return tuple(sorted(in_order, key=_rank))


def _rank(item: Calibration) -> int:
    """The first that measured a step answers: of an unknown scope is what was written before scopes were."""
    if item.tiling and item.scope is None:
        return 2
    return 0 if item.scope == "attention" else 1


def _replaces(new: Calibration, old: Calibration) -> bool:
    if new.key != old.key:
        return False
    return new.scope == old.scope or (old.scope is None and new.domain.covers(old.domain))


def _of_old_parts(known: Sequence[Boundary], found: Sequence[Calibration]) -> list[Boundary]:
    """Boundaries of paths none of whose own parts, timed in the path, is calibrated anew."""
    in_paths = (item for item in found if item.scope != "attention")
    measured = {(item.path, item.kernel, item.dtype, item.cache, *item.widths[:2]) for item in in_paths}
    widths = ((item, (str(item.kv_lora_rank), str(item.qk_rope_head_dim))) for item in known)
    return [item for item, own in widths if (item.path, item.kernel, item.dtype, item.cache, *own) not in measured]


def _newer(known: Sequence[Kept], found: Sequence[Kept]) -> tuple[Kept, ...]:
    keys = {item.key for item in found}
    kept = [item for item in known if item.key not in keys]
    return tuple(kept + list(found))


def _less_of(old: Calibration, after: Sequence[Calibration]) -> str | None:
    """What is lost of ``old``; ``None`` where it is still there, or a fit as wide of as many rows is."""
    if old in after:
        return None
    replacing = [item for item in after if _replaces(item, old)]
    new = max(replacing, key=lambda item: (item.domain.covers(old.domain), item.fit.rows))
    smaller = "" if new.domain.covers(old.domain) else ", of fewer cells"
    if new.fit.rows >= old.fit.rows and not smaller:
        return None
    name = " ".join(text for text in (old.path, old.part, old.kernel, old.dtype, old.cache) if text)
    return f"{name}: one of {_rows(old.fit)} by one of {_rows(new.fit)}{smaller}"


def _less_of_path(old: Boundary, after: Sequence[Boundary]) -> str | None:
    new = next((item for item in after if item.key == old.key), None)
    name = f"boundary of the {old.path} path, {old.kernel} {old.dtype} {old.cache}"
    if new is None:
        return f"{name}: one of {_rows(old.fit)} by none"
    return f"{name}: one of {_rows(old.fit)} by one of {_rows(new.fit)}" if new.fit.rows < old.fit.rows else None


def _rows(fit: Fit) -> str:
    return f"{fit.rows:,} rows"


def _place(at: object) -> tuple[object, ...]:
    return tuple(getattr(at, axis) for axis in ("naive", "heads", "batch", "context"))
