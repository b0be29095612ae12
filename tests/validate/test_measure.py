"""The measuring loop with a fake device: what is kept when something goes wrong, and what is told."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from mla_calc.hardware.load import load_gpu
from mla_calc.models.load import load_model
from mla_calc.validate.case import Case
from mla_calc.validate.device import Opened
from mla_calc.validate.kernels.shape import Device
from mla_calc.validate.measure import (
    CellFailedError,
    DeviceLostError,
    Progress,
    _State,
    measure,
)
from mla_calc.validate.plan import Plan
from mla_calc.validate.record import (
    CTRL_C,
    EVERY_CELL,
    Check,
    Geometry,
    Machine,
    MeasuredCeilings,
    Row,
    Run,
    Skipped,
    Telemetry,
)
from mla_calc.validate.watchdog import Watchdog

CEILINGS = MeasuredCeilings(copy_bytes_per_s=4.2e12, gemm_flop_per_s={"bf16": 7e14})


def case(kernel: str = "one", context: int = 1024, **changes: Any) -> Case:
    fields: dict[str, Any] = {
        "scope": "attention",
        "dtype": "bf16",
        "cache": "bf16",
        "heads": 16,
        "batch": 1,
        "queries": 1,
        **changes,
    }
    return Case(kernel=kernel, context=context, **fields)


CASES = (
    case("one", 1024),
    case("two", 2048),
    case("naive", 1024, scope="naive"),
    case("one", 4096),
    case("two", 8192, scope="absorbed"),
)


def plan_of(cases: Sequence[Case] = CASES, budget_s: float = 100.0, visits: int = 1) -> Plan:
    skipped = (Skipped(kernel="one", case="a large one", reason="too little memory"),)
    return Plan(
        kind="quick",
        seed=5,
        cases=tuple(cases),
        skipped=skipped,
        pool_pages={"bf16": 128},
        estimate_s=1.0,
        budget_s=budget_s,
        visits=visits,
    )


@dataclass
class FakeBench:
    """Times each case as its context in ns; ``at`` holds what happens at the n-th case instead."""

    at: dict[int, Callable[[], None]] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    uncheckable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    log: list[str] = field(default_factory=list)
    timed: int = 0

    def ceilings(self) -> tuple[MeasuredCeilings, Sequence[str]]:
        self.log.append("ceilings")
        return CEILINGS, self.notes

    def sustained(self, ceilings: MeasuredCeilings) -> MeasuredCeilings:
        self.log.append("sustained")
        return replace(ceilings, sustained_gemm_flop_per_s={"bf16": 6e14})

    def check(self, kernel: str) -> Sequence[Check]:
        self.log.append(f"check {kernel}")
        if kernel in self.uncheckable:
            raise CellFailedError("CalledProcessError: no Python.h")
        if kernel in self.unchecked:
            return []
        good = Check(kernel=kernel, case="bf16 h=16", relative_error=2e-3, tolerance=3e-3, correct=True)
        bad = Check(
            kernel=kernel, case="bf16 Q=2", relative_error=0.5, tolerance=3e-3, correct=False, message="error 0.5"
        )
        return [good, bad if kernel in self.wrong else good]

    def time(self, wanted: Case) -> Row:
        self.log.append(str(wanted))
        self.timed += 1
        self.at.get(self.timed - 1, lambda: None)()
        return Row(
            kernel=wanted.kernel,
            scope=wanted.scope,
            dtype=wanted.dtype,
            cache=wanted.cache,
            heads=wanted.heads,
            batch=wanted.batch,
            queries=wanted.queries,
            context=wanted.context,
            time_us=wanted.context / 1000,
        )


def opened(notes: tuple[str, ...] = ()) -> Opened:
    machine = Machine(
        gpu="NVIDIA H200 SXM 141GB",
        device_name="NVIDIA H200",
        compute_capability="9.0",
        sms=132,
        memory_bytes=150_109_880_320,
        driver="580.1",
        cuda="13.0",
        torch="2.11.0",
        triton="3.6.0",
        python="3.12.3",
    )
    clocks = iter(("1200, 3201, 90.5, 31\n", "1980, 3201, 510, 60\n"))
    return Opened(
        machine=machine,
        device=Device(sms=132, capability=(9, 0), shared_bytes=232_448),
        free_bytes=140 << 30,
        index=0,
        uuid="GPU-1",
        smi=lambda _: next(clocks),
        notes=notes,
    )


def run_of(bench: FakeBench, plan: Plan | None = None, **options: Any) -> Run:
    notes = options.pop("notes", ())
    return measure(
        plan or plan_of(), load_gpu("h200"), load_model("dsv3"), opened=opened(notes), bench=bench, **options
    )


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_a_run_measures_ceilings_then_checks_then_cells() -> None:
    bench = FakeBench()
    run_of(bench)
    # naive paths are no kernels of ours: each cell checks its own attention
    assert bench.log == ["ceilings", "check one", "check two", *map(str, CASES), "sustained"]


def test_a_run_says_what_it_is() -> None:
    run = run_of(FakeBench(), notes=("a note of the device",))
    assert run.id.endswith("-h200")
    assert run.id[:8] == run.started[:10].replace("-", "")
    assert run.finished is not None
    sustained = replace(CEILINGS, sustained_gemm_flop_per_s={"bf16": 6e14})
    assert (run.plan, run.seed, run.ceilings) == ("quick", 5, sustained)
    assert run.geometry == Geometry(
        model="DeepSeek-V3", kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128
    )
    assert run.before == Telemetry(sm_mhz=1200, memory_mhz=3201, power_w=90.5, temperature_c=31)
    assert run.after == Telemetry(sm_mhz=1980, memory_mhz=3201, power_w=510.0, temperature_c=60)
    assert [(row.kernel, row.context, row.order) for row in run.rows] == [
        ("one", 1024, 0),
        ("two", 2048, 1),
        ("naive", 1024, 2),
        ("one", 4096, 3),
        ("two", 8192, 4),
    ]
    assert len(run.checks) == 4
    assert run.skipped == plan_of().skipped
    assert run.notes == ("a note of the device",)


@dataclass
class SlowSpells(FakeBench):
    """Takes so many times as long at the n-th timing."""

    slow: dict[int, float] = field(default_factory=dict)

    def time(self, wanted: Case) -> Row:
        row = super().time(wanted)
        return replace(row, time_us=row.time_us * self.slow.get(self.timed - 1, 1.0))


def test_of_two_passes_the_shorter_time_is_kept() -> None:
    """Slow at the second and third cell of the first pass, and at the first of the second: 5 cells, so 5 to 9."""
    bench = SlowSpells(slow={1: 1.5, 2: 2.0, 5: 3.0})
    run = run_of(bench, plan_of(visits=2))
    assert [row.time_us for row in run.rows] == [1.024, 2.048, 1.024, 4.096, 8.192]
    assert [row.order for row in run.rows] == [0, 6, 7, 3, 4]
    assert bench.log[3:] == [*map(str, CASES), *map(str, CASES), "sustained"]
    assert run.notes[-1].startswith("5 of 5 cells were timed again, one pass over all later, and were shorter in 2")


def test_a_second_pass_keeps_what_the_first_has() -> None:
    """A cell that fails in it keeps its time, Ctrl-C in it ends the run, and the budget ends the pass."""
    bench = SlowSpells(slow={1: 1.5}, at={6: raising(CellFailedError("no memory now"))})
    run = run_of(bench, plan_of(visits=2))
    assert run.rows[1].time_us == 1.5 * 2.048
    assert run.finished is not None
    stopped = run_of(FakeBench(at={7: raising(KeyboardInterrupt())}), plan_of(visits=2))
    assert (len(stopped.rows), stopped.finished) == (5, None)
    seconds = iter(range(1000))
    spent = run_of(FakeBench(), plan_of(visits=2, budget_s=20.0), clock=lambda: float(next(seconds)))
    assert len(spent.rows) == 5
    assert spent.notes[-1].startswith(("0 of 5", "1 of 5", "2 of 5", "3 of 5", "4 of 5"))
    assert not [item for item in spent.skipped if "was used up" in item.reason]


def test_a_cell_that_failed_is_not_timed_again() -> None:
    bench = FakeBench(at={1: raising(CellFailedError("no memory"))})
    run = run_of(bench, plan_of(visits=2))
    assert [row.context for row in run.rows] == [1024, 1024, 4096, 8192]
    assert bench.timed == 9


def test_one_kernel_alone_is_noted() -> None:
    assert "--kernel one" in run_of(FakeBench(), kernel="one").notes[0]


def test_a_kernel_whose_check_failed_is_not_timed_and_told() -> None:
    run = run_of(FakeBench(wrong=("two",)))
    assert [row.kernel for row in run.rows] == ["one", "naive", "one"]
    told = run.skipped[-1]
    assert told.kernel == "two"
    assert "1 of 2 checks failed (bf16 Q=2: error 0.5)" in told.reason
    assert [check.correct for check in run.checks] == [True, True, True, False]
    assert run.finished is not None


@pytest.mark.parametrize(
    ("bench", "said"),
    [
        (FakeBench(uncheckable=("two",)), "could not be made: CalledProcessError: no Python.h"),
        (FakeBench(unchecked=("two",)), "takes none of the cases"),
    ],
)
def test_a_kernel_that_was_not_checked_has_failed_and_is_not_timed(bench: FakeBench, said: str) -> None:
    run = run_of(bench)
    assert [row.kernel for row in run.rows] == ["one", "naive", "one"]
    [failed] = [check for check in run.checks if not check.correct]
    assert (failed.kernel, failed.relative_error) == ("two", None)
    assert said in (failed.message or "")
    told = run.skipped[-1]
    assert (told.kernel, told.case) == ("two", EVERY_CELL)
    assert said in told.reason


def test_a_run_in_which_no_kernel_could_be_checked_says_so_in_its_checks() -> None:
    run = run_of(FakeBench(uncheckable=("one", "two")))
    assert [row.kernel for row in run.rows] == ["naive"]
    assert [(check.kernel, check.correct) for check in run.checks] == [("one", False), ("two", False)]


def test_notes_about_the_ceilings_are_the_runs() -> None:
    run = run_of(FakeBench(notes=("No product of fp8 among the ceilings: RuntimeError: no",)), notes=("first",))
    assert run.notes == ("first", "No product of fp8 among the ceilings: RuntimeError: no")


def test_a_cell_without_memory_is_skipped_and_the_rest_goes_on() -> None:
    run = run_of(FakeBench(at={1: raising(CellFailedError("out of memory: tried to allocate 9 GiB"))}))
    assert [row.context for row in run.rows] == [1024, 1024, 4096, 8192]
    assert run.skipped[-1] == Skipped(kernel="two", case=str(CASES[1]), reason="out of memory: tried to allocate 9 GiB")
    assert run.finished is not None


@pytest.mark.parametrize("done", [0, 2, 4])
def test_ctrl_c_keeps_the_rows_until_then(done: int) -> None:
    run = run_of(FakeBench(at={done: raising(KeyboardInterrupt())}))
    assert len(run.rows) == done
    assert run.finished is None
    assert "Ctrl-C" in run.notes[-1]
    assert run.stopped == CTRL_C
    assert run.after is not None
    assert run.ceilings == CEILINGS


def test_ctrl_c_before_any_cell() -> None:
    bench = FakeBench()
    bench.ceilings = raising(KeyboardInterrupt())  # type: ignore[method-assign, assignment]
    run = run_of(bench)
    assert (run.rows, run.finished, run.ceilings) == ((), None, MeasuredCeilings())


def test_a_lost_device_ends_the_run_and_keeps_the_rows() -> None:
    bench = FakeBench(at={3: raising(DeviceLostError("CUDA error: an illegal memory access was encountered"))})
    run = run_of(bench)
    assert len(run.rows) == 3
    assert bench.timed == 4
    assert run.finished is None
    assert "illegal memory access" in run.notes[-1]
    assert run.stopped == "CUDA error: an illegal memory access was encountered"


class Pressed(Opened):
    """Ctrl-C is pressed once more while nvidia-smi is asked for the last time."""

    asked = 0

    def telemetry(self) -> Telemetry:
        Pressed.asked += 1
        if Pressed.asked > 1:
            raise KeyboardInterrupt
        return Telemetry()


@pytest.mark.parametrize("first", [True, False])
def test_ctrl_c_while_the_clocks_are_read_loses_nothing(first: bool) -> None:
    Pressed.asked = 0
    saved: list[Run] = []
    fields = {name: getattr(opened(), name) for name in Opened.__dataclass_fields__}
    bench = FakeBench(at={3: raising(KeyboardInterrupt())} if first else {})
    run = measure(
        plan_of(), load_gpu("h200"), load_model("dsv3"), opened=Pressed(**fields), bench=bench, checkpoint=saved.append
    )
    assert len(run.rows) == len(saved[-1].rows) == (3 if first else 5)
    assert (run.stopped, run.finished is None, run.after) == (CTRL_C if first else None, first, None)


def test_ctrl_c_while_the_rows_are_written_writes_them_again() -> None:
    saved: list[Run] = []

    def checkpoint(run: Run) -> None:
        saved.append(run)
        if len(saved) == 1:
            raise KeyboardInterrupt

    run = run_of(FakeBench(at={3: raising(KeyboardInterrupt())}), checkpoint=checkpoint)
    assert [len(kept.rows) for kept in saved] == [3, 3]
    assert run.stopped == CTRL_C


def test_a_bench_that_cannot_be_set_up_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from mla_calc.validate import bench as bench_module

    def refuses(*_: Any) -> None:
        raise CellFailedError("RuntimeError: CUDA error: out of memory")

    monkeypatch.setattr(bench_module, "CudaBench", refuses)
    run = measure(plan_of(), load_gpu("h200"), load_model("dsv3"), opened=opened())
    assert (run.rows, run.finished, run.stopped) == ((), None, "RuntimeError: CUDA error: out of memory")


def test_ceilings_that_cannot_be_measured_are_noted_and_the_cells_go_on() -> None:
    bench = FakeBench()
    bench.ceilings = raising(CellFailedError("out of memory"))  # type: ignore[method-assign, assignment]
    run = run_of(bench)
    assert len(run.rows) == 5
    assert run.notes == ("The ceilings could not be measured: out of memory",)


def test_a_defect_of_ours_is_not_swallowed() -> None:
    saved: list[Run] = []
    with pytest.raises(TypeError, match="ours"):
        run_of(FakeBench(at={2: raising(TypeError("ours"))}), checkpoint=saved.append)
    assert [len(run.rows) for run in saved] == [2]


def test_a_record_that_cannot_be_written_hides_no_defect() -> None:
    def full(_: Run) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(TypeError, match="ours"):
        run_of(FakeBench(at={2: raising(TypeError("ours"))}), checkpoint=full)


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> Callable[[], None]:
        def wait() -> None:
            self.now += seconds

        return wait


def test_rows_are_saved_every_five_seconds() -> None:
    clock = Clock()
    saved: list[int] = []
    bench = FakeBench(at=dict.fromkeys(range(5), clock.passes(3.0)))
    run_of(bench, clock=clock, checkpoint=lambda run: saved.append(len(run.rows)))
    assert saved == [2, 4, 5]  # after 6 and 12 seconds, and in the end


def test_what_the_time_leaves_out_is_told() -> None:
    clock = Clock()
    bench = FakeBench(at=dict.fromkeys(range(5), clock.passes(30.0)))
    run = run_of(bench, plan_of(budget_s=50.0), clock=clock)
    assert len(run.rows) == 2
    left = {item.kernel: item for item in run.skipped[1:]}
    assert {name: item.case for name, item in left.items()} == {"naive": "1 cells", "one": "1 cells", "two": "1 cells"}
    assert "50 s" in left["one"].reason
    assert run.finished is not None


def test_progress_names_what_runs() -> None:
    seen: list[Progress] = []
    run_of(FakeBench(), progress=seen.append)
    assert [step.stage for step in seen] == ["ceilings"] * 2 + ["checks"] * 3 + ["cells"] * 6 + ["sustained"] * 2
    cells = [step for step in seen if step.stage == "cells"]
    assert [step.done for step in cells] == [0, 1, 2, 3, 4, 5]
    assert {step.total for step in cells} == {5}
    assert [step.running for step in cells] == [*map(str, CASES), ""]


def test_the_watchdog_saves_the_rows_and_ends_what_hangs(capsys: pytest.CaptureFixture[str]) -> None:
    saved: list[Run] = []
    codes: list[int] = []
    ended = threading.Event()

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    state = _State(run_of(FakeBench()), saved.append, lambda: 0.0, 100.0)
    with Watchdog(0.05, state.hung, end) as watchdog, watchdog.over("hopper h=16"):
        assert ended.wait(10)
    assert codes == [2]
    assert len(saved[0].rows) == 5
    assert "hopper h=16 did not end within 0.05 s" in saved[0].notes[-1]
    assert saved[0].stopped
    assert capsys.readouterr().err.startswith("mla-calc: hopper h=16 did not end within 0.05 s")


def test_the_watchdog_lets_work_be_that_ends() -> None:
    codes: list[int] = []
    state = _State(run_of(FakeBench()), None, lambda: 0.0, 100.0)
    with Watchdog(5.0, state.hung, codes.append) as watchdog:
        for _ in range(3):
            with watchdog.over("short"):
                pass
    assert codes == []


HANGS = """
import sys, time
from tests.validate.test_measure import FakeBench, run_of

run_of(
    FakeBench(at={2: lambda: time.sleep(600)}),
    checkpoint=lambda run: print(len(run.rows), "rows", flush=True),
    hang_s=1.0,
)
"""


def test_a_run_that_hangs_exits_with_2_and_its_rows() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stdout == "2 rows\n"
    assert "a kernel hangs" in done.stderr
    assert "Traceback" not in done.stderr


INTERPRETED = """
import json
import time
from dataclasses import replace
import torch
from mla_calc.models.load import load_model
from mla_calc.validate.bench import CudaBench
from mla_calc.validate.kernels.shape import Device
from mla_calc.validate.case import Case
from mla_calc.validate.plan import Plan
from mla_calc.validate.timing import NotCapturableError
from tests.validate.test_measure import opened


class Stream:
    graphs = True

    def capture(self, call):
        if not self.graphs:
            raise NotCapturableError("a wait")
        return call

    def mark(self):
        return time.perf_counter()

    def elapsed_us(self, start, end):
        return (end - start) * 1e6 + 5e4

    def wait(self):
        pass


def case(scope, kernel, cache="bf16", queries=3, batch=1, context=70):
    return Case(
        scope=scope, kernel=kernel, dtype="fp16", cache=cache, heads=2, batch=batch, queries=queries, context=context
    )


cases = (
    case("attention", "small", batch=2),
    case("attention", "small", cache="fp8", queries=1),
    case("absorbed", "small"),
    case("naive", "naive"),
    case("naive", "naive_in_place", batch=2),
    case("absorbed", "small", context=60),
    case("absorbed", "small", queries=2),
)
model = load_model("dsv3")
widths = {"heads": 2, "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16}
model = replace(model, mla=replace(model.mla, **widths))
plan = Plan(
    kind="quick", seed=1, cases=cases, skipped=(), pool_pages={"fp16": 9, "fp8": 5}, estimate_s=1, budget_s=100
)
device = Device(sms=4, capability=(0, 0), shared_bytes=0, interpreted=True)
bench = CudaBench(
    plan, model, replace(opened(), device=device), device=torch.device("cpu"), stream=Stream(), flush=lambda: None
)
rows = [bench.time(case) for case in cases[:5]]
tables = bench._cached(cases[0])[1].flatten().tolist()
pool = bench._pool("fp16").float()
paths = [bench._path_check(case) for case in bench._path_classes("small")]
bench._stream.graphs = False
launched = bench.time(cases[2]), bench.time(cases[0])
print(json.dumps({
    "errors": [row.relative_error for row in rows],
    "dropped": [dict(row.dropped) for row in rows],
    "uncaptured": [row.uncaptured for row in rows],
    "launched": [row.uncaptured for row in launched],
    "paths": [[path.kernel, path.case, path.correct, path.relative_error] for path in paths],
    "classes": [str(case) for case in bench._path_classes("small")],
    "kernels": [row.kernel for row in rows],
    "scopes": [row.scope for row in rows],
    "parts": [sorted(row.parts_us) for row in rows],
    "repeats": [row.repeats for row in rows],
    "splits": [row.splits for row in rows],
    "detail": [row.detail for row in rows],
    "pages": tables,
    "finite": bool(torch.isfinite(pool).all()),
    "spread": float(pool.std()),
}))
"""


def test_every_kind_of_case_runs_on_the_tensors_of_the_bench() -> None:
    import json
    import os

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(INTERPRETED)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "TRITON_INTERPRET": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["kernels"] == ["small", "small", "small", "naive", "naive_in_place"]
    assert found["scopes"] == ["attention", "attention", "absorbed", "naive", "naive"]
    assert found["parts"][:3] == [[], [], ["attention", "q_fold", "v_up"]]
    for parts in found["parts"][3:]:
        assert {"up_proj", "assemble", "attention"} <= set(parts)
    assert set(found["repeats"]) == {7}  # none is under 50 ms by this clock
    assert all(splits >= 1 for splits in found["splits"][:3])
    assert found["splits"][3:] == [None, None]
    assert all(found["detail"][3:])  # which attention was the fastest
    assert found["detail"][:3] == found["errors"][:3] == found["uncaptured"][:3] == [None] * 3
    assert all(0 < error < 1e-2 for error in found["errors"][3:])
    assert found["dropped"] == [{}] * 5
    why = "no CUDA graph (a wait): launches are in the times"
    assert found["launched"] == [f"{why}; q_fold: {why}; attention: {why}; v_up: {why}", why]
    # of each count of queries the shortest
    assert sorted(found["classes"]) == [
        "absorbed small fp16 h=2 b=1 Q=2 S=70",
        "absorbed small fp16 h=2 b=1 Q=3 S=60",
    ]
    assert sorted(found["paths"])[0][:3] == ["absorbed path", "small fp16 h=2 b=1 Q=2 S=70", True]
    assert all(correct and 0 < error < 1e-2 for _, _, correct, error in found["paths"])
    assert len(found["pages"]) == len(set(found["pages"])) == 4  # 2 requests of 70 rows
    assert found["pages"] != sorted(found["pages"])
    assert found["finite"]
    assert 0.95 < found["spread"] < 1.05


@pytest.mark.gpu
def test_a_short_run_on_this_gpu_is_whole_and_above_its_bounds() -> None:
    from mla_calc.costs.paths import path_bound_s
    from mla_calc.hardware.load import detected_gpu
    from mla_calc.hardware.roofline import datasheet_ceilings
    from mla_calc.validate.device import open_device
    from mla_calc.validate.kernels import KERNELS, pick
    from mla_calc.validate.plan import make_plan
    from mla_calc.validate.timed import row_bytes_of, timed_kernels, work_of

    gpu, model = detected_gpu(), load_model("dsv3")
    assert model.mla is not None
    found = open_device(gpu, force=False)
    options: dict[str, Any] = {"model": model, "gpu": gpu, "device": found.device, "free_bytes": 16 << 30, "seed": 1}
    plan = make_plan("quick", kernels=KERNELS, pick=pick, **options)
    kinds = {(wanted.scope, wanted.kernel, wanted.dtype, wanted.cache): wanted for wanted in plan.cases}
    few = replace(plan, cases=tuple(kinds.values()))
    run = measure(few, gpu, model, opened=found)
    assert run.finished is not None
    assert [check for check in run.checks if not check.correct] == []
    assert len(run.rows) == len(few.cases)
    assert run.ceilings.launch_s is not None
    for wanted, row in zip(few.cases, run.rows, strict=True):
        rank = replace(model.mla, heads=wanted.heads)
        timed = timed_kernels(wanted.scope, rank, work_of(wanted, row_bytes_of(wanted.cache, rank)))
        assert row.time_us * 1e-6 > path_bound_s(timed, datasheet_ceilings(gpu, wanted.dtype))
        assert row.uncaptured is None
        assert (row.relative_error is not None) is (wanted.scope == "naive")
