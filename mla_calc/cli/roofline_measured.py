"""Measured kernels for the roofline: the attention rows of a ``validate`` run or of anybody's CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..costs.layouts import Layout
from ..costs.roofline import Point, Roof, Step, measured_roof, point
from ..errors import InputError
from ..hardware.gpu import GPU
from ..hardware.roofline import datasheet_ceilings
from ..models.attention import Model
from ..report import format as fmt

if TYPE_CHECKING:
    from ..validate.recorded import Recorded, Recording
    from .roofline_asked import Asked

MIXED = "A measured ridge has one ceiling of the run and one of the preset."


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """What a recording adds to a roofline."""

    points: tuple[Point, ...] = ()
    roofs: tuple[Roof, ...] = ()
    """Ceilings that the run measured itself."""
    replaced: tuple[str, ...] = ()
    """The GPUs whose preset's measured ceilings give way to the run's: one dashed line is of one source."""
    notes: tuple[str, ...] = ()


def overlay_of(path: Path, model_name: str, asked: Asked) -> Overlay:
    """The attention rows of the recording at ``path`` that this roofline has a place for.

    Rows have a place where their cache is the one asked for, their products are of one of the dtypes asked for, and
    the attention is dense.

    Raises:
        InputError: a file that is not understood, rows of a GPU that was not asked for, of another attention
            than the model's, or none with a place.
    """
    model, layout, cards, dtypes = asked.model, asked.layout, asked.cards, asked.dtypes
    recording = _read(path, model_name, layout, cards, dtypes)
    own = {card.name: card for card in cards}
    mine, left_out = [], Counter[str]()
    for item in recording.rows:
        if item.gpu.name not in own:
            raise InputError(
                f"--measured: {item.where} was recorded on {item.gpu.name}, which is not among --gpu",
                f"--gpu takes several: {','.join((*own, item.gpu.name))}",
            )
        why = _why_left_out(item, model, layout, dtypes, asked.indexer is not None)
        if why is None:
            mine.append(item)
        else:
            left_out[why] += 1
    if not mine:
        reasons = "; ".join(f"{fmt.counted(count, 'row')} {why}" for why, count in left_out.items())
        raise InputError(f"--measured {path}: no row has a place here: {reasons}")
    l2_bytes = recording.run.machine.l2_bytes if recording.run else None
    roofs = _roofs(recording, dtypes)
    both = {bool(roof.dtype) for roof in roofs} == {True, False}
    return Overlay(
        replaced=tuple({roof.gpu: None for roof in roofs}) if both else (),
        points=tuple(_point(item, own[item.gpu.name], l2_bytes) for item in mine),
        roofs=roofs,
        notes=(
            f"Measured: {fmt.counted(len(mine), 'row')} of {_source(recording)}, attention kernels timed alone.",
            *([f"Measured roofs are of run {recording.run.id} alone."] if recording.run and both else []),
            *([MIXED] if roofs and not both else []),
            *(f"Left out: {fmt.counted(count, 'measured row')} {why}." for why, count in left_out.items()),
            *(note for note in recording.notes if "is not used" not in note),
        ),
    )


def _read(
    path: Path, model_name: str, layout: Layout, cards: Sequence[GPU], dtypes: Sequence[str]
) -> Recording:  # fmt: skip
    """The recording. A CSV's products are of the first dtype: that is the roof its points are drawn under."""
    from ..data import read_text
    from ..validate.recorded import Fill, read_recording
    from ..validate.recorded_names import FORCE
    from ..validate.store import MAX_RECORDING_BYTES

    fill = Fill(gpu=cards[0].name if len(cards) == 1 else None, model=model_name)
    try:
        is_run = (
            path.suffix.lower() == ".json" or read_text(path, MAX_RECORDING_BYTES, "a recording").lstrip()[:1] == "{"
        )
        return read_recording(path, fill if is_run else replace(fill, dtype=layout.name, mma_dtype=dtypes[0]))
    except InputError as error:
        hint = "a measurement has a place under its own GPU's roof alone" if error.hint == FORCE else error.hint
        raise InputError(f"--measured: {error}", hint) from None


def _why_left_out(
    item: Recorded, model: Model, layout: Layout, dtypes: Sequence[str], sparse: bool
) -> str | None:  # fmt: skip
    """Why a row has no place under these roofs, or ``None`` where it has one."""
    row = item.row
    if row.scope != "attention":
        return "of whole paths, which have no one place on a roofline"
    if sparse:
        return "of dense attention (without --sparse they are drawn)"
    if item.model.mla != model.mla:
        return f"of another model than {model.name}"
    if row.cache != layout.name:
        return f"over {row.cache} rows (--dtype {row.cache} draws them)"
    if row.dtype not in dtypes:  # though its peak may be the same: the caption says of which dtypes all is
        return f"of {row.dtype} products (--mma-dtype {','.join((*dtypes, row.dtype))} draws them)"
    return None


def _point(item: Recorded, gpu: GPU, l2_bytes: int | None) -> Point:
    from ..validate.compare import kernels_of

    row, heads = item.row, item.model.attention.heads
    (kernel,) = kernels_of(item)
    return point(
        kernel,
        Step(
            tp=None if heads % row.heads else heads // row.heads,
            heads=row.heads,
            batch=row.batch,
            queries=row.queries,
            context=row.context,
        ),
        gpu,
        datasheet_ceilings(gpu, row.dtype),
        "measured",
        path="absorbed",
        dtype=row.dtype,
        seconds=row.time_us / 1e6,
        implementation=row.kernel,
        l2_bytes=l2_bytes,
    )


def _roofs(recording: Recording, dtypes: Sequence[str]) -> tuple[Roof, ...]:
    """The ceilings that the run measured beside its rows, if any."""
    run, ceilings = recording.run, recording.ceilings
    if run is None or ceilings is None:
        return ()
    gpu, source, date = recording.rows[0].gpu.name, f"run {run.id}", run.started[:10]
    rates = [(dtype, ceilings.gemm_flop_per_s.get(dtype)) for dtype in dtypes]
    found = [(dtype, rate) for dtype, rate in [*rates, (None, ceilings.highest_bytes_per_s)] if rate]
    return tuple(measured_roof(gpu, dtype, round(rate), source, date) for dtype, rate in found)


def _source(recording: Recording) -> str:
    return f"run {recording.run.id}" if recording.run else Path(recording.source).name
