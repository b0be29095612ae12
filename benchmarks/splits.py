"""What the price of the merge does to a decode call: the splits that each price chooses, timed in turn on this GPU.

Shapes where all prices choose the same splits are left out. Needs an NVIDIA GPU, torch and Triton; see docs/kernels.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from dataclasses import replace
from pathlib import Path

import torch

from mla_calc.hardware.choice import TILE_ROWS
from mla_calc.validate.kernels import KERNELS, PAGE, absorbed_decode, device_of
from mla_calc.validate.kernels.shape import Device, Shape, planned
from mla_calc.validate.kernels.tiled import TiledKernel
from mla_calc.validate.timing import CudaStream, cold_l2, time_call

HEADS, BATCHES, QUERIES = (16, 32, 64, 128), (1, 2, 4, 8, 16, 32, 64), (1, 2, 3, 4)
CONTEXTS = tuple(1024 * 2**step for step in range(7))
CROSSOVER = [
    Shape(batch=1, queries=queries, heads=heads, context=context)
    for heads in (16, 128)
    for queries in (64, 96, 128, 160, 192, 256, 384, 512)
    for context in CONTEXTS
    if queries <= context
]
L2_BYTES = 60 << 20
POOL_PAGES = 64 * 1024


def splits_by_price(shape: Shape, device: Device, prices: list[float], kernel: str) -> dict[float, int]:
    """The splits that the kernel would take at each price of the merge."""
    taken = KERNELS[kernel]
    slots = taken.slots(shape, device) if isinstance(taken, TiledKernel) else device.sms
    return {price: int(planned(shape, slots, TILE_ROWS[kernel], price).splits) for price in prices}


def times_us(shape: Shape, splits: list[int], rounds: int, pool: torch.Tensor, kernel: str) -> dict[int, float]:
    """Median time of each number of splits over ``rounds`` rounds, one after the other in each."""
    stream, device = CudaStream(), pool.device
    properties = torch.cuda.get_device_properties(device)
    flush = cold_l2(stream, properties.multi_processor_count, L2_BYTES, device)
    q = torch.randn(shape.batch, shape.queries, shape.heads, shape.width, dtype=torch.bfloat16, device=device)
    pages = torch.randperm(shape.batch * shape.pages, device=device, dtype=torch.int32)
    table = pages.view(shape.batch, shape.pages)
    lengths = torch.full((shape.batch,), shape.context, dtype=torch.int32, device=device)
    taken: dict[int, list[float]] = {count: [] for count in splits}
    for count in [count for _ in range(rounds) for count in splits]:
        timing = time_call(
            lambda count=count: absorbed_decode(q, pool, table, lengths, 0.0722, kernel=kernel, splits=count),
            stream=stream,
            flush=flush,
        )
        taken[count].append(timing.median_us)
    return {count: statistics.median(values) for count, values in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prices", default="0,0.25,0.5,1", help="weights of the merge's bytes, comma-separated")
    parser.add_argument("--kernel", default="hopper", choices=list(KERNELS))
    parser.add_argument("--fp8", action="store_true", help="rows of fp8")
    parser.add_argument("--every", type=int, default=1, help="take every so many shapes")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--output", type=Path, help="JSON with every time")
    wanted = parser.parse_args()
    prices = [float(text) for text in wanted.prices.split(",")]
    pool = torch.randn(POOL_PAGES, PAGE, 576, dtype=torch.bfloat16, device="cuda")
    if wanted.fp8:
        pool = pool.to(torch.float8_e4m3fn)
    device = device_of(pool)
    base = Shape(batch=1, queries=1, heads=128, context=1024, cache_dtype="fp8" if wanted.fp8 else "bf16")
    grid = [
        replace(base, heads=heads, batch=batch, queries=queries, context=context)
        for heads, batch, queries, context in itertools.product(HEADS, BATCHES, QUERIES, CONTEXTS)
    ]
    rows = []
    for shape in [*grid, *(CROSSOVER if not wanted.fp8 else ())][:: wanted.every]:
        chosen = splits_by_price(shape, device, prices, wanted.kernel)
        if len(set(chosen.values())) == 1 or shape.batch * shape.pages > POOL_PAGES:
            continue
        found = times_us(shape, sorted(set(chosen.values())), wanted.rounds, pool, wanted.kernel)
        first = found[chosen[prices[0]]]
        rows.append({"shape": str(shape), "splits": chosen, "times_us": found})
        told = "  ".join(
            f"{price:g}: {chosen[price]:>3} splits {found[chosen[price]]:8.1f} us {found[chosen[price]] / first:.2f}"
            for price in prices
        )
        print(f"h={shape.heads} b={shape.batch} Q={shape.queries} S={shape.context}  {told}", flush=True)
    for price in prices:
        ratios = [row["times_us"][row["splits"][price]] / row["times_us"][row["splits"][prices[0]]] for row in rows]
        print(f"price {price:g}: median ratio {statistics.median(ratios):.3f}, {min(ratios):.2f} to {max(ratios):.2f}")
    if wanted.output:
        wanted.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
