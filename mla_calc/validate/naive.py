"""The naive path on a paged latent cache, as an engine runs it, and a better one that writes keys in place.

vLLM's path for a prefix and new tokens: gather the cached rows into a contiguous buffer, up-project them in one
product to [rows, heads, dn + dv], assemble keys by copying the nope part and the rotary part that all heads share,
then attend. (There the rows of the new tokens come from the layer and not from the cache, and a prefix beyond
the workspace is taken in chunks; here all rows are gathered, in one piece.) The better path needs no copy: a
batched product over the heads writes the nope part straight into the columns of the keys' buffer that it belongs
to, a strided view, and only the rotary columns are written beside it.

Requests have equal lengths: all steps are then a few calls without a loop over the batch, which is what one wants
to time. Whole pages are gathered and up-projected, up to 63 rows of a request more than it has; attention sees
none of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from ..errors import InputError
from .absorbed import PathCalls
from .faults import told
from .path_inputs import PathInputs
from .record import NAIVE_TOLERANCE
from .sample import Sample, sample_of
from .torch_attention import Attend, attention_candidates


@dataclass(frozen=True, slots=True)
class NaivePaths:
    """One path with each of torch's attention implementations that works on its shape."""

    calls: Mapping[str, PathCalls]
    """By the attention's name. They share their buffers and all parts but ``attention``."""
    dropped: Mapping[str, str]
    """Attention that raised or was wrong, and how."""
    errors: Mapping[str, float]
    """Relative error against float64 of each that ran, the wrong ones too, on a sample."""


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps before attention, and the buffers that they fill."""

    parts: dict[str, Callable[[], object]]
    k: torch.Tensor
    """[batch, rows, heads, dn + dr]"""
    v: torch.Tensor
    """[batch, rows, heads, dv]"""
    padded_v: torch.Tensor | None = None
    """``v`` with columns of zeros up to dn + dr."""


def naive_paths(inputs: PathInputs) -> NaivePaths:
    """The path as an engine runs it: parts ``gather``, ``up_proj``, ``assemble``, ``attention``.

    Every way to attend is run here once and compared with float64 on a sample of requests, heads and queries, so
    this waits for the device, and it reads the lengths; the calls that it returns do not.

    Raises:
        InputError: lengths that differ, or fewer keys than queries.
    """
    return _with_every_attention(inputs, _engine_steps(inputs))


def naive_in_place_paths(inputs: PathInputs) -> NaivePaths:
    """The path without a copy of the keys, and with values that need no padding: parts and errors as above.

    ``up_proj`` is two batched products, over W_UK and over W_UV; ``assemble`` writes the rotary columns alone.
    """
    return _with_every_attention(inputs, _in_place_steps(inputs))


def _context(inputs: PathInputs) -> int:
    """The length of every request. Raises InputError where they differ."""
    lengths = inputs.lengths.tolist()
    queries = inputs.q_nope.shape[1]
    if len(set(lengths)) != 1 or lengths[0] < queries:
        raise InputError(f"lengths of {min(lengths):,} to {max(lengths):,}: all the same, from {queries:,} on")
    return int(lengths[0])


def _engine_steps(inputs: PathInputs) -> _Steps:
    heads, nope, rank = inputs.w_uk.shape
    rope, value = inputs.q_rope.shape[-1], inputs.w_uv.shape[1]
    gather, latent = _gather(inputs)
    batch, rows = latent.shape[:2]
    # the layout of a checkpoint's kv_b_proj: [heads * (dn + dv), r]
    weight = torch.cat((inputs.w_uk, inputs.w_uv), dim=1).reshape(heads * (nope + value), rank)
    kv = latent.new_empty(batch, rows, heads, nope + value)
    k = latent.new_empty(batch, rows, heads, nope + rope)
    flat_latent, flat_kv = latent.view(batch * rows, -1)[:, :rank], kv.view(batch * rows, -1)

    def up_proj() -> None:
        torch.mm(flat_latent, weight.T, out=flat_kv)

    def assemble() -> None:
        k[..., :nope].copy_(kv[..., :nope])
        k[..., nope:].copy_(latent[:, :, None, rank:].expand(-1, -1, heads, -1))

    return _Steps({"gather": gather, "up_proj": up_proj, "assemble": assemble}, k, kv[..., nope:])


def _in_place_steps(inputs: PathInputs) -> _Steps:
    heads, nope, rank = inputs.w_uk.shape
    rope, value = inputs.q_rope.shape[-1], inputs.w_uv.shape[1]
    gather, latent = _gather(inputs)
    batch, rows = latent.shape[:2]
    k = latent.new_empty(batch, rows, heads, nope + rope)
    padded_v = latent.new_zeros(batch, rows, heads, max(nope + rope, value))
    by_head = latent.view(batch * rows, -1)[:, :rank].expand(heads, -1, -1)
    keys, values = inputs.w_uk.transpose(1, 2), inputs.w_uv.transpose(1, 2)
    k_by_head = k.view(batch * rows, heads, -1)[..., :nope].transpose(0, 1)
    v_by_head = padded_v.view(batch * rows, heads, -1)[..., :value].transpose(0, 1)

    def up_proj() -> None:
        torch.bmm(by_head, keys, out=k_by_head)
        torch.bmm(by_head, values, out=v_by_head)

    def assemble() -> None:
        k[..., nope:].copy_(latent[:, :, None, rank:].expand(-1, -1, heads, -1))

    return _Steps({"gather": gather, "up_proj": up_proj, "assemble": assemble}, k, padded_v[..., :value], padded_v)


def _gather(inputs: PathInputs) -> tuple[Callable[[], object], torch.Tensor]:
    """The step that copies whole pages into a contiguous buffer [batch, rows, r + dr], and that buffer."""
    cache = inputs.cache
    page, width = cache.shape[1:]
    used = -(-_context(inputs) // page)
    pages = inputs.block_table[:, :used].reshape(-1)
    batch = inputs.q_nope.shape[0]
    latent = inputs.q_nope.new_empty(batch * used, page, width)
    if cache.dtype == latent.dtype:
        return lambda: torch.index_select(cache, 0, pages, out=latent), latent.view(batch, used * page, width)
    stored = torch.empty(latent.shape, dtype=torch.uint8, device=cache.device)

    def gather() -> None:  # an engine's kernel converts as it copies; torch takes a pass for each
        torch.index_select(cache.view(torch.uint8), 0, pages, out=stored)
        latent.copy_(stored.view(cache.dtype))
        latent.mul_(inputs.cache_scale)

    return gather, latent.view(batch, used * page, width)


def _with_every_attention(inputs: PathInputs, steps: _Steps) -> NaivePaths:
    """The path once for each way to attend that gives what float64 gives."""
    context = _context(inputs)
    q = torch.cat((inputs.q_nope, inputs.q_rope), dim=-1)  # a projection leaves it so: no part of the path

    def by_head(tensor: torch.Tensor) -> torch.Tensor:
        return tensor[:, :context].transpose(1, 2)

    padded_v = None if steps.padded_v is None else by_head(steps.padded_v)
    candidates = attention_candidates(
        q.transpose(1, 2), by_head(steps.k), by_head(steps.v), inputs.scale, padded_v=padded_v
    )
    for part in steps.parts.values():
        part()
    sample = sample_of(inputs)
    calls, dropped, errors = {}, {}, {}
    for name, attend in candidates.items():
        error, wrong = _tried(attend, sample)
        if error is not None:
            errors[name] = error
        if wrong is None:
            calls[name] = _path(steps, attend)
        else:
            dropped[name] = wrong
    return NaivePaths(calls, dropped, errors)


def _path(steps: _Steps, attend: Attend) -> PathCalls:
    def attention() -> torch.Tensor:
        return attend().transpose(1, 2)

    def whole() -> torch.Tensor:
        for part in steps.parts.values():
            part()
        return attention()

    return PathCalls(whole, {**steps.parts, "attention": attention})


def _tried(attend: Attend, sample: Sample) -> tuple[float | None, str | None]:
    """The relative error of a candidate, where it runs at all; and why it cannot be used, or ``None``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a backend that refuses warns of every reason before it raises
            error = sample.error(attend().transpose(1, 2))
    except Exception as fault:  # each backend has refusals of its own
        return None, told(fault)
    return error, None if error <= NAIVE_TOLERANCE else f"relative error {error:.1e}"
