"""The panels: which answers each shows, and what of them comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..report.record import Cell, Explanation, Report, Table
from .answers import Answers, Wrong
from .state import State

Found = Report | Wrong
FEW_ROWS = 32
"""Requests up to which the engines answer at once."""
DECODE = "total_decode_bound_s"
STARTED_WITH = ("--max-model-len", "--cache-budget")
"""Options of ``explore`` that no knob sets."""
ENGINES = {"vLLM": "dispatch-vllm", "SGLang": "dispatch-sglang"}
"""The engines by name, and the answer that each gives."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: its name, title and key, the answers that it is made of, and how."""

    name: str
    title: str
    asks: tuple[str, ...]
    made: Callable[[State, tuple[Found, ...]], Found]

    def found(self, answers: Answers, state: State, explain: bool = False) -> Found:
        """What the panel shows of ``state``."""
        return self.made(state, tuple(answers.answer(state, name, explain) for name in self.asks))

    def at_once(self, answers: Answers, state: State) -> bool:
        """Whether that takes no longer than a key press may: engines price every row of a batch."""
        few = self.name != "engines" or state.group_batch <= FEW_ROWS
        return few or all(answers.known(state, name) for name in self.asks)


def _as_it_is(_: State, found: tuple[Found, ...]) -> Found:
    return found[0]


def _kernels_first(_: State, found: tuple[Found, ...]) -> Found:
    """The kernels of both paths before the figures per pair: they are what changes."""
    report = found[0]
    return report if isinstance(report, Wrong) else replace(report, tables=report.tables[::-1])


def _capacity(state: State, found: tuple[Found, ...]) -> Found:
    """What fits; the decode bound named for what it is, and of what is missing how it is given here."""
    report = found[0]
    if isinstance(report, Wrong):
        return _with_way(report)
    if not state.sparse:
        return report
    return replace(report, tables=tuple(_dense_named(table) for table in report.tables))


def _with_way(wrong: Wrong) -> Wrong:
    """A refusal that asks for an option, with where that is in the explorer."""
    text = f"{wrong.message} {wrong.hint or ''}"
    asked = [option for option in STARTED_WITH if option in text]
    ways = ["Here w sets --weight-bytes."] if "--weight-bytes" in text else []
    if asked:
        ways.append(f"{' and '.join(asked)} is an option at the start: q quits and prints the line to put it in.")
    hint = f"{wrong.hint}. " if wrong.hint and ways else wrong.hint or ""
    return Wrong(wrong.message, hint + " ".join(ways) or None)


def _dense_named(table: Table) -> Table:
    """The table with the bound, which ``capacity`` has of dense attention alone, named so."""
    rows = tuple(
        (f"{row[0]} (dense attention)", *row[1:])
        if any(isinstance(cell, Cell) and cell.path == DECODE for cell in row)
        else row
        for row in table.rows
    )
    return replace(table, rows=rows)


def _engines(_: State, found: tuple[Found, ...]) -> Found:
    """What both engines do with the batch, side by side; what one of them cannot answer is a note."""
    reports = {name: report for name, report in zip(ENGINES, found, strict=True) if isinstance(report, Report)}
    wrong = [(name, each) for name, each in zip(ENGINES, found, strict=True) if isinstance(each, Wrong)]
    if not reports:
        return _refused(wrong)
    first = next(iter(reports.values()))
    return Report(
        command="dispatch",
        title=first.title,
        inputs={name: report.inputs for name, report in reports.items()},
        results={name: report.results for name, report in reports.items()},
        tables=(
            _paths_table(reports),
            _times_table(
                reports,
                BATCH,
                ("as chosen", "best split", "regret", "regret, all layers"),
                "the batch, per rank and layer: bounds, weights included",
            ),
            _times_table(reports, ROW, ("absorbed", "naive", "regret"), "one row of it, weights left out"),
        ),
        sentence=" ".join(f"{name}: {_rules(report)}." for name, report in reports.items()),
        notes=(
            *(f"{name}: {each.message}" for name, each in wrong),
            *dict.fromkeys(note for report in reports.values() for note in report.notes),
        ),
        sources=tuple(dict.fromkeys(source for report in reports.values() for source in report.sources)),
        explanations=tuple(
            Explanation(f"{name}.{item.path}", item.formula, item.names, item.cite)
            for name, report in reports.items()
            for item in report.explanations
        ),
        input_sources=_sources(reports),
    )


def _refused(wrong: list[tuple[str, Wrong]]) -> Wrong:
    """Why neither engine answers; once, where both say the same."""
    messages = {each.message for _, each in wrong}
    hints = "; ".join(dict.fromkeys(each.hint for _, each in wrong if each.hint))
    text = messages.pop() if len(messages) == 1 else "; ".join(f"{name}: {each.message}" for name, each in wrong)
    return Wrong(text, hints or None)


def _sources(reports: dict[str, Report]) -> dict[str, tuple[str, ...]]:
    """Where the inputs of all reports were read; an input of several has the sources of each."""
    found: dict[str, tuple[str, ...]] = {}
    for report in reports.values():
        for key, texts in report.input_sources.items():
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), *texts)))
    return found


def _paths_table(reports: dict[str, Report]) -> Table:
    rows = tuple(
        (
            _release(report),
            Cell(f"{name}.backend", "text"),
            Cell(f"{name}.threshold"),
            Cell(f"{name}.rows[0].path", "text"),
            Cell(f"{name}.batch.absorbed_rows"),
            Cell(f"{name}.batch.naive_rows"),
        )
        for name, report in reports.items()
    )
    return Table(("engine", "backend", "threshold", "path taken", "rows absorbed", "expanded"), rows)


BATCH = ("batch.chosen_bound_s", "batch.best_bound_s", "batch.regret_s", "batch.total_regret_s")
ROW = ("rows[0].absorbed_bound_s", "rows[0].naive_bound_s", "rows[0].regret_s")


def _times_table(reports: dict[str, Report], columns: tuple[str, ...], heads: tuple[str, ...], caption: str) -> Table:
    rows: tuple[tuple[str | Cell, ...], ...] = tuple(
        (_release(report), *(Cell(f"{name}.{column}", "seconds") for column in columns))
        for name, report in reports.items()
    )
    return Table(("engine", *heads), rows, caption)


def _release(report: Report) -> str:
    return str(report.inputs["engine"])


def _rules(report: Report) -> str:
    """The rules that decided, each once."""
    results: Any = report.results
    return "; ".join(dict.fromkeys(row["rule"] for row in results["rows"]))


PANELS = (
    Panel("roofline", "Roofline", ("roofline",), _as_it_is),
    Panel("kernels", "Kernels", ("flops",), _kernels_first),
    Panel("cache", "Cache", ("cache",), _as_it_is),
    Panel("capacity", "Capacity", ("capacity",), _capacity),
    Panel("crossover", "Crossover", ("crossover",), _as_it_is),
    Panel("engines", "Engines", tuple(ENGINES.values()), _engines),
)


def panel_named(name: str) -> Panel:
    """The panel of that name."""
    return next(panel for panel in PANELS if panel.name == name)
