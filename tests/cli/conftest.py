from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mla_calc.cli.main import run


@dataclass(frozen=True)
class Answer:
    """What a command line gave: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def results(self) -> Any:
        return json.loads(self.out)["results"]


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run a command line in this process; stdout is no terminal here, as in a pipe."""

    def answer(line: str, *more: str) -> Answer:
        code = run([*shlex.split(line), *more])
        out, err = capfd.readouterr()
        return Answer(code, out, err)

    return answer
