"""Progress: a callback, or tqdm where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, Union

T = TypeVar("T")
Progress = Union[bool, Callable[[int, int], object], None]


def tracked(items: Iterable[T], total: int, progress: Progress, what: str) -> Iterator[T]:
    """The items; ``progress(done, total)`` is called after each, or with True a bar is drawn if tqdm is there."""
    if progress is True:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped]
        except ImportError:
            yield from items
            return
        yield from tqdm(items, total=total, desc=what)
        return
    for done, item in enumerate(items, 1):
        yield item
        if callable(progress):
            progress(done, total)
