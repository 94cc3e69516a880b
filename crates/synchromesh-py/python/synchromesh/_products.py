"""Products with public matrices and of encrypted ones: layouts as values with their prices, the cheapest of which is made.

With a public matrix (Halevi and Shoup, ePrint 2014/106 and 2018/244, and the hybrid of Juvekar et al., ePrint 2018/073):
the results r of a vector lie p slots apart from one another's copies, slot s has the terms of row s mod p whose elements
are less than p slots beyond, and the slots of a row are added at last: p diagonals and log2(n / p) rotations. Or the vector
is repeated with a period P first, and slot r has all of row r: P diagonals, however tall the matrix is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _layout, _moves, _native, _numbers, _stacks, _sums
from ._layout import FREE, ZERO, Parts, Prepared, Slots, one
from ._moves import DIAGONAL, KEY, LEVEL, PRODUCT, ROTATION, Way
from ._native import Operation
from ._ranges import Held
from .errors import LayoutError

if TYPE_CHECKING:
    from .tensor import Tensor

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Vector:
    """One vector in the slots of some rows."""

    at: Places
    slots: Slots

    @property
    def low(self) -> int:
        """The first slot of a row that it has elements in."""
        return int((self.at % self.slots.row).min())

    @property
    def unit(self) -> int:
        """What divides the distances of its elements."""
        within = self.at % self.slots.row
        return int(np.gcd.reduce(within - within[0])) or 1

    @property
    def length(self) -> int:
        """Slots from the first to the last of a row, in units."""
        return (int((self.at % self.slots.row).max()) - self.low) // self.unit + 1


@dataclass(frozen=True)
class Folded:
    """Results ``period`` units apart from their copies, ``count`` of which are added; ``wraps`` where terms begin before."""

    period: int
    count: int
    wraps: bool
    cost: float


@dataclass(frozen=True)
class Repeated:
    """The vector at every ``period`` slots, from which all results of a ciphertext are made by as many diagonals."""

    period: int
    way: Way
    # Results in a ciphertext.
    room: int
    cost: float


def public(x: Tensor, columns: Places, matrix: NDArray[Any], prepared: Prepared | None = None) -> Tensor:
    """``matrix`` times the elements that lie at ``columns``, whose axis 0 the vectors are along, as that of the result."""
    outer, inner = matrix.shape
    batch = columns.shape[1:]
    flat = columns.reshape(inner, -1)
    if flat.shape[1] == 1:
        made = _of_vector(x, Vector(flat[:, 0], x._slots), matrix, prepared)
    else:
        made = _of_blocks(x, flat, matrix, prepared)
    if made is None:
        made = _term_by_term(x, flat, matrix, prepared)
    parts, at, rest = made
    held = None
    if x._held is not None and matrix.dtype.kind != "c":
        # Of the other slots each is a sum of some of a row's terms, or of none.
        beside = x._held.mixed().beside.and_zero().weighted(matrix).and_zero()
        held = Held(x._held.elements.weighted(matrix), beside)
    dtype = np.result_type(x.dtype, _numbers.result_dtype(matrix, x.context.exact))
    found = x._of("matmul", parts, at.reshape(outer, *batch), rest, held, dtype)
    reach = 0.0 if held is None else float(max(held.elements.reach, held.beside.reach))
    return found._certified(reach) if not x.context.exact and 0 < reach < float("inf") else found


Made = tuple[Parts, Places, int]


def price(x: Tensor, matrix: NDArray[Any]) -> float:
    """In rotations, of the product of vectors, the rows of x, with a public matrix (in, out)."""
    columns = x._at.T
    if columns.shape[1] == 1:
        vector = Vector(columns[:, 0], x._slots)
        layouts: list[Folded | Repeated] = [*_folded(vector, matrix.T), *_repeated(x, vector, matrix.T)]
        return min((layout.cost for layout in layouts), default=float("inf"))
    grid = _grid(columns, x._slots)
    if grid is None:
        return float("inf")
    outer = matrix.shape[1]
    room, in_grid = _in_grid(grid, outer, x._slots)
    return float(min(layout.cost for layout in in_grid) * -(-outer // room))


def _entries_allowed(count: int) -> None:
    if count > _layout.MAX_ENTRIES:
        raise _layout.too_many(count)


def _of_vector(x: Tensor, vector: Vector, matrix: NDArray[Any], prepared: Prepared | None) -> Made | None:
    """The cheapest product with one vector."""
    _entries_allowed(matrix.size)
    layouts: list[Folded | Repeated] = [*_folded(vector, matrix), *_repeated(x, vector, matrix)]
    if not layouts:
        return None
    best = min(layouts, key=lambda layout: layout.cost)
    if isinstance(best, Folded):
        return _run_folded(x, vector, matrix, best, prepared)
    return _run_repeated(x, vector, matrix, best, prepared)


def _band(low: int, high: int, unit: int, row: int) -> float:
    """The price of a map with all steps from ``low`` to ``high`` units."""
    steps = np.unique(unit * np.arange(low, high + 1) % row)
    return _moves.map_cost(steps, row) + LEVEL


def _folded(vector: Vector, matrix: NDArray[Any]) -> Iterator[Folded]:
    outer, slots, unit, length = len(matrix), vector.slots, vector.unit, vector.length
    ciphertexts, both = len(np.unique(vector.at // slots.total)), len(np.unique(vector.at // slots.row % slots.rows)) > 1
    most = slots.row // unit
    if outer > most:
        return
    periods = {outer, max(outer, length), *(1 << k for k in range(slots.row.bit_length()) if outer <= 1 << k <= most)}
    for period in sorted(periods):
        count = -(-length // period)
        fold = ROTATION * both
        # As many diagonals as the period has units, where results may begin a period before the vector.
        if count > 1 and (count + 1) * period <= most:
            fold += (ROTATION + KEY) * _moves.rotations_of(count + 1)
            yield Folded(period, count + 1, True, ciphertexts * _band(0, period - 1, unit, slots.row) + fold)
        elif count * period <= most:
            fold += (ROTATION + KEY) * _moves.rotations_of(count)
            low, high = (-outer + 1, length - 1) if count == 1 else (-period + 1, period - 1)
            cost = _band(low, high, unit, slots.row)
            if count == 1 and np.count_nonzero(matrix) * 4 < matrix.size:
                cost = _sparse(vector, matrix)
            yield Folded(period, count, False, ciphertexts * cost + fold)


def _sparse(vector: Vector, matrix: NDArray[Any]) -> float:
    """The price of a map with the steps of the entries that are not 0."""
    r, c = np.nonzero(matrix)
    if not len(r):
        return LEVEL
    row = vector.slots.row
    return LEVEL + _moves.map_cost(np.unique((vector.at[c] % row - vector.low - vector.unit * r) % row), row)


def _run_folded(x: Tensor, vector: Vector, matrix: NDArray[Any], layout: Folded, prepared: Prepared | None) -> Made:
    slots, unit, period = vector.slots, vector.unit, layout.period
    place = np.arange(len(matrix)).reshape(-1, 1)
    index = (vector.at % slots.row - vector.low).reshape(1, -1) // unit
    block = (index - place) // period
    block = block if layout.wraps else np.clip(block, 0, layout.count - 1)
    to = (vector.low + unit * (place + period * block)) % slots.row + vector.at // slots.row * slots.row
    of = np.broadcast_to(vector.at, matrix.shape)
    parts, total = x._parts, slots.total
    terms = []
    for k in np.unique(vector.at // total):
        own = vector.at // total == k
        source, target = (np.ravel(z[:, own] % total).astype(_moves.SLOT) for z in (of, to))
        weights = np.ravel(matrix[:, own])
        terms += _moves.mapped([parts[int(k)]], slots, source, target, weights, x.context.exact, prepared)
    part = _sums._added(terms)
    if layout.count > 1:
        part = one(Operation.sum_slots(layout.count, unit * period), part)
    rows = np.unique(vector.at // slots.row % slots.rows)
    if len(rows) > 1:
        part = one(Operation.binary("add"), part, one(Operation.swap(), part))
    first = vector.low - unit * period * layout.wraps
    at = (first + unit * place[:, 0]) % slots.row + int(rows[0]) * slots.row
    return [part], at, ZERO if layout.count == 1 and len(rows) == 1 else FREE


def _repeated(x: Tensor, vector: Vector, matrix: NDArray[Any]) -> Iterator[Repeated]:
    """Layouts with copies all along the rows, of vectors that lie in one row."""
    outer, slots, unit = len(matrix), vector.slots, vector.unit
    extent = vector.length * unit
    if len(np.unique(vector.at // slots.row)) > 1:
        return
    least = 1 << max(extent - 1, 0).bit_length()
    if least < slots.row:
        rows = min(slots.rows, -(-outer * unit // slots.row))
        copies = least * np.arange(slots.row // least).reshape(-1, 1, 1) + slots.row * np.arange(rows).reshape(1, -1, 1)
        way = _copied(x, vector, copies, least)
        cost = way.cost + -(-outer * unit // slots.total) * _band(0, least // unit - 1, unit, slots.row)
        yield Repeated(least, way, rows * slots.row // unit, cost)
    # As many copies as the results need, at the shortest distance.
    count = -(-(outer * unit + extent - 1) // extent)
    if 1 < count and count * extent <= slots.row:
        way = _copied(x, vector, extent * np.arange(count).reshape(-1, 1, 1), extent)
        yield Repeated(extent, way, outer, way.cost + _band(0, vector.length - 1, unit, slots.row))


def _copied(x: Tensor, vector: Vector, copies: Places, period: int) -> Way:
    target = copies + (vector.at % vector.slots.row - vector.low)
    source = np.broadcast_to(vector.at, target.shape)
    whole = len(vector.at) == x.size
    return _moves.cheapest(source.reshape(-1), target.reshape(-1), vector.slots, x._rest if whole or x._rest != ZERO else FREE)


def _run_repeated(x: Tensor, vector: Vector, matrix: NDArray[Any], layout: Repeated, prepared: Prepared | None) -> Made:
    slots, unit, (outer, inner) = vector.slots, vector.unit, matrix.shape
    copied = layout.way.run(x._parts, slots, x.context.exact)[:1]
    offset = (vector.at % slots.row - vector.low).astype(_moves.SLOT)
    parts: Parts = []
    for start in range(0, outer, layout.room):
        rows = matrix[start : start + layout.room]
        place = (unit * np.arange(len(rows), dtype=_moves.SLOT)).reshape(-1, 1)
        of = offset - place
        of %= layout.period
        of += place % slots.row
        of %= slots.row
        of += place // slots.row * slots.row
        to = np.broadcast_to(place, rows.shape).reshape(-1)
        parts += _moves.mapped(copied, slots, of.reshape(-1), to, rows.reshape(-1), x.context.exact, prepared)
    each = np.arange(outer)
    return parts, each // layout.room * slots.total + unit * (each % layout.room), ZERO


@dataclass(frozen=True)
class Grid:
    """Vectors that lie alike, each in a row of slots of one ciphertext or of several."""

    # First slots of the vectors in a ciphertext, and each element's distance from there in units.
    bases: Places
    offsets: Places
    unit: int
    length: int
    # Which of the ciphertexts each element is in, and those that a ciphertext of the result is made from.
    groups: Places
    origins: Places
    # For each vector its ciphertext of the result, and its first slot there.
    made: Places
    first: Places


def _grid(columns: Places, slots: Slots) -> Grid | None:
    place, ciphertext = columns % slots.total, columns // slots.total
    first = place.min(axis=0)
    offsets = place[:, 0] - first[0]
    rows = place // slots.row
    if (rows != rows[0]).any() or (place - first != offsets[:, None]).any():
        return None
    unit = int(np.gcd.reduce(offsets)) or 1
    kinds, groups = np.unique(ciphertext, axis=0, return_inverse=True)
    origins, made = np.unique(kinds, axis=1, return_inverse=True)
    length = int(offsets.max()) // unit + 1
    grid = Grid(np.unique(first), offsets // unit, unit, length, groups.reshape(-1), origins, made.reshape(-1), first)
    return grid if _apart(grid, length, slots) else None


def _apart(grid: Grid, length: int, slots: Slots) -> bool:
    """Whether no two vectors meet when each takes so many units, in its row."""
    if length * len(grid.bases) > slots.total or (grid.bases % slots.row + grid.unit * (length - 1)).max() >= slots.row:
        return False
    places = grid.bases.reshape(-1, 1) + grid.unit * np.arange(length)
    return len(np.unique(places)) == places.size


def _of_blocks(x: Tensor, columns: Places, matrix: NDArray[Any], prepared: Prepared | None) -> Made | None:
    """The product with several vectors, results in the slots of their vectors, where these lie alike."""
    slots, outer = x._slots, len(matrix)
    grid = _grid(columns, slots)
    if grid is None:
        return None
    room, layouts = _in_grid(grid, outer, slots)
    best = min(layouts, key=lambda layout: layout.cost)
    parts: Parts = []
    for start in range(0, outer, room):
        parts += _each(x, grid, matrix[start : start + room], best, prepared)
    each = np.arange(outer).reshape(-1, 1)
    at = (each // room * grid.origins.shape[1] + grid.made) * slots.total + grid.first + grid.unit * (each % room)
    return parts, at, FREE


def _in_grid(grid: Grid, outer: int, slots: Slots) -> tuple[int, list[Folded]]:
    """How many results a vector has room for in its slots, and the layouts in which they are made."""
    room = min(outer, grid.length)
    lengths = {room, grid.length, *(d for d in range(room, grid.length) if grid.length % d == 0)}
    layouts = []
    for period in sorted(lengths):
        count = -(-grid.length // period)
        if _apart(grid, count * period, slots):
            low, high = (1 - room, grid.length - 1) if count == 1 else (1 - period, period - 1)
            fold = (ROTATION + KEY) * _moves.rotations_of(count)
            layouts.append(Folded(period, count, False, len(grid.origins) * _band(low, high, grid.unit, slots.row) + fold))
    return room, layouts


def _each(x: Tensor, grid: Grid, rows: NDArray[Any], layout: Folded, prepared: Prepared | None) -> Parts:
    """The same maps for every ciphertext of the result, encoded once, and slots added."""
    _entries_allowed(rows.size * len(grid.bases))
    exact = x.context.exact
    place = np.arange(len(rows)).reshape(-1, 1)
    block = np.clip((grid.offsets - place) // layout.period, 0, layout.count - 1)
    to, of = (grid.unit * z for z in np.broadcast_arrays(place + layout.period * block, grid.offsets))
    made: dict[int, _native.Ciphertext] = {}
    for group, origins in enumerate(grid.origins):
        own = grid.groups == group
        shape = (len(grid.bases), len(rows), int(own.sum()))
        bases = grid.bases.reshape(-1, 1, 1)
        target, source = (np.ascontiguousarray(bases + z[:, own]).reshape(-1) for z in (to, of))
        values = _numbers.flat(np.broadcast_to(rows[:, own], shape).reshape(-1), exact)
        pairs = [(at, int(origin)) for at, origin in enumerate(origins)]
        for at, term in _moves.applied(x._parts, (target, source, values), pairs, exact, prepared):
            made[at] = term if at not in made else one(Operation.binary("add"), made[at], term)
    parts = [made[at] for at in range(grid.origins.shape[1])]
    if layout.count == 1:
        return parts
    operation = Operation.sum_slots(layout.count, grid.unit * layout.period)
    return _native.each([operation] * len(parts), [[part] for part in parts])


def _term_by_term(x: Tensor, columns: Places, matrix: NDArray[Any], prepared: Prepared | None) -> Made:
    """A map of each term from its slot to a fresh layout."""
    (outer, inner), batch = matrix.shape, columns.shape[1]
    _entries_allowed(outer * inner * batch)
    at = _layout.canonical((outer, batch), x._slots)
    shape = (outer, inner, batch)
    source = np.broadcast_to(columns.reshape(1, inner, batch), shape).reshape(-1)
    target = np.broadcast_to(at.reshape(outer, 1, batch), shape).reshape(-1)
    weights = np.broadcast_to(matrix.reshape(outer, inner, 1), shape).reshape(-1)
    return _moves.mapped(x._parts, x._slots, source, target, weights, x.context.exact, prepared), at, ZERO


# Products of encrypted matrices.


@dataclass(frozen=True)
class Shifted:
    """Element by element, one factor turned by each distance of two entries, and summed along the inner axis."""

    # For each distance the rows and columns of the product that have it.
    distances: tuple[tuple[int, Places, Places], ...]
    same: bool
    cost: float


def encrypted(x: Tensor, y: Tensor) -> Tensor:
    """The product of encrypted matrices, in the cheapest layout."""
    context = x.context._native
    shape = (x.shape[0], x.shape[1], y.shape[1])
    shifted = _shifted(x, y)
    try:
        left, right = (np.ascontiguousarray(z._at.reshape(-1)) for z in (x, y))
        made = context.matrix_product(shape, left, right, float("inf") if shifted is None else shifted.cost)
    except LayoutError:
        if shifted is None:
            raise
        return _run_shifted(x, y, shifted)
    factors = []
    for factor, on_right in ((x, False), (y, True)):
        parts = factor._parts
        for source, target in made.moves(on_right):
            # What the left factor has beyond its elements meets zeros of the right one.
            turns = None if on_right else _moves.turns_of(source, target, x._slots)
            way = _moves.Diagonals(source, target, 0.0) if turns is None else _moves.Turn(turns, FREE)
            parts = way.run(parts, x._slots, x.context.exact)
        factors.append(parts)
    at = made.places().reshape(shape[0], shape[2])
    held = None
    if x._held is not None and y._held is not None:
        product = x._held.elements.mul(y._held.elements)
        beside = x._held.mixed().beside.and_zero().mul(y._held.elements.and_zero())
        held = Held(product.total(shape[1]), beside.total(shape[1]))
    return x._of("matmul", made.multiply(*factors), at, FREE, held, np.result_type(x.dtype, y.dtype))


def _shifted(x: Tensor, y: Tensor) -> Shifted | None:
    """Where each row of both factors' inner axis lies alike: the distances of entries, of which there are few."""
    slots, a, b = x._slots, x._at.T, y._at
    rows = a // slots.row
    if (rows != rows[:, :1]).any() or (b // slots.row != rows[:, :1]).any() or len(x._parts) != len(y._parts):
        return None
    moved = a[:, :1] - a[:1, :1]
    if (a - a[:1] != moved).any() or (b - b[:1] != moved).any():
        return None
    apart = b[0][None, :] - a[0][:, None]
    same = _same(x.T, y)
    distances = []
    for distance in np.unique(np.abs(apart) if same else apart):
        r, c = np.nonzero(apart == distance)
        distances.append((int(distance), r, c))
    fold = sum(_moves.rotations_of(count) for count, _ in {(n, s) for _, n, s in _layout.runs(a, slots.row)})
    each = len(x._parts) * (ROTATION + PRODUCT) + fold * ROTATION
    return Shifted(tuple(distances), same, len(distances) * each + KEY * (fold + len(distances)))


def _same(x: Tensor, y: Tensor) -> bool:
    alike = len(x._parts) == len(y._parts) and all(p is q for p, q in zip(x._parts, y._parts))
    return alike and np.array_equal(x._at, y._at)


def _run_shifted(x: Tensor, y: Tensor, layout: Shifted) -> Tensor:
    left, row = x.T, x.context.row
    # Ciphertexts whose elements lie alike are multiplied and added at once.
    groups = _alike(left._at, x.context.slots)
    most = max(len(group) for group in groups)
    held = None
    if x._held is not None and y._held is not None:
        product = Held(x._held.elements.mul(y._held.elements), x._held.mixed().beside.mul(y._held.mixed().beside))
        held = product.mapped(lambda r: r.total(most))
    dtype = np.result_type(x.dtype, y.dtype)
    found: dict[tuple[int, int], tuple[int, int]] = {}
    terms: list[Tensor] = []
    for distance, rows, columns in layout.distances:
        turned = y._each(Operation.rotate(distance)) if distance else y._parts
        operands = [[*(left._parts[i] for i in group), *(turned[i] for i in group)] for group in groups]
        parts = _native.each([Operation.inner_product()] * len(groups), operands)
        at = _first_of(left._at[:, rows], groups, x.context.slots)
        terms.append(_sums.of_columns(left._of("mul", parts, at, FREE, held, dtype), at))
        found |= {(int(r), int(c)): (len(terms) - 1, i) for i, (r, c) in enumerate(zip(rows, columns))}
        if layout.same and distance:
            # The entries below the diagonal, at the slots of their own rows.
            term = terms[-1]
            at = term._at // row * row + (term._at + distance) % row
            terms.append(x._of("rotate", term._each(Operation.rotate(-distance)), at, FREE, term._held, dtype))
            found |= {(int(c), int(r)): (len(terms) - 1, i) for i, (r, c) in enumerate(zip(rows, columns))}
    joint, places = _stacks.joined(terms)
    entries = [[found[r, c] for c in range(y.shape[1])] for r in range(x.shape[0])]
    at = np.array([[places[term][place] for term, place in row] for row in entries], dtype=np.int64)
    return joint._view(at)


def _alike(at: Places, total: int) -> list[list[int]]:
    """Ciphertexts by the slots that their elements lie in, in order."""
    groups: dict[bytes, list[int]] = {}
    of = at[:, 0] // total
    for ciphertext in range(int(of.max()) + 1):
        groups.setdefault((at[of == ciphertext] % total).tobytes(), []).append(ciphertext)
    return list(groups.values())


def _first_of(at: Places, groups: list[list[int]], total: int) -> Places:
    """The slots in the first ciphertext of each group, which stands for all of it."""
    of = at[:, 0] // total
    return np.concatenate([at[of == group[0]] % total + i * total for i, group in enumerate(groups)])
