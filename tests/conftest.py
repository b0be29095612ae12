"""How hypothesis runs here: no deadlines (a slow machine is not a wrong answer), no database on disk."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("here", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")
