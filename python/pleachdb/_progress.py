"""Progress of long work: a callback of the user, or a bar."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Callable, Union

#: Called with the phase ("read", "sort", "merge", "write", "sync"), what is done, and the total, if it is known.
Callback = Callable[[str, int, Union[int, None]], object]
#: True shows a bar.
Wanted = Union[bool, Callback, None]

#: Seconds between two drawings of a bar.
_PAUSE = 0.1


class Progress:
    """Makes the callback for the native part of what the user gave."""

    def __init__(self, wanted: Wanted, name: str) -> None:
        self._bar: Any = None
        self.callback: Callback | None = None
        if wanted is True:
            self._bar = _bar(name)
            self.callback = self._bar.show
        elif callable(wanted):
            self.callback = wanted

    def __enter__(self) -> Callback | None:
        return self.callback

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def _bar(name: str) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return Line(name)
    return _Tqdm(tqdm, name)


class _Tqdm:
    """A bar of tqdm, which knows terminals and notebooks; one for each phase."""

    def __init__(self, tqdm: Any, name: str) -> None:
        self._tqdm, self._name = tqdm, name
        self._phase, self._made = "", None

    def show(self, phase: str, done: int, total: int | None) -> None:
        if phase != self._phase:
            self.close()
            self._phase = phase
            self._made = self._tqdm(desc=f"{self._name}: {phase}", total=total, unit_scale=True, leave=False)
        bar: Any = self._made
        if total is not None:
            bar.total = total
        bar.update(done - bar.n)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
            self._made = None


class Line:
    """One line on standard error, if that is a terminal."""

    def __init__(self, name: str) -> None:
        self._name, self._last, self._is_shown = name, 0.0, False

    def show(self, phase: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self._last < _PAUSE or not sys.stderr.isatty():
            return
        self._last, self._is_shown = now, True
        share = f"{100 * done / total:5.1f} %" if total else f"{done:,}"
        sys.stderr.write(f"\r\033[K{self._name}: {phase} {share}")
        sys.stderr.flush()

    def close(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
