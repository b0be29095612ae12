"""Reading YAML and JSON that people hand in, and finding the presets that come with the package.

Nothing read here is trusted: a file may be missing, binary, huge, a YAML bomb, nested a million deep, or
hold the same key twice. Each of these is an :class:`~mla_calc.errors.InputError` that names file and line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from .errors import InputError, nearest, shown

MAX_FILE_BYTES = 4 << 20
MAX_YAML_CHARACTERS = 1 << 18
"""YAML takes seconds a megabyte; the largest preset here has some 20 kB."""
MAX_DEPTH = 64
FILE_SUFFIXES = (".json", ".yaml", ".yml")

TELLING_KEYS = {"models": "cached_layers", "gpus": "peak_tflops", "engines": "release", "layouts": "latent"}
"""The kinds of preset, which are folders of ``presets/``, and for each the key that only it has."""
NOUNS = {"models": "model", "gpus": "GPU", "engines": "engine", "layouts": "layout"}

_Name = TypeVar("_Name")
_Record = TypeVar("_Record")
_kept: dict[tuple[str, str], Any] | None = None


@contextmanager
def presets_kept() -> Iterator[None]:
    """Within the block a name or path is read once: for what answers many times a second, and not for one command."""
    global _kept  # noqa: PLW0603  (one session of one process)
    before, _kept = _kept, {} if _kept is None else _kept
    try:
        yield
    finally:
        _kept = before


def kept(load: Callable[[_Name], _Record]) -> Callable[[_Name], _Record]:
    """A loader that, within :func:`presets_kept`, returns the (frozen) record that it returned for a name before."""

    @wraps(load)
    def loaded(name: _Name) -> _Record:
        records = _kept  # the block may end in another thread meanwhile
        if records is None:
            return load(name)
        key = (load.__qualname__, str(name))
        if key not in records:
            records[key] = load(name)
        record: _Record = records[key]
        return record

    return loaded


def read_text(path: Path, most: int = MAX_FILE_BYTES, what: str = "a preset or config") -> str:
    """The text of ``path`` (UTF-8, not empty); :class:`InputError` where it is not that.

    Args:
        path: the file.
        most: bytes that are read; a larger file is refused.
        what: kind of file, as the refusal calls it.
    """
    try:
        size = path.stat().st_size
        if size > most and path.is_file():
            raise InputError(f"{path}: {size:,} bytes; {what} has at most {most:,}")
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: cannot be read: {reason}") from None
    if len(raw) > most:
        raise InputError(f"{path}: more than {most:,} bytes; {what} is smaller")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InputError(f"{path}: not a text file (UTF-8 is expected)")
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    return text


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping that a YAML or JSON file holds, by its suffix (``.json`` is JSON, all else YAML)."""
    text = read_text(path)
    value = parse_json(text, str(path)) if path.suffix.lower() == ".json" else parse_yaml(text, str(path))
    if not isinstance(value, dict):
        raise InputError(f"{path}: a mapping is expected, found {_kind(value)}")
    return value


def parse_json(text: str, where: str) -> Any:
    """``text`` as JSON, with duplicate keys, NaN and infinities refused."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            seen: set[str] = set()
            twice = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise InputError(f"{where}: the key {shown(twice)} stands twice in one object")
        return found

    def constant(name: str) -> Any:
        raise InputError(f"{where}: {name} is not a number that JSON allows")

    def real(digits: str) -> float:
        value = float(digits)
        return value if abs(value) != float("inf") else constant(digits)

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=real)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}:{error.lineno}: not valid JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deep (more than {MAX_DEPTH} levels)") from None
    except InputError:
        raise
    except ValueError:  # an integer of more digits than Python converts
        raise InputError(f"{where}: holds a number that is too long") from None
    _check_depth(value, where)
    return value


def parse_yaml(text: str, where: str) -> Any:
    """``text`` as YAML by the C loader: one document, no anchors, no tags, no key twice."""
    import yaml

    if len(text) > MAX_YAML_CHARACTERS:
        raise InputError(f"{where}: {len(text):,} characters of YAML; at most {MAX_YAML_CHARACTERS:,} are read")
    try:
        _check_events(text, where)
        return yaml.load(text, Loader=_strict_loader())
    except InputError:
        raise
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = " ".join((error.problem or error.context or "not valid YAML").split())
        raise InputError(f"{where}{line}: not valid YAML: {problem}") from None
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())[:120]
        raise InputError(f"{where}: not valid YAML: {problem}") from None
    except (ValueError, OverflowError) as error:  # a date such as 2026-99-99, an endless integer
        raise InputError(f"{where}: holds a value that YAML cannot read: {error}") from None


def _check_events(text: str, where: str) -> None:
    """Refuse anchors, aliases, tags, depth and second documents before anything is built from them."""
    import yaml

    depth = documents = 0
    event: Any
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InputError(f"{where}:{line}: YAML anchors and aliases are not accepted")
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            raise InputError(f"{where}:{line}: YAML tags are not accepted ({tag})")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise InputError(f"{where}:{line}: nested too deep (more than {MAX_DEPTH} levels)")
        if documents > 1:
            raise InputError(f"{where}:{line}: one YAML document is expected, a second one starts here")


@cache
def _strict_loader() -> Any:
    """The C SafeLoader, with keys that are strings and stand once."""
    import yaml

    class StrictLoader(yaml.CSafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key_node, _ in node.value:
                key = key_node.value
                if key_node.tag != "tag:yaml.org,2002:str":
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {_key_text(key)} is not a string (quote it)", key_node.start_mark
                    )
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {shown(key)} stands twice in one mapping", key_node.start_mark
                    )
                seen.add(key)
            return super().construct_mapping(node, deep=deep)

    return StrictLoader


def _key_text(key: object) -> str:
    """A key as a message quotes it; one that is a list or mapping has no short text."""
    return shown(key) if isinstance(key, str) else "that is a list or mapping"


def _check_depth(value: Any, where: str) -> None:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise InputError(f"{where}: nested too deep (more than {MAX_DEPTH} levels)")


def _children(value: Any) -> Iterator[Any]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (item for item in items if isinstance(item, dict | list))


def _kind(value: object) -> str:
    """What stands where a mapping should, in words."""
    kinds = {type(None): "nothing", list: "a list", str: "a string", bool: "true or false"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else "a single value")


def looks_like_path(name: str | Path) -> bool:
    """Whether ``name`` can only mean a file or folder: it begins like one or ends like a config or preset."""
    text = str(name)
    return isinstance(name, Path) or text.startswith((".", "/", "~")) or text.lower().endswith(FILE_SUFFIXES)


def read_preset(kind: str, name: str | Path) -> tuple[str, dict[str, Any]]:
    """Where the preset of ``kind`` that ``name`` means stands, and its mapping: by name, or a YAML file's path.

    Raises:
        InputError: nothing of that name, a file that cannot be read, or one that holds another kind.
    """
    if not looks_like_path(name):
        path, mapping = find_preset(kind, str(name))
        return f"presets/{kind}/{path.name}", mapping
    path = Path(name).expanduser()
    mapping = read_mapping(path)
    refuse_other_kind(kind, mapping, str(path))
    return str(path), mapping


def kind_of(mapping: Mapping[str, Any]) -> str | None:
    """The kind of preset that a mapping looks like, by the key that only that kind has."""
    return next((kind for kind, key in TELLING_KEYS.items() if key in mapping), None)


def refuse_other_kind(kind: str, mapping: Mapping[str, Any], where: str) -> None:
    """Refuse a preset of one kind where another is asked for."""
    found = kind_of(mapping)
    if found is not None and found != kind:
        raise InputError(f"{where}: is a {NOUNS[found]} preset, a {NOUNS[kind]} is expected here")


@cache
def presets_root() -> Path:
    """The folder of presets: inside the package where it is installed, beside it in a checkout."""
    package = Path(__file__).parent
    for folder in (package / "presets", package.parent / "presets"):
        if (folder / "models").is_dir():
            return folder
    raise InputError(f"the presets are missing from this installation ({package / 'presets'})")


def preset_files(kind: str) -> list[Path]:
    """The YAML files of one kind of preset (``models``, ``gpus``, ``engines``, ``layouts``), by name."""
    return sorted((presets_root() / kind).glob("*.yaml"))


def names_of(preset: Mapping[str, Any], path: Path) -> list[str]:
    """Every name that a preset answers to: its file's, its own, its aliases, its Hugging Face ids."""
    lists = [preset.get(key) for key in ("aliases", "hf")]
    listed = [str(name) for names in lists if isinstance(names, list) for name in names]
    return [path.stem, str(preset.get("name", "")), *listed]


def find_preset(kind: str, name: str) -> tuple[Path, dict[str, Any]]:
    """The preset of ``kind`` that answers to ``name``, upper and lower case alike.

    A file named so is read straight away. Otherwise only the files whose text holds the name are parsed:
    a new preset is one new file, with no index to keep.

    Raises:
        InputError: no preset answers to ``name``; the nearest names are offered.
    """
    wanted = name.strip().lower()
    files = preset_files(kind)
    candidates = [path for path in files if path.stem == wanted]
    candidates += [path for path in files if path.stem != wanted and wanted in _lower_text(path)]
    for path in candidates if wanted else ():
        preset = read_mapping(path)
        if wanted in (known.lower() for known in names_of(preset, path)):
            return path, preset
    known = [known for path in files for known in names_of(read_mapping(path), path) if known]
    noun = NOUNS[kind]
    raise InputError(
        f"no {noun} preset is named {shown(name)}",
        nearest(name, known) or f"`mla-calc presets list` shows all {len(files)} {noun} presets",
    )


def _lower_text(path: Path) -> str:
    return read_text(path).lower()
