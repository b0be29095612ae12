"""The Markdown report of a validate run: its numbers are the records', its links lead to files beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mla_calc.errors import InputError
from mla_calc.hardware.load import load_gpu
from mla_calc.validate.compare import Comparison
from mla_calc.validate.engine_lines import EngineLines, engine_lines
from mla_calc.validate.page import page_text, write_page
from mla_calc.validate.page_markdown import table
from mla_calc.validate.page_tables import MOST_SHOWN
from mla_calc.validate.record import Check, Row, Run, Skipped
from tests.validate.synthetic import bound_us, made_up, synthetic_comparison, synthetic_run

H200 = load_gpu("h200")
RUN = synthetic_run(batches=(1, 32), contexts=(1024, 16_384))
COMPARISON = synthetic_comparison(RUN)


def written(run: Run, comparison: Comparison | None = None) -> str:
    """The report's text, without its figures."""
    engines = engine_lines({row.heads for row in run.rows}, H200)
    found = comparison or synthetic_comparison(run)
    return page_text(run, found, H200, engines, (), record_name="run.json", command=None)


def section(text: str, title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows_of(text: str) -> list[list[str]]:
    """The rows of all tables of a section, headers and rules left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rules = {at for at, line in enumerate(lines) if set(line) <= set("|-: ")}
    return [cells(line) for at, line in enumerate(lines) if at not in rules and at + 1 not in rules]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report"
    assert write_page(RUN, COMPARISON, path) == path / "report.md"
    return path


def test_every_figure_is_linked_and_there(folder: Path) -> None:
    linked = re.findall(r"!\[([^]]+)\]\(([^)]+)\)", (folder / "report.md").read_text(encoding="utf-8"))
    names = [
        "measured-against-bound",
        "roofline",
        "measured-against-estimate",
        "crossover-naive",
        "crossover-naive-in-place",
        "decode-efficiency",
    ]
    assert [name for _, name in linked] == [f"{name}.svg" for name in names]
    assert {path.name for path in folder.iterdir()} == {
        "report.md",
        *(f"{name}.{suffix}" for name in names for suffix in ("svg", "png")),
    }


def test_the_report_is_what_page_text_gives_and_is_written_again_alike(folder: Path, tmp_path: Path) -> None:
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert re.sub(r"!\[.*\n\n?", "", text).split() == written(RUN).split()
    write_page(RUN, COMPARISON, tmp_path)
    for path in folder.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_machine_and_clocks() -> None:
    found = {row[0]: row[1:] for row in rows_of(section(written(RUN), "What was measured on"))}
    assert found["device"] == ["SYNTHETIC H200"]
    assert found["driver, CUDA"] == ["580.159, 13.0"]
    assert found["L2 cache"] == ["60.0 MiB"]  # 62,914,560 B
    assert found["before"] == ["1,980", "3,201", "118.4", "34"]
    assert found["after"] == ["1,755", "3,201", "688", "61"]


def test_ceilings_stand_beside_the_datasheet() -> None:
    found = {row[0]: row[1:] for row in rows_of(section(written(RUN), "Ceilings"))}
    assert found["read"] == ["4.51 TB/s", "4.8 TB/s", "0.940"]  # 4.51 / 4.8 = 0.9396
    assert found["copy, read plus write"] == ["4.28 TB/s", "4.8 TB/s", "0.892"]
    assert found["bf16 product, 8192 x 8192 x 8192"] == ["790 TFLOP/s", "989.4 TFLOP/s", "0.798"]
    assert found["empty kernel in a replayed graph"] == ["2.1 us", "-", "-"]


def test_the_rate_that_a_product_keeps_up_stands_beside_its_best() -> None:
    hot = replace(RUN, ceilings=replace(RUN.ceilings, sustained_gemm_flop_per_s={"bf16": 6.6e14}))
    found = {row[0]: row[1:] for row in rows_of(section(written(hot), "Ceilings"))}
    assert found["bf16 product after seconds of it"] == ["660 TFLOP/s", "989.4 TFLOP/s", "0.667"]  # 660 / 989.4


def test_correctness_by_kernel_and_failures_by_case() -> None:
    bad = Check(kernel="small", case="fp16 h=8", relative_error=0.25, tolerance=3e-3, correct=False)
    nan = Check(
        kernel="small", case="bf16 h=8", relative_error=None, tolerance=3e-3, correct=False, message="holds NaN"
    )
    text = section(written(replace(RUN, checks=(*RUN.checks, bad, nan))), "Correctness")
    found = {row[0]: row[1:] for row in rows_of(text)}
    assert found["hopper"] == ["2", "0", "1.90e-03", "3e-03"]
    assert found["small"] == ["3", "2", "2.50e-01", "3e-03"]
    assert "- small, fp16 h=8: relative error 2.50e-01" in text
    assert "- small, bf16 h=8: holds NaN" in text


def test_naive_paths_are_checked_in_their_cells_and_say_what_they_dropped() -> None:
    text = section(written(RUN), "Correctness")
    assert "No check is recorded of: naive, naive_in_place." in text
    rows = tuple(
        replace(row, relative_error=6e-3 if row.queries == 64 else 2e-3, dropped={"flash": "relative error 3e-02"})
        if row.kernel == "naive"
        else row
        for row in RUN.rows
    )
    cells = sum(row.kernel == "naive" for row in rows)
    text = section(written(replace(RUN, rows=rows)), "Correctness")
    assert ["naive", str(cells), "0", "6.00e-03", "1e-02"] in rows_of(text)
    assert ["naive", "flash", str(cells), "relative error 3e-02"] in rows_of(text)
    assert "No check is recorded of: naive_in_place." in text
    off = tuple(replace(row, relative_error=2e-2) if row.relative_error == 6e-3 else row for row in rows)
    wrong = sum(row.relative_error == 2e-2 for row in off)
    text = written(replace(RUN, rows=off))
    assert ["naive", str(cells), str(wrong), "2.00e-02", "1e-02"] in rows_of(section(text, "Correctness"))
    assert "wrong results: naive" in section(text, "Verdict")


def test_cells_with_launches_in_their_times_are_told_first() -> None:
    rows = tuple(replace(row, uncaptured="no CUDA graph") if row.kernel == "small" else row for row in RUN.rows)
    count = sum(row.kernel == "small" for row in rows)
    assert f"**Without a CUDA graph**: {count} cells" in written(replace(RUN, rows=rows)).partition("## ")[0]
    assert "Without a CUDA graph" not in written(RUN)


def test_a_stopped_run_says_what_stopped_it() -> None:
    text = written(replace(RUN, finished=None, stopped="unspecified launch failure"))
    assert "**Stopped before its end** (unspecified launch failure)" in text.partition("## ")[0]
    found = {row[0]: row[1:] for row in rows_of(section(text, "What was measured on"))}
    assert found["stopped by"] == ["unspecified launch failure"]


def test_paths_of_two_dtypes_have_maps_of_their_own(tmp_path: Path) -> None:
    half = [replace(row, dtype="fp16") for row in timed_at({64: 2.0, 256: 0.5}, 16, 4096)]
    run = replace(RUN, rows=(*timed_at({64: 2.0, 1024: 0.5}, 16, 4096), *half))
    write_page(run, synthetic_comparison(run), tmp_path)
    assert {path.name for path in tmp_path.glob("crossover*.svg")} == {
        "crossover-naive-bf16-bf16.svg",
        "crossover-naive-fp16-bf16.svg",
    }
    _, ranges, _ = crossover_tables(run)
    assert [(row[1], row[5]) for row in ranges] == [("bf16, 16-bit", "256"), ("fp16, 16-bit", "128")]


def test_kernels_have_the_median_of_bound_over_time() -> None:
    from statistics import median

    found = {(row[0], row[1]): row[2:] for row in rows_of(section(written(RUN), "Kernels against the bound"))}
    mine = [row for row in RUN.rows if row.kernel == "small"]
    shares = median(bound_us(row) / row.time_us for row in mine)
    assert found["small", "16-bit"][:2] == [str(len(mine)), f"{shares:.3f}"]
    mine = [row for row in RUN.rows if row.cache == "fp8"]
    shares = median(bound_us(row) / row.time_us for row in mine)
    assert found["tile64", "fp8"][:2] == ["4", f"{shares:.3f}"]


def test_without_an_estimate_the_bound_says_what_binds() -> None:
    bare = [replace(cell, prediction=None) for cell in COMPARISON.rows]
    text = written(RUN, replace(COMPARISON, rows=tuple(bare), estimate=None))
    assert "in the bound alone" in section(text, "Kernels against the bound")
    assert "No row has an estimate" in section(text, "Estimate")


def test_violations_are_listed_with_their_cause() -> None:
    row = replace(made_up("hopper", "attention", 16, 32, 1, 16_384), time_us=60.0)
    # 32 * 16,384 rows of 1,152 B at 4.8 TB/s are 125.8 us, and 32 tokens of 16 heads a little more
    text = section(written(replace(RUN, rows=(row,))), "Below a bound")
    assert "1 measurement below the datasheet bound" in text
    assert rows_of(text)[0] == ["hopper", "16-bit", "16", "32", "1", "16,384", "60 us", "126.1 us"]
    assert "- 1 cell: " in text


def crossover_tables(run: Run, comparison: Comparison | None = None) -> tuple[str, list[list[str]], list[list[str]]]:
    """The section's text, the rows of its ranges, and those of all places."""
    text = section(written(run, comparison), "Crossover of the absorbed and the naive path")
    ranges, places = text.split("Every place:")
    return text, rows_of(ranges), rows_of(places)


def test_crossover_rows_are_the_records() -> None:
    text, _, places = crossover_tables(RUN)
    found = {(row[0], int(row[2]), row[4]): row[5:] for row in places}
    assert len(found) == len(COMPARISON.crossover) == 2 * 2 * 4
    for item in COMPARISON.crossover:
        measured, _, flop, _ = found[item.naive, item.heads, f"{item.context:,}"]
        assert measured == f"{item.measured_queries:,.0f}"
        assert flop == str(item.flop_queries)
    # by FLOPs: the smallest Q with 196,608 (Q (S - Q) + Q (Q + 1) / 2) > 33,554,432 (S - Q), S = 4096: 168
    assert found["naive", 16, "4,096"][2] == "168"
    for line in ("FLASH_ATTN_MLA: absorbed up to 512 queries", "FLASHMLA: absorbed up to 128 queries"):
        assert line in text
    assert "TRITON_MLA: absorbed up to 1 query\n" in text
    assert "expanded from 8,192 prefix tokens" in text


def test_crossover_rows_are_in_order_whatever_the_order_of_the_run() -> None:
    backwards = replace(COMPARISON, crossover=tuple(reversed(COMPARISON.crossover)))
    for found in (COMPARISON, backwards):
        _, ranges, places = crossover_tables(RUN, found)
        keys = [(row[0], int(row[2]), int(row[4].replace(",", ""))) for row in places]
        assert keys == [
            (naive, heads, context)
            for naive in ("naive", "naive_in_place")
            for heads in (16, 128)
            for context in (1024, 4096, 16_384, 65_536)
        ]
        assert [(row[0], row[2]) for row in ranges] == [
            ("naive", "16"), ("naive", "128"), ("naive_in_place", "16"), ("naive_in_place", "128"),
        ]  # fmt: skip


def timed_at(naive_over_absorbed: dict[int, float], heads: int, context: int) -> list[Row]:
    """Rows of both paths, of 100 us for the absorbed one."""
    return [
        replace(made_up(kernel, scope, heads, 1, queries, context), time_us=100 * factor, p10_us=None, p90_us=None)
        for queries, ratio in naive_over_absorbed.items()
        for kernel, scope, factor in (("hopper", "absorbed", 1.0), ("naive", "naive", ratio))
    ]


def test_what_was_found_is_said_in_the_records_numbers() -> None:
    rows = [
        *timed_at({64: 2.0, 256: 0.5}, 16, 4096),  # meet at the geometric mean: 128
        *timed_at({64: 2.0, 1024: 0.5}, 16, 16_384),  # at 256
        *timed_at({128: 4.0, 512: 0.25, 768: 1.5, 1024: 0.5}, 128, 4096),  # at 256, and absorbed is faster at 768
        *timed_at({64: 2.0, 256: 1.5}, 128, 16_384),  # not at all
    ]
    text, ranges, _ = crossover_tables(replace(RUN, rows=tuple(rows)))
    assert "The measured crossover lies at 128 to 256 queries over 4 places" in text
    # by FLOPs 168 at S = 4,096 and 170 at 16,384, as in docs/cost-model.md
    assert "By FLOPs it is predicted at 168 to 170, by the datasheet bounds of NVIDIA H200 SXM 141GB at 171 to" in text
    assert "At 1 of the places the paths did not meet." in text
    assert "above the prediction by FLOPs at 2 of 3" in text
    assert "above the prediction by time at 2 of 3" in text
    assert "above the 1 of TRITON_MLA at 3 of 3" in text
    assert "above the 512 of FLASH_ATTN_MLA at 0 of 3" in text
    assert "At 1 place the absorbed path was faster again" in text
    # from 768 to 1024 at even steps of log(1.5) and log(0.5): naive again from 768 * (4 / 3) ** 0.369 = 854
    assert "naive h=128 b=1 S=4,096 at Q = 768 (naive from 854 on)." in text
    assert [(row[2], row[4], row[5]) for row in ranges] == [
        ("16", "4,096 to 16,384", "128 to 256"),
        ("128", "4,096 to 16,384", "256"),
    ]


def test_a_crossover_beyond_the_measured_range_says_so() -> None:
    rows = tuple(row for row in RUN.rows if row.scope == "attention" or row.queries <= 64)
    text, ranges, places = crossover_tables(replace(RUN, rows=rows))
    assert "absorbed is faster up to Q = 64" in text
    assert "The paths did not meet within the measured queries, at none of 16 places." in text
    assert ranges[0][5] == "-"
    assert places[0][5:7] == ["-", "- to -"]


def test_estimate_errors() -> None:
    found = {row[0]: row[1:] for row in rows_of(section(written(RUN), "Estimate"))}
    assert found["all rows"][0] == f"{len(RUN.rows):,}"
    assert found["rows over 100 us"][0] == str(sum(row.time_us > 100 for row in RUN.rows))
    assert all(float(value.split()[0]) < 5.3 for value in found["all rows"][1:])  # 0.05 / 0.95
    assert found["held out of the calibration, decode"]


def test_best_and_worst_are_over_100_us_and_in_order() -> None:
    text = section(written(RUN), "Best and worst decode cells")
    shares = [float(row[-1]) for row in rows_of(text)]
    assert shares == sorted(shares, reverse=True)
    assert all(row[-2].endswith("ms") or float(row[-2].split()[0]) > 100 for row in rows_of(text))


def test_kernels_that_are_not_picked_are_neither_best_nor_worst() -> None:
    rows = tuple(replace(row, picked=row.kernel != "small") for row in RUN.rows if row.scope == "attention")
    run = replace(RUN, rows=rows)
    text = section(written(run), "Best and worst decode cells")
    assert "small" not in {row[0] for row in rows_of(text)}
    left_out = sum(row.kernel == "small" and row.time_us > 100 for row in rows)
    assert left_out == 1
    assert "1 cell left out: kernels that the choice does not take" in text
    small = sum(row.kernel == "small" for row in rows)
    assert f"{small} cells timed a kernel where the choice takes another" in section(
        written(run), "Kernels against the bound"
    )


def test_skipped_cells_are_listed_up_to_a_number() -> None:
    many = tuple(Skipped(kernel="naive", case=f"b={at}", reason="too | little memory") for at in range(50))
    text = section(written(replace(RUN, skipped=many)), "Not measured")
    assert len(re.findall(r"^\| naive +\| b=\d+ +\| too \\\| little memory \|$", text, re.MULTILINE)) == MOST_SHOWN
    assert f"And {50 - MOST_SHOWN} more" in text


def test_forced_and_stopped_runs_say_so_first() -> None:
    run = replace(RUN, finished=None, machine=replace(RUN.machine, forced=True), plan="quick")
    text = written(run)
    opening = text.partition("## ")[0]
    assert "**FORCED**: measured on SYNTHETIC H200 and compared with the ceilings of NVIDIA H200 SXM 141GB" in opening
    assert "**Stopped before its end**" in opening
    assert "--quick --force --seed 4" in section(text, "How to reproduce")


def test_sections_with_nothing_in_them_are_left_out() -> None:
    rows = tuple(row for row in RUN.rows if row.scope == "attention")
    text = written(replace(RUN, rows=rows, skipped=(), notes=()))
    for title in ("Crossover", "Not measured", "Notes"):
        assert f"## {title}" not in text


def test_tables_line_up_as_text() -> None:
    text = written(RUN)
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(blocks) >= 8
    for block in blocks:
        assert len({len(line) for line in block.splitlines()}) == 1
    assert table(("a", "b"), [("x|y", "1")]) == "| a    |   b |\n| ---- | --: |\n| x\\|y |   1 |"


def test_a_folder_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="folder cannot be made"):
            write_page(RUN, COMPARISON, path)


def test_engines_of_several_thresholds_share_a_line() -> None:
    found = engine_lines({16, 128}, load_gpu("b200"))
    assert isinstance(found, EngineLines)
    # presets/engines/vllm-0.33.yaml: four dense backends with a threshold of 1 run on compute capability 10
    assert sorted(found.labels[1].replace("\n", "").split(",")) == [
        "CUTLASS_MLA",
        "FLASHINFER_MLA",
        "TOKENSPEED_MLA",
        "TRITON_MLA",
    ]
