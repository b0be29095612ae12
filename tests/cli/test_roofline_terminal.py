"""The roofline in a terminal: nothing that must be read is missing from it or lies, however crowded it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mla_calc.cli.roofline import answer
from mla_calc.cli.roofline_figure import chart
from mla_calc.report.drawing.text import chart_text
from mla_calc.report.record import Report

RUN = Path(__file__).parents[2] / "docs/measurements/h200/run.json"
CASES: dict[str, tuple[dict[str, Any], tuple[float, ...]]] = {
    "paths": ({"gpu": "h100,h200,b200", "follow": "path"}, (989.4 / 3.35, 989.4 / 4.8, 2250 / 7.7)),
    "six": ({"gpu": "h100,h200,b200,h20,a100,mi300x"}, (989.4 / 3.35, 989.4 / 4.8, 2250 / 7.7, 148 / 4, 312 / 2.039)),
    "levels": ({"gpu": "l4,tpu-v5p", "levels": "link,pcie"}, (459 / 2.765,)),
    "dtypes": ({"gpu": "h100,h200,b200", "mma_dtype": "bf16,fp8,fp16"}, (1978.9 / 4.8, 4500 / 7.7, 1978.9 / 3.35)),
    "dtypes and levels": ({"gpu": "h100", "mma_dtype": "bf16,fp8", "levels": "link,pcie"}, (989.4 / 0.45,)),
    "a run": ({"gpu": "h200", "measured": RUN}, (989.4 / 4.8,)),
    "two axes": ({"gpu": "h100,h200,b200", "over": "tp,queries"}, (989.4 / 3.35,)),
}
"""The options of a chart, and ridges of it by the datasheets' TFLOP/s and TB/s."""


def report_of(**options: Any) -> Report:
    return answer(**({"model": "dsv3"} | options))


def parts_of(report: Report, width: int, height: int) -> tuple[list[str], str]:
    """The rows of cells, without the axis, and the key."""
    lines = chart_text(chart(report), report.results, width, height, False, whole_key=True).split("\n")
    floor = next(at for at, line in enumerate(lines) if "\u2514" in line)
    left = lines[floor].index("\u2514") + 1
    return [line[left:] for line in lines[1:floor]], "\n".join(lines[floor + 3 :])


@pytest.mark.parametrize(("width", "height"), [(80, 16), (80, 24), (200, 50)])
@pytest.mark.parametrize("case", CASES)
def test_every_ridge_crossing_and_letter_is_told(case: str, width: int, height: int) -> None:
    options, ridges = CASES[case]
    report = report_of(**options)
    cells, key = parts_of(report, width, height)
    everything = "\n".join([*cells, key])
    for ridge in ridges:
        assert (f"{ridge:,.0f}" if ridge > 1000 else f"{ridge:.4g}") in everything
    assert isinstance(report.results, dict)
    drawn = [
        item for item in report.results["trajectories"]
        if item["kernel"] == options.get("follow", "attention") and item["axis"] in report.inputs["drawn"]
    ]  # fmt: skip
    labels = [step["label"] for item in drawn for step in item["course"] if step["at_ridge"]]
    assert labels
    for label in labels:
        assert label in everything
    assert "more" not in key
    for letter in "abcABCDE":  # lines, of which there are three at least, and both paths' kernels
        assert re.search(rf"(?:^|[ :]){letter} [a-z]", key, re.MULTILINE), letter


FIELDS = "kernel,heads,batch,queries,context,time_us\n"


@pytest.mark.parametrize(("width", "height"), [(80, 16), (80, 17), (80, 24), (200, 50)])
@pytest.mark.parametrize("time_us", [0.8, 1.9])
def test_a_measured_kernel_is_on_its_side_of_the_roof(tmp_path: Path, time_us: float, width: int, height: int) -> None:
    """1.14 GFLOP in 0.8 us are 144 % of an H200's 989.4 TFLOP/s, in 1.9 us 61 %."""
    path = tmp_path / "one.csv"
    path.write_text(f"{FIELDS}mine,128,1,1,4096,{time_us}\n")
    cells, _ = parts_of(report_of(gpu="h200", measured=path), width, height)
    (roof,) = [at for at, row in enumerate(cells) if row.rstrip().endswith("1")]
    (found,) = [at for at, row in enumerate(cells) if "A" in row]
    assert found <= roof if time_us < 1 else found >= roof


def test_points_above_the_roof_are_seen_among_others(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text(f"{FIELDS}mine,16,1,1,4096,0.5\nmine,128,1,1,4096,0.8\nmine,128,1,1,4096,1.9\n")
    for height in range(14, 51):
        cells, key = parts_of(report_of(gpu="h200", measured=path), 80, height)
        assert "B measured, above the roof" in key
        assert "\n".join(cells).replace("FLOP/B", "").count("B") == 2, height


def test_kernels_beside_one_another_find_places_on_roofs_of_nearly_one_slope() -> None:
    """Two of the absorbed path's and one of the naive path's stand within 1 % of one intensity, on six roofs."""
    for height in (16, 20, 24):
        cells, key = parts_of(report_of(gpu="b200", mma_dtype="bf16,fp8,fp4"), 80, height)
        assert "(at " not in key
        assert all(letter in "\n".join(cells) for letter in "ACE")


@pytest.mark.parametrize(("width", "height"), [(80, 16), (80, 24), (200, 50)])
@pytest.mark.parametrize("case", [{"gpu": "h100", "mma_dtype": "bf16,fp8,int8,fp16,tf32"}, {"gpu": "h100,h200,b200"}])
def test_no_step_is_named_where_roofs_have_their_names(case: dict[str, Any], width: int, height: int) -> None:
    cells, _ = parts_of(report_of(**case), width, height)
    flat = [row for row in cells if re.search("[\u2801-\u28ff]{3}.*[\u2801-\u28ffb\u25b6][0-9]+$", row.rstrip())]
    assert flat
    for row in flat:
        # names of roofs have a blank on either side; crossings, which have decimals here, must be read anywhere
        assert not re.search("[\u2801-\u28ff](naive )?(Q|TP|S|B) [0-9]+[\u2801-\u28ff]", row)
    assert ("B200" if "b200" in case["gpu"] else "fp8, int8") in "\n".join(cells)


@pytest.mark.parametrize("context", ["400", "600", "4k"])
def test_the_name_of_a_zone_is_whole_or_left_out(context: str) -> None:
    report = report_of(gpu="h100", context=context, over="queries", path="absorbed")
    for width in range(40, 120, 4):
        text = "\n".join(parts_of(report, width, 24)[0])
        for word in ("memory", "compute"):
            assert re.findall(rf"{word}.{{6}}", text) == [f"{word} binds"] * text.count(word)
