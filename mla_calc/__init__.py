"""Cost calculator for Multi-head Latent Attention.

The library surface: load a model, a GPU and a cache layout, and ask the cost engine::

    from mla_calc import cache_cost, load_layout, load_model

    cache_cost(load_model("dsv3"), load_layout("bf16"), tp=8).cluster_bytes_per_token  # 562176

Every name below is typed and documented where it is defined; a wrong input raises :class:`InputError`.
Names are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .costs.cache import cache_cost as cache_cost
    from .costs.capacity import Memory as Memory
    from .costs.capacity import Plan as Plan
    from .costs.crossover import flop_crossover as flop_crossover
    from .costs.crossover import time_crossover as time_crossover
    from .costs.flops import flops_cost as flops_cost
    from .costs.intensity import intensity_cost as intensity_cost
    from .costs.layouts import latent_row_bytes as latent_row_bytes
    from .costs.layouts import load_layout as load_layout
    from .costs.parity import parity as parity
    from .costs.paths import Work as Work
    from .costs.placement import Placement as Placement
    from .costs.search import Step as Step
    from .costs.search import capacity_cost as capacity_cost
    from .costs.trace import trace_cost as trace_cost
    from .costs.workspace import workspace_cost as workspace_cost
    from .engines.batch import Row as Row
    from .engines.load import load_engine as load_engine
    from .engines.rules import Situation as Situation
    from .engines.rules import backend_of as backend_of
    from .engines.rules import rules_of as rules_of
    from .errors import InputError as InputError
    from .hardware.gpu import GPU as GPU
    from .hardware.load import load_gpu as load_gpu
    from .hardware.roofline import datasheet_ceilings as datasheet_ceilings
    from .models.attention import GQA as GQA
    from .models.attention import MLA as MLA
    from .models.attention import Model as Model
    from .models.load import load_model as load_model


_HOMES = {
    "costs.cache": ("cache_cost",),
    "costs.capacity": ("Memory", "Plan"),
    "costs.crossover": ("flop_crossover", "time_crossover"),
    "costs.flops": ("flops_cost",),
    "costs.intensity": ("intensity_cost",),
    "costs.layouts": ("latent_row_bytes", "load_layout"),
    "costs.parity": ("parity",),
    "costs.paths": ("Work",),
    "costs.placement": ("Placement",),
    "costs.search": ("Step", "capacity_cost"),
    "costs.trace": ("trace_cost",),
    "costs.workspace": ("workspace_cost",),
    "engines.batch": ("Row",),
    "engines.load": ("load_engine",),
    "engines.rules": ("Situation", "backend_of", "rules_of"),
    "errors": ("InputError",),
    "hardware.gpu": ("GPU",),
    "hardware.load": ("load_gpu",),
    "hardware.roofline": ("datasheet_ceilings",),
    "models.attention": ("GQA", "MLA", "Model"),
    "models.load": ("load_model",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]  # noqa: PLE0604  (names are strings, the checker cannot tell)


def __getattr__(name: str) -> Any:
    """The public name, from the module that defines it."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
