"""Presets that people write: whatever is in the YAML, a check fails or an input is refused, never a traceback."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mla_calc.data import presets_root

SEEDS = {
    "models": ("deepseek-v3.2", "gpt-oss-120b", "kimi-linear-48b"),
    "gpus": ("h100-sxm5-80gb", "mi300x"),
    "engines": ("vllm-0.33", "sglang-0.5.23"),
    "layouts": ("fp8_ds_mla", "bf16"),
}
USES = {
    "models": ["cache --model {0} -s 4k", "flops --model {0} --gpu h100", "workspace --model {0}", "trace --model {0}"],
    "gpus": ["flops --model dsv3 --gpu {0}", "crossover --model dsv3 --gpu {0}", "intensity --model dsv3 --gpu {0}"],
    "engines": ["crossover --model dsv3 --engine {0}", "crossover --model dsv32 --gpu h200 --engine {0}"],
    "layouts": ["cache --model dsv3 --dtype {0}", "flops --model dsv3 --dtype {0}"],
}
WRONG: list[Any] = [
    None,
    0,
    -1,
    3,
    5,
    10**30,
    0.5,
    1e-13,
    float("inf"),
    float("nan"),
    True,
    "",
    "x",
    "128",
    [],
    ["x"],
    [0],
    {},
    {"x": 1},
    [[1]],
]


def mutated(kind: str, seed: int) -> dict[str, Any]:
    """A preset of ours with a few of its values, anywhere in it, replaced, dropped or doubled."""
    dice = random.Random(seed)
    path = presets_root() / kind / f"{dice.choice(SEEDS[kind])}.yaml"
    preset: Any = yaml.safe_load(path.read_text())
    for _ in range(dice.randint(1, 4)):
        holder: Any = preset
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = dice.choice(keys)
            if isinstance(holder[key], dict | list) and dice.random() < 0.75:
                holder = holder[key]
                continue
            if dice.random() < 0.2:
                del holder[key]
            else:
                holder[key] = dice.choice(WRONG)
            break
    result: dict[str, Any] = preset
    return result


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@pytest.mark.parametrize("kind", list(SEEDS))
@given(seed=st.integers(0, 10**9))
@example(seed=0)
def test_mutated_presets(kind: str, seed: int, cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(mutated(kind, seed), sort_keys=False))
    for line in ["presets check {0}", *USES[kind]]:
        answer = cli(line.format(path))
        assert answer.code in (0, 1, 2)
        assert "Traceback" not in answer.err
        if answer.code == 2:
            assert 1 <= len(answer.err.splitlines()) <= 2
            assert answer.out == ""


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("models", {"aliases": 5}),
        ("models", {"max_position_embeddings": -5}),
        ("models", {"max_position_embeddings": "4096"}),
        ("models", {"max_position_embeddings": True}),
        ("models", {"parameters": {"total": 0}}),
        ("gpus", {"compute_capability": "abc"}),
        ("gpus", {"peak_tflops": {"bf16": 1e-13}}),
        ("gpus", {"peak_tflops": {"bf16": "989"}}),
        ("gpus", {"memory": {"bandwidth_tbs": True}}),
        ("gpus", {"memory": {"bandwidth_tbs": 0}}),
        ("layouts", {"latent": []}),
        ("layouts", {"only": {"hidden": [5]}}),
    ],
)
def test_what_the_check_must_catch(kind: str, change: dict[str, Any], cli: Any, tmp_path: Path) -> None:
    preset = yaml.safe_load((presets_root() / kind / f"{SEEDS[kind][0]}.yaml").read_text()) | change
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(preset))
    field = next(iter(change))
    failures = cli(f"presets check -f json {path}").results["failures"]
    assert any(failure["field"].startswith(field) for failure in failures), failures
    assert all(cli(line.format(path)).code == 2 for line in USES[kind])


@pytest.mark.parametrize(
    "options",
    [{"tp": 0}, {"tp": "x"}, {"tp": 3}, {"context": 0}, {"context": -4}, {"queries": 10, "context": 4}, {"b": 1}],
)
def test_impossible_options_of_a_published_figure(options: dict[str, Any], cli: Any, tmp_path: Path) -> None:
    preset = yaml.safe_load((presets_root() / "models" / "deepseek-v3.yaml").read_text())
    figure = {
        "command": "flops",
        "key": "absorbed.flop",
        "value": 1.0,
        "unit": "FLOP",
        "source": "x",
        "options": options,
    }
    preset["expect"] = [figure]
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(preset))
    answer = cli(f"presets check -f json {path}")
    assert answer.code == 1
    assert any(failure["field"].startswith("expect") for failure in answer.results["failures"])


def test_a_name_of_ours_is_taken(cli: Any, tmp_path: Path) -> None:
    preset = yaml.safe_load((presets_root() / "models" / "deepseek-v3.yaml").read_text())
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(preset))
    failures = cli(f"presets check -f json {path}").results["failures"]
    assert any("dsv3" in failure["message"] and "deepseek-v3.yaml" in failure["message"] for failure in failures)


def test_one_unreadable_file_hides_nothing(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("")
    (tmp_path / "b.yaml").write_text("name: x\ncached_layers: 0\n")
    failures = cli(f"presets check -f json {tmp_path}").results["failures"]
    assert {Path(failure["preset"]).name for failure in failures} == {"a.yaml", "b.yaml"}
