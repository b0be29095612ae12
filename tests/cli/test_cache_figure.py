"""The figures of `cache` and `capacity`: what bars, captions and factors say of forms, layers, dtypes and stages.

Figures by hand: DeepSeek-V3.2 has 61 layers of 576 latent values and of 132-byte indexer keys, 128 heads of 320 values.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mla_calc.data import presets_root
from mla_calc.errors import InputError
from mla_calc.report.chart import Bars, Chart
from mla_calc.report.chart_data import bar_text, drawn, value
from mla_calc.report.drawing.glyphs import drawable
from mla_calc.report.drawing.style import drawing_style
from tests.cli.test_command_figures import drawing as drawing_of

Run = Callable[..., Any]
Drawing = Callable[[str], tuple[Chart, Any]]

LATENT, KEYS, EXPANDED = 61 * 576 * 2, 61 * 132, 61 * 128 * 320 * 2


@pytest.fixture
def drawing(cli: Run, monkeypatch: pytest.MonkeyPatch) -> Drawing:
    """The chart that a command line draws, and the results that it is drawn from."""

    return lambda line: drawing_of(line, cli, monkeypatch)


def caption(found: tuple[Chart, Any]) -> list[str]:
    return found[0].caption.split("  ·  ")


def bars(found: tuple[Chart, Any]) -> dict[str, tuple[int, float]]:
    """Bytes and factor of each bar, by its name."""
    chart, results = found
    marks = [mark for mark in chart.panels[0].marks if isinstance(mark, Bars)]
    return {value(row, mark.name): (value(row, mark.value), value(row, mark.ratio)) for mark in marks
            for row in drawn(results, mark)}  # fmt: skip


@pytest.mark.parametrize("form", ["latent", "expanded"])
def test_both_forms_hold_the_indexer_keys_and_say_so(form: str, drawing: Drawing) -> None:
    found = drawing(f"cache --model dsv3.2 --vs llama3-70b --cache-form {form}")
    base = LATENT + KEYS
    assert bars(found) == {
        "DeepSeek-V3.2, latent and indexer keys": (base, 1),
        "DeepSeek-V3.2, expanded and indexer keys": (EXPANDED + KEYS, pytest.approx((EXPANDED + KEYS) / base)),
        "Llama-3-70B": (327_680, pytest.approx(327_680 / base)),
    }
    assert found[0].panels[0].title == "one copy; times latent and keys"


def test_indexer_keys_stand_on_every_rank_in_both_forms(cli: Run) -> None:
    """Beside heads, which shard."""
    rows = cli("cache --model dsv3.2 --tp 8,16 --by-tp -f json").results["by_tp"]
    found = {(row["tp"], row["cached"]): (row["per_rank_bytes_per_token"], row["cluster_bytes_per_token"])
             for row in rows}  # fmt: skip
    assert found == {
        (tp, cached): (rank, rank * tp)
        for tp in (8, 16)
        for cached, rank in ((True, LATENT + KEYS), (False, EXPANDED // tp + KEYS))
    }


def test_a_form_is_what_cache_form_prices(cli: Run) -> None:
    """The other form beside the one that is cached, and that form as it is cached itself."""
    for model in ("dsv3", "dsv3.2", "glm-5.2"):
        rows = [
            {
                row["name"]: row
                for row in cli(f"cache --model {model} --tp 1,4 --by-tp --cache-form {form} -f json").results["by_tp"]
                if row["tp"] == 4
            }
            for form in ("latent", "expanded")
        ]
        assert set(rows[0]) == set(rows[1])
        for name, row in rows[0].items():
            assert row | {"cached": None} == rows[1][name] | {"cached": None}


def test_the_sentence_says_what_its_ratio_is_of(cli: Run) -> None:
    told = " ".join(cli("cache --model dsv3.2").out.split())
    assert f"{EXPANDED / LATENT:.2f}x its bytes, and the indexer keys stay" in told
    assert "71.11x the bytes." in " ".join(cli("cache --model dsv3").out.split())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--model dsv3", ["all layers"]),
        ("--model llama3-70b --vs dsv3", ["all layers"]),
        (
            "--model gpt-oss-120b --vs gemma-3-27b",  # 18 x 2 x 8 x 64 x 2 B, 52 x 2 x 16 x 128 x 2 B
            [
                "bytes that grow with the context",
                "without 18 sliding-window layers of gpt-oss-120b (36.0 KiB more)",
                "without 52 sliding-window layers of Gemma-3-27B (416.0 KiB more)",
            ],
        ),
        (
            "--model dsv3 --vs kimi-linear-48b",
            ["bytes that grow with the context", "without 20 linear-attention layers of Kimi-Linear-48B-A3B"],
        ),
        (
            "--model kimi-linear-48b",
            ["bytes that grow with the context", "without 20 linear-attention layers of Kimi-Linear-48B-A3B"],
        ),
    ],
)
def test_layers_that_are_left_out_are_said(line: str, told: list[str], drawing: Drawing) -> None:
    parts = caption(drawing(f"cache {line}"))
    assert [part for part in parts if part.startswith(("all", "bytes", "without"))] == told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--dtype fp8_ds_mla --vs llama3-70b,kimi-k2", ["Llama-3-70B in bf16"]),
        ("--dtype fp8 --vs llama3-70b", []),
        ("--dtype fp8_ds_mla --vs llama3-70b,llama3-8b,qwen2.5-72b,mixtral-8x7b", ["4 of the others in bf16"]),
        ("--vs dsv3.2,llama3-70b", ["DeepSeek-V3.2 with indexer keys"]),
        ("--vs llama3-70b --mtp-layers 1", ["1 MTP layer of DeepSeek-V3 included"]),
        ("--mtp-layers 1", ["1 MTP layer included"]),
    ],
)
def test_what_is_priced_otherwise_is_said(line: str, told: list[str], drawing: Drawing) -> None:
    """Between the title and the layers; DeepSeek-V3 has neither indexer nor windows."""
    parts = caption(drawing(f"cache --model dsv3 {line}"))
    assert parts[1 : parts.index("all layers")] == told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--dtype fp8", ["expanded: keys and values of every head, in bf16"]),
        ("--dtype fp8 --cache-form expanded", ["expanded: keys and values of every head, in fp8"]),
        (
            "--cache-form expanded --pad-head-dim 256",
            ["expanded: keys and values of every head, in bf16, padded to a width of 256"],
        ),
    ],
)
def test_the_dtype_and_the_padding_of_the_expanded_form(line: str, told: list[str], drawing: Drawing) -> None:
    assert [part for part in caption(drawing(f"cache --model dsv3 {line}")) if "expanded" in part] == told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--model dsv2-lite --cache-form expanded --vs llama3-70b", {"times the latent"}),
        ("--model dsv3.2 --vs llama3-70b", {"times latent and keys"}),
        ("--model llama3-70b --vs dsv3", {"times the first"}),
        ("--model llama3-70b", set()),
    ],
)
def test_the_factor_that_is_told_says_of_what(line: str, told: set[str], drawing: Drawing) -> None:
    chart, results = drawing(f"cache {line}")
    marks = [mark for mark in chart.panels[0].marks if isinstance(mark, Bars)]
    assert {shown.label for mark in marks for shown in mark.shown if shown.key == "ratio"} == told
    for mark in marks:
        (row,) = drawn(results, mark)
        assert (", " in bar_text(row, mark)) == bool(told)


@pytest.mark.parametrize(
    ("layout", "told"),
    [
        ("--gpus 16 --search --context 32k", ["a GPU of the largest stage where PP is above 1"]),
        ("--gpus 16 --tp 8 --pp 2", ["a GPU of the largest stage"]),
        ("--gpus 16 --search --pp 2", ["a GPU of the largest stage"]),
        ("--gpus 16 --search --pp 1", []),
        ("--gpus 16", []),
    ],
)
def test_a_stage_is_said_wherever_a_bar_is_of_one(layout: str, told: list[str], drawing: Drawing) -> None:
    """The first of the layouts of 16 GPUs has PP 1, and three of the six that are drawn have PP 2."""
    found = drawing(f"capacity --model dsv3 --gpu h200 {layout}")
    assert [part for part in caption(found) if "stage" in part] == told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("dsv3 --cache-budget 40GiB", []),
        ("dsv3 --cache-budget 40GiB --mtp-layers 1", ["1 MTP layer included"]),
        ("dsv2-lite --cache-budget 40GiB --cache-form expanded", ["keys and values expanded"]),
        (
            "dsv2-lite --cache-budget 40GiB --cache-form expanded --pad-head-dim 256",
            ["keys and values expanded, padded to a width of 256"],
        ),
        ("gpt-oss-120b --cache-budget 40GiB -s 64k", ["tokens without the windows and states of requests"]),
        ("kimi-linear-48b --cache-budget 40GiB -s 64k", ["tokens without the windows and states of requests"]),
    ],
)
def test_a_capacity_says_what_its_tokens_are(line: str, told: list[str], drawing: Drawing) -> None:
    """Beside what every caption has: shapes, attention, engine and layout."""
    parts = caption(drawing(f"capacity --model {line}"))[1:]
    assert [part for part in parts if not part.startswith(("dense", "vLLM", "the one"))] == told


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("without_matplotlib")
@pytest.mark.parametrize("line", ["cache --model dsv3 -o a.png", "report --model dsv3 --gpu h100 -o a.md"])
def test_without_matplotlib_what_to_install_is_said(
    line: str, cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = cli(line)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.splitlines() == [
        "mla-calc: a figure as a picture needs matplotlib",
        "  pip install matplotlib",
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("without_matplotlib")
@pytest.mark.parametrize("draw", [lambda: drawable("ascii"), drawing_style])
def test_whatever_draws_a_picture_asks_for_matplotlib(draw: Callable[[], Any]) -> None:
    with pytest.raises(InputError, match="needs matplotlib"):
        draw()


@pytest.mark.parametrize(("beside", "drawn"), [(22, True), (23, False)])
def test_more_bars_than_have_room_are_refused(beside: int, drawn: bool, cli: Run, tmp_path: Path) -> None:
    names = [path.stem for path in sorted((presets_root() / "models").iterdir()) if path.stem != "deepseek-v3"][:beside]
    answer = cli(f"cache --model dsv3 --vs {','.join(names)} --output {tmp_path / 'a.svg'}")
    # beside them stand the model's own two forms
    assert (answer.code, answer.err.partition("\n")[0]) == (
        (0, "") if drawn else (2, "mla-calc: a figure of 25 caches: one has room for 24 at most")
    )
