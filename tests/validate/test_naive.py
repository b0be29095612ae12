"""The naive paths, the absorbed one and torch's attention against float64: on a CPU, stand-ins of the same steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

from mla_calc.errors import InputError
from mla_calc.validate import torch_attention
from mla_calc.validate.absorbed import absorbed_path
from mla_calc.validate.naive import NaivePaths, naive_in_place_paths, naive_paths
from mla_calc.validate.record import NAIVE_TOLERANCE
from mla_calc.validate.references import absorbed_reference, expanded_reference, relative_error
from mla_calc.validate.torch_attention import CPU, attention_candidates, merged
from tests.validate.paged import drawn

BOTH = pytest.mark.parametrize("paths", [naive_paths, naive_in_place_paths])
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SHAPES = pytest.mark.parametrize(
    ("batch", "queries", "context"), [(1, 1, 64), (2, 4, 130), (2, 70, 70), (3, 17, 200), (1, 1, 1), (1, 63, 65)]
)
# float32 log-sum-exps weigh the halves of a split
TOLERANCE = {torch.float64: 1e-6, torch.float32: 2e-6, torch.bfloat16: 1e-2}


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """The tensors are small: threads of several test processes would mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@BOTH
@SHAPES
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_every_way_gives_what_float64_gives(
    paths: Callable[..., NaivePaths], batch: int, queries: int, context: int, dtype: torch.dtype
) -> None:
    data = drawn([context] * batch, queries=queries, dtype=dtype)
    expected = expanded_reference(*data.arguments())
    found = paths(data.inputs())
    split = {"math split", "flash split"} if 1 < queries < context else set()
    assert found.calls.keys() == {"math", "flash"} | split
    assert not found.dropped
    for calls in found.calls.values():
        out = calls.whole()
        assert out.shape == expected.shape
        assert relative_error(out, expected) <= TOLERANCE[dtype]


@BOTH
def test_fp8_rows_are_converted_with_their_scale(paths: Callable[..., NaivePaths]) -> None:
    data = drawn([130] * 2, queries=4, dtype=torch.float32, cache_dtype=torch.float8_e4m3fn)
    expected = expanded_reference(*data.arguments(), cache_scale=0.25)
    for calls in paths(data.inputs(cache_scale=0.25)).calls.values():
        assert relative_error(calls.whole(), expected) <= 2e-6


@BOTH
def test_no_rotary_part(paths: Callable[..., NaivePaths]) -> None:
    data = drawn([130], queries=4, rope=0)
    expected = expanded_reference(*data.arguments())
    for calls in paths(data.inputs()).calls.values():
        assert relative_error(calls.whole(), expected) <= 1e-6


@BOTH
def test_values_wider_than_keys(paths: Callable[..., NaivePaths]) -> None:
    # flash wants equal widths: it is not asked to pad keys, and what it cannot do is dropped with its reason
    data = drawn([130], queries=4, nope=4, rope=2, value=9)
    expected = expanded_reference(*data.arguments())
    found = paths(data.inputs())
    assert {"math", "math split"} <= found.calls.keys()
    for calls in found.calls.values():
        assert relative_error(calls.whole(), expected) <= 1e-6


@BOTH
def test_the_whole_starts_from_the_cache_and_is_its_parts(paths: Callable[..., NaivePaths]) -> None:
    data = drawn([130], queries=4)
    calls = paths(data.inputs()).calls["math"]
    assert list(calls.parts) == ["gather", "up_proj", "assemble", "attention"]
    data.cache.mul_(-0.5)
    expected = expanded_reference(*data.arguments())
    # each part passes on what it reads: with the last ones alone the change is not seen
    out = calls.parts["attention"]()
    assert isinstance(out, torch.Tensor)
    assert relative_error(out, expected) > 0.1
    for part in calls.parts.values():
        out = part()
    assert isinstance(out, torch.Tensor)
    assert relative_error(out, expected) <= 1e-12
    data.cache.mul_(-0.5)
    assert relative_error(calls.whole(), expanded_reference(*data.arguments())) <= 1e-12


def test_both_paths_give_the_same() -> None:
    data = drawn([130] * 2, queries=4)
    one, other = naive_paths(data.inputs()), naive_in_place_paths(data.inputs())
    for name, calls in one.calls.items():
        assert torch.allclose(calls.whole(), other.calls[name].whole(), rtol=1e-6, atol=1e-9)


@BOTH
@pytest.mark.parametrize("lengths", [[64, 65], [3, 3]])
def test_lengths_that_differ_or_are_too_short(paths: Callable[..., NaivePaths], lengths: list[int]) -> None:
    with pytest.raises(InputError, match="all the same, from 4 on"):
        paths(drawn(lengths, queries=4).inputs())


def test_wrong_and_raising_attention_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def upper_left(q: torch.Tensor, k: torch.Tensor, values: torch_attention.Values, scale: float) -> object:
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, values(), attn_mask=mask, scale=scale)

    def refusing(*_: object) -> object:
        def call() -> None:
            raise RuntimeError("No available kernel.\nMore lines")

        return call

    def nan(q: torch.Tensor, k: torch.Tensor, values: torch_attention.Values, scale: float) -> object:
        return lambda: CPU["math"].one_call(q, k, values, scale)() * float("nan")

    real = CPU["math"]
    backends = {"math": real} | {
        name: replace(real, one_call=broken)
        for name, broken in {"upper left": upper_left, "refusing": refusing, "nan": nan}.items()
    }
    monkeypatch.setattr(torch_attention, "CPU", backends)
    found = naive_paths(drawn([130], queries=20).inputs())
    assert found.dropped.keys() == {"upper left", "refusing", "nan"}
    assert found.dropped["refusing"] == "RuntimeError: No available kernel."
    assert found.dropped["upper left"].startswith("relative error ")
    assert found.dropped["nan"] == "relative error nan"
    assert "math" in found.calls
    # the error of each that ran, kept or not; by float64 itself the right one has next to none
    assert found.errors.keys() == {*found.calls, "upper left", "nan"}
    assert found.errors["math"] < 1e-12
    assert found.errors["upper left"] > 0.1


def test_the_error_that_is_kept_is_that_against_float64() -> None:
    data = drawn([130], queries=4, heads=2, dtype=torch.bfloat16)
    expected = expanded_reference(*data.arguments())  # 4 queries and 2 heads are the whole sample
    found = naive_paths(data.inputs())
    assert found.errors.keys() == found.calls.keys()
    for name, calls in found.calls.items():
        assert found.errors[name] == relative_error(calls.whole(), expected) > 1e-4


@pytest.mark.parametrize("queries", [2, 9, 40])
def test_an_error_in_one_sampled_query_is_seen(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = CPU["math"]

    def spoilt(at: int) -> Callable[..., object]:
        def one_call(*arguments: object) -> object:
            attend = real.one_call(*arguments)  # type: ignore[arg-type]

            def call() -> torch.Tensor:
                out = attend().clone()
                out[-1, -1, at] *= 1.2
                return out

            return call

        return one_call

    for at in (0, queries - 1):
        monkeypatch.setattr(torch_attention, "CPU", {"spoilt": replace(real, one_call=spoilt(at))})
        found = naive_paths(drawn([64] * 3, queries=queries).inputs())
        assert "spoilt" in found.dropped


@pytest.mark.parametrize("name", list(CPU))
def test_candidates_take_padded_values_and_return_the_narrow_ones(name: str) -> None:
    random = torch.Generator().manual_seed(1)
    q, k = (torch.randn(2, 3, n, 12, generator=random, dtype=torch.float64) for n in (5, 9))
    buffer = torch.zeros(2, 3, 9, 12, dtype=torch.float64)
    v = buffer[..., :7]
    v.copy_(torch.randn(2, 3, 9, 7, generator=random, dtype=torch.float64))
    scores = (q @ k.mT * 0.4).masked_fill(torch.ones(5, 9).triu(5).bool(), float("-inf"))
    expected = scores.softmax(dim=-1) @ v
    for padded in (None, buffer):
        candidates = attention_candidates(q, k, v, 0.4, padded_v=padded)
        for way in (name, f"{name} split"):
            out = candidates[way]()
            assert out.shape == (2, 3, 5, 7)
            assert (out - expected).abs().max() < 1e-6


def test_merging_by_log_sum_exp() -> None:
    # keys in two sets: the attention over both from that over each
    random = torch.Generator().manual_seed(2)
    scores = torch.randn(4, 11, generator=random, dtype=torch.float64) * 3
    v = torch.randn(11, 5, generator=random, dtype=torch.float64)
    halves = [(scores[:, part], v[part]) for part in (slice(0, 8), slice(8, 11))]
    (old, old_lse), (new, new_lse) = ((s.softmax(-1) @ w, s.logsumexp(-1)) for s, w in halves)
    assert torch.allclose(merged(old, old_lse, new, new_lse), scores.softmax(-1) @ v, rtol=1e-12, atol=1e-13)
    # far apart, one side is all, without overflow
    assert torch.equal(merged(old, old_lse, new, old_lse + 2000), new)
    assert torch.equal(merged(old, new_lse + 2000, new, new_lse), old)


@pytest.mark.parametrize(("batch", "queries"), [(1, 1), (3, 4)])
@pytest.mark.parametrize("rope", [4, 0])
def test_the_absorbed_path_gives_what_the_expanded_form_gives(batch: int, queries: int, rope: int) -> None:
    data = drawn([130, 65, 64][:batch], queries=queries, rope=rope)
    seen: dict[str, object] = {}

    def decode(q: torch.Tensor, *rest: torch.Tensor, out: torch.Tensor, kv_lora_rank: int, **named: object) -> object:
        seen.update(named)
        assert q.is_contiguous()
        return out.copy_(absorbed_reference(q, *rest, kv_lora_rank=kv_lora_rank))  # type: ignore[arg-type]

    calls = absorbed_path(data.inputs(), kernel="some", decode=decode)
    assert list(calls.parts) == ["q_fold", "attention", "v_up"]
    expected = expanded_reference(*data.arguments())
    assert relative_error(calls.whole(), expected) <= 1e-12
    assert seen == {"kernel": "some", "cache_scale": 1.0, "max_length": data.block_table.shape[1] * 64}
    # parts in order are the whole, from the queries as they are then
    data.q_nope.mul_(-2)
    data.q_rope.mul_(-2)
    for part in calls.parts.values():
        out = part()
    assert isinstance(out, torch.Tensor)
    assert relative_error(out, expanded_reference(*data.arguments())) <= 1e-12


@pytest.mark.gpu
@NEEDS_GPU
@BOTH
@pytest.mark.parametrize(
    ("batch", "queries", "context", "heads"),
    [(1, 1, 1024, 16), (1, 4, 4096, 128), (2, 70, 70, 16), (2, 170, 1000, 16), (1, 1024, 4096, 16)],
)
def test_on_a_gpu(paths: Callable[..., NaivePaths], batch: int, queries: int, context: int, heads: int) -> None:
    data = drawn(
        [context] * batch,
        queries=queries,
        heads=heads,
        rank=512,
        nope=128,
        rope=64,
        value=128,
        dtype=torch.bfloat16,
        device="cuda",
    )
    data = replace(data, scale=192**-0.5)
    expected = expanded_reference(*data.arguments())
    found = paths(data.inputs())
    assert {"flash", "cudnn"} & found.calls.keys(), found.dropped
    if 1 < queries < context:
        assert {"flash split", "cudnn split"} & found.calls.keys(), found.dropped
    for name, calls in found.calls.items():
        assert relative_error(calls.whole(), expected) <= NAIVE_TOLERANCE, name
        assert relative_error(replayed(calls.whole), expected) <= NAIVE_TOLERANCE, name
        for part in calls.parts.values():
            replayed(part)


@pytest.mark.gpu
@NEEDS_GPU
@BOTH
def test_fp8_rows_on_a_gpu(paths: Callable[..., NaivePaths]) -> None:
    data = drawn(
        [130] * 2,
        queries=4,
        heads=16,
        rank=512,
        nope=128,
        rope=64,
        value=128,
        dtype=torch.bfloat16,
        cache_dtype=torch.float8_e4m3fn,
        device="cuda",
    )
    data = replace(data, scale=192**-0.5)
    expected = expanded_reference(*data.arguments(), cache_scale=0.25)
    found = paths(data.inputs(cache_scale=0.25))
    assert found.calls, found.dropped
    for calls in found.calls.values():
        assert relative_error(replayed(calls.whole), expected) <= NAIVE_TOLERANCE


@pytest.mark.gpu
@NEEDS_GPU
def test_the_absorbed_path_on_a_gpu() -> None:
    data = drawn(
        [1000] * 2, queries=4, heads=16, rank=512, nope=128, rope=64, value=128, dtype=torch.bfloat16, device="cuda"
    )
    data = replace(data, scale=192**-0.5)
    calls = absorbed_path(data.inputs(), kernel=None)
    expected = expanded_reference(*data.arguments())
    assert relative_error(calls.whole(), expected) <= 1e-2
    assert relative_error(replayed(calls.whole), expected) <= 1e-2


def replayed(call: Callable[[], object]) -> torch.Tensor:
    """What a call gives when a CUDA graph replays it, its output spoilt between."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()
    if isinstance(out, torch.Tensor):
        out.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    return out  # type: ignore[return-value]
