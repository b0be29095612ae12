"""The end of a run whose kernel never ends."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

HUNG_EXIT = 2


def _exit(code: int) -> NoReturn:
    os._exit(code)


class Watchdog:
    """Ends the process when one piece of work takes too long, with the rows saved.

    A kernel that never ends cannot be cancelled, and every call that waits for it waits for ever; only another
    thread can still act.
    """

    def __init__(self, hang_s: float, last_words: Callable[[str], None], end: Callable[[int], None] = _exit) -> None:
        """``last_words`` is called with what hangs, from the watching thread, right before the process ends."""
        self._hang_s, self._last_words, self._end = hang_s, last_words, end
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._work: tuple[str, float] | None = None
        self._thread = threading.Thread(target=self._watch, name="validate-watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @contextmanager
    def over(self, what: str) -> Iterator[None]:
        """Watch the work inside."""
        with self._lock:
            self._work = (what, time.monotonic() + self._hang_s)
        try:
            yield
        finally:
            with self._lock:
                self._work = None

    def _watch(self) -> None:
        while not self._over.wait(min(1.0, self._hang_s / 4)):
            with self._lock:
                work = self._work
            if work is not None and time.monotonic() > work[1]:
                self._hung(work[0])
                return

    def _hung(self, what: str) -> None:
        text = f"{what} did not end within {self._hang_s:g} s"
        try:
            self._last_words(text)
        finally:
            print(f"mla-calc: {text}: a kernel hangs", file=sys.stderr, flush=True)
            self._end(HUNG_EXIT)
