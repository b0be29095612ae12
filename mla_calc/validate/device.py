"""The GPU that a run measures: found, judged, and refused in one line where it cannot be measured.

torch and triton are imported by name, through a function that a test replaces, and nvidia-smi is asked through
another: so every refusal is tested without a GPU. Nothing here changes the GPU: no clocks, no power, no MIG,
and no process is ended.
"""

from __future__ import annotations

import importlib
import os
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, shown
from ..hardware.gpu import GPU
from .faults import told
from .kernels.shape import Device
from .nvidia_smi import LOOKS, Census, Smi, ask_smi, busy, census, driver_versions, telemetry
from .record import Machine, Telemetry

Find = Callable[[str], Any]
"""A module by its name; raises ImportError, as ``importlib.import_module`` does."""

MEASURING = "mla_calc.validate.bench"
"""What imports everything that a run measures with: the kernels, and all that they take from torch and Triton."""
LEAST_CAPABILITY = (8, 0)


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
            is another one than ``gpu`` and ``force`` is not set; the kernels do not load with this torch and Triton.
    """
    torch, triton = _module(find, "torch"), _module(find, "triton")
    _check_build(torch)
    drivers = driver_versions(smi)
    _check_visible(torch, drivers)
    mine = bool(torch.cuda.is_initialized())
    before = census(smi, sleep, looks=1 if mine else LOOKS)  # before torch opens the GPU and is itself seen there
    properties, free_bytes = _properties(torch)
    _check_capability(properties)
    uuid = _uuid(properties)
    seen = before.get(uuid)
    _check_whole(properties.name, seen)
    if seen is not None and not mine:
        _check_alone(properties.name, seen)
    mismatch = _mismatch(gpu, properties)
    if mismatch and not force:
        raise InputError(mismatch, "--force measures it all the same and labels the report; --gpu auto asks the GPU")
    _check_measuring(find, torch, triton)
    driver = seen.driver if seen else next(iter(drivers), "unknown")
    return Opened(
        machine=_machine(gpu, properties, torch, triton, driver=driver, forced=mismatch is not None),
        device=_device(properties),
        free_bytes=free_bytes,
        index=torch.cuda.current_device(),
        uuid=uuid if seen else None,
        smi=smi,
        notes=_notes(gpu, seen, mismatch, mine),
    )


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


def _check_capability(properties: Any) -> None:
    capability = (properties.major, properties.minor)
    if capability < LEAST_CAPABILITY:
        raise InputError(
            f"{properties.name} has compute capability {_dotted(capability)}; the kernels need 8.0 (Ampere) or newer"
        )


def _check_measuring(find: Find, torch: Any, triton: Any) -> None:
    """Refuse a torch or a Triton that lacks a name, or an argument, that the kernels are written with."""
    try:
        find(MEASURING)
    except Exception as fault:  # a missing name, an unknown option of a decorator: what fails depends on the version
        raise InputError(
            f"the kernels do not load with Triton {shown(str(triton.__version__))} and "
            f"torch {shown(str(torch.__version__))}: {told(fault, 160)}",
            "they are written for Triton 3.6 to 3.9 and torch 2.11 to 2.13",
        ) from None


def _machine(gpu: GPU, properties: Any, torch: Any, triton: Any, *, driver: str, forced: bool) -> Machine:
    return Machine(
        gpu=gpu.name,
        device_name=properties.name,
        compute_capability=_dotted((properties.major, properties.minor)),
        sms=properties.multi_processor_count,
        memory_bytes=properties.total_memory,
        l2_bytes=getattr(properties, "L2_cache_size", None) or None,
        driver=driver,
        cuda=str(torch.version.cuda),
        torch=str(torch.__version__),
        triton=str(triton.__version__),
        python=platform.python_version(),
        forced=forced,
    )


def _device(properties: Any) -> Device:
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
    if not busy(seen):
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
