// Transforms in one launch and one pass over memory, by a cluster of 2, 4 or 8 blocks of threads that reach each other's
// shared memory (compute capability 9.0). A translation unit of its own: older cards do not load it.
//
// Of a polynomial's points block b holds the b-th part, neighbours, in its shared memory. The layers before a block's own
// meet the points at one offset of all parts: of a forward transform they come first, a block takes a share of the
// offsets from memory and puts each point into the shared memory of the block that holds its part; then every block goes
// on alone. An inverse transform goes the other way: points are fetched from all blocks. `pass.first` is log2 of the
// number of blocks, `pass.layers` that of the points of a part, `pass.log_sets` 0; the cluster lies along x.
#include "rounds.h"

// Offsets that a block takes.
DEV_FN u32 share(const Pass& pass) { return 1u << (pass.layers - pass.first); }

// LAYERS = pass.first layers from memory to the blocks that go on. in: < q; out: points.
template <class Field, int LAYERS>
DEV_FN void spread(const Pass& pass, const Pair* table, const Prime& p, const u64* src, u64* shared) {
    for (u32 id = threadIdx.x; id < share(pass); id += blockDim.x) {
        u32 offset = blockIdx.x * share(pass) + id;
        typename Field::Point x[1 << LAYERS];
        DEV_UNROLL
        for (int part = 0; part < 1 << LAYERS; part++) {
            x[part] = Field::load(Field::from_residue(src[((u32)part << pass.layers) + offset]), p);
        }
        forward_network<Field, LAYERS>(x, table, 1, p);
        DEV_UNROLL
        for (int part = 0; part < 1 << LAYERS; part++) {
            *cluster_shared(shared + padded(offset), part) = Field::store(x[part]);
        }
    }
}

// The other way. in: points in all blocks; out: < q.
template <class Field, int LAYERS>
DEV_FN void gather(const Pass& pass, const Pair* table, const Prime& p, u64* dst, u64* shared) {
    for (u32 id = threadIdx.x; id < share(pass); id += blockDim.x) {
        u32 offset = blockIdx.x * share(pass) + id;
        typename Field::Point x[1 << LAYERS];
        DEV_UNROLL
        for (int part = 0; part < 1 << LAYERS; part++) {
            x[part] = Field::load(*cluster_shared(shared + padded(offset), part), p);
        }
        inverse_network<Field, LAYERS>(x, table, 1, p);
        DEV_UNROLL
        for (int part = 0; part < 1 << LAYERS; part++) {
            // Differences of the last layer have their N^-1 from its factor.
            bool scaled = part < 1 << (LAYERS - 1);
            dst[((u32)part << pass.layers) + offset] =
                scaled ? Field::finish_scaled(x[part], p) : Field::finish(x[part], p);
        }
    }
}

// The geometries of a block of threads on its own: of 2^13 points, and any.
struct OnePart {
    template <class Body>
    DEV_METHOD void operator()(const Ring& ring, const Pass& pass, Body body) const {
        if (pass.layers == 13) {
            body(Geometry<true, 13, 0>(ring.log_n, pass, blockIdx.x));
        } else {
            body(Geometry<true>(ring.log_n, pass, blockIdx.x));
        }
    }
};

// in: < q; out: after all layers, where `sink` says.
template <class Sink>
DEV_FN void forward_cluster(const Ring& ring, u32 prime, const u64* src, const Pass& pass, u64* shared, Sink sink) {
    const Prime p = ring.primes[prime];
    const Pair* table = ring.forward + ((u64)prime << ring.log_n);
    with_field(p, [&](auto field) {
        typedef decltype(field) Field;
        // The other blocks' shared memory is there once they run.
        DEV_CLUSTER_BARRIER();
        if (pass.first == 1) {
            spread<Field, 1>(pass, table, p, src, shared);
        } else if (pass.first == 2) {
            spread<Field, 2>(pass, table, p, src, shared);
        } else {
            spread<Field, 3>(pass, table, p, src, shared);
        }
        DEV_CLUSTER_BARRIER();
        run_pass<Field, true>(Rounds{ring, pass, table, p, shared}, OnePart(), Shared{shared}, sink);
    });
}

// in: < q; out: < q in slot order.
DEV_KERNEL(ntt_forward_cluster, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src, DEV_ARG(Rows) dst,
           DEV_ARG(Pass) pass) {
    DEV_SHARED();
    const ToSlots sink{limb_at(dst, element, limb, ring.log_n)};
    forward_cluster(ring, limbs.prime[limb], limb_at(src, element, limb, ring.log_n), pass, shared, sink);
}

// out(X) = (NTT(x) + the addends)(X^g) in slots, as ntt_forward_sum. in: x, addends < q; out: < q.
DEV_KERNEL(ntt_forward_sum_cluster, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(PairRows) src,
           DEV_ARG(PairRows) dst, DEV_ARG(Pass) pass, DEV_ARG(SlotAddends) addends) {
    DEV_SHARED();
    forward_cluster(ring, limbs.prime[limb], limb_at(src, limb, ring.log_n), pass, shared, ToSums{dst, addends, limb});
}

// in: < q in slot order; out: < q.
DEV_KERNEL(ntt_inverse_cluster, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src_rows, DEV_ARG(Rows) dst_rows,
           DEV_ARG(Pass) pass) {
    DEV_SHARED();
    u32 prime = limbs.prime[limb];
    const Prime p = ring.primes[prime];
    const Pair* table = ring.inverse + ((u64)prime << ring.log_n);
    const u64* src = limb_at(src_rows, element, limb, ring.log_n);
    u64* dst = limb_at(dst_rows, element, limb, ring.log_n);
    with_field(p, [&](auto field) {
        typedef decltype(field) Field;
        run_pass<Field, false>(Rounds{ring, pass, table, p, shared}, OnePart(), FromSlots{src}, Shared{shared});
        DEV_CLUSTER_BARRIER();
        if (pass.first == 1) {
            gather<Field, 1>(pass, table, p, dst, shared);
        } else if (pass.first == 2) {
            gather<Field, 2>(pass, table, p, dst, shared);
        } else {
            gather<Field, 3>(pass, table, p, dst, shared);
        }
        // A block's shared memory is there as long as it runs.
        DEV_CLUSTER_BARRIER();
    });
}

DEV_EXPORT(ntt_forward_cluster, 256)
DEV_EXPORT(ntt_forward_sum_cluster, 256)
DEV_EXPORT(ntt_inverse_cluster, 256)
