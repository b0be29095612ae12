from __future__ import annotations

import subprocess

import pytest

from mla_calc.shell import joined


@pytest.mark.parametrize(
    "words",
    [
        ["plain", "two words", "it's", "$HOME", "名 é", "", "-x"],
        ["nl\nx|y\tz\x1b[31m'\\", "a\x00b".replace("\x00", "\x01")],
        ["su\udcffr/config.json", "é\udcff"],
    ],
)
def test_a_shell_reads_the_same_words(words: list[str]) -> None:
    line = f"printf '%s\\0' {joined(words)}"
    assert line.isprintable()
    found = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout
    assert found.decode("utf-8", "surrogateescape").split("\0")[:-1] == words
