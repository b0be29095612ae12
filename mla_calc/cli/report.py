"""``mla-calc report``: one self-contained page for a model on a GPU, made to be attached to a capacity review."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError, nearest, shown
from ..report import format as fmt
from ..report.page import Page, as_report
from ..report.page_html import to_html
from ..report.page_markdown import to_markdown, write_markdown
from ..report.render import to_json
from ..report.write import HOLDS, STDOUT, check_replaceable, check_suffix, replacing, write_utf8
from ..sizes import parse_count
from . import complete, options, request
from .report_asked import CHUNK, PASSED, checked
from .report_sections import Asked, command_line, group_phrase, key_figures, sections_of
from .report_subject import subject_report, versions

app = options.command_app()

FORMATS = ("html", "markdown", "json")
COUNTS = ("tp", "dp", "gpus", "batch", "queries", "context", "chunk", "max_model_len")
"""Options that are whole numbers."""
SUFFIXES = {suffix: name for suffix, name in HOLDS.items() if name in FORMATS}

Gpu = Annotated[
    str,
    typer.Option(
        "--gpu",
        "-g",
        help="GPU preset or YAML file; auto takes this machine's.",
        autocompletion=complete.gpus,
        show_default=False,
    ),
]
Engines = Annotated[
    list[str] | None,
    typer.Option("--engine", help="Engine releases.", autocompletion=complete.engines, show_default="vllm,sglang"),
]
Vs = Annotated[
    list[str] | None,
    typer.Option(
        "--vs",
        help="Models to set beside it; repeat or list with commas.",
        autocompletion=complete.comparators,
        show_default="one of the other kind",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        help="html, markdown or json.",
        autocompletion=complete.one_of(FORMATS),
        show_default="by the suffix",
    ),
]


@app.command()
def report(
    model: options.Model,
    gpu: Gpu,
    tp: Annotated[str, typer.Option("--tp", help="Tensor-parallel ranks.")] = "1",
    dp: Annotated[
        str | None, typer.Option("--dp", help="Data-parallel attention groups.", show_default="what GPUs remain")
    ] = None,
    gpus: Annotated[
        str | None, typer.Option("--gpus", help="GPUs in all; lists their layouts too.", show_default="TP x DP")
    ] = None,
    batch: options.Batch = "1",
    queries: options.Queries = "1",
    context: options.Context = "4096",
    dtype: options.Dtype = "bf16",
    mma_dtype: options.MmaDtype = "bf16",
    vs: Vs = None,
    engine: Engines = None,
    chunk: Annotated[
        str | None,
        typer.Option("--chunk", help="New tokens of the prefill that engines dispatch.", show_default=CHUNK),
    ] = None,
    sparse: options.Sparse = False,
    weight_bytes: Annotated[
        str | None,
        typer.Option("--weight-bytes", help="Bytes per weight: 0.5, 1, 2 or 4.", show_default="each command's"),
    ] = None,
    max_model_len: options.MaxModelLen = None,
    cache_budget: Annotated[
        str | None, typer.Option("--cache-budget", help="Cache of one GPU, instead of working it out: 40GiB.")
    ] = None,
    date: Annotated[
        str | None, typer.Option("--date", help="A date that the page bears: 2026-11-30.", show_default="none")
    ] = None,
    format_name: Format = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file: .html or .md (figures beside it), .json.")
    ] = None,
) -> None:
    """One page for a model on a GPU: numbers, figures, explanations, sources; HTML without a script, or Markdown.

    It is the answers of the other commands, each beside the command line that gives it.
    """
    output = None if output == STDOUT else output
    chosen = _format(format_name, output)
    if output is not None and (output.is_file() or not output.exists()):
        check_replaceable(output, "--output")  # before seconds are spent on figures
    page = page_of(
        model=model,
        gpu=gpu,
        tp=tp,
        dp=dp,
        gpus=gpus,
        batch=batch,
        queries=queries,
        context=context,
        dtype=dtype,
        mma_dtype=mma_dtype,
        vs=vs,
        engine=engine,
        chunk=chunk,
        sparse=sparse,
        weight_bytes=weight_bytes,
        max_model_len=max_model_len,
        cache_budget=cache_budget,
        date=date,
        written=_written(chosen, output),
    )
    if output is not None and chosen == "markdown":
        write_markdown(page, output)
        return
    text = _WRITERS[chosen](page)
    if output is None:
        sys.stdout.write(text)
    else:
        with replacing(output) as path:
            write_utf8(path, text)


def _written(chosen: str, output: Path | None) -> dict[str, str]:
    """The options that say where the page goes, and as what: the format only where no suffix says it."""
    found = {} if output is not None and output.suffix.lower() in SUFFIXES else {"format_name": chosen}
    return found if output is None else {**found, "output": output.name}


_WRITERS: dict[str, Callable[[Page], str]] = {
    "html": to_html,
    "markdown": to_markdown,
    "json": lambda page: to_json(as_report(page)),
}


def page_of(*, written: dict[str, str] | None = None, **asked: Any) -> Page:
    """The page that the options ask for, as text; ``written`` are those that say where it goes.

    Raises:
        InputError: an option that is not understood, or does not fit the model or another option. What another
            command refuses stands in the page instead.
    """
    subject, about = checked(asked)
    told = subject_report(subject, about.mma_dtype)
    sections = sections_of(about, told)
    typed = _typed(about, asked)
    return Page(
        title=f"{subject.model.name} on {subject.gpu.name}",
        subtitle=_step(about),
        command=command_line("report", app, typed | (written or {})),
        sections=sections,
        inputs={
            **_as_numbers(typed),
            "model": subject.model.name,
            "gpu": subject.gpu.name,
            "dp": about.groups,
            "group_batch": int(about.group_batch),
            "vs": [other.name for other in subject.vs],
            "engine": [engine.name for engine in subject.engines],
        },
        key_figures=key_figures(about),
        versions=versions(subject),
        date=_dated(asked["date"]),
    )


def _typed(about: Asked, asked: dict[str, Any]) -> dict[str, Any]:
    """The options that make the page again: all that name or size something, the others where they were given."""
    found = {name: getattr(about, name) for name in ("model", "gpu", "tp", "dp", "gpus", "batch", "queries", "context",
                                                      "dtype", "mma_dtype", "vs")}  # fmt: skip
    found |= {
        "engine": tuple(typed for typed, _ in about.engines),
        "chunk": about.chunk,
        "sparse": about.sparse,
        **{name: asked[name] for name in (*PASSED, "date")},
    }
    return {name: value for name, value in found.items() if value not in (None, False, ())}


def _as_numbers(typed: dict[str, Any]) -> dict[str, Any]:
    """The options with those that are numbers as numbers, which they are in every command's JSON."""
    found = typed | {name: parse_count(typed[name], options.spelled(name)) for name in COUNTS if name in typed}
    if "weight_bytes" in typed:
        found["weight_bytes"] = request.as_json(request.weight_width(typed["weight_bytes"]))
    return found


def _step(about: Asked) -> str:
    requests = fmt.counted(int(about.batch), "request")
    new = fmt.counted(int(about.queries), "query", "queries")
    keys = fmt.counted(int(about.context), "key")
    attention = ", sparse attention" if about.sparse else ""
    ranks = f"TP {about.tp}" if about.groups == 1 else f"TP {about.tp}, DP {about.groups}: {group_phrase(about)}"
    return (
        f"A step of {requests}, each {new} over {keys}, at {ranks}; cache in {about.dtype},"
        f" products in {about.mma_dtype}{attention}."
    )


def _dated(text: str | None) -> str | None:
    """The date as given. Raises InputError for one that is none."""
    if text is None:
        return None
    try:
        found = datetime.date.fromisoformat(text.strip())
    except ValueError:
        found = None
    if found is None or found.isoformat() != text.strip():  # weeks and dates without hyphens are read too
        raise InputError(f"--date {shown(text)}: a date such as 2026-11-30 is expected")
    return found.isoformat()


def _format(name: str | None, output: Path | None) -> str:
    """The format asked for, or the one that the suffix means."""
    if name is not None:
        if name not in FORMATS:
            raise InputError(f"--format {shown(name)}: one of {', '.join(FORMATS)} is accepted", nearest(name, FORMATS))
        check_suffix(name, output)
        return name
    if output is None:
        raise InputError("a page is written to a file: give --output page.html or page.md",
                         f"or --format {', '.join(FORMATS)} for stdout")  # fmt: skip
    found = SUFFIXES.get(output.suffix.lower())
    if found is None:
        raise InputError(
            f"--output {output}: the suffix {output.suffix or '(none)'} names no format; use .html, .md or .json,"
            " or --format"
        )
    return found
