from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mla_calc.cli.main import run
from mla_calc.cli.request import WEIGHT_BYTES
from mla_calc.costs.capacity import MAX_CACHE_BYTES
from mla_calc.costs.placement import MAX_GPUS
from mla_calc.costs.ridge import AXES
from mla_calc.data import presets_kept, presets_root
from mla_calc.errors import InputError
from mla_calc.explore import moves
from mla_calc.explore import state as states
from mla_calc.explore.moves import choices, problem
from mla_calc.explore.presets import KINDS, settled
from mla_calc.explore.state import State, command, commands, count_of, options_of, short
from mla_calc.hardware.gpu import DTYPES

H200 = State(gpu="h200-sxm-141gb")


def moved(state: State, knob: str, step: int) -> moves.Moved:
    """A move where explore was started with presets alone."""
    return moves.moved(state, knob, step, H200)


def test_the_command_line_names_every_knob() -> None:
    line = command(State(model="kimi-k2", tp=16, batch=256, context=131072, queries=3, dtype="fp8", sparse=True))
    expected = (
        "mla-calc explore --model kimi-k2 --gpu h200-sxm-141gb --tp 16 --dp 1 --batch 256 --context 128k"
        " --queries 3 --dtype fp8 --mma-dtype bf16 --sparse --over tp"
    )
    assert line == expected
    assert shlex.split(line)[:2] == ["mla-calc", "explore"]


def test_a_path_with_a_blank_is_quoted() -> None:
    words = shlex.split(command(State(model="./my model.yaml"), "flops"))
    assert words[words.index("--model") + 1] == "./my model.yaml"


def test_a_rank_works_on_the_requests_of_its_group_and_capacity_on_all() -> None:
    state = replace(H200, batch=10, dp=4)
    assert state.group_batch == 3  # 3 + 3 + 2 + 2
    assert options_of(state, "flops")["batch"] == "3"
    assert options_of(state, "capacity")["batch"] == "10"
    assert options_of(state, "dispatch-vllm")["rows"] == "3x1:4095"


@pytest.mark.parametrize(("value", "text"), [(1, "1"), (1023, "1023"), (4096, "4k"), (131072, "128k"), (1 << 20, "1m")])
def test_a_short_number_is_read_back(value: int, text: str) -> None:
    assert short(value) == text
    assert count_of("context", text) == value


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "4.5", "9" * 20])
def test_a_number_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        count_of("batch", text)


def test_constants_are_those_of_the_engine() -> None:
    assert states.MOST_GPUS == MAX_GPUS
    assert states.AXES == AXES
    assert states.MMA_DTYPES == DTYPES
    assert states.WEIGHT_BYTES == WEIGHT_BYTES
    assert states.MOST_CACHE == MAX_CACHE_BYTES


@pytest.mark.parametrize(
    ("knob", "step", "start", "expected"),
    [
        ("tp", 1, 8, 16),
        ("tp", -1, 8, 4),
        ("context", 1, 4096, 8192),
        ("context", -1, 5000, 4096),
        ("context", 1, 1234, 2048),  # no double
        ("context", -1, 1234, 1024),  # no half
        ("batch", 1, 3, 4),
        ("batch", -1, 3, 2),
        ("queries", 1, 1, 2),
        ("dp", 1, 1, 2),
        ("sparse", 1, False, None),
        ("over", 1, "tp", "batch"),
        ("over", -1, "tp", "queries"),
        ("mma_dtype", 1, "bf16", "fp16"),
        ("gpu", 1, "h100-sxm5-80gb", "h20-96gb"),
    ],
)
def test_moves(knob: str, step: int, start: object, expected: object) -> None:
    state = replace(H200, **{knob: start})
    if expected is None:
        with pytest.raises(InputError, match="indexer"):  # DeepSeek-V3 has none
            moved(state, knob, step)
    else:
        assert getattr(moved(state, knob, step).state, knob) == expected


def test_the_next_tp_divides_the_heads() -> None:
    minicpm = replace(H200, model="minicpm3-4b", tp=5)  # 40 heads: 1 2 4 5 8 10 20 40
    assert moved(minicpm, "tp", 1).state.tp == 8
    assert moved(minicpm, "tp", -1).state.tp == 4


@pytest.mark.parametrize("step", [1, -1])
def test_models_and_gpus_go_round_and_are_legal(step: int) -> None:
    state = H200
    seen = []
    for _ in choices("model", H200):
        state = moved(state, "model", step).state
        seen.append(state.model)
        assert problem(state) is None
    assert len(set(seen)) > 20
    assert "deepseek-v3" in seen
    assert "llama3-70b" not in choices("model", H200)  # no latent


@pytest.mark.parametrize(
    ("knob", "name", "a_file"),
    [
        ("model", "deepseek-v3", True),
        ("model", "llama3-8b", True),
        ("model", "llama3-70b", False),  # no latent
        ("gpu", "h200-sxm-141gb", True),
        ("dtype", "bf16", True),
    ],
)
def test_what_it_was_started_with_stays_in_reach(knob: str, name: str, a_file: bool, tmp_path: Path) -> None:
    preset = presets_root() / KINDS[knob] / f"{name}.yaml"
    own = str(shutil.copy(preset, tmp_path / "mine.yaml")) if a_file else name
    started = replace(H200, **{knob: own})
    assert choices(knob, started) == (own, *choices(knob, H200))
    with presets_kept():
        for step in (1, -1):
            state = moves.moved(started, knob, step, started).state
            seen = [own]
            assert moves.moved(state, knob, -step, started).state == started
            while state != started:
                seen.append(getattr(state, knob))
                state = moves.moved(state, knob, step, started).state
            assert len(seen) == len(set(seen)) > (3 if knob == "dtype" else 20)


def test_a_gpu_without_the_dtype_is_passed_over_with_the_reason() -> None:
    a100 = replace(H200, gpu="a10g-24gb", mma_dtype="fp8")
    assert problem(a100) is not None
    hopper = replace(H200, gpu="gh200-96gb", mma_dtype="fp8")
    back = moved(hopper, "gpu", 1)
    assert problem(back.state) is None
    low = moved(replace(H200, gpu="rubin-vr200", mma_dtype="fp8"), "gpu", 1)
    assert problem(low.state) is None


def test_models_that_the_tp_does_not_fit_are_passed_over_with_the_reason() -> None:
    move = moved(replace(H200, model="deepseek-v3"), "model", 1)
    assert move.state.model == "glm-5.2"
    assert move.skipped == ("TP 8 does not divide the 20 heads of GLM-4.7-Flash",)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tp": 3}, "TP 3 does not divide the 128 heads"),
        ({"queries": 8192}, "more than the context of 4,096"),
        ({"gpu": "a100-sxm-80gb", "mma_dtype": "fp8"}, "no fp8 peak"),
        ({"dtype": "fp8_ds_mla", "model": "minicpm3-4b"}, "kv_lora_rank"),
        ({"tp": 128, "dp": 64}, "8,192 GPUs; at most 4,096"),
        ({"sparse": True}, "no indexer"),
        ({"model": "nosuch"}, "no model preset"),
    ],
)
def test_what_is_wrong_is_one_line(wrong: dict[str, object], words: str) -> None:
    found = problem(replace(H200, **wrong))
    assert found is not None
    assert words in found
    assert "\n" not in found


def test_from_a_wrong_state_a_move_leads_on() -> None:
    assert moved(replace(H200, tp=3), "tp", 1).state.tp == 4
    assert moved(replace(H200, tp=3), "model", 1).state.model == "glm-4.7-flash"


def test_ends_say_so() -> None:
    with pytest.raises(InputError, match="smallest"):
        moved(H200, "batch", -1)
    with pytest.raises(InputError, match="more than the context"):
        moved(replace(H200, context=4, queries=4), "queries", 1)


def asked_for(line: str) -> dict[str, str]:
    """The options of a command line that have a value."""
    words = shlex.split(line)
    return {word: after for word, after in pairwise(words) if word.startswith("--") and not after.startswith("--")}


def test_weights_and_room_are_asked_of_the_commands_in_which_they_count() -> None:
    lines = commands(replace(H200, weight_bytes="0.5", max_model_len=131072, cache_budget="40GiB"))
    found = {line.split()[1]: asked_for(line) for line in lines}
    assert {name for name, asked in found.items() if asked.get("--weight-bytes") == "0.5"} == {
        "explore", "roofline", "flops", "crossover", "capacity",
    }  # fmt: skip
    for option, value in (("--max-model-len", "128k"), ("--cache-budget", "40GiB")):
        assert {name for name, asked in found.items() if asked.get(option) == value} == {"explore", "capacity"}
        assert sum(option in line for line in lines) == 2
    assert not any(option in line for line in commands(H200) for option in ("weight", "budget", "model-len"))


def test_weights_and_room_come_back_from_the_printed_line(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--weight-bytes", "1", "--max-model-len", "128k", "--cache-budget", "1.5GB"]
    assert run(["explore", "--model", "mistral-large-3", *given, "--print"]) == 0
    printed = capsys.readouterr().out
    first = printed.splitlines()[0]
    assert asked_for(first).items() >= dict(zip(given[::2], given[1::2], strict=True)).items()
    assert run([*shlex.split(first)[1:], "--print"]) == 0
    assert capsys.readouterr().out == printed


def test_weights_go_round_from_those_of_the_commands() -> None:
    state, seen = H200, []
    for _ in range(5):
        state = moved(state, "weight_bytes", 1).state
        seen.append(state.weight_bytes)
    assert seen == ["0.5", "1", "2", "4", None]
    assert moved(H200, "weight_bytes", -1).state.weight_bytes == "4"


def test_a_model_without_a_latent_has_command_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", "--model", "llama3-70b", "--print"]) == 0
    assert capsys.readouterr().out.splitlines() == list(commands(replace(H200, model="llama3-70b")))


def test_aliases_become_file_names() -> None:
    state = settled(State(model="deepseek-ai/DeepSeek-V3", gpu="H100", dtype="BF16"))
    assert (state.model, state.gpu, state.dtype) == ("deepseek-v3", "h100-sxm5-80gb", "bf16")


def test_print_gives_all_command_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", "--model", "dsv3", "--gpu", "h100", "--context", "8k", "--print"]) == 0
    expected = commands(State(model="deepseek-v3", gpu="h100-sxm5-80gb", context=8192))
    assert capsys.readouterr().out.splitlines() == list(expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "nosuch"], "no model preset"),
        (["--gpu", "nosuch"], "no GPU preset"),
        (["--tp", "1,2"], "--tp '1,2'"),
        (["--over", "heads"], "--over 'heads'"),
        (["--mma-dtype", "fp9"], "--mma-dtype 'fp9'"),
        (["--model", "./missing.yaml"], "./missing.yaml: there is no such file"),
        (["--context", "0"], "--context 0"),
        (["--weight-bytes", "3"], "--weight-bytes '3': one of auto, 0.5, 1, 2, 4"),
        (["--max-model-len", "1,2"], "--max-model-len '1,2': a whole number"),
        (["--cache-budget", "40"], "--cache-budget '40': a size with its unit"),
        (["--cache-budget", "0B"], "--cache-budget 0B: 1 B to 1024TiB"),
        (["--cache-budget", "1025TiB"], "--cache-budget 1025TiB: 1 B to 1024TiB"),
        (["--print", "--gpu", str(presets_root() / "models" / "glm-5.yaml")], "is a model preset, a GPU is expected"),
        (
            ["--print", "--dtype", str(presets_root() / "gpus" / "h20-96gb.yaml")],
            "is a GPU preset, a layout is expected",
        ),
        (["--print", "--gpu", "h100", "--mma-dtype", "fp4"], "has no fp4 peak"),
        (["--print", "--model", "minicpm3", "--dtype", "fp8_ds_mla"], "is defined for kv_lora_rank 512"),
        (["--print", "--sparse"], "DeepSeek-V3 has no indexer"),
        (["--print", "--dp", "4096"], "32,768 GPUs; at most 4,096"),
        ([], "explore draws on a terminal"),
    ],
)
def test_wrong_options_and_no_terminal(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) <= 2


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the standard streams be a terminal that has all that the screen needs."""
    import sys

    monkeypatch.setenv("TERM", "xterm-256color")
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)


@pytest.mark.parametrize("kind", ["dumb", "unknown"])
def test_a_terminal_without_a_cursor_is_refused(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    on_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setitem(sys.modules, "mla_calc.explore.app", None)  # nothing is opened
    assert run(["explore"]) == 2
    error = capsys.readouterr().err
    assert f"TERM={kind}" in error
    assert "--print" in error
    assert len(error.splitlines()) == 2


def test_an_encoding_without_the_characters_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", shown)
    on_a_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "mla_calc.explore.app", None)  # nothing is opened
    assert run(["explore"]) == 2
    shown.seek(0)
    lines = shown.read().splitlines()
    assert lines[0] == "mla-calc: explore draws in UTF-8, and the encoding here is ascii"
    assert "PYTHONIOENCODING" in lines[1]
    assert len(lines) == 2


def test_without_plotext_the_hint_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    on_a_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "plotext", None)
    assert run(["explore"]) == 2
    assert capsys.readouterr().err == (
        "mla-calc: explore needs plotext, which is not installed\n  pip install 'mla-calc[explore]'\n"
    )


@pytest.mark.parametrize("beside", [False, True])
def test_a_crash_is_no_answer(
    beside: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mla_calc.explore import app

    def wrong(*_: object) -> None:
        raise RuntimeError("a wheel came off")

    class Failing(app.Explorer):
        def run(self, **_: object) -> State | None:
            return super().run(headless=True, size=(80, 24))

        def _begin(self) -> None:
            if not beside:
                wrong()
            self.run_worker(wrong, thread=True)

    on_a_terminal(monkeypatch)
    monkeypatch.setattr(app, "Explorer", Failing)
    assert run(["explore", "--tp", "4"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "a wheel came off" in told.err
    assert told.err.splitlines()[-2].startswith("mla-calc: explore failed")
    assert " --tp 4 " in told.err.splitlines()[-1]


@pytest.mark.parametrize(("folder", "code"), [("there", 0), ("missing", 1)])
def test_a_save_that_fails_as_it_is_left_fails_it(
    folder: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mla_calc.explore import app

    class Leaving(app.Explorer):
        def run(self, **_: object) -> State | None:
            async def leave(pilot: Any) -> None:
                await pilot.press("s", "s", "q")
                super(Leaving, self)._begin()

            self.folder = tmp_path / folder
            return super().run(headless=True, size=(80, 24), auto_pilot=leave)

        def _begin(self) -> None:
            """Not before it is being left: until then nothing can have been saved."""

    (tmp_path / "there").mkdir()
    on_a_terminal(monkeypatch)
    monkeypatch.setattr(app, "Explorer", Leaving)
    assert run(["explore", "--tp", "4"]) == code
    told = capsys.readouterr()
    assert told.out == f"{command(replace(H200, tp=4))}\n"
    failure, success = "nothing is saved: No such file or directory", "written: explore-"
    assert [told.err.count(words) for words in (failure, success)] == [2 * code, 2 - 2 * code]
    assert "failed" not in told.err


def test_one_request_is_no_requests() -> None:
    from mla_calc.explore.moves import told

    assert told(replace(H200, batch=2, dp=2)).endswith(", 1 request to a DP group")
    assert told(replace(H200, batch=3, dp=2)).endswith(", 2 requests to a DP group")


def test_without_textual_the_hint_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    on_a_terminal(monkeypatch)
    for name in [name for name in sys.modules if name.startswith(("textual", "mla_calc.explore.app"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    assert run(["explore"]) == 2
    assert capsys.readouterr().err == (
        "mla-calc: explore needs textual, which is not installed\n  pip install 'mla-calc[explore]'\n"
    )
