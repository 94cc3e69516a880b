"""How sizes and tables are shown to people."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence


def size(count: int) -> str:
    """Bytes, in the unit that suits."""
    value, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{count} bytes" if units[0] == "bytes" else f"{value:.3g} {units[0]}"


def sized(line: str) -> str:
    """A line with its bytes in the units that suit."""
    return re.sub(r"\b(\d{4,}) bytes\b", lambda found: size(int(found[1])), line)


def table(title: str, rows: Sequence[tuple[str, object]]) -> str:
    """A table in HTML, a line for each name and value."""
    lines = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows)
    return f"<table><caption>{html.escape(title)}</caption>{lines}</table>"


Step = tuple[str, int, float]


def folded(steps: Sequence[Step]) -> list[Step]:
    """Steps with what repeats three times or more in one line, at the level and noise after it."""
    found: list[Step] = []
    i = 0
    while i < len(steps):
        period, times = max((_repeats(steps, i, period) for period in range(1, 5)), key=lambda p: (p[0] * p[1], -p[0]))
        names = ", ".join(name for name, _, _ in steps[i : i + period])
        i += period * times
        found.append((names if times == 1 else f"{times} times {names}", *steps[i - 1][1:]))
    return found


def _repeats(steps: Sequence[Step], start: int, period: int) -> tuple[int, int]:
    """A block of steps and how often it follows itself, or one step once."""
    names = [name for name, _, _ in steps[start : start + period]]
    times = 1
    while [name for name, _, _ in steps[start + times * period : start + (times + 1) * period]] == names:
        times += 1
    return (period, times) if times >= 3 else (1, 1)
