"""A made-up report and charts that use every kind of mark: what the renderers are tested with.

It is about pumps: ``lift`` is a rate over ``head``, bounded by a hose (slope) and a motor (flat).
"""

from __future__ import annotations

from typing import Any

from mla_calc.report.chart import (
    Axis,
    Bars,
    Cells,
    Chart,
    Line,
    Look,
    Panel,
    Points,
    Roof,
    Rows,
    Rule,
    Shown,
    Zones,
)
from mla_calc.report.record import Report

PUMPS: list[dict[str, Any]] = [
    {"name": "intake", "place": "near", "head": 1.6, "lift": 5.4e12, "share": 0.02, "time_s": 4.1e-7},
    {"name": "main stage", "place": "near", "head": 62.0, "lift": 190e12, "share": 0.61, "time_s": 1.25e-5},
    {"name": "booster", "place": "near", "head": 118.0, "lift": 310e12, "share": 0.27, "time_s": 5.5e-6},
    {"name": "outlet", "place": "near", "head": 2.1, "lift": 6.8e12, "share": 0.1, "time_s": 2.05e-6},
    {"name": "dry", "place": "near", "head": None, "lift": None, "share": None, "time_s": None},
    {"name": "intake", "place": "far", "head": 1.7, "lift": 5.6e12, "share": 0.05, "time_s": 9e-7},
    {"name": "main stage", "place": "far", "head": 240.0, "lift": 700e12, "share": 0.75, "time_s": 1.35e-5},
    {"name": "outlet", "place": "far", "head": 600.0, "lift": 930e12, "share": 0.2, "time_s": 3.6e-6},
]
STEPS: list[dict[str, Any]] = [
    {"stages": 1, "head": 1.9, "lift": 6.3e12},
    {"stages": 2, "head": 3.7, "lift": 12.4e12},
    {"stages": 4, "head": 7.4, "lift": 24.8e12},
    {"stages": 8, "head": 14.6, "lift": 48.9e12},
    {"stages": 16, "head": 28.4, "lift": 95.1e12},
    {"stages": 32, "head": 54.0, "lift": 181e12},
    {"stages": 64, "head": 97.9, "lift": 328e12},
    {"stages": 128, "head": 165.0, "lift": 553e12},
    {"stages": 256, "head": 250.0, "lift": 838e12},
    {"stages": 512, "head": 337.0, "lift": 989.4e12},
    {"stages": 1024, "head": 408.0, "lift": 989.4e12},
]
BYTES: list[dict[str, Any]] = [
    {"tanks": tanks, "kind": kind, "per_tank": per_tank, "all": per_tank * tanks}
    for kind, first, least in (("split", 68719476736, 1), ("kept whole", 7549747200, 7549747200))
    for tanks in (1, 2, 4, 8, 16, 32)
    for per_tank in (max(first // tanks, least),)
]
GRID: list[dict[str, Any]] = [
    {"depth": depth, "flow": flow, "ratio": None if (depth, flow) == (65536, 512) else ratio}
    for depth in (1024, 4096, 16384, 65536)
    for flow in (1, 32, 128, 512)
    for ratio in (round((96 / flow) ** 0.6 * (depth / 8192) ** 0.1, 3),)
]
PARTS: list[dict[str, Any]] = [
    {"who": "Cathedral spring", "pipe": 92_400, "joint": 3_100, "valve": 12_000},
    {"who": "Mill race, upper and lower weir together", "pipe": 70_272, "joint": 9_100, "valve": 1_024},
    {"who": "Harbour", "pipe": 18_432, "joint": 2_048, "valve": None},
    {"who": "Fen", "pipe": 1_280, "joint": 96, "valve": 640},
]

RESULTS: dict[str, Any] = {
    "ceilings": {
        "hose": 3.35e12,
        "motor": 989.4e12,
        "ridge": 295.3432835820896,
        "motor_fast": 1978.9e12,
        "ridge_fast": 590.7164179104478,
        "measured_hose": 2.98e12,
        "measured_motor": 790e12,
        "measured_ridge": 265.1006711409396,
        "unknown": None,
    },
    "pumps": PUMPS,
    "steps": STEPS,
    "bytes": BYTES,
    "break_even_tanks": 9.102222222222222,
    "limit_bytes": 25769803776,
    "grid": GRID,
    "boundary": [
        {"depth": 1024, "flow": 68.0, "spread": "61 to 74"},
        {"depth": 4096, "flow": 84.0, "spread": "80 to 90"},
        {"depth": 16384, "flow": 109.0, "spread": "100 to 120"},
        {"depth": 65536, "flow": None, "spread": None},
    ],
    "thresholds": {"small": 128, "large": 512},
    "parts": PARTS,
}

CAPTION = "Test pump 80  ·  Fen-V3  ·  two lanes, dry  ·  made up"

PUMP_SHOWN = (Shown("share of time", "share", "percent"), Shown("time", "time_s", "short_seconds"))
HEAD = Axis("head, m/litre", "log")
LIFT = Axis("lift, Tl/s", "log", unit=1e12)

_ROOFS = (
    Zones("ceilings.ridge", "hose binds", "motor binds"),
    Roof("ceilings.hose", "ceilings.motor", "datasheet, slow: 3.35 Tm/s, 989.4 Tl/s", Look("ink"),
         (("hose", "Pump book, p. 7"), ("motor", "Pump book, p. 9"))),
    Roof("ceilings.hose", "ceilings.motor_fast", "datasheet, fast: 3.35 Tm/s, 1979 Tl/s", Look("blue")),
    Roof("ceilings.measured_hose", "ceilings.measured_motor", "measured, slow: 2.98 Tm/s, 790 Tl/s",
         Look("soft", dash="dashed")),
    Roof("ceilings.unknown", "ceilings.motor", "of a hose that is not known"),
    Rule("ceilings.ridge", "x", "ridge {} m/l", look=Look("ink", dash="dotted")),
    Rule("ceilings.ridge_fast", "x", "ridge {} m/l", look=Look("blue", dash="dotted")),
    Rule("ceilings.measured_ridge", "x", "measured ridge {} m/l"),
    Rule("ceilings.unknown", "x", "not known"),
)  # fmt: skip


def _pumps(place: str, look: Look) -> Points:
    return Points(
        Rows("pumps", (("place", place),)), "head", "lift", f"{place} pumps, area: share of time", look,
        area="share", text="name", shown=PUMP_SHOWN,
    )  # fmt: skip


ROOFLINE = Chart(
    "Pumps under the roof",
    CAPTION,
    (
        Panel(
            HEAD,
            LIFT,
            (
                *_ROOFS,
                Line(Rows("steps"), "head", "lift", "over stages", Look("green", "triangle"), "stages", "integer",
                     arrow=True),
                _pumps("near", Look("blue")),
                _pumps("far", Look("orange", "square")),
                Points(Rows("pumps", (("name", "intake"),)), "head", "lift", "measured", Look("red", "cross")),
            ),
        ),
    ),
)  # fmt: skip
"""One panel: zones, roofs, rules, a trajectory with an arrow, points by area."""

SIDE_BY_SIDE = Chart(
    "Pumps near and far",
    CAPTION,
    (
        Panel(HEAD, LIFT, (*_ROOFS, _pumps("near", Look("blue"))), "near"),
        Panel(
            HEAD,
            LIFT,
            (
                *_ROOFS,
                _pumps("far", Look("orange", "square")),
                Points(Rows("pumps", (("place", "near"),)), "head", "lift", "the near ones", Look("soft", faint=True)),
                Points(Rows("pumps", (("place", "far"),)), "head", "lift", "hollow", Look("pink", hollow=True)),
            ),
            "far",
        ),
    ),
    shared=True,
)
"""Two panels with the same limits."""

TANKS = Axis("tanks", "log", kind="integer", ticks=(1, 2, 4, 8, 16, 32))


def _bytes(kind: str, key: str, look: Look) -> Line:
    return Line(Rows("bytes", (("kind", kind),)), "tanks", key, kind, look, shown=(Shown("all", "all", "binary"),))


CURVES = Chart(
    "Water per tank and of all tanks",
    CAPTION,
    (
        Panel(
            TANKS,
            Axis("per tank, GiB", "log", unit=float(2**30)),
            (
                _bytes("split", "per_tank", Look("blue")),
                _bytes("kept whole", "per_tank", Look("orange", "square", "dashed")),
                Rule("break_even_tanks", "x", "even at {} tanks"),
                Rule("limit_bytes", "y", "limit {}", "binary", look=Look("red", dash="dashed")),
            ),
            "per tank",
        ),
        Panel(
            TANKS,
            Axis("all tanks, GiB", unit=float(2**30)),
            (
                _bytes("split", "all", Look("blue")),
                _bytes("kept whole", "all", Look("orange", "square", "dashed")),
                Rule("break_even_tanks", "x"),
                Rule("ceilings.unknown", "y", "not known"),
            ),
            "all tanks",
        ),
    ),
)
"""Two panels of their own limits: lines, rules of both directions, ticks that are given."""

DEPTH = Axis("depth", "log", kind="integer", ticks=(1024, 4096, 16384, 65536))
FLOW = Axis("flow", "log", kind="integer", ticks=(1, 32, 128, 512))

MAP = Chart(
    "Which pump is faster",
    CAPTION,
    (
        Panel(
            DEPTH,
            FLOW,
            (
                Cells(Rows("grid"), "depth", "flow", "ratio", "screw pump faster", "piston pump faster", "ratio",
                      "factor", (Shown("ratio", "ratio", "factor"),)),
                Rule("thresholds.small", "y", "small house, from {}", "integer", look=Look("ink", dash="dotted")),
                Line(Rows("boundary"), "depth", "flow", "measured boundary", Look("ink", "diamond", hollow=True),
                     shown=(Shown("spread", "spread"),)),
            ),
        ),
    ),
)  # fmt: skip
"""A map of cells with a boundary and a threshold drawn on it."""

CATEGORY_MAP = Chart(
    "Which pump is faster, a row for every flow",
    CAPTION,
    (
        Panel(
            Axis("depth", "category", kind="integer"),
            Axis("flow", "category", kind="integer"),
            (
                Cells(Rows("grid"), "depth", "flow", "ratio", "screw pump faster", "piston pump faster", "ratio",
                      "factor"),
            ),
        ),
    ),
)  # fmt: skip
"""The same cells on axes with a place of equal size for every value."""

_PARTS = (
    Bars(Rows("parts"), "who", "pipe", "bytes", "pipe", Look("blue"), (Shown("joint", "joint", "bytes"),)),
    Bars(Rows("parts"), "who", "joint", "bytes", "joint", Look("orange")),
    Bars(Rows("parts"), "who", "valve", "bytes", "valve", Look("green")),
)
STACKED = Chart(
    "Parts of a line, laid end to end",
    CAPTION,
    (Panel(Axis("grams", kind="integer"), Axis("", "category", kind="text"), _PARTS, stacked=True),),
)
GROUPED = Chart(
    "Parts of a line, side by side",
    CAPTION,
    (Panel(Axis("grams", "log", kind="integer"), Axis("", "category", kind="text"), _PARTS),),
)

CHARTS: dict[str, Chart] = {
    "roofline": ROOFLINE,
    "side-by-side": SIDE_BY_SIDE,
    "curves": CURVES,
    "map": MAP,
    "category-map": CATEGORY_MAP,
    "stacked": STACKED,
    "grouped": GROUPED,
}

REPORT = Report(
    command="pumps",
    title="Fen-V3   8 pumps",
    inputs={"pump": "test-80"},
    results=RESULTS,
    tables=(),
    sentence="Pumps lift water.",
    notes=("The numbers are made up.",),
    sources=("Pump book, p. 7",),
    chart=ROOFLINE,
    chart_on_terminal=True,
)
