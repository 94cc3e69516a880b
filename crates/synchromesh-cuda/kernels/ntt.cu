// Transforms in one or two launches, each a pass over the data.
#include "rounds.h"

// A last pass: out(X) = (NTT(x) + the addends)(X^g) in slots. in: x as in a last pass, addends < q; out: < q.
DEV_KERNEL(ntt_forward_sum, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src_rows, DEV_ARG(Rows) dst_rows,
           DEV_ARG(Pass) pass, DEV_ARG(Addends) addends) {
    DEV_SHARED();
    u32 prime = limbs.prime[limb];
    const Prime& p = ring.primes[prime];
    const u64* src = limb_at(src_rows, element, limb, ring.log_n);
    u64* dst = limb_at(dst_rows, element, limb, ring.log_n);
    forward_layers<true>(ring, prime, src, dst, pass, shared);
    write_sums(dst, shared, pass, p, addends, element, limb, ring.log_n);
}

DEV_KERNEL(ntt_forward_first, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src, DEV_ARG(Rows) dst,
           DEV_ARG(Pass) pass) {
    DEV_SHARED();
    forward_pass<false>(element, limb, ring, limbs, src, dst, pass, shared);
}

DEV_KERNEL(ntt_forward_last, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src, DEV_ARG(Rows) dst,
           DEV_ARG(Pass) pass) {
    DEV_SHARED();
    forward_pass<true>(element, limb, ring, limbs, src, dst, pass, shared);
}

DEV_KERNEL(ntt_inverse_first, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src, DEV_ARG(Rows) dst,
           DEV_ARG(Pass) pass) {
    DEV_SHARED();
    inverse_pass<false>(element, limb, ring, limbs, src, dst, pass, shared);
}

DEV_KERNEL(ntt_inverse_last, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src, DEV_ARG(Rows) dst,
           DEV_ARG(Pass) pass) {
    DEV_SHARED();
    inverse_pass<true>(element, limb, ring, limbs, src, dst, pass, shared);
}

DEV_EXPORT(ntt_forward_sum, 256)
DEV_EXPORT(ntt_forward_first, 256)
DEV_EXPORT(ntt_forward_last, 256)
DEV_EXPORT(ntt_inverse_first, 256)
DEV_EXPORT(ntt_inverse_last, 256)
