"""Absorbed MLA decode kernels over a paged latent cache, behind one function of tensors.

>>> from mla_calc.validate.kernels import absorbed_decode
"""

from ...hardware.schedule import Schedule
from .decode import KERNELS, DecodeKernel, absorbed_decode, device_of, interpreted, pick
from .shape import PAGE, Device, Shape

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
