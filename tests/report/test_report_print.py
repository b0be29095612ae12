"""What a printed report is like, on the paper that a browser lays it out for."""

from __future__ import annotations

from pathlib import Path

import pytest

from mla_calc.cli.main import run
from tests.browser import IS_THERE, MISSING, chromium

WITHIN_MARGINS_PX = 688
"""210 mm less two margins of 14 mm, at 96 px to the inch."""


@pytest.mark.skipif(not IS_THERE, reason=MISSING)
def test_seven_models_beside_stay_on_the_paper(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    beside = "llama3-70b,qwen3-235b,glm-4.5,kimi-k2,dsv2,mixtral-8x7b,gpt-oss-120b"
    assert run(["report", "--model", "dsv3", "--gpu", "h200", "--tp", "4", "--vs", beside, "-o", str(page)]) == 0
    size = {"width": WITHIN_MARGINS_PX, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    with chromium(tmp_path / "profile", 1280, 800) as browser:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        browser.get(page.as_uri())
        widths = browser.execute_script("return [...document.querySelectorAll('table')].map(each => each.scrollWidth)")
    assert len(widths) > 10
    assert max(widths) <= WITHIN_MARGINS_PX
