"""A library's error as one line of a record or a message."""

from __future__ import annotations

from ..errors import one_line


def told(fault: BaseException, most: int = 300) -> str:
    """The fault's type and the first line of what it says that is not empty, at most ``most`` characters."""
    lines = [line for line in str(fault).splitlines() if line.strip()]
    return one_line(f"{type(fault).__name__}: {lines[0] if lines else 'no message'}")[:most]
