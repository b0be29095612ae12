"""The Markdown report of one validate run and its figures, from the same records that the JSON holds.

Tables are GitHub's and padded, so that they also read as text. What a figure shows is in report.md or run.json.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import InputError
from ..hardware.gpu import GPU
from ..hardware.load import load_gpu
from ..report import format as fmt
from ..report.write import replacing, write_utf8
from .compare import Comparison
from .crossover_map import crossover_figure, duels
from .decode_map import efficiency_figure, fractions
from .engine_lines import EngineLines, engine_lines
from .figures import cache_label, save
from .page_tables import sections
from .prediction_figure import predicted_figure
from .record import Run
from .roofline_figure import attention_cells, roofline_figure

REPORT = "report.md"


@dataclass(frozen=True, slots=True)
class Picture:
    """One figure in the report: its files' stem, the section that shows it, and what it shows in words."""

    name: str
    section: str
    text: str


def write_page(
    run: Run,
    comparison: Comparison,
    folder: Path,
    *,
    gpu: GPU | None = None,
    record_name: str = "run.json",
    command: str | None = None,
    forced: bool = False,
    notes: Sequence[str] = (),
) -> Path:
    """Write report.md, and its figures as SVG and PNG, into ``folder``, which is made if it is missing.

    Args:
        run: the run.
        comparison: ``run`` compared; its rows are in the run's order.
        folder: files of the same names in it are replaced.
        gpu: what the run was compared with; ``None``: the preset that the run names.
        record_name: the run's JSON beside the report, as the report calls it.
        command: the command line that made the run; ``None``: written from the run.
        forced: whether ``gpu`` is another GPU than the run's: title, tables, figures and commands then say so.
        notes: what is to be said of the comparison, before the run's own notes.

    Returns:
        The report's path.

    Raises:
        InputError: a folder that cannot be made or written, or a GPU that no preset is for.
    """
    sheet = gpu or load_gpu(run.machine.gpu)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--report {folder}: the folder cannot be made: {error.strerror}") from None
    engines = engine_lines({row.heads for row in run.rows}, sheet)
    command, replay = command or _measuring(run, record_name), None
    run = replace(run, notes=tuple(dict.fromkeys((*notes, *run.notes))))
    if forced:
        if sheet.name != run.machine.gpu:
            replay = f'{_comparing(record_name)} --gpu "{sheet.name}" --force'
        run = replace(run, machine=replace(run.machine, gpu=sheet.name, forced=True))
    with _quiet():
        pictures = draw(run, comparison, folder, sheet, engines)
    text = page_text(run, comparison, sheet, engines, pictures, record_name=record_name, command=command, replay=replay)
    path = folder / REPORT
    with replacing(path, "--report") as temporary:
        write_utf8(temporary, text)
    return path


@contextmanager
def _quiet() -> Iterator[None]:
    """Without matplotlib's warnings, such as that no cache of its own can be written: figures are whole without it."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def draw(run: Run, comparison: Comparison, folder: Path, gpu: GPU, engines: EngineLines) -> list[Picture]:
    """Draw every figure that the run has rows for, and say which."""
    cells = comparison.rows
    found = []
    if cells:
        save(predicted_figure(run, cells, "bound"), folder, "measured-against-bound")
        found.append(
            Picture("measured-against-bound", "kernels", "Measured time over the datasheet bound, and their ratio.")
        )
    if any(cell.estimate_s is not None for cell in cells):
        save(predicted_figure(run, cells, "estimate"), folder, "measured-against-estimate")
        text = "Measured time over the estimate, and their ratio."
        found.append(Picture("measured-against-estimate", "estimate", text))
    if attention_cells(cells):
        save(roofline_figure(run, gpu, cells), folder, "roofline")
        text = "Attention kernels under the roofline: TFLOP/s over FLOP/byte, and what each moved."
        found.append(Picture("roofline", "kernels", text))
    if fractions(cells)[0]:
        save(efficiency_figure(run, cells), folder, "decode-efficiency")
        text = "Decode with one query: fraction of the floor over batch and context, per head count."
        found.append(Picture("decode-efficiency", "cells", text))
    return [*found, *_crossover_pictures(run, comparison, folder, engines)]


def _crossover_pictures(run: Run, comparison: Comparison, folder: Path, engines: EngineLines) -> Iterable[Picture]:
    """One map for each naive path, batch, dtype and cache that both paths were timed at."""
    maps = sorted({(item.dtype, item.cache, item.naive, item.batch) for item in comparison.crossover})
    kinds = len({(dtype, cache) for dtype, cache, _, _ in maps}) > 1
    batches = len({batch for *_, batch in maps}) > 1
    for dtype, cache, naive, batch in maps:
        mine = [crossing for crossing in comparison.crossover if (crossing.dtype, crossing.cache) == (dtype, cache)]
        part = replace(run, rows=tuple(row for row in run.rows if (row.dtype, row.cache) == (dtype, cache)))
        if not duels(part.rows, naive, batch):
            continue
        name = f"crossover-{naive.replace('_', '-')}" + (f"-b{batch}" if batches else "")
        name += f"-{dtype}-{cache}" if kinds else ""
        save(crossover_figure(part, mine, naive, batch, engines.labels), folder, name)
        text = f"Which path was faster over queries and context: {naive}, batch {batch}"
        yield Picture(name, "crossover", text + (f", {dtype}, cache {cache_label(cache)}." if kinds else "."))


def page_text(
    run: Run,
    comparison: Comparison,
    gpu: GPU,
    engines: EngineLines,
    pictures: Sequence[Picture],
    *,
    record_name: str,
    command: str | None,
    replay: str | None = None,
) -> str:
    """The report as Markdown; ``pictures`` lie beside it, ``command`` measures and ``replay`` compares."""
    forced = f", FORCED against {run.machine.gpu}" if run.machine.forced else ""
    parts = [f"# MLA decode on {run.machine.device_name}{forced}: measured against predicted", _opening(run)]
    for key, title, blocks in sections(run, comparison, gpu, engines):
        parts += [f"## {title}", *blocks]
        parts += [f"![{picture.text}]({picture.name}.svg)" for picture in pictures if picture.section == key]
    parts += ["## How to reproduce", *_reproduce(run, record_name, command, replay)]
    return "\n\n".join(parts) + "\n"


def _opening(run: Run) -> str:
    geometry = run.geometry
    text = (
        f"Run `{run.id}` of mla-calc {run.version}, plan `{run.plan}`, seed {run.seed}. Model {geometry.model}: latent "
        f"{geometry.kv_lora_rank} + rope {geometry.qk_rope_head_dim}, heads {geometry.qk_nope_head_dim} + "
        f"{geometry.qk_rope_head_dim} / {geometry.v_head_dim}, dense attention, causal. Times are medians of replayed "
        "CUDA graphs with a cold L2 cache; heads are per rank, counts are per rank and per layer. Every figure is also "
        "there as PNG, under the same name."
    )
    if run.machine.forced:
        text += (
            f"\n\n**FORCED**: measured on {run.machine.device_name} and compared with the ceilings of "
            f"{run.machine.gpu}, which was asked for. Bounds and shares of them are not those of the GPU measured."
        )
    if run.finished is None:
        by = f" ({run.stopped})" if run.stopped else ""
        text += f"\n\n**Stopped before its end**{by}: the run holds what was measured until then."
    uncaptured = sum(row.uncaptured is not None for row in run.rows)
    if uncaptured:
        text += (
            f"\n\n**Without a CUDA graph**: {fmt.counted(uncaptured, 'cell')}, with launches in the times. They are "
            "shown against their bounds; no error of an estimate and no crossover is of them."
        )
    return text


def _measuring(run: Run, record_name: str) -> str:
    """The command line that makes such a run."""
    quick = " --quick" if run.plan == "quick" else ""
    force = " --force" if run.machine.forced else ""
    names = f'--gpu "{run.machine.gpu}" --model "{run.geometry.model}"'
    return f"mla-calc validate {names}{quick}{force} --seed {run.seed} --record {record_name} --report ."


def _comparing(record_name: str) -> str:
    return f"mla-calc validate --replay {record_name}"


def _reproduce(run: Run, record_name: str, command: str | None, replay: str | None) -> list[str]:
    return [
        "On the same kind of GPU, with the packages of the table above:",
        f"```console\n$ {command or _measuring(run, record_name)}\n```",
        "The comparison alone, anywhere:",
        f"```console\n$ {replay or _comparing(record_name)}\n```",
    ]
