"""Being asked to stop: by Ctrl-C, by SIGTERM, or because the terminal was closed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

HANGUP: signal.Signals = getattr(signal, "SIGHUP", signal.SIGTERM)  # Windows has none


class CommandStop:
    """Whether somebody asked to stop, and by which signal; whoever asks twice is heard at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._asked = threading.Event()

    def hear(self, number: int, _frame: FrameType | None) -> None:
        """Remember that a signal came, and let the next one act as it always does."""
        self.signal = number
        self._asked.set()
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    def is_asked(self) -> bool:
        """Tell whether somebody asked to stop."""
        return self._asked.is_set()

    def rest(self, seconds: float) -> None:
        """Wait, unless somebody asks to stop."""
        self._asked.wait(seconds)


@contextmanager
def stopping() -> Generator[CommandStop]:
    """Turn a request to stop into one that is heard between two steps; what `nohup` told to be ignored stays so."""
    stop = CommandStop()
    heard = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(HANGUP) is not signal.SIG_IGN:
        heard.add(HANGUP)
    before = {number: signal.signal(number, stop.hear) for number in heard}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
