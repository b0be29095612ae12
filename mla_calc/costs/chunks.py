"""How prefixes are cut into chunks that fit the workspace of chunked prefill.

Greedy: vllm 0.33.0 model_executor/layers/attention/mla_attention.py:1944-2011 (since vllm#50613, 0.28). Equal
division: vllm 0.26 mla_attention.py:1533-1540, and SGLang's forward_batch_deepseek_mha_mixin.py:204-216.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InputError

MAX_PIECES = 1_000_000
"""Pieces of a plan of equal shares, in which each row may have one in each chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of one row's prefix: ``tokens`` from ``start`` on; ``row`` counts from 0 in the order given."""

    row: int
    start: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What is gathered and expanded at a time."""

    tokens: int
    pieces: tuple[Piece, ...]


def greedy_chunks(prefixes: Sequence[int], rows: int, alignment: int) -> tuple[Chunk, ...]:
    """Rows one after another into chunks of at most ``rows`` tokens; one that does not fit is split.

    A split is on a multiple of ``alignment`` tokens of the row, so that a page is never cut.

    Raises:
        InputError: a workspace of fewer rows than one aligned piece.
    """
    if rows < alignment:
        raise InputError(f"a workspace of {rows:,} rows does not hold one piece of {alignment:,}")
    chunks: list[tuple[Piece, ...]] = []
    current: list[Piece] = []
    free = rows
    for row, prefix in enumerate(prefixes):
        start = 0
        while start < prefix:
            left = prefix - start
            tokens = left if left <= free else free // alignment * alignment
            if tokens:
                current.append(Piece(row=row, start=start, tokens=tokens))
                start, free = start + tokens, free - tokens
            if start < prefix:
                chunks.append(tuple(current))
                current, free = [], rows
    if current:
        chunks.append(tuple(current))
    return tuple(_chunk(pieces) for pieces in chunks if pieces)


def equal_chunks(
    prefixes: Sequence[int], rows: int, alignment: int = 1, sharers: int | None = None
) -> tuple[Chunk, ...]:
    """Every row advances by the same share of ``rows`` per chunk, rounded down to ``alignment``.

    ``sharers`` are the rows that the workspace is divided among: those with a prefix in vLLM, the default; all
    rows of the batch in SGLang.

    Raises:
        InputError: more rows than the workspace has aligned pieces; a plan of more than ``MAX_PIECES``.
    """
    share, count = equal_share(prefixes, rows, alignment, sharers)
    pieces = sum(-(-prefix // share) for prefix in prefixes) if count else 0
    if pieces > MAX_PIECES:
        raise InputError(
            f"the prefixes take {count:,} chunks of {pieces:,} pieces in all; plans of up to {MAX_PIECES:,} are listed"
        )
    starts = [share * index for index in range(count)]
    return tuple(
        _chunk(
            tuple(
                Piece(row=row, start=start, tokens=min(share, prefix - start))
                for row, prefix in enumerate(prefixes)
                if prefix > start
            )
        )
        for start in starts
    )


def equal_share(prefixes: Sequence[int], rows: int, alignment: int = 1, sharers: int | None = None) -> tuple[int, int]:
    """The tokens that each row advances by in a chunk, and how many chunks :func:`equal_chunks` has; 0 of none.

    Raises:
        InputError: more rows than the workspace has aligned pieces.
    """
    sharing = sharers if sharers is not None else sum(1 for prefix in prefixes if prefix)
    if not sharing:
        return 0, 0
    share = rows // sharing // alignment * alignment
    if not share:
        raise InputError(f"{sharing:,} rows share a workspace of {rows:,}: less than {alignment:,} for each")
    return share, -(-max(prefixes) // share)


def _chunk(pieces: tuple[Piece, ...]) -> Chunk:
    return Chunk(tokens=sum(piece.tokens for piece in pieces), pieces=pieces)
