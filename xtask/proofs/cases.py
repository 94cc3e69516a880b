"""Complete case analysis: the algorithms on words of a few bits with all inputs, and the ranges of butterfly networks."""

import re

NETWORK = "crates/synchromesh-ring/src/ntt/network.rs"


def check(faults, holds, what):
    if not holds and len(faults) < 20:
        faults.append(what)
    return 1


def moduli(word, even=False):
    """What 2^19 < q < 2^61 is to a word of 64 bits: q with three bits to spare."""
    return [q for q in range(3, 1 << (word - 3)) if even or q % 2]


def shoup_and_reduce(word, faults):
    """mul_lazy, reduce, short_factor: every x, w and q."""
    count, full = 0, 1 << word
    for q in moduli(word):
        one, b = full // q, q.bit_length()
        fraction = ((full << b) // q) - full
        for x in range(full):
            rest = x - (x * one >> word) * q
            count += check(faults, 0 <= rest < 2 * q and min(rest, (rest - q) % full) == x % q, f"reduce {x} mod {q}")
        for w in range(q):
            c, shifted = (w << word) // q, w << (word - b)
            short = shifted + (shifted * fraction >> word)
            count += check(faults, short * q <= w * full < (short + 2) * q, f"short_factor {w} mod {q}")
            for x in range(full):
                lazy = (x * w - (x * c >> word) * q) % full
                count += check(faults, lazy < 2 * q and lazy % q == x * w % q, f"mul_lazy {x} {w} mod {q}")
                opened = x * w - (x * short >> word) * q
                count += check(faults, 0 <= opened * full < (full + 2 * x) * q, f"mul_open {x} {w} mod {q}")
    return count


def barrett(word, faults):
    """mul of the lanes and of a plaintext modulus: every pair of residues."""
    count, full = 0, 1 << word
    for q in moduli(word, even=True):
        b = q.bit_length()
        mu, square = (1 << (word - 1 + b)) // q, (1 << 2 * b) // q
        for x in range(q):
            for y in range(q):
                lead = x * y >> (b - 1)
                rest = (x * y - (lead * mu >> word) * q) % full
                if q % 2:
                    reduced = min(rest, (rest - 2 * q) % full)
                    reduced = min(reduced, (reduced - q) % full)
                    count += check(faults, rest < 3 * q and reduced == x * y % q, f"mul {x} {y} mod {q}")
                rest = (x * y - (lead * square >> (b + 1)) * q) % full
                reduced = min(rest, (rest - 2 * q) % full)
                reduced = min(reduced, (reduced - q) % full)
                count += check(faults, rest < 3 * q and reduced == x * y % q, f"WordModulus::mul {x} {y} mod {q}")
    return count


def reduce_double(word, faults):
    """reduce_u128: every double word."""
    count, full = 0, 1 << word
    for q in moduli(word):
        ratio = (full * full - 1) // q
        r1, r0 = divmod(ratio, full)
        for x in range(full * full):
            hi, lo = divmod(x, full)
            mid0 = lo * r1 + (lo * r0 >> word)
            mid1 = hi * r0 + mid0 % full
            quotient = (hi * r1 + (mid0 >> word) + (mid1 >> word)) % full
            rest = (lo - quotient * q) % full
            count += check(faults, min(rest, (rest - q) % full) == x % q and mid0 < full * full > mid1, f"{x} mod {q}")
    return count


# ---- ranges of the butterfly networks --------------------------------------------------------------------------

TIGHT, LOOSE, FREE = 4, 8, 32
FIRST, MIDDLE, LEAF, LAST = "First", "Middle", "Leaf", "Last"


def limit(bits):
    """network.rs: limit"""
    spare = 52 - bits
    return TIGHT if spare < 3 else LOOSE if spare < 5 else FREE


def brings_down(limit_, place, layer):
    """network.rs: brings_down"""
    if limit_ == LOOSE:
        return layer == 3 if place == FIRST else layer in (0, 3)
    if limit_ == FREE:
        return place == LEAF and layer == 0
    return layer > 0 if place == FIRST else True


def brings_down_doubles(limit_, place, layer):
    """network.rs: brings_down, for lanes of doubles"""
    if limit_ == FREE:
        return False
    return layer == 3 if place == FIRST else layer == 0


def passes(log_n):
    """All ways to cut the layers above the leaves into passes of 2, 3 or 4."""
    def cut(layers):
        if layers == 0:
            yield []
        for take in (2, 3, 4):
            if take <= layers:
                for rest in cut(layers - take):
                    yield [take, *rest]

    return cut(log_n - 6)


def forward(log_n, bits, faults, rule=brings_down):
    """The bound on all words, in multiples of q, through every layer of every cut: it never leaves the room of a word."""
    room, kind, count = (1 << 52) // (1 << bits) if bits <= 50 else 4, limit(bits), 0
    for layers in passes(log_n):
        bound = 1
        networks = [(FIRST if i == 0 else MIDDLE, n) for i, n in enumerate(layers)] + [(LEAF, 3), (LAST, 3)]
        for place, depth in networks:
            # Layers are numbered from 0 in a network of 8 or 16, and from 1 or 0 in one of 4 by the same rule.
            for layer in range(depth):
                if rule(kind, place, layer):
                    bound = 2
                # A factor without its companion gives products below (1 + 2x / 2^52) q, 2q where x is in half the room.
                short = kind == FREE and place == LAST
                ok = bound * (2 if short else 1) <= room
                bound += 2
                count += check(faults, ok and bound <= room, f"forward: {bits} bits, 2^{log_n}, {layers}, {place} {layer}: {bound} q")
        count += check(faults, bound <= 4 or kind != TIGHT, f"forward: {bits} bits ends at {bound} q")
    return count


def product_of_doubles(bound, bits):
    """doubles.rs: what x w is at most after its multiple of q, for |x| <= bound q, in multiples of q; prove.py has it."""
    return 0.5 + bound * 2.0 ** (bits - 53)


def forward_doubles(log_n, bits, faults, rule=brings_down_doubles):
    """The bound on |x| for all words, in multiples of q: never above 2^52, beyond which no factor may be."""
    room_of_word, kind, count = 2.0 ** (52 - bits), limit(bits), 0
    for layers in passes(log_n):
        bound = 1.0
        networks = [(FIRST if i == 0 else MIDDLE, n) for i, n in enumerate(layers)] + [(LEAF, 3), (LAST, 3)]
        for place, depth in networks:
            for layer in range(depth):
                count += check(faults, bound <= room_of_word, f"doubles: {bits} bits, 2^{log_n}, {layers}, {place} {layer}: {bound} q")
                kept = product_of_doubles(1, bits) if rule(kind, place, layer) else bound
                bound = kept + product_of_doubles(bound, bits)
        count += check(faults, bound <= room_of_word, f"doubles: {bits} bits ends at {bound} q")
    return count


def entry_of(kind):
    """network.rs: entry"""
    return 2 if kind == TIGHT else 4


def inverse_doubles(n, entry, bits, faults):
    """Sums and differences of N words of either sign within 2^52, products within q."""
    kind, room_of_word, count = limit(bits), 2.0 ** (52 - bits), 0
    down, _ = room(kind, n, entry, 1)
    bounds, half, layer = [entry] * n, 1, 0
    while half < n:
        for i in range(n):
            if i & half:
                continue
            x, y = (1, 1) if down[layer] >> i & 1 else (bounds[i], bounds[i + half])
            ok = x + y <= room_of_word and product_of_doubles(x + y, bits) <= 1
            count += check(faults, ok, f"doubles: inverse, {bits} bits, {n} words from {entry} q, layer {layer}, word {i}")
            bounds[i], bounds[i + half] = x + y, 1
        half, layer = 2 * half, layer + 1
    for i in range(n):
        bound = 1 if down[layer] >> i & 1 else bounds[i]
        count += check(faults, bound <= entry_of(kind), f"doubles: inverse, {bits} bits, {n} words end at {bound} q")
    return count


def room(kind, n, first, product=2):
    """network.rs: room, as it stands there."""
    down, offset, bounds, half, layer = [0] * 5, [0] * 4, [first] * n, 1, 0
    while half < n:
        for i in range(n):
            if i & half == 0 and 2 * bounds[i] > kind:
                down[layer] |= 1 << i | 1 << (i + half)
                bounds[i] = bounds[i + half] = product
        for i in range(n):
            if i & half == 0:
                offset[layer] = max(offset[layer], bounds[i].bit_length() - 1)
                bounds[i], bounds[i + half] = 2 * bounds[i], product
        half, layer = 2 * half, layer + 1
    for i in range(n):
        if bounds[i] > entry_of(kind):
            down[layer] |= 1 << i
    return down, offset


def inverse(n, entry, bits, faults, rule=room):
    """network.rs: `room`, followed word by word: sums, differences and products of N words within LIMIT q."""
    kind, room_of_word, count = limit(bits), (1 << 52) // (1 << bits), 0
    down, offset = rule(kind, n, entry)
    bounds, half, layer = [entry] * n, 1, 0
    while half < n:
        for i in range(n):
            if i & half:
                continue
            x, y = bounds[i], bounds[i + half]
            if down[layer] >> i & 1:
                x, y = 2, 2
            lift = 1 << offset[layer]
            # The difference stays positive, and neither it nor the sum leaves the word.
            ok = lift >= y and x + lift <= room_of_word and x + y <= room_of_word
            count += check(faults, ok, f"inverse: {bits} bits, {n} words from {entry} q, layer {layer}, word {i}")
            bounds[i], bounds[i + half] = x + y, 2
        half, layer = 2 * half, layer + 1
    for i in range(n):
        bound = 2 if down[layer] >> i & 1 else bounds[i]
        count += check(faults, bound <= 4, f"inverse: {bits} bits, {n} words end at {bound} q")
    return count


def same_rules(root, faults):
    """The rules above are copies: what they copy must still stand in the code."""
    text = re.sub(r"\s+", " ", (root / NETWORK).read_text())
    copied = [
        "0..3 => TIGHT, 3 | 4 => LOOSE, _ => FREE,",
        "(LOOSE, Place::First) => layer == 3, (LOOSE, _) => layer == 0 || layer == 3, (FREE, Place::Leaf) => layer == 0, "
        "(FREE, _) => false, (_, Place::First) => layer > 0, _ => true,",
        "if i & half == 0 && 2 * bounds[i] > limit {",
        "(bounds[i], bounds[i + half]) = (2 * bounds[i], product);",
        "if limit == TIGHT { 2 } else { 4 }",
        "let product = if L::DOUBLES { 1 } else { 2 };",
        "[room(LIMIT, N, entry(LIMIT), product), room(LIMIT, N, 1, product)]",
        "(FREE, _) if L::DOUBLES => false, (_, Place::First) if L::DOUBLES => layer == 3, _ if L::DOUBLES => layer == 0,",
    ]
    return sum(check(faults, rule in text, f"{NETWORK} no longer says '{rule}'") for rule in copied)


def planted():
    """Rules that are wrong on purpose: how many were found."""
    never, rarely, late, doubles = [], [], [], []
    for bits in range(20, 50):
        forward(18, bits, never, lambda kind, place, layer: kind != FREE and brings_down(kind, place, layer))
        forward(18, bits, rarely, lambda kind, place, layer: layer == 3 if kind == LOOSE else brings_down(kind, place, layer))
        inverse(16, 4, bits, late, lambda kind, n, entry: room(2 * kind, n, entry))
    forward_doubles(12, 50, doubles, lambda kind, place, layer: False)
    return sum(bool(found) for found in (never, rarely, late, doubles))


def run(root):
    """All cases: how many of each kind, and what failed."""
    faults = []
    small = sum(shoup_and_reduce(word, faults) + barrett(word, faults) for word in (6, 7, 8, 9)) + reduce_double(7, faults)
    ranges = same_rules(root, faults)
    for bits in range(20, 51):
        for log_n in range(10, 19):
            ranges += forward(log_n, bits, faults) + forward_doubles(log_n, bits, faults)
        if limit(bits) != TIGHT:
            ranges += sum(inverse(n, entry, bits, faults) for n in (4, 8, 16) for entry in (1, 4))
        entries = (1, entry_of(limit(bits)))
        ranges += sum(inverse_doubles(n, entry, bits, faults) for n in (4, 8, 16) for entry in entries)
    found = planted()
    check(faults, found == 4, f"only {found} of 4 planted rules were found")
    return {"small_word_cases": small, "range_cases": ranges, "planted_rules_found": found}, faults
