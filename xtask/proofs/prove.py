"""Proofs of the word arithmetic by an SMT solver and by complete case analysis: for every modulus, not for samples.

Each statement names the function it is about. Three ways, each where it is complete:
  words    64-bit vectors, for sums, differences, selections and carries, with the modulus symbolic;
  products real arithmetic with a remainder for every rounding: a quotient floor(n / d) is a variable k with
           n = k d + r, 0 <= r < d. What holds of reals holds of the integers among them;
  cases    all inputs of the same algorithm on words of a few bits, and the ranges of butterfly networks layer by layer.
Statements with `planted` are wrong on purpose and must be refuted. Prints one line of JSON.
"""

import json
import pathlib
import re
import sys
import time

import z3

import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANES = "crates/synchromesh-ring/src/kernels/lanes.rs"
IFMA = "crates/synchromesh-ring/src/kernels/lanes/ifma.rs"
DOUBLES = "crates/synchromesh-ring/src/kernels/lanes/doubles.rs"
CONVERT = "crates/synchromesh-ring/src/kernels/convert/doubles.rs"
MODULUS = "crates/synchromesh-ring/src/modulus.rs"
NETWORK = "crates/synchromesh-ring/src/ntt/network.rs"
TILE = "crates/synchromesh-ring/src/kernels/convert/tile.rs"
WORD = "crates/synchromesh/src/plain_modulus/word.rs"

STATEMENTS = []


def statement(file, function, planted=False):
    """Registers a function that returns (assumptions, claim) for the solver."""

    def register(f):
        STATEMENTS.append((f"{file}: {function}: {f.__doc__.strip()}", f, planted))
        return f

    return register


def constant(file, pattern):
    """A constant as it stands in the code, so that a change of it is proven anew."""
    return int(re.search(pattern, (ROOT / file).read_text()).group(1))


# ---- words -------------------------------------------------------------------------------------------------------

def words(names):
    return [z3.BitVec(name, 64) for name in names.split()]


def u(x, y):
    return z3.ULT(x, y)


def bv(x):
    return z3.BitVecVal(x, 64)


def smaller(x, y):
    return z3.If(z3.ULT(x, y), x, y)


def larger(x, y):
    return z3.If(z3.ULT(x, y), y, x)


def modulus(q):
    """0 < q < 2^61: more than there are."""
    return [u(bv(0), q), u(q, bv(1 << 61))]


def wide(x):
    """As a signed number in 67 bits, where nothing below wraps around."""
    return z3.SignExt(3, x)


def unsigned(x):
    return z3.ZeroExt(3, x)


# The two forms of each selection: of scalar and 512-bit lanes, which compare, and of AVX2, which looks at the sign.
CSUB = [lambda x, m: smaller(x, x - m), lambda x, m: z3.If(x - m < 0, x, x - m)]
CADD = [lambda x, m: smaller(x, x + m), lambda x, m: z3.If(x < 0, x + m, x)]
CSUB_NEGATIVE = [lambda x, m: larger(x, x - m), lambda x, m: z3.If(x < 0, x, x - m)]


@statement(MODULUS, "add")
def _():
    """a + b mod q"""
    a, b, q = words("a b q")
    s = a + b
    r = smaller(s, s - q)
    exact = unsigned(a) + unsigned(b)
    return modulus(q) + [u(a, q), u(b, q)], z3.And(u(r, q), z3.Or(unsigned(r) == exact, unsigned(r) + unsigned(q) == exact))


@statement(MODULUS, "sub")
def _():
    """a - b mod q"""
    a, b, q = words("a b q")
    d = a - b
    r = smaller(d, d + q)
    exact = unsigned(a) - unsigned(b)
    return modulus(q) + [u(a, q), u(b, q)], z3.And(u(r, q), z3.Or(unsigned(r) == exact, unsigned(r) == exact + unsigned(q)))


def csub_bounds(form, name):
    @statement(LANES, f"csub ({name})")
    def _():
        """x - m if x >= m, else x, for x < 2^63 and m <= 2^63, and r < m where x < 2m"""
        x, m = words("x m")
        r = CSUB[form](x, m)
        exact = z3.If(z3.ULT(x, m), x, x - m)
        return [u(x, bv(1 << 63)), z3.ULE(m, bv(1 << 63))], z3.And(
            r == exact, z3.Implies(z3.ULT(unsigned(x), 2 * unsigned(m)), u(r, m)))

    @statement(LANES, f"cadd ({name})")
    def _():
        """x + m if x < 0, else x, for -m <= x < m and m <= 2^63 - 1"""
        x, m = words("x m")
        r = CADD[form](x, m)
        return [m > 0, wide(x) >= -wide(m), x < m], z3.And(r == z3.If(x < 0, x + m, x), r >= 0, r < m)

    @statement(LANES, f"csub_negative ({name})")
    def _():
        """x - m if x >= 0, else x, in [-m, 0), for -m <= x < m and m <= 2^62"""
        x, m = words("x m")
        r = CSUB_NEGATIVE[form](x, m)
        return [m > 0, m <= bv(1 << 62), x >= -m, x < m], z3.And(r == z3.If(x < 0, x, x - m), r >= -m, r < 0)


csub_bounds(0, "comparison")
csub_bounds(1, "sign")


@statement(LANES, "butterfly")
def _():
    """in u < 2q and w y < 2q: out < 4q < 2^63, without wrapping around"""
    x, v, q = words("u v q")
    assume = modulus(q) + [u(x, 2 * q), u(v, 2 * q)]
    s, d = x + v, x + 2 * q - v
    return assume, z3.And(u(s, 4 * q), u(d, 4 * q), u(s, bv(1 << 63)), u(d, bv(1 << 63)),
                          unsigned(s) == unsigned(x) + unsigned(v),
                          unsigned(d) == unsigned(x) + 2 * unsigned(q) - unsigned(v))


@statement(LANES, "butterfly", planted=True)
def _():
    """for moduli below 2^63: out < 4q"""
    x, v, q = words("u v q")
    s = x + v
    return [u(q, bv(1 << 63)), u(x, 2 * q), u(v, 2 * q)], z3.And(u(s, 4 * q), unsigned(s) == unsigned(x) + unsigned(v))


@statement(LANES, "bring_down")
def _():
    """in x < 4q: out < 2q and congruent"""
    x, q = words("x q")
    claims = []
    for csub in CSUB:
        r = csub(x, 2 * q)
        claims += [u(r, 2 * q), z3.Or(r == x, r + 2 * q == x)]
    return modulus(q) + [u(x, 4 * q)], z3.And(claims)


def inverse_butterfly(form, entry, lower):
    kinds = ["REDUCED", "LAZY", "SPLIT"]

    @statement(NETWORK, f"inverse_butterfly({kinds[entry]}, lower = {lower}, form {form})")
    def _():
        """sum < z, or in [-z, 0) if lower; 0 <= difference < 2z; congruent"""
        x, y, q = words("x y q")
        z = 2 * q
        inputs = [
            [u(x, q), u(y, q)],
            [u(x, z), u(y, z)],
            [u(x, z), y >= -z, y < 0],
        ][entry]
        total = x + y
        difference = x - y if entry == 2 else x + z - y
        out = {
            (0, False): total,
            (0, True): total - z,
            (1, False): CSUB[form](total, z),
            (1, True): CSUB_NEGATIVE[form](total - z, z),
            (2, False): CADD[form](total, z),
            (2, True): CSUB_NEGATIVE[form](total, z),
        }[(entry, lower)]
        ranged = z3.And(out >= -z, out < 0) if lower else z3.And(out >= 0, out < z)
        exact = wide(x) + wide(y)
        congruent = z3.Or([wide(out) == exact + k * wide(z) for k in (-2, -1, 0, 1)])
        exact_difference = wide(x) - wide(y) + (0 if entry == 2 else 1) * wide(z)
        return modulus(q) + inputs, z3.And(ranged, congruent, difference >= 0, u(difference, 2 * z),
                                           wide(difference) == exact_difference)


for form_ in (0, 1):
    for entry_ in (0, 1, 2):
        for lower_ in (False, True):
            inverse_butterfly(form_, entry_, lower_)


@statement(NETWORK, "inverse_butterfly_last")
def _():
    """in x < z, y in [-z, 0): what is multiplied lies in [0, 2z)"""
    x, y, q = words("x y q")
    z = 2 * q
    s, d = x + z + y, x - y
    return modulus(q) + [u(x, z), y >= -z, y < 0], z3.And(s >= 0, u(s, 2 * z), d >= 0, u(d, 2 * z))


@statement(LANES, "carry")
def _():
    """sum < addend says whether sum = x + addend wrapped around"""
    x, addend = words("x addend")
    s = x + addend
    return [], z3.If(u(s, addend), 1, 0) == z3.If(z3.UGE(unsigned(x) + unsigned(addend), z3.BitVecVal(1 << 64, 67)), 1, 0)


@statement(LANES, "mul: the leading part")
def _():
    """(hi << (65 - b)) | (lo >> (b - 1)) is floor((hi, lo) / 2^(b-1)) for b = 20 .. 61 and products below 2^2b"""
    hi, lo = words("hi lo")
    whole = z3.Concat(hi, lo)
    claims = []
    for b in range(20, 62):
        lead = (hi << (65 - b)) | z3.LShR(lo, b - 1)
        claims.append(z3.Implies(z3.ULT(whole, z3.BitVecVal(1 << (2 * b), 128)),
                                 z3.ZeroExt(64, lead) == z3.LShR(whole, b - 1)))
    return [], z3.And(claims)


# ---- products ----------------------------------------------------------------------------------------------------

def reals(names):
    return z3.Reals(names)


def below(x, bound):
    return z3.And(0 <= x, x < bound)


class Lemma:
    """What follows from the assumptions before it. Proven by itself, then used."""

    def __init__(self, claim):
        self.claim = claim


def lemmas(*claims):
    return [Lemma(claim) for claim in claims]


def shoup(word, bound):
    def prove():
        # s = floor(w 2^W / q), h = floor(x s / 2^W), r = x w - h q.
        x, w, q, s, s0, h, h0, r = reals("x w q s s0 h h0 r")
        W = 2**word
        assume = [q > 2**19, below(w, q), below(x, W), w * W == s * q + s0, below(s0, q),
                  x * s == h * W + h0, below(h0, W), r == x * w - h * q]
        # By multiplying the last with W.
        assume += lemmas(W * r == x * s0 + h0 * q, below(x * s0, W * q), below(h0 * q, W * q))
        return assume, z3.And(0 <= r, r < bound(q))

    return prove


def add(file, function, doc, prove, planted=False):
    prove.__doc__ = doc
    STATEMENTS.append((f"{file}: {function}: {doc}", prove, planted))


add(LANES, "mul_lazy", "x w - floor(x c / 2^64) q is in [0, 2q) for any word x and w < q", shoup(64, lambda q: 2 * q))
add(IFMA, "mul_lazy, mul_open", "the same with 52 bits", shoup(52, lambda q: 2 * q))
add(LANES, "mul_lazy", "out < 3/2 q", shoup(64, lambda q: q * 3 / 2), planted=True)


def reduce_word(word):
    def prove():
        # one = floor(2^W / q), h = floor(x one / 2^W), r = x - h q.
        x, q, o, o0, h, h0, r = reals("x q o o0 h h0 r")
        W = 2**word
        return [q > 1, below(x, W), o * q + o0 == W, below(o0, q), x * o == h * W + h0, below(h0, W), r == x - h * q,
                *lemmas(W * r == x * o0 + h0 * q, below(x * o0, W * q), below(h0 * q, W * q))], z3.And(0 <= r, r < 2 * q)

    return prove


add(MODULUS, "reduce", "the quotient is short by at most one for any word", reduce_word(64))
add(IFMA, "bring_down, acc_reduce", "the same with 52 bits", reduce_word(52))


def reduce_wide():
    # R = floor(2^128 / q), k = floor(x R / 2^128), r = x - k q.
    x, q, o, o0, k, k0, r = reals("x q R R0 k k0 r")
    W = 2**128
    return [q > 2**19, below(x, W), o * q + o0 == W, below(o0, q), x * o == k * W + k0, below(k0, W), r == x - k * q,
            *lemmas(W * r == x * o0 + k0 * q, below(x * o0, W * q), below(k0 * q, W * q))], z3.And(0 <= r, r < 2 * q)


add(MODULUS, "reduce_u128", "with the quotient floor(x R / 2^128) the rest is below 2q for any double word", reduce_wide)


def barrett_words():
    # carry, mid0, mid1 and the quotient of the code against floor((hi 2^64 + lo)(r1 2^64 + r0) / 2^128).
    W = 2**64
    hi, lo, r1, r0, carry, c0, high0, low0, high1, low1 = z3.Ints("hi lo r1 r0 carry c0 high0 low0 high1 low1")
    ll, lh, hl, hh = z3.Ints("ll lh hl hh")  # the four partial products, as unknowns
    word_ = [below(x, W) for x in (c0, low0, low1)]
    products = [below(x, (W - 1) * (W - 1) + 1) for x in (ll, lh, hl, hh)]
    assume = word_ + products + [ll == carry * W + c0, lh + carry == high0 * W + low0, hl + low0 == high1 * W + low1]
    quotient = hh + high0 + high1
    whole = hh * W * W + (lh + hl) * W + ll
    return assume, z3.And(quotient * W * W <= whole, whole < (quotient + 1) * W * W,
                          lh + carry < W * W, hl + low0 < W * W)


add(MODULUS, "reduce_u128", "carry, mid0 and mid1 give exactly that quotient, and no sum overflows", barrett_words)


def barrett(word, bits, factor):
    def prove():
        # B = 2^b with B/2 < q < B; lead = floor(2 a b / B), mu = floor(2^(W-1) B / q), k = floor(lead mu / 2^W).
        p, q, B, lead, l0, mu, m0, k, k0, r = reals("ab q B lead l0 mu m0 k k0 r")
        W = 2**word
        return [2**19 < q, B / 2 <= q, q < B, B <= 2**bits, below(p, q * q), p == lead * B / 2 + l0, below(l0, B / 2),
                mu * q + m0 == W // 2 * B, below(m0, q), lead * mu == k * W + k0, below(k0, W), r == p - k * q,
                lead >= 0,
                # As W p = W lead B/2 + W l0 and q lead mu = lead (W/2 B - m0).
                *lemmas(below(lead, 2 * B), W * r == W * l0 + lead * m0 + k0 * q, below(lead * m0, 2 * B * q), 2 * B * q <= 2 * 2**bits * q,
                        below(k0 * q, W * q))], z3.And(0 <= r, r < factor * q)

    return prove


add(LANES, "mul", "the rest is below 9/4 q, so that 2q and q leave it reduced", barrett(64, 61, z3.Q(9, 4)))
add(IFMA, "mul", "the rest is below 5/2 q for q < 2^50", barrett(52, 50, z3.Q(5, 2)))
add(LANES, "mul", "the rest is below 2q", barrett(64, 61, 2), planted=True)


def barrett_word_modulus():
    # square = floor(B^2 / t), top = floor(2 a b / B), k = floor(top square / (2 B)).
    p, t, B, top, t0, s, s0, k, k0, r = reals("ab t B top t0 square s0 k k0 r")
    return [2 <= t, B / 2 <= t, t < B, below(p, t * t), p == top * B / 2 + t0, below(t0, B / 2),
            s * t + s0 == B * B, below(s0, t), top * s == 2 * B * k + k0, below(k0, 2 * B), r == p - k * t,
            top >= 0,
            *lemmas(below(top, 2 * B), 2 * B * r == 2 * B * t0 + top * s0 + k0 * t, below(top * s0, 2 * B * t), below(k0 * t, 2 * B * t),
                    2 * B * t0 < B * B, B * B <= 2 * B * t)], z3.And(0 <= r, r < 3 * t)


add(WORD, "mul", "the quotient is short by at most two: the rest is below 3t", barrett_word_modulus)


def short_factor(word):
    def prove():
        # f = floor((B/q - 1) 2^W); v = w 2^W / B; c = v + floor(v f / 2^W): between w 2^W/q - 2 and w 2^W/q.
        w, q, B, v, f, f0, g, g0, c = reals("w q B v f f0 g g0 c")
        W = 2**word
        return [2**19 < q, q < B, B <= 2 * q, B <= W, below(w, q), v * B == w * W, (f + W) * q + f0 == W * B, below(f0, q),
                v * f == g * W + g0, below(g0, W), c == v + g,
                *lemmas(below(v, W), W * c * q == W * (w * W) - v * f0 - g0 * q, below(v * f0, W * q),
                        below(g0 * q, W * q))], z3.And(c * q <= w * W, c * q > w * W - 2 * q)

    return prove


add(LANES, "short_factor", "w 2^64 / q - 2 < c <= w 2^64 / q", short_factor(64))
add(IFMA, "short_factor", "the same with 52 bits", short_factor(52))


def short_product():
    # With such a c: x w - floor(x c / 2^W) q < (1 + 2 x / 2^W) q.
    x, w, q, c, h, h0, r = reals("x w q c h h0 r")
    W = 2**52
    return [q > 1, below(x, W), below(w, q), c * q <= w * W, c * q > w * W - 2 * q, x * c == h * W + h0, below(h0, W),
            r == x * w - h * q,
            *lemmas(W * r == x * (w * W - c * q) + h0 * q, x * (w * W - c * q) <= 2 * x * q, x * (w * W - c * q) >= 0,
                    below(h0 * q, W * q))], z3.And(0 <= r, W * r < (W + 2 * x) * q)


add(IFMA, "mul_open with short_factor", "products are in [0, (1 + 2x / 2^52) q)", short_product)


def fixed_count():
    # b_j = log2 B: h = floor(2^51 y / B), F = floor(2^51 B / p), z = floor(h F / 2^52), in units of 2^-50.
    y, p, B, h, h0, F, f0, z, z0 = reals("y p B h h0 F f0 z z0")
    return [2**19 < p, p < B, B <= 2 * p, B <= 2**61, below(y, p), 2**51 * y == h * B + h0 * B, below(h0, 1),
            F * p + f0 == 2**51 * B, below(f0, p), h >= 0, h * F == z * 2**52 + z0, below(z0, 2**52),
            # By inserting h B and F p.
            *lemmas(2**52 * p * z == 2**102 * y - 2**51 * h0 * B - h * f0 - z0 * p, below(h, 2**51),
                    below(h * f0, 2**51 * p), below(z0 * p, 2**52 * p), h0 * B >= 0, h0 * B <= 2 * p)], z3.And(
                p * z <= 2**50 * y, p * z > 2**50 * y - 4 * p)


add(TILE, "FixedCount", "each term is at most y 2^50 / p and short by less than 4", fixed_count)


def accumulator(terms, bits, first):
    def prove():
        # x + sum of `terms` products of residues below 2^bits, as two words.
        q, x, s = reals("q x s")
        return [0 < q, q <= 2**bits, below(x, first), 0 <= s, s <= terms * (2**bits - 1) ** 2], x + s < 2**128

    return prove


def accumulators():
    terms = constant(LANES, r"const ACC_TERMS: usize = (\d+)")
    add(LANES, "acc_mul", f"a residue and {terms} products fit two words", accumulator(terms, 61, 2**61))
    add(LANES, "acc_mul", "a residue and 128 products fit two words", accumulator(128, 61, 2**61), planted=True)
    narrow = constant(IFMA, r"const ACC_TERMS: usize = (\d+)")

    def of(count):
        def prove():
            # The low word adds up to `count` parts below 2^52, the high one as many below 2^48.
            low, high, carried = reals("low high carried")
            return [0 <= low, low <= 2**50 + count * (2**52 - 1), 0 <= high, high <= count * 2**48,
                    carried <= high + low / 2**52, 0 <= carried], z3.And(low < 2**64, carried < 2**52)

        return prove

    add(IFMA, "acc_mul, acc_reduce", f"a residue and {narrow} products: no word overflows, the high one stays below 2^52",
        of(narrow))
    add(IFMA, "acc_mul, acc_reduce", "a residue and 16 products do", of(16), planted=True)


accumulators()


def acc_reduce():
    high, low, q = reals("high low q")
    return [q > 0, below(high, 2 * q), below(low, 2 * q)], z3.And(high + low < 4 * q, 4 * q > 0)


add(LANES, "acc_reduce", "two parts below 2q add up below 4q, so that 2q and q leave them reduced", acc_reduce)


# ---- doubles -----------------------------------------------------------------------------------------------------
# A double nearest to v is v + e with |e| <= U |v|; the integer that a fused product beside 3 2^51 rounds to is v + e with
# |e| <= 1/2. Integers below 2^53 are exact.

U = z3.Q(1, 2**53)


def within(x, bound):
    return z3.And(-bound <= x, x <= bound)


def doubles_product(bound):
    def prove():
        # h = x w + e1, q_inverse = (1 + f) / q, quotient = h q_inverse + e2, r = x w - quotient q; |x| <= X, |w| <= (q - 1)/2.
        p, q, X, a, e1, f, e2, r = reals("xw q X a e1 f e2 r")
        return [2**10 < q, q < 2**50, X <= 2**52, 0 < X, a == X * (q - 1) / 2, within(p, a), within(e1, a * U), within(f, U),
                within(e2, z3.Q(1, 2)), r == -p * f - e1 - e1 * f - e2 * q, within(p * f, a * U), within(e1 * f, a * U * U),
                *lemmas(within(e2 * q, q / 2), X * (q - 1) * (1 + U / 2) < X * q,
                        within(r, a * (2 * U + U * U) + q / 2))], bound(r, q, X)

    return prove


add(DOUBLES, "product", "|r| < q/2 + |x| q / 2^53, which is below q for |x| <= 2^52",
    doubles_product(lambda r, q, X: z3.And(r < q / 2 + X * q * U, -r < q / 2 + X * q * U, X * q * U <= q / 2)))
add(DOUBLES, "product", "|r| <= q/2", doubles_product(lambda r, q, X: z3.And(r <= q / 2, -r <= q / 2)), planted=True)


def doubles_range():
    # The quotient before it is rounded stays where doubles beside 3 2^51 are integers, and what is left is exact:
    # h is an integer, and h - quotient q = r - (x w - h).
    p, q, a, h, v, r, d = reals("xw q a h v r d")
    return [2**10 < q, q < 2**50, a == 2**52 * (q - 1) / 2, within(p, a), within(h - p, a * U), within(v * q - h, (a + a * U) * U),
            within(r, q), d == r + (h - p)], z3.And(v < 2**51, -v < 2**51, d < 2**53, -d < 2**53)


add(DOUBLES, "nearest, remainder", "|quotient| < 2^51 and what is left of h is an integer below 2^53", doubles_range)


def doubles_companion():
    # c = w/q + d: rounded down to 2^-64 and to a double at most 1/2. quotient = x c + e, r = x w - quotient q.
    x, q, d, e, r = reals("x q d e r")
    off = z3.Q(1, 2**54) + z3.Q(1, 2**63)
    return [q > 1, within(x, 2**52), within(d, off), within(e, z3.Q(1, 2)), r == -(x * d) * q - e * q, within(x * d, z3.Q(1, 3)),
            *lemmas(within(x * d * q, q / 3), within(e * q, q / 2))], z3.And(r < q, -r < q)


def doubles_companion_off():
    x, d = reals("x d")
    off = z3.Q(1, 2**54) + z3.Q(1, 2**63)
    return [within(x, 2**52), within(d, off)], within(x * d, z3.Q(1, 3))


add(DOUBLES, "product_by", "a companion is off by at most 2^-54 + 2^-63, so that x c is off by at most 1/3", doubles_companion_off)
add(DOUBLES, "product_by, mul_lazy", "|r| < q for x < 2^52", doubles_companion)


def doubles_centred():
    # quotient = x (1 + f) / q + e, r = x - quotient q.
    x, q, f, e, r = reals("x q f e r")
    return [q > 4, within(x, 2**53), within(f, U), within(e, z3.Q(1, 2)), r == -x * f - e * q, within(x * f, 1),
            *lemmas(within(e * q, q / 2))], z3.And(r < q, -r < q)


add(DOUBLES, "centred, leave", "|r| < q, so that one addition of q makes it a residue", doubles_centred)


def doubles_accumulator(count):
    def prove():
        # low is a sum of parts within 2^50 and a residue; (high, low) stand for x = high 2^51 + low, 2^60 lifts low.
        x, low, high, carry, left = reals("x low high carry left")
        return [0 <= x, x < 2**50 + count * (2**50 - 1) ** 2, within(low, (count + 1) * 2**50), x == high * 2**51 + low,
                low + 2**60 == carry * 2**51 + left, below(left, 2**51)], z3.And(
                    low + 2**60 >= 0, high + carry - 2**9 < 2**53, high + carry - 2**9 >= -1)

    return prove


terms_of_doubles = constant(DOUBLES, r"const TERMS: usize = (\d+)")
add(DOUBLES, "acc_mul, acc_reduce", f"after {terms_of_doubles} products the low half can be lifted and the high one is below 2^53",
    doubles_accumulator(terms_of_doubles))
add(DOUBLES, "acc_mul, acc_reduce", "after 17", doubles_accumulator(17), planted=True)


def doubles_residue(bound):
    def prove():
        # x = Q q + s with an integer |s| <= (q - 1)/2, and x (1/q) is off by f; the nearest integer is Q if nothing is as near.
        x, q, Q, s, f, v = reals("x q Q s f v")
        return [q > 2**19, x == Q * q + s, within(s, (q - 1) / 2), within(x, bound - 1), within(f, U), v * q == x + x * f,
                within(x * f, (bound - 1) * U), *lemmas((v - Q) * q == s + x * f)], z3.And((v - Q) * q < q / 2, (Q - v) * q < q / 2)

    return prove


add(DOUBLES, "residue", "x / q is rounded to the integer that leaves the centred residue, for |x| < 2^52", doubles_residue(2**52))
add(DOUBLES, "residue", "for |x| < 2^54", doubles_residue(2**54), planted=True)


def short_accumulator(count):
    def prove():
        # q < 2^47, products below 2^47 q as high 2^48 + low with low within 2^47, and at most a residue of either sign beside the
        # low ones; f is what 1/q is off by, rest what is left of high 2^48 by the integer nearest to its product by that.
        low, high, residue, total, q, f, v, e, rest = reals("low high residue total q f v e rest")
        return [2**19 < q, q < 2**47, within(residue, q), within(low - residue, count * 2**47), 0 <= total - residue,
                total - residue <= count * (2**47 - 1) * q, high == total - low, within(f, U), v * q == high + high * f,
                within(high * f, 2**51 * q * U), within(e, z3.Q(1, 2)), rest == -high * f - e * q, within(e * q, q / 2)], z3.And(
            within(low, 2**51), within(high, 2**100), v * q < 2**51 * q, -v * q < 2**51 * q, within(rest, q),
            rest + low - (q - 1) / 2 < 2**52, rest + low - (q - 1) / 2 > -2**52)

    return prove


add(DOUBLES, "add_product, amount", f"of short words after {terms_of_doubles} products |low| <= 2^51, and what both amount to is below 2^52",
    short_accumulator(terms_of_doubles))
add(DOUBLES, "add_product, amount", "of short words after 17", short_accumulator(17), planted=True)


def split_accumulator(count):
    def prove():
        # Sums of y_0 m_0, y_1 m_1 and (y_0 + y_1) (m_0 + m_1), the first and last with a residue less (q - 1)/2; b is the middle
        # third, upper the multiple of 2^24 nearest to it; high is in units of 2^48.
        a, c, total, b, upper, high, low, rest = reals("a c total b upper high low rest")
        return [within(a, count * 2**46 + 2**47), within(c, count * 2**47), within(total, count * 3 * 2**47 + 2**47),
                within(b, count * (2**46 + 2**47)), within(b - upper, 2**23), high == c + upper / 2**24,
                low == a + (b - upper) * 2**24, within(rest, 2**47)], z3.And(
                    total < 2**53, -total < 2**53, within(b + a, 2**53), within(high, 2**52), within(low + rest, 2**51))

    return prove


add(CONVERT, "Sums", f"after {terms_of_doubles} products of split words every sum is exact, and what they amount to is below 2^51",
    split_accumulator(terms_of_doubles))
add(CONVERT, "Sums", "after 30", split_accumulator(30), planted=True)


# ---- running -----------------------------------------------------------------------------------------------------

def judge(prove, planted):
    """Whether the solver says what it should: no counterexample, or one where a mistake was planted."""
    assumptions, claim = prove()
    solver = z3.Solver()
    solver.set("timeout", 240_000)

    def refuted(claim):
        solver.push()
        solver.add(z3.Not(claim))
        answer = solver.check()
        solver.pop()
        return answer

    for assumption in assumptions:
        if isinstance(assumption, Lemma):
            answer = refuted(assumption.claim)
            if answer != z3.unsat:
                return f"the lemma {assumption.claim}: {answer}"
            assumption = assumption.claim
        solver.add(assumption)
    # Assumptions that nothing satisfies prove anything.
    if not planted and solver.check() != z3.sat:
        return f"the assumptions: {solver.check()}"
    # Each part of the claim apart, which is easier.
    parts = claim.children() if z3.is_and(claim) and not planted else [claim]
    wanted = z3.sat if planted else z3.unsat
    answers = [answer for answer in map(refuted, parts) if answer != wanted]
    return f"{answers[0]}, wanted {wanted}" if answers else None


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    proven, refuted, findings = 0, 0, []
    for name, prove, planted in STATEMENTS:
        if only not in name:
            continue
        start = time.time()
        fault = judge(prove, planted)
        print(f"{time.time() - start:6.1f} s  {'planted: ' if planted else ''}{name}{f'  FAILED: {fault}' if fault else ''}",
              file=sys.stderr, flush=True)
        if fault:
            findings.append(f"{name}: {fault}")
        else:
            proven, refuted = proven + (not planted), refuted + planted
    counts, faults = cases.run(ROOT)
    for fault in findings + faults:
        print(fault, file=sys.stderr)
    print(json.dumps({"findings": len(findings) + len(faults), "proven": proven, "planted_refuted": refuted, **counts,
                      "solver": f"z3 {z3.get_version_string()}"}))
    return 1 if findings or faults else 0


if __name__ == "__main__":
    sys.exit(main())
