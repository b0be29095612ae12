"""What nvidia-smi says of the GPUs here. It is only asked: nothing is set, and no process is ended."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .record import Telemetry

Smi = Callable[[Sequence[str]], str | None]
"""Arguments of nvidia-smi -> what it prints; ``None`` where it is missing or does not answer."""

OTHERS_MIB = 1024
"""Memory in use, before this run takes any, above which the GPU counts as shared: a display takes less."""
OTHERS_PERCENT = 10
"""Utilisation, likewise."""
LOOKS, LOOK_S = 4, 0.7
"""How often, and how far apart, a busy GPU is looked at: the driver's figure trails the work by a second."""
_SMI_TIMEOUT_S = 20


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
        if not any(busy(seen) for seen in found.values()):
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


def busy(seen: Census) -> bool:
    """Whether others use it."""
    return seen.others > 0 or (seen.memory_mib or 0) > OTHERS_MIB or (seen.percent or 0) > OTHERS_PERCENT


def _query(smi: Smi, *arguments: str) -> list[list[str]]:
    """The rows of one nvidia-smi query; none where it does not answer."""
    text = smi([*arguments, "--format=csv,noheader,nounits"]) or ""
    return [[part.strip() for part in line.split(",")] for line in text.splitlines() if line.strip()]


def driver_versions(smi: Smi) -> list[str]:
    """The driver's version, once a GPU; empty: no driver, or no GPU that it lists."""
    return [row[0] for row in _query(smi, "--query-gpu=driver_version") if row[0]]


def _number(text: str) -> float | None:
    """A value of nvidia-smi; ``None`` for ``[N/A]``, ``[Not Supported]`` and their like."""
    try:
        return float(text)
    except ValueError:
        return None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
