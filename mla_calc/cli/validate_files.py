"""The files of ``validate``: none is written over one that is read, or over another that is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

from ..data import looks_like_path
from ..errors import InputError
from ..report.write import STDOUT, check_replaceable

MAY_BE_ONE = (
    {"--gpu", "--calibrate"},  # a preset that is compared with and gets new constants
    {"--record", "--report's run.json"},  # the same record
    {"--replay", "--report's run.json"},  # likewise: it is left as it is
)
MODEL_FILES = ("config.json", "params.json")


def check_apart(
    read: Mapping[str, Path | str | None],
    written: Mapping[str, Path | None],
    report: Path | None,
    names: tuple[str, ...],
) -> None:
    """Refuse an output that is an input, or another output.

    Args:
        read: by option, the files that are read; a text is one only where it looks like a path.
        written: by option, the files that are written.
        report: the report's folder.
        names: the files that are written into it.

    Raises:
        InputError: two options mean one file.
    """
    inputs = [(option, path) for option, value in read.items() for path in _paths(value)]
    outputs = [(option, path) for option, path in written.items() if path is not None and path != STDOUT]
    if report is not None:
        outputs += [(f"--report's {name}", report / name) for name in names]
    pairs = [*((out, taken) for out in outputs for taken in inputs), *combinations(outputs, 2)]
    for (option, path), (other, its) in pairs:
        if {option, other} not in MAY_BE_ONE and same_file(path, its):
            raise InputError(f"{option} {path}: is the same file as that of {other}")


def check_writable(written: Mapping[str, Path | None]) -> None:
    """Refuse what could not be written, before there is anything to write. Raises InputError."""
    for option, path in written.items():
        if path is not None and path != STDOUT and (path.is_file() or not path.exists()):
            check_replaceable(path, option)


def same_file(one: Path, other: Path) -> bool:
    """Whether both paths mean one file, there or to be made; devices and pipes are none."""
    if any(path.exists() and not path.is_file() for path in (one, other)):
        return False
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def _paths(value: Path | str | None) -> Iterator[Path]:
    """The files that an option's value means; of a model's folder, those that it is read from."""
    if value is None or not looks_like_path(value):
        return
    path = Path(value).expanduser()
    yield from (path / name for name in MODEL_FILES) if path.is_dir() else (path,)
