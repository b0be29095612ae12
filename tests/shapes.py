"""Attention shapes, GPUs and hand-written formulas that several tests share.

The formulas here are the tables of docs/cost-model.md, sections 3 to 5, written down a second time, in
plain Python integers and one letter per symbol. Nothing in this file calls the engine.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from mla_calc.costs.intervals import Interval
from mla_calc.hardware.roofline import Ceilings
from mla_calc.models.attention import GQA, MLA, Indexer, Model, Windowed

# The chapter's table of shapes ("in DSV3").
DSV3 = MLA(
    heads=128,
    hidden_size=7168,
    kv_lora_rank=512,
    q_lora_rank=1536,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
)
# Values wider than keys, no rope, as GLM-5.3-Flash's config has them.
NOPE = MLA(
    heads=64,
    hidden_size=4096,
    kv_lora_rank=512,
    q_lora_rank=1536,
    qk_nope_head_dim=256,
    qk_rope_head_dim=0,
    v_head_dim=256,
)
# DeepSeek-V2-Lite: the query in one step.
V2_LITE = MLA(
    heads=16,
    hidden_size=2048,
    kv_lora_rank=512,
    q_lora_rank=None,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
)
# dn != dv and few heads.
UNEVEN = MLA(
    heads=12,
    hidden_size=96,
    kv_lora_rank=40,
    q_lora_rank=24,
    qk_nope_head_dim=16,
    qk_rope_head_dim=6,
    v_head_dim=24,
)
# 2r = dn + dv: the cores cost the same, ca = cn.
EVEN_CORES = MLA(
    heads=4, hidden_size=32, kv_lora_rank=8, q_lora_rank=None, qk_nope_head_dim=6, qk_rope_head_dim=2, v_head_dim=10
)
# 2r < dn + dv: the absorbed core is the cheaper one, ca < cn.
CHEAP_CORE = MLA(
    heads=4, hidden_size=32, kv_lora_rank=4, q_lora_rank=None, qk_nope_head_dim=6, qk_rope_head_dim=2, v_head_dim=10
)
MLAS = {
    "dsv3": DSV3,
    "nope": NOPE,
    "v2-lite": V2_LITE,
    "uneven": UNEVEN,
    "even-cores": EVEN_CORES,
    "cheap-core": CHEAP_CORE,
}

LLAMA3_70B = GQA(heads=64, hidden_size=8192, kv_heads=8, qk_head_dim=128, v_head_dim=128)

# Dense bf16 peak and bandwidth of the datasheets; 989.4 and 3.35 are the chapter's own.
H100 = Ceilings(989_400_000_000_000, 3_350_000_000_000)
H200 = Ceilings(989_400_000_000_000, 4_800_000_000_000)
H20 = Ceilings(148_000_000_000_000, 4_000_000_000_000)
GPUS = {"h100": H100, "h200": H200, "h20": H20}


def model(
    attention: MLA | GQA,
    layers: int,
    *,
    name: str = "a model",
    windowed: Windowed | None = None,
    indexer: Indexer | None = None,
    mtp_layers: int | None = None,
) -> Model:
    return Model(
        name=name,
        mla=attention if isinstance(attention, MLA) else None,
        gqa=attention if isinstance(attention, GQA) else None,
        cached_layers=layers,
        transformer_layers=layers,
        windowed=windowed,
        indexer=indexer,
        mtp_layers=mtp_layers,
    )


def brute_pairs(queries: int, context: int, causal: bool) -> int:
    """The pairs, counted one by one: query i stands at position context - queries + i."""
    return sum(1 for i in range(queries) for j in range(context) if not causal or j <= context - queries + i)


Rows = list[tuple[str, int, int]]
"""(kernel, FLOP, bytes)."""


def kernel_table(
    m: MLA,
    q: int,
    s: int,
    pairs: int,
    *,
    row: int,
    b: int = 1,
    t: int = 1,
    bw: int = 2,
    ba: int = 2,
) -> dict[str, Rows]:
    """The table of docs/cost-model.md, section 5, as it stands there."""
    h, r, dn, dr, dv = m.heads // t, m.kv_lora_rank, m.qk_nope_head_dim, m.qk_rope_head_dim, m.v_head_dim
    return {
        "absorbed": [
            ("q_fold", 2 * b * q * h * dn * r, h * dn * r * bw + b * q * h * (dn + r) * ba),
            ("attention", 2 * b * pairs * h * (2 * r + dr), b * s * row + b * q * h * (2 * r + dr) * ba),
            ("v_up", 2 * b * q * h * r * dv, h * r * dv * bw + b * q * h * (r + dv) * ba),
        ],
        "naive": [
            (
                "up_proj",
                2 * b * s * r * h * (dn + dv),
                b * s * row + r * h * (dn + dv) * bw + b * s * h * (dn + dr + dv) * ba,
            ),
            (
                "attention",
                2 * b * pairs * h * (dn + dr + dv),
                b * s * h * (dn + dr + dv) * ba + b * q * h * (dn + dr + dv) * ba,
            ),
        ],
    }


def scaled_time(rows: Rows, ceilings: Ceilings) -> int:
    """A path's bound times peak times bandwidth: exact, a sum of maxima of whole numbers."""
    return sum(max(flop * ceilings.bytes_per_s, moved * ceilings.flop_per_s) for _, flop, moved in rows)


def winner(m: MLA, q: int, context: int, causal: bool, ceilings: Ceilings, *, row: int, b: int = 1, t: int = 1) -> str:
    """Who takes less time for ``q`` queries: ``context`` is S of a rectangular block, P of a causal one."""
    s = context + q if causal else context
    pairs = q * context + q * (q + 1) // 2 if causal else q * context
    table = kernel_table(m, q, s, pairs, row=row, b=b, t=t)
    naive, absorbed = (scaled_time(table[path], ceilings) for path in ("naive", "absorbed"))
    return "equal" if naive == absorbed else "naive" if naive < absorbed else "absorbed"


@st.composite
def mlas(draw: st.DrawFn, most: int = 160) -> MLA:
    """Random geometries: heads of many divisors, rope of width 0 among them, dn and dv apart."""
    return MLA(
        heads=draw(st.sampled_from([1, 2, 4, 6, 12, 16, 40, 128])),
        hidden_size=draw(st.integers(1, 512)),
        kv_lora_rank=draw(st.integers(1, 4 * most)),
        q_lora_rank=draw(st.none() | st.integers(1, 256)),
        qk_nope_head_dim=draw(st.integers(1, most)),
        qk_rope_head_dim=draw(st.just(0) | st.integers(1, 64)),
        v_head_dim=draw(st.integers(1, most)),
    )


def ceilings() -> st.SearchStrategy[Ceilings]:
    """Real GPUs, and small whole numbers, with which exact ties are common."""
    small = st.integers(1, 12)
    return (
        st.sampled_from(list(GPUS.values()))
        | st.builds(Ceilings, small, small)
        | st.builds(Ceilings, st.integers(1, 2000), small)
    )


def divisors(number: int) -> list[int]:
    return [tp for tp in range(1, number + 1) if number % tp == 0]


def spelled_out(intervals: tuple[Interval, ...], last: int) -> list[str]:
    """The winner of every Q from 1 to ``last``; intervals have to follow one another without a gap."""
    assert intervals[0].from_queries == 1
    for before, after in pairwise(intervals):
        assert before.to_queries is not None
        assert after.from_queries == before.to_queries + 1
        assert before.path != after.path
    found: list[str] = []
    for interval in intervals:
        end = last if interval.to_queries is None else min(interval.to_queries, last)
        found += [interval.path] * (end - interval.from_queries + 1)
    return found
