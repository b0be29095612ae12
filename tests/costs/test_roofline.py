"""Roofs, ridges, points and crossings of the roofline.

Sources: docs/cost-model.md, section 5; the chapter, section 1; presets/gpus. Formulas at values that are no whole
numbers are written down a second time here, in fractions.
"""

from __future__ import annotations

import datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mla_calc.costs import formulas, roofline_formulas, sparse_formulas
from mla_calc.costs.flops import flops_cost, with_estimates
from mla_calc.costs.layouts import load_layout
from mla_calc.costs.paths import PATHS, Work
from mla_calc.costs.quadratics import NotPolynomialError, square_root, through
from mla_calc.costs.ridge import AXES, Axis, Subject, heads_times_queries, ridge_crossing
from mla_calc.costs.roofline import Point, Step, likely_cause, point, points_of, ridges_of, roofs_of
from mla_calc.costs.sparse import paths_of
from mla_calc.costs.trajectories import trajectory, usual_values
from mla_calc.hardware.gpu import GPU, Link, Measured, Memory
from mla_calc.hardware.load import load_gpu
from mla_calc.hardware.roofline import Ceilings, datasheet_ceilings
from mla_calc.models.attention import MLA, Indexer
from mla_calc.models.load import load_model
from tests.shapes import CHEAP_CORE, DSV3, H20, H100, H200, UNEVEN, V2_LITE, ceilings, divisors, kernel_table, mlas

DECODE = Work(queries=1, context=4096, row_bytes=1152)
BF16 = load_layout("bf16")
RIDGE = Fraction(9894, 33_50) * 100
"""Of an H100 in bf16: 989.4 TFLOP/s over 3.35 TB/s."""


def absorbed(work: Work = DECODE, on: Ceilings = H100, mla: MLA = DSV3, kernel: str = "attention") -> Subject:
    return Subject(mla, PATHS["absorbed"], kernel, work, on)


# --- roofs and ridges


def gpu(**fields: Any) -> GPU:
    return GPU(
        name="a GPU", vendor="somebody", peak_tflops={"bf16": 100.0, "fp8": 200.0}, memory=Memory(bandwidth_tbs=2.0),
        **fields,
    )  # fmt: skip


def measured(quantity: str, value: float) -> Measured:
    return Measured(quantity=quantity, value=value, source=f"{quantity} {value}", date=datetime.date(2026, 1, 2))


def test_the_ridge_of_an_h100() -> None:
    # the chapter: 989.4 / 3.35 = 295.3
    sheet = next(item for item in ridges_of(roofs_of(load_gpu("h100"), ["bf16"])) if item.kind == "datasheet")
    assert sheet.level == "memory"
    assert sheet.ridge_flop_per_byte == pytest.approx(float(RIDGE), rel=1e-15)
    assert round(sheet.ridge_flop_per_byte, 1) == 295.3


def test_every_roof_of_a_gpu() -> None:
    card = gpu(
        link=Link(one_way_gbs=450.0),
        pcie_one_way_gbs=64.0,
        measured=(
            measured("bf16_gemm_tflops", 80.0),
            measured("bf16_gemm_tflops", 90.0),
            measured("fp8_gemm_tflops", 150.0),
            measured("memory_tbs", 1.8),
            measured("mla_decode_bf16_tflops", 70.0),
        ),
        sources={"default": ("a datasheet",), "memory": ("another",)},
    )
    found = [
        (roof.dtype, roof.level, roof.kind, roof.value, roof.unit, roof.source) for roof in roofs_of(card, ["bf16"])
    ]
    assert found == [
        ("bf16", None, "datasheet", 100e12, "flop_per_s", "a datasheet"),
        (None, "memory", "datasheet", 2e12, "byte_per_s", "another"),
        (None, "link", "datasheet", 450e9, "byte_per_s", "a datasheet"),
        (None, "pcie", "datasheet", 64e9, "byte_per_s", "a datasheet"),
        ("bf16", None, "measured", 80e12, "flop_per_s", "bf16_gemm_tflops 80.0"),
        ("bf16", None, "measured", 90e12, "flop_per_s", "bf16_gemm_tflops 90.0"),
        (None, "memory", "measured", 1.8e12, "byte_per_s", "memory_tbs 1.8"),
    ]


def test_ridges_pair_one_kind_with_itself_and_take_the_highest_measured() -> None:
    card = gpu(
        pcie_one_way_gbs=50.0,
        measured=(measured("bf16_gemm_tflops", 90.0), measured("bf16_gemm_tflops", 80.0), measured("memory_tbs", 1.8)),
    )
    found = {
        (item.dtype, item.level, item.kind): item.ridge_flop_per_byte
        for item in ridges_of(roofs_of(card, ["bf16", "fp8"]))
    }
    assert found == {
        ("bf16", "memory", "datasheet"): 50.0,
        ("bf16", "pcie", "datasheet"): 2000.0,
        ("fp8", "memory", "datasheet"): 100.0,
        ("fp8", "pcie", "datasheet"): 4000.0,
        ("bf16", "memory", "measured"): 50.0,  # 90 / 1.8; fp8 was not measured
    }


# --- points


def test_a_point_by_hand() -> None:
    # 1 query over 4,096 keys at TP 1: 2 * 4096 * 128 * 1088 FLOP; 4096 * 1152 B of cache, 128 * 1088 * 2 B of
    # query and output
    card = load_gpu("h100")
    cost = flops_cost(DSV3, 61, DECODE, datasheet_ceilings(card, "bf16"))
    found = next(
        item
        for item in points_of(cost, card, "bf16", H100, 128)
        if (item.path, item.kernel) == ("absorbed", "attention")
    )
    assert (found.flop, found.cache_bytes, found.activation_bytes) == (1_140_850_688, 4_718_592, 278_528)
    assert found.bytes == 4_997_120
    assert found.intensity_flop_per_byte == pytest.approx(1_140_850_688 / 4_997_120, rel=1e-15)
    assert found.binds == "memory"
    assert found.flop_per_s == pytest.approx(1_140_850_688 / 4_997_120 * 3.35e12, rel=1e-14)
    assert found.peak_share == pytest.approx(228.3 / 295.34, rel=1e-4)
    assert (found.kind, found.roof_share, found.above_roof, found.cause) == ("bound", 1.0, False, None)


@pytest.mark.parametrize("name", ["h100", "h200"])
def test_shares_of_time_are_of_one_path(name: str) -> None:
    card = load_gpu(name)
    on = datasheet_ceilings(card, "bf16")
    cost, _ = with_estimates(flops_cost(DSV3, 61, DECODE, on), card, DSV3, 61, DECODE, dtype="bf16", cache="bf16")
    points = points_of(cost, card, "bf16", on, 128)
    for path in ("absorbed", "naive"):
        shares = [item.time_share for item in points if (item.path, item.kind) == (path, "bound")]
        assert sum(share or 0 for share in shares) == pytest.approx(1, rel=1e-14)
        by_estimate = [item for item in points if (item.path, item.kind) == (path, "estimate")]
        assert bool(by_estimate) == (name == "h200")  # the one with a calibration
        assert sum(item.time_share or 0 for item in by_estimate) <= 1 + 1e-14
        for item in by_estimate:
            assert item.flop_per_s == item.flop / item.time_s
            assert item.roof_share == pytest.approx(item.bound_s / item.time_s, rel=1e-14)


def at_rate(flop_per_s: float, intensity: float, moved: int, card: GPU) -> Point:
    """A made-up kernel of ``moved`` bytes that ran at this rate."""
    from mla_calc.costs.paths import Kernel

    flop = round(intensity * moved)
    kernel = Kernel("attention", flop, moved, 0, 0)
    step = Step(tp=1, heads=128, batch=1, queries=1, context=4096)
    return point(
        kernel, step, card, Ceilings(10**14, 2 * 10**12), "measured", path="absorbed", dtype="bf16",
        seconds=flop / flop_per_s,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rate", "moved", "l2", "words"),
    [
        (30e12, 10**7, 50.0, "cache hits: 10.0 MB fit"),
        (30e12, 10**9, 50.0, "do not fit into the 52.4 MB"),
        (30e12, 10**7, None, "not known"),
        (150e12, 10**7, 50.0, "sparse (2:4)"),
        (200e12, 10**7, 50.0, "sparse (2:4)"),  # exactly twice the peak
        (300e12, 10**7, 50.0, "a wrong dtype, device or unit"),
    ],
)
def test_the_cause_of_a_point_above_its_roof(rate: float, moved: int, l2: float | None, words: str) -> None:
    found = at_rate(rate, 10.0, moved, gpu(l2_mib=l2))  # the roof at 10 FLOP/B: 20 TFLOP/s
    assert found.above_roof
    assert found.roof_share == pytest.approx(rate / 20e12, rel=1e-6)
    assert words in (found.cause or "")


@pytest.mark.parametrize("rate", [1e12, 19.9e12, 20e12])
def test_what_is_on_or_below_its_roof_has_no_cause(rate: float) -> None:
    found = at_rate(rate, 10.0, 10**7, gpu(l2_mib=50.0))
    assert (found.above_roof, found.cause) == (False, None)


def test_a_rate_of_the_peak_itself_is_not_above_it() -> None:
    assert "cache hits" in likely_cause(1.0, 10, 100.0)


# --- where the ridge is crossed, by hand


def test_heads_times_queries_of_a_full_block() -> None:
    # x heads * queries: 2176 S x = ridge * (1152 S + 2176 x)
    expected = RIDGE * 1152 * 4096 / (2176 * (4096 - RIDGE))
    work = Work(queries=1, context=4096, row_bytes=1152, causal=False)
    assert heads_times_queries(absorbed(work)) == pytest.approx(float(expected), rel=1e-14)
    assert round(float(expected), 1) == 168.5
    # by context alone 156.4 (test_intensity.py), which a long context tends to
    long = Work(queries=1, context=1 << 30, row_bytes=1152, causal=False)
    assert heads_times_queries(absorbed(long)) == pytest.approx(float(RIDGE * 1152 / 2176), rel=1e-6)


def test_heads_times_queries_below_one_query() -> None:
    # an fp8 row of 576 B: half the heads are enough, which 128 heads and one query are above
    work = Work(queries=1, context=1 << 30, row_bytes=576, causal=False)
    assert heads_times_queries(absorbed(work)) == pytest.approx(float(RIDGE * 576 / 2176), rel=1e-6)
    assert heads_times_queries(absorbed(work)) == pytest.approx(78.2, abs=0.05)


def test_tp_is_solved_in_heads_per_rank() -> None:
    # two queries over 4,096 keys in full, h heads a rank: 2 * 2176 S h = ridge * (1152 S + 2 * 2176 h)
    heads = RIDGE * 1152 * 4096 / (2 * 2176 * (4096 - RIDGE))
    crossing = ridge_crossing(absorbed(Work(queries=2, context=4096, row_bytes=1152, causal=False)), "tp")
    assert [float(value) for value in crossing.values] == pytest.approx([float(128 / heads)], rel=1e-14)
    assert crossing.note == "compute binds below, memory above"


def test_context_is_solved() -> None:
    # one query of 128 heads on an H200 (206.125 FLOP/B): 2 * 128 * 1088 S = ridge * (1152 S + 278528)
    ridge = Fraction(9894, 48)
    expected = ridge * 278_528 / (278_528 - ridge * 1152)
    crossing = ridge_crossing(absorbed(on=H200), "context")
    assert crossing.values == (expected,)
    assert crossing.note == "memory binds below, compute above"


def test_what_never_crosses_says_on_which_side_it_stays() -> None:
    assert ridge_crossing(absorbed(), "context").note == "memory binds throughout"  # 241.8 at most, the ridge 295.3
    assert ridge_crossing(absorbed(), "batch").note == "memory binds: one intensity for all"
    assert ridge_crossing(absorbed(on=H20), "batch").note == "compute binds: one intensity for all"
    assert ridge_crossing(absorbed(), "tp").note == "memory binds: the ridge takes 168.5 heads per rank"
    assert ridge_crossing(absorbed(on=H20), "queries").note == "compute binds: the ridge lies at 0.1544 of one"


def test_a_step_on_the_ridge_itself() -> None:
    # a GPU whose ridge is the intensity of one query over 4,096 keys
    on = Ceilings(1_140_850_688, 4_997_120)
    assert ridge_crossing(absorbed(on=on), "queries").values == (1,)
    assert ridge_crossing(absorbed(on=on), "queries").note == "on the ridge at 1, compute binds above"
    assert ridge_crossing(absorbed(on=on), "tp").note == "on the ridge at 1, memory binds above"


def test_causal_queries_may_cross_twice() -> None:
    # naive attention: Q keys per byte and less again as Q nears S, where half of the pairs are masked
    subject = Subject(DSV3, PATHS["naive"], "attention", Work(queries=1, context=1160, row_bytes=1152), H100)
    crossing = ridge_crossing(subject, "queries")
    assert len(crossing.values) == 2
    up, down = crossing.values
    assert crossing.note == f"memory binds below, compute from {float(up):,.4g}, memory from {float(down):,.4g}"
    # per head and value, Q S - Q^2 / 2 + Q / 2 pairs at 2 FLOP over (S + Q) * 2 B
    for x in crossing.values:
        assert float((x * 1160 - x * x / 2 + x / 2) / (1160 + x)) == pytest.approx(float(RIDGE), rel=1e-14)


# --- where the ridge is crossed, in general


def real_kernel(mla: MLA, path: str, axis: Axis, work: Work, x: Fraction) -> tuple[Fraction, Fraction]:
    """(FLOP, bytes) of attention at any x of an axis, by the table of docs/cost-model.md, section 5."""
    values = {name: Fraction(getattr(work, name)) for name in ("batch", "queries", "context", "tp")} | {axis: x}
    b, q, s, t = (values[name] for name in ("batch", "queries", "context", "tp"))
    h, r, dn, dr, dv = mla.heads / t, mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim, mla.v_head_dim
    pairs = q * (s - q) + q * (q + 1) / 2 if work.causal else q * s
    if path == "absorbed":
        return 2 * b * pairs * h * (2 * r + dr), b * s * work.row_bytes + b * q * h * (2 * r + dr) * 2
    return 2 * b * pairs * h * (dn + dr + dv), 2 * b * (s + q) * h * (dn + dr + dv)


@st.composite
def works(draw: st.DrawFn, mla: MLA) -> Work:
    context = draw(st.integers(1, 60))
    return Work(
        queries=draw(st.integers(1, context)),
        context=context,
        row_bytes=draw(st.sampled_from([mla.row_values, 2 * mla.row_values])),
        batch=draw(st.integers(1, 5)),
        tp=draw(st.sampled_from(divisors(mla.heads))),
        causal=draw(st.booleans()),
    )


@given(data=st.data(), mla=mlas(), on=ceilings(), axis=st.sampled_from(AXES), path=st.sampled_from(sorted(PATHS)))
def test_at_the_crossing_the_intensity_is_the_ridge(data: Any, mla: MLA, on: Ceilings, axis: Axis, path: str) -> None:
    work = data.draw(works(mla))
    crossing = ridge_crossing(Subject(mla, PATHS[path], "attention", work, on), axis)
    for x in crossing.values:
        flop, moved = real_kernel(mla, path, axis, work, x)
        # exact where the root is rational; else to 2**-128 of a root, far below a double's digits
        assert float(flop * on.bytes_per_s / (moved * on.flop_per_s)) == pytest.approx(1, rel=1e-15)


def check_parity(subject: Subject, axis: Axis, last: int) -> int:
    """Between whole numbers with different signs of D is an odd number of crossings, else an even one; how many."""
    heads = subject.mla.heads
    low = subject.work.queries if axis == "context" else 1
    crossings = ridge_crossing(subject, axis).values
    if axis == "tp":
        crossings = tuple(Fraction(heads) / value for value in crossings)
        last = heads
    elif axis == "queries":
        last = subject.work.context
    signs = [(x, subject.difference(axis, x)) for x in range(low, last + 1)]
    for (x, left), (y, right) in pairwise(signs):
        if left and right:
            inside = sum(x < value <= y for value in crossings)
            assert inside % 2 == ((left > 0) != (right > 0)), (axis, x, crossings)
    return len(crossings)


@given(
    data=st.data(),
    mla=mlas(),
    on=ceilings(),
    axis=st.sampled_from(AXES),
    path=st.sampled_from(sorted(PATHS)),
    kernel=st.sampled_from(["attention", "path"]),
)
def test_what_binds_changes_at_crossings_and_nowhere_else(
    data: Any, mla: MLA, on: Ceilings, axis: Axis, path: str, kernel: str
) -> None:
    check_parity(Subject(mla, PATHS[path], kernel, data.draw(works(mla)), on), axis, 90)


@given(
    data=st.data(),
    mla=mlas(),
    on=ceilings(),
    axis=st.sampled_from(AXES),
    path=st.sampled_from(sorted(PATHS)),
    kernel=st.sampled_from(["attention", "path"]),
    topk=st.integers(1, 50),
)
def test_the_same_of_sparse_attention(
    data: Any, mla: MLA, on: Ceilings, axis: Axis, path: str, kernel: str, topk: int
) -> None:
    indexer = Indexer(heads=data.draw(st.integers(1, 64)), head_dim=data.draw(st.integers(1, 128)), topk=topk, layers=1)
    work = data.draw(works(mla))
    check_parity(Subject(mla, paths_of(indexer)[path], kernel, work, on, indexer), axis, 130)


@pytest.mark.parametrize("axis", AXES)
def test_crossings_are_found_at_all(axis: Axis) -> None:
    # the properties above would hold of a solver that finds nothing where nothing changes
    found = 0
    for mla in (DSV3, V2_LITE, UNEVEN, CHEAP_CORE):
        for flop_per_s in (3, 10, 40, 200):
            work = Work(queries=3, context=40, row_bytes=2 * mla.row_values)
            on = Ceilings(flop_per_s, 1)
            for kernel in ("attention", "path"):
                found += check_parity(Subject(mla, PATHS["absorbed"], kernel, work, on), axis, 300)
    assert found > 0


# --- trajectories


def test_the_points_of_a_trajectory_are_the_kernels() -> None:
    work = Work(queries=4, context=4096, row_bytes=1152, batch=2, tp=2)
    for axis, values in (("tp", (1, 2, 128)), ("batch", (1, 7)), ("context", (4, 5000)), ("queries", (1, 4096))):
        for path in PATHS:
            for kernel in ("attention", "path"):
                subject = Subject(DSV3, PATHS[path], kernel, work, H100)
                found = trajectory(subject, axis, values, gpu="h100", dtype="bf16", path=path)  # type: ignore[arg-type]
                assert [vertex.value for vertex in found.points] == list(values)
                for vertex in found.points:
                    b, t, q, s = vertex.batch, vertex.tp, vertex.queries, vertex.context
                    pairs = q * (s - q) + q * (q + 1) // 2
                    table = kernel_table(DSV3, q, s, pairs, row=1152, b=b, t=t)[path]
                    mine = table if kernel == "path" else [row for row in table if row[0] == "attention"]
                    assert vertex.heads == 128 // t
                    assert vertex.flop == sum(flop for _, flop, _ in mine)
                    assert vertex.bytes == sum(moved for _, _, moved in mine)
                    bound = sum(max(flop / H100.flop_per_s, moved / H100.bytes_per_s) for _, flop, moved in mine)
                    assert vertex.flop_per_s == pytest.approx(vertex.flop / bound, rel=1e-14)
                    assert vertex.binds == ("compute" if vertex.flop >= RIDGE * vertex.bytes else "memory")


def test_binds_differ_on_both_sides_of_a_crossing() -> None:
    found = trajectory(absorbed(), "queries", (1, 2), gpu="h100", dtype="bf16", path="absorbed")
    assert found.ridge_crossing is not None
    assert 1 < found.ridge_crossing < 2
    assert [vertex.binds for vertex in found.points] == ["memory", "compute"]


def test_a_listed_value_may_be_the_crossing() -> None:
    # 4 queries over 4,096 keys, rectangular: 2 * 128 * 4 * 4,096 * (576 + 512) FLOPs; 4,096 rows of 1,152 B, queries
    # of 576 and outputs of 512 values, 2 B each, for 128 heads and 4 queries: a ridge made to lie exactly there
    work = Work(queries=1, context=4096, row_bytes=1152, causal=False)
    ridge = Ceilings(2 * 128 * 4 * 4096 * 1088, 4096 * 1152 + 2 * 128 * 4 * 1088)
    found = trajectory(absorbed(work, ridge), "queries", (1, 4, 16), gpu="x", dtype="bf16", path="absorbed")
    assert found.ridge_crossings == (4.0,)
    assert [(place.value, place.at_ridge) for place in found.course] == [(1, False), (4, True), (16, False)]


def test_usual_values_are_those_that_can_be() -> None:
    assert usual_values("tp", V2_LITE, DECODE) == (1, 2, 4, 8)
    assert usual_values("tp", UNEVEN, Work(queries=1, context=9, row_bytes=9, tp=12)) == (1, 2, 4, 12)  # 12 heads
    assert usual_values("queries", DSV3, Work(queries=3, context=20, row_bytes=9)) == (1, 3, 4, 16)
    assert usual_values("context", DSV3, Work(queries=5000, context=6000, row_bytes=9))[0] == 6000


# --- polynomials


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=3), st.integers(-20, 20))
def test_a_polynomial_is_found_again(coefficients: list[int], low: int) -> None:
    c0, c1, c2 = coefficients
    found = through(lambda x: c0 + c1 * x + c2 * x * x, low, None)
    assert (found.c0, found.c1, found.c2) == (c0, c1, c2)


def test_what_is_no_polynomial_is_refused() -> None:
    with pytest.raises(NotPolynomialError):
        through(lambda x: x**3, 1, None)
    with pytest.raises(NotPolynomialError):
        through(lambda x: x // 2, 1, 100)


def test_counts_that_are_rounded_are_not_solved() -> None:
    # one value of a 4-bit weight: half a byte, rounded down
    mla = MLA(
        heads=3, hidden_size=3, kv_lora_rank=1, q_lora_rank=None, qk_nope_head_dim=1, qk_rope_head_dim=0, v_head_dim=1
    )
    work = Work(queries=1, context=4, row_bytes=2, weight_bytes=Fraction(1, 2))
    crossing = ridge_crossing(Subject(replaced(mla, 101), PATHS["absorbed"], "path", work, Ceilings(5, 1)), "tp")
    assert crossing.values == ()
    assert crossing.note.startswith("not solved")


def replaced(mla: MLA, heads: int) -> MLA:
    from dataclasses import replace

    return replace(mla, heads=heads)


@given(st.fractions(min_value=0, max_value=10**12))
def test_square_roots(square: Fraction) -> None:
    root = square_root(square)
    assert root * root <= square < (root + Fraction(1, 1 << 100)) ** 2
    assert square_root(square * square) == square


# --- the texts of --explain


@pytest.mark.parametrize("tp", [1, 4])
@pytest.mark.parametrize(
    ("name", "sparse"),
    [
        ("dsv3", False), ("minicpm3-4b", False), ("dsv32", False), ("dsv32", True), ("glm-5.3-flash", True),
    ],
)  # fmt: skip
def test_texts_are_the_figures(name: str, tp: int, sparse: bool) -> None:
    item = load_model(name)
    assert item.mla
    indexer, on = item.indexer if sparse else None, H20
    row = 2 * item.mla.row_values
    for context in (1000, 5000):
        work = Work(queries=3, context=context, row_bytes=row, tp=tp, batch=2)
        cost = flops_cost(item.mla, item.cached_layers, work, on, indexer=indexer)
        points = points_of(cost, load_gpu("h20"), "bf16", on, item.mla.heads // tp)
        places = {(found.path, found.kernel): index for index, found in enumerate(points)}
        texts = roofline_formulas.point_formulas(cost, places)
        names = {
            **formulas.attention_names(item, BF16, tp=tp),
            **formulas.work_names(work, cost.pairs),
            **formulas.kernel_names(cost),
            **formulas.ceiling_names(on),
        }
        if indexer and cost.sparse:
            names |= {**sparse_formulas.sparse_names(indexer), "attended_pairs": cost.sparse.attended_pairs}
        assert len(texts) == 5 * len(points)
        for path, formula in texts.items():
            index, figure = path.removeprefix("points[").split("].")
            assert evaluated(formula.text, names) == pytest.approx(getattr(points[int(index)], figure), rel=1e-14)
        for axis in AXES:
            for path in PATHS:
                for kernel in ("attention", "path"):
                    subject = Subject(item.mla, paths_of(indexer)[path], kernel, work, on, indexer)
                    for value in ridge_crossing(subject, axis).values:
                        solved = roofline_formulas.crossing_formula(subject, axis, float(value))
                        if solved is None:
                            assert sparse
                            continue
                        formula, numbers = solved
                        assert evaluated(formula.text, numbers) == pytest.approx(float(value), rel=1e-12)


def evaluated(text: str, names: Any) -> Any:
    return eval(text, {"__builtins__": {"min": min, "max": max}}, dict(names))


def test_the_ridge_in_words() -> None:
    texts = roofline_formulas.ridge_formulas(True, 0)
    names = {
        **formulas.attention_names(load_model("dsv3"), BF16, tp=8),
        **formulas.ceiling_names(H100),
    }
    assert evaluated(texts["ridges[0].ridge_flop_per_byte"].text, names) == pytest.approx(295.3433, abs=1e-4)
    assert evaluated(texts["ridge_heads_times_queries[0].by_context"].text, names) == pytest.approx(156.4, abs=0.05)
