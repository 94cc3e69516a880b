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

// Slots of a thread as they come out of a transform.
struct ToWords {
    u64* words;

    template <class Field, int COUNT, class At>
    DEV_METHOD void put(const At&, Group, const typename Field::Point* x, const Prime& p) const {
        DEV_UNROLL
        for (int j = 0; j < COUNT; j++) {
            words[j] = Field::finish_slot(x[j], p);
        }
    }
};

// A sum of products by halves of words, of at most parts_terms(p.half_bits) - 1 of them beside a word below q.
struct NarrowSum {
    typedef Parts Factor;
    PartSum sum;

    DEV_METHOD static Parts factor(u64 word, const Prime& p) { return parts(word, p.half_bits); }
    DEV_METHOD void start(u64 word) { sum = PartSum{word, 0, 0}; }
    DEV_METHOD void add(Parts a, Parts b) { add_product(sum, a, b); }
    DEV_METHOD u64 finish(const Prime& p) const { return reduce_sum(joined(sum, p.half_bits), p); }
};

// The same of at most SUM_TERMS products of whole words.
struct WideSum {
    typedef u64 Factor;
    Sum sum;

    DEV_METHOD static u64 factor(u64 word, const Prime&) { return word; }
    DEV_METHOD void start(u64 word) { sum = Sum{word, 0}; }
    DEV_METHOD void add(u64 a, u64 b) { add_product(sum, a, b); }
    DEV_METHOD u64 finish(const Prime& p) const { return reduce_sum(sum, p); }
};

// The digits of a gadget product and the key's columns.
struct Gadget {
    const Ring& ring;
    const Rows &dst, &digits, &key0, &key1;
    const DigitLimbs& states;
    const u64* input;
    const Pass& pass;
    u32 terms, limb, limbs;
};

// The sums of a block's slots. The last round of a pass leaves SLOTS_PER_THREAD neighbouring points to a thread, which
// are its slots.
template <class Field, class Total, class At>
DEV_FN void gadget_sums(const Gadget& gadget, const At& at, const Prime& p, const Pair* table, u64* shared,
                        bool accumulate) {
    const Group mine = group<2>(at, gadget.pass.first, At::LAYERS - 2, threadIdx.x);
    Total sum0[SLOTS_PER_THREAD], sum1[SLOTS_PER_THREAD];
    DEV_UNROLL
    for (u32 k = 0; k < SLOTS_PER_THREAD; k++) {
        u32 slot = at.slot(mine.base + k, mine.local);
        sum0[k].start(accumulate ? limb_at(gadget.dst, 0, gadget.limb, at.log_n)[slot] : 0);
        sum1[k].start(accumulate ? limb_at(gadget.dst, 1, gadget.limb, at.log_n)[slot] : 0);
    }
    DEV_ONE_TURN
    for (u32 j = 0; j < gadget.terms; j++) {
        // Where rows are would take a quarter of the registers.
        DEV_RELOAD();
        const u32 log_n = at.log_n, state = gadget.states.state[j * gadget.limbs + gadget.limb];
        const u64* digit = limb_at(gadget.digits, j, gadget.limb, log_n);
        const u64* k0 = limb_at(gadget.key0, j, gadget.limb, log_n);
        const u64* k1 = limb_at(gadget.key1, j, gadget.limb, log_n);
        u64 words[SLOTS_PER_THREAD];
        if (state == IN_COEFFICIENTS) {
            forward_compiled<Field>(at, gadget.pass.first, table, p, shared, FromRow{digit, false}, ToWords{words});
        } else {
            digit = state == IN_SLOTS ? digit : gadget.input + ((u64)state << log_n);
            DEV_UNROLL
            for (u32 k = 0; k < SLOTS_PER_THREAD; k++) {
                words[k] = digit[at.slot(mine.base + k, mine.local)];
            }
        }
        DEV_UNROLL
        for (u32 k = 0; k < SLOTS_PER_THREAD; k++) {
            u32 slot = at.slot(mine.base + k, mine.local);
            typename Total::Factor word = Total::factor(words[k], p);
            sum0[k].add(word, Total::factor(load_once(k0 + slot), p));
            sum1[k].add(word, Total::factor(load_once(k1 + slot), p));
        }
        if (state == IN_COEFFICIENTS) {
            // The next digit takes the same memory.
            DEV_BARRIER();
        }
    }
    DEV_UNROLL
    for (u32 k = 0; k < SLOTS_PER_THREAD; k++) {
        u32 slot = at.slot(mine.base + k, mine.local);
        limb_at(gadget.dst, 0, gadget.limb, at.log_n)[slot] = sum0[k].finish(p);
        limb_at(gadget.dst, 1, gadget.limb, at.log_n)[slot] = sum1[k].finish(p);
    }
}

// out_c (+)= sum_j d_j k_cj for both columns c. in: digits in coefficients as in a last pass, others < q; out: < q. A
// block takes the same slots of all digits of one prime, so that a digit's slots are in registers only.
DEV_KERNEL(gadget_product, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(Rows) digits,
           DEV_ARG(Rows) key0, DEV_ARG(Rows) key1, DEV_ARG(DigitLimbs) states, const u64* input, DEV_ARG(Pass) pass,
           u32 terms, u32 accumulate) {
    DEV_SHARED();
    const u32 prime = limbs.prime[limb];
    const Prime& p = ring.primes[prime];
    const Pair* const table = ring.forward + ((u64)prime << ring.log_n);
    const Gadget gadget = {ring, dst, digits, key0, key1, states, input, pass, terms, limb, limb_count};
    auto run = [&](auto at) {
        if (p.in_doubles != 0) {
            gadget_sums<Doubles, NarrowSum>(gadget, at, p, table, shared, accumulate != 0);
        } else if (terms < parts_terms(p.half_bits)) {
            gadget_sums<Integers, NarrowSum>(gadget, at, p, table, shared, accumulate != 0);
        } else {
            gadget_sums<Integers, WideSum>(gadget, at, p, table, shared, accumulate != 0);
        }
    };
    if (pass.layers == 8) {
        run(Geometry<true, 8, 1, 2>(ring.log_n, pass, blockIdx.x));
    } else {
        run(Geometry<true, 6, 3, 2>(ring.log_n, pass, blockIdx.x));
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
