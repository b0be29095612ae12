"""Curves fitted to measured times: robust least squares in the logarithm of the time, under monotone limits.

Times are positive and span four decades, so errors are relative: the residual of a row is log(estimate / measured).
Huber's loss keeps one disturbed row from bending a curve. Along a curve efficiencies do not fall and t0 does not
either: a longer loop hides more of its start, more splits are more to merge. A light penalty on kinks settles what
few rows decide. Gauss-Newton steps with Marquardt damping, projected on the limits; numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

HUBER = 0.08
"""Relative error from which a row counts linearly: what cards and heat do to a row stays below."""
SMOOTH_SHARE, SMOOTH_T0 = 0.03, 0.02
FLAT_SHARE = 0.08
"""What a small call takes is t0 first, and a lower efficiency only where t0 does not explain it."""
ROWS_PER_POINT = 6
"""Rows that a point of a curve needs behind it, on average."""
MOST_POINTS, MOST_T0_POINTS = 6, 8
STARTS = ((0.9, 0.8), (0.5, 0.6), (0.2, 0.3))
"""The cost has more than one hollow: which of two terms binds changes along the way."""
STEPS = 80
STEP = 1e-6


@dataclass(frozen=True, slots=True)
class Samples:
    """One entry per row: seconds measured, seconds at the peaks, and the sizes that curves run over."""

    measured_s: Array
    compute_s: Array
    memory_s: Array
    combine_s: Array
    splits: Array
    compute_size: Array
    memory_size: Array


Points: TypeAlias = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """Fitted constants; curves as (size, value), those of a term that never binds empty."""

    t0_us: Points
    combine: float | None
    compute: Points
    memory: Points
    cost: float
    """What was minimised: the robust sum of squared relative errors."""


class _Model:
    """Where the parameters of one fit stand in a vector, and the times that they give.

    The vector: t0 at the first split count and its rises, then for each efficiency the log at the largest size and
    the falls towards smaller ones, then the log of the combine's share. All but the logs are at least 0.
    """

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        rows = len(samples.measured_s)
        self.splits = knots(samples.splits, min(MOST_T0_POINTS, 1 + rows // ROWS_PER_POINT))
        points = min(MOST_POINTS, 1 + rows // ROWS_PER_POINT)
        self.compute = knots(samples.compute_size, points) if samples.compute_s.any() else np.empty(0)
        self.memory = knots(samples.memory_size, points) if samples.memory_s.any() else np.empty(0)
        self.combines = bool(samples.combine_s.any())
        lengths = [len(self.splits), len(self.compute), len(self.memory), int(self.combines)]
        ends = np.cumsum(lengths)
        self.parts = [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]

    def start(self, t0_share: float, efficiency: float) -> tuple[Array, Array, Array]:
        """A first guess of the vector, and its least and most.

        ``t0_share`` of the shortest time is taken as t0, and ``efficiency`` of either peak as reached.
        """
        least_us = float(self.samples.measured_s.min()) * 1e6
        guess, low, high = (np.zeros(self.parts[-1].stop) for _ in range(3))
        t0, *shares, combine = self.parts
        guess[t0], low[t0], high[t0] = 0.1 * t0_share * least_us, 0.0, np.inf
        guess[t0.start], low[t0.start] = t0_share * least_us, 0.05
        for part in shares:
            if part.stop > part.start:
                guess[part], low[part], high[part] = 0.1, 0.0, 8.0
                guess[part.stop - 1], low[part.stop - 1], high[part.stop - 1] = np.log(efficiency), np.log(1e-4), 0.0
        low[combine], high[combine] = np.log(0.05), np.log(20.0)
        return guess, low, high

    def values(self, vector: Array) -> tuple[Array, Array, Array, float]:
        """t0 in us, both efficiencies at their knots, and the combine's share."""
        t0, compute, memory, combine = (vector[part] for part in self.parts)
        shares = [np.exp(np.cumsum(np.concatenate((part[-1:], -part[-2::-1])))[::-1]) for part in (compute, memory)]
        return np.cumsum(t0), shares[0], shares[1], float(np.exp(combine[0])) if self.combines else 1.0

    def seconds(self, vector: Array) -> Array:
        """The estimate of every row."""
        t0, compute, memory, combine = self.values(vector)
        seconds = _along(self.splits, t0, self.samples.splits) * 1e-6 + self.samples.combine_s / combine
        main = np.zeros_like(seconds)
        if len(compute):
            main = self.samples.compute_s / _along(self.compute, compute, self.samples.compute_size)
        if len(memory):
            main = np.maximum(main, self.samples.memory_s / _along(self.memory, memory, self.samples.memory_size))
        return np.asarray(seconds + main)

    def residuals(self, vector: Array) -> tuple[Array, Array]:
        """Relative errors of the rows, and the penalties."""
        t0, compute, memory, combine = self.values(vector)
        logs = [np.log(share) for share in (compute, memory) if len(share)]
        kinks = [SMOOTH_SHARE * np.diff(log, 2) for log in logs] + [FLAT_SHARE * np.diff(log) for log in logs]
        kinks.append(SMOOTH_T0 * np.diff(t0, 2) / t0.mean())
        errors = np.log(self.seconds(vector) / self.samples.measured_s)
        return errors, np.concatenate([*kinks, [SMOOTH_T0 * np.log(combine)]])


def fit(samples: Samples) -> Curves:
    """The curves that give ``samples`` best."""
    model = _Model(samples)
    starts = (model.start(*start) for start in STARTS)
    vector, cost = min((_minimum(model.residuals, *start) for start in starts), key=lambda found: found[1])
    t0, compute, memory, combine = model.values(vector)
    takes_compute, takes_memory = _bound_by(model, compute, memory)
    return Curves(
        t0_us=_points(model.splits, t0, np.ones_like(t0, dtype=bool)),
        combine=_rounded(combine) if model.combines else None,
        compute=_points(model.compute, compute, _supported(model.compute, samples.compute_size[takes_compute])),
        memory=_points(model.memory, memory, _supported(model.memory, samples.memory_size[takes_memory])),
        cost=cost,
    )


def knots(sizes: Array, most: int) -> Array:
    """At most ``most`` sizes, evenly spaced by ratio over those that occur; about one for each factor of two."""
    least, largest = float(sizes.min()), float(sizes.max())
    octaves = np.log2(largest / least)
    count = int(min(most, 1 + np.ceil(octaves)))
    return np.geomspace(least, largest, count) if octaves > 0.1 else np.array([largest])


def _along(sizes: Array, values: Array, at: Array) -> Array:
    """Linear over log(size) between the knots, held beyond both ends: as a calibration is read."""
    return np.asarray(np.interp(np.log(at), np.log(sizes), values))


def _bound_by(model: _Model, compute: Array, memory: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows whose time the one and the other efficiency decides."""
    samples, nothing = model.samples, np.zeros_like(model.samples.measured_s)
    by_compute = samples.compute_s / _along(model.compute, compute, samples.compute_size) if len(compute) else nothing
    by_memory = samples.memory_s / _along(model.memory, memory, samples.memory_size) if len(memory) else nothing
    return by_compute > by_memory, by_memory >= by_compute


def _supported(sizes: Array, used: Array) -> NDArray[np.bool_]:
    """Knots that some row's time hangs on; the value at any other is none that was measured."""
    if not len(used) or not len(sizes):
        return np.zeros(len(sizes), dtype=bool)
    below = np.searchsorted(sizes, used * (1 + 1e-12), side="right") - 1
    above = np.searchsorted(sizes, used * (1 - 1e-12), side="left")
    found = np.zeros(len(sizes), dtype=bool)
    found[np.clip(below, 0, len(sizes) - 1)] = True
    found[np.clip(above, 0, len(sizes) - 1)] = True
    return found


def _points(sizes: Array, values: Array, keep: NDArray[np.bool_]) -> Points:
    """Readable pairs. Rounding keeps a rising curve from falling."""
    return tuple(
        (_rounded(size), _rounded(value)) for size, value, kept in zip(sizes, values, keep, strict=True) if kept
    )


def _rounded(value: float) -> float:
    """Four significant digits: no measurement here has more."""
    return float(f"{max(value, 1e-6):.4g}")


def _minimum(
    residuals: Callable[[Array], tuple[Array, Array]], start: Array, low: Array, high: Array
) -> tuple[Array, float]:
    """The vector of least cost within its limits, and that cost."""
    vector, damping = start, 1e-2
    errors, penalties = residuals(vector)
    cost = _cost(errors, penalties)
    for _ in range(STEPS):
        weight = np.sqrt(np.minimum(1.0, HUBER / np.maximum(np.abs(errors), 1e-12)))
        weighted = np.concatenate((errors * weight, penalties))
        jacobian = _jacobian(residuals, vector, high, weight, weighted)
        before, gradient = cost, jacobian.T @ weighted
        free = ~((vector <= low) & (gradient > 0) | (vector >= high) & (gradient < 0))
        normal = jacobian.T @ jacobian
        while damping < 1e9:
            damped = normal + np.diag(damping * (np.diag(normal) + 1e-9))
            move = np.zeros_like(vector)
            move[free] = np.linalg.solve(damped[np.ix_(free, free)], -gradient[free])
            trial = np.clip(vector + move, low, high)
            found = residuals(trial)
            new_cost = _cost(*found)
            if new_cost < cost:
                vector, (errors, penalties), cost = trial, found, new_cost
                damping = max(damping / 4, 1e-9)
                break
            damping *= 4
        if before - cost <= 1e-6 * before:
            break
    return vector, cost


def _jacobian(
    residuals: Callable[[Array], tuple[Array, Array]], vector: Array, high: Array, weight: Array, weighted: Array
) -> Array:
    """Forward differences; backward ones where a parameter stands at its most."""
    columns = []
    for index in range(len(vector)):
        step = STEP * max(1.0, abs(vector[index]))
        step = -step if vector[index] + step > high[index] else step
        moved = vector.copy()
        moved[index] += step
        errors, penalties = residuals(moved)
        columns.append((np.concatenate((errors * weight, penalties)) - weighted) / step)
    return np.stack(columns, axis=1)


def _cost(errors: Array, penalties: Array) -> float:
    size = np.abs(errors)
    robust = np.where(size < HUBER, size**2, 2 * HUBER * size - HUBER**2)
    return float(robust.sum() + (penalties**2).sum())
