"""``mla-calc explore``: the roofline and everything beside it, on a screen with knobs."""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError, nearest, shown
from ..explore.presets import settled
from ..explore.state import (
    AXES,
    MMA_DTYPES,
    State,
    budget_of,
    command,
    commands,
    count_of,
    width_of,
)
from ..sizes import parse_count
from . import options
from .complete import gpus, models

if TYPE_CHECKING:
    from ..explore.app import Explorer

app = options.command_app()

CURSORLESS = ("dumb", "unknown")
"""Terminals by their TERM that can only write on."""
FIRST = State()
"""The state that is shown where nothing else is asked for."""

Model = Annotated[
    str, typer.Option("--model", "-m", help="Preset name, alias or Hugging Face id; or a file.", autocompletion=models)
]
Gpu = Annotated[str, typer.Option("--gpu", "-g", help="GPU preset or YAML file.", autocompletion=gpus)]
Tp = Annotated[str, typer.Option("--tp", help="Tensor-parallel ranks.")]
Dp = Annotated[str, typer.Option("--dp", help="Data-parallel attention groups.")]
Batch = Annotated[str, typer.Option("--batch", "-b", help="Requests in all groups.")]
Over = Annotated[str, typer.Option("--over", help="Axis that the roofline follows: tp, batch, context or queries.")]
Weights = Annotated[
    str | None,
    typer.Option("--weight-bytes", help="Bytes per weight: 0.5, 1, 2 or 4; or auto.", show_default="each command's"),
]
Budget = Annotated[
    str | None, typer.Option("--cache-budget", help="Cache of one GPU, instead of working it out: 40GiB.")
]
Print = Annotated[bool, typer.Option("--print", help="Print the command lines that give the same, and open nothing.")]
Light = Annotated[bool, typer.Option("--light/--dark", help="For a light or a dark terminal; `v` changes it.")]


@app.command()
def explore(
    model: Model = FIRST.model,
    gpu: Gpu = FIRST.gpu,
    tp: Tp = str(FIRST.tp),
    dp: Dp = str(FIRST.dp),
    batch: Batch = str(FIRST.batch),
    context: options.Context = str(FIRST.context),
    queries: options.Queries = str(FIRST.queries),
    dtype: options.Dtype = FIRST.dtype,
    mma_dtype: options.MmaDtype = FIRST.mma_dtype,
    sparse: options.Sparse = FIRST.sparse,
    over: Over = FIRST.over,
    weight_bytes: Weights = None,
    max_model_len: options.MaxModelLen = None,
    cache_budget: Budget = None,
    light: Light = False,
    print_only: Print = False,
) -> None:
    """The roofline, both paths' kernels, cache, capacity, crossover and engines, live: turn a knob and look."""
    for option, text, known in (("--over", over, AXES), ("--mma-dtype", mma_dtype, MMA_DTYPES)):
        if text not in known:
            raise InputError(f"{option} {shown(text)}: one of {', '.join(known)} is accepted", nearest(text, known))
    counts = {"tp": tp, "dp": dp, "batch": batch, "context": context, "queries": queries}
    state = settled(
        State(
            model=model,
            gpu=gpu,
            dtype=dtype,
            mma_dtype=mma_dtype,
            sparse=sparse,
            over=over,
            weight_bytes=width_of(weight_bytes),
            max_model_len=None if max_model_len is None else parse_count(max_model_len, "--max-model-len"),
            cache_budget=budget_of(cache_budget),
            **{name: count_of(name, text) for name, text in counts.items()},
        )
    )
    if print_only:
        if state != settled(FIRST):  # which needs no model to be loaded
            from ..explore.moves import check

            check(state)
        sys.stdout.write("".join(f"{line}\n" for line in commands(state)))
        return
    _check_terminal()
    left, unsaved = _open(state, light)
    sys.stdout.write(f"{command(left)}\n")
    if unsaved:
        raise typer.Exit(1)


def _check_terminal() -> None:
    """Refuse what the screen cannot be drawn on, before anything is loaded for it."""
    instead = "--print gives the command lines instead"
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):  # it is drawn on stderr
        raise InputError("explore draws on a terminal, and this is none", instead)
    if (kind := os.environ.get("TERM", "")) in CURSORLESS:
        raise InputError(f"explore moves the cursor, which a terminal of TERM={kind} cannot", instead)
    if not (sys.stderr.encoding or "").lower().startswith("utf"):
        raise InputError(
            f"explore draws in UTF-8, and the encoding here is {sys.stderr.encoding}",
            f"unset PYTHONIOENCODING, or set LC_ALL=C.UTF-8; {instead}",
        )


def _open(state: State, light: bool) -> tuple[State, bool]:
    """Run the screen until it is left; the state that it was left in, and whether a save failed that it waited for.

    Raises:
        InputError: something that it needs is not installed.
        typer.Exit: it came to an error of its own, which is told on stderr.
    """
    gc.disable()  # until all is loaded, none of which is garbage: a tenth of the time to the first screen
    try:
        screen = _loaded()(state, light, alone=True)
        left = screen.run()
    finally:
        gc.enable()
    if screen.return_code:
        # what went wrong stands above, as textual tells it
        sys.stderr.write(f"mla-calc: explore failed, by a fault of its own; it was at\n  {command(screen.state)}\n")
        raise typer.Exit(screen.return_code)
    return left or screen.state, screen.unsaved


def _loaded() -> type[Explorer]:
    """The screen. Raises InputError where textual or plotext is missing."""
    missing = None
    try:
        from ..explore.app import Explorer
    except ImportError as error:
        missing = error.name.partition(".")[0] if error.name else None
        if missing != "textual":
            raise
    if find_spec("plotext") is None:  # looked for, not loaded: that takes longer than to draw the screen
        missing = missing or "plotext"
    if missing:
        raise InputError(f"explore needs {missing}, which is not installed", "pip install 'mla-calc[explore]'")
    return Explorer
