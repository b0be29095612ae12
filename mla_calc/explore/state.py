"""What the explorer shows, as a value: every knob's setting, and the command lines that ask for the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InputError, nearest, shown
from ..shell import joined
from ..sizes import MAX_TOKENS, parse_count, parse_size

Options = Mapping[str, str | bool]
"""Options of a command by their Python names, each as it is typed; a switch is true or false."""

AXES = ("tp", "batch", "context", "queries")
"""As :data:`mla_calc.costs.ridge.AXES`: what ``over`` may be."""
MMA_DTYPES = ("bf16", "fp16", "fp8", "fp4", "int8", "tf32", "fp32")
"""As :data:`mla_calc.hardware.gpu.DTYPES`."""
WEIGHT_BYTES = ("0.5", "1", "2", "4")
"""As :data:`mla_calc.cli.request.WEIGHT_BYTES`."""
OWN = "auto"
"""How a knob shows and takes that nothing is asked for: each command has its own value."""
MOST_GPUS = 4096
"""As :data:`mla_calc.costs.placement.MAX_GPUS`, whose import would take longer than to draw the screen."""
MOST_CACHE = 1 << 50
"""As :data:`mla_calc.costs.capacity.MAX_CACHE_BYTES`."""
COUNTS = {"tp": MOST_GPUS, "dp": MOST_GPUS, "batch": 1 << 13, "context": MAX_TOKENS, "queries": MAX_TOKENS}
"""The knobs that are whole numbers, and the most that each takes."""
TYPED = "0123456789,kKmM"
"""The characters of a number as :func:`count_of` takes it."""
SWITCHES = ("sparse",)
_THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+")


@dataclass(frozen=True, slots=True)
class State:
    """One setting of every knob. It may be one that no model or GPU has: then the answers say why.

    ``batch`` is of all data-parallel groups; ``context`` counts the keys, the new ones included.
    """

    model: str = "deepseek-v3"
    gpu: str = "h200-sxm-141gb"
    tp: int = 8
    dp: int = 1
    batch: int = 1
    context: int = 4096
    queries: int = 1
    dtype: str = "bf16"
    mma_dtype: str = "bf16"
    sparse: bool = False
    over: str = "tp"
    """The axis that the roofline's trajectories follow."""
    weight_bytes: str | None = None
    """Bytes of a weight; ``None``: each command's own, which is the checkpoint's where weights have to fit."""
    max_model_len: int | None = None
    """The longest request; ``None``: the model's."""
    cache_budget: str | None = None
    """The cache of one GPU as it was typed; ``None``: what the memory leaves."""

    def at(self, **settings: Any) -> State:
        """The same with other settings."""
        return replace(self, **settings)

    @property
    def group_batch(self) -> int:
        """Requests of the fullest data-parallel group, which is what one rank works on."""
        return -(-self.batch // self.dp)


def count_of(name: str, text: str) -> int:
    """The number typed for a knob: ``4096``, ``4k``, ``32,768``. Raises InputError for one that it does not take."""
    digits = text.replace(",", "") if _THOUSANDS.fullmatch(text.strip()) else text
    return parse_count(digits, f"--{name}", most=COUNTS[name])


def width_of(text: str | None) -> str | None:
    """The bytes of a weight that an option or a knob asks for. Raises InputError where no weight is stored so."""
    if text is None or text == OWN:
        return None
    if text not in WEIGHT_BYTES:
        accepted = ", ".join((OWN, *WEIGHT_BYTES))
        raise InputError(f"--weight-bytes {shown(text)}: one of {accepted} is accepted", nearest(text, (OWN,)))
    return text


def budget_of(text: str | None) -> str | None:
    """The cache of one GPU that was asked for. Raises InputError for what is no size of one."""
    if text is not None and not 1 <= parse_size(text, "--cache-budget") <= MOST_CACHE:
        raise InputError(f"--cache-budget {text.strip()}: 1 B to 1024TiB is accepted")
    return text if text is None else text.strip()


def short(value: int) -> str:
    """A number as a knob shows it and takes it: 131072 -> 128k, 4095 -> 4095."""
    for power, letter in ((20, "m"), (10, "k")):
        if value >= 1 << power and value % (1 << power) == 0:
            return f"{value >> power}{letter}"
    return str(value)


def options_of(state: State, panel: str) -> Options:
    """The options with which the command behind a panel answers for ``state``."""
    at = {"model": state.model, "tp": str(state.tp), "dtype": state.dtype}
    step = {"batch": short(state.group_batch), "context": short(state.context)}
    card: dict[str, str | bool] = {"gpu": state.gpu, "mma_dtype": state.mma_dtype}
    if state.sparse:
        card["sparse"] = True
    weights: dict[str, str | bool] = {} if state.weight_bytes is None else {"weight_bytes": state.weight_bytes}
    if panel == "roofline":
        return {**at, **card, **step, "queries": short(state.queries), **weights, "over": state.over}
    if panel == "flops":
        return {**at, **card, **step, "queries": short(state.queries), **weights}
    if panel == "crossover":
        return {**at, **card, **step, **weights}
    if panel == "cache":
        return {**at, **step}
    if panel == "capacity":
        batch = {"batch": short(state.batch), "context": short(state.context)}
        return {**at, "gpu": state.gpu, "dp": str(state.dp), **batch, **weights, **_room(state)}
    engine = panel.removeprefix("dispatch-")
    rows = f"{state.group_batch}x{state.queries}:{state.context - state.queries}"
    return {**at, **card, "engine": engine, "rows": rows}


def _room(state: State) -> dict[str, str | bool]:
    """What was said of the room for the cache, and of requests in it."""
    asked = {
        "max_model_len": None if state.max_model_len is None else short(state.max_model_len),
        "cache_budget": state.cache_budget,
    }
    return {name: text for name, text in asked.items() if text is not None}


COMMANDS = ("roofline", "flops", "cache", "capacity", "crossover", "dispatch-vllm", "dispatch-sglang")
"""The answers behind the panels; ``dispatch`` is asked once for each engine."""


def command(state: State, name: str = "explore") -> str:
    """The command line that gives the same: of ``explore`` itself, or of one of :data:`COMMANDS`."""
    if name == "explore":
        every = {field: getattr(state, field) for field in state.__dataclass_fields__}
        return _line("explore", {field: _typed(value) for field, value in every.items() if value is not None})
    return _line(name.partition("-")[0], options_of(state, name))


def commands(state: State) -> tuple[str, ...]:
    """The command lines of the explorer and of every answer in it."""
    return tuple(command(state, name) for name in ("explore", *COMMANDS))


def refusal(state: State) -> str | None:
    """What is wrong in the state alone, whatever model and GPU mean; ``None`` where nothing is."""
    if state.queries > state.context:
        return f"{state.queries:,} queries are more than the context of {state.context:,}, which counts them too"
    return None


def _typed(value: str | int | bool) -> str | bool:
    return short(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _line(name: str, options: Options) -> str:
    words = ["mla-calc", name]
    for option, value in options.items():
        flag = "--" + option.replace("_", "-")
        words += [] if value is False else [flag] if value is True else [flag, str(value)]
    return joined(words)
