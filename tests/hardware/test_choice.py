"""Which kernel is taken, at the limits of the rule."""

from __future__ import annotations

import pytest

from mla_calc.hardware.choice import TILE_ROWS, preference


@pytest.mark.parametrize(
    ("rows", "tokens", "fp8", "major", "first"),
    [
        (16, 262_144, False, 9, "small"),
        (16, 262_145, False, 9, "hopper"),
        (17, 16_384, False, 9, "small"),  # two tiles of 16
        (17, 16_385, False, 9, "hopper"),
        (128, 4096, False, 9, "small"),
        (128, 4097, False, 9, "hopper"),
        (16, 1, True, 9, "small"),
        (17, 1, True, 9, "tile64"),
        (16, 1 << 30, False, 8, "small"),
        (17, 1, False, 10, "tile64"),
        (17, 1, False, None, "tile64"),
    ],
)
def test_the_kernel_that_is_taken(rows: int, tokens: int, fp8: bool, major: int | None, first: str) -> None:
    found = preference(rows=rows, tokens=tokens, fp8=fp8, capability_major=major)
    assert found[0] == first
    assert sorted(found) == ["hopper", "small", "tile64"]
    if fp8 or major != 9:
        assert found[-1] == "hopper"


def test_tiles_are_those_of_the_kernels() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    from mla_calc.validate.kernels import hopper
    from mla_calc.validate.kernels.decode import KERNELS

    assert torch.int32
    assert set(TILE_ROWS) == set(KERNELS)
    assert TILE_ROWS["hopper"] == hopper.TILE
