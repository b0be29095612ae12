"""Absorbed MLA decode kernels over a paged latent cache, behind one function of tensors.

>>> from mla_calc.validate.kernels import absorbed_decode

Shapes and schedules need neither torch nor Triton; whatever else is taken from here imports both, at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...hardware.schedule import Schedule
from .shape import PAGE, Device, Shape

if TYPE_CHECKING:
    from .decode import KERNELS, DecodeKernel, absorbed_decode, device_of, interpreted, pick

__all__ = [
    "KERNELS",
    "PAGE",
    "DecodeKernel",
    "Device",
    "Schedule",
    "Shape",
    "absorbed_decode",
    "device_of",
    "interpreted",
    "pick",
]


def __getattr__(name: str) -> Any:
    """The names of :mod:`.decode`, which imports torch and Triton (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".decode", __name__), name)
