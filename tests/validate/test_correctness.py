"""The checks before timing: a right kernel passes, and every planted bug is found and named.

The kernels here are the float64 reference, right or spoilt; those of the package run in the interpreter at the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
import torch

from mla_calc.validate import check_cases as cases_module
from mla_calc.validate import correctness
from mla_calc.validate.check_cases import Case, draw_case, gpu_cases, interpreter_cases, shape_cases, size_cases
from mla_calc.validate.correctness import check_cases, path_check, shape_of
from mla_calc.validate.kernels.shape import PAGE, Device, Shape
from mla_calc.validate.record import Check, Geometry
from mla_calc.validate.references import absorbed_reference

GEOMETRY = Geometry(model="small", kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=32, v_head_dim=32)
WIDE = replace(GEOMETRY, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)
DEVICE = Device(sms=132, capability=(9, 0), shared_bytes=232_448)
Tensor = torch.Tensor


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """The tensors are small: threads of several test processes would mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def checks(
    kernel: Callable[..., Tensor | None], cases: Sequence[Case] | None = None, geometry: Geometry = GEOMETRY
) -> list[Check]:
    """The checks of one kernel given as a function of (q, cache, table, lengths, scale, and names)."""

    def decode(*tensors: Tensor, out: Tensor, max_length: int, kernel: str, **named: object) -> Tensor:
        assert kernel == "fake"
        assert max_length == int(tensors[3].max())
        found = function(*tensors, **named)
        return out if found is None else out.copy_(found)

    function = kernel
    return check_cases(
        ["fake"],
        shape_cases() if cases is None else cases,
        DEVICE,
        decode=decode,
        refusal=lambda *_: None,
        torch_device="cpu",
        seed=5,
        geometry=geometry,
    )


def right(
    q: Tensor,
    cache: Tensor,
    table: Tensor,
    lengths: Tensor,
    scale: float,
    *,
    kv_lora_rank: int,
    cache_scale: float,
    splits: int | None = None,  # noqa: ARG001
) -> Tensor:
    return absorbed_reference(q, cache, table, lengths, scale, kv_lora_rank=kv_lora_rank, cache_scale=cache_scale)


def rounded(
    q: Tensor,
    cache: Tensor,
    table: Tensor,
    lengths: Tensor,
    scale: float,
    *,
    kv_lora_rank: int,
    cache_scale: float,
    splits: int | None,  # noqa: ARG001
) -> Tensor:
    """As a kernel computes: products of the dtype's operands in float32, weights rounded to the dtype before theirs."""
    out = torch.zeros(*q.shape[:3], kv_lora_rank)
    for request, length in enumerate(lengths.tolist()):
        rows = cache[table[request, : -(-length // PAGE)].long()].to(q.dtype).flatten(0, 1)[:length].float()
        for i in range(q.shape[1]):
            seen = rows[: max(0, length - q.shape[1] + i + 1)]
            if len(seen):
                scores = q[request, i].float() @ seen.T * scale * cache_scale
                weights = (scores - scores.amax(-1, keepdim=True)).exp()
                latent = weights.to(q.dtype).float() @ seen[:, :kv_lora_rank]
                out[request, i] = latent / weights.sum(-1, keepdim=True) * cache_scale
    return out


def wrong_scale(q: Tensor, cache: Tensor, table: Tensor, lengths: Tensor, scale: float, **named: object) -> Tensor:
    del scale
    return right(q, cache, table, lengths, q.shape[-1] ** -0.5, **named)  # type: ignore[arg-type]


def no_causal_mask(q: Tensor, *rest: Tensor, **named: object) -> Tensor:
    alone = right(q.flatten(1, 2).unsqueeze(1), *rest, **named)  # type: ignore[arg-type]
    return alone.view(*q.shape[:3], -1)


def one_key_too_few(q: Tensor, cache: Tensor, table: Tensor, lengths: Tensor, scale: float, **named: object) -> Tensor:
    return right(q, cache, table, (lengths - 1).clamp(min=0), scale, **named)  # type: ignore[arg-type]


def unmasked_tail(q: Tensor, cache: Tensor, table: Tensor, lengths: Tensor, scale: float, **named: object) -> Tensor:
    # to the end of the last page; the queries stay where they are only for Q = 1
    return right(q, cache, table, -(-lengths // PAGE) * PAGE, scale, **named)  # type: ignore[arg-type]


def tail_times_zero(q: Tensor, *rest: Tensor, **named: object) -> Tensor:
    """Masked scores, but weights of zero that meet the NaN of the rows that no request owns."""
    cache, table, lengths = rest[0], rest[1], rest[2]
    out = right(q, *rest, **named)  # type: ignore[arg-type]
    for request, length in enumerate(lengths.tolist()):
        last = table[request, max(0, length - 1) // PAGE]
        out[request] += 0 * cache[last].double().sum()
    return out


def pages_in_order(q: Tensor, cache: Tensor, table: Tensor, lengths: Tensor, scale: float, **named: object) -> Tensor:
    flat = torch.arange(table.numel()).view(table.shape) % len(cache)
    return right(q, cache, flat, lengths, scale, **named)  # type: ignore[arg-type]


def lost_cache_scale(*tensors: Tensor, cache_scale: float, **named: object) -> Tensor:
    del cache_scale
    return right(*tensors, cache_scale=1.0, **named)  # type: ignore[arg-type]


def scale_of_scores_alone(*tensors: Tensor, cache_scale: float, **named: object) -> Tensor:
    return right(*tensors, cache_scale=cache_scale, **named) / cache_scale  # type: ignore[arg-type]


def unwritten(*_: object, **__: object) -> None:
    return None


def unwritten_head(q: Tensor, *rest: Tensor, **named: object) -> Tensor:
    out = right(q, *rest, **named)  # type: ignore[arg-type]
    out[-1, -1, -1] = float("nan")
    return out


def swapped_heads(q: Tensor, *rest: Tensor, **named: object) -> Tensor:
    out = right(q, *rest, **named)  # type: ignore[arg-type]
    return torch.cat((out[:, :, 1:2], out[:, :, :1], out[:, :, 2:]), dim=2)


def split_lost(
    q: Tensor, cache: Tensor, table: Tensor, lengths: Tensor, scale: float, *, splits: int | None, **named: object
) -> Tensor:
    # the last page is lost where there are more pieces than one
    short = torch.where(lengths > PAGE, (lengths - 1) // PAGE * PAGE, lengths) if splits and splits > 1 else lengths
    return right(q, cache, table, short, scale, **named)  # type: ignore[arg-type]


def nan_without_keys(q: Tensor, cache: Tensor, table: Tensor, lengths: Tensor, scale: float, **named: object) -> Tensor:
    out = right(q, cache, table, lengths, scale, **named)  # type: ignore[arg-type]
    return out.masked_fill((lengths == 0)[:, None, None, None], float("nan"))


def many(case: Case) -> bool:
    return case.queries > 1


BUGS: dict[Callable[..., Tensor | None], Callable[[Case], bool]] = {
    wrong_scale: lambda _: True,
    no_causal_mask: many,
    one_key_too_few: lambda _: True,
    unmasked_tail: lambda _: True,
    tail_times_zero: lambda _: True,
    pages_in_order: lambda _: True,
    lost_cache_scale: lambda case: case.cache_dtype == "fp8",
    scale_of_scores_alone: lambda case: case.cache_dtype == "fp8",
    unwritten: lambda _: True,
    unwritten_head: lambda _: True,
    swapped_heads: lambda _: True,
    split_lost: lambda case: case.splits is not None and case.splits > 1,
    nan_without_keys: lambda case: 0 in case.lengths,
}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_fails_each_case_that_has_it_and_no_other(bug: Callable[..., Tensor | None]) -> None:
    hit = BUGS[bug]
    found = checks(bug)
    expected = {case.label: not hit(case) for case in shape_cases()}
    assert {check.case: check.correct for check in found} == expected
    assert not all(expected.values())
    assert all(check.message for check in found if not check.correct)


@pytest.mark.parametrize("geometry", [GEOMETRY, WIDE], ids=["small", "wide"])
@pytest.mark.parametrize("kernel", [right, rounded])
def test_a_right_kernel_passes(kernel: Callable[..., Tensor], geometry: Geometry) -> None:
    found = checks(kernel, geometry=geometry)
    assert [check.case for check in found if not check.correct] == []
    assert len(found) == len({check.case for check in found}) == len(shape_cases())
    for check in found:
        assert check.relative_error is not None
        assert 0 < check.relative_error < check.tolerance  # outputs are rounded: never exact
        assert check.message is None


def test_the_tolerances() -> None:
    # of the issue: 3e-3 in bf16; an fp8 cache has the dtype of the products
    found = checks(right, [*shape_cases(), *interpreter_cases()])
    assert {(check.case.split()[0], check.tolerance) for check in found} == {
        ("bf16", 3e-3),
        ("fp16", 1e-3),
        ("fp32", 1e-5),
    }


@pytest.mark.parametrize(("excess", "correct"), [(0.9, True), (1.2, False)])
def test_an_error_on_either_side_of_the_tolerance(excess: float, correct: bool) -> None:
    def off(*tensors: Tensor, **named: object) -> Tensor:
        out = right(*tensors, **named)  # type: ignore[arg-type]
        out[1] *= 1 + excess * 1e-5  # one request of two
        return out

    [check] = checks(off, [Case(name="ragged", heads=4, lengths=(65, 3), dtype="fp32", cache_dtype="fp32")])
    assert check.correct is correct
    assert check.relative_error == pytest.approx(excess * 1e-5, rel=0.05)
    assert (check.message is None) is correct


def test_a_kernel_that_raises_is_a_failed_check_and_the_others_go_on() -> None:
    def raising(*tensors: Tensor, splits: int | None, **named: object) -> Tensor:
        if splits == 16:
            raise RuntimeError("Triton Error [CUDA]: out of resource\nand a long trace")
        return right(*tensors, **named)  # type: ignore[arg-type]

    found = checks(raising)
    [failed] = [check for check in found if not check.correct]
    assert "splits=16" in failed.case
    assert failed.message == "RuntimeError: Triton Error [CUDA]: out of resource"
    assert failed.relative_error is None


def test_ctrl_c_passes_through() -> None:
    def stopped(*_: object, **__: object) -> Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checks(stopped)


def test_what_a_kernel_refuses_is_not_checked() -> None:
    def refusal(name: str, shape: Shape, device: Device) -> str | None:
        assert device is DEVICE
        return "bf16 and wide alone" if name == "picky" and (shape.dtype != "bf16" or shape.heads < 64) else None

    found = check_cases(
        ["picky", "any"],
        shape_cases(),
        DEVICE,
        decode=lambda *_, out, **__: out,
        refusal=refusal,
        torch_device="cpu",
        seed=0,
        geometry=GEOMETRY,
    )
    picky = [check for check in found if check.kernel == "picky"]
    assert len(picky) == sum(case.dtype == "bf16" and case.heads >= 64 for case in shape_cases())
    assert len(found) - len(picky) == len(shape_cases())


@pytest.mark.parametrize("cases", [gpu_cases, interpreter_cases])
def test_what_the_cases_span(cases: Callable[[], tuple[Case, ...]]) -> None:
    all_cases = cases()
    lengths = {length for case in all_cases for length in case.lengths}
    assert {0, 1, PAGE - 1, PAGE, PAGE + 1} <= lengths
    assert {1, 2, 4} <= {case.queries for case in all_cases}
    assert any(case.queries * case.heads > PAGE for case in all_cases)
    assert any(case.heads & (case.heads - 1) for case in all_cases)  # no power of two
    assert {1, None} < {case.splits for case in all_cases}
    assert {"fp8"} <= {case.cache_dtype for case in all_cases}
    assert all(case.splits is None or case.splits <= -(-max(case.lengths) // PAGE) for case in all_cases)
    assert any(0 < length < case.queries for case in all_cases for length in case.lengths)
    assert any(case.no_pages for case in all_cases)


def test_the_sizes_are_those_that_are_timed() -> None:
    # grids.py: 65,536 keys, 128 requests, 1,024 queries, 131,072 pages of 64 rows of 576 values
    sizes = size_cases()
    assert max(length for case in sizes for length in case.lengths) == 65_536
    assert {case.cache_dtype for case in sizes if max(case.lengths) > 65_000 and case.splits is None} == {"bf16", "fp8"}
    assert max(case.splits or 0 for case in sizes) == 128
    crowds = [case.lengths for case in sizes if len(case.lengths) == 128]
    assert crowds
    assert all(len(set(lengths)) > 100 for lengths in crowds)
    assert {case.queries for case in sizes if case.queries >= 1000} == {1000, 1024}
    assert any(0 < length < case.queries for case in sizes if case.queries >= 1000 for length in case.lengths)
    assert [case.name for case in sizes if case.far]
    assert cases_module.FAR_VALUES == 2**31


@pytest.mark.parametrize("case", [case for case in size_cases() if not case.far], ids=lambda case: case.label)
def test_a_right_kernel_passes_the_sizes(case: Case) -> None:
    [check] = checks(right, [replace(case, heads=2)])
    assert check.correct, check.message


def wrapped(q: Tensor, cache: Tensor, table: Tensor, *rest: Tensor, **named: object) -> Tensor:
    # what 32 bits make of a page behind 2^31 values: another one
    first = len(cache) // 2
    return right(q, cache, torch.where(table >= first, table - first, table), *rest, **named)  # type: ignore[arg-type]


def test_pages_behind_the_others_are_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    # small here: 40 pages of NaN before the requests' own
    monkeypatch.setattr(cases_module, "FAR_VALUES", 40 * PAGE * 80)
    [case] = [case for case in size_cases() if case.far]
    draw = draw_case(case, GEOMETRY, 1, "cpu")
    assert draw.cache[:40].isnan().all()
    assert int(draw.block_table.min()) >= 40
    assert len(draw.cache) > 40 + 11 + 2  # 700 and 65 rows
    [good], [bad] = checks(right, [case]), checks(wrapped, [case])
    assert good.correct
    assert not bad.correct


def reads_unused_entries(
    q: Tensor, cache: Tensor, table: Tensor, lengths: Tensor, *rest: Tensor, **named: object
) -> Tensor:
    cache.view(torch.uint8)[table.long()]  # prefetched, and not used: harmless where an entry names some page
    return right(q, cache, table, lengths, *rest, **named)  # type: ignore[arg-type]


def test_an_entry_that_is_no_page_is_met_in_its_own_cases_alone() -> None:
    found = {check.case: check for check in checks(reads_unused_entries)}
    expected = {case.label: not case.no_pages for case in shape_cases()}
    assert {case: check.correct for case, check in found.items()} == expected
    assert not all(expected.values())


def test_a_cache_too_large_for_the_memory_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Case] = []
    monkeypatch.setattr(correctness, "_own_checks", lambda _, cases, *__, **___: seen.extend(cases))
    for free, far in ((17 << 30, True), (15 << 30, False)):
        seen.clear()
        correctness.run_checks([], DEVICE, torch_device="cpu", seed=0, geometry=WIDE, free_bytes=free)
        assert any(case.far for case in seen) is far
        assert len(seen) >= len(gpu_cases()) - 1


@pytest.mark.parametrize(
    ("error", "correct", "said"),
    [(4e-3, True, None), (0.01, True, None), (0.011, False, "relative error 1.10e-02"), (float("nan"), False, "nan")],
)
def test_a_path_against_float64(error: float, correct: bool, said: str | None) -> None:
    # 1e-2: keys, values and the folded query are rounded on the way
    check = path_check("hopper bf16 h=16 b=1 Q=4 S=1024", lambda: error)
    assert (check.kernel, check.correct, check.tolerance) == ("absorbed path", correct, 1e-2)
    assert check.relative_error == (None if error != error else error)
    assert (check.message is None) is (said is None)
    assert said is None or said in (check.message or "")


def test_a_path_that_raises_is_a_failed_check() -> None:
    def fails() -> float:
        raise RuntimeError("no kernel image\nand more")

    check = path_check("small", fails)
    assert (check.correct, check.relative_error, check.message) == (False, None, "RuntimeError: no kernel image")


def test_what_is_drawn() -> None:
    case = Case(name="ragged", heads=3, queries=2, lengths=(1, 65, 0, 128))
    draw = draw_case(case, GEOMETRY, 7, "cpu")
    assert draw.lengths.tolist() == [1, 65, 0, 128]
    owned = torch.zeros(draw.cache.shape[:2], dtype=torch.bool)
    for request, length in enumerate(draw.lengths.tolist()):
        for row in range(length):
            at = (int(draw.block_table[request, row // PAGE]), row % PAGE)
            assert not owned[at]
            owned[at] = True
    assert torch.isfinite(draw.cache[owned]).all()
    assert draw.cache[~owned].isnan().all()
    # what the table names past a request is a page of NaN, and the pages that it owns are scattered
    assert draw.cache[draw.block_table[:, -1].long()].isnan().all()
    pages = [int(draw.block_table[r, i]) for r, i in ((0, 0), (1, 0), (1, 1), (3, 0), (3, 1))]
    assert pages != sorted(pages)
    assert draw.scale == (32 + 16) ** -0.5
    assert draw.cache_scale == 1.0


def test_a_seed_is_a_draw() -> None:
    case = Case(name="ragged", heads=3, lengths=(5, 70))
    one, same, other = (draw_case(case, GEOMETRY, seed, "cpu") for seed in (1, 1, 2))
    for name in ("q", "cache", "block_table"):
        assert torch.equal(getattr(one, name).nan_to_num(), getattr(same, name).nan_to_num())
        assert not torch.equal(getattr(one, name).nan_to_num(), getattr(other, name).nan_to_num())


def test_the_shape_that_a_kernel_is_asked_about() -> None:
    case = Case(name="ragged", heads=12, queries=4, lengths=(1, 700), cache_dtype="fp8")
    assert shape_of(case, WIDE) == Shape(
        batch=2,
        queries=4,
        heads=12,
        context=700,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        dtype="bf16",
        cache_dtype="fp8",
    )


IN_THE_INTERPRETER = """
import json, sys
from dataclasses import asdict
from mla_calc.validate.correctness import interpreter_checks
from mla_calc.validate.kernels import KERNELS
from mla_calc.validate.record import Geometry
geometry = Geometry(model="small", kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=32, v_head_dim=32)
json.dump([asdict(check) for check in interpreter_checks(list(KERNELS), seed=3, geometry=geometry)], sys.stdout)
"""


def test_our_kernels_in_the_interpreter() -> None:
    # in a process of its own: the variable is read when Triton is imported
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", IN_THE_INTERPRETER], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = [Check(**fields) for fields in json.loads(done.stdout)]
    assert [check for check in found if not check.correct] == []
    by_kernel = {name: [c for c in found if c.kernel == name] for name in ("small", "tile64")}
    assert all(len(group) == len(interpreter_cases()) for group in by_kernel.values())


def test_without_the_interpreter_its_checks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from mla_calc.errors import InputError

    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(InputError, match="CUDA device"):
        correctness.interpreter_checks(["small"], seed=0, geometry=GEOMETRY)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_our_kernels_on_a_gpu() -> None:
    from mla_calc.validate.kernels import KERNELS, device_of

    device = device_of(torch.empty(0, device="cuda"))
    found = correctness.run_checks(
        list(KERNELS), device, torch_device="cuda", seed=3, geometry=WIDE, free_bytes=torch.cuda.mem_get_info()[0]
    )
    assert [check for check in found if not check.correct] == []
    assert {check.kernel for check in found} >= {"small", "tile64"}
