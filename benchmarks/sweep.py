"""A million points to Parquet, CSV and JSON: wall time and peak memory of the whole process, start included.

The reference is a Python loop over the scalar engine, timed on 1,000 of the points.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice, product
from pathlib import Path

from mla_calc.costs.flops import flops_cost
from mla_calc.costs.paths import Work
from mla_calc.hardware.load import load_gpu
from mla_calc.hardware.roofline import datasheet_ceilings
from mla_calc.models.load import load_model
from mla_calc.sizes import parse_counts

AXES = {"--tp": "1,2,4,8,16", "--batch": "1:128:x2", "--queries": "1:25:+1", "--context": "1k:1000k:+1k"}
FIXED = ["--model", "dsv3", "--gpu", "h200"]
ENTRY = "from mla_calc.cli.main import main; main()"


def swept(output: Path) -> tuple[float, int]:
    """Wall seconds and peak resident bytes of one sweep in a process of its own."""
    axes = [text for pair in AXES.items() for text in pair]
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", ENTRY, "sweep", *FIXED, *axes, "--output", str(output)])
    _, status, usage = os.wait4(process.pid, 0)
    taken = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the sweep failed with exit code {process.returncode}")
    return taken, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def scalar_loop(points: int) -> float:
    """Seconds per point of a loop over the scalar engine."""
    model, ceilings = load_model("dsv3"), datasheet_ceilings(load_gpu("h200"), "bf16")
    assert model.mla
    values = [parse_counts(text, option) for option, text in AXES.items()]
    start = time.perf_counter()
    for tp, batch, queries, context in islice(product(*values), points):
        work = Work(queries=queries, context=context, row_bytes=1152, batch=batch, tp=tp)
        flops_cost(model.mla, model.cached_layers, work, ceilings)
    return (time.perf_counter() - start) / points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    per_point = scalar_loop(1000)
    print(f"{os.cpu_count()} cores; Python loop over 1,000 points: {per_point * 1e6:.1f} us a point")
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("parquet", "csv", "json"):
            output = Path(folder, f"million.{suffix}")
            results = [swept(output) for _ in range(runs)]
            wall, peak = min(taken for taken, _ in results), max(peak for _, peak in results)
            print(
                f"{suffix:8} 1,000,000 points: {wall:5.2f} s (best of {runs}; worst {max(results)[0]:.2f}), "
                f"peak {peak / 2**20:4.0f} MiB, file {output.stat().st_size / 1e6:.0f} MB, "
                f"{per_point * 1e6 / wall:.0f} times as fast as the loop alone"
            )


if __name__ == "__main__":
    main()
