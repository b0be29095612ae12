"""The next and the previous value of a knob: of those that the rest of the state allows.

Nothing here draws. Loading is by the presets, so a run of moves wants :func:`mla_calc.data.presets_kept`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..costs.layouts import latent_row_bytes, load_layout
from ..costs.placement import MAX_GPUS, Placement, check_placement
from ..costs.sharding import misfit
from ..errors import InputError
from ..hardware.load import load_gpu
from ..models.load import load_model
from ..report import format as fmt
from .presets import preset_names
from .state import AXES, COUNTS, MMA_DTYPES, OWN, WEIGHT_BYTES, State, refusal, width_of


@dataclass(frozen=True, slots=True)
class Moved:
    """The state after a move, and what was passed over on the way, with the reason."""

    state: State
    skipped: tuple[str, ...] = ()


def choices(knob: str, started: State) -> tuple[str, ...]:
    """Every value of a knob that has a list of them.

    What explore was ``started`` with is first where it is none of the presets, such as a file of one's own: so it is
    never out of reach.
    """
    fixed = {"mma_dtype": MMA_DTYPES, "over": AXES, "weight_bytes": (OWN, *WEIGHT_BYTES)}
    if knob in fixed:
        return fixed[knob]
    names, own = preset_names(knob), getattr(started, knob)
    return names if own in names else (own, *names)


def check(state: State) -> None:
    """Refuse a state that is none that a model on a GPU has. Raises InputError."""
    wrong = refusal(state)
    if wrong:
        raise InputError(wrong)
    model = load_model(state.model)
    check_placement(model, Placement(tp=state.tp, dp=state.dp, dcp=1, pp=1))
    layout = load_layout(state.dtype)
    if model.mla:
        latent_row_bytes(layout, model.mla)
    load_gpu(state.gpu).peak_flop_per_s(state.mma_dtype)
    gpus = state.tp * state.dp
    if gpus > MAX_GPUS:
        raise InputError(f"TP {state.tp} x DP {state.dp} are {gpus:,} GPUs; at most {MAX_GPUS:,} are accepted")
    if state.sparse and model.indexer is None:
        raise InputError(f"{model.name} has no indexer: there is no sparse attention to price")


def problem(state: State) -> str | None:
    """Why the state is none that a model on a GPU has, in one line; ``None`` where it is one."""
    try:
        check(state)
    except InputError as error:
        return str(error)
    return None


def told(state: State) -> str:
    """What the state is of, in a line. Raises InputError for a model or GPU that there is not."""
    groups = f", {fmt.counted(state.group_batch, 'request')} to a DP group" if state.dp > 1 else ""
    return f"{load_model(state.model).name} on {state.tp * state.dp:,} x {load_gpu(state.gpu).name}{groups}"


def moved(state: State, knob: str, step: int, started: State) -> Moved:
    """The state with ``knob`` one value on (``step`` 1) or back (-1), past the values that do not go with the rest.

    ``started``: as for :func:`choices`.

    Raises:
        InputError: no value that way goes with the rest; the message says why the last one does not.
    """
    already = problem(state) is not None  # then the next value is taken as it is: another knob may be what is wrong
    skipped: list[str] = []
    for value in _values(state, knob, step, started):
        candidate = state.at(**{knob: value})
        why = None if already else problem(candidate)
        if why is None:
            return Moved(candidate, tuple(skipped))
        skipped.append(why)
    end = "largest" if step > 0 else "smallest"
    raise InputError(skipped[-1] if skipped else f"{knob.replace('_', ' ')} is at its {end} value")


def _values(state: State, knob: str, step: int, started: State) -> Iterator[str | int | bool | None]:
    """What comes after the knob's value, in the order in which it is tried."""
    now = getattr(state, knob)
    if isinstance(now, bool):
        yield not now
    elif knob == "weight_bytes":
        yield from map(width_of, _listed(now or OWN, choices(knob, started), step))
    elif knob == "tp":
        yield from _degrees(state, step)
    elif isinstance(now, int):
        yield from _powers(now, step, COUNTS[knob])
    else:
        yield from _listed(now, choices(knob, started), step)


def _listed(now: str, every: tuple[str, ...], step: int) -> Iterator[str]:
    """The rest of a list in a circle."""
    at = every.index(now)
    for distance in range(1, len(every)):
        yield every[(at + step * distance) % len(every)]


def _powers(now: int, step: int, most: int) -> Iterator[int]:
    """The next power of two that way, once: what lies beyond it fits no better."""
    value = 1 << now.bit_length() if step > 0 else 1 << max(0, (now - 1).bit_length() - 1)
    if value != now and value <= most:
        yield value


def _degrees(state: State, step: int) -> Iterator[int]:
    """The degrees of the model that way, nearest first."""
    model = load_model(state.model)
    fitting = [tp for tp in range(1, model.attention.heads + 1) if misfit(model, tp) is None]
    yield from (tp for tp in fitting if tp > state.tp) if step > 0 else (tp for tp in fitting[::-1] if tp < state.tp)
