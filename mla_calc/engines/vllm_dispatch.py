"""vLLM's dispatch: which rows of an ordered batch are decode rows and absorbed, and what becomes of the others.

Read in vllm 0.33.0: the threshold in vllm/v1/attention/backend.py:572-589,658-683, the split in
vllm/v1/attention/backends/utils.py:837-908, the orders at :939-995 and in vllm/v1/worker/gpu/model_runner.py:2507.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..errors import InputError
from ..models.attention import Model
from .batch import Decision, Row
from .preset import Backend, Engine, thresholds_of
from .vllm_sparse import Setting, counted, sparse_rest

Runner = Literal["v1", "v2"]


def effective_threshold(
    engine: Engine,
    backend: Backend,
    *,
    heads_per_rank: int,
    major: int | None,
    spec_tokens: int = 0,
    parallel_drafting: bool = False,
    dcp: int = 1,
    interleave: int = 1,
    override: int | None = None,
    runner: Runner | None = None,
) -> tuple[int, str]:
    """The decode threshold as ``backend`` ends up with it, query tokens, and the sentence that derives it.

    ``override`` stands for the constant in the source, so speculation and DCP act on it as they do on that.

    Raises:
        InputError: no threshold was read, or not what speculation or DCP makes of it; no DCP in this backend.
    """
    base = override if override is not None else _constant(engine, backend, heads_per_rank, major)
    if base < 1:
        raise InputError(f"{base} is no threshold; 1 absorbs rows of one query alone")
    sentence = f"{backend.name}'s threshold is {base}"
    threshold = base
    widest = _widest_verified(engine, spec_tokens, parallel_drafting, runner)
    if widest > 1 and _speculates(engine, backend) and widest > threshold:
        threshold = widest
        sentence += f", raised to {widest} by {spec_tokens} draft tokens"
    if dcp > 1:
        _check_dcp(engine, backend, interleave)
    if dcp > 1 and threshold > 1 and not _kept_under_dcp(engine, backend, interleave):
        threshold = 1
        sentence += f", lowered to 1 by DCP {dcp}"
    return threshold, sentence


def dispatch(
    engine: Engine,
    backend: Backend,
    rows: Sequence[Row],
    *,
    model: Model,
    heads_per_rank: int,
    tp: int,
    major: int | None,
    spec_tokens: int = 0,
    parallel_drafting: bool = False,
    dcp: int = 1,
    interleave: int = 1,
    runner: Runner | None = None,
    threshold_override: int | None = None,
    cache_quantised: bool = False,
    force_mqa: bool = False,
) -> tuple[Decision, ...]:
    """The path of every row, in the order in which ``rows`` were given.

    The rows are first put into the order of the runner. A row with a prefix and 1 or 1 + ``spec_tokens`` queries
    is taken to be past its prompt, and with 1 + ``spec_tokens`` to carry drafts: a row does not say either.
    ``cache_quantised`` and ``force_mqa`` (``sparse_mla_force_mqa``) matter for sparse backends alone.

    Raises:
        InputError: see :func:`effective_threshold`; the runner or the sparse rule was not read in this release.
    """
    if model.mla is None:
        raise InputError(f"{model.name} has no latent attention; vLLM's MLA backends are not for it")
    chosen = runner or engine.model_runner
    if chosen is None:
        raise InputError(f"{engine.name}: which model runner orders its batches was not read")
    threshold, _ = effective_threshold(
        engine,
        backend,
        heads_per_rank=heads_per_rank,
        major=major,
        spec_tokens=spec_tokens,
        parallel_drafting=parallel_drafting,
        dcp=dcp,
        interleave=interleave,
        override=threshold_override,
        runner=chosen,
    )
    setting = Setting(
        engine=engine,
        backend=backend,
        model=model,
        mla=model.mla,
        tp=tp,
        major=major,
        dcp=dcp,
        cache_quantised=cache_quantised,
        force_mqa=force_mqa,
    )
    order = engine_order(rows, chosen, threshold, spec_tokens)
    decided = _decide([rows[at] for at in order], threshold, setting)
    return tuple(decision for _, decision in sorted(zip(order, decided, strict=True), key=lambda pair: pair[0]))


def engine_order(rows: Sequence[Row], runner: Runner, threshold: int, spec_tokens: int = 0) -> tuple[int, ...]:
    """The positions of ``rows`` in the order in which ``runner`` puts them; equals stay as they were given.

    V2: rows with drafts first, then those of the verified length, then by queries. V1: decode, short extend,
    long extend, and rows without a prefix last; it swaps rows in place, so equals may differ there.
    """
    verified = 1 + spec_tokens

    def v2(row: Row) -> tuple[bool, bool, int]:
        drafts = spec_tokens > 0 and row.prefix > 0 and row.queries == verified
        return not drafts, row.queries != verified, row.queries

    def v1(row: Row) -> int:
        if row.prefix == 0:
            return 3
        if row.queries > threshold:
            return 2
        return int(row.queries not in (1, verified))

    if runner == "v2":
        return tuple(sorted(range(len(rows)), key=lambda at: v2(rows[at])))
    return tuple(sorted(range(len(rows)), key=lambda at: v1(rows[at])))


def decode_rows(queries: Sequence[int], threshold: int, uniform: bool) -> int:
    """How many leading rows of an ordered batch are decode rows (vllm 0.33.0, backends/utils.py:872-892).

    By length alone. ``uniform``: the kernel takes one length at a time, so only rows as long as the first.
    """
    if not queries or queries[0] > threshold:
        return 0
    if max(queries) <= threshold and (not uniform or threshold <= 1):
        return len(queries)
    first = queries[0]
    stops = (at for at, q in enumerate(queries) if (q != first if uniform else q > threshold))
    return next(stops, len(queries))


def _constant(engine: Engine, backend: Backend, heads_per_rank: int, major: int | None) -> int:
    found = thresholds_of(backend, heads_per_rank, major)
    if len(found) != 1:
        lacks = "no decode threshold was read" if not found else "the threshold hangs on the compute capability"
        raise InputError(f"{engine.name}, {backend.name}: {lacks}")
    return found[0][1]


def _widest_verified(engine: Engine, spec_tokens: int, parallel_drafting: bool, runner: Runner | None) -> int:
    """Queries of the widest row that is verified: 1 + drafts, and the drafts again where drafting is parallel."""
    if not (parallel_drafting and spec_tokens):
        return 1 + spec_tokens
    widened = engine.parallel_drafting_runners
    if widened is None:
        raise InputError(f"{engine.name}: what parallel drafting does to the threshold was not read")
    return 1 + spec_tokens * (2 if (runner or engine.model_runner) in widened else 1)


def _speculates(engine: Engine, backend: Backend) -> bool:
    """Whether a verified row is a decode row. Every sparse builder says yes; a dense one by its support."""
    if backend.kind == "dense":
        if backend.query_len_support is None:
            raise InputError(f"{engine.name}, {backend.name}: whether drafts raise its threshold was not read")
        return backend.query_len_support != "single_only"
    return True


def _check_dcp(engine: Engine, backend: Backend, interleave: int) -> None:
    """Refuse a backend that does not start under decode context parallelism, or not with this interleave."""
    if backend.supports_dcp is False:
        raise InputError(f"{engine.name}, {backend.name}: it has no decode context parallelism")
    only = backend.dcp_interleave
    if only is not None and interleave != only:
        raise InputError(
            f"{engine.name}, {backend.name}: under DCP it starts only with an interleave of {only}, not {interleave}"
        )


def _kept_under_dcp(engine: Engine, backend: Backend, interleave: int) -> bool:
    rule = backend.threshold_under_dcp
    if rule is None:
        raise InputError(f"{engine.name}, {backend.name}: what becomes of its threshold under DCP was not read")
    return rule == "kept" or (rule == "kept_if_interleave_1" and interleave == 1)


def _decide(rows: Sequence[Row], threshold: int, setting: Setting) -> list[Decision]:
    """Decisions for rows in the engine's order."""
    backend = setting.backend
    uniform = backend.query_len_support != "varlen"
    if backend.query_len_support is None and threshold > 1:
        raise InputError(f"{setting.engine.name}, {backend.name}: which lengths it decodes together was not read")
    count = decode_rows([row.queries for row in rows], threshold, uniform)
    decided = [Decision("absorbed", _decode_rule(row, threshold, backend)) for row in rows[:count]]
    rest = rows[count:]
    if rest and setting.backend.kind != "dense":
        return decided + [sparse_rest(rest, setting)] * len(rest)
    if backend.absorbed_prefill:
        rule = f"no decode row, and {backend.name} runs those in the latent space too"
        return decided + [Decision("absorbed", rule) for _ in rest]
    return decided + [Decision("mha", _mha_rule(row, rows[0], rest[0], threshold, backend)) for row in rest]


def _decode_rule(row: Row, threshold: int, backend: Backend) -> str:
    cold = "" if row.prefix else ", although nothing of it is cached"
    return f"{counted(row.queries)} <= {backend.name}'s threshold of {threshold:,}: a decode row{cold}"


def _mha_rule(row: Row, first: Row, stop: Row, threshold: int, backend: Backend) -> str:
    """Why ``row`` is no decode row; ``first`` leads the batch, ``stop`` is the first that is none either."""
    limit = f"{backend.name}'s threshold of {threshold:,}"
    if row.queries > threshold:
        return f"{counted(row.queries)} > {limit}: MHA"
    if backend.query_len_support == "varlen" or first.queries > threshold or first.queries == row.queries:
        return f"{counted(row.queries)} <= {limit}, but behind a row of {stop.queries:,} in the engine's order: MHA"
    return (
        f"{counted(row.queries)} <= {limit}, but one call decodes rows of one length and the leading rows "
        f"have {first.queries}: MHA"
    )
