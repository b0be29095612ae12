"""Wrong input: one or two lines on stderr, exit 2, nothing on stdout, and no file harmed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path
from typing import Any

import pytest

VALID = {
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "hidden_size": 7168,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def refused(answer: Any, *words: str) -> None:
    assert answer.code == 2, answer.out
    assert answer.out == ""
    lines = answer.err.splitlines()
    assert 1 <= len(lines) <= 2, answer.err
    assert lines[0].startswith("mla-calc: ")
    assert "Traceback" not in answer.err
    for word in words:
        assert word in answer.err, answer.err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cach --model dsv3", ["cach", "cache"]),
        ("cache --model dsv33", ["dsv33", "dsv3"]),
        ("cache --model ''", ["model"]),
        ("cache", ["--model"]),
        ("cache --modle dsv3", ["--modle", "--model"]),
        ("cache --model dsv3 --tp", ["--tp"]),
        ("cache --model dsv3 extra", ["extra"]),
        ("flops --model dsv3 --gpu h1000", ["h1000", "h100"]),
        ("cache --model dsv3 --dtype fp9", ["fp9", "fp8"]),
        ("cache --model dsv3 --vs lama3-70b", ["lama3-70b", "llama3-70b"]),
        ("crossover --model dsv3 --engine vlm", ["vlm", "vllm"]),
        ("cache --model dsv3 --format yaml", ["yaml", "json"]),
        ("cache --model dsv3 --output x.gif", [".gif", ".png", ".html", ".json"]),
        ("roofline --model dsv3", ["--gpu"]),
        ("roofline --model llama3-70b --gpu h100", ["GQA"]),
        ("explore --print --tp 3", ["3", "128 heads"]),
        ("explore --print --queries 8k --context 4k", ["8,192", "4,096"]),
        ("cache --model dsv3 --tp 3", ["3", "128 heads"]),
        ("cache --model llama3-70b --tp 64,3", ["3", "64 heads"]),
        ("flops --model dsv3 --tp 0", ["--tp", "0"]),
        ("flops --model dsv3 --tp -1", ["--tp -1: 1 to "]),
        ("flops --model dsv3 --tp 1.5", ["1.5"]),
        ("flops --model dsv3 --tp nan", ["nan"]),
        ("flops --model dsv3 --tp 1 --tp 2", ["--tp is given twice", "1,2,4"]),
        ("cache -m dsv3 --model dsv2 -m dsv3", ["--model is given 3 times"]),
        ("flops --model dsv3 --causal --rectangular", ["--causal/--rectangular is given twice"]),
        ("roofline --model dsv3 --gpu h100 -g h200", ["--gpu is given twice", "with commas"]),
        ("presets list --kind gpu --kind model", ["--kind is given twice"]),
        ("flops --model dsv3 -q 2 -s 1", ["2 queries", "context of 1"]),
        ("flops --model dsv3 -s 0", ["--context 0"]),
        ("flops --model dsv3 -s ''", ["--context"]),
        ("flops --model dsv3 -s 99999999999999999999", ["--context 99999999999999999999: 1 to 1,073,741,824 is"]),
        ("flops --model dsv3 -s 9999999m", ["--context"]),
        ("flops --model dsv3 -s 8k:1k:x2", ["reversed"]),
        ("flops --model dsv3 -s 1:1000000000:+1", ["1,000,000,000"]),
        ("flops --model dsv3 -s 1:64k:x1", ["x"]),
        ("flops --model dsv3 -s 1:9", ["range"]),
        ("flops --model dsv3 -s 1:9:2", ["range"]),
        ("flops --model dsv3 -s 1:64k:+1", ["65,536", "sweep"]),
        ("flops --model dsv3 --weight-bytes 3", ["3", "0.5"]),
        ("flops --model dsv3 --gpu h100 --mma-dtype fp4", ["fp4", "bf16"]),
        ("flops --model dsv3 --gpu h100 --mma-dtype nan", ["nan"]),
        ("flops --model llama3-70b", ["GQA", "kv_lora_rank"]),
        ("trace --model deepseek-ocr", ["MHA"]),
        ("cache --model minicpm3-4b --dtype fp8_ds_mla", ["kv_lora_rank", "256"]),
        ("cache --model llama3-70b --dtype fp8_ds_mla", ["fp8_ds_mla"]),
        ("cache --model kimi-k2 --mtp-layers 1", ["--mtp-layers 1", "0"]),
        ("cache --model dsv3 --mtp-layers 2", ["--mtp-layers 2"]),
        ("cache --model dsv3 --block-size 0 -s 10", ["--block-size"]),
        ("workspace --model dsv3 --max-model-len -5", ["-5"]),
        ("workspace --model kimi-k2-thinking", ["--max-model-len"]),
        ("workspace --model dsv3 --rows-cap 0", ["--rows-cap"]),
        ("parity --model dsv3 -s 1m", ["--context"]),
        ("parity --model dsv3 --seed -1", ["-1"]),
        ("parity --model dsv3 --heads 129", ["--heads", "128"]),
        ("parity --model dsv3 -q 64 -s 4096 --heads 128", ["scores"]),
        ("parity --model dsv3 -q 9 -s 8", ["9 queries"]),
        ("trace --model dsv3 -q 9 -s 8", ["9 queries"]),
        ("flops --model dsv3 --mma-dtype nonsense", ["nonsense", "bf16"]),
        ("workspace --model dsv3 --max-model-len 1k,2k", ["--max-model-len", "one value"]),
        ("sweep cache --model dsv3 -b 1024m -s 65536 --block-size 65535,65536", ["2**63", "allocated_bytes"]),
        ("presets show nothing", ["nothing"]),
        ("presets schema nothing", ["nothing"]),
        ("presets list --kind nothing", ["nothing"]),
        ("presets", ["presets --help"]),
        ("presets nothing", ["nothing"]),
        ("sweep nothing --model dsv3", ["nothing"]),
    ],
)
def test_refused(line: str, words: list[str], cli: Any) -> None:
    refused(cli(line), *words)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.json", b"", ["empty"]),
        ("blank.yaml", b" \n\n", ["empty"]),
        ("list.yaml", b"- 1\n- 2\n", ["mapping"]),
        ("scalar.json", b"7", ["mapping"]),
        ("broken.json", b'{\n"a": 1,\nb\n}', ["broken.json:3"]),
        ("broken.yaml", b"a: [1,\nb: 2\n", ["broken.yaml:"]),
        ("binary.json", bytes(range(256)), ["text"]),
        ("twice.json", b'{"kv_lora_rank": 512, "kv_lora_rank": 256}', ["kv_lora_rank", "twice"]),
        ("twice.yaml", b"name: a\nname: b\n", ["name", "twice"]),
        ("nan.json", b'{"kv_lora_rank": NaN}', ["NaN"]),
        ("deep.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, ["deep"]),
        ("deep.yaml", b"a: " + b"[" * 100_000 + b"]" * 100_000, ["deep"]),
        ("bomb.yaml", b"a: &a [1,2]\nb: &b [*a,*a]\nc: [*b,*b]\n", ["anchors"]),
        ("tag.yaml", b"a: !!python/object/apply:os.system ['true']\n", ["tags"]),
        ("bom16.json", '{"a": 1}'.encode("utf-16"), ["text"]),
        ("unknown.yaml", b"name: x\ncached_layers: 1\nwat: 3\n", ["unknown.yaml"]),
        ("v4.json", json.dumps({"compress_ratios": [0, 4], "q_lora_rank": 1024}).encode(), ["compress_ratios"]),
        ("null.json", json.dumps({**VALID, "kv_lora_rank": None}).encode(), ["kv_lora_rank", "null"]),
        ("zero.json", json.dumps({**VALID, "kv_lora_rank": 0}).encode(), ["kv_lora_rank", "0"]),
        ("string.json", json.dumps({**VALID, "kv_lora_rank": "512"}).encode(), ["kv_lora_rank", "512"]),
        ("negative.json", json.dumps({**VALID, "v_head_dim": -1}).encode(), ["v_head_dim", "-1"]),
        ("huge.json", json.dumps({**VALID, "num_attention_heads": 10**30}).encode(), ["num_attention_heads"]),
        ("digits.json", b'{"kv_lora_rank": ' + b"9" * 6000 + b"}", ["digits.json"]),
    ],
)
def test_bad_files(name: str, content: bytes, words: list[str], tmp_path: Path, cli: Any) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    refused(cli("cache --model", str(path)), *words)
    if path.suffix == ".yaml":
        refused(cli("flops --model dsv3 --gpu", str(path)))


def test_a_valid_config_is_read(tmp_path: Path, cli: Any) -> None:
    # the same file that the refusals above start from gives DeepSeek-V3's 70,272 B
    path = tmp_path / "config.json"
    path.write_text(json.dumps(VALID))
    for given in (path, tmp_path):
        answer = cli("cache -f json --model", str(given))
        assert answer.results["bytes_per_token"] == 70_272


def test_folder_without_a_config(tmp_path: Path, cli: Any) -> None:
    refused(cli("cache --model", str(tmp_path)), "config.json")


def test_missing_file(tmp_path: Path, cli: Any) -> None:
    refused(cli("cache --model", str(tmp_path / "no.json")), "no.json")


def test_over_long_and_odd_names(cli: Any) -> None:
    refused(cli("cache --model", "x" * 5000))
    refused(cli("cache --model", "a/\x01b"))
    refused(cli("cache --model", "../" * 2000))


def test_unreadable_file(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    path.write_text("{}")

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)  # root reads everything, so the mode alone would not do
    refused(cli("cache --model", str(path)), "config.json", "Permission denied")


@pytest.mark.parametrize("name", ["no/such/folder/a.json", "folder", "a.xyz", "a"])
def test_output_that_cannot_be_written(name: str, tmp_path: Path, cli: Any) -> None:
    (tmp_path / "folder").mkdir()
    refused(cli("cache --model dsv3 --output", str(tmp_path / name)), "--output")


def test_an_existing_output_is_left_whole(tmp_path: Path, cli: Any) -> None:
    path = tmp_path / "answer.json"
    path.write_text("precious")
    refused(cli("cache --model nosuch --output", str(path)))
    refused(cli("cache --model dsv3 --tp 3 --output", str(path)))
    assert path.read_text() == "precious"
    assert cli("cache --model dsv3 --output", str(path)).code == 0
    assert json.loads(path.read_text())["results"]["bytes_per_token"] == 70_272
    assert [entry.name for entry in tmp_path.iterdir()] == ["answer.json"]


def test_a_failed_write_leaves_the_file_whole(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answer.csv"
    path.write_text("precious")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    refused(cli("cache --model dsv3 --output", str(path)), "No space left")
    monkeypatch.undo()
    assert path.read_text() == "precious"
    assert [entry.name for entry in tmp_path.iterdir()] == ["answer.csv"]


def test_formats_follow_the_suffix(tmp_path: Path, cli: Any) -> None:
    for suffix, start in ((".json", "{"), (".csv", "tp,"), (".md", "## DeepSeek-V3"), (".txt", "DeepSeek-V3")):
        path = tmp_path / f"answer{suffix}"
        assert cli("cache --model dsv3 --output", str(path)).code == 0
        assert path.read_text().startswith(start)


def test_a_format_is_not_written_under_the_suffix_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    suffixes = {
        "json": ".json", "csv": ".csv", "markdown": ".md .markdown", "html": ".html .htm", "parquet": ".parquet",
        "a picture": ".png .SVG .pdf",
    }  # fmt: skip
    written = set()
    for format_name in ("table", "json", "csv", "markdown"):
        for holds, endings in suffixes.items():
            for ending in endings.split():
                name = f"{format_name}{ending}"
                answer = cli(f"cache --model dsv3 --format {format_name} --output {name}")
                if holds == format_name:
                    written.add(name)
                    assert answer.code == 0
                else:
                    refused(answer, f"--output {name}: the suffix {ending} is not that of --format {format_name}")
        for ending in (".txt", ".out", ""):
            written.add(f"{format_name}{ending}")
            assert cli(f"cache --model dsv3 --format {format_name} --output {format_name}{ending}").code == 0
    assert {path.name for path in tmp_path.iterdir()} == written
    assert json.loads((tmp_path / "json.txt").read_text())["results"]["bytes_per_token"] == 70_272


def test_auto_gpu_without_a_driver(cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refused(cli("flops --model dsv3 --gpu auto"), "--gpu auto", "nvidia-smi")


@pytest.mark.parametrize(
    ("printed", "words"),
    [("NVIDIA H20 NVL16\n", ["NVIDIA H20 NVL16"]), ("", ["no GPU"]), ("NVIDIA H200\nNVIDIA L4\n", ["several"])],
)
def test_auto_gpu_is_never_guessed(
    printed: str, words: list[str], cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "nvidia-smi"
    fake.write_text(f"#!/bin/sh\nprintf '%s' '{printed}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    refused(cli("flops --model dsv3 --gpu auto"), *words)


def test_auto_gpu_takes_the_exact_device(cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "nvidia-smi"
    fake.write_text("#!/bin/sh\nprintf 'NVIDIA H20\\nNVIDIA H20\\n'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    # H20: 148 TFLOP/s over 4.0 TB/s
    assert cli("intensity --model dsv3 --gpu auto -f json").results["ridge_flop_per_byte"] == pytest.approx(37.0)


def test_presets_check_exit_codes(tmp_path: Path, cli: Any) -> None:
    good = tmp_path / "good.yaml"
    good.write_text(
        "name: Mine\nmla: {heads: 16, hidden_size: 2048, kv_lora_rank: 512, q_lora_rank: null,"
        " qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128}\n"
        "cached_layers: 27\ntransformer_layers: 27\nsources: {default: [mine]}\n"
        "expect:\n  - {command: cache, key: bytes_per_token, value: 31.104, unit: kB, source: mine}\n"
    )
    assert cli("presets check", str(good)).code == 0
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(good.read_text().replace("31.104, unit: kB", "30.375, unit: kB"))
    answer = cli("presets check -f json", str(wrong))
    assert answer.code == 1
    failures = answer.results["failures"]
    assert [set(failure) for failure in failures] == [{"preset", "field", "message"}]
    assert "unit slip" in failures[0]["message"]  # 31,104 B are 30.375 KiB
    unsourced = tmp_path / "unsourced.yaml"
    unsourced.write_text(good.read_text().replace("sources: {default: [mine]}\n", ""))
    assert "source" in cli("presets check", str(unsourced)).out
    (tmp_path / "odd.yaml").write_text("a: 1\n")
    assert cli("presets check", str(tmp_path / "odd.yaml")).code == 1
    refused(cli("presets check", str(tmp_path / "missing.yaml")))
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(cli("presets check", str(empty)), "no YAML")


def test_closed_streams() -> None:
    """A closed stdout is one line and exit 2; a closed stderr hides the line, not the code."""
    line = f"{sys.executable} -m mla_calc"
    for command in ("--version", "cache --model dsv3 -f json", "presets list", "--help"):
        found = subprocess.run(["bash", "-c", f"{line} {command} >&-"], capture_output=True, text=True, check=False)
        assert found.returncode == 2, command
        assert found.stderr.splitlines() == ["mla-calc: stdout is closed: there is nowhere to answer"]
    found = subprocess.run(["bash", "-c", f"{line} cache --model nope 2>&-"], capture_output=True, check=False)
    assert found.returncode == 2


def test_a_terminal_without_utf8(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**VALID, "_name_or_path": "\U0001f40b"}))
    for encoding in ("ascii", "latin-1"):
        found = subprocess.run(
            [sys.executable, "-m", "mla_calc", "cache", "--model", str(config)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONIOENCODING": encoding},
        )
        assert "70,272 B" in found.stdout
        assert "U0001f40b" in found.stdout


def test_names_cannot_drive_a_terminal(tmp_path: Path, cli: Any) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**VALID, "_name_or_path": "a\u202e\u001b[31mb"}))
    answer = cli("cache --model", str(config))
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out
    preset = tmp_path / "mine.yaml"
    preset.write_text('name: "a\\e[31m"\ncached_layers: 1\n')
    refused(cli("cache --model", str(preset)), "cannot be printed")


def test_a_link_given_as_output_stays(tmp_path: Path, cli: Any) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target.name)
    assert cli("cache --model dsv3 --output", str(link)).code == 0
    assert link.is_symlink()
    assert target.read_text().startswith("tp,")


def test_output_dash_is_stdout(cli: Any) -> None:
    assert cli("cache --model dsv3 -f json -o -").results["bytes_per_token"] == 70_272


def test_long_arguments_are_cut(cli: Any) -> None:
    for option in ("--model", "--dtype", "--format", "--weight-bytes", "--mma-dtype", "--gpu"):
        others = "" if option == "--model" else "--model dsv3 "
        answer = cli(f"flops {others}{option} {'9' * 5000}")
        assert answer.code == 2
        assert max(map(len, answer.err.splitlines())) < 600


NO_UTF8 = b"su\xffr"
"""A folder's name that is no UTF-8, as old file systems have them."""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("cache", "a.json"),
        ("cache", "a.md"),
        ("cache", "a.html"),
        ("cache", "a.svg"),
        ("report --gpu h200", "a.html"),
        ("report --gpu h200", "a.md"),
        ("report --gpu h200", "a.json"),
        ("sweep flops", "a.json"),
        ("sweep flops", "a.parquet"),
    ],
)
def test_a_path_that_is_no_utf8_is_written_with_escapes(line: str, name: str, cli: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow") if name.endswith("parquet") else None
    folder = os.path.join(os.fsencode(tmp_path), NO_UTF8)
    os.mkdir(folder)
    config = Path(os.fsdecode(folder)) / "config.json"
    config.write_text(json.dumps(VALID), encoding="utf-8")
    output = tmp_path / name
    answer = cli(line, "--model", str(config), "--output", str(output))
    assert answer.code == 0, answer.err
    if not name.endswith("svg"):  # a figure names no file
        assert re.search(rb"su\\+udcffr", output.read_bytes())  # a JSON escapes the backslash once more


def test_a_page_that_cannot_be_written_leaves_no_figures(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mla_calc.report.page_markdown.to_markdown", full)
    refused(cli("report --model dsv3 --gpu h200 --tp 8 --output", str(tmp_path / "page.md")), "No space left")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        "cache --model dsv3 --format json --output /dev/stdout",
        "report --model dsv3 --gpu h200 --format json --output /dev/stdout",
        "sweep flops --model dsv3 --format json --output -",
    ],
)
def test_a_pipe_is_written_by_its_name(line: str) -> None:
    done = subprocess.run([sys.executable, "-m", "mla_calc", *line.split()], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["inputs"]["model"] == "DeepSeek-V3"


def test_what_nobody_reads_to_its_end_is_no_error() -> None:
    line = f"{sys.executable} -m mla_calc sweep flops --model dsv3 --batch 1:100000:+1 | head -1"
    code = f"set -o pipefail; {line}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")
def test_wrong_input_with_nowhere_to_say_it() -> None:
    with open("/dev/full", "w") as full:
        line = [sys.executable, "-m", "mla_calc", "cache", "--model", "nope"]
        assert subprocess.run(line, stderr=full, stdout=subprocess.DEVNULL, check=False).returncode == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cache --model", "see `mla-calc cache --help`"),
        ("presets list --kind x", "Invalid value for '--kind': 'x' is not one of"),
        ("sweep flops --model dsv3 --format=", "--format '': one of csv, json, parquet"),
        ("crossover --model dsv3 --context=", "--context '': a whole number is expected"),
    ],
)
def test_what_is_said_of_options(line: str, words: str, cli: Any) -> None:
    refused(cli(line), words)


def test_links_that_go_round_are_one_line(cli: Any, tmp_path: Path) -> None:
    link = tmp_path / "loop.json"
    link.symlink_to(link)
    refused(cli("cache --model dsv3 --output", str(link)), "symbolic links")
    refused(cli("report --model dsv3 --gpu h200 --tp 8 --output", str(link)), "symbolic links")


@pytest.mark.parametrize(("letters", "written"), [(250, True), (251, False)])
def test_a_name_may_be_as_long_as_a_files(letters: int, written: bool, cli: Any, tmp_path: Path) -> None:
    output = tmp_path / ("a" * letters + ".json")  # 255 bytes at most
    answer = cli("cache --model dsv3 --output", str(output))
    if written:
        assert answer.code == 0
        assert json.loads(output.read_text(encoding="utf-8"))["schema"] == "mla-calc/cache/1"
    else:
        refused(answer, "--output", "name too long")


ODD = "nl\nx|y\tz\x1b[31m"


@pytest.mark.parametrize("name", ["a.svg", "a.html", "a.md"])
def test_a_folder_with_control_characters_has_them_escaped(name: str, cli: Any, tmp_path: Path) -> None:
    (tmp_path / ODD).mkdir()
    (tmp_path / ODD / "config.json").write_text(json.dumps(VALID), encoding="utf-8")
    command = "cache" if name == "a.svg" else "report --gpu h200"
    answer = cli(command, "--model", str(tmp_path / ODD), "--output", str(tmp_path / name))
    assert (answer.code, answer.err) == (0, "")
    written = (tmp_path / name).read_text(encoding="utf-8")
    assert not {"\x1b", "\t"} & set(written)
    if name == "a.svg":
        xml.dom.minidom.parseString(written)
