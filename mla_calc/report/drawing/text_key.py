"""The key of a chart in text: a character for every series or record, so that none is told by its colour alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from .. import format as fmt
from ..chart import Bars, Cells, Colour, Line, Mark, Marker, Points, Roof, Rule
from ..chart_data import number_at, value
from .text_marks import MANY, SHADES, colour_of, key_colour, rule_sign
from .text_sheet import Scene

CROWD: dict[Marker, str] = {
    "circle": "o", "square": "#", "triangle": "^", "diamond": "%", "plus": "+", "cross": "x", "star": "*",
}  # fmt: skip
"""What more points than that share, by their marker."""
SAMPLES = {"solid": "\u2500\u2500", "dashed": "\u2574\u2574", "dotted": "\u00b7\u00b7"}
"""What a line looks like."""
AREA = re.compile(r"\s*[,;:(]\s*area\b.*$")
"""The part of a label that tells of areas, which characters do not have."""
NUMBERS = re.compile(r":\s+\d[^:]*$")
"""The part of a roof's label that has its ceilings."""
RIDGES, CROSSINGS, OTHERS = "ridges", "crossings", "no room in the chart"
"""What heads the texts that found no place: of rules and of lines under roofs, and elsewhere."""

Part = tuple[str, Colour]
"""A text and its colour."""
GAP: Part = ("  ", "ink")
"""Between two items of a line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a key: what stands in the chart, its colour, and its name."""

    sign: str
    name: str
    colour: Colour
    roof: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """The entries of one mark, under its label where they have names of their own."""

    heading: str
    entries: tuple[Entry, ...]


def key(scene: Scene) -> tuple[dict[int, list[str]], list[Group]]:
    """The characters of each mark's records by the mark's place in the panel, and the groups of the key.

    Capital letters are points, small letters lines, digits roofs. Where they run out they start again. A mark without
    a label is the same thing elsewhere as the one before it that looks alike but for colour, and has its characters.
    """
    pools = (_characters(ascii_uppercase + ascii_lowercase), _characters(ascii_lowercase), _characters(digits[1:]))
    symbols: dict[int, list[str]] = {}
    groups: list[Group] = []
    alike: dict[Any, list[str]] = {}
    for index, mark in enumerate(scene.panel.marks):
        known = None if getattr(mark, "label", "") else alike.get(_shape(mark))
        signs, group = (known, Group("", ())) if known else _of(mark, scene, *pools)
        symbols[index] = alike[_shape(mark)] = signs
        if group.entries:
            groups.append(group)
    return symbols, groups


def _shape(mark: Mark) -> Any:
    """What a mark looks like without its colour."""
    look = getattr(mark, "look", None)
    return type(mark), look and replace(look, colour="ink")


def _characters(pool: str) -> Iterator[str]:
    while True:
        yield from pool


def _of(
    mark: Mark, scene: Scene, capitals: Iterator[str], small: Iterator[str], numbers: Iterator[str]
) -> tuple[list[str], Group]:
    if isinstance(mark, Points):
        return _points(mark, scene, capitals)
    if isinstance(mark, Line | Bars):
        if not scene.drawn(mark):
            return [], Group("", ())
        sign = next(capitals if isinstance(mark, Bars) else small)
        return [sign], _single(sign, mark.label, mark)
    if isinstance(mark, Roof):
        if not number_at(scene.results, mark.slope) or not number_at(scene.results, mark.flat):
            return [], Group("", ())
        sign = next(numbers)
        return [sign], _single(f"{sign} {SAMPLES[mark.look.dash]}", mark.label, mark)
    if isinstance(mark, Rule) and mark.label and number_at(scene.results, mark.path) is not None:
        return [], _single(SAMPLES[mark.look.dash], mark.label, mark)
    if isinstance(mark, Cells):
        return [], Group("", (Entry(SHADES["below"], mark.below, "blue"), Entry(SHADES["above"], mark.above, "orange")))
    return [], Group("", ())


def _single(sign: str, label: str, mark: Line | Roof | Rule | Bars) -> Group:
    return Group("", (Entry(sign, label, key_colour(mark), isinstance(mark, Roof)),) if label else ())


def _points(mark: Points, scene: Scene, capitals: Iterator[str]) -> tuple[list[str], Group]:
    found = scene.drawn(mark)
    label = AREA.sub("", mark.label)
    if not found:
        return [], Group("", ())
    if mark.text and len(found) <= MANY:
        entries = tuple(
            Entry(next(capitals), fmt.shown(value(record, mark.text), mark.kind), key_colour(mark)) for record in found
        )
        return [entry.sign for entry in entries], Group(label, entries)
    sign = CROWD[mark.look.marker] if len(found) > MANY else next(capitals)
    return [sign], Group("", (Entry(sign, label, key_colour(mark)),) if label else ())


def left_over(scene: Scene, symbols: dict[int, list[str]], left: Sequence[tuple[Mark, str]]) -> list[Group]:
    """The groups of texts that found no place in the chart, each with the sign of its mark there."""
    roofline = any(isinstance(mark, Roof) for mark in scene.panel.marks)
    places = {id(mark): place for place, mark in enumerate(scene.panel.marks)}
    groups: dict[str, list[Entry]] = {}
    for mark, text in left:
        if isinstance(mark, Rule):
            heading = RIDGES if roofline else mark.label or OTHERS
            groups.setdefault(heading, []).append(Entry(rule_sign(mark), text, colour_of(mark)))
        elif isinstance(mark, Line):
            heading = CROSSINGS if roofline else OTHERS
            groups.setdefault(heading, []).append(Entry(symbols[places[id(mark)]][0], text, colour_of(mark)))
    return [Group(heading, tuple(entries)) for heading, entries in groups.items()]


def told(groups: Sequence[Group], hidden: dict[str, str]) -> list[Group]:
    """The groups, with what stands in place of a sign that the chart has nowhere."""
    return [
        replace(group, entries=tuple(
            replace(entry, name=f"{entry.name} (at {hidden[entry.sign[0]]})") if entry.sign[0] in hidden else entry
            for entry in group.entries
        ))
        for group in groups
    ]  # fmt: skip


def wrapped(groups: Sequence[Group], width: int, most: int, whole: bool = False) -> list[list[Part]]:
    """The key as lines of coloured parts, at most ``width`` columns wide and ``most`` lines long.

    Each group begins a line where there is room for that. Where there is not, groups follow one another, and then roofs
    are told without their numbers. What still has no room at the end is counted, or is there if the key is ``whole``.
    """
    short = [replace(group, entries=tuple(map(_without_numbers, group.entries))) for group in groups]
    ways = ((groups, True), (groups, False), (short, False))
    tried = [_flowed(found, width, apart) for found, apart in ways]
    lines = next((each for each in tried if len(each) <= most), tried[-1])
    kept = lines if len(lines) <= most or whole else lines[: max(0, most - 1)]
    left = sum(map(len, lines[len(kept) :]))
    spread = [[part for place, item in enumerate(line) for part in ([GAP] * (place > 0) + item)] for line in kept]
    if left:
        spread.append([(f"... and {left} more"[:width], "soft")])
    return spread if whole else spread[:most]


def _without_numbers(entry: Entry) -> Entry:
    return replace(entry, name=NUMBERS.sub("", entry.name)) if entry.roof else entry


def _flowed(groups: Sequence[Group], width: int, apart: bool) -> list[list[list[Part]]]:
    """Lines of items of parts."""
    lines: list[list[list[Part]]] = []
    used, before = width, ""
    for group in groups:
        for place, entry in enumerate(group.entries):
            heading = [_ink(group.heading + ": ")] if group.heading and place == 0 else []
            item = _cut([*heading, (entry.sign, entry.colour), _ink(" " + entry.name)], width)
            length = sum(len(text) for text, _ in item)
            if used + len(GAP[0]) + length > width or (apart and place == 0 and (group.heading or before)):
                lines.append([])
                used = -len(GAP[0])
            lines[-1].append(item)
            used += len(GAP[0]) + length
        before = group.heading
    return lines


def _ink(text: str) -> Part:
    return text, "ink"


def _cut(piece: list[Part], width: int) -> list[Part]:
    """A piece that is wider than a line, cut at its end."""
    parts: list[Part] = []
    for text, colour in piece:
        room = width - sum(len(part) for part, _ in parts)
        parts.append((text if len(text) <= room else (text[: max(0, room - 3)] + "...")[:room], colour))
    return parts
