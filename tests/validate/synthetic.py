"""A SYNTHETIC run for the tests of figures and page: no number here was measured on any GPU.

Times follow t0 + max(FLOP/(ec peak), bytes/(em bandwidth)) with a deterministic wobble, so that the figures have
points where a real run has them. Counts are worked out here, by the formulas of docs/cost-model.md.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from mla_calc.validate.compare import Comparison, Prediction, compare
from mla_calc.validate.record import Check, Geometry, Machine, MeasuredCeilings, Row, Run, Skipped, Telemetry
from mla_calc.validate.recorded import Fill, Recorded, recording_of_run

PEAK, BANDWIDTH = 989.4e12, 4.8e12
HEADS = (16, 32, 64, 128)


def wobble(*key: int) -> float:
    """A factor of 0.95 to 1.05 that looks random and is the same everywhere."""
    seed = 0
    for value in key:
        seed = (seed * 1_103_515_245 + value * 12_345 + 7) % 2_147_483_648
    return 0.95 + 0.1 * (seed % 1000) / 999


RANK, ROPE, NOPE, VALUE = 512, 64, 128, 128
FIRST_LAUNCH_US = {
    "hopper": 13.0,
    "tile64": 15.0,
    "small": 11.0,
    "absorbed": 21.0,
    "naive": 24.0,
    "naive_in_place": 19.0,
}
COMPUTE = {"hopper": 0.66, "tile64": 0.42, "small": 0.16, "absorbed": 0.62, "naive": 0.55, "naive_in_place": 0.6}
MEMORY = {"hopper": 0.86, "tile64": 0.7, "small": 0.88, "absorbed": 0.84, "naive": 0.5, "naive_in_place": 0.68}


def pairs(queries: int, context: int) -> int:
    """Causal pairs of one request: the j-th of Q new tokens sees the prefix and j tokens."""
    return sum(context - queries + token for token in range(1, queries + 1))


def counts(row: Row) -> list[tuple[int, int]]:
    """FLOP and bytes of each kernel that a row times."""
    heads, tokens, keys = row.heads, row.batch * row.queries, row.batch * row.context
    met = row.batch * pairs(row.queries, row.context)
    row_bytes = {"bf16": 1152, "fp8": 576}[row.cache]
    attention = (2 * met * heads * (2 * RANK + ROPE), keys * row_bytes + 2 * tokens * heads * (2 * RANK + ROPE))
    if row.scope == "attention":
        return [attention]
    if row.scope == "absorbed":
        fold = (2 * tokens * heads * NOPE * RANK, 2 * (heads * NOPE * RANK + tokens * heads * (NOPE + RANK)))
        up = (2 * tokens * heads * RANK * VALUE, 2 * (heads * RANK * VALUE + tokens * heads * (RANK + VALUE)))
        return [fold, attention, up]
    expanded = 2 * keys * heads * (NOPE + ROPE + VALUE)
    weights = 2 * RANK * heads * (NOPE + VALUE)
    projection = (2 * keys * RANK * heads * (NOPE + VALUE), keys * row_bytes + weights + expanded)
    core = 2 * met * heads * (NOPE + ROPE + VALUE)
    return [projection, (core, expanded + 2 * tokens * heads * (NOPE + ROPE + VALUE))]


def bound_us(row: Row, compute: float = 1.0, memory: float = 1.0) -> float:
    """Sum over a row's kernels of what the ceilings allow, each ceiling times its fraction, us."""
    return 1e6 * sum(max(flop / (compute * PEAK), size / (memory * BANDWIDTH)) for flop, size in counts(row))


def made_up_estimate(item: Recorded) -> Prediction:
    """What the made-up time would be without its wobble; one row of three was held out."""
    name = "absorbed" if item.row.scope == "absorbed" else item.row.kernel
    constant = FIRST_LAUNCH_US[name]
    estimate = constant + bound_us(item.row, COMPUTE[name], MEMORY[name])
    held_out = (item.row.context // 1024 + item.row.batch) % 3 == 0
    memory = sum(size / (MEMORY[name] * BANDWIDTH) for _, size in counts(item.row))
    compute = sum(flop / (COMPUTE[name] * PEAK) for flop, _ in counts(item.row))
    return Prediction(
        time_s=estimate * 1e-6,
        constant_s=constant * 1e-6,
        memory_s=memory,
        compute_s=compute,
        kernel=item.row.kernel,
        held_out=held_out,
    )


def made_up(kernel: str, scope: str, heads: int, batch: int, queries: int, context: int, cache: str = "bf16") -> Row:
    """One synthetic row."""
    name = "absorbed" if scope == "absorbed" else kernel
    row = Row(
        kernel=kernel, scope=scope, dtype="bf16", cache=cache, heads=heads, batch=batch, queries=queries,
        context=context, time_us=1.0, repeats=50,
    )  # fmt: skip
    time_us = FIRST_LAUNCH_US[name] + bound_us(row, COMPUTE[name], MEMORY[name])
    time_us *= wobble(heads, batch, queries, context, len(kernel))
    return replace(row, time_us=time_us, p10_us=time_us * 0.99, p90_us=time_us * 1.02)


def synthetic_rows(
    batches: tuple[int, ...] = (1, 8, 32, 128),
    contexts: tuple[int, ...] = (1024, 4096, 16_384, 65_536),
    path_heads: tuple[int, ...] = (16, 128),
) -> tuple[Row, ...]:
    """Decode by three kernels, some fp8 rows, and both paths on either side of their crossover."""
    grid = list(itertools.product(HEADS, batches, contexts))
    decode = [made_up("hopper", "attention", heads, batch, 1, context) for heads, batch, context in grid]
    decode += [made_up("small", "attention", heads, batch, 1, context) for heads, batch, context in grid if heads == 16]
    decode += [made_up("tile64", "attention", heads, batch, 1, context) for heads, batch, context in grid if heads > 32]
    decode += [made_up("hopper", "attention", 128, 32, queries, 4096) for queries in (2, 4)]
    decode += [made_up("tile64", "attention", heads, 32, 1, 16_384, cache="fp8") for heads in HEADS]
    paths = [
        made_up(kernel, scope, heads, 1, queries, context)
        for heads, context in itertools.product(path_heads, (1024, 4096, 16_384, 65_536))
        for queries in (1, 16, 32, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024)
        for kernel, scope in (("hopper", "absorbed"), ("naive", "naive"), ("naive_in_place", "naive"))
    ]
    return (*decode, *paths)


def synthetic_run(**axes: tuple[int, ...]) -> Run:
    """The run that the rows of :func:`synthetic_rows` belong to."""
    return Run(
        id="20261130T013000Z-synthetic", started="2026-11-30T01:30:00Z", finished="2026-11-30T01:36:12Z",
        version="0.0", plan="full", seed=4,
        machine=Machine(
            gpu="NVIDIA H200 SXM 141GB", device_name="SYNTHETIC H200", compute_capability="9.0", sms=132,
            memory_bytes=150_754_820_096, l2_bytes=62_914_560, driver="580.159", cuda="13.0", torch="2.11.0",
            triton="3.6.0", python="3.12.3",
        ),
        geometry=Geometry(
            model="DeepSeek-V3", kv_lora_rank=RANK, qk_rope_head_dim=ROPE, qk_nope_head_dim=NOPE, v_head_dim=VALUE
        ),
        ceilings=MeasuredCeilings(
            copy_bytes_per_s=4.28e12, read_bytes_per_s=4.51e12, gemm_flop_per_s={"bf16": 7.9e14, "fp8": 1.42e15},
            gemm_shapes={"bf16": (8192, 8192, 8192), "fp8": (16_384, 8192, 8192)}, launch_s=2.1e-6,
        ),
        before=Telemetry(sm_mhz=1980, memory_mhz=3201, power_w=118.4, temperature_c=34),
        after=Telemetry(sm_mhz=1755, memory_mhz=3201, power_w=688.0, temperature_c=61),
        checks=(
            Check(kernel="hopper", case="bf16 h=16 Q=2 ragged", relative_error=1.9e-3, tolerance=3e-3, correct=True),
            Check(kernel="hopper", case="bf16 h=128 Q=1 edge", relative_error=1.8e-3, tolerance=3e-3, correct=True),
            Check(kernel="tile64", case="fp16 h=64 Q=1 one token", relative_error=2.2e-4, tolerance=1e-3, correct=True),
            Check(kernel="small", case="bf16 h=16 Q=4 ragged", relative_error=2e-3, tolerance=3e-3, correct=True),
        ),
        rows=synthetic_rows(**axes),
        skipped=(Skipped(kernel="naive", case="h=128 b=128 S=65536", reason="needs 640 GiB, 139 GiB are free"),),
        notes=("SYNTHETIC: made up for tests; nothing here was measured.",),
    )  # fmt: skip


def synthetic_comparison(run: Run) -> Comparison:
    """``run`` compared as a real one is, with the made-up estimates."""
    return compare(recording_of_run(run, "synthetic", Fill(force=True)), made_up_estimate)
