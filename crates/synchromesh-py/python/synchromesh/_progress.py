"""Progress: a callback, or tqdm where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, Union

T = TypeVar("T")
Progress = Union[bool, Callable[[int, int], object], None]

# Seconds before a bar appears: what is done by then has none.
_DELAY = 0.5


class Meter:
    """Counts steps: ``progress(done, total)`` is called after each, or with True a bar with the time that remains is drawn
    once half a second has gone by, if tqdm is there. ``total`` is 0 where nobody knows it.
    """

    def __init__(self, progress: Progress, total: int, what: str) -> None:
        self._callback = progress if callable(progress) else None
        self._done, self._total = 0, total
        self._bar: Any = None
        if progress is True:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped]
            except ImportError:
                return
            self._bar = tqdm(total=total or None, desc=what, delay=_DELAY)

    def step(self, count: int = 1) -> None:
        """So many more steps are done."""
        self._done += count
        if self._bar is not None:
            self._bar.update(count)
        if self._callback is not None:
            self._callback(self._done, self._total)

    def close(self) -> None:
        """Ends the bar."""
        if self._bar is not None:
            self._bar.close()


def tracked(items: Iterable[T], total: int, progress: Progress, what: str) -> Iterator[T]:
    """The items, counted by a :class:`Meter`."""
    meter = Meter(progress, total, what)
    try:
        for item in items:
            yield item
            meter.step()
    finally:
        meter.close()
