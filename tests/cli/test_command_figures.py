"""``--output`` with a figure's suffix: what is drawn is what the JSON of the same command line holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mla_calc.cli import options
from mla_calc.report.chart import Bars, Cells, Chart, Line, Points, Roof, Rule, Zones
from mla_calc.report.chart_data import bar_text, drawn, number_at, value
from mla_calc.report.drawing.style import SIZES
from mla_calc.report.record import Report

Run = Callable[..., Any]

CACHE = "cache --model dsv3 --vs llama3-70b"
INTENSITY = "intensity --model dsv3 --gpu h100 --vs llama3-70b --queries 1,2"
CROSSOVER = "crossover --model dsv3 --gpu h200"
CAPACITY = "capacity --model dsv3 --gpu h200 --gpus 16 --search --context 32k"
ADDED = {"cache": "--by-tp", "crossover": "--map"}
"""Options that put what a figure draws into the JSON, where it is not there anyway."""
LINES = [
    CACHE,
    "cache --model dsv32 --vs llama3-70b,kimi-k2 --tp 1,4,16 --cache-form expanded",
    "cache --model llama3-70b",
    INTENSITY,
    "intensity --model dsv32 --sparse --context 4k,64k",
    "intensity --model llama3-70b --gpu h100",
    CROSSOVER,
    "crossover --model dsv3 --tp 1,8",
    "crossover --model dsv32 --gpu h100 --sparse --batch 8 --context 4k:16k:x2",
    CAPACITY,
    "capacity --model dsv3 --gpu h100 --gpus 1 --search",
    "capacity --model dsv3 --cache-budget 40GiB --tp 8",
]
FIGURES = [CACHE, INTENSITY, CROSSOVER, CAPACITY]


def command(line: str) -> str:
    return line.split()[0]


def drawing(line: str, cli: Run, monkeypatch: pytest.MonkeyPatch) -> tuple[Chart, Any]:
    """The chart that a command line draws, and the results that it is drawn from."""
    seen: list[Report] = []
    with monkeypatch.context() as patched:
        patched.setattr("mla_calc.cli.command.emit", lambda report, *_: seen.append(report))
        assert cli(f"{line} --output figure.svg").code == 0
    assert seen[0].chart is not None
    return seen[0].chart, seen[0].results


def as_json(line: str, cli: Run) -> Any:
    answer = cli(f"{line} {ADDED.get(command(line), '')} --format json")
    assert answer.code == 0, answer.err
    return answer.results


def marks(chart: Chart, kind: type[Any]) -> list[Any]:
    return [mark for panel in chart.panels for mark in panel.marks if isinstance(mark, kind)]


def numbers(chart: Chart, results: Any) -> Iterator[float]:
    """Every number that the chart places, writes or tells."""
    for panel in chart.panels:
        for mark in panel.marks:
            if isinstance(mark, Rule):
                found = number_at(results, mark.path)
                assert found is not None
                yield found
                continue
            assert not isinstance(mark, Roof | Zones)
            records = drawn(results, mark)
            assert records, mark
            for record in records:
                yield from (each for each in _values(mark, record) if isinstance(each, int | float))


def _values(mark: Line | Points | Cells | Bars, record: dict[str, Any]) -> list[Any]:
    keys = [mark.value] if isinstance(mark, Bars) else [mark.x, mark.y]
    keys += [mark.value] if isinstance(mark, Cells) else []
    keys += [] if isinstance(mark, Bars) or not mark.text else [mark.text]
    return [value(record, key) for key in (*keys, *(shown.key for shown in mark.shown))]


def leaves(results: Any) -> Iterator[Any]:
    if isinstance(results, dict | list):
        for child in results.values() if isinstance(results, dict) else results:
            yield from leaves(child)
    else:
        yield results


@pytest.mark.parametrize("line", LINES)
def test_every_number_drawn_is_in_the_json(line: str, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    chart, results = drawing(line, cli, monkeypatch)
    told = as_json(line, cli)
    listed = list(numbers(chart, results))
    assert listed == list(numbers(chart, told))
    assert set(listed) <= {leaf for leaf in leaves(told) if isinstance(leaf, int | float)}


@pytest.mark.parametrize("line", FIGURES)
@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG\r\n\x1a\n"), ("pdf", b"%PDF-"), ("svg", b"<?xml")])
def test_a_figure_is_written(line: str, suffix: str, start: bytes, cli: Run, tmp_path: Path) -> None:
    output = tmp_path / f"figure.{suffix}"
    answer = cli(f"{line} --output {output}")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert output.read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


@pytest.mark.parametrize("line", FIGURES)
def test_the_same_input_gives_the_same_svg(line: str, cli: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    for output in (first, second):
        assert cli(f"{line} --size column --output {output}").code == 0
    assert first.read_bytes() == second.read_bytes()


def test_a_column_is_narrower_than_a_slide(cli: Run, tmp_path: Path) -> None:
    """By the first numbers of the SVG's own view: 12.8 and 3.5 inches of 72 points."""
    widths = {}
    for size in ("slide", "column"):
        output = tmp_path / f"{size}.svg"
        assert cli(f"{INTENSITY} --size {size} --output {output}").code == 0
        widths[size] = float(output.read_text(encoding="utf-8").split('viewBox="0 0 ')[1].split()[0])
    assert widths == {"slide": pytest.approx(921.6), "column": pytest.approx(252)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{CACHE} --size poster --output a.png", "--size poster: one of slide, column is accepted"),
        (f"{CACHE} --size column", "--size is of a picture: give --output a file that ends in .png, .svg, .pdf"),
        (f"{CACHE} --size column --output a.json", "--size is of a picture"),
        (f"{CACHE} --size column --format json --output a.png", "--size is of a picture"),
        ("flops --model dsv3 --output a.png", "--output a.png: `flops` draws no figure; use .json, .csv"),
        ("workspace --model dsv3 --output a.SVG", "--output a.SVG: `workspace` draws no figure"),
        ("flops --model dsv3 --size slide", "No such option: --size"),
        (f"{CACHE} --by-tp --context 4k,8k", "--context takes one value here; 2 are given"),
        (f"{CACHE} --batch 1,2 --output a.png", "--batch takes one value here; 2 are given"),
        ("crossover --model dsv3 --tp 1,2 --batch 1,8 --output a.png", "a figure has room for 3 maps; 4 pairs"),
    ],
)
def test_what_cannot_be_drawn_is_one_error(
    line: str, message: str, cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = cli(line)
    assert answer.code == 2
    assert answer.out == ""
    first, *hints = answer.err.splitlines()
    assert message.replace("'", "") in first.replace("'", "")
    assert len(hints) <= 1
    assert list(tmp_path.iterdir()) == []


def test_cache_bytes_and_the_break_even(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """61 layers of 576 values and 80 of 2 x 8 heads of 128, both in bf16; 327,680 / 70,272 = 4.663."""
    chart, results = drawing(CACHE, cli, monkeypatch)
    bars = {value(record, bar.name): value(record, bar.value) for bar in marks(chart, Bars)
            for record in drawn(results, bar)}  # fmt: skip
    assert bars == {
        "DeepSeek-V3, latent": 61 * 576 * 2,
        "DeepSeek-V3, expanded": 61 * 128 * (128 + 64 + 128) * 2,
        "Llama-3-70B": 80 * 2 * 8 * 128 * 2,
    }
    assert [number_at(results, rule.path) for rule in marks(chart, Rule)] == [pytest.approx(4.66, abs=0.005)]
    cluster = {line.label: [value(record, line.y) for record in drawn(results, line)]
               for line in marks(chart, Line) if line.y.startswith("cluster")}  # fmt: skip
    assert cluster["DeepSeek-V3, latent"] == [70272 * tp for tp in (1, 2, 4, 8, 16)]
    assert cluster["Llama-3-70B"] == [327680, 327680, 327680, 327680, 2 * 327680]  # 8 heads, then copies


@pytest.mark.parametrize(
    ("line", "ratios"),
    [
        (CACHE, [1, 71.11, 4.663]),
        ("cache --model dsv3 --vs llama3-70b --cache-form expanded", [71.11, 1, 4.663]),
        ("cache --model llama3-70b --vs dsv3", [1, 0.2145]),
    ],
)
def test_bars_start_at_zero_and_tell_the_ratio(
    line: str, ratios: list[float], cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the latent's 70,272 bytes: 4,997,120 and 327,680. A bar's length says nothing on a log axis."""
    chart, results = drawing(line, cli, monkeypatch)
    assert chart.panels[0].x.scale == "linear"
    assert [value(record, bar.ratio) for bar in marks(chart, Bars) for record in drawn(results, bar)] == [
        pytest.approx(ratio, rel=1e-3) for ratio in ratios
    ]
    if line == CACHE:
        texts = [bar_text(record, bar) for bar in marks(chart, Bars) for record in drawn(results, bar)]
        assert texts == ["68.6 KiB, 1x", "4.8 MiB, 71x", "320.0 KiB, 4.7x"]


MANY = (
    "cache --model dsv3 --vs kimi-k2,llama3.1-405b,qwen2.5-72b,gemma-3-27b,gpt-oss-120b,llama3-70b,llama3-8b,"
    "llama2-7b,mixtral-8x7b,qwen3-32b,glm-4.5,minimax-m2"
)


def test_many_models_are_told_apart(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line has a colour, marker and dash of its own; models of the same bytes share one, or one hid the other."""
    chart, results = drawing(MANY, cli, monkeypatch)
    lines = [mark for mark in chart.panels[2].marks if isinstance(mark, Line)]
    looks = [(line.look.colour, line.look.marker, line.look.dash) for line in lines]
    assert len(set(looks)) == len(looks) == len({tuple(drawn_at(line, results)) for line in lines})
    assert "DeepSeek-V3, latent = Kimi-K2-Instruct" in {line.label for line in lines}  # 61 layers of 576 values, both
    assert "12 other models" in chart.title
    assert len(marks(chart, Bars)) == 14


def test_one_model_without_a_latent_has_nothing_beside_it(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    chart, _ = drawing("cache --model llama3-70b", cli, monkeypatch)
    assert [bar.ratio for bar in marks(chart, Bars)] == [""]
    assert chart.panels[0].title == "one copy"
    assert "expanded" not in chart.caption
    assert "expanded" in drawing("cache --model dsv3", cli, monkeypatch)[0].caption


def drawn_at(line: Line, results: Any) -> list[Any]:
    return [value(record, line.y) for record in drawn(results, line)]


def test_break_evens_have_numbers_while_they_are_few(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    few, _ = drawing(CACHE, cli, monkeypatch)
    many, _ = drawing(MANY, cli, monkeypatch)
    assert [rule.text for rule in marks(few, Rule)] == ["TP {}"]
    rules = marks(many, Rule)
    assert len(rules) > 4
    assert {rule.text for rule in rules} == {""}
    assert [rule.label for rule in rules if rule.label] == ["break-even TP"]


def test_a_rank_of_the_expanded_form(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads of an expanded cache shard, the latent does not."""
    chart, results = drawing("cache --model dsv3 --tp 1:128:x2", cli, monkeypatch)
    rank = {line.label: [value(record, line.y) for record in drawn(results, line)]
            for line in marks(chart, Line) if line.y.startswith("per_rank")}  # fmt: skip
    assert rank["DeepSeek-V3, latent"] == [70272] * 8
    assert rank["DeepSeek-V3, expanded"] == [4997120 // 2**power for power in range(8)]


def test_intensity_and_the_ridge(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 x 128 x (576 + 512) / 1,152 at TP 1; 989.4e12 / 3.35e12. A GQA group of 8 does 8 FLOP per byte."""
    chart, results = drawing(INTENSITY, cli, monkeypatch)
    assert [number_at(results, rule.path) for rule in marks(chart, Rule)] == [pytest.approx(295.3, abs=0.05)]
    lines = {line.label: [value(record, line.y) for record in drawn(results, line)] for line in marks(chart, Line)}
    assert lines["DeepSeek-V3, 1 query"][0] == pytest.approx(241.8, abs=0.05)
    assert lines["DeepSeek-V3, 2 queries"] == [pytest.approx(2 * at) for at in lines["DeepSeek-V3, 1 query"]]
    assert lines["Llama-3-70B, 1 query"] == [8, 8, 8, 8, 4]


def test_the_boundary_by_flops_tends_to_its_limit(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """131,072 / 768 = 170.67, so that naive wins from 171 on; at S: 768 (2 Q S - Q (Q - 1)) > 262,144 (S - Q)."""
    line = "crossover --model dsv3 --context 1k:1024k:x2"
    chart, results = drawing(line, cli, monkeypatch)
    (boundary,) = marks(chart, Line)
    found = {record["context"]: record["flop_queries"] for record in drawn(results, boundary)}
    assert found[1024 * 1024] == 171
    for context, queries in found.items():
        wins = [768 * (2 * q * context - q * (q - 1)) > 262_144 * (context - q) for q in (queries - 1, queries)]
        assert wins == [False, True]


def test_cells_of_the_map(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides of the boundary by bound, and more queries than keys have no cell."""
    chart, results = drawing("crossover --model dsv3 --gpu h100 --context 512,4k", cli, monkeypatch)
    (cells,) = marks(chart, Cells)
    shown = drawn(results, cells)
    assert [record["queries"] for record in shown if record["context"] == 512] == [2**power for power in range(10)]
    boundary = {record["context"]: record["bound_queries"] for record in results["map_boundary"]}
    for record in shown:
        assert record["naive_over_absorbed"] == record["naive_bound_s"] / record["absorbed_bound_s"]
        assert record["by"] == max(record["naive_over_absorbed"], 1 / record["naive_over_absorbed"])
        assert (record["naive_over_absorbed"] < 1) == (record["queries"] >= boundary[record["context"]])


def test_what_is_drawn_on_the_map(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU that was measured: its crossovers with their spread, the estimates, and vLLM's thresholds."""
    chart, results = drawing(CROSSOVER, cli, monkeypatch)
    assert sorted(number_at(results, rule.path) or 0 for rule in marks(chart, Rule)) == [1, 128, 512]
    assert {line.label for line in marks(chart, Line)} == {
        "naive from, by FLOPs", "by bound", "by estimate", "measured",
    }  # fmt: skip
    (measured,) = [line for line in marks(chart, Line) if line.label == "measured"]
    recorded = {record["context"]: record["queries"] for record in results["measured"]
                if record["naive"] == "naive"}  # fmt: skip
    assert {record["context"]: record["queries"] for record in drawn(results, measured)} == recorded
    assert measured.spread == ("low", "high")
    assert "8,192 prefix tokens" in chart.caption
    assert "bars: p10 to p90" in chart.caption


def test_memory_of_a_gpu_adds_up(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stacked is the memory that the driver reports, to the byte, in every layout where something fits."""
    chart, results = drawing(CAPACITY, cli, monkeypatch)
    memory = [bar for bar in marks(chart, Bars) if bar.name == "name"]
    totals: dict[str, int] = {}
    for bar in memory:
        for record in drawn(results, bar):
            totals[record["name"]] = totals.get(record["name"], 0) + value(record, bar.value)
    (rule,) = marks(chart, Rule)
    assert set(totals.values()) == {number_at(results, rule.path)} == {143_156 * 2**20}
    assert [record["unique_tokens"] for record in results["best"]] == [
        layout["unique_tokens"] for layout in results["layouts"][: len(results["best"])]
    ]
    first = results["best"][0]
    assert first["name"] == "TP 16, DCP 16"
    assert first["unique_tokens"] == first["cache_bytes"] // (61 * 576 * 2) * 16
    assert first["requests"] == results["requests"]


NOTHING = "capacity --model dsv3 --gpu h100 --gpus 8"


@pytest.mark.parametrize("more", ["", " --search"])
def test_what_does_not_fit_is_said_and_has_no_empty_panel(more: str, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of a GPU's memory add up to more than the driver reports: 81,089 MiB."""
    chart, results = drawing(NOTHING + more, cli, monkeypatch)
    best = results["best"][0]
    parts = sum(best[f"{part}_bytes"] for part in ("weights", "workspace", "reserve"))
    assert len(chart.panels) == 1
    assert chart.title == "Nothing fits on 8 x NVIDIA H100 SXM5 80GB: DeepSeek-V3"
    assert f"{(parts - 81089 * 2**20) / 2**30:.1f} GiB are missing on each" in chart.caption
    # of one layout where there are many, which lack more or less
    assert (f"with {best['name']}, " in chart.caption) == bool(more)
    assert "nothing fits" in chart.panels[0].title  # a terminal shows no caption
    assert {record["label"].split(" (")[1] for record in results["best"]} == {"does not fit)"}
    last = chart.caption.split("  ·  ")[-1]
    assert last == ("none of 20 legal layouts fits; 6 are drawn" if more else "the one layout asked for")


def test_a_budget_smaller_than_a_token(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    chart, _ = drawing("capacity --model dsv3 --cache-budget 0.00006GiB", cli, monkeypatch)
    assert chart.title.startswith("Nothing fits")
    assert "a token takes 70,272 B" in chart.caption
    assert len(chart.panels) == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (CAPACITY, ["cache in bf16", "weights in fp8", "dense attention", "the best 6 of 35 legal layouts"]),
        ("capacity --model dsv3 --gpu h200 --gpus 8", ["the one layout asked for"]),
        ("capacity --model dsv3 --gpu b200 --tp 8 --weight-bytes 0.5", ["weights in 0.5 B each"]),
        (
            "capacity --model dsv32 --gpu h200 --gpus 8 --dtype fp8_ds_mla",
            ["cache in fp8_ds_mla", "decode bound of dense attention"],
        ),
    ],
)
def test_the_caption_of_a_capacity(line: str, told: list[str], cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    chart, _ = drawing(line, cli, monkeypatch)
    parts = chart.caption.split("  ·  ")
    for each in told:
        assert any(part.endswith(each) or part.startswith(each) for part in parts), each
    assert "weights in" not in drawing(LINES[-1], cli, monkeypatch)[0].caption  # a budget stands for weights too


def test_dense_is_said_of_what_is_dense(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    chart, _ = drawing(CROSSOVER, cli, monkeypatch)
    parts = chart.caption.split("  ·  ")
    assert [part for part in parts if "dense" in part] == [
        "dense peak: 989.4 TFLOP/s bf16, 4.8 TB/s",
        "dense attention",
    ]


SPARSE = "crossover --model dsv32 --gpu h200 --sparse"


def test_a_boundary_above_the_map_is_said(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    chart, results = drawing(SPARSE, cli, monkeypatch)
    found = {record["context"]: record["bound_queries"] for record in results["map_boundary"]}
    above = {context: queries for context, queries in found.items() if queries and queries > 1024}
    assert list(above) == [8192]
    assert f"above the map: naive takes less from Q {above[8192]:,} at S 8,192" in chart.caption
    assert [context for context in found if not found[context]] == [2**power for power in range(14, 18)]
    assert "absorbed takes less at every Q up to S, for S from 16,384 on" in chart.caption


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"{SPARSE} --context 32k,64k", "absorbed takes less at every Q up to S"),
        ("crossover --model dsv3 --gpu h200", ""),
        (
            "crossover --model dsv3 --gpu h100 --context 128,256",
            "above the map: vLLM 0.33.0 absorbs up to 512: FLASH_ATTN_MLA",
        ),
        ("crossover --model dsv32 --gpu h200 --sparse --context 8k --tp 1,8", "TP 8, 1 request: "),
    ],
)
def test_what_the_map_does_not_show(line: str, told: str, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    chart, _ = drawing(line, cli, monkeypatch)
    if told:
        assert told in chart.caption
    assert ("every Q" in chart.caption) == ("32k" in line)
    assert ("above the map" in chart.caption) == ("8k" in line or "128" in line)


def test_thresholds_are_named_once_and_by_one_that_is_drawn(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    chart, results = drawing("crossover --model dsv3 --gpu h100 --context 128,256", cli, monkeypatch)
    named = [rule for rule in marks(chart, Rule) if rule.label]
    assert [rule.label for rule in named] == ["vLLM 0.33.0 absorbs up to"]
    assert (number_at(results, named[0].path) or 0) <= max(record["queries"] for record in results["map"]) == 256


@pytest.mark.parametrize(
    ("line", "lone"),
    [
        ("crossover --model dsv3 --gpu h100 --context 4k", True),
        ("crossover --model dsv3 --gpu h100 --context 4k --tp 1,8", True),
        ("crossover --model dsv3 --gpu h100 --context 4k,8k", False),
    ],
)
def test_a_boundary_of_one_point_has_a_marker(line: str, lone: bool, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line through one point draws nothing; the markers of the two differ, since they are near each other."""
    chart, results = drawing(line, cli, monkeypatch)
    lines = marks(chart, Line)
    assert [len(drawn(results, each)) for each in lines] == [1 if lone else 2] * len(lines)
    assert {each.markers for each in lines} == {lone}
    assert len({(each.look.marker, each.look.hollow) for each in lines}) == len(lines) / len(chart.panels) == 2


def test_a_boundary_whose_neighbours_are_nowhere_has_a_marker(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three contexts, DSA at 32k and 64k is absorbed at every Q."""
    chart, results = drawing(f"{SPARSE} --context 2k,32k,64k", cli, monkeypatch)
    (bound,) = [line for line in marks(chart, Line) if line.y == "bound_queries"]
    assert [record["bound_queries"] is None for record in results["map_boundary"]] == [False, True, True]
    assert bound.markers


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("", "measured and estimated: first crossing, naive as an engine runs it"),
        ("--context 128k", ""),
        ("--tp 128 --batch 4096 --context 1k:128k:x2", ""),
        ("--tp 1,16", "measured and estimated: first crossing, naive as an engine runs it"),
    ],
)
def test_a_caption_speaks_of_what_is_drawn(more: str, told: str, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that was measured has one request, S up to 64k, and TP 1 to 8."""
    chart, _ = drawing(f"{CROSSOVER} {more}", cli, monkeypatch)
    labels = {line.label for line in marks(chart, Line)}
    assert ({"measured", "by estimate"} <= labels) == bool(told)
    assert ("as an engine runs it" in chart.caption) == bool(told)
    assert told in chart.caption
    assert ("bars: p10 to p90" in chart.caption) == ("measured" in labels)


def test_a_line_above_the_map_is_in_the_caption_alone(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """DSA at 8,192 keys, where both boundaries lie above 1,024 queries: neither is in the key."""
    chart, results = drawing(f"{SPARSE} --context 8k", cli, monkeypatch)
    (record,) = results["map_boundary"]
    assert record["flop_queries"] > 2048
    assert record["bound_queries"] > 2048
    assert not marks(chart, Line)
    assert f"above the map: naive takes less from Q {record['bound_queries']:,} at S 8,192" in chart.caption
    assert f"above the map: by FLOPs, naive from Q {record['flop_queries']:,} at S 8,192" in chart.caption


def test_thresholds_name_their_engine_once(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM 0.29 and 0.33 have the same for dense MLA."""
    chart, _ = drawing(f"{CROSSOVER} --engine vllm@0.29,vllm@0.33", cli, monkeypatch)
    rules = marks(chart, Rule)
    assert [rule.label for rule in rules if rule.label] == ["vLLM 0.29.0, vLLM 0.33.0 absorb up to"]
    assert [rule.text for rule in rules] == ["{}: FLASH_ATTN_MLA", "{}: FLASHMLA", "{}: TRITON_MLA"]


@pytest.mark.parametrize(
    ("line", "lacking"),
    [
        ("--engine vllm@0.26,vllm@0.29,vllm", "vLLM 0.26.0"),
        ("--engine vllm@0.26", "vLLM 0.26.0"),
        ("--gpu mi300x", "SGLang 0.5.23"),
        ("--gpu mi300x --engine sglang,vllm@0.26", "SGLang 0.5.23 or vLLM 0.26.0"),
        ("--gpu h100", None),
    ],
)
def test_an_engine_without_thresholds_is_told(line: str, lacking: str | None, cli: Run) -> None:
    """vLLM 0.26's were not read, and SGLang's are of NVIDIA GPUs: presets/engines."""
    document = json.loads(cli(f"crossover --model dsv3 {line} --format json").out)
    notes = [note for note in document["notes"] if note.startswith("No threshold of")]
    assert notes == ([f"No threshold of {lacking} was read for this model and GPU."] if lacking else [])


def test_releases_that_differ_stay_apart(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """FLASHINFER_MLA_SPARSE_SM90 and FLASH_ATTN_MLA_SPARSE_FA4 are new in 0.33; FlashMLA's depends on the GPU."""
    chart, results = drawing(
        "crossover --model dsv32 --sparse --engine vllm@0.29,vllm@0.33 --context 4k,8k", cli, monkeypatch
    )
    texts = {number_at(results, rule.path): rule.text for rule in marks(chart, Rule)}
    new = "FLASHINFER_MLA_SPARSE_SM90 and 1 more (vLLM 0.33.0)"
    assert texts == {
        1024: f"{{}}: FLASHINFER_MLA_SPARSE and 2 more; {new}",
        256: "{}: FLASH_ATTN_MLA_SPARSE and 1 more",
    }


def test_a_map_of_too_many_cells_is_refused_before_the_work(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sum over S from 1 to 2000 of the powers of two up to it and 1,024: 22,000 - 2,036 below S."""

    def working(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("mla_calc.cli.crossover.flop_crossover", working)
    answer = cli("crossover --model dsv3 --gpu h200 --context 1:2000:+1 --map")
    assert answer.code == 2
    assert "19,964 points asked for; one answer lists at most 10,000" in answer.err


def test_the_map_as_tables(cli: Run) -> None:
    """A row for every Q, a column for every S, a table for every TP: the cheaper path's factor, n where naive is."""
    line = "crossover --model dsv3 --gpu h100 --context 512,4k --tp 1,8 --map"
    text = cli(f"{line} --format markdown").out
    cells = {
        (cell["tp"], cell["queries"], cell["context"]): cell for cell in cli(f"{line} --format json").results["map"]
    }
    for tp in (1, 8):
        _, _, after = text.partition(f"Map by bound: factor for absorbed, or for naive (n); TP {tp}, 1 request")
        header, _, *rows = after.split("\n\n")[1].splitlines()
        assert header == "| Q | S 512 | 4,096 |"
        assert len(rows) == 11
        for power, row in enumerate(rows):
            queries, *factors = row.strip("| ").split(" | ")
            assert queries == f"{2**power:,}"
            for context, told in zip((512, 4096), factors, strict=True):
                assert told == cheaper(cells.get((tp, 2**power, context)))


def cheaper(cell: dict[str, Any] | None) -> str:
    """By how much the path with the lesser bound is below the other one, in two digits."""
    if cell is None:
        return "-"
    naive, absorbed = cell["naive_bound_s"], cell["absorbed_bound_s"]
    ratio = max(naive, absorbed) / min(naive, absorbed)
    return f"{'n ' * (naive < absorbed)}{float(f'{ratio:.2g}') if ratio < 10 else round(ratio):g}x"


def test_a_map_fits_a_terminal(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = cli("crossover --model dsv3 --map").out
    (header,) = [line for line in text.splitlines() if "S 1,024" in line]
    assert header.split() == ["Q", "S", *(f"{2**power:,}" for power in range(10, 18))]
    assert max(len(line) for line in text.partition("Map by FLOPs")[2].partition("\n\n")[0].splitlines()) <= 80


@pytest.mark.parametrize("line", FIGURES)
def test_titles_and_captions_name_what_is_drawn(line: str, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    chart, _ = drawing(line, cli, monkeypatch)
    text = f"{chart.title} {chart.caption}"
    assert "DeepSeek-V3" in text
    assert "bf16" in text
    if "--gpu " in line:
        assert "NVIDIA H" in text
    if command(line) in ("intensity", "crossover"):
        assert "dense" in text
    assert all(panel.x.label for panel in chart.panels)


def test_added_rows_are_the_csv(cli: Run) -> None:
    rows = cli(f"{CACHE} --by-tp --format csv").out.splitlines()
    assert rows[0] == "name,cached,tp,bytes_per_token,per_rank_bytes_per_token,cluster_bytes_per_token,ratio"
    assert len(rows) == 1 + 3 * 5
    cells = cli("crossover --model dsv3 --map --format csv").out.splitlines()
    assert cells[0].startswith("context,queries,tp,batch,absorbed_flop,naive_flop,")
    assert len(cells) == 1 + 8 * 11


def test_the_other_answers_are_as_they_were(cli: Run) -> None:
    """Without the options no key is added, and the context is one."""
    assert "by_tp" not in json.loads(cli(f"{CACHE} --format json").out)["results"]
    document = json.loads(cli(f"{CROSSOVER} --format json").out)
    assert not {"map", "map_boundary"} & set(document["results"])
    assert document["inputs"]["context"] == [4096]


def test_sizes_that_are_offered_are_those_that_can_be_drawn() -> None:
    assert tuple(SIZES) == options.SIZES
