"""Finding a GPU: a preset by name, a YAML file, or the one in this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..data import kept, preset_files, read_mapping, read_preset
from ..errors import InputError
from ..schema import build
from .gpu import GPU


@kept
def load_gpu(name: str | Path) -> GPU:
    """The GPU that ``name`` means: a preset's name or alias, a YAML file's path, or ``auto``.

    Raises:
        InputError: nothing of that name, or a file that cannot be read or is not understood.
    """
    text = str(name)
    if text.strip().lower() == "auto":
        return detected_gpu()
    where, mapping = read_preset("gpus", name)
    return build(GPU, mapping, where)


def shipped_gpus() -> list[GPU]:
    """Every GPU preset of this installation, by file name."""
    return [build(GPU, read_mapping(path), f"presets/gpus/{path.name}") for path in preset_files("gpus")]


def gpu_of_device(device_name: str) -> GPU:
    """The preset of a device by the exact name that the runtime reports.

    Names are never matched by prefix: ``NVIDIA H20`` begins ``NVIDIA H200``, which is another GPU.

    Raises:
        InputError: no preset lists that name.
    """
    for path in preset_files("gpus"):
        mapping = read_mapping(path)
        if device_name in (mapping.get("device_names") or ()):
            return build(GPU, mapping, f"presets/gpus/{path.name}")
    raise InputError(f"--gpu auto: no preset is for a device named {device_name!r}", "give --gpu a name or a YAML file")


def detected_gpu() -> GPU:
    """The preset of this machine's GPU, by the name that nvidia-smi reports.

    Raises:
        InputError: no NVIDIA driver, no GPU, GPUs of several kinds, or one that no preset is for.
    """
    names = _device_names()
    if len(names) > 1:
        raise InputError(f"--gpu auto: this machine has several kinds of GPU ({', '.join(sorted(names))})")
    return gpu_of_device(names.pop())


def _device_names() -> set[str]:
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except FileNotFoundError:
        raise InputError("--gpu auto: no NVIDIA driver is installed here (nvidia-smi is missing)") from None
    except (subprocess.SubprocessError, OSError):
        raise InputError("--gpu auto: nvidia-smi does not answer; name the GPU instead") from None
    names = {line.strip() for line in found.stdout.splitlines() if line.strip()}
    if not names:
        raise InputError("--gpu auto: nvidia-smi lists no GPU")
    return names
