"""The calibrating half of ``validate``: constants go into a preset only from a run that holds."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..report import format as fmt

if TYPE_CHECKING:
    from ..validate.record import Run
    from ..validate.recorded import Recording


def check_preset(path: Path) -> None:
    """Refuse what is no GPU preset in a file of its own. Raises InputError."""
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no regular file" if path.exists() else "no such file"
        raise InputError(
            f"--calibrate {path}: {what}; a GPU preset in YAML is expected",
            "a copy of one of ours does: `mla-calc presets list --kind gpu` shows them",
        )
    from ..hardware.load import load_gpu

    load_gpu(path)


def calibrated(recording: Recording, run: Run, path: Path) -> tuple[Recording, bool]:
    """The recording compared by the preset at ``path``, and whether constants of ``run`` were written into it.

    They are not where a time is below its bound or a kernel is wrong or unchecked: stderr says so, and the preset
    stays as it was. An estimate that is off is no such fault: the new constants are what it is judged by.

    Raises:
        InputError: a run that was stopped or forced, one of another GPU, or one of too few rows.
    """
    from ..hardware.load import load_gpu
    from ..validate import calibrate, preset_file
    from ..validate.compare import compare
    from ..validate.verdict import faults_of_run

    if run.finished is None:
        raise InputError(f"--calibrate {path}: the run of {recording.source} was stopped before its end")
    if recording.forced:
        raise InputError(f"--calibrate {path}: {recording.source} is compared by force, with another GPU than its own")
    gpu = load_gpu(path)
    found = calibrate.calibrate(run, gpu, seed=run.seed)
    recording = _on(recording, path)
    faults = faults_of_run(compare(recording, lambda _: None))
    if faults:
        sys.stderr.write(f"mla-calc: {path} is left as it was: {'; '.join(faults)}\n")
        return recording, False
    lesser = preset_file.write_calibration(path, found.calibrations, found.crossovers, found.boundaries)
    notes = [
        f"Written into {path}: {fmt.counted(sum(len(kept.at) for kept in found.crossovers), 'measured crossover')} "
        f"and {fmt.counted(len(found.calibrations), 'calibration')}, fitted to "
        f"{len(found.used):,} rows; {len(found.held_out):,} were held out."
    ]
    notes += lesser
    notes += [f"Not calibrated: {item.case}: {item.reason}." for item in found.skipped]
    recording = _on(recording, path)
    return replace(recording, notes=(*recording.notes, *notes)), True


def _on(recording: Recording, path: Path) -> Recording:
    """The recording on the GPU of the preset at ``path``, as it is now."""
    from ..hardware.load import load_gpu

    gpu = load_gpu(path)
    return replace(recording, rows=tuple(replace(item, gpu=gpu) for item in recording.rows))
