"""Columns of any length, chunk by chunk, to CSV, JSON or Parquet.

A chunk is a mapping from dotted names to arrays of one length; all chunks have the same names. Entries are
integers, finite floats, or words that need no quotes. Only one chunk is held at a time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, nearest, shown
from .record import flattened
from .write import check_suffix, replacing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Chunk = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What a JSON document has around its results, and a Parquet file in its metadata."""

    schema: str
    inputs: dict[str, Any]
    notes: tuple[str, ...]
    sources: tuple[str, ...]


def chosen_format(format_name: str | None, output: Path | None) -> str:
    """The format asked for, or the one that ``output``'s suffix means, or CSV.

    Raises:
        InputError: an unknown format or suffix, or Parquet without a file or without pyarrow.
    """
    suffix = output.suffix.lower() if output else ".csv"
    chosen = suffix.removeprefix(".") if format_name is None else format_name
    if chosen not in FORMATS:
        accepted = ", ".join(FORMATS)
        if format_name is not None:
            raise InputError(f"--format {shown(chosen)}: one of {accepted} is accepted", nearest(chosen, FORMATS))
        raise InputError(f"--output {output}: the suffix {suffix or '(none)'} names no format: {accepted}, or --format")
    if chosen == "parquet":
        if output is None or (output.exists() and not (output.is_file() or output.is_dir())):
            raise InputError("Parquet is not written to a terminal, pipe or device: --output FILE names a file")
        _parquet_module()
    check_suffix(chosen, output)
    return chosen


def write(chunks: Iterable[Chunk], envelope: Envelope, format_name: str, output: Path | None) -> None:
    """Write the chunks to ``output``, whole or not at all, or to stdout.

    Raises:
        InputError: ``output`` cannot be written, or pyarrow is not installed.
    """
    try:
        if output is None:
            sys.stdout.writelines(TEXT_FORMATS[format_name](chunks, envelope))
            sys.stdout.flush()
            return
        with replacing(output) as path:
            if format_name == "parquet":
                _to_parquet(chunks, envelope, path)
            else:
                with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
                    stream.writelines(TEXT_FORMATS[format_name](chunks, envelope))
    except BrokenPipeError:
        raise  # the reader left, which is no error
    except OSError as error:
        raise InputError(f"{output or 'stdout'}: cannot be written: {error.strerror}") from None


def csv_lines(chunks: Iterable[Chunk], envelope: Envelope) -> Iterator[str]:
    """A header of dotted names and one line per row; floats have all their digits."""
    del envelope  # a CSV holds figures alone
    first, every = _peeked(chunks)
    yield ",".join(first) + "\n"
    line = ",".join(["%s"] * len(first)) + "\n"
    for chunk in every:
        # one template for the row is a third faster than csv.writer, and nothing here needs quotes
        yield from map(line.__mod__, zip(*(column.tolist() for column in chunk.values()), strict=True))


def json_lines(chunks: Iterable[Chunk], envelope: Envelope) -> Iterator[str]:
    """The usual document, one result per line; names with dots become nested objects."""
    head, tail = _around_results(envelope)
    first, every = _peeked(chunks)
    names, record = _record_template(first)
    yield head
    separator = "\n    "
    for chunk in every:
        columns = [_json_values(chunk[name]) for name in names]
        for row in zip(*columns, strict=True):
            yield separator + record % row
            separator = ",\n    "
    yield tail


def _around_results(envelope: Envelope) -> tuple[str, str]:
    """The document before and after the entries of ``results``."""
    content = asdict(envelope)
    texts = {key: json.dumps(value, ensure_ascii=False, allow_nan=False) for key, value in content.items()}
    head = f'{{\n  "schema": {texts["schema"]},\n  "inputs": {texts["inputs"]},\n  "results": ['
    return head, f'\n  ],\n  "notes": {texts["notes"]},\n  "sources": {texts["sources"]}\n}}\n'


def _record_template(names: Iterable[str]) -> tuple[list[str], str]:
    """The names in the order in which a record nests them, and the record with ``%s`` for each value."""
    tree: dict[str, Any] = {}
    for name in names:
        *parents, leaf = name.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = "%s"
    return list(flattened(tree)), json.dumps(tree).replace('"%s"', "%s")


def _json_values(column: NDArray[Any]) -> list[Any]:
    """The column's entries, such that ``%s`` writes them as JSON does."""
    values: list[Any] = column.tolist()
    if column.dtype != object:
        return values
    quoted = {word: json.dumps(word) for word in set(values)}
    return [quoted[word] for word in values]


def _to_parquet(chunks: Iterable[Chunk], envelope: Envelope, path: Path) -> None:
    """A row group per chunk; the envelope is the metadata under ``mla-calc``."""
    import pyarrow as pa

    first, every = _peeked(chunks)
    # a path that is no UTF-8 stands in it as in every file
    about = {"mla-calc": json.dumps(asdict(envelope), ensure_ascii=False).encode("utf-8", "backslashreplace")}
    schema = pa.table(dict(first)).schema.with_metadata(about)
    # few distinct values repeat over the grid in words and axes; figures are mostly distinct
    repeated = [field.name for field in schema if pa.types.is_string(field.type) or field.name in envelope.inputs]
    with _parquet_module().ParquetWriter(path, schema, use_dictionary=repeated) as writer:
        for chunk in every:
            writer.write_table(pa.table(dict(chunk), schema=schema))


def _parquet_module() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'mla-calc[parquet]'") from None
    return pyarrow.parquet


def _peeked(chunks: Iterable[Chunk]) -> tuple[Chunk, Iterator[Chunk]]:
    """The first chunk, and all of them."""
    iterator = iter(chunks)
    first = next(iterator)
    return first, chain([first], iterator)


TEXT_FORMATS: dict[str, Callable[[Iterable[Chunk], Envelope], Iterator[str]]] = {
    "csv": csv_lines,
    "json": json_lines,
}
FORMATS = (*TEXT_FORMATS, "parquet")
