// Arithmetic modulo one odd q, 2^19 < q < 2^61; each function states the ranges it takes and returns.
#pragma once
#include "device.h"

// A factor w < q and floor(w 2^64 / q); of a prime that is computed with in doubles, the bits of w in (-q/2, q/2) and of w/q,
// rounded to nearest but in transforms.
struct alignas(16) Pair {
    u64 value;
    u64 quotient;
};

// What is known of one prime of the ring.
struct Prime {
    u64 q;
    // floor(2^128 / q).
    u64 ratio_high;
    u64 ratio_low;
    // 2^63 mod q.
    u64 sign;
    // N^-1 mod q.
    Pair inverse_n;
    // q and 1/q as doubles, and whether transforms are in doubles: q < 2^50 and a device that multiplies them fast.
    double modulus;
    double inverse;
    u64 in_doubles;
    // Half of its bits, rounded up.
    u32 half_bits;
    u32 unused;
};

// in: x < 2 bound; out: < bound.
DEV_FN u64 below(u64 x, u64 bound) { return x >= bound ? x - bound : x; }

// in: x < q, y < q; out: x - y mod q, < q.
DEV_FN u64 subtract(u64 x, u64 y, u64 q) {
    u64 difference = x - y;
    return x < y ? difference + q : difference;
}

// in: any x, w < q; out: x w mod q, < 2q (Shoup).
DEV_FN u64 mul_lazy(u64 x, Pair w, u64 q) { return x * w.value - mul_high(x, w.quotient) * q; }

// in: any x, w < q; out: x w mod q, < q.
DEV_FN u64 mul_constant(u64 x, Pair w, u64 q) { return below(mul_lazy(x, w, q), q); }

// in: any x; out: x mod q, < q. The quotient is short by at most 1.
DEV_FN u64 reduce(u64 x, const Prime& p) { return below(x - mul_high(x, p.ratio_high) * p.q, p.q); }

// A sum of products, 128 bits.
struct Sum {
    u64 low;
    u64 high;
};

// Products of words below 2^61 that a sum holds beside a word: (2^128 - 2^64) / 2^122 > 63.
#define SUM_TERMS 63u

DEV_FN void add_product(Sum& sum, u64 a, u64 b) {
    u64 low = a * b;
    sum.high += mul_high(a, b);
    sum.low += low;
    sum.high += sum.low < low ? 1 : 0;
}

// in: any sum; out: sum mod q, < q (Barrett with a ratio of two words; the quotient is short by at most 1).
DEV_FN u64 reduce_sum(Sum sum, const Prime& p) {
    u64 carry = mul_high(sum.low, p.ratio_low);
    u64 middle = sum.low * p.ratio_high;
    u64 quotient = mul_high(sum.low, p.ratio_high);
    middle += carry;
    quotient += middle < carry ? 1 : 0;
    u64 other = sum.high * p.ratio_low;
    quotient += mul_high(sum.high, p.ratio_low);
    middle += other;
    quotient += middle < other ? 1 : 0;
    quotient += sum.high * p.ratio_high;
    return below(sum.low - quotient * p.q, p.q);
}

// A word below 2^(2 bits) as high 2^bits + low.
struct Parts {
    u32 low;
    u32 high;
};

DEV_FN Parts parts(u64 x, u32 bits) {
    Parts cut = {(u32)x & ((1u << bits) - 1), (u32)(x >> bits)};
    return cut;
}

// A sum of products of words in parts of so many bits: high 2^(2 bits) + middle 2^bits + low. A product is four of 32 bits
// and no carry, and the sum holds parts_terms(bits) of them: each adds less than 2^(2 bits + 1) to the middle.
struct PartSum {
    u64 low;
    u64 middle;
    u64 high;
};

DEV_FN u32 parts_terms(u32 bits) { return bits < 16 ? 1u << 31 : 1u << (63 - 2 * bits); }

DEV_FN void add_product(PartSum& sum, Parts a, Parts b) {
    sum.low += (u64)a.low * b.low;
    sum.middle += (u64)a.low * b.high;
    sum.middle += (u64)a.high * b.low;
    sum.high += (u64)a.high * b.high;
}

DEV_FN void add_words(Sum& sum, u64 low, u64 high) {
    sum.low += low;
    sum.high += high + (sum.low < low ? 1 : 0);
}

// in: 0 < bits <= 31; out: the same sum, 128 bits.
DEV_FN Sum joined(const PartSum& parts, u32 bits) {
    Sum sum = {parts.low, 0};
    add_words(sum, parts.middle << bits, parts.middle >> (64 - bits));
    add_words(sum, parts.high << 2 * bits, parts.high >> (64 - 2 * bits));
    return sum;
}

// in: a, b < 2^61; out: a b mod q, < q.
DEV_FN u64 mul(u64 a, u64 b, const Prime& p) {
    Sum sum = {a * b, mul_high(a, b)};
    return reduce_sum(sum, p);
}

// in: any x read as a signed word; out: x mod q, < q.
DEV_FN u64 reduce_signed(u64 x, const Prime& p) {
    return subtract(reduce(x + (1ull << 63), p), p.sign, p.q);
}
