"""Options that several commands share: the same thing is spelled the same everywhere.

Values arrive as text and are read by our own parsers, so that a wrong one gets our own one-line error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .complete import comparators, formats, gpus, layouts, mma_dtypes, models, one_of


def command_app() -> typer.Typer:
    """The typer app of one command's module."""
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=CONTEXT)


CONTEXT = {"help_option_names": ["-h", "--help"]}

Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="Preset name, alias or Hugging Face id; a YAML preset; a config.json or params.json, or its folder.",
        autocompletion=models,
        show_default=False,
    ),
]
Gpu = Annotated[
    str | None,
    typer.Option("--gpu", "-g", help="GPU preset or YAML file; auto takes this machine's.", autocompletion=gpus),
]
Vs = Annotated[
    list[str] | None,
    typer.Option("--vs", help="Models to set beside it; repeat or list with commas.", autocompletion=comparators),
]
Tp = Annotated[str, typer.Option("--tp", help="Tensor-parallel ranks: 8, 1,2,4 or 1:8:x2.")]
Queries = Annotated[str, typer.Option("--queries", "-q", help="New tokens per request in this step.")]
Context = Annotated[str, typer.Option("--context", "-s", help="Keys attended, the new ones included; k is 1024.")]
Batch = Annotated[str, typer.Option("--batch", "-b", help="Requests of equal size.")]
Dtype = Annotated[str, typer.Option("--dtype", help="Cache layout: bf16, fp8, fp8_ds_mla, ...", autocompletion=layouts)]
MmaDtype = Annotated[
    str,
    typer.Option("--mma-dtype", help="Dtype of the products' operands: whose peak is used.", autocompletion=mma_dtypes),
]
WeightBytes = Annotated[str, typer.Option("--weight-bytes", help="Bytes per weight: 0.5, 1, 2 or 4.")]
Causal = Annotated[
    bool, typer.Option("--causal/--rectangular", help="Count pairs as a causal step or as a full block.")
]
Sparse = Annotated[
    bool, typer.Option("--sparse", help="Price sparse attention (DSA): the indexer, and attention over its top-k.")
]
BlockSize = Annotated[str, typer.Option("--block-size", help="Tokens per page of the cache.")]
MaxModelLen = Annotated[
    str | None, typer.Option("--max-model-len", help="Longest request.", show_default="the model's")
]
MaxNumSeqs = Annotated[str, typer.Option("--max-num-seqs", help="Most requests at a time.")]
Format = Annotated[
    str | None,
    typer.Option("--format", "-f", help="table, json, csv or markdown.", autocompletion=formats, show_default="table"),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file; its suffix tells the format.")]
SIZES = ("slide", "column")
"""As :data:`mla_calc.report.drawing.style.SIZES`, which a start has no need of."""
Size = Annotated[
    str | None,
    typer.Option(
        "--size",
        help="Size of a PNG, SVG or PDF: slide or column.",
        autocompletion=one_of(SIZES),
        show_default=SIZES[0],
    ),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show the formula behind each figure, with its numbers and sources.")
]


def given(ctx: typer.Context) -> frozenset[str]:
    """The options that stand on the command line, by their Python names: defaults are not among them."""
    sources = {item.name: ctx.get_parameter_source(item.name) for item in ctx.command.params if item.name}
    return frozenset(name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE")


def spelled(name: str) -> str:
    """An option as it is typed: ``--max-model-len``."""
    return "--" + name.replace("_", "-")
