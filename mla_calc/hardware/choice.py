"""Which of this tool's decode kernels is taken for a call; the kernels and the estimate go by the same rule."""

from __future__ import annotations

from collections.abc import Mapping

TILE_ROWS: Mapping[str, int] = {"hopper": 64, "small": 16, "tile64": 64}
"""Score rows (heads times queries) of a block of each kernel."""
SMALL_TOKENS = 262_144
"""Cached tokens of all requests up to which the 16-row form is the fastest, where one tile holds a request's rows."""
SMALL_TOKENS_TILED = 32_768
"""The same, times the tiles, where it takes several, which each read every row."""


def preference(*, rows: int, tokens: int, fp8: bool, capability_major: int | None) -> tuple[str, ...]:
    """Every kernel, best first, by what was measured on an H200 (docs/kernels.md).

    The first that runs the shape is taken. On any GPU of another generation than 9.x, ``hopper`` never runs.

    Args:
        rows: score rows of a request, heads times queries.
        tokens: requests times the cached rows of the longest.
        fp8: whether the cache holds fp8 rows.
        capability_major: the major of the compute capability.
    """
    tiles = -(-rows // TILE_ROWS["small"])
    if fp8 or capability_major != 9:
        return ("small", "tile64", "hopper") if tiles == 1 else ("tile64", "small", "hopper")
    if tokens * tiles <= (SMALL_TOKENS if tiles == 1 else SMALL_TOKENS_TILED):
        return ("small", "hopper", "tile64")
    return ("hopper", "tile64", "small")
