"""Files that people hand in, good and bad, and finding presets by name.

Source: README.md, "Formats and exit codes": stderr says what, where, and what is accepted, in one or two lines. The
kinds of bad files are those of the docstring of mla_calc/data.py.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from annotated_types import MinLen
from hypothesis import given, settings
from hypothesis import strategies as st

from mla_calc.data import (
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_YAML_CHARACTERS,
    find_preset,
    names_of,
    parse_json,
    parse_yaml,
    preset_files,
    read_mapping,
    read_text,
)
from mla_calc.errors import InputError, nearest, shown
from mla_calc.models.attention import Model
from mla_calc.schema import STRICT, Count, Dimension, Quantity, Text, build, problems


def refused(path: Path, read: Callable[[Path], Any] = read_mapping) -> str:
    """The one line that ``path`` is refused with; it names the file."""
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1, message
    assert path.name.replace("\0", "\\x00") in message
    assert len(message) < 400 + len(str(path)), message
    return message.removeprefix(str(path))


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


Write = Callable[[str, str | bytes], Path]
BOTH = pytest.mark.parametrize("name", ["bad.yaml", "bad.json"])


# --- what is not text


@BOTH
def test_missing(tmp_path: Path, name: str) -> None:
    assert "No such file" in refused(tmp_path / name)


@BOTH
def test_a_directory(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert "directory" in refused(tmp_path / name)


def test_a_file_taken_for_a_directory(written: Write) -> None:
    path = written("file.yaml", "a: 1") / "config.json"
    assert "cannot be read" in refused(path)


def test_a_name_longer_than_names_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_mapping(tmp_path / ("x" * 5000 + ".yaml"))


def test_a_path_with_a_nul(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path / "a\0b.yaml")


def test_a_path_with_a_line_break(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_mapping(tmp_path / "no\nsuch.yaml")
    assert len(str(caught.value).splitlines()) == 1


@BOTH
@pytest.mark.parametrize("content", [b"", b" ", b"\n\n\t  \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n"], ids=ascii)
def test_empty(written: Write, name: str, content: bytes) -> None:
    assert "empty" in refused(written(name, content))


@BOTH
@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)),
        b"\x00" * 100,
        b"a: 1\x00",
        b"\x80\x81\x82",
        b"a: \xff\xfe",
        "a: 1".encode("utf-16"),
        "a: 1".encode("utf-16-le"),
        "a: 1".encode("utf-16-be"),
        "a: 1".encode("utf-32"),
        "a: ü".encode("latin-1"),
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    ],
    ids=lambda content: ascii(content[:8]),
)
def test_not_text(written: Write, name: str, content: bytes) -> None:
    assert "not a text file" in refused(written(name, content))


@BOTH
def test_too_large(written: Write, name: str) -> None:
    path = written(name, b"a: 1\n" + b"#" * MAX_FILE_BYTES)
    assert f"{MAX_FILE_BYTES:,}" in refused(path)


def test_as_large_as_is_accepted(written: Write) -> None:
    content = b'{"a": 1}'
    assert read_mapping(written("large.json", content + b" " * (MAX_FILE_BYTES - len(content)))) == {"a": 1}
    content = b"a: 1\n"
    room = MAX_YAML_CHARACTERS - len(content)
    assert read_mapping(written("large.yaml", content + b"#" * room)) == {"a": 1}
    assert f"{MAX_YAML_CHARACTERS:,}" in refused(written("larger.yaml", content + b"#" * (room + 1)))
    assert MAX_FILE_BYTES == 4 * 2**20


def test_a_file_without_an_end() -> None:
    # its size says 0
    assert f"{MAX_FILE_BYTES:,}" in refused(Path("/dev/zero"), read_text)


# --- what is read


@pytest.mark.parametrize("name", ["good.json", "good.yaml", "good.yml", "good", "GOOD.JSON"])
def test_a_byte_order_mark_is_no_part_of_the_text(written: Write, name: str) -> None:
    assert read_mapping(written(name, b'\xef\xbb\xbf{"a": 1, "b": ["\xc3\xbc"]}')) == {"a": 1, "b": ["ü"]}


def test_yaml_as_presets_are_written(written: Write) -> None:
    text = "# a comment\nname: x\nmla: {heads: 2}\nnotes:\n  - 'a: b'\nvalue: 1.5\nnone:\nday: 2026-11-29\n"
    assert read_mapping(written("good.yaml", text)) == {
        "name": "x",
        "mla": {"heads": 2},
        "notes": ["a: b"],
        "value": 1.5,
        "none": None,
        "day": datetime.date(2026, 11, 29),
    }


def test_windows_line_ends(written: Write) -> None:
    assert read_mapping(written("good.yaml", b"a: 1\r\nb: 2\r\n")) == {"a": 1, "b": 2}


def test_one_document_with_its_marks(written: Write) -> None:
    assert read_mapping(written("good.yaml", "---\na: 1\n...\n")) == {"a": 1}


@pytest.mark.parametrize(
    ("content", "found"),
    [("[1, 2]", "a list"), ("- a\n- b\n", "a list"), ('"a"', "a string"), ("1", "a number"), ("true", "true or false")],
)
@BOTH
def test_not_a_mapping_at_the_top(written: Write, name: str, content: str, found: str) -> None:
    if name.endswith("json") and content.startswith("-"):
        content = '["a", "b"]'
    assert found in refused(written(name, content))


@pytest.mark.parametrize(
    ("name", "content"), [("bad.json", "null"), ("bad.yaml", "# nothing\n"), ("bad.yaml", "---\n")]
)
def test_nothing_at_the_top(written: Write, name: str, content: str) -> None:
    assert "nothing" in refused(written(name, content))


# --- keys


@pytest.mark.parametrize(
    ("name", "content", "key"),
    [
        ("bad.yaml", "one: 1\ntwo: 2\none: 3\n", "one"),
        ("bad.yaml", "a:\n  b:\n    - {deep: 1, deep: 1}\n", "deep"),
        ("bad.yaml", "{a: 1, 'a': 2}", "a"),
        ("bad.json", '{"one": 1, "two": 2, "one": 1}', "one"),
        ("bad.json", '{"a": [{"b": {"deep": 1, "deep": 1}}]}', "deep"),
        ("bad.json", '{"a": 1, "\\u0061": 2}', "a"),
    ],
)
def test_a_key_that_stands_twice(written: Write, name: str, content: str, key: str) -> None:
    message = refused(written(name, content))
    assert repr(key) in message
    assert "twice" in message


@pytest.mark.parametrize(
    ("content", "line"), [("one: 1\ntwo: 2\none: 3\n", 3), ("a:\n  b: 1\n\n  # here\n  b: 2\n", 5)]
)
def test_a_key_that_stands_twice_in_yaml_is_shown_by_line(written: Write, content: str, line: int) -> None:
    assert refused(written("bad.yaml", content)).startswith(f":{line}:")


@pytest.mark.parametrize(
    "content",
    [
        "1: x",
        "a: 1\n2.5: x",
        "true: x",
        "yes: x",
        "null: x",
        "~: x",
        "2026-11-29: x",
        "[a, b]: x",
        "{a: b}: x",
        "<<: {a: 1}",
    ],
)
def test_a_key_that_is_not_a_string(written: Write, content: str) -> None:
    message = refused(written("bad.yaml", content))
    assert "not a string" in message
    assert message.startswith(f":{len(content.splitlines())}:")
    assert "Node(" not in message  # what the parser holds inside is no answer


def test_a_long_key_is_cut(written: Write) -> None:
    for name, content in (("a.yaml", "{0}: 1\n{0}: 2"), ("a.json", '{{"{0}": 1, "{0}": 2}}')):
        refused(written(name, content.format("k" * 900)))


# --- what YAML can do that a preset needs not


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a: &x 1\nb: *x\n", 1),
        ("a: 1\nb: &anchor {c: 1}\n", 2),
        ("a: *nowhere", 1),
        ("&x a: 1", 1),
        ("a: 1\nb:\n  - &x [1]\n  - *x\n", 3),
    ],
)
def test_anchors_and_aliases(written: Write, content: str, line: int) -> None:
    message = refused(written("bad.yaml", content))
    assert message.startswith(f":{line}: ")
    assert "anchors and aliases" in message


def test_a_billion_laughs(written: Write) -> None:
    lines = ["a0: &a0 [lol, lol]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    message = refused(written("bomb.yaml", "\n".join(lines)))
    assert message.startswith(":1: ")
    assert "anchors and aliases" in message


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a: !!python/object/apply:os.system ['true']", 1),
        ("a: 1\nb: !!python/name:os.system x", 2),
        ("!!python/object:builtins.object {}", 1),
        ("a: !mine 1", 1),
        ("a: !!binary aGk=", 1),
        ("a: !!set {b}", 1),
        ("a: !!int '3'", 1),
        ("%TAG ! tag:example.com,2026:\n---\na: !x 1", 3),
        ("a: !a%0Ab 1", 1),  # a line break in a tag
    ],
)
def test_tags(written: Write, content: str, line: int) -> None:
    message = refused(written("bad.yaml", content))
    assert message.startswith(f":{line}: ")
    assert "tags" in message


@pytest.mark.parametrize(
    ("content", "line"), [("a: 1\n---\nb: 2\n", 2), ("---\na: 1\n...\n---\nb: 2\n", 4), ("a: 1\n---\n", 2)]
)
def test_two_documents(written: Write, content: str, line: int) -> None:
    message = refused(written("bad.yaml", content))
    assert message.startswith(f":{line}: ")
    assert "document" in message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("flow.yaml", "[" * 100_000),
        ("closed.yaml", "[" * 100_000 + "]" * 100_000),
        ("maps.yaml", "{a: " * 60_000),
        ("block.yaml", "- " * 100_000 + "x"),
        ("keys.yaml", "\n".join(" " * n + "a:" for n in range(600))),
        ("open.json", "[" * 100_000),
        ("closed.json", "[" * 100_000 + "]" * 100_000),
        ("maps.json", '{"a":' * 100_000 + "1" + "}" * 100_000),
        ("under-python's-limit.json", '{"a":' * 500 + "1" + "}" * 500),
    ],
)
def test_nested_without_end(written: Write, name: str, content: str) -> None:
    assert "nest" in refused(written(name, content))


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_nesting_that_is_accepted(written: Write, suffix: str) -> None:
    def nested(levels: int) -> str:
        return '{"a":' * levels + "1" + "}" * levels

    assert read_mapping(written(f"good.{suffix}", nested(MAX_DEPTH)))["a"]
    assert f"{MAX_DEPTH}" in refused(written(f"bad.{suffix}", nested(MAX_DEPTH + 1)))


def test_both_formats_nest_as_deep() -> None:
    for levels in (MAX_DEPTH, MAX_DEPTH + 1):
        text = "[" * levels + "]" * levels
        outcomes = []
        for parse in (parse_json, parse_yaml):
            try:
                parse(text, "x")
                outcomes.append(True)
            except InputError:
                outcomes.append(False)
        assert outcomes == [levels <= MAX_DEPTH] * 2


# --- values


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_json_numbers_that_are_none(written: Write, value: str) -> None:
    assert value.lstrip("-") in refused(written("bad.json", f'{{"a": [1, {value}]}}'))


def test_a_json_number_too_large_for_a_float(written: Write) -> None:
    # parse_json: "NaN and infinities refused"; Python reads 1e999 as one
    refused(written("bad.json", '{"a": 1e999}'))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a: [1\nb: 2\n", 2),
        ("a: 1\n b: 2\n", 2),
        ("a: 1\nb\nc: 2\n", 3),
        ("a: 1\nb: 'open\n", 3),
        ("a: 1\n\tb: 2\n", 2),
        ("a: {b: 1\n", 2),
        ("a: 1\nb: @x\n", 2),
        ("a: 1\nb: [2]]\n", 2),
    ],
)
def test_broken_yaml_by_line(written: Write, content: str, line: int) -> None:
    # where libyaml notices: what is left open is noticed at the end
    assert refused(written("bad.yaml", content)).startswith(f":{line}: not valid YAML: ")


@pytest.mark.parametrize("content", ["a: \x07", "a: \x1b[31m", "a: \x7f", "a: \ufffe"], ids=ascii)
def test_control_characters(written: Write, content: str) -> None:
    message = refused(written("bad.yaml", content))
    assert all(character.isprintable() for character in message)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('{"a": 1,}', 1),
        ('{"a": 1\n "b": 2}', 2),
        ("{'a': 1}", 1),
        ('{\n"a": 1,\n"b": tru\n}', 3),
        ('{"a": 1} {"b": 2}', 1),
        ('{"a": 1}\n// done', 2),
        ('{"a": 1', 1),
        ('{"a": "open', 1),
        ('{"a": "tab\there"}', 1),
        ('{"a": 01}', 1),
        ('{"a": .5}', 1),
        ('{"a": +1}', 1),
    ],
)
def test_broken_json_by_line(written: Write, content: str, line: int) -> None:
    message = refused(written("bad.json", content))
    assert message.startswith(f":{line}: not valid JSON: ")


def test_json_by_its_suffix_alone(written: Write) -> None:
    # YAML that is no JSON is refused in a .json file, and read in any other
    content = "{a: 1}"
    assert "not valid JSON" in refused(written("a.json", content))
    assert read_mapping(written("a.yaml", content)) == {"a": 1}


@pytest.mark.parametrize(
    "value", ["2026-13-01", "2026-02-30", "2026-99-99", "2026-01-01 25:00:00", "2001-01-01 00:00:00 +99:99"]
)
def test_dates_that_do_not_exist(written: Write, value: str) -> None:
    assert "cannot read" in refused(written("bad.yaml", f"a: {value}"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bad.yaml", "a: " + "9" * 5000),
        ("bad.json", '{"a": ' + "9" * 5000 + "}"),
        ("bad.json", '{"a": -' + "9" * 5000 + "}"),
        ("bad.yaml", "a: 0x_"),
    ],
)
def test_integers_that_python_does_not_read(written: Write, name: str, content: str) -> None:
    refused(written(name, content))


def test_a_message_says_what_it_found_once(written: Write) -> None:
    """Not wrapped in another message about something else."""
    for name, content in (
        ("a.yaml", "a: &x 1"),
        ("b.yaml", "a: !x 1"),
        ("c.yaml", "a: 1\n---\nb: 1"),
        ("d.yaml", "- " * 100 + "x"),
        ("e.json", '{"a": NaN}'),
        ("f.json", '{"a": 1, "a": 1}'),
    ):
        path = written(name, content)
        message = refused(path)
        assert str(path) not in message
        assert "too long" not in message
        assert "cannot read" not in message


WORDS = st.text("ab:-?[]{},&*!|>'\"%@#\n \t01.~<=\\x\0\ufeff\u2028", max_size=40)


@given(WORDS | st.text(max_size=60))
@settings(max_examples=200)
def test_any_yaml_is_a_value_or_one_line(text: str) -> None:
    check_any(parse_yaml, text)


@given(WORDS | st.text('{}[]":,0123456789.eE+-truefalsnl \n\\ud8', max_size=40) | st.text(max_size=60))
@settings(max_examples=200)
def test_any_json_is_a_value_or_one_line(text: str) -> None:
    check_any(parse_json, text)


def check_any(parse: Callable[[str, str], Any], text: str) -> None:
    message = error_of(lambda: parse(text, "file.x"))
    assert message is None or (message.startswith("file.x") and len(message.splitlines()) == 1)


def error_of(call: Callable[[], object]) -> str | None:
    """The message of the InputError that ``call`` raises, if it does."""
    try:
        call()
    except InputError as error:
        return str(error)
    return None


@given(st.binary(max_size=200), st.sampled_from(["x.yaml", "x.json"]))
@settings(max_examples=150)
def test_any_bytes_are_a_mapping_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    message = error_of(lambda: read_mapping(path))
    if message is None:
        assert isinstance(read_mapping(path), dict)
    else:
        assert str(path) in message
        assert len(message.splitlines()) == 1


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES)
@settings(max_examples=150)
def test_json_comes_back_as_it_was(value: Any) -> None:
    assert parse_json(json.dumps(value), "x") == value


# --- presets by name


@pytest.mark.parametrize(
    ("kind", "name", "stem"),
    [
        ("models", "deepseek-v3", "deepseek-v3"),
        ("models", "DeepSeek-V3", "deepseek-v3"),
        ("models", "DSV3", "deepseek-v3"),
        ("models", "  dsv3 ", "deepseek-v3"),
        ("models", "deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("models", "DEEPSEEK-AI/DEEPSEEK-V3-0324", "deepseek-v3"),
        ("models", "dsv32", "deepseek-v3.2"),
        ("models", "deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.2"),
        ("models", "llama3-70b", "llama3-70b"),
        ("gpus", "h20", "h20-96gb"),
        ("gpus", "H200", "h200-sxm-141gb"),
        ("gpus", "NVIDIA H100 SXM5 80GB", "h100-sxm5-80gb"),
        ("layouts", "FP8_E4M3", "fp8"),
    ],
)
def test_presets_by_any_of_their_names(kind: str, name: str, stem: str) -> None:
    path, preset = find_preset(kind, name)
    assert path.stem == stem
    assert preset == read_mapping(path)


@pytest.mark.parametrize("kind", ["models", "gpus", "layouts"])
def test_every_name_finds_its_own_file(kind: str) -> None:
    for file in preset_files(kind):
        for name in names_of(read_mapping(file), file):
            for spelled in (name, name.upper(), name.lower()):
                assert find_preset(kind, spelled)[0] == file


@pytest.mark.parametrize(
    ("kind", "name", "offered"),
    [
        ("models", "deepseek-v33", "deepseek-v3"),
        ("models", "dsv", "dsv3"),
        ("models", "lama3-70b", "llama3-70b"),
        ("gpus", "h101", "h100"),
        ("gpus", "H-200", "h200"),
        ("layouts", "bf17", "bf16"),
    ],
)
def test_the_nearest_name_is_offered(kind: str, name: str, offered: str) -> None:
    with pytest.raises(InputError) as caught:
        find_preset(kind, name)
    assert repr(name) in str(caught.value)
    assert offered in (caught.value.hint or "").lower()


@pytest.mark.parametrize(("kind", "noun"), [("models", "model"), ("gpus", "GPU"), ("layouts", "layout")])
@pytest.mark.parametrize(
    "name", ["", " ", "zzzzzzzzzzzzzzzz", "a\nb", "a\0b", "../models/deepseek-v3", "*", "q" * 999], ids=ascii
)
def test_no_such_preset(kind: str, noun: str, name: str) -> None:
    with pytest.raises(InputError) as caught:
        find_preset(kind, name)
    message = str(caught.value)
    assert message.startswith(f"no {noun} preset")
    assert len(message.splitlines()) == 1
    assert caught.value.hint


def test_a_part_of_a_name_is_no_name() -> None:
    # "h20" begins "h200": names are matched whole
    assert find_preset("gpus", "h20")[0] != find_preset("gpus", "h200")[0]
    with pytest.raises(InputError):
        find_preset("models", "deepseek")


def test_nearest_and_shown() -> None:
    assert nearest("cahce", ["cache", "flops"]) == "did you mean cache?"
    assert nearest("qqqq", ["cache", "flops"]) is None
    assert shown("x" * 999) == repr("x" * 999)[:57] + "..."
    assert "\n" not in shown("a\nb")


# --- records


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    __pydantic_config__ = STRICT

    heads: Dimension
    rope: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    __pydantic_config__ = STRICT

    name: Text
    inner: Inner
    figure: Quantity = 1.0
    listed: Annotated[tuple[Text, ...], MinLen(0)] = ()


def mapping(**changes: Any) -> dict[str, Any]:
    return {"name": "x", "inner": {"heads": 2}} | changes


def test_a_record_is_built() -> None:
    assert build(Record, mapping(figure=2, listed=["a"]), "f.yaml") == Record(
        name="x", inner=Inner(heads=2), figure=2.0, listed=("a",)
    )


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"name": 3}, "name"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"inner": {}}, "inner.heads"),
        ({"inner": {"heads": 0}}, "inner.heads"),
        ({"inner": {"heads": -1}}, "inner.heads"),
        ({"inner": {"heads": "2"}}, "inner.heads"),
        ({"inner": {"heads": True}}, "inner.heads"),
        ({"inner": {"heads": 2.0}}, "inner.heads"),
        ({"inner": {"heads": (1 << 24) + 1}}, "inner.heads"),
        ({"inner": {"heads": 10**400}}, "inner.heads"),
        ({"inner": {"heads": 2, "rope": -1}}, "inner.rope"),
        ({"inner": {"heads": 2, "ropes": 1}}, "inner.ropes"),
        ({"inner": [2]}, "inner"),
        ({"figure": 0}, "figure"),
        ({"figure": -1.5}, "figure"),
        ({"figure": float("nan")}, "figure"),
        ({"figure": float("inf")}, "figure"),
        ({"figure": 2e9}, "figure"),
        ({"listed": "a"}, "listed"),
        ({"listed": ["a", 1]}, "listed.1"),
        ({"other": 1}, "other"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_is_named_by_its_key(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError) as caught:
        build(Record, mapping(**changes), "f.yaml")
    message = str(caught.value)
    assert message.startswith(f"f.yaml: {key}: ")
    assert len(message.splitlines()) == 1
    assert len(message) < 300
    assert [found for found, _ in problems(Record, mapping(**changes))] == [key]


def test_a_missing_key_and_how_many_more() -> None:
    with pytest.raises(InputError, match="is missing") as caught:
        build(Record, {}, "f.yaml")
    assert "1 more" in str(caught.value)
    assert {key for key, _ in problems(Record, {})} == {"name", "inner"}


def test_a_misspelt_key_gets_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        build(Record, mapping(figrue=1), "f.yaml")
    assert "figure" in (caught.value.hint or "")


def test_a_key_with_a_line_break() -> None:
    with pytest.raises(InputError) as caught:
        build(Record, mapping(**{"a\nb": 1}), "f.yaml")
    assert len(str(caught.value).splitlines()) == 1


def test_a_record_without_faults_has_no_problems() -> None:
    assert problems(Record, mapping()) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gqa": {"heads": 8, "hidden_size": 8, "kv_heads": 4, "qk_head_dim": 8, "v_head_dim": 8}}, "exactly one"),
        ({"mla": None}, "exactly one"),
        ({"indexer": {"heads": 1, "head_dim": 128, "topk": 8, "layers": 9}}, "more than cached_layers"),
    ],
)
def test_a_models_own_rules_are_named(changes: dict[str, Any], said: str) -> None:
    mla = {
        "heads": 8,
        "hidden_size": 8,
        "kv_lora_rank": 8,
        "q_lora_rank": None,
        "qk_nope_head_dim": 4,
        "qk_rope_head_dim": 0,
        "v_head_dim": 4,
    }
    whole = {"name": "x", "mla": mla, "cached_layers": 8, "transformer_layers": 8} | changes
    with pytest.raises(InputError, match=said):
        build(Model, whole, "f.yaml")
