"""Numbers as people type them. Source: README.md, "Commands": lists `1,2,4`, ranges `1k:64k:x2`, k is 1024."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mla_calc.errors import InputError
from mla_calc.sizes import MAX_POINTS, MAX_TOKENS, parse_count, parse_counts, parse_size

Value = TypeVar("Value")


def value_or_error(call: Callable[[], Value]) -> Value | str:
    """What ``call`` returns, or the message of its InputError."""
    try:
        return call()
    except InputError as error:
        return str(error)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("4096", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("128k", 131_072),
        ("1m", 1_048_576),
        ("1M", 1_048_576),
        ("1024m", 1 << 30),
        ("0001", 1),
        ("0" * 30 + "4k", 4096),
        (" 8 ", 8),
        ("8\n", 8),
    ],
)
def test_counts(text: str, value: int) -> None:
    assert parse_count(text, "--context") == value
    assert parse_counts(text, "--context") == (value,)


GARBAGE = [
    "",
    " ",
    "k",
    "4kk",
    "4 k",
    "4g",
    "4.5",
    "4.5k",
    "1e3",
    "0x10",
    "1_000",
    "-1",
    "+1",
    "--",
    "nan",
    "inf",
    "four",
    "1;2",
    "²",  # a digit to str.isdigit, not a number to int
    "①",
    "½",
    "1\x00",
    "1\n2",
    "9" * 16,
    "9" * 5000,
]


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: ascii(text[:12]))
def test_what_is_not_a_count_is_named(text: str) -> None:
    for parse in (parse_count, parse_counts):
        with pytest.raises(InputError) as caught:
            parse(text, "--context")
        message = str(caught.value)
        assert message.startswith("--context")
        assert "\n" not in message
        assert len(message) < 200


@pytest.mark.parametrize("text", ["４", "٤", "४k", "1２"], ids=ascii)
def test_digits_of_other_scripts_are_digits_or_refused(text: str) -> None:
    """Read as the number that they are, or refused; never another number, never another exception."""
    meant = {"４": 4, "٤": 4, "४k": 4096, "1２": 12}[text]
    value = value_or_error(lambda: parse_count(text, "--context"))
    assert value == meant or (isinstance(value, str) and value.startswith("--context"))


@pytest.mark.parametrize(
    ("text", "least", "most", "fine"),
    [
        ("0", 1, 9, False),
        ("0", 0, 9, True),
        ("1", 1, 9, True),
        ("9", 1, 9, True),
        ("10", 1, 9, False),
        ("1k", 1, 1024, True),
        ("1k", 1, 1023, False),
        ("1", 2, 9, False),
        ("1025m", 1, MAX_TOKENS, False),
        # whole numbers too, of any length or sign
        ("9" * 16, 1, MAX_TOKENS, False),
        ("99999999999999999999999", 0, 9, False),
        ("9" * 5000, 1, 8, False),
        ("9" * 5000 + "k", 1, 8, False),
        ("-1", 0, 9, False),
        ("-4k", 1, 8192, False),
    ],
    ids=lambda each: str(each)[:24],
)
def test_limits_are_included(text: str, least: int, most: int, fine: bool) -> None:
    if fine:
        parse_count(text, "--tp", least, most)
    else:
        with pytest.raises(InputError, match="--tp") as caught:
            parse_count(text, "--tp", least, most)
        assert f"{least:,}" in str(caught.value)
        assert f"{most:,}" in str(caught.value)
        with pytest.raises(InputError):
            parse_counts(text, "--tp", least, most)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2,4,8", (1, 2, 4, 8)),
        (" 1 , 2 ", (1, 2)),
        ("8,1,4", (8, 1, 4)),  # in the order given
        ("1,2,1,2k,2048", (1, 2, 2048)),  # each once
        # ranges, ends included
        ("1k:64k:x2", (1024, 2048, 4096, 8192, 16_384, 32_768, 65_536)),
        ("1:9:+2", (1, 3, 5, 7, 9)),
        ("1:10:+2", (1, 3, 5, 7, 9)),
        ("1:8:x2", (1, 2, 4, 8)),
        ("1:9:x2", (1, 2, 4, 8)),
        ("3:100:x5", (3, 15, 75)),
        ("5:5:+1", (5,)),
        ("5:5:x2", (5,)),
        ("5:6:+100", (5,)),
        ("1k:4k:+1k", (1024, 2048, 3072, 4096)),
        # lists of ranges
        ("1,4:6:+1,5,2:8:x2", (1, 4, 5, 6, 2, 8)),
    ],
)
def test_lists_and_ranges(text: str, values: tuple[int, ...]) -> None:
    assert parse_counts(text, "--tp") == values


def test_a_range_may_start_at_0_where_0_is_accepted() -> None:
    assert parse_counts("0:4:+2", "--prefix", least=0) == (0, 2, 4)
    with pytest.raises(InputError, match="--prefix"):
        parse_counts("0:4:+2", "--prefix")
    with pytest.raises(InputError, match="--prefix"):  # 0 times two is 0 for ever
        parse_counts("0:4:x2", "--prefix", least=0)


@pytest.mark.parametrize(
    "text",
    [
        "9:1:+1",
        "64k:1k:x2",
        "1:4",
        "1:4:",
        "1:4:2",
        "1:4:x",
        "1:4:+",
        "1:4:-1",
        "1:4:*2",
        "1:4:x1",
        "1:4:x0",
        "1:4:+0",
        "1:4:x2:x2",
        ":4:x2",
        "1::x2",
        ":",
        "::",
        "a:b:x2",
        "1:4:xtwo",
        "1:4:x2.5",
        "1,,2",
        ",1",
        "1,",
        ",",
        "1,2,",
        "1:9:+2,9:1:+2",
    ],
)
def test_ranges_that_are_not(text: str) -> None:
    with pytest.raises(InputError, match=r"^--tp") as caught:
        parse_counts(text, "--tp")
    assert "\n" not in str(caught.value)


def test_a_reversed_range_says_so() -> None:
    with pytest.raises(InputError, match="reversed"):
        parse_counts("64k:1k:x2", "--context")


def test_a_billion_points_are_refused_before_they_are_made() -> None:
    with pytest.raises(InputError, match="1,073,741,824"):
        parse_counts("1:1024m:+1", "--context")
    with pytest.raises(InputError, match=f"{MAX_POINTS:,}"):
        parse_counts("1:1000000:+1,2m:3m:+1", "--context")


def test_exactly_as_many_points_as_are_accepted() -> None:
    assert len(parse_counts("1:1000000:+1", "--context")) == MAX_POINTS == 1_000_000
    with pytest.raises(InputError):
        parse_counts("1:1000001:+1", "--context")
    with pytest.raises(InputError):
        parse_counts("1:1000000:+1,1000001", "--context")


@given(st.integers(1, 5000), st.integers(0, 5000), st.integers(1, 600))
@settings(max_examples=150)
def test_additive_ranges_are_pythons(first: int, more: int, step: int) -> None:
    last = first + more
    assert parse_counts(f"{first}:{last}:+{step}", "--tp") == tuple(range(first, last + 1, step))


@given(st.integers(1, 5000), st.integers(0, MAX_TOKENS - 5000), st.integers(2, 50))
@settings(max_examples=150)
def test_factor_ranges_are_powers(first: int, more: int, factor: int) -> None:
    last = first + more
    powers = (first * factor**power for power in range(40))
    assert parse_counts(f"{first}:{last}:x{factor}", "--tp") == tuple(value for value in powers if value <= last)


@given(st.text(max_size=24) | st.text("0123456789kmxKM:+,. -", max_size=24))
@settings(max_examples=200)
def test_any_text_is_values_or_one_line(text: str) -> None:
    values = value_or_error(lambda: parse_counts(text, "--x"))
    if isinstance(values, str):
        assert values.startswith("--x")
        assert "\n" not in values
        return
    assert values
    assert len(set(values)) == len(values)
    assert all(1 <= value <= MAX_TOKENS for value in values)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1B", 1),
        ("0B", 0),
        ("512B", 512),
        ("1kB", 1000),
        ("1KB", 1000),
        ("1kiB", 1024),
        ("1KiB", 1024),
        ("64KiB", 65_536),
        ("1MB", 10**6),
        ("1MiB", 2**20),
        ("1.5GB", 1_500_000_000),
        ("64GiB", 68_719_476_736),
        ("0.5 GiB", 536_870_912),
        ("512 MiB", 536_870_912),
        (" 80GB ", 80_000_000_000),
        ("1TB", 10**12),
        ("1.5TiB", 1_649_267_441_664),
        ("1PB", 10**15),
        ("2PiB", 2_251_799_813_685_248),
        ("0.1kB", 100),
        ("0.125KiB", 128),
        ("1.000000001GB", 1_000_000_001),
        ("43.67GB", 43_670_000_000),
        ("0.0B", 0),
        ("8.0B", 8),
        # not whole: rounded down. 35.42 * 2**30 = 38,031,935,406.08; 0.1 * 1024 = 102.4; 1000.01; 1023.999999
        ("35.42GiB", 38_031_935_406),
        ("0.1KiB", 102),
        ("1.00001kB", 1000),
        ("0.999999999KiB", 1023),
        # 2**50 less a thousand-millionth of a TiB, 1,099.511627776 B: a float would round it
        ("1023.999999999TiB", 2**50 - 1100),
    ],
)
def test_sizes(text: str, value: int) -> None:
    # SI and IEC 80000-13: GB is 10**9, GiB is 2**30
    assert parse_size(text, "--cache-budget") == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "64",
        "GiB",
        "64 G",
        "64Gi",
        "64gib",
        "64GIB",
        "64EB",
        "64 furlongs",
        "-1GB",
        "+1GB",
        "1.GB",
        ".5GB",
        "1,5GB",
        "1..5GB",
        "1.5.5GB",
        "1e3GB",
        "1_000GB",
        "nanGB",
        "64GBps",
        "64GB/s",
        "64GiB 1",
        "1iB",
        "²GB",
        "9" * 16 + "B",
    ],
    ids=ascii,
)
def test_what_is_not_a_size_is_named(text: str) -> None:
    with pytest.raises(InputError, match=r"^--cache-budget") as caught:
        parse_size(text, "--cache-budget")
    assert "\n" not in str(caught.value)


def test_a_size_of_many_digits_is_one() -> None:
    for text in ("9" * 16 + "B", "9" * 5000 + ".5 GiB"):
        with pytest.raises(InputError, match="at most 15 digits") as caught:
            parse_size(text, "--cache-budget")
        assert "is expected" not in str(caught.value)
        assert len(str(caught.value)) < 200
    assert parse_size("0" * 30 + "64GB", "--cache-budget") == 64_000_000_000


@pytest.mark.parametrize("text", ["0.5B", "1.5B", "0.0001kB", "0.0009KiB", "0.0000000001GB", "1.0000000001GB"])
def test_parts_of_a_byte_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--cache-budget"):
        parse_size(text, "--cache-budget")


@given(st.integers(0, 10**12), st.sampled_from(["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"]))
@settings(max_examples=150)
def test_whole_sizes_are_multiples_of_their_unit(number: int, unit: str) -> None:
    powers = {"B": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
    expected = number * (1024 if "i" in unit else 1000) ** powers[unit[0]]
    assert parse_size(f"{number}{unit}", "--x") == expected
    assert parse_size(f"{number}.000 {unit}", "--x") == expected


@given(st.text(max_size=16) | st.text("0123456789kKMGiB. ", max_size=16))
@settings(max_examples=200)
def test_any_text_is_a_size_or_one_line(text: str) -> None:
    value = value_or_error(lambda: parse_size(text, "--x"))
    if isinstance(value, str):
        assert value.startswith("--x")
        assert "\n" not in value
    else:
        assert value >= 0
