"""The names of presets that the knobs go through. Nothing heavy is imported: this runs before the screen is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ..data import find_preset, looks_like_path, preset_files, read_text
from ..errors import InputError
from .state import State

KINDS = {"model": "models", "gpu": "gpus", "dtype": "layouts"}
"""The knobs that hold a preset's name, and the kind of preset."""
_MLA = re.compile(r"^mla:", re.MULTILINE)


@cache
def preset_names(knob: str) -> tuple[str, ...]:
    """The presets of a knob by file name; models are those with a latent, which both paths need."""
    files = preset_files(KINDS[knob])
    # a preset's text tells it, at a hundredth of the time that reading it takes
    return tuple(path.stem for path in files if knob != "model" or _MLA.search(read_text(path)))


def settled(state: State) -> State:
    """The state with presets by their files' names, whatever alias was given.

    Raises:
        InputError: a name that no preset has.
    """
    return state.at(**{knob: settled_name(knob, getattr(state, knob)) for knob in KINDS})


def settled_name(knob: str, name: str) -> str:
    """The file name of the preset that ``name`` means; a path as it is. Raises InputError for neither."""
    kind, text = KINDS[knob], name.strip()
    if any(path.stem == text for path in preset_files(kind)):
        return text
    if kind == "gpus" and text.lower() == "auto":
        return text
    if looks_like_path(text):
        if not Path(text).expanduser().exists():
            raise InputError(f"{text}: there is no such file")
        return text
    try:
        return find_preset(kind, text)[0].stem
    except InputError:
        if kind == "models" and text and Path(text).exists():
            return text  # a folder that holds a config
        raise
