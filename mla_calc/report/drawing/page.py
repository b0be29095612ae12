"""A chart and its report as one HTML file: plotly's script inside, and no request of any kind.

The page runs two scripts, plotly's and one that hands it the figures; its policy names both by their hashes and
allows no other, so that no text of a model or a GPU can become one. The figures stand in it as JSON, made by
:mod:`.plotly_figure` for windows of several widths: the page chooses and computes nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import Any

from ..chart import Chart
from ..explain import explained, input_lines
from ..html import escaped, list_html
from ..record import Report, Results, Table
from ..render import cells, numeric_columns
from .plotly_figure import FONT, page_figure, plotly_module
from .style import GRID, INK, SOFT

CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d"],
    "toImageButtonOptions": {"format": "png", "filename": "mla-calc", "scale": 2},
    "showSendToCloud": False,  # plotly's own default shows a button that uploads the figure
    "plotlyServerURL": "",
}
STARTER = """
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll("figure.chart")) {
    const made = JSON.parse(place.querySelector("script").textContent);
    const plot = place.querySelector("div");
    const over = (data, changes) => data.map((trace, at) => ({...trace, ...changes[at]}));
    const narrow = {...made.narrow, data: over(made.wide.data, made.narrow.data)};
    let shown = null;
    const draw = () => {
      const own = made.windows.filter((each) => each.from <= window.innerWidth).pop();
      if (own === shown) return;
      shown = own;
      const base = own.narrow ? narrow : made.wide;
      Plotly.react(plot, over(base.data, own.data), {...base.layout, ...own.layout}, made.config);
    };
    draw();
    window.addEventListener("resize", draw);
  }
});
"""
CSS = f"""
:root {{ color-scheme: light; }}
body {{ margin: 0 auto; padding: 12px 16px 40px; max-width: 1400px; background: white; color: {INK};
  font: 15px/1.5 {FONT}; }}
figure {{ margin: 0 0 20px; }}
h1 {{ font-size: 20px; line-height: 1.3; margin: 20px 0 4px; white-space: pre-wrap; overflow-wrap: anywhere; }}
h2 {{ font-size: 16px; margin: 24px 0 6px; }}
p, ul {{ margin: 6px 0; max-width: 90ch; overflow-wrap: anywhere; }}
.subtitle, .sources, footer {{ color: {SOFT}; }}
.sentence {{ font-size: 17px; }}
.scroll {{ overflow-x: auto; margin: 14px 0; }}
table {{ border-collapse: collapse; font-size: 14px; }}
caption {{ text-align: left; font-weight: 600; padding: 4px 0; }}
th, td {{ padding: 3px 14px 3px 0; text-align: left; vertical-align: top; border-bottom: 1px solid {GRID}; }}
th {{ border-bottom: 1px solid {SOFT}; font-weight: 600; }}
.n {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
footer {{ margin-top: 28px; font-size: 13px; }}
@media print {{ @page {{ size: landscape; }} .modebar-container {{ display: none; }} figure {{ break-inside: avoid; }}
}}
"""


def html_page(chart: Chart, report: Report) -> str:
    """One HTML file of the chart, with the report's sentence, tables, notes and sources below.

    It is whole in itself and the same for the same input; plotly's script makes 5 MB of it.

    Raises:
        InputError: plotly is not installed.
    """
    body = figure_fragment(chart, report.results, include_js=True) + report_fragment(report)
    return html_document(chart.title, body)


def html_document(title: str, body: str) -> str:
    """A page around ``body``, HTML of which :func:`figure_fragment` made the figures.

    Raises:
        InputError: plotly is not installed.
    """
    from ...version import __version__

    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in _scripts())
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}; form-action \'none\'">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n{body}"
        f"<footer>mla-calc {escaped(__version__)}</footer>\n</body>\n</html>\n"
    )


def figure_fragment(chart: Chart, results: Results, include_js: bool) -> str:
    """A ``figure`` element for a page of :func:`html_document`; the first of a page includes the scripts.

    Raises:
        InputError: plotly is not installed.
    """
    made = _json({"config": CONFIG} | page_figure(chart, results))
    scripts = "".join(f"<script>{script}</script>\n" for script in _scripts()) if include_js else ""
    label = escaped(f"{chart.title}. {chart.caption}")
    return (
        f'{scripts}<figure class="chart">\n'
        f'<div role="img" aria-label="{label}"></div>\n'
        f'<script type="application/json">{made}</script>\n'
        "<noscript><p>The figure needs JavaScript.</p></noscript>\n</figure>\n"
    )


def report_fragment(report: Report) -> str:
    """What a report says in words and tables, as HTML."""
    parts = [f"<h1>{escaped(report.title)}</h1>", _paragraph("subtitle", report.subtitle)]
    parts.append(_paragraph("sentence", report.sentence))
    parts += [_table(table, report) for table in report.tables]
    parts += [list_html(report.notes), _explanations(report)]
    if report.sources:
        parts.append(_paragraph("sources", "Sources: " + "; ".join(report.sources)))
    return "\n".join(part for part in parts if part) + "\n"


def _table(table: Table, report: Report) -> str:
    numeric = numeric_columns(table)
    caption = f"<caption>{escaped(table.caption)}</caption>" if table.caption else ""
    head = _row("th", table.headers, numeric)
    rows = "\n".join(_row("td", row, numeric) for row in cells(table, report))
    return f'<div class="scroll"><table>{caption}<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody></table></div>'


def _row(tag: str, entries: Iterable[str], numeric: set[int]) -> str:
    named = ((' class="n"' if index in numeric else "", text) for index, text in enumerate(entries))
    return "<tr>" + "".join(f"<{tag}{name}>{escaped(text)}</{tag}>" for name, text in named) + "</tr>"


def _explanations(report: Report) -> str:
    if not report.explanations:
        return ""
    lines = [f"{item['key']} = {item['value']} = {item['formula']} = {item['numbers']}" for item in explained(report)]
    inputs = list_html(input_lines(report))
    return f"<h2>How each figure comes about</h2>\n{list_html(lines)}\n<h2>Where the inputs were read</h2>\n{inputs}"


def _paragraph(name: str, text: str) -> str:
    return f'<p class="{name}">{escaped(text)}</p>' if text else ""


def _scripts() -> tuple[str, str]:
    """Plotly's own script and the one that hands it the figures."""
    return plotly_module("offline").get_plotlyjs(), STARTER


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _json(value: object) -> str:
    """JSON that cannot end the element it stands in; by Python's own encoder, whatever else is installed."""
    return str(plotly_module("io.json").to_json_plotly(value, engine="json"))
