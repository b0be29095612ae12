"""What the explorer shows, as a value: every knob's setting, and the command lines that ask for the same."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..sizes import MAX_TOKENS, parse_count

Options = Mapping[str, str | bool]
"""Options of a command by their Python names, each as it is typed; a switch is true or false."""

AXES = ("tp", "batch", "context", "queries")
"""As :data:`mla_calc.costs.ridge.AXES`: what ``over`` may be."""
MMA_DTYPES = ("bf16", "fp16", "fp8", "fp4", "int8", "tf32", "fp32")
"""As :data:`mla_calc.hardware.gpu.DTYPES`."""
MOST_GPUS = 4096
"""As :data:`mla_calc.costs.placement.MAX_GPUS`, whose import would take longer than to draw the screen."""
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
    if panel == "roofline":
        return {**at, **card, **step, "queries": short(state.queries), "over": state.over}
    if panel == "flops":
        return {**at, **card, **step, "queries": short(state.queries)}
    if panel == "crossover":
        return {**at, **card, **step}
    if panel == "cache":
        return {**at, **step}
    if panel == "capacity":
        batch = {"batch": short(state.batch), "context": short(state.context)}
        return {**at, "gpu": state.gpu, "dp": str(state.dp), **batch}
    engine = panel.removeprefix("dispatch-")
    rows = f"{state.group_batch}x{state.queries}:{state.context - state.queries}"
    return {**at, **card, "engine": engine, "rows": rows}


COMMANDS = ("roofline", "flops", "cache", "capacity", "crossover", "dispatch-vllm", "dispatch-sglang")
"""The answers behind the panels; ``dispatch`` is asked once for each engine."""


def command(state: State, name: str = "explore") -> str:
    """The command line that gives the same: of ``explore`` itself, or of one of :data:`COMMANDS`."""
    if name == "explore":
        return _line("explore", {field: _typed(getattr(state, field)) for field in state.__dataclass_fields__})
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
    return shlex.join(words)
