// The last pass of a forward transform, with sums and an automorphism.
#include "rounds.h"

// A last pass: out(X) = (NTT(x) + the addends)(X^g) in slots, of two polynomials. in: x as in a last pass, addends < q;
// out: < q.
DEV_KERNEL(ntt_forward_sum, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(PairRows) src, DEV_ARG(PairRows) dst,
           DEV_ARG(Pass) pass, DEV_ARG(SlotAddends) addends) {
    DEV_SHARED();
    const Limb x(ring, limbs.prime[limb], limb, src);
    const Rounds rounds{ring, pass, x.table, x.p, shared};
    with_field(x.p, [&](auto field) {
        run_pass<decltype(field), true>(rounds, LastPass(), FromRow{x.src, pass.first == 0}, ToSums{dst, addends, limb});
    });
}

DEV_EXPORT(ntt_forward_sum, 256)
