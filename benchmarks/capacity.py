"""``mla-calc capacity --search`` over 4,096 GPUs, beside ``mla-calc cache`` run in turn, and the search alone.

The whole commands are timed as processes. In one process the search is timed against pricing the same legal
layouts one by one, in turn as well.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from startup import machine

from mla_calc.costs.capacity import Memory, Plan
from mla_calc.costs.layouts import load_layout
from mla_calc.costs.placement import MAX_GPUS, Placement
from mla_calc.costs.search import Step, capacity_cost, search
from mla_calc.hardware.load import load_gpu
from mla_calc.hardware.roofline import datasheet_ceilings
from mla_calc.models.load import load_model

COMMANDS = {
    "capacity": ["capacity", "--model", "dsv3", "--gpu", "h200", "--gpus", str(MAX_GPUS), "--search", "-f", "json"],
    "cache": ["cache", "--model", "dsv3", "-f", "json"],
}


def process(arguments: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "mla_calc", *arguments], stdout=subprocess.DEVNULL, check=True)


def alternate(runs: int, **calls: Callable[[], object]) -> dict[str, float]:
    """Median wall seconds of each; they take turns, the first turn is not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(runs + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    print(machine())
    whole = alternate(runs, **{name: lambda words=words: process(words) for name, words in COMMANDS.items()})
    print(f"capacity --search {whole['capacity']:.3f} s, cache {whole['cache']:.3f} s, medians of {runs}")

    plan = Plan(model=load_model("dsv3"), layout=load_layout("bf16"), memory=Memory(cache_bytes=40 << 30), context=8192)
    step = Step(ceilings=datasheet_ceilings(load_gpu("h200"), "bf16"))
    legal = [item for item in search(plan, MAX_GPUS, step, {}).layouts if item.legal]
    placements = [Placement(item.tp, item.dp, item.dcp, item.pp) for item in legal]
    inside = alternate(
        runs,
        vectorised=lambda: search(plan, MAX_GPUS, step, {}),
        one_by_one=lambda: [capacity_cost(plan, at, step) for at in placements],
    )
    together, apart = inside["vectorised"] * 1e3, inside["one_by_one"] * 1e3
    print(f"{len(legal)} legal layouts: search {together:.1f} ms, one by one {apart:.1f} ms ({apart / together:.1f}x)")


if __name__ == "__main__":
    main()
