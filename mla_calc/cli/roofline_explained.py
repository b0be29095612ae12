"""``roofline --explain``: the ridge, the kernels of the first step, and how each crossing is solved."""

from __future__ import annotations

from typing import Any

from ..costs import formulas, roofline_formulas, sparse_formulas
from ..report.record import Explanation
from . import request
from .roofline_asked import Asked
from .roofline_tables import indices, is_main


def explanations_of(asked: Asked, results: dict[str, Any]) -> tuple[Explanation, ...]:
    """The figures of the first GPU and the first step."""
    card, work = asked.cards[0], asked.works[0]
    cost = asked.cost(card, work)
    names = {
        **formulas.attention_names(asked.model, asked.layout, tp=work.tp),
        **formulas.work_names(work, cost.pairs),
        **formulas.kernel_names(cost),
        **formulas.ceiling_names(asked.ceilings(card)),
    }
    if asked.indexer and cost.sparse:
        names |= sparse_formulas.sparse_names(asked.indexer)
        names["attended_pairs"] = cost.sparse.attended_pairs
    points = results["points"]
    places = {
        (points[index]["path"], points[index]["kernel"]): index for index in indices(results, card.name, "bound")
    }  # fmt: skip
    ridge = next(
        index for index, item in enumerate(results["ridges"]) if is_main(item, card.name, asked.dtype)
    )  # fmt: skip
    texts = {
        **roofline_formulas.ridge_formulas(asked.indexer is None, ridge),
        **roofline_formulas.point_formulas(cost, places),
    }
    return (*request.explanations(texts, names), *_crossings(asked, results))


def _crossings(asked: Asked, results: dict[str, Any]) -> list[Explanation]:
    """How the crossings of what is followed are solved."""
    card, found = asked.cards[0], []
    for index, item in enumerate(results["trajectories"]):
        if item["gpu"] != card.name or item["kernel"] != asked.view.follow or item["ridge_crossing"] is None:
            continue
        subject = asked.subject(card, item["path"], item["kernel"])
        solved = roofline_formulas.crossing_formula(subject, item["axis"], item["ridge_crossing"])
        if solved:
            formula, names = solved
            path = f"trajectories[{index}].ridge_crossing"
            found.append(Explanation(path=path, formula=formula.text, names=names, cite=formula.cite))
    return found
