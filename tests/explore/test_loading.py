"""What is loaded when: presets once, the engine after the first screen, textual by the screen alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from mla_calc.data import presets_kept, presets_root
from mla_calc.models.load import load_model

PROBE = """
import json, sys
{code}
sys.stderr.write(json.dumps(sorted(name for name in sys.modules)))
"""


def modules_after(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", PROBE.format(code=code)], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr))


def test_presets_are_read_once_within_the_block_and_anew_outside(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    text = (presets_root() / "models" / "deepseek-v2-lite.yaml").read_text()
    path.write_text(text)
    with presets_kept():
        first = load_model(str(path))
        path.write_text(text.replace("name: DeepSeek-V2-Lite", "name: Another"))
        with presets_kept():
            assert load_model(str(path)) is first
        assert load_model(str(path)) is first
    assert load_model(str(path)).name == "Another"


def test_what_is_printed_needs_no_textual() -> None:
    loaded = modules_after("from mla_calc.cli.main import run; assert run(['explore', '--print']) == 0")
    assert not {name.partition(".")[0] for name in loaded} & {"textual", "numpy", "plotext", "matplotlib", "yaml"}


def test_the_first_screen_needs_no_engine() -> None:
    loaded = modules_after("import mla_calc.cli.explore, mla_calc.explore.app")
    assert "textual" in loaded
    assert not [name for name in loaded if name.startswith(("mla_calc.costs", "mla_calc.models", "mla_calc.engines"))]
    assert not loaded & {"numpy", "plotext", "matplotlib", "yaml"}
