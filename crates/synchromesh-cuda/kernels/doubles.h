// Arithmetic modulo q < 2^50 in doubles, exact; docs/gpu.md has the proof with the bounds in full.
//
// A residue is an integer x with |x| <= 2^52 in a double. For |b| <= 2^52, |w| < q/2 and s = w/q rounded to nearest:
// h = fl(b w) and l = b w - h exactly, by one fused multiply-add. k = fl(b s + M) - M with M = 3 2^51 is an integer, as
// |b s| < 2^51 puts the sum between 2^52 and 2^53, where doubles are the integers; |k - b w / q| <= 1/2 + |b| 2^-55.
// h - k q = (b w - k q) - l is an integer below q (5/8) + 2^49 < 2^53, so that a fused multiply-add gives it exactly, and
// adding l gives b w - k q exactly. Hence the product is congruent to b w and at most (1/2 + |b| 2^-55) q <= (5/8) q.
#pragma once
#include "arithmetic.h"

// 3 2^51: added to a number below 2^51, leaves its nearest integer.
#define ROUNDER 6755399441055744.0
// 2^52: added to an integer below it, leaves the integer in the low bits.
#define INTEGER_BITS 4503599627370496.0

// in: word < 2^52; out: the same, exact.
DEV_FN double integer_of(u64 word) { return double_from(word | 0x4330000000000000ull) - INTEGER_BITS; }

// in: |b| <= 2^52, w in doubles; out: b w mod q, |out| <= (1/2 + |b| 2^-55) q.
DEV_FN double product(double b, Pair w, double q) {
    double factor = double_from(w.value), share = double_from(w.quotient);
    double high = double_mul(b, factor);
    double low = double_fma(b, factor, -high);
    double quotient = double_add(double_fma(b, share, ROUNDER), -ROUNDER);
    return double_add(double_fma(-quotient, q, high), low);
}

// in: |x| <= 2^52, inverse = 1/q rounded to nearest; out: x mod q, |out| <= (1/2 + 2^-50) q for |x| <= 8q, and below q in
// any case.
DEV_FN double centred(double x, double q, double inverse) {
    double quotient = double_add(double_fma(x, inverse, ROUNDER), -ROUNDER);
    return double_fma(-quotient, q, x);
}

// in: |x| < q; out: x mod q as a word, < q.
DEV_FN u64 residue(double x, double q) {
    double positive = x < 0.0 ? double_add(x, q) : x;
    return bits_of(double_add(positive, INTEGER_BITS)) & 0xfffffffffffffull;
}
