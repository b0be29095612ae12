"""What the screens look like.

After a change that is meant: `pytest tests/explore/test_snapshots.py --snapshot-update`, and look at every file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mla_calc.explore.app import Explorer

from .running import H100, LARGE, SMALL, explain, press, settle

SCREENS = {
    "small-roofline": (SMALL, False, ""),
    "small-kernels": (SMALL, False, "2 down right"),
    "small-kernels-light": (SMALL, True, "2 down right"),
    "small-explain": (SMALL, False, "3 e"),
    "small-keys": (SMALL, False, "question_mark"),
    "small-wrong": (SMALL, False, "tab tab 3 enter 2"),
    "large": (LARGE, False, "b b b b c"),
    "large-light": (LARGE, True, "b b b b c"),
}


@pytest.mark.parametrize("name", [*SCREENS, "small-roofline-no-colour", "large-no-colour"])
def test_screen(name: str, snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = name.removesuffix("-no-colour")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if plain != name:
        monkeypatch.setenv("NO_COLOR", "1")
    size, light, keys = SCREENS[plain]

    async def before(pilot: Any) -> None:
        await settle(pilot)
        await (explain(pilot, *keys.split()[:-1]) if keys.endswith(" e") else press(pilot, *keys.split()))

    assert snap_compare(Explorer(H100, light), terminal_size=size, run_before=before)


def test_the_manual_shows_a_screen_that_is_compared() -> None:
    shown = Path(__file__).parents[2] / "docs" / "figures" / "explore.svg"
    compared = Path(__file__).parent / "__snapshots__" / "test_snapshots" / "test_screen[large].svg"
    assert shown.read_bytes() == compared.read_bytes()
