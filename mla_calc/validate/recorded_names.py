"""What the names in a recording mean: presets, and whether its GPU is the one that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..costs.layouts import Layout, load_layout
from ..data import looks_like_path
from ..errors import InputError, shown
from ..hardware.gpu import GPU
from ..hardware.load import gpu_of_device, load_gpu
from ..models.attention import Model
from ..models.load import load_model
from .record import Machine
from .recorded_csv import FILLED_BY, Line

_Preset = TypeVar("_Preset")
FORCE = "--force compares them all the same, and the report says so"


@dataclass(frozen=True, slots=True)
class Presets:
    """Presets by the names that rows have, each read once. Errors begin with the place of the row."""

    known: dict[tuple[str, str], Any] = field(default_factory=dict)

    def gpu(self, name: str, where: str = "") -> GPU:
        """The GPU that ``name`` means: a preset, a device's name, or a path."""
        return self._found("gpu", name, where, _gpu_named)

    def model(self, name: str, where: str = "") -> Model:
        """The model that ``name`` means."""
        return self._found("model", name, where, load_model)

    def layout(self, name: str, where: str = "") -> Layout:
        """The cache layout that ``name`` means."""
        return self._found("dtype", name, where, load_layout)

    def cell(self, line: Line, column: str, option: str | None) -> str:
        """The name in a cell, or that of the option; a file's cell names a preset, an option may be a path."""
        name = line.values.get(column) or option
        if name is None:
            raise InputError(f"{line.where}: {column} is empty", f"{FILLED_BY[column]} fills it")
        if line.values.get(column) and (looks_like_path(name) or (name.lower() == "auto" and column == "gpu")):
            raise InputError(f"{line.where}: {column} is {shown(name)}: the name of a preset is expected")
        return name

    def _found(self, kind: str, name: str, where: str, load: Callable[[str], _Preset]) -> _Preset:
        found: _Preset | None = self.known.get((kind, name))
        if found is None:
            try:
                found = self.known[kind, name] = load(name)
            except InputError as error:
                raise InputError(f"{where}: {error}" if where else str(error), error.hint) from None
        return found


def _gpu_named(name: str) -> GPU:
    """A GPU by its preset's name or alias, or by the exact name that the runtime has for the device."""
    try:
        return load_gpu(name)
    except InputError:
        if looks_like_path(name) or name.strip().lower() == "auto":
            raise
        try:
            return gpu_of_device(name.strip())
        except InputError:
            pass
        raise


def gpu_of_run(
    machine: Machine, source: str, asked: GPU | None, presets: Presets, *, force: bool
) -> tuple[GPU, str | None]:
    """The GPU that a run is compared with, and the note that it is forced, if it is.

    Args:
        machine: the run's.
        source: the run's file.
        asked: the GPU of ``--gpu``; ``None``: the one that the run names.
        presets: where the run's name is looked up.
        force: whether another GPU is accepted.

    Raises:
        InputError: a GPU that no preset is for, and without ``force`` a device that is not the GPU.
    """
    device = machine.device_name
    if asked is None:
        try:
            gpu = presets.gpu(machine.gpu, source)
        except InputError as error:
            raise InputError(str(error), "--gpu names its preset or YAML file") from None
    else:
        gpu = asked
    listed = device in gpu.device_names
    named = asked is None or machine.gpu.lower() in _names(gpu)
    if machine.forced and listed:
        return gpu, f"FORCED: the run says so, asked for {machine.gpu}; {device} is a device of {gpu.name}."
    if machine.forced and named:
        return gpu, f"FORCED: the run was made on {device}, which is not {gpu.name}."
    if listed or (named and not gpu.device_names):
        return gpu, None
    if not force:
        if asked is None:
            raise InputError(f"{source}: names {gpu.name} and was recorded on {device}, which is another GPU", FORCE)
        raise InputError(f"--gpu {gpu.name}: {source} was recorded on {device}, which is another GPU", FORCE)
    return gpu, forced_note([device], gpu)


def forced_note(devices: list[str], gpu: GPU) -> str:
    """That rows of other devices are compared with ``gpu``."""
    return f"FORCED: rows measured on {', '.join(devices)} are compared with the ceilings of {gpu.name}."


@dataclass(frozen=True, slots=True)
class GpuOfLines:
    """The GPU of each line of a CSV.

    Where every line names one, ``--gpu`` says which it must be; else it fills the lines that name none.
    """

    presets: Presets
    asked: GPU | None
    option: str | None
    fills: bool
    """Whether some line names no GPU."""
    force: bool
    others: dict[str, None] = field(default_factory=dict)
    """GPUs that lines name and are, being forced, not compared with."""

    def of(self, line: Line) -> GPU:
        """The GPU that ``line`` is compared with. Raises InputError for another GPU than the one asked for."""
        name = self.presets.cell(line, "gpu", self.option)
        if self.asked is not None and (not line.values.get("gpu") or name.lower() in _names(self.asked)):
            return self.asked
        found = self.presets.gpu(name, line.where)
        if self.asked is None or self.fills:
            return found
        if found.name == self.asked.name:
            return self.asked
        if not self.force:
            raise InputError(
                f"--gpu {self.asked.name}: {line.where} was recorded on {found.name}, which is another GPU", FORCE
            )
        self.others[found.name] = None
        return self.asked


def _names(gpu: GPU) -> set[str]:
    return {name.lower() for name in (gpu.name, *gpu.aliases, *gpu.device_names)}
