"""``mla-calc roofline``: its record, its tables, the figure that holds no number of its own, measurements."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mla_calc.cli.roofline import answer
from mla_calc.cli.roofline_figure import chart
from mla_calc.cli.roofline_options import LAYOUTS, Follow, Gpus, Layout, Levels, MmaDtypes, Over, WhichPath
from mla_calc.data import presets_root
from mla_calc.report import format as fmt
from mla_calc.report.chart import Line, Mark, Points, Roof, Rule, Zones
from mla_calc.report.chart_data import drawn, limits, number_at
from mla_calc.report.record import Report, lookup
from tests.cli.test_startup import HEAVY, modules_after

ROOT = Path(__file__).parents[2]
RUN = ROOT / "docs/measurements/h200/run.json"
PRESETS = ROOT / "presets/gpus"
AXES = ("tp", "batch", "context", "queries")


def results_of(report: Report) -> dict[str, Any]:
    assert isinstance(report.results, dict)
    return report.results


def refused(found: Any, *words: str) -> None:
    assert (found.code, found.out) == (2, "")
    assert 1 <= len(found.err.splitlines()) <= 2
    assert "Traceback" not in found.err
    for word in words:
        assert word in found.err


# --- the record


def test_dsv3_on_an_h100(cli: Any) -> None:
    found = cli("roofline --model dsv3 --gpu h100 -f json").results
    # the chapter, section 1: the ridge 295.3, heads x queries 156.4 by context alone
    ridge = next(item for item in found["ridges"] if (item["kind"], item["level"]) == ("datasheet", "memory"))
    assert round(ridge["ridge_flop_per_byte"], 1) == 295.3
    (product,) = found["ridge_heads_times_queries"]
    assert round(product["by_context"], 1) == 156.4
    assert round(product["with_query_and_output"], 1) == 168.5  # tests/costs/test_roofline.py, by hand
    attention = next(item for item in found["points"] if item["kernel"] == "attention" and item["path"] == "absorbed")
    assert (attention["flop"], attention["bytes"], attention["binds"]) == (1_140_850_688, 4_997_120, "memory")
    queries = next(
        item
        for item in found["trajectories"]
        if (item["axis"], item["path"], item["kernel"]) == ("queries", "absorbed", "attention")
    )
    assert queries["ridge_crossing"] * 128 == pytest.approx(product["with_query_and_output"], rel=1e-14)
    assert 1 < queries["ridge_crossing"] < 2
    assert queries["ridge_crossings"] == [queries["ridge_crossing"]]


def test_points_are_the_kernels_of_flops(cli: Any) -> None:
    rest = "--model dsv3 --gpu h200 --tp 2,8 -q 1,4 -s 4k,16k -f json"
    points = cli(f"roofline {rest}").results["points"]
    kinds: list[str] = []
    for cost in cli(f"flops {rest}").results:
        for path in ("absorbed", "naive"):
            for kernel in cost[path]["kernels"]:
                for kind, time in (("bound", "bound_s"), ("estimate", "estimate_s")):
                    wanted = {axis: cost[axis] for axis in ("tp", "batch", "queries", "context")} | {
                        "path": path, "kernel": kernel["name"], "kind": kind, "gpu": "NVIDIA H200 SXM 141GB",
                    }  # fmt: skip
                    mine = [item for item in points if wanted.items() <= item.items()]
                    assert len(mine) == (kernel[time] is not None)
                    if not mine:
                        continue
                    (point,) = mine
                    kinds.append(kind)
                    assert point["time_s"] == kernel[time]
                    assert {name: point[name] for name in ("flop", "bytes", "cache_bytes", "binds", "bound_s")} == {
                        name: kernel[name] for name in ("flop", "bytes", "cache_bytes", "binds", "bound_s")
                    }
    assert len(points) == len(kinds)
    assert set(kinds) == {"bound", "estimate"}


def test_an_axis_is_followed_where_it_is_a_list() -> None:
    found = results_of(answer("dsv3", gpu="h100", tp="1:128:x2", context="8k"))["trajectories"]
    assert {item["axis"] for item in found} == {"tp"}
    for item in found:
        assert [vertex["value"] for vertex in item["points"]] == [1, 2, 4, 8, 16, 32, 64, 128]
        assert {vertex["context"] for vertex in item["points"]} == {8192}
    every = results_of(answer("dsv3", gpu="h100"))["trajectories"]
    assert [item["axis"] for item in every] == [axis for axis in AXES for _ in range(4)]
    some = results_of(answer("dsv3", gpu="h100", over="queries,batch", tp="1,2"))["trajectories"]
    assert {item["axis"] for item in some} == {"batch", "queries"}


def test_a_course_has_the_crossings_between_its_points() -> None:
    for item in results_of(answer("dsv3", gpu="h20,h100", tp="8", queries="4,2,1", batch="1,64"))["trajectories"]:
        course = item["course"]
        kept = [place for place in course if not place["at_ridge"]]
        assert [place["value"] for place in kept] == [vertex["value"] for vertex in item["points"]]
        for place in course:
            if place["at_ridge"]:
                assert place["value"] in item["ridge_crossings"]
                assert place["intensity_flop_per_byte"] == pytest.approx(item["ridge_flop_per_byte"], rel=1e-12)
        crossed = sum(
            (left["binds"] != right["binds"]) for left, right in zip(item["points"], item["points"][1:], strict=False)
        )
        assert sum(place["at_ridge"] for place in course) == crossed


def test_several_gpus_and_dtypes() -> None:
    report = answer("dsv3", gpu="h100,b200,h100", mma_dtype="bf16,fp4")
    found = results_of(report)
    h100, b200 = "NVIDIA H100 SXM5 80GB", "NVIDIA B200 SXM 180GB"
    assert report.inputs["gpu"] == [h100, b200]
    sheet = {(item["gpu"], item["dtype"]) for item in found["ridges"] if item["kind"] == "datasheet"}
    assert sheet == {(h100, "bf16"), (b200, "bf16"), (b200, "fp4")}
    assert any("no fp4 peak" in note for note in report.notes)
    assert {item["dtype"] for item in found["points"]} == {"bf16"}


def renamed(path: Path, **fields: str) -> Path:
    """The H100's preset with other values of some fields, as a file of a reader's own."""
    text = (PRESETS / "h100-sxm5-80gb.yaml").read_text()
    for name, value in fields.items():
        text, count = re.subn(rf"^( *{name}:).*$", rf"\1 {value}", text, count=1, flags=re.MULTILINE)
        assert count == 1
    path.write_text(text)
    return path


def is_main(ridge: dict[str, Any]) -> bool:
    return (ridge["kind"], ridge["level"]) == ("datasheet", "memory")


def test_two_gpus_of_one_name_are_refused(cli: Any, tmp_path: Path) -> None:
    mine = renamed(tmp_path / "mine.yaml", bf16="500")
    line = f"roofline --model dsv3 --gpu h100,{mine}"
    refused(cli(line), "two different GPUs have the name 'NVIDIA H100 SXM5 80GB'", "`name`")
    renamed(mine, bf16="500", name="Mine")
    found = cli(f"{line} -f json").results
    assert [item["flop_per_s"] / 1e12 for item in found["ridges"] if is_main(item)] == [989.4, 500]
    again = cli(f"roofline --model dsv3 --gpu h100,{renamed(mine)} -f json").results["ridges"]
    assert sum(map(is_main, again)) == 1  # the same GPU


SEVEN = "h100,h100-pcie,h100-nvl,h20,h200,h800,b200"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_more_gpus_than_a_figure_tells_apart(layout: str, cli: Any, tmp_path: Path) -> None:
    line = f"roofline --model dsv3 --gpu {SEVEN} --layout {layout}"
    refused(cli(f"{line} -o {tmp_path / 'a.svg'}"), "cannot tell 7 GPUs apart", "at most 6 of --gpu")
    assert not list(tmp_path.iterdir())
    text = cli(line).out
    assert "under the roofline of" not in text
    (note,) = [note for note in answer("dsv3", gpu=SEVEN, layout=layout).notes if "chart" in note or "drawn" in note]
    assert note == "No chart: one tells at most 6 GPUs apart."
    assert len(cli(f"{line} -f json").results["ridge_heads_times_queries"]) == 7
    six = marks(answer("dsv3", gpu=SEVEN.rpartition(",")[0]))
    assert len({mark.look.colour for mark in six if isinstance(mark, Roof)}) == 6


def test_the_rows_of_the_csv_are_the_points(cli: Any) -> None:
    line = "roofline --model dsv3 --gpu h100 --tp 1,2"
    rows = list(csv.DictReader(io.StringIO(cli(f"{line} -f csv").out)))
    points = cli(f"{line} -f json").results["points"]
    assert [(row["path"], row["kernel"], int(row["flop"]), float(row["flop_per_s"])) for row in rows] == [
        (point["path"], point["kernel"], point["flop"], point["flop_per_s"]) for point in points
    ]


def test_sparse_attention(cli: Any) -> None:
    found = cli("roofline --model dsv32 --gpu h100 -s 64k --sparse -f json").results
    assert found["ridge_heads_times_queries"][0]["by_context"] is None
    assert {item["kernel"] for item in found["points"]} >= {"indexer", "attention", "q_fold"}
    refused(cli("roofline --model dsv3 --gpu h100 --sparse"), "no indexer")


def test_one_path(cli: Any) -> None:
    found = cli("roofline --model dsv3 --gpu h100 --path naive -f json").results
    assert {item["path"] for item in found["points"] + found["trajectories"]} == {"naive"}


# --- the sentence


def products(heads: int, queries: float, context: int) -> tuple[float, float]:
    """FLOP and bytes of absorbed causal attention over rows of 576 bf16 values, by docs/cost-model.md, section 5."""
    pairs = queries * context - queries * (queries - 1) / 2
    return pairs * heads * 2 * 1088, context * 1152 + queries * heads * 1088 * 2


def naive_queries(ridge: float, context: int) -> float:
    """The queries, in tenths, from which naive attention is beyond the ridge: 2 FLOP a value of a pair of 320, 2 B a
    value of S + Q rows of as many, and as many heads in both."""
    tenths = range(1, 10 * context)
    return next(
        at / 10 for at in tenths if at / 10 * context - at / 10 * (at / 10 - 1) / 2 >= ridge * (context + at / 10)
    )


def test_the_sentence_is_of_the_paths_that_are_shown() -> None:
    both, absorbed, naive = (answer("dsv3", gpu="h100", path=path).sentence for path in ("both", "absorbed", "naive"))
    by_context = "Absorbed attention reaches it at heads x queries = 156.4 by context alone"  # docs/intensity.md
    assert by_context in both
    assert by_context in absorbed
    assert "naive" not in absorbed
    assert "absorbed" not in naive.lower()
    assert "heads" not in naive
    (found,) = re.findall(r"reaches it at ([\d.]+) queries over 4,096 keys", naive)
    assert float(found) == pytest.approx(naive_queries(989.4 / 3.35, 4096), abs=0.1)
    assert answer("dsv3", gpu="h100", path="naive", tp="8").sentence == naive  # the heads cancel


def test_the_sentence_of_several_gpus_is_of_the_paths_that_are_shown() -> None:
    absorbed, naive = (answer("dsv3", gpu="h100,h20", path=path).sentence for path in ("absorbed", "naive"))
    assert "at which absorbed attention reaches it: H100 156.4 by context alone" in absorbed
    assert "156.4" not in naive
    for name, ridge in (("H100", 989.4 / 3.35), ("H20", 148 / 4)):
        (found,) = re.findall(rf"reaches it:.* {name} ([\d.]*\d)", naive)
        assert float(found) == pytest.approx(naive_queries(ridge, 4096), abs=0.1)


def test_a_sentence_without_queries_followed_says_nothing_of_them() -> None:
    assert answer("dsv3", gpu="h100", path="naive", over="tp").sentence.endswith("naive at 0.9998.")


def test_a_ridge_that_no_number_of_queries_reaches_is_told() -> None:
    found = answer("dsv3", gpu="h100", context="200")
    ridge = 989.4 / 3.35
    assert all(flop / moved < ridge for flop, moved in (products(128, queries, 200) for queries in range(1, 201)))
    assert found.sentence.endswith(
        "156.4 by context alone, with query and output bytes at no number of queries over 200 keys."
    )
    naive = answer("dsv3", gpu="h100", context="200", path="naive").sentence
    assert naive.endswith("Naive attention reaches it at no number of queries over 200 keys.")


def test_a_jump_over_the_ridge_is_told(cli: Any) -> None:
    line = "roofline --model dsv3.2 --gpu h100 --sparse -q 300 --over context --follow path --path naive -f json"
    (at,) = (item for item in cli(f"{line} -s 2047,2048,2049,2050").results["trajectories"] if item["kernel"] == "path")
    ridge = 989.4 / 3.35
    below, last, first, beyond = (point["intensity_flop_per_byte"] for point in at["points"])
    assert below < last < ridge < first < beyond
    assert first - last > 100 * (last - below)  # DSA begins past its top 2,048
    assert at["ridge_crossings"] == [2049]
    assert "at 2,049 the intensity jumps over the ridge" in at["ridge_crossing_note"]
    dense = answer("dsv3", gpu="h100", queries="1,2", follow="path")
    assert not any("jump" in item["ridge_crossing_note"] for item in results_of(dense)["trajectories"])


# --- what a person sees


@pytest.mark.parametrize("line", ["", "--tp 1:8:x2", "--gpu h200,b200", "--gpu h200 --follow path", "--explain"])
def test_the_table_and_the_json_show_the_same(line: str, cli: Any) -> None:
    gpu = "" if "--gpu" in line else "--gpu h100"
    text = cli(f"roofline --model dsv3 {gpu} {line}").out
    found = cli(f"roofline --model dsv3 {gpu} {line} -f json").results
    first = {axis: found["points"][0][axis] for axis in AXES}
    for point in found["points"]:
        if point["kind"] == "bound" and first.items() <= point.items():
            row = next(
                row for row in text.splitlines() if row.strip().startswith(f"{point['path']}: {point['kernel']}")
            )
            assert fmt.short_flop(point["flop"]) in row
            assert fmt.tera(point["flop_per_s"]) in row
    for product in found["ridge_heads_times_queries"]:
        assert f"{product['by_context']:.1f} by context alone" in " ".join(text.split())


@pytest.mark.parametrize(
    "line", ["--gpu h100", "--gpu h200 -q 4 --tp 8", "--gpu h100,h200,b200 --tp 1:8:x2", "--gpu b200 --over batch"]
)
def test_tables_fit_80_columns(line: str, cli: Any) -> None:
    table = cli(f"roofline --model dsv3 {line}").out.partition("note:")[0]
    assert max(map(len, table.splitlines())) <= 80 + 4  # the note of a crossing folds on a terminal


def test_the_terminal_shows_the_chart(cli: Any) -> None:
    text = cli("roofline --model dsv3 --gpu h100").out
    assert "DeepSeek-V3 under the roofline of H100" in text
    assert "ridge 295.3" in text


def test_every_explanation_is_its_figure(cli: Any) -> None:
    document = json.loads(cli("roofline --model dsv3 --gpu h20 -q 4 --tp 8 --explain -f json").out)
    keys = [item["key"] for item in document["explanations"]]
    assert len(keys) == len(set(keys))
    assert any("ridge_crossing" in key for key in keys)
    for item in document["explanations"]:
        value = eval(item["numbers"], {"__builtins__": {"min": min, "max": max}})
        assert value == pytest.approx(lookup(document["results"], item["key"]), rel=1e-12), item


def test_json_imports_nothing_that_draws() -> None:
    assert not modules_after("roofline", "--model", "dsv3", "--gpu", "h100", "-f", "json") & HEAVY


# --- the figure

FIGURES = {
    "one": {"gpu": "h100"},
    "estimates": {"gpu": "h200"},
    "several": {"gpu": "h100,h200,b200"},
    "panels": {"gpu": "h100,h20", "layout": "panels"},
    "dtypes and levels": {"gpu": "b200", "mma_dtype": "bf16,fp8,fp4", "levels": "memory,link,pcie"},
    "paths": {"gpu": "h20", "follow": "path", "over": "tp,batch,context,queries"},
    "naive": {"gpu": "h100", "path": "naive", "queries": "1,4,16"},
    "sparse": {"model": "dsv32", "gpu": "h100", "sparse": True, "context": "64k"},
}


@pytest.fixture(params=FIGURES.values(), ids=FIGURES)
def report(request: pytest.FixtureRequest) -> Report:
    return answer(**({"model": "dsv3"} | request.param))


def marks(report: Report) -> Iterator[Mark]:
    for panel in chart(report).panels:
        yield from panel.marks


def test_all_that_a_figure_draws_is_in_the_results(report: Report) -> None:
    found = results_of(report)
    listed = [id(item) for item in found["points"]]
    listed += [id(place) for item in found["trajectories"] for place in item["course"]]
    seen = set()
    for mark in marks(report):
        seen.add(type(mark))
        if isinstance(mark, Line | Points):
            rows = drawn(found, mark)
            assert rows
            assert all(id(row) in listed for row in rows)
            for shown in mark.shown:
                assert all(fmt.shown(lookup(row, shown.key), shown.kind) for row in rows)
        elif isinstance(mark, Roof):
            slope, flat = number_at(found, mark.slope), number_at(found, mark.flat)
            values = {item["value"] for item in found["roofs"]}
            assert {slope, flat} <= values
        elif isinstance(mark, Rule | Zones):
            assert number_at(found, mark.path) in {item["ridge_flop_per_byte"] for item in found["ridges"]}
    assert {Line, Points, Roof, Rule} <= seen
    (low, high), (bottom, top) = limits(chart(report).panels, found)
    assert 0 < low < high
    assert 0 < bottom < top


def test_points_lie_on_or_below_the_highest_roof(report: Report) -> None:
    found = results_of(report)
    for mark in marks(report):
        if isinstance(mark, Line | Points):
            for row in drawn(found, mark):
                roof = max(
                    min(item["flop_per_s"], item["bytes_per_s"] * row["intensity_flop_per_byte"])
                    for item in found["ridges"]
                    if item["level"] == "memory"
                )
                assert row["flop_per_s"] <= roof * (1 + 1e-9)


def test_a_figure_says_what_it_is_of(report: Report) -> None:
    drawn_chart = chart(report)
    assert report.inputs["model"] in drawn_chart.title
    for text in (report.inputs["dtype"], "dense", *report.inputs["mma_dtype"], "TP"):
        assert text in drawn_chart.caption
    assert all(axis.label for panel in drawn_chart.panels for axis in (panel.x, panel.y))


def test_looks_tell_the_series_apart_in_grey() -> None:
    for name in ("one", "estimates", "paths"):
        series = [
            (type(mark).__name__, mark.look.marker, mark.look.dash, mark.look.hollow, mark.label.split()[0])
            for mark in marks(answer(**({"model": "dsv3"} | FIGURES[name])))  # type: ignore[arg-type]
            if isinstance(mark, Line | Points)
        ]
        assert len(series) == len(set(series))


def test_panels_share_their_axes() -> None:
    split = chart(answer("dsv3", gpu="h100,h20", layout="panels"))
    assert [panel.title for panel in split.panels] == ["NVIDIA H100 SXM5 80GB", "NVIDIA H20 96GB"]
    assert split.shared
    assert len(chart(answer("dsv3", gpu="h100", layout="panels")).panels) == 1


def test_an_axis_along_which_nothing_moves_is_not_drawn() -> None:
    # attention's intensity is the same at every batch
    labels = [mark.label for mark in marks(answer("dsv3", gpu="h100", over="batch")) if isinstance(mark, Line)]
    assert labels == []


# --- measurements

HEADER = "kernel,heads,batch,queries,context,time_us\n"


def overlaid(tmp_path: Path, rows: str, **options: Any) -> Report:
    (tmp_path / "rows.csv").write_text(HEADER + rows)
    return answer("dsv3", **({"gpu": "h200", "measured": tmp_path / "rows.csv"} | options))


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        # 4,753,408 B at 4.8 TB/s are 0.99 us, and L2 has 62.9 MB
        ("k,16,1,1,4096,0.5", "cache hits: 4.8 MB fit into the 62.9 MB of L2"),
        ("k,16,256,1,65536,2000", "a wrong time, device or byte count: 19,336.3 MB do not fit"),
        # 1.141 GFLOP at 989.4 TFLOP/s are 1.153 us
        ("k,128,1,1,4096,0.8", "a sparse (2:4) peak"),
        ("k,128,1,1,4096,0.5", "a wrong dtype, device or unit"),
        ("k,128,1,1,4096,1.2", None),
    ],
)
def test_a_point_above_the_roof_is_flagged_with_its_cause(row: str, cause: str | None, tmp_path: Path) -> None:
    report = overlaid(tmp_path, row + "\n")
    (point,) = [item for item in results_of(report)["points"] if item["kind"] == "measured"]
    assert point["above_roof"] == (cause is not None)
    assert (cause is None and point["cause"] is None) or (cause or "") in point["cause"]
    assert point["time_s"] == pytest.approx(float(row.split(",")[-1]) / 1e6, rel=1e-15)
    assert point["tp"] == 128 // point["heads"]
    red = [mark for mark in marks(report) if isinstance(mark, Points) and mark.look.colour == "red"]
    assert len(red) == (cause is not None)
    assert all(mark.look.marker == "cross" for mark in red)
    if cause:
        assert any(table.caption.startswith("above the roof: 1 point") for table in report.tables)


def test_the_committed_run() -> None:
    report = answer("dsv3", gpu="h200", measured=RUN)
    rows = json.loads(RUN.read_text())["rows"]
    mine = [row for row in rows if (row["scope"], row["cache"], row["dtype"]) == ("attention", "bf16", "bf16")]
    points = [item for item in results_of(report)["points"] if item["kind"] == "measured"]
    assert [(item["implementation"], item["heads"], item["context"]) for item in points] == [
        (row["kernel"], row["heads"], row["context"]) for row in mine
    ]
    for point, row in zip(points, mine, strict=True):
        assert point["flop_per_s"] == pytest.approx(point["flop"] / row["time_us"] * 1e6, rel=1e-12)
    assert not any(point["above_roof"] for point in points)
    assert any("of whole paths" in note for note in report.notes)
    others = sum((row["scope"], row["cache"], row["dtype"]) == ("attention", "bf16", "fp16") for row in rows)
    left_out = f"Left out: {others:,} measured rows of fp16 products (--mma-dtype bf16,fp16 draws them)."
    assert others
    assert left_out in report.notes  # an H200's peaks are the same for both
    own = [item for item in results_of(report)["roofs"] if str(item["source"]).startswith("run ")]
    assert {item["dtype"] for item in own} == {"bf16", None}


def test_a_measured_roof_is_of_one_source() -> None:
    report = answer("dsv3", gpu="h100,h200", measured=RUN)
    measured = [item for item in results_of(report)["roofs"] if item["kind"] == "measured"]
    ceilings = json.loads(RUN.read_text())["ceilings"]
    assert {item["source"][:4] for item in measured if item["gpu"].startswith("NVIDIA H200")} == {"run "}
    assert not any(item["source"].startswith("run ") for item in measured if item["gpu"].startswith("NVIDIA H100"))
    (ridge,) = [
        item
        for item in results_of(report)["ridges"]
        if item["kind"] == "measured" and item["gpu"].startswith("NVIDIA H200")
    ]
    assert str(round(ridge["flop_per_s"])) in json.dumps([round(rate) for rate in ceilings["gemm_flop_per_s"].values()])
    assert ridge["ridge_flop_per_byte"] == pytest.approx(823.2 / 4.65, rel=1e-3)
    assert any(note.startswith("Measured roofs are of run ") for note in report.notes)


def test_dense_rows_have_no_place_under_sparse_attention(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("kernel,heads,batch,queries,context,time_us\nk,16,1,1,4096,9\n")
    line = f"roofline --model dsv32 --gpu h200 --sparse --context 64k --measured {tmp_path / 'rows.csv'}"
    refused(cli(line), "no row has a place here: 1 row of dense attention")


def test_points_above_the_roof_say_whose_they_are(tmp_path: Path) -> None:
    report = overlaid(tmp_path, "one,128,1,1,4096,0.8\nother,128,1,1,4096,0.5\n")
    (table,) = [table for table in report.tables if table.caption.startswith("above the roof")]
    assert table.headers[:2] == ("kernel", "heads")
    places = [cell.path for row in table.rows for cell in row[:1] if not isinstance(cell, str)]
    assert [lookup(report.results, place) for place in places] == ["other", "one"]
    header = "gpu,kernel,dtype,heads,batch,queries,context,time_us\n"
    rows = [f"{gpu},k,bf16,128,1,1,4096,0.2\n" for gpu in ("h100", "b200")]
    (tmp_path / "two.csv").write_text(header + "".join(rows))
    two = answer("dsv3", gpu="h100,b200", measured=tmp_path / "two.csv")
    (table,) = [table for table in two.tables if table.caption.startswith("above the roof")]
    assert (table.headers[0], {row[0] for row in table.rows}) == ("GPU", {"H100", "B200"})


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"over": "batch"}, "batch"),
        ({"over": "context", "path": "naive"}, "context"),
        ({"over": "batch,queries"}, "batch"),
        ({"over": "queries"}, None),
        ({}, None),
    ],
)
def test_an_axis_without_a_trajectory_is_told(options: dict[str, Any], names: str | None) -> None:
    notes = [note for note in answer("dsv3", gpu="h100", **options).notes if "trajectory" in note]
    assert [note.split(" is drawn")[0] for note in notes] == ([f"No trajectory over {names}"] if names else [])


def test_a_gpus_short_name_has_no_comma() -> None:
    report = answer("dsv3", gpu="h100,mi250x")
    assert chart(report).title.endswith("of H100 and MI250X")
    assert any("MI250X" in table.headers for table in report.tables)


@pytest.mark.parametrize("header", ["time_ms", "latency_ms"])
def test_a_time_in_another_unit_is_no_column_to_rename(header: str, cli: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(f"kernel,heads,batch,queries,context,{header}\nk,16,1,1,4096,9\n")
    found = cli(f"roofline --model dsv3 --gpu h200 --measured {tmp_path / 'rows.csv'}")
    refused(found, "no column 'time_us'; kernel, heads, batch, queries, context, time_us are needed", "times are in us")
    assert "did you mean" not in found.err


def test_a_folder_is_no_measurement(cli: Any) -> None:
    refused(cli("roofline --model dsv3 --gpu h200 --measured ''"), "--measured", "is a folder")


def test_measurements_have_a_place_under_their_own_roof_alone(cli: Any, tmp_path: Path) -> None:
    refused(cli(f"roofline --model dsv3 --gpu h100 --measured {RUN}"), "another GPU", "own GPU's roof")
    refused(cli(f"roofline --model dsv3 --gpu h100,b200 --measured {RUN}"), "NVIDIA H200", "not among --gpu")
    assert cli(f"roofline --model dsv3 --gpu h100,h200 --measured {RUN} -f csv").code == 0
    refused(cli(f"roofline --model minicpm3-4b --gpu h200 --measured {RUN}"), "other widths")
    refused(cli("roofline --model dsv3 --gpu h200 --measured none.csv"), "none.csv")
    whole = tmp_path / "whole.csv"
    whole.write_text("kernel,scope,heads,batch,queries,context,time_us\nk,naive,16,1,1,4096,90\n")
    refused(cli(f"roofline --model dsv3 --gpu h200 --measured {whole}"), "no row has a place", "whole paths")
    whole.write_text("a,b\n1,2\n")
    refused(cli(f"roofline --model dsv3 --gpu h200 --measured {whole}"), "--measured", "whole.csv")


# --- what is not understood


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--model dsv3", ["needs a GPU", "--gpu h100"]),
        ("--model dsv3 --gpu ''", ["needs a GPU"]),
        ("--model dsv3 --gpu h100,h1000", ["h1000", "h100"]),
        ("--model dsv3 --gpu h100,", [""]),
        ("--model llama3-70b --gpu h100", ["GQA", "roofline"]),
        ("--model dsv3 --gpu h100 --over heads", ["--over 'heads'", "tp, batch, context, queries"]),
        ("--model dsv3 --gpu h100 --over tp,quries", ["quries", "queries"]),
        ("--model dsv3 --gpu h100 --levels l2", ["--levels 'l2'", "memory, link, pcie"]),
        ("--model dsv3 --gpu h100 --layout grid", ["--layout 'grid'", "overlay, panels"]),
        ("--model dsv3 --gpu h100 --path mha", ["--path 'mha'", "absorbed, naive, both"]),
        ("--model dsv3 --gpu h100 --follow kernel", ["--follow 'kernel'"]),
        ("--model dsv3 --gpu h100 --mma-dtype fp4", ["no fp4 peak", "bf16"]),
        ("--model dsv3 --gpu h100 --mma-dtype bf16,fp7", ["fp7"]),
        ("--model dsv3 --gpu h100 --tp 3", ["TP 3", "128 heads"]),
        ("--model dsv3 --gpu h100 --tp 1,3", ["TP 3"]),
        ("--model dsv3 --gpu h100 -q 8 -s 4", ["8 queries"]),
        ("--model dsv3 --gpu h100 --batch 1:2000:+1", ["12,000 points", "sweep"]),
        ("--model dsv3 --gpu h100 --size huge -o a.png", ["huge", "slide, column"]),
        ("--model dsv3 --gpu h100 -o a.gif", [".gif"]),
    ],
)
def test_rubbish(line: str, words: list[str], cli: Any) -> None:
    refused(cli(f"roofline {line}"), *words)


def test_completion() -> None:
    def offered(option: Any, incomplete: str) -> list[str]:
        found: list[str] = option.__metadata__[0].autocompletion(incomplete)
        return found

    assert "h100,h200" in offered(Gpus, "h100,h20")
    assert offered(Over, "tp,q") == ["tp,queries"]
    assert offered(MmaDtypes, "bf16,fp") == ["bf16,fp16", "bf16,fp8", "bf16,fp4", "bf16,fp32"]
    assert offered(Levels, "") == ["memory", "link", "pcie"]
    assert offered(Layout, "") == list(LAYOUTS)
    assert offered(WhichPath, "n") == ["naive"]
    assert offered(Follow, "p") == ["path"]


@pytest.mark.parametrize(
    ("kind", "name", "line"),
    [
        ("gpus", "h100-sxm5-80gb", "roofline --model dsv3 -f json --gpu"),
        ("models", "llama3-70b", "cache --model dsv3 -f json --vs"),
    ],
)
def test_a_file_whose_path_has_commas_is_one(kind: str, name: str, line: str, cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "lab,rack 2" / f"{name}.yaml"
    path.parent.mkdir()
    path.write_bytes((presets_root() / kind / f"{name}.yaml").read_bytes())
    assert cli(line, str(path)).results == cli(line, name).results


def test_a_crossing_that_is_taken_there_and_back_is_named_once(cli: Any) -> None:
    line = "roofline --model dsv3 --gpu h20 --context 1m --tp 16,2,8 --queries 1,1000,3 -f json"
    for item in cli(line).results["trajectories"]:
        named = [place["label"] for place in item["course"] if place["at_ridge"] and place["label"]]
        assert len(named) == len(set(named)) == len({place["value"] for place in item["course"] if place["at_ridge"]})
