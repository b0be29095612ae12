"""How hypothesis runs here: no deadlines (a slow machine is not a wrong answer), no database on disk.

Tests marked ``gpu`` are left out where no NVIDIA GPU is seen.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("here", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests marked ``gpu`` where torch sees no GPU."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))
