"""vLLM's rules: the backend that a release picks, and the path that each row of a batch takes."""

from __future__ import annotations

from .vllm_dispatch import Runner, dispatch, effective_threshold
from .vllm_ladder import StoredResolution, backend_named, cache_names, is_quantised, resolve, verdict

__all__ = [
    "Runner",
    "StoredResolution",
    "backend_named",
    "cache_names",
    "dispatch",
    "effective_threshold",
    "is_quantised",
    "resolve",
    "verdict",
]
