"""From an ``answer`` to its command: the parameters of the function are the options, which are written once.

``answer`` takes the options as text, with the command's defaults, and returns a Report; its parameters are annotated
as those of a typer function are. The command adds the options of writing, and only emits what ``answer`` returns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from ..errors import InputError
from ..report.chart import Chart
from ..report.record import Report
from ..report.write import emit, wants_figure
from . import options

SIZED = (".png", ".svg", ".pdf")
"""Suffixes of figures that have a size; a page takes the reader's."""
GIVEN = "given"
"""A parameter of ``answer`` that is no option: the names of those that stand on the command line."""


def add_command(
    app: typer.Typer,
    answer: Callable[..., Report],
    chart: Callable[[Report], Chart] | None = None,
    figure_needs: dict[str, Any] | None = None,
) -> Callable[..., None]:
    """Add the command to ``app`` whose options are the parameters of ``answer``; it is returned.

    Its help is the first paragraph of ``answer``'s docstring.

    Args:
        app: of the command's module.
        answer: annotated with options; all parameters but the first are by keyword.
        chart: the figure of a report; without it the command has no ``--size``.
        figure_needs: parameters of ``answer`` that a figure sets, because it draws what they add.
    """

    def run(ctx: typer.Context, **asked: Any) -> None:
        format_name, output, size = asked.pop("format_name"), asked.pop("output"), asked.pop("size", None)
        if GIVEN in inspect.signature(answer).parameters:
            asked[GIVEN] = options.given(ctx)
        drawn = chart if format_name is None and wants_figure(output) else None
        size = _size(size, output if drawn else None) if chart else None
        report = answer(**(asked | (figure_needs or {}) if drawn else asked))
        if drawn and report.chart is None:
            report = replace(report, chart=drawn(report))
        emit(report, format_name, output, asked["explain"], size)

    run.__doc__ = (inspect.getdoc(answer) or "").partition("\n\n")[0]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what inspect.signature, and so typer, reads
        list(_parameters(answer, with_size=chart is not None))
    )
    app.command()(run)
    return run


def _parameters(answer: Callable[..., Report], *, with_size: bool) -> Iterator[inspect.Parameter]:
    """The context, the options of ``answer``, those of writing, and ``--explain`` last."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = dict(inspect.signature(answer, eval_str=True).parameters)
    own.pop(GIVEN, None)
    explain = own.pop("explain")
    yield inspect.Parameter("ctx", keyword, annotation=typer.Context)
    yield from (each.replace(kind=keyword) for each in own.values())
    yield inspect.Parameter("format_name", keyword, default=None, annotation=options.Format)
    yield inspect.Parameter("output", keyword, default=None, annotation=options.Output)
    if with_size:
        yield inspect.Parameter("size", keyword, default=None, annotation=options.Size)
    yield explain


def _size(size: str | None, output: Path | None) -> str:
    """The size asked for, or a slide's. Raises InputError for an unknown one, or without a figure to have it."""
    if size is None:
        return options.SIZES[0]
    from ..report.drawing.style import size_named

    size_named(size)
    if output is None or output.suffix.lower() not in SIZED:
        raise InputError(f"--size is of a picture: give --output a file that ends in {', '.join(SIZED)}")
    return size
