"""The roofs of ``roofline``'s figure: ceilings, ridges with their numbers, zones; one panel of it is a scene."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..report import format as fmt
from ..report.chart import Colour, Look, Mark, Roof, Rule, Zones
from .roofline_tables import is_main, short_names

COLOURS: tuple[Colour, ...] = ("blue", "orange", "green", "pink", "sky", "soft")
"""Of several GPUs in one panel."""
MOST_GPUS = len(COLOURS)
"""GPUs that one figure tells apart; in panels of their own, more would be lower than the texts of one need."""
DTYPE_COLOURS: tuple[Colour, ...] = ("ink", "green", "pink", "red", "orange")
"""Of the roofs of one GPU; that of a level is told by its slope too."""
LEVEL_COLOURS: dict[str, Colour] = {"link": "sky", "pcie": "soft"}
THINNER, WIDER = 0.7, 0.9
"""The weight of further dtypes' roofs, and what one gains for each that is drawn on it, so that both are seen."""

Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scene:
    """What one panel draws, and whether its GPUs are told apart by colour."""

    results: Results
    inputs: Mapping[str, Any]
    gpus: tuple[str, ...]
    together: bool

    def look(self, gpu: str, look: Look) -> Look:
        """``look`` in the GPU's colour where several share the panel."""
        if not self.together:
            return look
        return replace(look, colour=COLOURS[self.gpus.index(gpu)])

    @property
    def panels(self) -> bool:
        """Whether other panels stand beside this one."""
        return len(self.inputs["gpu"]) > 1 and not self.together

    @property
    def key(self) -> Colour | None:
        """The colour of the key's kinds: none of a GPU's where colours tell those."""
        return "ink" if self.together else None

    def named(self, gpu: str, text: str) -> str:
        """A label with the GPU's name where there are several."""
        return f"{self.name(gpu)}: {text}" if len(self.inputs["gpu"]) > 1 else text

    def name(self, gpu: str) -> str:
        """A short name that tells the GPU from the others."""
        return short_names(self.inputs["gpu"])[gpu]

    def once(self, gpu: str, text: str) -> str:
        """A label that stands once for what every GPU has; colours tell the GPUs, at their roofs."""
        return text if gpu == self.gpus[0] else ""


def _drawn(scene: Scene) -> Iterator[tuple[int, dict[str, Any]]]:
    """The drawn ridges of this panel's GPUs with their places, the first dtype's first.

    Levels beside memory have the first dtype's roof alone: all pairs would hide one another.
    """
    levels, dtypes = scene.inputs["levels"], scene.inputs["mma_dtype"]
    for dtype in dtypes:
        for index, ridge in enumerate(scene.results["ridges"]):
            if ridge["gpu"] not in scene.gpus or ridge["dtype"] != dtype:
                continue
            if ridge["level"] == "memory" or (dtype == dtypes[0] and ridge["level"] in levels):
                yield index, ridge


def zones(scene: Scene) -> Iterator[Mark]:
    """Shaded around the ridge of the first GPU and dtype; several GPUs in one panel have no common one."""
    if scene.together:
        return
    for index, ridge in _drawn(scene):
        if (ridge["kind"], ridge["level"]) == ("datasheet", "memory"):
            yield Zones(f"ridges[{index}].ridge_flop_per_byte", "memory binds", "compute binds")
            return


def ridges(scene: Scene) -> Iterator[Mark]:
    """The datasheet's ridges with their numbers, and the measured one of the first dtype."""
    for index, ridge in _drawn(scene):
        measured = ridge["kind"] == "measured"
        if measured and (scene.together or ridge["dtype"] != scene.inputs["mma_dtype"][0]):
            continue
        text = _ridge_text(scene, ridge)
        own = replace(_roof_look(scene, ridge), dash="dashed" if measured else "dotted", weight=1.0)
        look = scene.look(ridge["gpu"], replace(own, colour="soft") if own.colour == "ink" else own)
        yield Rule(f"ridges[{index}].ridge_flop_per_byte", "x", text, look=look)


def _ridge_text(scene: Scene, ridge: dict[str, Any]) -> str:
    """``ridge {} FLOP/B``, with what tells it from the others of the panel; short where there are many."""
    words = [scene.name(ridge["gpu"])] if scene.together else []
    if len(scene.inputs["mma_dtype"]) > 1 and ridge["level"] == "memory":
        words.append(ridge["dtype"])
    if ridge["level"] != "memory":
        words.append(ridge["level"])
    if ridge["kind"] == "measured":
        words.append("measured")
    many = len(scene.inputs["mma_dtype"]) > 1 or len(scene.inputs["levels"]) > 1
    main = is_main(ridge, ridge["gpu"], scene.inputs["mma_dtype"][0])
    if scene.together or (many and not main):
        return " ".join([*words, "{}"])
    return " ".join([*words, "ridge {}" if many or scene.panels else "ridge {} FLOP/B"])


def roofs(scene: Scene) -> Iterator[Mark]:
    """The roofs, the first dtype's last: it shares its slope with the others and is the one to be seen."""
    first = (scene.inputs["mma_dtype"][0], "memory")
    every = sorted(_drawn(scene), key=lambda item: (item[1]["dtype"], item[1]["level"]) == first)
    # in one panel with others, measured ones are left out: twice as many roofs as GPUs would hide one another
    found = [item for item in every if not (scene.together and item[1]["kind"] == "measured")]
    for place, (index, ridge) in enumerate(found):
        on_it = sum(_hides(over, ridge) for _, over in found[place + 1 :])
        look = _roof_look(scene, ridge)
        own = f"{scene.name(ridge['gpu'])} " if scene.together else ""
        yield Roof(
            slope=f"ridges[{index}].bytes_per_s",
            flat=f"ridges[{index}].flop_per_s",
            label=_roof_label(scene, ridge),
            look=scene.look(ridge["gpu"], replace(look, weight=look.weight + WIDER * on_it)),
            shown=_roof_sources(scene, ridge),
            on_flat=_flat_text(scene, ridge) if ridge["level"] == "memory" else "",
            on_slope=own + ridge["level"] if ridge["level"] != "memory" else "",
        )


def _hides(over: dict[str, Any], under: dict[str, Any]) -> bool:
    """Whether a roof runs along another of its level; dtypes of one GPU have one slope anyway."""
    if (over["kind"], over["level"]) != (under["kind"], under["level"]):
        return False
    same_slope = over["gpu"] != under["gpu"] and over["bytes_per_s"] == under["bytes_per_s"]
    return bool(same_slope or over["flop_per_s"] == under["flop_per_s"])


def _roof_label(scene: Scene, ridge: dict[str, Any]) -> str:
    """A line of the key; panels share one, and the caption has their numbers."""
    level = "" if ridge["level"] == "memory" else f" over {ridge['level']}"
    name = f"{ridge['dtype']}{level}, {ridge['kind']}"
    if scene.panels:
        return name
    return scene.named(ridge["gpu"], f"{name}: {ceilings(ridge)}")


def ceilings(ridge: dict[str, Any]) -> str:
    """``989.4 TFLOP/s, 3.35 TB/s``."""
    return f"{fmt.tera(ridge['flop_per_s'])} {fmt.rate_unit(ridge['dtype'])}, {fmt.byte_rate(ridge['bytes_per_s'])}"


def _flat_text(scene: Scene, ridge: dict[str, Any]) -> str:
    """What stands at the flat end of a roof: what tells it from the others of its panel."""
    words = [scene.name(ridge["gpu"])] if scene.together else []
    dtypes = scene.inputs["mma_dtype"]
    if len(dtypes) > 1:
        words.append(ridge["dtype"])
    if ridge["kind"] == "measured":
        # further dtypes' are told by their colour, which has its name at the datasheet's roof
        return "measured" if words and ridge["dtype"] == dtypes[0] else ""
    return " ".join(words)


def _roof_look(scene: Scene, ridge: dict[str, Any]) -> Look:
    """Solid for the datasheet's, dashed for a measured one; a colour for each dtype, and for each level."""
    place = scene.inputs["mma_dtype"].index(ridge["dtype"])
    measured = ridge["kind"] == "measured"
    own: Colour = "soft" if measured and not place else DTYPE_COLOURS[place % len(DTYPE_COLOURS)]
    weight = THINNER if place or ridge["level"] != "memory" else 1.0
    return Look(LEVEL_COLOURS.get(ridge["level"], own), dash="dashed" if measured else "solid", weight=weight)


def _roof_sources(scene: Scene, ridge: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Where both of a roof's ceilings were read."""
    found = []
    for roof in scene.results["roofs"]:
        own = (roof["gpu"], roof["kind"]) == (ridge["gpu"], ridge["kind"])
        compute = roof["dtype"] == ridge["dtype"] and roof["value"] == ridge["flop_per_s"]
        memory = roof["level"] == ridge["level"] and roof["value"] == ridge["bytes_per_s"]
        if own and (compute or memory):
            when = f" ({roof['date']})" if roof["date"] else ""
            rate = (
                f"{fmt.tera(roof['value'])} {fmt.rate_unit(ridge['dtype'])}"
                if compute
                else fmt.byte_rate(roof["value"])
            )
            found.append(("peak" if compute else roof["level"], f"{rate}, {roof['source'] or 'no source'}{when}"))
    return (("GPU", ridge["gpu"]), *found)
