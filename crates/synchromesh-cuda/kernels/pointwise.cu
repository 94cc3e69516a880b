// Operations on limbs, residue by residue. Everywhere: in < q, out < q, unless a kernel says otherwise.
#include "layout.h"

// Runs `body` for the words i of the limb of this block: `out` and `p` are the limb and its prime.
#define FOR_WORDS(out_rows)                                                                       \
    const Prime p = ring.primes[limbs.prime[limb]];                                         \
    u64* const out = limb_at(out_rows, element, limb, ring.log_n);                       \
    (void)p;                                                                                      \
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < 1u << ring.log_n; i += gridDim.x * blockDim.x)

#define INPUT(rows) limb_at(rows, element, limb, ring.log_n)

DEV_KERNEL(copy, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) src) {
    const u64* x = INPUT(src);
    FOR_WORDS(dst) { out[i] = x[i]; }
}

DEV_KERNEL(add_assign, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) src) {
    const u64* x = INPUT(src);
    FOR_WORDS(dst) { out[i] = below(out[i] + x[i], p.q); }
}

DEV_KERNEL(sub_assign, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) src) {
    const u64* x = INPUT(src);
    FOR_WORDS(dst) { out[i] = subtract(out[i], x[i], p.q); }
}

DEV_KERNEL(neg_assign, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst) {
    FOR_WORDS(dst) { out[i] = subtract(0, out[i], p.q); }
}

DEV_KERNEL(mul_into, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) left,
           DEV_ARG(Rows) right) {
    const u64* a = INPUT(left);
    const u64* b = INPUT(right);
    FOR_WORDS(dst) { out[i] = mul(a[i], b[i], p); }
}

DEV_KERNEL(mul_acc, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) left,
           DEV_ARG(Rows) right) {
    const u64* a = INPUT(left);
    const u64* b = INPUT(right);
    FOR_WORDS(dst) {
        Sum sum = {out[i], 0};
        add_product(sum, a[i], b[i]);
        out[i] = reduce_sum(sum, p);
    }
}

DEV_KERNEL(mul_scalar_assign, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Scalars) scalars) {
    const Pair factor = scalars.factor[limb];
    FOR_WORDS(dst) { out[i] = mul_constant(out[i], factor, p.q); }
}

DEV_KERNEL(mul_scalar_acc, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) src,
           DEV_ARG(Scalars) scalars) {
    const u64* x = INPUT(src);
    const Pair factor = scalars.factor[limb];
    FOR_WORDS(dst) { out[i] = below(out[i] + mul_constant(x[i], factor, p.q), p.q); }
}

// Signed integers of 2^log_bytes bytes, at most a word, one behind the other.
struct Signed {
    const u64* words;
    u32 log_bytes;
    u32 unused;
};

// in: N integers, the same for every limb of the output.
DEV_KERNEL(from_signed, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Signed) values) {
    const u32 above = 64 - (8u << values.log_bytes);
    FOR_WORDS(dst) {
        u64 word = values.words[i >> (3 - values.log_bytes)];
        u32 behind = above - ((i << values.log_bytes & 7) << 3);
        out[i] = reduce_signed((u64)((i64)(word << behind) >> above), p);
    }
}

// How to read a radix digit: (((x + half mod from) + add) >> shift & mask) - offset, a signed word.
struct Cut {
    u64 from;
    u64 half;
    u64 add;
    u64 mask;
    u64 offset;
    u32 shift;
    u32 unused;
};

// in: one limb below cut.from, the same for every limb of the output.
DEV_KERNEL(radix_digit, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, const u64* src, DEV_ARG(Cut) cut) {
    FOR_WORDS(dst) {
        u64 x = below(src[i] + cut.half, cut.from);
        out[i] = reduce_signed((((x + cut.add) >> cut.shift) & cut.mask) - cut.offset, p);
    }
}

// out(X) = x(X^g) on coefficients, with inverse = g^-1 mod 2N: coefficient i comes from i / g.
DEV_KERNEL(automorphism_coeff, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) src,
           u32 inverse) {
    const u64* x = INPUT(src);
    u32 n = 1u << ring.log_n;
    FOR_WORDS(dst) {
        u32 from = i * inverse & (2 * n - 1);
        u64 value = x[from & (n - 1)];
        out[i] = from < n ? value : subtract(0, value, p.q);
    }
}

// out(X) = (x_1 + x_2 + ..)(X^g) on coefficients, with inverse = g^-1 mod 2N and at least one x.
DEV_KERNEL(sum_into, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Addends) xs) {
    const u32 n = 1u << ring.log_n;
    FOR_WORDS(dst) {
        u32 from = i * xs.inverse & (2 * n - 1), at = from & (n - 1);
        u64 sum = INPUT(xs.rows[0])[at];
        for (u32 a = 1; a < xs.count; a++) {
            sum = below(sum + INPUT(xs.rows[a])[at], p.q);
        }
        out[i] = from < n ? sum : subtract(0, sum, p.q);
    }
}

// out(X) = x(X^g) on slots: slot i holds the value at psi^e(i), and comes from the slot of psi^(e(i) g).
DEV_KERNEL(automorphism_ntt, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) src, u32 g) {
    const u64* x = INPUT(src);
    FOR_WORDS(dst) { out[i] = x[image_of_slot(i, g, ring.log_n)]; }
}

// out_c (+)= sum_j d_j k_cj over `terms` batch elements j, for both columns c, the batch elements of the output.
DEV_KERNEL(inner_product, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) digits,
           DEV_ARG(Rows) key0, DEV_ARG(Rows) key1, u32 terms, u32 accumulate) {
    u64* const other = limb_at(dst, 1, limb, ring.log_n);
    FOR_WORDS(dst) {
        Sum sum0 = {accumulate ? out[i] : 0, 0};
        Sum sum1 = {accumulate ? other[i] : 0, 0};
        u32 room = SUM_TERMS;
        for (u32 j = 0; j < terms; j++) {
            if (room == 0) {
                sum0 = Sum{reduce_sum(sum0, p), 0};
                sum1 = Sum{reduce_sum(sum1, p), 0};
                room = SUM_TERMS;
            }
            u64 digit = limb_at(digits, j, limb, ring.log_n)[i];
            add_product(sum0, digit, load_once(limb_at(key0, j, limb, ring.log_n) + i));
            add_product(sum1, digit, load_once(limb_at(key1, j, limb, ring.log_n) + i));
            room--;
        }
        out[i] = reduce_sum(sum0, p);
        other[i] = reduce_sum(sum1, p);
    }
}

DEV_EXPORT_FLAT(copy, 256)
DEV_EXPORT_FLAT(add_assign, 256)
DEV_EXPORT_FLAT(sub_assign, 256)
DEV_EXPORT_FLAT(neg_assign, 256)
DEV_EXPORT_FLAT(mul_into, 256)
DEV_EXPORT_FLAT(mul_acc, 256)
DEV_EXPORT_FLAT(mul_scalar_assign, 256)
DEV_EXPORT_FLAT(mul_scalar_acc, 256)
DEV_EXPORT_FLAT(from_signed, 256)
DEV_EXPORT_FLAT(radix_digit, 256)
DEV_EXPORT_FLAT(automorphism_coeff, 256)
DEV_EXPORT_FLAT(automorphism_ntt, 256)
DEV_EXPORT_FLAT(sum_into, 256)
DEV_EXPORT_FLAT(inner_product, 256)
