"""``mla-calc explore``: the roofline and everything beside it, on a screen with knobs."""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer

from ..errors import InputError, nearest, shown
from ..explore.presets import settled
from ..explore.state import AXES, MMA_DTYPES, State, command, commands, count_of, refusal
from . import options
from .complete import gpus, models

app = options.command_app()

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
            **{name: count_of(name, text) for name, text in counts.items()},
        )
    )
    if print_only:
        if state != settled(FIRST):
            _check(state)
        sys.stdout.write("".join(f"{line}\n" for line in commands(state)))
        return
    left = _open(state, light)
    sys.stdout.write(f"{command(left)}\n")


def _check(state: State) -> None:
    """Refuse what no command line answers. Only what was asked for: the first screen, and its line, load no model."""
    from ..costs.sharding import check_tp
    from ..models.load import load_model

    check_tp(load_model(state.model), state.tp)
    if (wrong := refusal(state)) is not None:
        raise InputError(wrong)


def _open(state: State, light: bool) -> State:
    """Run the screen until it is left; the state that it was left in. Raises InputError where it cannot run."""
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):  # it is drawn on stderr
        raise InputError("explore draws on a terminal, and this is none", "--print gives the command lines instead")
    gc.disable()  # until all is loaded, none of which is garbage: a tenth of the time to the first screen
    try:
        from ..explore.app import Explorer
    except ImportError as error:
        gc.enable()
        if error.name is None or error.name.partition(".")[0] != "textual":
            raise
        raise InputError("explore needs textual, which is not installed", "pip install 'mla-calc[explore]'") from None
    return Explorer(state, light, alone=True).run() or state
