"""Random paged caches for the tests of references and paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from mla_calc.validate.path_inputs import PathInputs

PAGE = 64


@dataclass(frozen=True)
class Drawn:
    """Unfolded queries, weights and a cache whose pages are scattered and hold NaN where no request has a row."""

    q_nope: torch.Tensor
    q_rope: torch.Tensor
    w_uk: torch.Tensor
    w_uv: torch.Tensor
    cache: torch.Tensor
    block_table: torch.Tensor
    lengths: torch.Tensor
    scale: float = 0.3

    def arguments(self) -> tuple[object, ...]:
        return (
            self.q_nope,
            self.q_rope,
            self.w_uk,
            self.w_uv,
            self.cache,
            self.block_table,
            self.lengths,
            self.scale,
        )

    def inputs(self, cache_scale: float = 1.0) -> PathInputs:
        return PathInputs(
            q_nope=self.q_nope,
            q_rope=self.q_rope,
            w_uk=self.w_uk,
            w_uv=self.w_uv,
            cache=self.cache,
            block_table=self.block_table,
            lengths=self.lengths,
            scale=self.scale,
            cache_scale=cache_scale,
        )

    def folded(self) -> torch.Tensor:
        return torch.cat((torch.einsum("bqhd,hdr->bqhr", self.q_nope, self.w_uk), self.q_rope), dim=-1)


def drawn(
    lengths: Sequence[int],
    *,
    queries: int = 1,
    heads: int = 3,
    rank: int = 16,
    nope: int = 8,
    rope: int = 4,
    value: int = 6,
    dtype: torch.dtype = torch.float64,
    cache_dtype: torch.dtype | None = None,
    device: str = "cpu",
    seed: int = 0,
) -> Drawn:
    random = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=random)

    most = max(1, *(-(-length // PAGE) for length in lengths))
    order = torch.randperm(len(lengths) * most + 2, generator=random)
    table = order[: len(lengths) * most].reshape(len(lengths), most)
    cache = torch.full((len(order), PAGE, rank + rope), float("nan"))
    for request, length in enumerate(lengths):
        for row in range(length):
            cache[table[request, row // PAGE], row % PAGE] = normal(rank + rope)
    return Drawn(
        q_nope=normal(len(lengths), queries, heads, nope).to(dtype).to(device),
        q_rope=normal(len(lengths), queries, heads, rope).to(dtype).to(device),
        w_uk=(normal(heads, nope, rank) * rank**-0.5).to(dtype).to(device),
        w_uv=(normal(heads, value, rank) * rank**-0.5).to(dtype).to(device),
        cache=cache.to(cache_dtype or dtype).to(device),
        block_table=table.int().to(device),
        lengths=torch.tensor(lengths, dtype=torch.int32).to(device),
    )
