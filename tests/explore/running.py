"""Running the explorer in a test: opened at a size, numbers on the screen, keys pressed one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from mla_calc.explore.app import Explorer
from mla_calc.explore.dialogs import Reading
from mla_calc.explore.sheet_view import SheetView
from mla_calc.explore.state import State

SMALL, LARGE = (80, 24), (200, 50)
H100 = State(gpu="h100-sxm5-80gb")
"""A GPU without constants of an estimate: what is on its screens changes with no calibration."""


@asynccontextmanager
async def opened(
    state: State = H100, size: tuple[int, int] = SMALL, folder: Path | None = None, light: bool = False
) -> AsyncIterator[tuple[Explorer, Pilot[State]]]:
    app = Explorer(state, light, folder)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        yield app, pilot


async def settle(pilot: Pilot[Any]) -> None:
    """Wait until the numbers are there and all that was asked for has been done."""
    app: Any = pilot.app
    while app.answers is None or app._early or any(view._early for view in app.screen_stack[0].query(SheetView)):
        await pilot.pause(0.01)
    await app.workers.wait_for_complete()
    await pilot.pause()


async def until(pilot: Pilot[Any], holds: Callable[[], bool], turns: int = 500) -> None:
    """Wait for what begins only after the screen was drawn again, which :func:`settle` does not see coming."""
    while not holds() and turns:
        await pilot.pause(0.02)
        turns -= 1
    await settle(pilot)


async def press(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


async def explain(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys and then ``e``, and wait for the explanation, which may begin after the panel is drawn."""
    await press(pilot, *keys, "e")
    await until(pilot, lambda: isinstance(pilot.app.screen, Reading))
    assert isinstance(pilot.app.screen, Reading)


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test's coroutine function in a loop of its own."""
    asyncio.run(test())  # type: ignore[arg-type]


def screen_text(app: Explorer) -> str:
    """All that stands on the screen, line by line."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
