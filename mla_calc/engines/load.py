"""Finding an engine preset: ``vllm`` is the newest release that was read, ``vllm@0.29`` a given one."""

from __future__ import annotations

from ..data import kept, read_preset
from ..schema import build
from .preset import Engine


@kept
def load_engine(name: str) -> Engine:
    """The engine release that ``name`` means, a name, alias or YAML path. Raises InputError for no such one."""
    where, mapping = read_preset("engines", name)
    return build(Engine, mapping, where)
