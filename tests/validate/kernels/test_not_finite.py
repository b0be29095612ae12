"""What is not finite stays so: a NaN in a row that counts reaches the output, into however many pieces it is cut.

The kernels run in Triton's interpreter, which a process decides on before it loads them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
import torch
from mla_calc.validate.kernels import absorbed_decode

kernel, splits, bad = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
drawn = torch.Generator().manual_seed(3)
q = torch.randn(1, 1, 4, 80, generator=drawn)
cache = torch.randn(3, 64, 80, generator=drawn)
table, lengths = torch.tensor([[2, 0, 1]], dtype=torch.int32), torch.tensor([150], dtype=torch.int32)

def decoded(q, cache):
    return absorbed_decode(q, cache, table, lengths, 0.1, kv_lora_rank=64, kernel=kernel, splits=splits)

spoilt_row, spoilt_query = cache.clone(), q.clone()
spoilt_row[2, 5, 3] = bad  # the first page's sixth row
spoilt_query[0, 0, 1, 2] = bad
by_row, by_query = decoded(q, spoilt_row), decoded(spoilt_query, cache)
print(json.dumps({
    "row": bool(torch.isfinite(by_row).all()),
    "query": bool(torch.isfinite(by_query[0, 0, 1]).all()),
    "others": bool(torch.isfinite(by_query[0, 0, [0, 2, 3]]).all()),
}))
"""


@pytest.mark.parametrize("bad", ["nan", "inf"])
@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("kernel", ["small", "tile64"])
def test_it_reaches_the_output(kernel: str, splits: int, bad: str) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, kernel, str(splits), bad], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == {"row": False, "query": False, "others": True}
