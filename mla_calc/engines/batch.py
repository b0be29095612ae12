"""A batch of rows, what an engine decides for each, and what that costs against the better path.

A row is a request's new tokens over its prefix. An engine decides a path for each row (vLLM) or for the batch
(SGLang); both answer with :class:`Decision`, in the order in which the rows were given, and what prices them
knows no engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PathName = Literal["absorbed", "mha", "mha_one_shot", "mha_chunked"]
"""``absorbed`` is the MQA form over latent rows; the others are the MHA form, by how it is run."""


@dataclass(frozen=True, slots=True)
class Row:
    """One request in a step: ``queries`` new tokens over ``prefix`` cached ones."""

    queries: int
    prefix: int

    @property
    def context(self) -> int:
        """Keys that the row attends, the new ones included."""
        return self.prefix + self.queries


@dataclass(frozen=True, slots=True)
class Decision:
    """The path that a row takes, and the rule that decided it, in one sentence."""

    path: PathName
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One backend on the way to the one that is taken, and why it was or was not."""

    name: str
    accepted: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The backend that an engine takes, ``None`` where none accepts, and every rung of its ladder."""

    resolved: str | None
    ladder: tuple[Rung, ...]
