"""``mla-calc parity``: the identity behind absorption in float64, and RoPE breaking it."""

from __future__ import annotations

from typing import Annotated

import typer

from ..costs.parity import ParityCost
from ..costs.parity import parity as check_parity
from ..errors import InputError
from ..models.attention import Model
from ..models.load import load_model
from ..report.record import Cell, Report, Table, plain
from ..report.write import emit
from ..sizes import parse_count
from . import options, request

app = options.command_app()

MOST_KEYS, MOST_QUERIES, MOST_SCORES = 4096, 64, 1 << 20
"""What is checked at most, and heads x queries x keys of it: the work grows with them, the identity does not."""


@app.command()
def parity(
    model: options.Model,
    queries: Annotated[str, typer.Option("--queries", "-q", help="New tokens, causal among themselves.")] = "3",
    context: Annotated[str, typer.Option("--context", "-s", help="Keys attended, the new ones included.")] = "64",
    heads: Annotated[str, typer.Option("--heads", help="Heads that are drawn.")] = "4",
    seed: Annotated[str, typer.Option("--seed", help="Of the random data.")] = "0",
    format_name: options.Format = None,
    output: options.Output = None,
    explain: options.Explain = False,
) -> None:
    """Expanded and absorbed attention on random data: equal to 1e-12, unless RoPE touches the rebuilt key."""
    loaded = load_model(model)
    mla = request.mla_of(loaded, "parity")
    keys = parse_count(context, "--context", most=MOST_KEYS)
    new = parse_count(queries, "--queries", most=MOST_QUERIES)
    drawn = parse_count(heads, "--heads", most=mla.heads)
    if drawn * new * keys > MOST_SCORES:
        raise InputError(f"{drawn} heads x {new} queries x {keys} keys: at most {MOST_SCORES:,} scores are checked")
    start = parse_count(seed, "--seed", least=0, most=(1 << 32) - 1)
    cost = check_parity(mla, queries=new, context=keys, heads=drawn, seed=start)
    emit(_report(loaded, cost, explain), format_name, output, explain)
    if not cost.holds:
        raise typer.Exit(1)


def _report(model: Model, cost: ParityCost, explain: bool) -> Report:
    rows = tuple((name, Cell(f"max_abs_error.{name}", "number")) for name in ("scores", "probabilities", "output"))
    sources = request.input_sources((model,), (), None)
    return Report(
        command="parity",
        title=f"{model.name}   {request.geometry(model)}, float64",
        inputs={
            "model": model.name,
            "queries": cost.queries,
            "context": cost.context,
            "heads": cost.heads,
            "seed": cost.seed,
        },
        results=plain(cost),
        tables=(Table(("expanded against absorbed", "largest difference"), rows), _rope_table()),
        sentence=_sentence(cost),
        notes=(*(_STEPS if explain else ()), *request.model_notes(model)),
        sources=(
            "MLA in full detail, the float64 reference",
            "DeepSeek-V2, arXiv:2405.04434",
            *request.source_list(sources),
        ),
        input_sources=sources,
    )


_STEPS = (
    "scores, expanded: (q (c W_UK)^T + q_rope k_rope^T) * (dn + dr)**-0.5; absorbed: q W_UK^T first, same scale.",
    "output, expanded: a (c W_UV) W_O; absorbed: (a c) W_UV W_O.",
    "under RoPE the score is q R(j-i) W_UK^T c: the matrix to fold differs for every distance j-i.",
)


def _rope_table() -> Table:
    rows = (
        ("one fold for all distances", Cell("rope_broken_error", "percent")),
        ("one fold per distance", Cell("rope_per_distance_error", "number")),
        ("folds that this block needs", Cell("rope_folds_needed")),
    )
    return Table(("RoPE on the rebuilt key", "relative error of the scores"), rows)


def _sentence(cost: ParityCost) -> str:
    verdict = "agree" if cost.holds else "DO NOT agree"
    return (
        f"Both forms {verdict} to {cost.tolerance:g}. With RoPE on the rebuilt key they would need "
        f"{cost.rope_folds_needed:,} folds, one per distance: absorption would not exist."
    )
