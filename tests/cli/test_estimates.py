"""Estimates beside bounds where the GPU's preset has constants, and a note where it has none."""

from __future__ import annotations

import copy
import json
import statistics
from pathlib import Path
from typing import Any

import pytest
import yaml

from mla_calc.data import find_preset

WIDTHS = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
LIMITS = {"heads": [16, 128], "flop": [0, 10**18], "bytes": [0, 10**15]}
AXES = {"batch": [1, 8], "queries": [1, 1024], "context": [64, 65536]}


def calibration(path: str, part: str, kernel: str, t0_us: float) -> dict[str, Any]:
    return {
        "path": path,
        "part": part,
        "kernel": kernel,
        "dtype": "bf16",
        "cache": "bf16",
        "run": "20261130T013000Z-h200",
        "date": "2026-11-30",
        "t0_us": [[1, t0_us]],
        "memory": [[1, 0.5]],
        "domain": copy.deepcopy(WIDTHS | LIMITS | AXES),  # YAML would write a shared list as an alias
        "fit": {"seed": 1, "holdout": 0.3, "rows": 40, "held_out": None},
    }


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """An H200 whose kernels take t0 and twice what their bytes take."""
    preset = find_preset("gpus", "h200")[1]
    preset["calibration"] = [
        calibration("absorbed", "q_fold", "ours", 2),
        calibration("absorbed", "attention", "ours", 10),
        calibration("absorbed", "v_up", "ours", 3),
        calibration("naive", "gather", "theirs", 4),
        calibration("naive", "up_proj", "theirs", 5),
        calibration("naive", "attention", "theirs", 6),
    ]
    path = tmp_path / "card.yaml"
    path.write_text(yaml.safe_dump(preset, sort_keys=False))
    return path


def test_flops_shows_estimates_beside_bounds(cli: Any, card: Path) -> None:
    answer = cli(f"flops --model dsv3 --gpu {card} -f json")
    absorbed, naive = answer.results["absorbed"], answer.results["naive"]
    moved = 4096 * 1152 + 128 * 1088 * 2
    attention = next(kernel for kernel in absorbed["kernels"] if kernel["name"] == "attention")
    assert attention["estimate_s"] == pytest.approx(10e-6 + moved / 2.4e12)
    assert absorbed["estimate_s"] == pytest.approx(15e-6 + absorbed["bytes"] / 2.4e12)
    assert absorbed["total_estimate_s"] == pytest.approx(61 * absorbed["estimate_s"])
    gathered = 2 * 4096 * 1152
    assert naive["estimate_s"] == pytest.approx(15e-6 + (naive["bytes"] + gathered) / 2.4e12)
    assert [part["name"] for part in naive["estimated"]["parts"]] == ["gather", "up_proj", "attention"]
    assert (absorbed["estimated"]["kernel"], naive["estimated"]["kernel"]) == ("ours", "theirs")
    assert answer.results["lower_estimate"] == "absorbed"


def test_a_boundary_is_a_part_below_zero(cli: Any, card: Path) -> None:
    preset = yaml.safe_load(card.read_text())
    before = cli(f"flops --model dsv3 --gpu {card} -f json").results["absorbed"]["estimate_s"]
    preset["boundaries"] = [
        {
            "path": "absorbed",
            "kernel": "ours",
            "dtype": "bf16",
            "cache": "bf16",
            "us": -3.5,
            **WIDTHS,
            "qk_nope_head_dim": 128,
            "v_head_dim": 128,
            "run": "20261130T013000Z-h200",
            "date": "2026-11-30",
            "fit": {"seed": 1, "holdout": 0.3, "rows": 40},
        }
    ]
    card.write_text(yaml.safe_dump(preset, sort_keys=False))
    found = cli(f"flops --model dsv3 --gpu {card} -f json").results["absorbed"]
    assert found["estimate_s"] == pytest.approx(before - 3.5e-6)
    assert found["estimated"]["parts"][-1]["name"] == "boundary"
    text = cli(f"flops --model dsv3 --gpu {card}").out
    (line,) = [line for line in text.splitlines() if "absorbed: boundary" in line]
    assert line.split() == ["absorbed:", "boundary", "-3.5", "us"]


def test_the_table_has_a_column_of_estimates(cli: Any, card: Path) -> None:
    text = cli(f"flops --model dsv3 --gpu {card}").out
    header = next(line for line in text.splitlines() if "FLOP/B" in line)
    assert header.split()[-2:] == ["binds", "estimate"]
    (gather,) = [line for line in text.splitlines() if line.strip().startswith("naive: gather")]
    assert gather.split() == ["naive:", "gather", "7.93", "us"]  # 4 us + 9,437,184 B at 2.4 TB/s
    assert "20261130T013000Z-h200" in text.replace("\n", "")


def test_a_list_has_a_second_table(cli: Any, card: Path) -> None:
    text = cli(f"flops --model dsv3 --gpu {card} --context 4k,128k").out
    estimated = text[text.index("absorbed estimate") :].splitlines()[1:3]
    assert estimated[0].split()[-1] == "absorbed"
    assert estimated[1].split()[-3:] == ["-", "-", "-"]
    assert "131,072 is outside 64 to 65,536" in " ".join(text.split())


def test_without_a_calibration_the_estimate_is_null_with_a_note(cli: Any) -> None:
    answer = cli("flops --model dsv3 --gpu h100 -f json")
    for path in ("absorbed", "naive"):
        assert answer.results[path]["bound_s"] > 0
        assert answer.results[path]["estimate_s"] is None
        assert all(kernel["estimate_s"] is None for kernel in answer.results[path]["kernels"])
    assert "No calibration of NVIDIA H100 SXM5 80GB" in answer.out
    assert "estimate" not in cli("flops --model dsv3 --gpu h100").out.split("note:")[0]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--dtype fp8", "cache fp8"),
        ("--mma-dtype fp16", "in fp16"),
        ("--queries 2 --rectangular", "rectangular"),
        ("--weight-bytes 1", "2 bytes"),
        ("--batch 64", "batch 64"),
    ],
)
def test_what_was_not_measured_has_no_estimate_and_a_reason(cli: Any, card: Path, options: str, named: str) -> None:
    answer = cli(f"flops --model dsv3 --gpu {card} {options} -f json")
    assert answer.results["absorbed"]["estimate_s"] is None
    assert named in answer.out


def test_sparse_attention_has_no_estimate(cli: Any, card: Path) -> None:
    for command in ("flops", "crossover"):
        answer = cli(f"{command} --model dsv32 --sparse --gpu {card} -f json")
        assert answer.code == 0
        assert "sparse: it was not measured" in answer.out
    assert cli(f"crossover --model dsv32 --sparse --gpu {card} -f json").results["estimated"] is None


def both_us(queries: int, context: int) -> tuple[float, float]:
    """The absorbed and the naive path of DeepSeek-V3 at TP 1 on the card above, written out."""

    def kernel(t0_us: float, flop: float, moved: float) -> float:
        return t0_us + max(flop / 989.4e6, moved / 2.4e6)

    pairs = queries * (context - queries) + queries * (queries + 1) // 2
    fold = (2 * queries * 128 * 128 * 512, 2 * (128 * 128 * 512 + queries * 128 * 640))
    absorbed = kernel(2, *fold) + kernel(3, *fold)
    absorbed += kernel(10, 2 * pairs * 128 * 1088, context * 1152 + 2 * queries * 128 * 1088)
    naive = kernel(4, 0, 2 * context * 1152)
    naive += kernel(5, 2 * context * 512 * 128 * 256, context * 1152 + 2 * (512 * 128 * 256 + context * 128 * 320))
    naive += kernel(6, 2 * pairs * 128 * 320, 2 * (context + queries) * 128 * 320)
    return absorbed, naive


def test_crossover_has_a_crossover_by_estimate(cli: Any, card: Path) -> None:
    answer = cli(f"crossover --model dsv3 --gpu {card} --context 64,4k,100k -f json")
    short, usual, beyond = answer.results["estimated"]["by_context"]
    for point, context, most in ((short, 64, 64), (usual, 4096, 1024)):
        wins = [naive < absorbed for absorbed, naive in (both_us(queries, context) for queries in range(1, most + 1))]
        assert point["first_queries_naive_wins"] == (1 + wins.index(True) if any(wins) else None)
        assert (point["searched_from_queries"], point["searched_to_queries"]) == (1, most)
    assert usual["sources"] == [{"run": "20261130T013000Z-h200", "date": "2026-11-30"}]
    assert beyond["searched_from_queries"] is None
    assert "102,400 is outside" in beyond["reason"]
    assert "By estimate on this GPU" in cli(f"crossover --model dsv3 --gpu {card}").out


CROSSINGS = ("first_queries_naive_wins", "naive_wins_to_end_from")


def test_the_table_lists_every_stretch_in_eighty_columns(cli: Any) -> None:
    """Of the shipped card: what the table says is what the JSON does, and nothing of the search is left out."""
    line = "crossover --model dsv3 --gpu h200 --context 1k,4k,64k --tp 1,8"
    points = cli(f"{line} -f json").results["estimated"]["by_context"]
    assert any(item["path"] is None for point in points for item in point["intervals"])
    assert any(point["naive_wins_to_end_from"] != point["first_queries_naive_wins"] for point in points)
    printed = cli(line).out
    for name in ("naive", "naive_in_place"):
        table = printed.partition(f"By estimate on this GPU ({name})")[2].partition("\n\n")[0].splitlines()[1:]
        assert max(map(len, table)) <= 80
        assert "".join(table[0].split()) == "contextTPbatchnaivefromforgoodwhichpathwins"
        rows: list[list[str]] = []
        for text in table[1:]:
            words = text.replace(",", "").split()
            if words[0].isdigit():
                rows.append(words)
            else:
                rows[-1] += words
        expected = []
        for point in points:
            if point["naive_kernel"] != name:
                continue
            numbers = [point[key] for key in ("context", "tp", "batch", *CROSSINGS)]
            words = [f"{item['path'] or 'no estimate'} to {item['to_queries']}" for item in point["intervals"]]
            expected.append(" ".join([*("-" if number is None else str(number) for number in numbers), *words]))
        assert [" ".join(row) for row in rows] == expected


def test_the_errors_of_estimates_stand_beside_the_crossover(cli: Any) -> None:
    answer = cli("crossover --model dsv3 --gpu h200 -f json")
    preset = find_preset("gpus", "h200")[1]
    held = {item["kernel"]: item["fit"]["held_out"] for item in preset["boundaries"]}
    errors = {item["kernel"]: item for item in answer.results["estimated"]["errors"]}
    assert {"hopper", "naive", "naive_in_place"} <= set(errors)
    (note,) = [note for note in json.loads(answer.out)["notes"] if note.startswith("Estimates of whole paths were off")]
    for kernel, item in errors.items():
        assert (item["median_ape"], item["p90_ape"]) == (held[kernel]["median_ape"], held[kernel]["p90_ape"])
        percent = [float(f"{item[key] * 100:.2g}") for key in ("median_ape", "p90_ape")]
        assert f"{kernel} {percent[0]:g} % and {percent[1]:g} %" in note


def test_how_far_estimated_crossovers_are_off_is_what_the_manual_says(cli: Any) -> None:
    """Every place that the run measured: the first crossover against the first, the one for good against the last."""
    contexts = "1k,2k,4k,8k,16k,32k,64k"
    results = cli(f"crossover --model dsv3 --gpu h200 --tp 1,2,4,8 --context {contexts} -f json").results
    at = {
        (item["context"], item["tp"], item["naive_kernel"]): [item[key] for key in CROSSINGS]
        for item in results["estimated"]["by_context"]
    }
    first, last = [], []
    for place in results["measured"]:
        begins, stays = at[place["context"], place["tp"], place["naive"]]
        first.append(abs(begins / place["queries"] - 1))
        if stays is not None:
            last.append(abs(stays / (place["last_queries"] or place["queries"]) - 1))
    assert (len(first), len(first) - len(last)) == (40, 3)
    said = [
        [round(100 * figure) for figure in (statistics.median(off), sorted(off)[int(0.9 * len(off))], max(off))]
        for off in (first, last)
    ]
    page = " ".join((Path(__file__).parents[2] / "docs" / "crossover.md").read_text(encoding="utf-8").split())
    (median, most, worst), later = said
    assert f"off by {median} % in the median, {most} % at the 90th percentile and {worst} % at worst" in page
    assert f"off by {later[0]}, {later[1]} and {later[2]} %, against the last" in page


def test_errors_that_a_preset_does_not_state_are_not_passed_over(cli: Any, card: Path) -> None:
    preset = yaml.safe_load(card.read_text())
    del preset["boundaries"]
    card.write_text(yaml.safe_dump(preset, sort_keys=False))
    assert "is not stated" in cli(f"crossover --model dsv3 --gpu {card}").out


def test_crossover_without_a_calibration(cli: Any) -> None:
    answer = cli("crossover --model dsv3 --gpu h100 -f json")
    assert answer.results["estimated"] is None
    assert "No calibration of NVIDIA H100 SXM5 80GB" in answer.out
    assert cli("crossover --model dsv3 -f json").results["estimated"] is None


def test_the_csv_has_the_estimates(cli: Any, card: Path) -> None:
    header, first = cli(f"crossover --model dsv3 --gpu {card} -f csv").out.splitlines()[:2]
    row = dict(zip(header.split(","), first.split(","), strict=True))
    assert row["estimated.theirs.searched_to_queries"] == "1024"
    assert "absorbed.estimate_s" in cli(f"flops --model dsv3 --gpu {card} --batch 1,2 -f csv").out


CROSSED = {"naive": "naive", "heads": 16, "batch": 1, "context": 4096, "queries": 581.8, "low": 574.4, "high": 587.2}


def crossovers(*at: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "run": "20261130T013000Z-h200",
        "date": "2026-11-30",
        **WIDTHS,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "dtype": "bf16",
        "cache": "bf16",
        "at": list(at),
        **changes,
    }


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """An H200 that was measured with 16 heads at 4,096 and 8,192 keys, and once with a narrower cache."""
    preset = find_preset("gpus", "h200")[1]
    del preset["calibration"]
    preset["crossovers"] = [
        crossovers(CROSSED, {**CROSSED, "context": 8192, "queries": 553.0}, {**CROSSED, "naive": "naive_in_place"}),
        crossovers({**CROSSED, "queries": 99.0, "low": None}, cache="fp8"),
    ]
    path = tmp_path / "measured.yaml"
    path.write_text(yaml.safe_dump(preset, sort_keys=False))
    return path


def test_a_measured_crossover_stands_beside_the_others(cli: Any, measured: Path) -> None:
    line = f"crossover --model dsv3 --gpu {measured} --tp 8"
    answer = cli(f"{line} -f json")
    once = {"crossed_again": [], "last_queries": None}
    expected = {**CROSSED, **once, "tp": 8, "run": "20261130T013000Z-h200", "date": "2026-11-30"}
    assert answer.results["measured"] == [expected, {**expected, "naive": "naive_in_place"}]
    assert "No measured crossover" not in answer.out
    (found,) = cli(f"{line} --dtype fp8 -f json").results["measured"]
    assert (found["queries"], found["low"]) == (99.0, None)
    text = cli(line).out
    rows = text[text.index("Measured on this GPU") :].splitlines()[2:4]
    assert rows[0].split() == ["4,096", "8", "16", "1", "naive", "581.8", "574.4", "587.2"]
    assert "run 20261130T013000Z-h200 of 2026-11-30" in text.replace("\n", " ")


def test_a_measured_crossover_that_is_not_the_last_says_so(cli: Any, measured: Path) -> None:
    preset = yaml.safe_load(measured.read_text())
    first, _, in_place = preset["crossovers"][0]["at"]
    first |= {"crossed_again": [768], "last_queries": 901.5}
    in_place |= {"crossed_again": [768, 1024]}
    measured.write_text(yaml.safe_dump(preset, sort_keys=False))
    line = f"crossover --model dsv3 --gpu {measured} --tp 8"
    answer = cli(f"{line} -f json")
    assert [(at["crossed_again"], at["last_queries"]) for at in answer.results["measured"]] == [
        ([768], 901.5),
        ([768, 1024], None),
    ]
    table = cli(line).out
    rows = table[table.index("Measured on this GPU") :].splitlines()[1:4]
    assert rows[0].split()[-2:] == ["not", "at"]
    assert [row.split()[-2:] for row in rows[1:]] == [["587.2", "768"], ["768,", "1,024"]]
    text = table.replace("\n", " ")
    assert "first from 582 (naive, absorbed again at Q = 768 (naive from 902 on))" in text
    for place in (
        "naive, 16 heads, batch 1, context 4,096: at Q = 768 (naive from 902 on)",
        "naive_in_place, 16 heads, batch 1, context 4,096: at Q = 768, 1,024, the most measured",
    ):
        assert place in text
    assert "rossed more than once" not in cli(f"{line} --context 8k").out
    header, row = cli(f"{line} -f csv").out.splitlines()[:2]
    assert dict(zip(header.split(","), row.split(","), strict=True))["measured.naive.last_queries"] == "901.5"


def test_several_points_have_those_that_were_measured(cli: Any, measured: Path) -> None:
    answer = cli(f"crossover --model dsv3 --gpu {measured} --tp 8,4 --context 8k,10000 -f json")
    assert [(item["context"], item["tp"], item["queries"]) for item in answer.results["measured"]] == [(8192, 8, 553)]
    assert "16 heads per rank at contexts 4,096, 8,192, batch 1" in answer.out


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("", "16 heads per rank"),  # 128 on one rank
        ("--tp 8 --batch 2", "batch 1"),
        ("--tp 8 --context 4095", "contexts 4,096, 8,192"),
        ("--tp 8 --mma-dtype fp16", "bf16 products"),
        ("--tp 8 --weight-bytes 1", "2 bytes were measured"),
    ],
)
def test_nothing_stands_in_for_what_was_not_measured(cli: Any, measured: Path, options: str, named: str) -> None:
    answer = cli(f"crossover --model dsv3 --gpu {measured} {options} -f json")
    assert answer.code == 0
    assert answer.results["measured"] is None
    (note,) = [note for note in json.loads(answer.out)["notes"] if "No measured crossover" in note]
    assert named in note
    assert "Measured on this GPU" not in cli(f"crossover --model dsv3 --gpu {measured} {options}").out


def test_other_widths_and_other_gpus_have_no_measured_crossover(cli: Any, measured: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.yaml"
    preset = find_preset("models", "dsv3")[1]
    preset["mla"] |= {"kv_lora_rank": 256}
    for key in ("expect", "aliases", "errata"):
        preset.pop(key, None)
    model.write_text(yaml.safe_dump(preset, sort_keys=False))
    answer = cli(f"crossover --model {model} --gpu {measured} --tp 8 -f json")
    assert answer.results["measured"] is None
    assert "512/64/128/128 were measured, not 256/64/128/128" in answer.out
    answer = cli("crossover --model dsv3 --gpu h100 -f json")
    assert answer.results["measured"] is None
    assert "NVIDIA H100 SXM5 80GB records none" in answer.out
    sparse = cli(f"crossover --model dsv32 --sparse --gpu {measured} --tp 8 -f json")
    assert sparse.results["measured"] is None
    assert "dense attention was measured" in sparse.out


def test_rows_of_a_batch_have_estimates_of_their_own(cli: Any, card: Path) -> None:
    answer = cli(f"dispatch --model dsv3 --gpu {card} --rows 1:4095,100:3996,1:100000,1:4095 -f json")
    first, longer, beyond, again = answer.results["rows"]
    for row, queries in ((first, 1), (longer, 100)):
        absorbed, naive = both_us(queries, 4096)
        assert row["absorbed_estimate_s"] == pytest.approx(absorbed * 1e-6)
        assert row["naive_estimate_s"] == pytest.approx(naive * 1e-6)
        assert (row["absorbed_estimate_kernel"], row["naive_estimate_kernel"]) == ("ours", "theirs")
    assert again == first
    assert (beyond["absorbed_estimate_s"], beyond["naive_estimate_s"]) == (None, None)
    assert (beyond["absorbed_estimate_kernel"], beyond["naive_estimate_kernel"]) == (None, None)
    assert beyond["absorbed_bound_s"] > 0
    notes = " ".join(json.loads(answer.out)["notes"])
    assert "100,001 is outside" in notes
    assert "kernels that this tool ran there (ours, theirs)" in notes
    assert "A batch has no estimate" in notes
    assert not any("estimate" in key for key in answer.results["batch"])
    assert "absorbed_estimate_s" in cli(f"dispatch --model dsv3 --gpu {card} --rows 1:4095 -f csv").out


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("dispatch --model dsv3 --gpu h100 --rows 1:4095", "No calibration of NVIDIA H100"),
        ("dispatch --model dsv32 --gpu {card} --sparse --rows 1:4095", "sparse: it was not measured"),
        ("dispatch --model dsv3 --gpu {card} --dtype fp8 --rows 1:4095", "cache fp8"),
    ],
)
def test_a_row_that_was_not_measured_has_no_estimate(cli: Any, card: Path, line: str, named: str) -> None:
    answer = cli(f"{line.format(card=card)} -f json")
    (row,) = answer.results["rows"]
    assert (row["absorbed_estimate_s"], row["naive_estimate_s"]) == (None, None)
    assert named in answer.out
    assert "A batch has no estimate" not in answer.out
    assert "Estimated" not in cli(line.format(card=card)).out


WIDE = [
    "flops --model dsv3 --gpu h200",
    "flops --model dsv3 --gpu h200 --tp 8 -q 4 -b 32 -s 16k",
    "flops --model dsv3 --gpu h200 -q 512 -s 64k",
    "flops --model dsv3 --gpu h200 --tp 8 -b 1,128 -s 4k,64k",
    "crossover --model dsv3 --gpu h200 --tp 1,8 -s 4k,64k",
    "dispatch --model dsv3 --gpu h200 --rows 1:4096,100:4096,600:60000",
    "dispatch --model dsv3 --gpu h200 --engine sglang --rows 1:4096,1:60000",
]


@pytest.mark.parametrize("line", WIDE)
def test_tables_with_estimates_fit_80_columns(cli: Any, line: str) -> None:
    text = cli(line).out
    assert "stimate" in text
    tables = [row for row in text.splitlines() if row.startswith("  ")]
    assert max(map(len, tables)) <= 80


def test_the_csv_has_measured_crossovers_by_naive_path(cli: Any, measured: Path) -> None:
    text = cli(f"crossover --model dsv3 --gpu {measured} --tp 8,4 --context 8k,4k -f csv").out
    header, *lines = text.splitlines()
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    both = [
        (row["context"], row["tp"], row["measured.naive.queries"], row["measured.naive_in_place.low"]) for row in rows
    ]
    assert both == [
        ("8192", "8", "553.0", ""),
        ("8192", "4", "", ""),
        ("4096", "8", "581.8", "574.4"),
        ("4096", "4", "", ""),
    ]
