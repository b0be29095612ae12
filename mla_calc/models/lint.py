"""What a reviewer would say of a model preset: a figure without a source, a shape that cannot be meant."""

from __future__ import annotations

from dataclasses import fields

from .attention import Model

LEAST_PARAMETERS = 1_000_000

_SOURCED = ("mla", "gqa", "cached_layers", "transformer_layers", "windowed", "recurrent", "indexer", "weights")
_SOURCED_IF_SET = ("mtp_layers", "max_position_embeddings")


def lint(model: Model) -> list[tuple[str, str]]:
    """Doubts about a preset as pairs of a field and a sentence; none for a clean one."""
    return [*_missing_sources(model), *_unknown_sources(model), *_odd_layers(model), *_odd_parameters(model)]


def _missing_sources(model: Model) -> list[tuple[str, str]]:
    if model.sources.get("default"):
        return []
    wanted = [name for name in (*_SOURCED, *_SOURCED_IF_SET) if getattr(model, name) is not None]
    if model.parameters.total is not None or model.parameters.active is not None:
        wanted.append("parameters")
    return [
        (name, "has no source: neither sources.default nor its own") for name in wanted if not model.sources.get(name)
    ]


def _unknown_sources(model: Model) -> list[tuple[str, str]]:
    known = {field.name for field in fields(Model)} | {"default"}
    return [(f"sources.{name}", "names no field of a model") for name in model.sources if name not in known]


def _odd_layers(model: Model) -> list[tuple[str, str]]:
    windowed = model.windowed.layers if model.windowed else 0
    recurrent = model.recurrent.layers if model.recurrent else 0
    found = []
    if windowed + recurrent and model.cached_layers + windowed + recurrent != model.transformer_layers:
        found.append(
            (
                "cached_layers",
                f"{model.cached_layers} + {windowed} windowed + {recurrent} recurrent are not the "
                f"{model.transformer_layers} transformer layers",
            )
        )
    if not windowed + recurrent and model.cached_layers % model.transformer_layers:
        found.append(("cached_layers", f"is no multiple of the {model.transformer_layers} transformer layers"))
    return found


def _odd_parameters(model: Model) -> list[tuple[str, str]]:
    """Parameters in billions where the count itself is meant, or more active ones than there are."""
    total, active = model.parameters.total, model.parameters.active
    found = [
        (f"parameters.{name}", f"{value:,} is no model's: the count itself is meant, not billions")
        for name, value in (("total", total), ("active", active))
        if value is not None and value < LEAST_PARAMETERS
    ]
    if total is not None and active is not None and active > total:
        found.append(("parameters.active", f"{active:,} are more than the total of {total:,}"))
    return found
