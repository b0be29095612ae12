"""Keys that come faster than they are done: each goes to what the one before it led to."""

from __future__ import annotations

from textual import events
from textual.widget import Widget


def passed_on(taker: Widget, event: events.Key) -> bool:
    """Whether the key is no longer for ``taker``, which lost the focus after it was sent; then what has it gets it."""
    now = taker.app.screen
    if now is taker.screen and (taker is now or taker is now.focused):
        return False
    (now.focused or now)._forward_event(events.Key(event.key, event.character))
    return True
