"""A page of several answers as one HTML file: no script, no request, its figures in it as SVG.

The page forbids its reader's browser to fetch anything, whatever a text in it holds.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from .drawing.svg import unique_ids
from .html import escaped, explanations_html, list_html, tables_html
from .page import ENDINGS, OF_NOTES, SUMMARY, Page, Part, Section
from .page_style import STYLE
from .record import Report

Heads = dict[tuple[str, str], list[str]]
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="mla-calc">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
"""


def to_html(page: Page) -> str:
    """The page as HTML. Raises InputError where a figure cannot be drawn."""
    parts = [HEAD.format(policy=escaped(POLICY), title=escaped(page.title), style=STYLE)]
    parts += [
        _opening(page),
        *(_section(page.heads(), place, section) for place, section in enumerate(page.sections, 2)),
    ]
    for place, (name, title) in enumerate(ENDINGS, len(page.sections) + 2):
        parts.append(_block(name, place, title, _ENDING[name](page)))
    return "\n".join(parts) + "\n</body>\n</html>\n"


def _opening(page: Page) -> str:
    contents = "\n".join(
        f'<li><span class="place">{place}</span><a href="#{escaped(name)}">{escaped(title)}</a></li>'
        for place, (name, title) in enumerate(page.contents(), 1)
    )
    dated = f'<p class="soft">{escaped(page.date)}</p>\n' if page.date else ""
    figures = "\n".join(f"<div><b>{escaped(text)}</b><span>{escaped(item.label)}</span></div>"
                        for item, text in page.figures())  # fmt: skip
    key = f'<div class="key">\n{figures}\n</div>\n' if figures else ""
    said = "\n".join(
        f'<li><a href="#{escaped(section.name)}">{escaped(section.title)}</a>{_about(about)}. {escaped(text)}</li>'
        for section, about, text in page.summary()
    )
    return (
        f'<header>\n<h1>{escaped(page.title)}</h1>\n<p class="lead">{escaped(page.subtitle)}</p>\n{dated}'
        f'<nav aria-label="Contents">\n<ol>\n{contents}\n</ol>\n</nav>\n</header>\n'
        + _block("summary", 1, SUMMARY, f'{key}<ul class="summary">\n{said}\n</ul>')
    )


def _about(text: str) -> str:
    return f" ({escaped(text)})" if text else ""


def _block(name: str, place: int, title: str, body: str) -> str:
    heading = f'<h2><span class="place">{place}</span>{escaped(title)}</h2>'
    return f'<section id="{escaped(name)}">\n{heading}\n{body}\n</section>'


def _section(heads: Heads, place: int, section: Section) -> str:
    text = f'<p class="soft">{escaped(section.text)}</p>\n' if section.text else ""
    body = "\n".join(_part(part, heads.get((section.name, part.name), [])) for part in section.parts)
    return _block(section.name, place, section.title, text + body)


def _part(part: Part, head: list[str]) -> str:
    report = part.report
    found = [f"<h3>{escaped(part.text)}</h3>"] if part.text else []
    if report is not None:
        found += _answer(report, part, head)
    if part.reason:
        found.append(f'<p class="missing"><b>Left out:</b> {escaped(part.reason)}</p>')
    if part.command:
        found.append(command_html(part.command))
    return "\n".join(found)


def command_html(line: str) -> str:
    """A command line that breaks before an option and nowhere else."""
    pieces = " ".join(f"<span>{escaped(piece)}</span>" for piece in re.split(r" (?=--)", line))
    return f'<p class="command"><code>{pieces}</code></p>'


def _answer(report: Report, part: Part, head: list[str]) -> list[str]:
    found = []
    if part.tables:
        found += [f'<p class="soft">{escaped(text)}</p>' for text in head]
        found.append(f'<div class="tables">\n{tables_html(report)}\n</div>')
        found.append(f'<p class="said">{escaped(report.sentence)}</p>' if report.sentence else "")
    if part.chart is not None:
        drawn = inline_svg(svg_of(part), f"{part.name}-", f"{part.chart.title}. {part.chart.caption}")
        found.append(f'<figure id="figure-{escaped(part.name)}">\n<div class="picture">{drawn}</div>\n</figure>')
    return found


def svg_of(part: Part) -> str:
    """The part's chart as a file of SVG holds it: a slide's size."""
    from .drawing.picture import save_picture

    assert part.chart is not None
    assert part.report is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        save_picture(part.chart, part.report.results, path, "svg", "slide")
        return path.read_text(encoding="utf-8")


_PROLOGUE = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_STYLE = re.compile(r"(<style[^>]*>)\s*\*\s*\{")


def inline_svg(text: str, prefix: str, label: str) -> str:
    """An SVG file as a piece of HTML, its ids and references beginning with ``prefix``, its style its own.

    ``label`` is what it shows, in words.

    Several figures stand in one page, whose ids are one space and whose styles reach everything.
    """
    text = _METADATA.sub("", _PROLOGUE.sub("", text))
    text = unique_ids(text, prefix)
    text = _STYLE.sub(lambda match: f"{match[1]}#{prefix}svg * {{", text)
    head = f'<svg id="{prefix}svg" role="img" aria-label="{escaped(label)}" '
    return head + text.removeprefix("<svg ").rstrip()


def _explanations(page: Page) -> str:
    """Every answer's explanations, under the title of its section, open so that paper shows them too."""
    found = []
    for section, part, report in page.explanations():
        about = f": {part.text}" if part.text else ""
        found.append(
            f"<details open>\n<summary>{escaped(section.title + about)}</summary>\n"
            f"{command_html(part.command + ' --explain')}\n"
            f"{explanations_html(report)}\n</details>"
        )
    return '<div class="long">\n' + "\n".join(found) + "\n</div>"


def _notes(page: Page) -> str:
    items = "\n".join(f"<li>{escaped(note)} {_links(sections)}</li>" for note, sections in page.notes())
    return f'<p>{escaped(OF_NOTES)}</p>\n<ul class="long">\n{items}\n</ul>'


def _links(sections: Iterable[Section]) -> str:
    links = ", ".join(f'<a href="#{escaped(item.name)}">{escaped(item.title.lower())}</a>' for item in sections)
    return f"<small>({links})</small>"


def _sources(page: Page) -> str:
    return (
        f'<div class="long">\n{list_html(page.sources())}\n<h3>Where each input was read</h3>\n'
        f"{list_html(page.inputs_read())}\n</div>"
    )


def _versions(page: Page) -> str:
    rows = "\n".join(
        f"<tr><td>{escaped(item.what)}</td><td>{escaped(item.version)}</td><td>{escaped(item.date or '-')}</td></tr>"
        for item in page.versions
    )
    return (
        '<div class="table"><table>\n<thead><tr><th scope="col">what</th><th scope="col">version</th>'
        f'<th scope="col">date</th></tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>\n'
        f"<p>This page is made again, byte for byte, by:</p>\n<pre><code>{escaped(page.command)}</code></pre>"
    )


_ENDING = {"explanations": _explanations, "notes": _notes, "sources": _sources, "versions": _versions}
