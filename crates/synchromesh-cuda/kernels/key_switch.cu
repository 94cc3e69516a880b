// Fused stages of a key switch, and the tensor product of two ciphertexts.
#include "rounds.h"

// Most limbs of all digits together in one launch, and most digits.
#define MAX_DIGIT_LIMBS 512
#define MAX_DIGITS 63
// Slots of one thread: sums of both columns stay in registers.
#define SLOTS_PER_THREAD 4

// Where limb i of digit j is, at j limbs + i: one of the two, or the row of the input that it is.
#define IN_COEFFICIENTS 0xffffu
#define IN_SLOTS 0xfffeu
struct DigitLimbs {
    u16 state[MAX_DIGIT_LIMBS];
};

// out_c (+)= sum_j d_j k_cj for both columns c. in: digits in coefficients as in a last pass, others < q; out: < q. A
// block takes the same slots of all digits of one prime, so that a digit's slots are in shared memory only.
DEV_KERNEL(gadget_product, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) digits,
           DEV_ARG(Rows) key0, DEV_ARG(Rows) key1, DEV_ARG(DigitLimbs) states, const u64* input, DEV_ARG(Pass) pass,
           u32 terms, u32 accumulate) {
    DEV_SHARED();
    const Prime p = ring.primes[limbs.prime[limb]];
    u64* const out0 = limb_at(dst, 0, limb, ring.log_n);
    u64* const out1 = limb_at(dst, 1, limb, ring.log_n);
    const u32 first = (blockIdx.x << (pass.layers + pass.log_sets)) + threadIdx.x;
    Sum sum0[SLOTS_PER_THREAD], sum1[SLOTS_PER_THREAD];
    DEV_UNROLL
    for (u32 k = 0; k < SLOTS_PER_THREAD; k++) {
        u32 slot = first + k * blockDim.x;
        sum0[k] = Sum{accumulate ? out0[slot] : 0, 0};
        sum1[k] = Sum{accumulate ? out1[slot] : 0, 0};
    }
    for (u32 j = 0; j < terms; j++) {
        u32 state = states.state[j * limb_count + limb];
        const u64* digit = limb_at(digits, j, limb, ring.log_n);
        const u64* k0 = limb_at(key0, j, limb, ring.log_n);
        const u64* k1 = limb_at(key1, j, limb, ring.log_n);
        if (state == IN_COEFFICIENTS) {
            forward_layers<true>(ring, limbs.prime[limb], digit, nullptr, pass, shared);
        } else if (state != IN_SLOTS) {
            digit = input + ((u64)state << ring.log_n);
        }
        DEV_UNROLL
        for (u32 k = 0; k < SLOTS_PER_THREAD; k++) {
            u32 slot = first + k * blockDim.x;
            u64 word =
                state == IN_COEFFICIENTS ? finished_slot(shared, threadIdx.x + k * blockDim.x, p) : digit[slot];
            add_product(sum0[k], word, k0[slot]);
            add_product(sum1[k], word, k1[slot]);
        }
        if (state == IN_COEFFICIENTS) {
            // The next digit takes the same memory.
            DEV_BARRIER();
        }
    }
    DEV_UNROLL
    for (u32 k = 0; k < SLOTS_PER_THREAD; k++) {
        u32 slot = first + k * blockDim.x;
        out0[slot] = reduce_sum(sum0[k], p);
        out1[slot] = reduce_sum(sum1[k], p);
    }
}

// (a_0 b_0, a_0 b_1 + a_1 b_0, a_1 b_1) in slots, added to the outputs or instead of them; a_0, a_1, b_0, b_1 are the
// batch elements of `operands`.
DEV_KERNEL(tensor_product, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) operands, DEV_ARG(Rows) low,
           DEV_ARG(Rows) middle, DEV_ARG(Rows) high, u32 accumulate) {
    const Prime p = ring.primes[limbs.prime[limb]];
    const u64* a0 = limb_at(operands, 0, limb, ring.log_n);
    const u64* a1 = limb_at(operands, 1, limb, ring.log_n);
    const u64* b0 = limb_at(operands, 2, limb, ring.log_n);
    const u64* b1 = limb_at(operands, 3, limb, ring.log_n);
    u64* const out0 = limb_at(low, 0, limb, ring.log_n);
    u64* const out1 = limb_at(middle, 0, limb, ring.log_n);
    u64* const out2 = limb_at(high, 0, limb, ring.log_n);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < 1u << ring.log_n; i += gridDim.x * blockDim.x) {
        Sum sum0 = {accumulate ? out0[i] : 0, 0};
        Sum sum1 = {accumulate ? out1[i] : 0, 0};
        Sum sum2 = {accumulate ? out2[i] : 0, 0};
        u64 x0 = a0[i], x1 = a1[i], y0 = b0[i], y1 = b1[i];
        add_product(sum0, x0, y0);
        add_product(sum1, x0, y1);
        add_product(sum1, x1, y0);
        add_product(sum2, x1, y1);
        out0[i] = reduce_sum(sum0, p);
        out1[i] = reduce_sum(sum1, p);
        out2[i] = reduce_sum(sum2, p);
    }
}

DEV_EXPORT(gadget_product, 128)
DEV_EXPORT_FLAT(tensor_product, 256)
