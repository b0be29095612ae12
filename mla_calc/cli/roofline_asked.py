"""What ``roofline`` is asked to price, read from its options."""

from __future__ import annotations

from dataclasses import dataclass

from ..costs.flops import FlopsCost, flops_cost
from ..costs.layouts import Layout
from ..costs.paths import Work
from ..costs.ridge import Axis, Subject
from ..costs.sparse import paths_of
from ..costs.trajectories import usual_values
from ..hardware.gpu import GPU
from ..hardware.roofline import Ceilings, datasheet_ceilings
from ..models.attention import MLA, Indexer, Model
from .request import Axes
from .roofline_options import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Model, GPUs, dtypes and steps; ``works[0]`` is the step that trajectories start from."""

    model: Model
    mla: MLA
    layout: Layout
    indexer: Indexer | None
    cards: tuple[GPU, ...]
    dtypes: tuple[str, ...]
    has: dict[str, tuple[str, ...]]
    """The dtypes that each GPU has a peak of."""
    axes: Axes
    works: tuple[Work, ...]
    view: View

    @property
    def dtype(self) -> str:
        """Of the products whose roof the points stand under."""
        return self.dtypes[0]

    def ceilings(self, gpu: GPU) -> Ceilings:
        """That roof, of the datasheet."""
        return datasheet_ceilings(gpu, self.dtype)

    def cost(self, gpu: GPU, work: Work) -> FlopsCost:
        """Both paths of one step on ``gpu``. Raises InputError for a step that cannot be."""
        return flops_cost(self.mla, self.model.cached_layers, work, self.ceilings(gpu), indexer=self.indexer)

    def subject(self, gpu: GPU, path: str, kernel: str) -> Subject:
        """A kernel or a whole path from the first step on, to be followed."""
        return Subject(
            self.mla, paths_of(self.indexer)[path], kernel, self.works[0], self.ceilings(gpu), self.indexer
        )  # fmt: skip

    def values(self, axis: Axis) -> tuple[int, ...]:
        """The values of an axis to follow: those asked for where they are a list, else the usual ones."""
        listed: tuple[int, ...] = getattr(self.axes, axis)
        return listed if len(listed) > 1 else usual_values(axis, self.mla, self.works[0])
