"""Writing an answer: to the terminal, or to a file that is whole or untouched."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ELOOP
from pathlib import Path

from ..errors import InputError, nearest, shown
from .record import Report
from .render import FORMATS, SUFFIXES

FIGURES = (".png", ".svg", ".pdf", ".html")
"""Suffixes of figures."""
HOLDS = {
    **{suffix: name for suffix, name in SUFFIXES.items() if name != "table"},
    **{suffix: suffix[1:] for suffix in FIGURES},
    ".htm": "html",
    ".parquet": "parquet",
}
"""What a file of a suffix holds, whichever command writes it; any format may go into one of another, such as .txt."""
SLIDE = "slide"
STDOUT = Path("-")
"""What ``--output`` is called where stdout is meant."""
MOST_OF_NAME = 50
"""Characters of a file's name in that of the temporary one beside it, which may be no longer than a file's own."""


def emit(report: Report, format_name: str | None, output: Path | None, explain: bool, size: str | None = None) -> None:
    """Print the report, or write it to ``output``; the format is the one named or that of the suffix.

    A figure's suffix (:data:`FIGURES`) draws the report's chart, ``size`` being that of a picture; ``None``: of a
    command that draws none.

    Raises:
        InputError: an unknown format or suffix, one that is not the other's, no figure of this report, or an output
            that cannot be written.
    """
    if output == STDOUT:
        output = None
    if format_name is None and wants_figure(output):
        assert output is not None
        write_figure(report, output, size or SLIDE)
        return
    chosen = chosen_format(format_name, output, figures=FIGURES if size else ())
    if output is not None:
        text = FORMATS[chosen](report, explain)
        with replacing(output) as path:
            write_utf8(path, text)
    elif chosen == "table" and sys.stdout.isatty():
        from rich.console import Console

        from .terminal import show

        show(report, explain, Console(highlight=False))
    elif chosen == "table":
        from .terminal import asked_columns, plain_text

        sys.stdout.write(plain_text(report, explain, asked_columns()))
    else:
        sys.stdout.write(FORMATS[chosen](report, explain))


def wants_figure(output: Path | None) -> bool:
    """Whether the suffix of ``output`` is a figure's."""
    return output is not None and output.suffix.lower() in FIGURES


def write_figure(report: Report, output: Path, size: str) -> None:
    """Draw the report's chart into ``output``, by its suffix; ``size``: slide or column.

    Raises:
        InputError: the report has no chart, plotly is missing, or ``output`` cannot be written.
    """
    if report.chart is None:
        command = report.command.replace("-", " ")
        raise InputError(f"--output {output}: `{command}` draws no figure; use {', '.join(SUFFIXES)}")
    if output.suffix.lower() == ".html":
        from .drawing.page import html_page

        text = html_page(report.chart, report)
        with replacing(output) as path:
            write_utf8(path, text)
    else:
        from .drawing.picture import save_picture

        with replacing(output) as path:
            save_picture(report.chart, report.results, path, output.suffix.lower().lstrip("."), size)


def chosen_format(format_name: str | None, output: Path | None, figures: tuple[str, ...] = ()) -> str:
    """The format asked for, or the one that ``output``'s suffix means, or a table; an error names ``figures`` too."""
    if format_name is not None:
        if format_name not in FORMATS:
            accepted = ", ".join(FORMATS)
            raise InputError(
                f"--format {shown(format_name)}: one of {accepted} is accepted", nearest(format_name, FORMATS)
            )
        check_suffix(format_name, output)
        return format_name
    if output is None:
        return "table"
    if output.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"--output {output}: the suffix {output.suffix or '(none)'} names no format; "
            f"use {', '.join((*figures, *SUFFIXES))} or --format"
        )
    return SUFFIXES[output.suffix.lower()]


def check_suffix(format_name: str, output: Path | None) -> None:
    """Refuse an ``output`` whose suffix says that it holds another format, by which it would be opened.

    Raises:
        InputError: it is one of :data:`HOLDS` that is not ``format_name``'s.
    """
    if output is not None and HOLDS.get(output.suffix.lower(), format_name) != format_name:
        raise InputError(
            f"--output {output}: the suffix {output.suffix} is not that of --format {format_name}",
            "give the file another suffix, or none",
        )


@contextmanager
def replacing(output: Path, option: str | None = "--output") -> Iterator[Path]:
    """A temporary file beside ``output`` that takes its place when the block ends without an error.

    Whatever goes wrong, an existing file is left whole: it is replaced in one step or not at all.

    Args:
        output: the file; one that may not be written is not replaced either, though its folder would allow it.
        option: the option that errors name; ``None``: the file alone.

    Raises:
        InputError: ``output`` is a directory, may not be written, or its folder is missing or cannot be written.
    """
    name = f"{option} {output}" if option else str(output)
    try:
        if output.is_dir():
            raise InputError(f"{name}: is a directory")
        if _is_device(output):
            yield output  # nothing to replace: it is written as it is
            return
        output = _followed(output)  # a link stays, what it points to is replaced
        temporary = _beside(output)
        try:
            yield temporary
            mode = output.stat().st_mode & 0o777 if output.exists() else 0o666 & ~_umask()
            temporary.chmod(mode)
            temporary.replace(output)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror}") from None


def write_utf8(path: Path, text: str) -> None:
    """Write ``text``; what of a path in it is no UTF-8 is escaped, as on stdout."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def check_replaceable(output: Path, option: str) -> None:
    """Refuse what :func:`replacing` could not write, before there is anything to write. Raises InputError."""
    try:
        if _is_device(output):
            return
        _beside(_followed(output)).unlink()
    except OSError as error:
        raise InputError(f"{option} {output}: cannot be written: {error.strerror}") from None


def _followed(output: Path) -> Path:
    """What a link points to, or the path itself. Raises OSError where links go round in a circle."""
    try:
        return output.resolve() if output.is_symlink() else output
    except RuntimeError:  # as Python up to 3.12 says it
        raise OSError(ELOOP, os.strerror(ELOOP)) from None


def _is_device(output: Path) -> bool:
    """Whether it is a device or a pipe, such as /dev/stdout, by its own name: the one it links to may lead nowhere."""
    return output.exists() and not output.is_file() and not output.is_dir()


def _beside(output: Path) -> Path:
    """An empty file beside ``output``. Raises OSError where that, or ``output`` itself, may not be written."""
    if output.exists():
        with output.open("r+b"):
            pass  # opened and closed: it stays as it is
    handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name[:MOST_OF_NAME]}.", suffix=".part")
    os.close(handle)
    return Path(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
