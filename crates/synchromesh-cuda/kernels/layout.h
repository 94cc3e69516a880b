// Arguments that several kernels share. Each has its twin in src/arguments.rs.
#pragma once
#include "arithmetic.h"

// Most limbs of one launch; arguments of a kernel fit 4096 bytes.
#define MAX_LIMBS 128

// The constants of a ring, in device memory.
struct Ring {
    const Prime* primes;
    // psi^rev(k) at k for each prime, N pairs a prime; N doubles in the place of a prime that is computed with in doubles.
    const Pair* forward;
    // psi^-rev(k) at k, the one at 1 times N^-1.
    const Pair* inverse;
    u32 log_n;
    u32 unused;
};

// The prime of each limb.
struct Limbs {
    u16 prime[MAX_LIMBS];
};

// Where limbs are: limb i of batch element e begins at words + ((e stride + row[i]) << log_n).
struct Rows {
    u64* words;
    u32 stride;
    u32 unused;
    u32 row[MAX_LIMBS];
};

// Most polynomials that are added in one launch.
#define MAX_ADDENDS 3

// What is added to a polynomial, and the element that it is then turned by: g^-1 mod 2N for X -> X^g.
struct Addends {
    Rows rows[MAX_ADDENDS];
    u32 count;
    u32 inverse;
};

// Bit of a row that is in the second of two buffers.
#define IN_SECOND 0x80000000u

// Where limbs are that lie in two buffers, those of two polynomials, prime by prime.
struct PairRows {
    u64* words[2];
    u32 row[MAX_LIMBS];
};

// One residue a limb, with quotients.
struct Scalars {
    Pair factor[MAX_LIMBS];
};

DEV_FN u64* limb_at(const Rows& rows, u32 element, u32 limb, u32 log_n) {
    u64 row = (u64)element * rows.stride + rows.row[limb];
    return rows.words + (row << log_n);
}

DEV_FN bool in_second(const PairRows& rows, u32 limb) { return (rows.row[limb] & IN_SECOND) != 0; }

DEV_FN u64* limb_at(const PairRows& rows, u32 limb, u32 log_n) {
    u64 row = rows.row[limb] & ~IN_SECOND;
    return rows.words[in_second(rows, limb) ? 1 : 0] + (row << log_n);
}

// Slots of the bit-reversed order and ours: each block of 64 read as an 8 x 8 matrix and transposed.
DEV_FN u32 transpose64(u32 i) { return (i & ~63u) | ((i & 7) << 3) | ((i >> 3) & 7); }

// The slot of psi^(e(i) g), where slot i holds the value at psi^e(i) and g is odd.
DEV_FN u32 image_of_slot(u32 i, u32 g, u32 log_n) {
    u32 shift = 32 - log_n;
    u32 exponent = (2 * (reverse_bits(transpose64(i)) >> shift) + 1) * g & ((2u << log_n) - 1);
    return transpose64(reverse_bits(exponent >> 1) >> shift);
}
