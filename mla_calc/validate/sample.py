"""A sample of what a path must return, in float64: enough to see a wrong mask, scale, head or page at little cost."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .path_inputs import PathInputs
from .references import expanded_reference, relative_error

QUERIES = 8
"""Queries compared at either end: the masks of the first and of the last differ the most."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The float64 answer for some requests and heads at slices of the queries."""

    requests: list[int]
    heads: list[int]
    answers: list[tuple[slice, torch.Tensor]]
    """Of each slice [requests, queries of the slice, heads, dv]."""

    def error(self, found: torch.Tensor) -> float:
        """The worst relative error of ``found`` [batch, queries, heads, dv]; NaN where it is not finite."""
        errors = [
            relative_error(found[self.requests][:, end][:, :, self.heads], expected) for end, expected in self.answers
        ]
        return max(errors) if all(error == error for error in errors) else float("nan")


def sample_of(inputs: PathInputs) -> Sample:
    """The first and the last request and head, at both ends of the queries."""
    batch, queries, heads, _ = inputs.q_nope.shape
    requests, some = sorted({0, batch - 1}), sorted({0, heads - 1})
    ends = [slice(0, min(QUERIES, queries)), slice(max(0, queries - QUERIES), queries)]
    answers = [
        (
            end,
            expanded_reference(
                inputs.q_nope[requests][:, end][:, :, some],
                inputs.q_rope[requests][:, end][:, :, some],
                inputs.w_uk[some],
                inputs.w_uv[some],
                inputs.cache,
                inputs.block_table[requests],
                # what the last query of the slice sees: for the reference a request ends there
                inputs.lengths[requests] - (queries - end.stop),
                inputs.scale,
                cache_scale=inputs.cache_scale,
            ),
        )
        for end in ends
    ]
    return Sample(requests, some, answers)
