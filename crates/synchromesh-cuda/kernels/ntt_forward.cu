// Forward transforms in one or two launches, each a pass over the data.
#include "rounds.h"

// Which of the first 64 batch elements a limb is transformed of; of all behind them it is.
struct Chosen {
    u64 elements[MAX_LIMBS];
};

// in: < q; out: points.
DEV_KERNEL(ntt_forward_first, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src, DEV_ARG(Rows) dst,
           DEV_ARG(Pass) pass, DEV_ARG(Chosen) chosen) {
    DEV_SHARED();
    if (element < 64 && (chosen.elements[limb] >> element & 1) == 0) {
        return;
    }
    const Limb x(ring, ring.forward, limbs.prime[limb], element, limb, src, dst);
    const Rounds rounds{ring, pass, x.table, x.p, shared};
    with_field(x.p, [&](auto field) {
        run_pass<decltype(field), true>(rounds, FirstPass(), FromRow{x.src, true}, ToRow{x.dst, false});
    });
}

// in: < q where there is no pass before, else points; out: < q in slot order.
DEV_KERNEL(ntt_forward_last, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) src, DEV_ARG(Rows) dst,
           DEV_ARG(Pass) pass) {
    DEV_SHARED();
    const Limb x(ring, ring.forward, limbs.prime[limb], element, limb, src, dst);
    const Rounds rounds{ring, pass, x.table, x.p, shared};
    with_field(x.p, [&](auto field) {
        run_pass<decltype(field), true>(rounds, LastPass(), FromRow{x.src, pass.first == 0}, ToSlots{x.dst});
    });
}

DEV_EXPORT(ntt_forward_first, 256)
DEV_EXPORT(ntt_forward_last, 256)
