"""Ways to bring elements to other slots, as values with their prices: turns, diagonals, two maps in a row, copies.

A way is found for slots alone, before anything is computed. What is chosen depends on slots and on what lies beside the
elements only, so that a plan's runs and the run with data agree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native, _numbers
from ._layout import SAME, ZERO, FREE, Parts, Prepared, Slots, one
from ._native import Operation

Places = NDArray[np.int64]
# Slots of one ciphertext in the entries of a map, of which there are many.
SLOT = np.dtype(np.int32)

# Prices in rotations that share their decomposition with others: a diagonal, encoded and multiplied; a rotation of its
# own; one more level, or the noise of a map; a key; a product of ciphertexts.
DIAGONAL, ROTATION, LEVEL, KEY, PRODUCT = 0.4, 2.5, 40.0, 0.5, 4.0
# A level that goes anyhow, since what comes next has fewer.
SPARE = 3.0
# Diagonals from which two maps in a row are weighed against one.
_MANY = 48


@dataclass(frozen=True)
class Turn:
    """For each ciphertext of the result the one it is made from, rotated and its rows swapped."""

    turns: tuple[tuple[int, int, bool], ...]
    rest: int
    # The elements' slots, where all others are made zeros first.
    kept: Places | None = None

    @property
    def cost(self) -> float:
        turned = sum(ROTATION * ((step != 0) + swap) for _, step, swap in self.turns)
        return turned + KEY * len({step for _, step, _ in self.turns if step}) + (0 if self.kept is None else LEVEL)

    @property
    def multiplies(self) -> bool:
        return self.kept is not None

    def run(self, parts: Parts, slots: Slots, exact: bool, factor: float = 1.0) -> Parts:
        if self.kept is not None:
            parts = masked(parts, slots, self.kept, exact, factor)
        return [turned(parts[origin], step, swap, slots.row) for origin, step, swap in self.turns]


@dataclass(frozen=True)
class Diagonals:
    """One product with the diagonals of the map."""

    source: Places
    target: Places
    cost: float
    rest: int = ZERO
    multiplies = True

    def run(self, parts: Parts, slots: Slots, exact: bool, factor: float = 1.0) -> Parts:
        weights = None if factor == 1.0 else np.full(len(self.source), factor)
        return mapped(parts, slots, self.source, self.target, weights, exact)


@dataclass(frozen=True)
class Maps:
    """One way after another."""

    ways: tuple[Turn | Diagonals, ...]
    rest: int = ZERO
    multiplies = True

    @property
    def cost(self) -> float:
        return sum(way.cost for way in self.ways)

    def run(self, parts: Parts, slots: Slots, exact: bool, factor: float = 1.0) -> Parts:
        for way in self.ways:
            parts = way.run(parts, slots, exact, factor)
            factor = 1.0
        return parts


@dataclass(frozen=True)
class Copies:
    """The last copy of each element, with zeros beside them, and from there all others, by adding rotations."""

    last: Turn | Diagonals | Maps
    # Counts and distances of copies of copies.
    sums: tuple[tuple[int, int], ...]
    swap: bool
    # For each ciphertext of the result the one it is.
    origins: tuple[int, ...]
    rest: int

    @property
    def cost(self) -> float:
        rotations = sum(rotations_of(count) for count, _ in self.sums) + self.swap
        return self.last.cost + rotations * (ROTATION * len(set(self.origins)) + KEY)

    @property
    def multiplies(self) -> bool:
        return self.last.multiplies

    def run(self, parts: Parts, slots: Slots, exact: bool, factor: float = 1.0) -> Parts:
        bound = abs(factor) * max(part.state()[5] for part in parts)
        made = self.last.run(parts, slots, exact, factor)
        for operation in [Operation.sum_slots(count, stride) for count, stride in self.sums]:
            made = _native.each([operation] * len(made), [[part] for part in made])
        if self.swap:
            made = [one(Operation.binary("add"), part, one(Operation.swap(), part)) for part in made]
        if not exact and np.isfinite(bound) and bound > 0:
            # Zeros were added, whatever the certificate fears.
            made = _native.each([Operation.declare_bound(float(bound))] * len(made), [[part] for part in made])
        return [made[origin] for origin in self.origins]


@dataclass(frozen=True)
class Repeated:
    """Ciphertexts as they are: what is wanted stands in them already."""

    origins: tuple[int, ...]
    rest: int
    cost: float = 0.0
    multiplies = False

    def run(self, parts: Parts, slots: Slots, exact: bool, factor: float = 1.0) -> Parts:
        return [parts[origin] for origin in self.origins]


Way = Turn | Diagonals | Maps | Copies | Repeated


def cheapest(source: Places, target: Places, slots: Slots, rest: int, clean: bool = False, spare: int = 0) -> Way:
    """The cheapest way that brings what lies at ``source`` to ``target``, all of whose slots differ.

    ``rest`` says what lies in all other slots of the argument; with ``clean`` zeros shall lie beside the result. The argument
    has ``spare`` levels more than the result needs.
    """
    ways = list(_ways(source, target, slots, rest, clean, spare))
    return min(ways, key=lambda way: way.cost)


def all_along(source: Places, target: Places, period: int, slots: Slots) -> Copies:
    """Elements with zeros beside them as often as rows of slots hold them, at a distance that they fill."""
    way = _plain(source, target % slots.row % period, slots, ZERO)
    sums = ((slots.row // period, period),) if period < slots.row else ()
    return Copies(way, sums, slots.rows > 1, (0,), SAME - 1 + period)


def _ways(source: Places, target: Places, slots: Slots, rest: int, clean: bool, spare: int) -> Iterator[Way]:
    repeated = None if clean or rest < SAME else _repeated(source, target, slots, rest)
    if repeated is not None:
        yield repeated
        return
    turns = turns_of(source, target, slots)
    if turns is not None:
        yield Turn(turns, rest if rest == ZERO else FREE) if rest == ZERO or not clean else Turn(turns, ZERO, source)
        return
    found = _copies(source, target, slots, rest)
    if found is not None:
        yield found
        if isinstance(found.last, Turn):
            return
    yield from _maps(source, target, slots, spare)


def _maps(source: Places, target: Places, slots: Slots, spare: int = 0) -> Iterator[Diagonals | Maps]:
    level = [SPARE if leg < spare else LEVEL for leg in range(3)]
    steps = _steps(source, target, slots)
    yield Diagonals(source, target, level[0] + steps.cost)
    if steps.count <= (_MANY if spare < 2 else _MANY // 3):
        return
    # A step is its part below a number of units, and the rest: two maps of few diagonals each, or three.
    unit, counted = in_units((source - target) % slots.row, slots.row)
    span = int(counted.max() - counted.min())
    sizes = [1 << k for k in range(1, span.bit_length())]
    firsts = [[first] for size in sizes for first in (counted - counted % size, counted % size)]
    if spare > 2:
        pairs = [(size, larger) for i, size in enumerate(sizes) for larger in sizes[i + 1 :]]
        firsts += [[counted - counted % larger, counted - counted % size] for size, larger in pairs]
        firsts += [[counted % size, counted % larger] for size, larger in pairs]
    for first in firsts:
        places = [source // slots.row * slots.row + (source - unit * part) % slots.row for part in first]
        if all(_injective(source, between) for between in places):
            legs = map(_distinct, zip([source, *places], [*places, target]))
            yield Maps(tuple(Diagonals(s, t, price + _steps(s, t, slots).cost) for price, (s, t) in zip(level, legs)))


def _distinct(leg: tuple[Places, Places]) -> tuple[Places, Places]:
    """Each pair of slots once."""
    source, target = leg
    _, first = np.unique(target, return_index=True)
    return source[first], target[first]


def _injective(source: Places, between: Places) -> bool:
    """Whether no two elements meet in a slot."""
    order = np.lexsort((source, between))
    s, b = source[order], between[order]
    return not bool(((b[1:] == b[:-1]) & (s[1:] != s[:-1])).any())


def _repeated(source: Places, target: Places, slots: Slots, rest: int) -> Repeated | None:
    """Of slots that repeat themselves: the ciphertexts as they are, if each is made of one."""
    period = rest + 1 - SAME
    if not np.array_equal(source % slots.row % period, target % slots.row % period):
        return None
    made, first, inverse = np.unique(target // slots.total, return_index=True, return_inverse=True)
    origins = (source // slots.total)[first]
    if len(made) != int(made[-1]) + 1 or not np.array_equal(origins[inverse.reshape(-1)], source // slots.total):
        return None
    return Repeated(tuple(int(origin) for origin in origins), rest)


def turns_of(source: Places, target: Places, slots: Slots) -> tuple[tuple[int, int, bool], ...] | None:
    """The rotation of each ciphertext by which all elements keep their distances, if there is one."""
    origin, step = source // slots.total, (source - target) % slots.row
    swap = source % slots.total // slots.row != target % slots.total // slots.row
    code = (origin * slots.row + step) * 2 + swap
    made, first, inverse = np.unique(target // slots.total, return_index=True, return_inverse=True)
    if len(made) != int(made[-1]) + 1 or not np.array_equal(code[first][inverse.reshape(-1)], code):
        return None
    return tuple((int(origin[i]), int(step[i]), bool(swap[i])) for i in first)


@dataclass(frozen=True)
class _Steps:
    """How many diagonals a map has, and what they cost beside the level."""

    count: int
    cost: float


def _steps(source: Places, target: Places, slots: Slots) -> _Steps:
    step = (source - target) % slots.row
    swap = source % slots.total // slots.row != target % slots.total // slots.row
    pair = (target // slots.total) * (int(source.max()) // slots.total + 1) + source // slots.total
    code = np.unique((pair * 2 + swap) * slots.row + step)
    total = 0.0
    for chosen in np.unique(code // (2 * slots.row)):
        total += map_cost(code[code // (2 * slots.row) == chosen] % (2 * slots.row), slots.row)
    return _Steps(len(code), total)


def map_cost(steps: Places, row: int) -> float:
    """The price of a map with these steps, each once; those of the swapped argument count from ``row``."""
    if len(steps) == 1:
        return 0.0 if steps[0] == 0 else DIAGONAL + ROTATION + KEY
    swapped, step = steps // row, in_units(steps % row, row)[1]
    best = float("inf")
    for size in (1 << k for k in range(row.bit_length())):
        low = step % size
        babies, giants = len(np.unique(swapped * row + low)), len(np.unique(step - low))
        best = min(best, babies + ROTATION * giants + KEY * (babies + giants))
    return DIAGONAL * len(steps) + best


def in_units(steps: Places, row: int) -> tuple[int, Places]:
    """The unit in which steps along a row are short, and the steps in it, to the left and to the right."""
    nonzero = steps[steps != 0]
    if not len(nonzero):
        return 1, steps
    signed = np.where(nonzero > row // 2, nonzero - row, nonzero)
    two = int(np.gcd.reduce(np.append(nonzero, row)))
    best: tuple[int, int, Places] | None = None
    for unit in (1, int(np.abs(signed).min()) // two, int(np.gcd.reduce(signed)) // two):
        if unit % 2 == 0:
            continue
        rest = row // two
        counted = steps // two * pow(unit, -1, max(rest, 2)) % rest
        counted = np.where(counted > rest // 2, counted - rest, counted)
        span = int(counted.max() - counted.min())
        if best is None or span < best[0]:
            best = (span, unit * two, counted)
    assert best is not None
    return best[1], best[2]


def _copies(source: Places, target: Places, slots: Slots, rest: int) -> Copies | None:
    """Where every element is wanted at the same distances from its first place."""
    order = np.lexsort((target, source))
    elements, counts = np.unique(source, return_counts=True)
    count = int(counts[0])
    if count == 1 or (counts != count).any():
        return None
    places = target[order].reshape(-1, count)
    rows, within = places // slots.row, places % slots.row
    if (rows - rows[:, :1] != rows[0] - rows[0, 0]).any() or (within - within[:, :1] != within[0] - within[0, 0]).any():
        return None
    jumps, offsets = rows[0] - rows[0, 0], within[0] - within[0, 0]
    pattern = np.unique(offsets)
    sums = _progressions(pattern - pattern[0])
    own, single = np.unique(jumps), bool((rows[:, 0] == rows[0, 0]).all())
    full = [len(offsets[jumps == jump]) == len(pattern) for jump in own]
    # Where a row lacks some of the pattern its copies lie beside the elements, and meet none if there is a row that has all.
    if sums is None or not any(full) or (len(own) > 1 and not single):
        return None
    first = within[:, 0] + pattern[0]
    row_of = rows[:, 0]
    period = _period(first, pattern - pattern[0], slots.row)
    swap = single and bool(((rows - row_of[0]) % slots.rows).any())
    beside = ZERO if all(full) and not swap else FREE
    if period is not None and rotations_of(slots.row // period) <= sum(rotations_of(n) for n, _ in sums):
        if single:
            sums, swap, beside = ((slots.row // period, period),), slots.rows > 1, SAME - 1 + period
    last = first + (pattern[-1] - pattern[0]) + row_of % slots.rows * slots.row
    made = np.unique(places // slots.total)
    if len(made) != int(made[-1]) + 1:
        return None
    origins = (0,) * len(made)
    if not single:
        last, origins = last + row_of // slots.rows * slots.total, tuple(int(c) for c in made)
    return Copies(_plain(elements, last, slots, rest), tuple(sums), swap, origins, beside)


def _plain(source: Places, target: Places, slots: Slots, rest: int) -> Turn | Diagonals | Maps:
    """The cheapest way without copies, with zeros beside the elements."""
    turns = turns_of(source, target, slots)
    if turns is not None:
        return Turn(turns, ZERO, None if rest == ZERO else source)
    return min(_maps(source, target, slots), key=lambda way: way.cost)


def _progressions(pattern: Places) -> tuple[tuple[int, int], ...] | None:
    """Counts and distances whose sums the pattern is, from 0, if there are such."""
    if len(pattern) == 1:
        return ()
    stride = int(pattern[1])
    regular = pattern == stride * np.arange(len(pattern))
    count = len(pattern) if regular.all() else int(np.argmin(regular))
    starts = pattern[::count]
    if len(pattern) % count or not np.array_equal((starts[:, None] + stride * np.arange(count)).reshape(-1), pattern):
        return None
    further = _progressions(starts)
    return None if further is None else ((count, stride), *further)


def _period(first: Places, pattern: Places, row: int) -> int | None:
    """The number of elements, if copies all along a row at that distance repeat all of them."""
    period = len(first)
    if row % period or (pattern % period).any():
        return None
    return period if len(np.unique(first % period)) == period else None


def rotations_of(count: int) -> int:
    """Rotations of a sum of so many slots, each added to itself at double the distance."""
    return count.bit_length() - 1 + count.bit_count() - 1


def masked(parts: Parts, slots: Slots, kept: Places, exact: bool, factor: float = 1.0) -> Parts:
    """The ciphertexts with zeros in all slots but these, which are multiplied by a number."""
    mask = np.zeros(len(parts) * slots.total, dtype=np.int64 if exact else np.float64)
    mask[kept] = factor
    rows = [mask[i * slots.total : (i + 1) * slots.total] for i in range(len(parts))]
    return _native.each([Operation.plain("mul", row) for row in rows], [[part] for part in parts])


def turned(part: _native.Ciphertext, step: int, swap: bool, row: int) -> _native.Ciphertext:
    """The ciphertext with its rows swapped, and rotated."""
    part = one(Operation.swap(), part) if swap else part
    step = step - row if step > row // 2 else step
    return one(Operation.rotate(step), part) if step else part


def mapped(
    parts: Parts,
    slots: Slots,
    source: NDArray[np.integer[Any]],
    target: NDArray[np.integer[Any]],
    weights: NDArray[Any] | None,
    exact: bool,
    prepared: Prepared | None = None,
) -> Parts:
    """The ciphertexts in whose slots ``target`` the sums of ``weights`` times the slots ``source`` lie, others being zeros.

    Ciphertexts that take the same diagonals take them one after another, so that they are encoded once.
    """
    count, origins = int(target.max()) // slots.total + 1, int(source.max()) // slots.total + 1
    kind = np.int64 if exact else np.float64
    if count == 1 and origins == 1:
        values = np.ones(len(target), dtype=kind) if weights is None else _numbers.flat(weights, exact)
        return [part for _, part in applied(parts, (target, source, values), [(0, 0)], exact, prepared)]
    made, origin = target // slots.total, source // slots.total
    order = np.lexsort((source, target, origin, made))
    pair = made[order] * origins + origin[order]
    edges = np.flatnonzero(np.diff(pair)) + 1
    groups: dict[bytes, list[tuple[int, int]]] = {}
    held: dict[bytes, Entries] = {}
    for chosen in np.split(order, edges):
        to = (target[chosen] % slots.total).astype(SLOT)
        of = (source[chosen] % slots.total).astype(SLOT)
        values = np.ones(len(to), dtype=kind) if weights is None else _numbers.flat(weights[chosen], exact)
        key = named((to, of, values))
        held[key] = (to, of, values)
        groups.setdefault(key, []).append((int(made[chosen[0]]), int(origin[chosen[0]])))
    total: list[_native.Ciphertext | None] = [None] * count
    for key, pairs in groups.items():
        for at, term in applied(parts, held.pop(key), pairs, exact, prepared):
            before = total[at]
            total[at] = term if before is None else one(Operation.binary("add"), before, term)
    return [nothing(parts[0], exact) if part is None else part for part in total]


# Slots of the result, slots of the argument, and weights.
Entries = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]], NDArray[Any]]


def named(entries: Entries) -> bytes:
    """The same for the same map."""
    digest = hashlib.blake2b(digest_size=32)
    for array in entries:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def applied(
    parts: Parts,
    entries: Entries,
    pairs: Sequence[tuple[int, int]],
    exact: bool,
    prepared: Prepared | None,
) -> Iterator[tuple[int, _native.Ciphertext]]:
    """A map of each ciphertext that takes it, with the place of the result."""
    to, of = (np.ascontiguousarray(slots, dtype=SLOT) for slots in entries[:2])
    values = entries[2]
    if not values.any():
        for at, origin in pairs:
            yield at, nothing(parts[origin], exact)
        return
    if prepared is None and len(pairs) == 1:
        # Encoded as it is needed: nobody asks for it again.
        ((at, origin),) = pairs
        yield at, parts[origin].linear(to, of, values)
        return
    kept: Prepared = {} if prepared is None else prepared
    # For one ciphertext nothing is looked for.
    name = b"" if prepared is None else named((to, of, values))
    for at, origin in pairs:
        part = parts[origin]
        level = part.level
        found = kept.get((level, name))
        if found is None:
            found = kept[level, name] = part.prepare(to, of, values)
        yield at, part.apply(found)


def nothing(part: _native.Ciphertext, exact: bool) -> _native.Ciphertext:
    """Zeros under the key and at the level of a ciphertext."""
    return one(Operation.scalar("mul", _numbers.flat(np.asarray(0), exact)), part)
