// The negacyclic transform (Harvey's butterflies) in rounds of layers, by blocks of threads.
//
// Layer l of a forward transform has 2^l blocks, block b with the factor psi^rev(2^l + b). A pass does the layers from
// `first` on, on independent sets of 2^layers points: those `N >> layers` apart in a first pass, neighbours in a last
// one. A block of threads takes several sets, eight points a thread: from memory to registers, three layers at a time,
// through shared memory in between, and back. Modulo a prime below 2^50 points may be doubles; words in memory then are
// their bits, between passes too, and residues on both ends of a transform.
#pragma once
#include "doubles.h"
#include "layout.h"

// One pass; a transform of one pass is a last one.
struct Pass {
    // Layers before it.
    u32 first;
    // Layers it does, at least 4; a last pass at least 6.
    u32 layers;
    // log2 of the sets that a block of threads takes.
    u32 log_sets;
    u32 unused;
};

// A point of a set, in its row and in shared memory.
template <bool LAST>
struct Geometry {
    u32 log_n, layers, log_sets, chunk;

    DEV_METHOD Geometry(u32 log_n, const Pass& pass, u32 chunk)
        : log_n(log_n), layers(pass.layers), log_sets(pass.log_sets), chunk(chunk) {}
    DEV_METHOD u32 set(u32 local) const { return (chunk << log_sets) | local; }
    DEV_METHOD u32 in_row(u32 point, u32 local) const {
        return LAST ? (set(local) << layers) | point : (point << (log_n - layers)) | set(local);
    }
    DEV_METHOD u32 in_shared(u32 point, u32 local) const {
        return LAST ? (local << layers) | point : (point << log_sets) | local;
    }
    // Points of all sets of a block.
    DEV_METHOD u32 words() const { return 1u << (layers + log_sets); }
};

// 2^LAYERS points that meet in LAYERS layers after `done` of a pass: the points at base + j step, under node `root`.
struct Group {
    u32 local, base, step, root;
};

template <bool LAST, int LAYERS>
DEV_FN Group group(const Geometry<LAST>& at, u32 first, u32 done, u32 id) {
    u32 left = at.layers - done - LAYERS;
    u32 log_groups = at.layers - LAYERS;
    u32 local = LAST ? id >> log_groups : id & ((1u << at.log_sets) - 1);
    u32 within = LAST ? id & ((1u << log_groups) - 1) : id >> at.log_sets;
    u32 block = within >> left;
    u32 node = (1u << first) + (LAST && first > 0 ? at.set(local) : 0);
    Group made = {local, (block << (left + LAYERS)) | (within & ((1u << left) - 1)), 1u << left, (node << done) + block};
    return made;
}

// Points as integers: below 4q in a forward transform, below 2q in an inverse one.
struct Integers {
    typedef u64 Point;

    DEV_METHOD static u64 from_residue(u64 word) { return word; }
    DEV_METHOD static u64 load(u64 word, const Prime&) { return word; }
    DEV_METHOD static u64 store(u64 x) { return x; }
    // in: x < 4q, y any; out: < 4q.
    DEV_METHOD static void forward(u64& x, u64& y, Pair w, const Prime& p) {
        u64 u = below(x, 2 * p.q);
        u64 v = mul_lazy(y, w, p.q);
        x = u + v;
        y = u + 2 * p.q - v;
    }
    // in: x, y < 2q; out: < 2q.
    DEV_METHOD static void inverse(u64& x, u64& y, Pair w, const Prime& p) {
        u64 sum = x + y;
        y = mul_lazy(x + 2 * p.q - y, w, p.q);
        x = below(sum, 2 * p.q);
    }
    // in: < 2q; out: < q.
    DEV_METHOD static u64 finish_scaled(u64 x, const Prime& p) { return below(mul_lazy(x, p.inverse_n, p.q), p.q); }
    DEV_METHOD static u64 finish(u64 x, const Prime& p) { return below(x, p.q); }
    // in: < 4q; out: < q.
    DEV_METHOD static u64 finish_forward(u64 x, const Prime& p) { return below(below(x, 2 * p.q), p.q); }
};

// Points as doubles. What is loaded is reduced to (1/2 + 2^-50) q. Three forward layers add at most (5/8) q each; after
// two inverse layers points are at most 4 (1/2 + 2^-50) q, so that the differences of a third are at most 2^52, as
// q <= 2^50 - 2^11 + 1.
struct Doubles {
    typedef double Point;

    DEV_METHOD static u64 from_residue(u64 word) { return bits_of(integer_of(word)); }
    DEV_METHOD static double load(u64 word, const Prime& p) { return centred(double_from(word), p); }
    DEV_METHOD static u64 store(double x) { return bits_of(x); }
    DEV_METHOD static void forward(double& x, double& y, Pair w, const Prime& p) {
        double v = product(y, w, p.modulus);
        y = double_add(x, -v);
        x = double_add(x, v);
    }
    DEV_METHOD static void inverse(double& x, double& y, Pair w, const Prime& p) {
        double difference = double_add(x, -y);
        x = double_add(x, y);
        y = product(difference, w, p.modulus);
    }
    DEV_METHOD static u64 finish_scaled(double x, const Prime& p) {
        return residue(product(x, p.inverse_n, p.modulus), p);
    }
    DEV_METHOD static u64 finish(double x, const Prime& p) { return residue(x, p); }
    DEV_METHOD static u64 finish_forward(u64 word, const Prime& p) { return residue(load(word, p), p); }
};

template <class Field, int LAYERS>
DEV_FN void forward_network(typename Field::Point* x, const Pair* table, u32 root, const Prime& p) {
    DEV_UNROLL
    for (int layer = 0; layer < LAYERS; layer++) {
        DEV_UNROLL
        for (int k = 0; k < 1 << (LAYERS - 1); k++) {
            int shift = LAYERS - 1 - layer, block = k >> shift;
            int low = (block << (shift + 1)) + (k & ((1 << shift) - 1));
            Field::forward(x[low], x[low + (1 << shift)], table[(root << layer) + block], p);
        }
    }
}

template <class Field, int LAYERS>
DEV_FN void inverse_network(typename Field::Point* x, const Pair* table, u32 root, const Prime& p) {
    DEV_UNROLL
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        DEV_UNROLL
        for (int k = 0; k < 1 << (LAYERS - 1); k++) {
            int shift = LAYERS - 1 - layer, block = k >> shift;
            int low = (block << (shift + 1)) + (k & ((1 << shift) - 1));
            Field::inverse(x[low], x[low + (1 << shift)], table[(root << layer) + block], p);
        }
    }
}

// LAYERS layers after `done`, the first ones from `src`, the last ones of a pass that is not the last to `dst`; INNER: all
// in shared memory.
template <class Field, bool LAST, int LAYERS, bool INNER>
DEV_FN void forward_round(const Geometry<LAST>& at, u32 first, u32 done, const Pair* table, const Prime& p,
                          const u64* src, u64* dst, u64* shared) {
    bool to_row = !LAST && done + LAYERS == at.layers;
    bool from_residues = first + done == 0;
    for (u32 id = threadIdx.x; id < at.words() >> LAYERS; id += blockDim.x) {
        Group g = group<LAST, LAYERS>(at, first, done, id);
        typename Field::Point x[1 << LAYERS];
        DEV_UNROLL
        for (int j = 0; j < 1 << LAYERS; j++) {
            u32 point = g.base + j * g.step;
            bool from_row = !INNER && done == 0;
            u64 word = from_row ? src[at.in_row(point, g.local)] : shared[at.in_shared(point, g.local)];
            x[j] = Field::load(from_residues ? Field::from_residue(word) : word, p);
        }
        forward_network<Field, LAYERS>(x, table, g.root, p);
        DEV_UNROLL
        for (int j = 0; j < 1 << LAYERS; j++) {
            u32 point = g.base + j * g.step;
            if (to_row) {
                dst[at.in_row(point, g.local)] = Field::store(x[j]);
            } else {
                shared[at.in_shared(point, g.local)] = Field::store(x[j]);
            }
        }
    }
    if (!to_row) {
        DEV_BARRIER();
    }
}

// The other way: `left` layers of the pass remain after these; those of a first pass come from `src`, and the last
// ones go to `dst`, from a first pass as residues; INNER: all in shared memory.
template <class Field, bool LAST, int LAYERS, bool INNER>
DEV_FN void inverse_round(const Geometry<LAST>& at, u32 first, u32 left, const Pair* table, const Prime& p,
                          const u64* src, u64* dst, u64* shared) {
    bool from_row = !LAST && left + LAYERS == at.layers;
    bool finish = first + left == 0;
    for (u32 id = threadIdx.x; id < at.words() >> LAYERS; id += blockDim.x) {
        Group g = group<LAST, LAYERS>(at, first, left, id);
        typename Field::Point x[1 << LAYERS];
        DEV_UNROLL
        for (int j = 0; j < 1 << LAYERS; j++) {
            u32 point = g.base + j * g.step;
            x[j] = Field::load(from_row ? src[at.in_row(point, g.local)] : shared[at.in_shared(point, g.local)], p);
        }
        inverse_network<Field, LAYERS>(x, table, g.root, p);
        DEV_UNROLL
        for (int j = 0; j < 1 << LAYERS; j++) {
            u32 point = g.base + j * g.step;
            if (INNER || left > 0) {
                shared[at.in_shared(point, g.local)] = Field::store(x[j]);
            } else if (finish) {
                // Differences of the last layer have their N^-1 from its factor.
                bool scaled = j < 1 << (LAYERS - 1);
                dst[at.in_row(point, g.local)] = scaled ? Field::finish_scaled(x[j], p) : Field::finish(x[j], p);
            } else {
                dst[at.in_row(point, g.local)] = Field::store(x[j]);
            }
        }
    }
    if (left > 0) {
        DEV_BARRIER();
    }
}

template <class Field, bool LAST, bool INNER = false>
DEV_FN void forward_rounds(const Geometry<LAST>& at, u32 first, const Pair* table, const Prime& p, const u64* src,
                           u64* dst, u64* shared) {
    u32 done = 0;
    for (; at.layers - done > 4 || at.layers - done == 3; done += 3) {
        forward_round<Field, LAST, 3, INNER>(at, first, done, table, p, src, dst, shared);
    }
    for (; done < at.layers; done += 2) {
        forward_round<Field, LAST, 2, INNER>(at, first, done, table, p, src, dst, shared);
    }
}

// The layers of a pass. in: < q in a first pass or an only one, else points; out: points, from a last pass in shared
// memory in the bit-reversed order.
template <bool LAST>
DEV_FN void forward_layers(const Ring& ring, u32 prime, const u64* src, u64* dst, const Pass& pass, u64* shared) {
    const Prime p = ring.primes[prime];
    const Pair* table = ring.forward + ((u64)prime << ring.log_n);
    Geometry<LAST> at(ring.log_n, pass, blockIdx.x);
    if (p.in_doubles != 0) {
        forward_rounds<Doubles, LAST>(at, pass.first, table, p, src, dst, shared);
    } else {
        forward_rounds<Integers, LAST>(at, pass.first, table, p, src, dst, shared);
    }
}

// Slot i of those that a block has after a last pass. out: < q.
DEV_FN u64 finished_slot(const u64* shared, u32 i, const Prime& p) {
    u64 word = shared[transpose64(i)];
    return p.in_doubles != 0 ? Doubles::finish_forward(word, p) : Integers::finish_forward(word, p);
}

// The slots that a block has after a last pass, to their row. out: < q.
DEV_FN void write_slots(u64* dst, const u64* shared, const Pass& pass, const Prime& p) {
    u32 words = 1u << (pass.layers + pass.log_sets);
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) {
        dst[blockIdx.x * words + i] = finished_slot(shared, i, p);
    }
}

// in: < q in a first pass or an only one, else points; out: < q in slot order from a last pass, else points.
template <bool LAST>
DEV_FN void forward_pass(u32 element, u32 limb, const Ring& ring, const Limbs& limbs, const Rows& src_rows,
                         const Rows& dst_rows, const Pass& pass, u64* shared) {
    u32 prime = limbs.prime[limb];
    const u64* src = limb_at(src_rows, element, limb, ring.log_n);
    u64* dst = limb_at(dst_rows, element, limb, ring.log_n);
    forward_layers<LAST>(ring, prime, src, dst, pass, shared);
    if (LAST) {
        write_slots(dst, shared, pass, ring.primes[prime]);
    }
}

template <class Field, bool LAST, bool INNER = false>
DEV_FN void inverse_rounds(const Geometry<LAST>& at, u32 first, const Pair* table, const Prime& p, const u64* src,
                           u64* dst, u64* shared) {
    if (LAST) {
        const u64* in = src + (u64)blockIdx.x * at.words();
        for (u32 i = threadIdx.x; i < at.words(); i += blockDim.x) {
            shared[transpose64(i)] = Field::from_residue(in[i]);
        }
        DEV_BARRIER();
    }
    u32 left = at.layers;
    u32 twos = left % 3 == 0 ? 0 : 3 - left % 3;
    for (; twos > 0; twos--) {
        left -= 2;
        inverse_round<Field, LAST, 2, INNER>(at, first, left, table, p, src, dst, shared);
    }
    while (left > 0) {
        left -= 3;
        inverse_round<Field, LAST, 3, INNER>(at, first, left, table, p, src, dst, shared);
    }
}

// in: < q in slot order in a last pass, which comes first, else points; out: < q where the layer 0 is done, else points.
template <bool LAST>
DEV_FN void inverse_pass(u32 element, u32 limb, const Ring& ring, const Limbs& limbs, const Rows& src_rows,
                         const Rows& dst_rows, const Pass& pass, u64* shared) {
    u32 prime = limbs.prime[limb];
    const Prime p = ring.primes[prime];
    const Pair* table = ring.inverse + ((u64)prime << ring.log_n);
    const u64* src = limb_at(src_rows, element, limb, ring.log_n);
    u64* dst = limb_at(dst_rows, element, limb, ring.log_n);
    Geometry<LAST> at(ring.log_n, pass, blockIdx.x);
    if (p.in_doubles != 0) {
        inverse_rounds<Doubles, LAST>(at, pass.first, table, p, src, dst, shared);
    } else {
        inverse_rounds<Integers, LAST>(at, pass.first, table, p, src, dst, shared);
    }
}

// Most polynomials that are added to a transform.
#define MAX_ADDENDS 3

// What is added to the slots of a transform, and where slot i then goes: to that of psi^(e(i) inverse), so that the
// result is the sum under X -> X^g with g = inverse^-1 mod 2N.
struct Addends {
    Rows rows[MAX_ADDENDS];
    u32 count;
    u32 inverse;
};

// The slots that a block has after a last pass, with the addends, to where they go. in: addends < q; out: < q.
DEV_FN void write_sums(u64* dst, const u64* shared, const Pass& pass, const Prime& p, const Addends& addends, u32 element,
                       u32 limb, u32 log_n) {
    u32 words = 1u << (pass.layers + pass.log_sets);
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) {
        u32 slot = blockIdx.x * words + i;
        u64 sum = finished_slot(shared, i, p);
        for (u32 a = 0; a < addends.count; a++) {
            sum = below(sum + limb_at(addends.rows[a], element, limb, log_n)[slot], p.q);
        }
        dst[image_of_slot(slot, addends.inverse, log_n)] = sum;
    }
}
