"""The one error that a wrong input raises, and the search for the name that was meant."""

from __future__ import annotations

from collections.abc import Iterable


class InputError(ValueError):
    """An input that is wrong or not understood.

    ``str(error)`` is one line that says what is wrong, where, and what is accepted; ``hint`` is an
    optional second line. The command line prints both and exits with 2.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(one_line(message))
        self.hint = None if hint is None else one_line(hint)


def one_line(text: str) -> str:
    """``text`` with line breaks and control characters as escapes: a message stays one line."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def nearest(name: str, known: Iterable[str], most: int = 3) -> str | None:
    """A hint that offers the known names closest to ``name``, or ``None`` if none is close."""
    import difflib

    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=most, cutoff=0.5)
    if not close:
        return None
    return "did you mean " + ", ".join(by_lower[match] for match in close) + "?"


def either(values: Iterable[int]) -> str:
    """The accepted numbers as a message lists them: ``32 or 64``."""
    return " or ".join(map(str, values))


YAML_WORDS = {"None": "null", "True": "true", "False": "false"}


def shown(value: object, most: int = 60) -> str:
    """``value`` as an error message quotes it: its repr, on one line, cut to ``most`` characters."""
    text = YAML_WORDS.get(str(value)) if value is None or isinstance(value, bool) else None
    text = text or (str(value) if hasattr(value, "isoformat") else repr(value))
    return text if len(text) <= most else text[: most - 3] + "..."
