"""Placements: how the GPUs are laid out as TP, DP, DCP and PP, which are legal, and why others are not.

TP splits heads, DP is data-parallel attention (each group has requests of its own), DCP spreads the copies of a
TP group's tokens over its ranks, PP splits layers. Fields are one point or arrays (docs/cost-model.md, section 10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from math import prod
from typing import TYPE_CHECKING, Any

from ..arrays import maximum
from ..errors import InputError
from ..models.attention import MLA, Model
from .sharding import check_tp, copies, misfit
from .tokens import LATENT, Form, Layers, cached_attention, indexing_layers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..arrays import Ints

MAX_GPUS = 4096
AXES = ("tp", "dp", "dcp", "pp")


@dataclass(frozen=True, slots=True)
class Placement:
    """GPUs as DP groups of TP ranks in PP stages; DCP reuses the ranks of a TP group."""

    tp: Ints
    dp: Ints
    dcp: Ints
    pp: Ints

    @property
    def gpus(self) -> Ints:
        """GPUs in all."""
        return self.tp * self.dp * self.pp

    @property
    def stage_ranks(self) -> Ints:
        """GPUs of one pipeline stage."""
        return self.tp * self.dp

    def only(self, which: NDArray[Any]) -> Placement:
        """The placements of a mask or of indices, in their order."""
        return Placement(*(getattr(self, item.name)[which] for item in fields(self)))

    def at(self, index: int) -> Placement:
        """One of the placements, as Python's integers."""
        return Placement(*(int(getattr(self, item.name)[index]) for item in fields(self)))


def check_placement(model: Model, at: Placement, form: Form = LATENT, ep: int | None = None) -> None:
    """Refuse a placement that the model cannot have.

    Raises:
        InputError: with the reason.
    """
    check_tp(model, at.tp)
    for broken, reason in _rules(model, form, ep):
        if broken(at):
            raise InputError(reason(at))


Rule = tuple[Callable[[Placement], Any], Callable[[Placement], str]]


def _rules(model: Model, form: Form, ep: int | None) -> Iterator[Rule]:
    """The rules behind TP's own, each as what breaks it and the reason in words."""
    attention, layers = cached_attention(model, form), model.transformer_layers
    if isinstance(attention, MLA):
        yield lambda at: at.tp % at.dcp != 0, lambda at: f"DCP {at.dcp} does not divide TP {at.tp}"
    else:
        yield (
            lambda at: copies(attention, at.tp) % at.dcp != 0,
            lambda at: (
                f"DCP {at.dcp} does not divide the copies of a KV head at TP {at.tp}: {copies(attention, at.tp)}"
            ),
        )
    yield (
        lambda at: at.pp > layers,
        lambda at: f"PP {at.pp} is more than the {layers} layers of {model.name}",
    )
    if ep is not None:
        yield (
            lambda at: at.stage_ranks % ep != 0,
            lambda at: f"EP {ep} does not divide the GPUs of a stage: {at.stage_ranks}",
        )


def check_axes(
    model: Model, fixed: Mapping[str, int], form: Form = LATENT, ep: int | None = None, gpus: int | None = None
) -> None:
    """Refuse fixed axes that no legal placement has: of ``gpus`` GPUs, or of any number up to :data:`MAX_GPUS`.

    Raises:
        InputError: naming the axis.
    """
    if "tp" in fixed:
        check_tp(model, fixed["tp"])
    layers, dcp, most = model.transformer_layers, fixed.get("dcp", 1), gpus or MAX_GPUS
    if fixed.get("pp", 1) > layers:
        raise InputError(f"PP {fixed['pp']} is more than the {layers} layers of {model.name}")
    _check_product(fixed, gpus)
    if "tp" in fixed:
        check_placement(model, Placement(fixed["tp"], 1, dcp, 1), form)
    attention, others = cached_attention(model, form), fixed.get("dp", 1) * fixed.get("pp", 1)
    tps = [tp for tp in _degrees(model, most // others) if gpus is None or gpus % (tp * others) == 0]
    if "tp" not in fixed and all(copies(attention, tp) % dcp for tp in tps):
        what = "TP" if isinstance(attention, MLA) else "number of copies of a KV head"
        where = f"on {gpus:,} GPUs" if gpus is not None else f"on up to {MAX_GPUS:,} GPUs"
        beside = "".join(f", {name.upper()} {fixed[name]:,}" for name in ("dp", "pp") if name in fixed)
        raise InputError(f"DCP {dcp} divides no {what} that {model.name} can have {where}{beside}")
    if ep is not None and "tp" in fixed and "dp" in fixed:
        check_placement(model, Placement(fixed["tp"], fixed["dp"], dcp, 1), form, ep)


def _check_product(fixed: Mapping[str, int], gpus: int | None) -> None:
    """Refuse fixed TP, DP and PP whose product is not a part of ``gpus`` GPUs, or more than are accepted."""
    named = {name: fixed[name] for name in ("tp", "dp", "pp") if name in fixed}
    product, text = prod(named.values()), " x ".join(f"{name.upper()} {value:,}" for name, value in named.items())
    if gpus is None:
        if product > MAX_GPUS:
            raise InputError(f"{text} are {product:,} GPUs; at most {MAX_GPUS:,} are accepted")
        return
    for name, value in named.items():
        if gpus % value:
            raise InputError(f"{name.upper()} {value:,} does not divide --gpus {gpus:,}")
    if gpus % product:
        raise InputError(f"{text} = {product:,} does not divide --gpus {gpus:,}")
    if len(named) == 3 and product != gpus:
        raise InputError(f"{text} are {product:,} GPUs; --gpus says {gpus:,}")


def _degrees(model: Model, most: int) -> list[int]:
    """Every TP up to ``most`` that the model can have."""
    return [tp for tp in range(1, min(model.attention.heads, most) + 1) if misfit(model, tp) is None]


def reasons(model: Model, at: Placement, form: Form = LATENT, ep: int | None = None) -> list[str | None]:
    """For each of several placements why it is illegal, or ``None`` where it is legal."""
    import numpy as np

    found: list[str | None] = [None] * at.tp.size
    misfits = {tp: misfit(model, tp) for tp in np.unique(at.tp).tolist()}
    for index, tp in enumerate(at.tp.tolist()):
        if misfits[tp]:
            found[index] = f"TP {tp} {misfits[tp]}"
    for broken, reason in _rules(model, form, ep):
        for index in np.flatnonzero(broken(at)).tolist():
            found[index] = found[index] or reason(at.at(index))
    return found


def placements_of(model: Model, gpus: int, fixed: Mapping[str, int]) -> Placement:
    """Every way to lay out ``gpus`` GPUs, illegal ones too; ``fixed`` axes keep their value.

    A TP or PP that the model cannot have stands once, without its DCPs.
    """
    import numpy as np

    sizes = np.array([size for size in range(1, gpus + 1) if gpus % size == 0], dtype=np.int64)
    tp, pp, dcp = (axis.ravel() for axis in np.meshgrid(sizes, sizes, sizes, indexing="ij"))
    fits = np.isin(tp, [size for size in sizes.tolist() if misfit(model, size) is None])
    kept = (gpus % (tp * pp) == 0) & (dcp <= tp) & ((fits & (pp <= model.transformer_layers)) | (dcp == 1))
    tp, pp, dcp = tp[kept], pp[kept], dcp[kept]
    return _fixed(Placement(tp, gpus // (tp * pp), dcp, pp), fixed)


def legal_placements(model: Model, form: Form, ep: int | None, fixed: Mapping[str, int]) -> Placement:
    """Every legal way to lay out any number of GPUs up to :data:`MAX_GPUS`, ``fixed`` axes as they are."""
    import numpy as np

    tps = _degrees(model, MAX_GPUS)
    stages = np.arange(1, min(model.transformer_layers, MAX_GPUS) + 1)
    pairs = np.array([(tp, dcp) for tp in tps for dcp in range(1, tp + 1) if tp % dcp == 0], dtype=np.int64)
    which, pp = (axis.ravel() for axis in np.meshgrid(np.arange(len(pairs)), stages, indexing="ij"))
    tp, dcp = pairs[which].T
    groups = MAX_GPUS // (tp * pp)  # DP from 1 to this
    each = np.repeat(np.arange(groups.size), groups)
    dp = np.arange(each.size) - np.repeat(np.cumsum(groups) - groups, groups) + 1
    at = _fixed(Placement(tp[each], dp, dcp[each], pp[each]), fixed)
    legal = np.ones(at.tp.shape, dtype=bool)
    for broken, _ in _rules(model, form, ep):
        legal &= ~np.asarray(broken(at))
    return at.only(legal)


def _fixed(at: Placement, fixed: Mapping[str, int]) -> Placement:
    import numpy as np

    kept = np.ones(at.tp.shape, dtype=bool)
    for name, value in fixed.items():
        kept &= getattr(at, name) == value
    return at.only(kept)


def stage_layers(model: Model, pp: Ints) -> Ints:
    """Transformer layers of the largest pipeline stage."""
    return -(-model.transformer_layers // pp)


def stage_caches(model: Model, pp: Ints, mtp_layers: int = 0) -> Layers:
    """Layers that cache on the largest stage; MTP layers come on top of the last one, which is never larger.

    Where only some layers cache or index, they are taken as spread evenly over the stages.
    """
    windowed = model.windowed.layers if model.windowed else 0
    indexing = indexing_layers(model)
    return Layers(
        _stage_share(model, model.cached_layers, pp, mtp_layers),
        _stage_share(model, indexing, pp, mtp_layers) if indexing else 0,
        _stage_share(model, windowed, pp, 0),
    )


def _stage_share(model: Model, count: int, pp: Ints, on_the_last: int) -> Ints:
    total = model.transformer_layers
    per_layer, over = divmod(count, total)
    if over:
        return maximum(-(-count // pp), count // pp + on_the_last)
    return maximum(per_layer * -(-total // pp), per_layer * (total // pp) + on_the_last)
