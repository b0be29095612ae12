"""The GPU that a run measures: found, judged, and refused in one line where it cannot be measured.

torch and triton are imported by name, through a function that a test replaces, and nvidia-smi is asked through
another: so every refusal is tested without a GPU. Nothing here changes the GPU: no clocks, no power, no MIG,
and no process is ended.
"""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError, shown
from ..hardware.gpu import GPU
from .record import Machine, Telemetry

if TYPE_CHECKING:
    from .kernels.shape import Device

Smi = Callable[[Sequence[str]], str | None]
"""Arguments of nvidia-smi -> what it prints; ``None`` where it is missing or does not answer."""
Find = Callable[[str], Any]
"""A module by its name; raises ImportError, as ``importlib.import_module`` does."""

LEAST_CAPABILITY = (8, 0)
OTHERS_MIB = 1024
"""Memory in use, before this run takes any, above which the GPU counts as shared: a display takes less."""
OTHERS_PERCENT = 10
"""Utilisation, likewise."""
LOOKS, LOOK_S = 4, 0.7
"""How often, and how far apart, a busy GPU is looked at: the driver's figure trails the work by a second."""
_SMI_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A GPU that may be measured."""

    machine: Machine
    device: Device
    free_bytes: int
    index: int
    """As torch counts: ``CUDA_VISIBLE_DEVICES`` renumbers."""
    uuid: str | None
    """As nvidia-smi names it, ``GPU-...``; ``None`` where nvidia-smi does not answer."""
    smi: Smi
    notes: tuple[str, ...] = ()

    def telemetry(self) -> Telemetry:
        """Clocks, power and temperature now."""
        return telemetry(self.smi, self.uuid)


@dataclass(frozen=True, slots=True)
class Census:
    """What nvidia-smi says of one GPU before this process touches it."""

    driver: str
    mig: str
    memory_mib: int | None
    percent: int | None
    others: int
    """Compute processes on it, this one not counted."""


def ask_smi(arguments: Sequence[str]) -> str | None:
    """What ``nvidia-smi`` prints for ``arguments``; ``None`` where it is missing, fails or takes over 20 s."""
    try:
        found = subprocess.run(
            ["nvidia-smi", *arguments], capture_output=True, text=True, timeout=_SMI_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout


def open_device(
    gpu: GPU,
    *,
    force: bool,
    smi: Smi = ask_smi,
    find: Find = importlib.import_module,
    sleep: Callable[[float], None] = time.sleep,
) -> Opened:
    """This machine's first GPU, as the GPU that ``gpu`` describes.

    A preset that lists device names is compared by them, whole; one that lists none (a file of your own) by its
    compute capability and its number of multiprocessors, as far as it gives them. ``force`` takes another GPU all
    the same and marks the machine ``forced``; it excuses nothing else.

    Raises:
        InputError: torch or triton is missing; torch is built without CUDA or for AMD; no GPU is visible; the
            driver is too old; the GPU is below compute capability 8.0, is a MIG slice, is in use by others, or
            is another one than ``gpu`` and ``force`` is not set.
    """
    torch, triton = _module(find, "torch"), _module(find, "triton")
    _check_build(torch)
    drivers = _drivers(smi)
    _check_visible(torch, drivers)
    mine = bool(torch.cuda.is_initialized())
    before = census(smi, sleep, looks=1 if mine else LOOKS)  # before torch opens the GPU and is itself seen there
    properties, free_bytes = _properties(torch)
    capability = (properties.major, properties.minor)
    if capability < LEAST_CAPABILITY:
        raise InputError(
            f"{properties.name} has compute capability {_dotted(capability)}; the kernels need 8.0 (Ampere) or newer"
        )
    uuid = _uuid(properties)
    seen = before.get(uuid)
    _check_whole(properties.name, seen)
    if seen is not None and not mine:
        _check_alone(properties.name, seen)
    mismatch = _mismatch(gpu, properties)
    if mismatch and not force:
        raise InputError(mismatch, "--force measures it all the same and labels the report; --gpu auto asks the GPU")
    machine = Machine(
        gpu=gpu.name,
        device_name=properties.name,
        compute_capability=_dotted(capability),
        sms=properties.multi_processor_count,
        memory_bytes=properties.total_memory,
        l2_bytes=getattr(properties, "L2_cache_size", None) or None,
        driver=seen.driver if seen else next(iter(drivers), "unknown"),
        cuda=str(torch.version.cuda),
        torch=str(torch.__version__),
        triton=str(triton.__version__),
        python=platform.python_version(),
        forced=mismatch is not None,
    )
    return Opened(
        machine=machine,
        device=_device(properties),
        free_bytes=free_bytes,
        index=torch.cuda.current_device(),
        uuid=uuid if seen else None,
        smi=smi,
        notes=_notes(gpu, seen, mismatch, mine),
    )


def telemetry(smi: Smi, uuid: str | None) -> Telemetry:
    """What nvidia-smi says of the GPU ``uuid`` now; a value that it does not give, or no answer, is ``None``."""
    if uuid is None:
        return Telemetry()
    rows = _query(smi, "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu", f"--id={uuid}")
    values = [_number(text) for text in rows[0]] if rows else []
    if len(values) != 4:
        return Telemetry()
    sm, memory, power, temperature = values
    return Telemetry(sm_mhz=_whole(sm), memory_mhz=_whole(memory), power_w=power, temperature_c=_whole(temperature))


def census(smi: Smi, sleep: Callable[[float], None] = time.sleep, looks: int = LOOKS) -> dict[str, Census]:
    """Every GPU of the machine by its uuid; empty where nvidia-smi does not answer.

    A GPU that looks busy is looked at a few times more: the utilisation of a process that has just ended lasts.
    """
    found = _look(smi)
    for _ in range(looks - 1):
        if not any(_busy(seen) for seen in found.values()):
            break
        sleep(LOOK_S)
        found = _look(smi)
    return found


def _look(smi: Smi) -> dict[str, Census]:
    fields = "uuid,driver_version,mig.mode.current,memory.used,utilization.gpu"
    processes = _query(smi, "--query-compute-apps=gpu_uuid,pid")
    mine = str(os.getpid())
    found = {}
    for row in _query(smi, f"--query-gpu={fields}"):
        if len(row) != 5:
            continue
        uuid, driver, mig, used, percent = row
        others = sum(1 for entry in processes if entry[0] == uuid and entry[1:] != [mine])
        found[uuid] = Census(driver, mig, _whole(_number(used)), _whole(_number(percent)), others)
    return found


def _busy(seen: Census) -> bool:
    return seen.others > 0 or (seen.memory_mib or 0) > OTHERS_MIB or (seen.percent or 0) > OTHERS_PERCENT


def _query(smi: Smi, *arguments: str) -> list[list[str]]:
    """The rows of one nvidia-smi query; none where it does not answer."""
    text = smi([*arguments, "--format=csv,noheader,nounits"]) or ""
    return [[part.strip() for part in line.split(",")] for line in text.splitlines() if line.strip()]


def _drivers(smi: Smi) -> list[str]:
    """The driver's version, once a GPU; empty: no driver, or no GPU that it lists."""
    return [row[0] for row in _query(smi, "--query-gpu=driver_version") if row[0]]


def _module(find: Find, name: str) -> Any:
    try:
        return find(name)
    except ImportError as error:
        hint = "pip install 'mla-calc[gpu]', or compare recorded rows with --replay FILE"
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise InputError(f"validate measures with {name}, which is not installed", hint) from None
        raise InputError(f"validate measures with {name}, which cannot be imported: {shown(str(error), 160)}") from None


def _check_build(torch: Any) -> None:
    version = shown(str(torch.__version__))
    if getattr(torch.version, "hip", None):
        raise InputError(f"torch {version} is built for AMD GPUs (ROCm); the kernels are for NVIDIA GPUs")
    if not torch.version.cuda:
        raise InputError(
            f"torch {version} is built without CUDA: it sees no GPU",
            "install a CUDA build of torch, or compare recorded rows with --replay FILE",
        )


def _check_visible(torch: Any, drivers: Sequence[str]) -> None:
    """Raises InputError where torch sees no GPU, with the reason as far as it can be told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a driver too old is a warning there; it becomes the error's text here
        if torch.cuda.is_available() and torch.cuda.device_count() > 0:
            return
        try:
            torch.cuda.init()
            reason = "torch finds none that it can use"
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    hint = "without a GPU, --replay FILE compares recorded rows"
    if not drivers:
        raise InputError("no NVIDIA GPU is visible here", hint)
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        raise InputError("no NVIDIA GPU is visible here: CUDA_VISIBLE_DEVICES hides every one", hint)
    if "too old" in reason or "insufficient" in reason:
        raise InputError(
            f"the NVIDIA driver {drivers[0]} is too old for torch {torch.__version__} (CUDA {torch.version.cuda})",
            "update the driver, or install a torch built for an older CUDA",
        )
    raise InputError(
        f"torch {torch.__version__} (CUDA {torch.version.cuda}) cannot use this GPU with driver {drivers[0]}: "
        f"{shown(reason, 160)}",
        "a driver that is older than torch's CUDA is the usual cause",
    )


def _properties(torch: Any) -> tuple[Any, int]:
    """The current device's properties and its free bytes."""
    try:
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        return properties, int(torch.cuda.mem_get_info()[0])
    except RuntimeError as error:
        reason = next(iter(str(error).splitlines()), "no reason given")
        raise InputError(f"the GPU cannot be opened: {shown(reason, 160)}") from None


def _device(properties: Any) -> Device:
    from .kernels.shape import Device  # not at the top: this module says it where torch is missing

    return Device(
        sms=properties.multi_processor_count,
        capability=(properties.major, properties.minor),
        shared_bytes=properties.shared_memory_per_block_optin,
    )


def _check_whole(name: str, seen: Census | None) -> None:
    """Refuse a slice of a GPU: it has not the ceilings of the whole one."""
    if " MIG " in f" {name} " or (seen is not None and seen.mig == "Enabled"):
        raise InputError(f"{shown(name)} is in MIG mode: a slice has not the ceilings of the whole GPU")


def _check_alone(name: str, seen: Census) -> None:
    """Refuse a GPU that others use: what they do is in every time."""
    if not _busy(seen):
        return
    used = [f"{seen.memory_mib:,} MiB used"] if seen.memory_mib is not None else []
    used += [f"{seen.percent} % busy"] if seen.percent is not None else []
    used += [f"{seen.others} other process{'es' if seen.others > 1 else ''}"] if seen.others else []
    raise InputError(
        f"{shown(name)} is in use by others ({', '.join(used)}): times taken beside them mean nothing",
        "wait until it is free, or choose another GPU with CUDA_VISIBLE_DEVICES",
    )


def _mismatch(gpu: GPU, properties: Any) -> str | None:
    """What tells this device from ``gpu``; ``None``: nothing does."""
    if gpu.device_names:
        if properties.name in gpu.device_names:
            return None
        return f"this machine's GPU is {shown(properties.name)}, not {gpu.name}"
    capability = _dotted((properties.major, properties.minor))
    if gpu.compute_capability not in (None, capability):
        return (
            f"this machine's GPU, {shown(properties.name)}, has compute capability {capability}; "
            f"{gpu.name} has {gpu.compute_capability}"
        )
    if gpu.sms not in (None, properties.multi_processor_count):
        return (
            f"this machine's GPU, {shown(properties.name)}, has {properties.multi_processor_count} multiprocessors; "
            f"{gpu.name} has {gpu.sms}"
        )
    return None


def _notes(gpu: GPU, seen: Census | None, mismatch: str | None, mine: bool) -> tuple[str, ...]:
    notes = []
    if mine:
        notes.append("This process had opened the GPU before: whether others use it was not looked at.")
    if mismatch:
        notes.append(f"--force: {mismatch}. The bounds are those of {gpu.name}.")
    elif not gpu.device_names:
        notes.append(f"{gpu.name} lists no device names: that this is that GPU is taken on trust.")
    if seen is None:
        notes.append(
            "nvidia-smi does not answer for this GPU: no clocks, power or temperature, and others on it unseen."
        )
    return tuple(notes)


def _uuid(properties: Any) -> str:
    text = str(getattr(properties, "uuid", ""))
    return text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}"


def _dotted(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


def _number(text: str) -> float | None:
    """A value of nvidia-smi; ``None`` for ``[N/A]``, ``[Not Supported]`` and their like."""
    try:
        return float(text)
    except ValueError:
        return None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
