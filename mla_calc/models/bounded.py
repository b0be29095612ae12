"""Layers whose cache does not grow with the context: sliding windows and linear attention."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ..schema import MAX_DIMENSION
from .attention import GQA, Recurrent, Windowed
from .layers import Layers
from .scopes import Scope

STATE = ("linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim")
"""Qwen3-Next's keys for the shape of a linear-attention state."""


def read_windowed(scope: Scope, gqa: GQA | None, layers: Layers) -> Windowed | None:
    """The sliding-window layers, whose dimensions ``swa_*`` may set apart from the others'."""
    window = _window(scope, layers)
    if window is None:
        return None
    if gqa is None:
        raise scope.missing("sliding_window", "sliding-window layers under MLA are not modelled")
    width, value_width = _window_widths(scope, gqa)
    return Windowed(
        layers=layers.windowed,
        window=window,
        kv_heads=_window_heads(scope, gqa),
        qk_head_dim=width,
        v_head_dim=value_width,
    )


def _window_heads(scope: Scope, gqa: GQA) -> int:
    """The KV heads of the windowed layers."""
    kv_heads = scope.optional("swa_num_key_value_heads") or gqa.kv_heads
    if (scope.optional("swa_num_attention_heads") or gqa.heads) % kv_heads:
        raise scope.error("swa_num_key_value_heads does not divide the heads of the sliding-window layers")
    return kv_heads


def _window_widths(scope: Scope, gqa: GQA) -> tuple[int, int]:
    """The widths of the windowed layers' keys and values; one alone says nothing of the other."""
    width, value_width = scope.optional("swa_head_dim"), scope.optional("swa_v_head_dim")
    if (width is None) != (value_width is None) and gqa.qk_head_dim != gqa.v_head_dim:
        raise scope.error("swa_head_dim and swa_v_head_dim are needed together where keys and values differ")
    return width or gqa.qk_head_dim, value_width or width or gqa.v_head_dim


def _window(scope: Scope, layers: Layers) -> int | None:
    """The window of the windowed layers, or ``None`` where no layer has one."""
    window = scope.optional("sliding_window")
    on = scope.flag("use_sliding_window")
    if layers.windowed:
        assert layers.map is not None
        if on is False:
            raise scope.wrong("use_sliding_window", f"{layers.map.key} has {layers.windowed} windowed layers")
        if window is None:
            raise scope.missing("sliding_window", f"{layers.map.key} has {layers.windowed} windowed layers")
        return window
    if window is not None and on is not False and layers.map is None:
        raise scope.missing("sliding_window", "no key says which layers it bounds (layer_types would)")
    return None


def read_recurrent(scope: Scope, layers: Layers) -> Recurrent | None:
    """The recurrent layers, with the size of their state where the config gives its shape."""
    if not layers.recurrent:
        return None
    shape = _state_shape(scope)
    state = prod(shape) if shape else None
    if state is not None and state > MAX_DIMENSION:
        raise scope.error(f"the linear-attention layers' state of {state:,} values is more than {MAX_DIMENSION:,}")
    return Recurrent(layers=layers.recurrent, state_values=state)


def _state_shape(scope: Scope) -> list[int] | None:
    """The shape of a layer's state (heads, key width, value width), or ``None`` where it is not given."""
    config = scope.given("linear_attn_config")
    if isinstance(config, Mapping) and {"num_heads", "head_dim"} <= set(config):
        heads, width = (scope.whole(f"linear_attn_config.{name}", config[name]) for name in ("num_heads", "head_dim"))
        return [heads, width, width]
    shape = [scope.optional(name) for name in STATE]
    return None if None in shape else [part for part in shape if part is not None]
