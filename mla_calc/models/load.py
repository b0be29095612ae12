"""Finding a model: a preset by name, a preset file, or a model's own config."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..data import kept, looks_like_path, read_mapping, read_preset, refuse_other_kind
from ..errors import InputError, one_line
from ..schema import build
from .attention import Model


@kept
def load_model(name: str | Path) -> Model:
    """The model that ``name`` means.

    ``name`` is a preset's file name, name, alias or Hugging Face id (in any case), the path of a YAML preset,
    or the path of a ``config.json`` (Hugging Face, DeepSeek-native), a Mistral ``params.json``, or a folder
    that holds one.

    Raises:
        InputError: nothing of that name, or a file that cannot be read or is not understood.
    """
    text = str(name)
    if looks_like_path(name):
        return _from_path(Path(text).expanduser())
    try:
        where, mapping = read_preset("models", text)
    except InputError:
        if _exists(text):
            return _from_path(Path(text))
        raise
    return build(Model, mapping, where)


def is_preset(mapping: Mapping[str, Any]) -> bool:
    """Whether a mapping is one of our presets rather than a model's own config."""
    return "cached_layers" in mapping or "mla" in mapping or "gqa" in mapping


def _exists(text: str) -> bool:
    try:
        return bool(text) and Path(text).exists()
    except (OSError, ValueError):  # a name too long for the file system, or with a NUL in it
        return False


def _from_path(path: Path) -> Model:
    from .config import find_config, model_from_config  # a preset's name, the common case, needs no reader

    file = find_config(path)
    mapping = read_mapping(file)
    refuse_other_kind("models", mapping, str(file))
    if is_preset(mapping):
        return build(Model, mapping, str(file))
    return model_from_config(mapping, one_line(str(file)))  # it names the model, and stands in what is written
