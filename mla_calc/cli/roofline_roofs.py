"""The roofs of ``roofline``'s figure: ceilings, ridges with their numbers, zones; one panel of it is a scene."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..report import format as fmt
from ..report.chart import Colour, Look, Mark, Roof, Rule, Zones
from .roofline_tables import short_names

COLOURS: tuple[Colour, ...] = ("blue", "orange", "green", "pink", "sky", "soft")
"""Of several GPUs in one panel."""
LEVEL_COLOURS: dict[str, Colour] = {"link": "sky", "pcie": "pink"}

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
        return replace(look, colour=COLOURS[self.gpus.index(gpu) % len(COLOURS)])

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

    Levels below the first one drawn have the first dtype's roof alone: all pairs would hide one another.
    """
    levels, dtypes = scene.inputs["levels"], scene.inputs["mma_dtype"]
    for dtype in dtypes:
        for index, ridge in enumerate(scene.results["ridges"]):
            if ridge["gpu"] not in scene.gpus or ridge["dtype"] != dtype:
                continue
            if ridge["level"] == levels[0] or (dtype == dtypes[0] and ridge["level"] in levels):
                yield index, ridge


def zones(scene: Scene) -> Iterator[Mark]:
    """Shaded around the ridge of the first GPU and dtype; several GPUs in one panel have no common one."""
    if scene.together:
        return
    for index, ridge in _drawn(scene):
        if (ridge["kind"], ridge["level"]) == ("datasheet", scene.inputs["levels"][0]):
            yield Zones(f"ridges[{index}].ridge_flop_per_byte", "memory binds", "compute binds")
            return


def ridges(scene: Scene) -> Iterator[Mark]:
    """The datasheet's ridges with their numbers, and the measured one of the first dtype."""
    for index, ridge in _drawn(scene):
        measured = ridge["kind"] == "measured"
        if measured and (scene.together or ridge["dtype"] != scene.inputs["mma_dtype"][0]):
            continue
        text = _ridge_text(scene, ridge)
        look = scene.look(ridge["gpu"], Look("soft", dash="dashed" if measured else "dotted"))
        yield Rule(f"ridges[{index}].ridge_flop_per_byte", "x", text, look=look)


def _ridge_text(scene: Scene, ridge: dict[str, Any]) -> str:
    """``ridge {} FLOP/B``, with what tells it from the others of the panel."""
    words = [scene.name(ridge["gpu"])] if scene.together else []
    if len(scene.inputs["mma_dtype"]) > 1:
        words.append(ridge["dtype"])
    if ridge["level"] != "memory":
        words.append(ridge["level"])
    if ridge["kind"] == "measured":
        words.append("measured")
    return " ".join([*words, "{}"]) if scene.together else " ".join([*words, "ridge {} FLOP/B"])


def roofs(scene: Scene) -> Iterator[Mark]:
    """The roofs, the first dtype's last: it shares its slope with the others and is the one to be seen."""
    first = (scene.inputs["mma_dtype"][0], scene.inputs["levels"][0])
    for index, ridge in sorted(_drawn(scene), key=lambda item: (item[1]["dtype"], item[1]["level"]) == first):
        measured = ridge["kind"] == "measured"
        if measured and scene.together:
            continue  # twice as many roofs as GPUs would hide one another
        level = "" if ridge["level"] == "memory" else f" over {ridge['level']}"
        numbers = f"{fmt.tera(ridge['flop_per_s'])} TFLOP/s, {fmt.byte_rate(ridge['bytes_per_s'])}"
        yield Roof(
            slope=f"ridges[{index}].bytes_per_s",
            flat=f"ridges[{index}].flop_per_s",
            label=scene.named(ridge["gpu"], f"{ridge['dtype']}{level}, {ridge['kind']}: {numbers}"),
            look=scene.look(ridge["gpu"], _roof_look(scene, ridge)),
            shown=_roof_sources(scene, ridge),
        )


def _roof_look(scene: Scene, ridge: dict[str, Any]) -> Look:
    measured, first = ridge["kind"] == "measured", ridge["dtype"] == scene.inputs["mma_dtype"][0]
    own: Colour = "soft" if measured or not first else "ink"
    return Look(LEVEL_COLOURS.get(ridge["level"], own), dash="dashed" if measured else "solid")


def _roof_sources(scene: Scene, ridge: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Where both of a roof's ceilings were read."""
    found = []
    for roof in scene.results["roofs"]:
        own = (roof["gpu"], roof["kind"]) == (ridge["gpu"], ridge["kind"])
        compute = roof["dtype"] == ridge["dtype"] and roof["value"] == ridge["flop_per_s"]
        memory = roof["level"] == ridge["level"] and roof["value"] == ridge["bytes_per_s"]
        if own and (compute or memory):
            when = f" ({roof['date']})" if roof["date"] else ""
            found.append(("peak" if compute else roof["level"], f"{roof['source'] or 'no source'}{when}"))
    return (("GPU", ridge["gpu"]), *found)
