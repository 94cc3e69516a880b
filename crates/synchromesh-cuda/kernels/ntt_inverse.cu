// Inverse transforms in one or two launches, each a pass over the data.
#include "rounds.h"

// in: < q in slot order; out: < q where there is no pass after, else points.
DEV_KERNEL(ntt_inverse_last, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src, DEV_ARG(Rows) dst,
           DEV_ARG(Pass) pass) {
    DEV_SHARED();
    const Limb x(ring, ring.inverse, limbs.prime[limb], element, limb, src, dst);
    const Rounds rounds{ring, pass, x.table, x.p, shared};
    with_field(x.p, [&](auto field) {
        run_pass<decltype(field), false>(rounds, LastPass(), FromSlots{x.src}, ToRow{x.dst, pass.first == 0});
    });
}

// in: points; out: < q.
DEV_KERNEL(ntt_inverse_first, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src, DEV_ARG(Rows) dst,
           DEV_ARG(Pass) pass) {
    DEV_SHARED();
    const Limb x(ring, ring.inverse, limbs.prime[limb], element, limb, src, dst);
    const Rounds rounds{ring, pass, x.table, x.p, shared};
    with_field(x.p, [&](auto field) {
        run_pass<decltype(field), false>(rounds, FirstPass(), FromRow{x.src, false}, ToRow{x.dst, true});
    });
}

DEV_EXPORT(ntt_inverse_first, 256)
DEV_EXPORT(ntt_inverse_last, 256)
