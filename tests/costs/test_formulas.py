"""The texts of ``--explain``: each, evaluated with its names, is the figure that the engine computes.

The engine's figures are held to the sources in the other tests; here text and figure are held to each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm
from typing import Any

import pytest

from mla_calc.costs import formulas, sparse_formulas
from mla_calc.costs.cache import cache_cost, token_bytes
from mla_calc.costs.crossover import flop_crossover, sparse_flop_crossover
from mla_calc.costs.flops import flops_cost
from mla_calc.costs.formulas import Formula
from mla_calc.costs.intensity import intensity_cost
from mla_calc.costs.layouts import Layout, load_layout
from mla_calc.costs.paths import Work
from mla_calc.costs.workspace import VLLM, workspace_cost
from mla_calc.data import preset_files
from mla_calc.errors import InputError
from mla_calc.hardware.roofline import Ceilings
from mla_calc.models.attention import Indexer, Model
from mla_calc.models.load import load_model
from mla_calc.report.record import lookup, plain
from tests.shapes import CHEAP_CORE, DSV3, EVEN_CORES, H20, H100, UNEVEN, model

LAYOUTS = {path.stem: load_layout(path.stem) for path in preset_files("layouts")}
MODELS = {
    "MLA": load_model("dsv3"),
    "MLA with an indexer": load_model("dsv32"),
    "MLA, few layers index": load_model("glm-5.2"),
    "NoPE, pooled indexer": load_model("glm-5.3-flash"),
    "no q_lora_rank": load_model("deepseek-v2-lite"),
    "two caches per layer": load_model("longcat-flash"),
    "another rank": load_model("minicpm3-4b"),
    "GQA": load_model("llama3-70b"),
    "MHA": load_model("llama2-7b"),
    "windowed GQA": load_model("gemma-3-27b"),
    "windowed GQA, heads apart": load_model("mimo-v2-flash"),
    "a pool that does not divide": model(
        UNEVEN, 11, indexer=Indexer(heads=2, head_dim=128, topk=20, layers=11, pool=5)
    ),
    "cheap core": model(CHEAP_CORE, 2),
    "even cores": model(EVEN_CORES, 2),
}
MLA_MODELS = {name: item for name, item in MODELS.items() if item.mla}


def check(texts: Mapping[str, Formula], names: Mapping[str, int | float], results: Any) -> int:
    """Every text evaluates to its figure: whole numbers exactly, ratios to rounding; how many there were."""
    for path, formula in texts.items():
        figure = lookup(plain(results), path)
        value = eval(formula.text, {"__builtins__": {"min": min, "max": max}}, dict(names))
        if isinstance(figure, int):
            assert value == figure, (path, formula.text)
        else:
            assert value == pytest.approx(figure, rel=1e-14), (path, formula.text)
        assert formula.cite
    return len(texts)


def fits(item: Model, layout: Layout, tp: int) -> bool:
    try:
        token_bytes(item, layout, tp=tp)
    except InputError:
        return False
    return True


@pytest.mark.parametrize("totals", [{}, {"context": 1000, "batch": 3}, {"context": 7}], ids=["", "totals", "one"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("item", MODELS.values(), ids=MODELS)
def test_cache(item: Model, layout: Layout, totals: dict[str, Any]) -> None:
    seen = 0
    for tp in (1, 2, 8, 16):
        for mtp in {0, item.mtp_layers or 0}:
            if not fits(item, layout, tp):
                continue
            cost = cache_cost(item, layout, tp=tp, mtp_layers=mtp, **totals)
            names = formulas.attention_names(item, layout, tp=tp, mtp_layers=mtp) | formulas.figures_of(cost)
            seen += check(formulas.cache_formulas(item, layout, bool(totals)), names, cost)
    assert seen or not fits(item, layout, 1)


def test_cache_explains_what_the_model_has() -> None:
    def figures(name: str) -> set[str]:
        return set(formulas.cache_formulas(MODELS[name], LAYOUTS["bf16"], True))

    assert {"latent_bytes_per_token", "expanded_to_latent_ratio", "bytes_per_token"} <= figures("MLA")
    assert "indexer_bytes_per_token" in figures("MLA with an indexer") - figures("MLA")
    assert "windowed_bytes_per_token" in figures("windowed GQA") - figures("GQA")
    assert "latent_bytes_per_token" not in figures("GQA")


@pytest.mark.parametrize("ceilings", [None, H100, H20], ids=["no gpu", "h100", "h20"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("item", MLA_MODELS.values(), ids=MLA_MODELS)
def test_flops(item: Model, causal: bool, ceilings: Ceilings | None) -> None:
    assert item.mla
    seen = 0
    for layout in LAYOUTS.values():
        for tp in (1, 2, 8):
            if not fits(item, layout, tp):
                continue
            base = formulas.attention_names(item, layout, tp=tp)
            for weight in (1, 2):
                work = Work(
                    queries=5,
                    context=77,
                    row_bytes=int(base["row_bytes"]),
                    batch=3,
                    tp=tp,
                    causal=causal,
                    weight_bytes=weight,
                )
                cost = flops_cost(item.mla, item.cached_layers, work, ceilings)
                names = {
                    **base,
                    **formulas.work_names(work, cost.pairs),
                    **formulas.kernel_names(cost),
                    **formulas.ceiling_names(ceilings),
                }
                texts = formulas.flops_formulas(ceilings is not None, causal)
                assert ("absorbed.bound_s" in texts) == (ceilings is not None)
                seen += check(texts, names, cost)
    assert seen


@pytest.mark.parametrize("ceilings", [None, H100, H20], ids=["no gpu", "h100", "h20"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("item", MODELS.values(), ids=MODELS)
def test_intensity(item: Model, layout: Layout, ceilings: Ceilings | None) -> None:
    for tp in (1, 2, 8, 16):
        if not fits(item, layout, tp):
            continue
        for queries in (1, 3):
            cost = intensity_cost(item, layout, (tp,), queries=queries, ceilings=ceilings)
            names = {
                **formulas.attention_names(item, layout, tp=tp),
                **formulas.ceiling_names(ceilings),
                "queries": queries,
            }
            texts = formulas.intensity_formulas(item, ceilings is not None)
            assert check(texts, names, cost) == (1 if ceilings is None else 4 if item.mla else 3)


@pytest.mark.parametrize("context", [1, 16, 4096, 131_072])
@pytest.mark.parametrize("item", MLA_MODELS.values(), ids=MLA_MODELS)
def test_crossover(item: Model, context: int) -> None:
    assert item.mla
    flop = flop_crossover(item.mla, (context,))
    has_limit = flop.queries_limit is not None
    assert has_limit == (2 * item.mla.kv_lora_rank > item.mla.qk_nope_head_dim + item.mla.v_head_dim)
    names = {**formulas.attention_names(item, LAYOUTS["bf16"], tp=1), "context": context}
    assert check(formulas.crossover_formulas(has_limit), names, {"flop": flop}) == (5 if has_limit else 1)


INDEXED = {name: item for name, item in MLA_MODELS.items() if item.indexer}


@pytest.mark.parametrize("ceilings", [None, H100, H20], ids=["no gpu", "h100", "h20"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("context", [19, 20, 22, 77, 2048, 2050, 70_000])
@pytest.mark.parametrize("item", INDEXED.values(), ids=INDEXED)
def test_sparse_flops(item: Model, context: int, causal: bool, ceilings: Ceilings | None) -> None:
    assert item.mla
    assert item.indexer
    for layout, tp in ((LAYOUTS["bf16"], 1), (LAYOUTS["fp8"], 2)):
        base = formulas.attention_names(item, layout, tp=tp)
        work = Work(queries=5, context=context, row_bytes=int(base["row_bytes"]), batch=3, tp=tp, causal=causal)
        cost = flops_cost(item.mla, item.cached_layers, work, ceilings, indexer=item.indexer)
        assert cost.sparse
        names = {
            **base,
            **formulas.work_names(work, cost.pairs),
            **formulas.kernel_names(cost),
            **formulas.ceiling_names(ceilings),
            **sparse_formulas.sparse_names(item.indexer),
            "attended_pairs": cost.sparse.attended_pairs,
        }
        texts = sparse_formulas.sparse_flops_formulas(cost, ceilings is not None)
        assert {"sparse.attended_pairs", "absorbed.kernels[3].flop", "absorbed.total_flop"} <= set(texts)
        assert ("naive.kernels[2].flop" in texts) == (context > item.indexer.topk)
        check(texts, names, cost)


@pytest.mark.parametrize("ceilings", [None, H100], ids=["no gpu", "h100"])
@pytest.mark.parametrize("context", [5, 20, 77, 2048, 70_000])
@pytest.mark.parametrize("item", INDEXED.values(), ids=INDEXED)
def test_sparse_intensity_and_crossover(item: Model, context: int, ceilings: Ceilings | None) -> None:
    assert item.mla
    assert item.indexer
    for tp in (1, 2):
        names = {
            **formulas.attention_names(item, LAYOUTS["bf16"], tp=tp),
            **formulas.ceiling_names(ceilings),
            **sparse_formulas.sparse_names(item.indexer),
            "queries": 3,
            "context": context,
        }
        intensity = intensity_cost(
            item, LAYOUTS["bf16"], (tp,), queries=3, ceilings=ceilings, indexer=item.indexer, context=context
        )
        texts = sparse_formulas.sparse_intensity_formulas(intensity)
        assert check(texts, names, intensity) == (4 if ceilings else 2)
        flop = sparse_flop_crossover(item.mla, (context,), (tp,), item.indexer)
        texts = sparse_formulas.sparse_crossover_formulas(flop, item.indexer)
        found = check(texts, names, {"flop": plain(flop)})
        assert found == (flop.by_context[0].queries_rectangular is not None)


@pytest.mark.parametrize(
    ("length", "requests", "block", "cap"),
    [(163_840, 256, 64, None), (1000, 16, 64, None), (100, 1, 48, None), (163_840, 256, 64, 1000), (1, 1, 1, 5)],
)
@pytest.mark.parametrize("item", MLA_MODELS.values(), ids=MLA_MODELS)
def test_workspace(item: Model, length: int, requests: int, block: int, cap: int | None) -> None:
    assert item.mla
    for layout in LAYOUTS.values():
        for tp in (1, 2, 8):
            if not fits(item, layout, tp):
                continue
            per_token = token_bytes(item, layout, tp=tp).growing
            for dcp in {1, tp}:
                cost = workspace_cost(
                    item.mla,
                    max_model_len=length,
                    cache_bytes_per_token=per_token,
                    tp=tp,
                    max_num_seqs=requests,
                    block_size=block,
                    rows_cap=cap,
                    indexer=item.indexer,
                    dcp=dcp,
                )
                names = {
                    **formulas.attention_names(item, layout, tp=tp),
                    **formulas.workspace_names(
                        cost,
                        VLLM,
                        index_topk=item.indexer.topk if item.indexer else 0,
                        alignment=lcm(block, dcp) if dcp > 1 else block,
                        buffer_value_bytes=2,
                    ),
                    "bytes_per_token": per_token,
                }
                texts = formulas.workspace_formulas(
                    cost, item.mla.qk_rope_head_dim > 0, sparse=item.indexer is not None
                )
                assert check(texts, names, cost) >= 8


def test_the_check_would_notice() -> None:
    """A text that is one token off, and a name that is wrong, fail the check above."""
    cost = cache_cost(model(DSV3, 61), LAYOUTS["bf16"])
    names = formulas.attention_names(model(DSV3, 61), LAYOUTS["bf16"], tp=1)
    for wrong in ("layers * row_bytes + 1", "layers * heads"):
        with pytest.raises(AssertionError):
            check({"bytes_per_token": Formula(wrong, "here")}, names, cost)
    with pytest.raises(NameError):
        check({"bytes_per_token": Formula("layers * rows", "here")}, names, cost)
