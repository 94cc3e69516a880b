// The negacyclic transform (Harvey's butterflies) in rounds of layers, by blocks of threads.
//
// Layer l of a forward transform has 2^l blocks, block b with the factor psi^rev(2^l + b). A pass does the layers from
// `first` on, on independent sets of 2^layers points: those `N >> layers` apart in a first pass, neighbours in a last
// one. A block of threads takes several sets, eight points a thread: from memory to registers, up to three layers at a
// time, through shared memory in between, and back. Passes of degrees from 2^13 on are compiled for their geometry. Modulo
// a prime below 2^50 points may be doubles; words in memory then are their bits, between passes too, and residues on both
// ends of a transform.
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

// Where word i of a block's points is in its shared memory: so many words are left out behind every 16 that threads whose
// points are apart come to other banks. One where points are 8 or 16 apart; where they are four apart too, five, as four
// neighbours of one 16 then meet one of the next at most. Twin of `shared_bytes` in src/launch.rs.
#define PADDING 1u
#define PADDING_OF_FOURS 5u
DEV_FN u32 padded(u32 i, u32 padding = PADDING) { return i + padding * (i >> 4); }

// Layers of the last of two passes; twin of that in src/launch.rs.
#define TWO_PASSES_LAST 8u

// What is not known before a kernel runs.
#define AT_RUN_TIME -1

// A point of a set, in its row and in shared memory. LAYERS and LOG_SETS are a pass's, where it is compiled for them, with
// MOST layers a round.
template <bool IS_LAST, int LAYERS_ = AT_RUN_TIME, int LOG_SETS_ = AT_RUN_TIME, int MOST_ = 3>
struct Geometry {
    enum { LAST = IS_LAST, LAYERS = LAYERS_, LOG_SETS = LOG_SETS_, MOST = MOST_ };
    u32 log_n, run_layers, run_log_sets, chunk;

    DEV_METHOD Geometry(u32 log_n, const Pass& pass, u32 chunk)
        : log_n(log_n), run_layers(pass.layers), run_log_sets(pass.log_sets), chunk(chunk) {}
    DEV_METHOD u32 layers() const { return LAYERS == AT_RUN_TIME ? run_layers : (u32)LAYERS; }
    DEV_METHOD u32 log_sets() const { return LOG_SETS == AT_RUN_TIME ? run_log_sets : (u32)LOG_SETS; }
    // Of neighbouring points of a set of a first pass.
    DEV_METHOD u32 log_stride() const { return LAYERS == AT_RUN_TIME ? log_n - run_layers : TWO_PASSES_LAST; }
    DEV_METHOD u32 set(u32 local) const { return (chunk << log_sets()) | local; }
    DEV_METHOD u32 in_row(u32 point, u32 local) const {
        return LAST ? (set(local) << layers()) | point : (point << log_stride()) | set(local);
    }
    DEV_METHOD u32 in_shared(u32 point, u32 local) const {
        return padded(LAST ? (local << layers()) | point : (point << log_sets()) | local,
                      MOST == 3 ? PADDING : PADDING_OF_FOURS);
    }
    // The slot of a point after the last layer: those of 64 neighbours read as an 8 x 8 matrix and transposed.
    DEV_METHOD u32 slot(u32 point, u32 local) const { return transpose64(in_row(point, local)); }
    // Points of all sets of a block.
    DEV_METHOD u32 words() const { return 1u << (layers() + log_sets()); }
};

// Layers of the next round when so many are left of a pass: three, or two where that is no multiple.
DEV_CONSTANT u32 next_layers(u32 left, u32 most) { return most == 3 && left % 3 == 0 ? 3 : 2; }

// The same from the other end, when so many are left of `layers`.
DEV_CONSTANT u32 previous_layers(u32 left) { return left > 4 || left == 3 ? 3 : 2; }

// 2^LAYERS points that meet in LAYERS layers after `done` of a pass: the points at base + j step, under node `root`.
struct Group {
    u32 local, base, step, root;
};

template <int LAYERS, class At>
DEV_FN Group group(const At& at, u32 first, u32 done, u32 id) {
    u32 left = at.layers() - done - LAYERS;
    u32 log_groups = at.layers() - LAYERS;
    u32 local = At::LAST ? id >> log_groups : id & ((1u << at.log_sets()) - 1);
    u32 within = At::LAST ? id & ((1u << log_groups) - 1) : id >> at.log_sets();
    u32 block = within >> left;
    u32 node = At::LAST ? (1u << first) + (first > 0 ? at.set(local) : 0) : 1;
    Group made = {local, (block << (left + LAYERS)) | (within & ((1u << left) - 1)), 1u << left, (node << done) + block};
    return made;
}

// Points as integers: below 4q in a forward transform, below 2q in an inverse one.
struct Integers {
    typedef u64 Point;
    typedef const Pair* Table;

    DEV_METHOD static Table table(const Pair* of_prime) { return of_prime; }
    DEV_METHOD static Pair factor(Table table, u32 i, const Prime&) { return table[i]; }

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
    DEV_METHOD static u64 finish_slot(u64 x, const Prime& p) { return below(below(x, 2 * p.q), p.q); }
};

// Points as doubles. What is loaded is reduced to (1/2 + 2^-50) q. Three forward layers come to less than 5/2 q; after two
// inverse layers points are at most 4 (1/2 + 2^-50) q, so that the differences of a third are at most 2^52, as
// q <= 2^50 - 2^11 + 1, and their products below q.
struct Doubles {
    typedef double Point;
    typedef const double* Table;

    DEV_METHOD static Table table(const Pair* of_prime) { return reinterpret_cast<const double*>(of_prime); }
    // The share w/q is made of w, within 2^-53: half as much is loaded.
    DEV_METHOD static Pair factor(Table table, u32 i, const Prime& p) {
        const double w = table[i];
        Pair made = {bits_of(w), bits_of(double_mul(w, p.inverse))};
        return made;
    }

    DEV_METHOD static u64 from_residue(u64 word) { return bits_of(integer_of(word)); }
    DEV_METHOD static double load(u64 word, const Prime& p) { return centred(double_from(word), p.modulus, p.inverse); }
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
        return residue(product(x, p.inverse_n, p.modulus), p.modulus);
    }
    DEV_METHOD static u64 finish(double x, const Prime& p) { return residue(x, p.modulus); }
    DEV_METHOD static u64 finish_slot(double x, const Prime& p) {
        return residue(centred(x, p.modulus, p.inverse), p.modulus);
    }
};

template <class Field, int LAYERS>
DEV_FN void forward_network(typename Field::Point* x, const Pair* of_prime, u32 root, const Prime& p) {
    const typename Field::Table table = Field::table(of_prime);
    DEV_UNROLL
    for (int layer = 0; layer < LAYERS; layer++) {
        DEV_UNROLL
        for (int k = 0; k < 1 << (LAYERS - 1); k++) {
            int shift = LAYERS - 1 - layer, block = k >> shift;
            int low = (block << (shift + 1)) + (k & ((1 << shift) - 1));
            Field::forward(x[low], x[low + (1 << shift)], Field::factor(table, (root << layer) + block, p), p);
        }
    }
}

template <class Field, int LAYERS>
DEV_FN void inverse_network(typename Field::Point* x, const Pair* of_prime, u32 root, const Prime& p) {
    const typename Field::Table table = Field::table(of_prime);
    DEV_UNROLL
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        DEV_UNROLL
        for (int k = 0; k < 1 << (LAYERS - 1); k++) {
            int shift = LAYERS - 1 - layer, block = k >> shift;
            int low = (block << (shift + 1)) + (k & ((1 << shift) - 1));
            Field::inverse(x[low], x[low + (1 << shift)], Field::factor(table, (root << layer) + block, p), p);
        }
    }
}

// Where a round has its points from, and where it puts them.

// Shared memory: points.
struct Shared {
    u64* words;

    template <class Field, int COUNT, class At>
    DEV_METHOD void get(const At& at, Group g, typename Field::Point* x, const Prime& p) const {
        DEV_UNROLL
        for (int j = 0; j < COUNT; j++) {
            x[j] = Field::load(words[at.in_shared(g.base + j * g.step, g.local)], p);
        }
    }
    template <class Field, int COUNT, class At>
    DEV_METHOD void put(const At& at, Group g, const typename Field::Point* x, const Prime&) const {
        DEV_UNROLL
        for (int j = 0; j < COUNT; j++) {
            words[at.in_shared(g.base + j * g.step, g.local)] = Field::store(x[j]);
        }
    }
};

// A row of residues in a first layer, else of points.
struct FromRow {
    const u64* row;
    bool residues;

    template <class Field, int COUNT, class At>
    DEV_METHOD void get(const At& at, Group g, typename Field::Point* x, const Prime& p) const {
        DEV_UNROLL
        for (int j = 0; j < COUNT; j++) {
            u64 word = row[at.in_row(g.base + j * g.step, g.local)];
            x[j] = Field::load(residues ? Field::from_residue(word) : word, p);
        }
    }
};

// A row of points; or of residues, after the last layer of an inverse transform, whose differences have their N^-1 from
// its factor.
struct ToRow {
    u64* row;
    bool residues;

    template <class Field, int COUNT, class At>
    DEV_METHOD void put(const At& at, Group g, const typename Field::Point* x, const Prime& p) const {
        DEV_UNROLL
        for (int j = 0; j < COUNT; j++) {
            u64* const to = row + at.in_row(g.base + j * g.step, g.local);
            if (residues) {
                *to = j < COUNT / 2 ? Field::finish_scaled(x[j], p) : Field::finish(x[j], p);
            } else {
                *to = Field::store(x[j]);
            }
        }
    }
};

// A row of slots, before the last layers of an inverse transform. Of eight neighbouring points of each of eight neighbouring
// threads, those of one number are in neighbouring slots.
struct FromSlots {
    const u64* row;

    template <class Field, int COUNT, class At>
    DEV_METHOD void get(const At& at, Group g, typename Field::Point* x, const Prime& p) const {
        DEV_UNROLL
        for (int j = 0; j < COUNT; j++) {
            x[j] = Field::load(Field::from_residue(row[at.slot(g.base + j, g.local)]), p);
        }
    }
};

// A row of slots, after the last layers.
struct ToSlots {
    u64* row;

    template <class Field, int COUNT, class At>
    DEV_METHOD void put(const At& at, Group g, const typename Field::Point* x, const Prime& p) const {
        DEV_UNROLL
        for (int j = 0; j < COUNT; j++) {
            row[at.slot(g.base + j, g.local)] = Field::finish_slot(x[j], p);
        }
    }
};

// What is added to the slots of a transform, of two polynomials, and where slot i then goes: to that of psi^(e(i) inverse),
// so that the result is the sum under X -> X^g with g = inverse^-1 mod 2N.
struct SlotAddends {
    PairRows rows[MAX_ADDENDS];
    // How many either polynomial has.
    u32 count[2];
    u32 inverse;
    u32 unused;
};

// The same with addends, to where sums go. in: addends < q; out: < q.
struct ToSums {
    const PairRows& dst;
    const SlotAddends& addends;
    u32 limb;

    template <class Field, int COUNT, class At>
    DEV_METHOD void put(const At& at, Group g, const typename Field::Point* x, const Prime& p) const {
        u64 sums[COUNT];
        DEV_UNROLL
        for (int j = 0; j < COUNT; j++) {
            sums[j] = Field::finish_slot(x[j], p);
        }
        const u32 count = addends.count[in_second(dst, limb) ? 1 : 0];
        for (u32 a = 0; a < count; a++) {
            const u64* const addend = limb_at(addends.rows[a], limb, at.log_n);
            DEV_UNROLL
            for (int j = 0; j < COUNT; j++) {
                sums[j] = below(sums[j] + addend[at.slot(g.base + j, g.local)], p.q);
            }
        }
        u64* const row = limb_at(dst, limb, at.log_n);
        const bool stays = addends.inverse == 1;
        DEV_UNROLL
        for (int j = 0; j < COUNT; j++) {
            u32 slot = at.slot(g.base + j, g.local);
            row[stays ? slot : image_of_slot(slot, addends.inverse, at.log_n)] = sums[j];
        }
    }
};

// Runs `body` with a geometry and the layers that are done before a round of K, a constant where it is compiled.
template <int K, int DONE = 0, class At, class Body>
DEV_FN void at_round(const At& at, u32 done, Body body) {
    if constexpr (At::LAYERS == AT_RUN_TIME) {
        body(at, done);
    } else if constexpr (DONE < At::LAYERS) {
        constexpr int TAKES = next_layers(At::LAYERS - DONE, At::MOST);
        if constexpr (TAKES == K) {
            if (done == DONE) {
                return body(at, (u32)DONE);
            }
        }
        at_round<K, DONE + TAKES>(at, done, body);
    }
}

// What the rounds of a pass have in common.
struct Rounds {
    const Ring& ring;
    const Pass& pass;
    const Pair* table;
    const Prime& p;
    u64* shared;
};

// K layers after `done`, forward or back. `choose` runs what it is given with the geometry; butterflies are the same for
// all of them.
template <class Field, bool FORWARD, int K, class Choose, class Source, class Sink>
DEV_FN void round_of(const Rounds& of, u32 done, Choose choose, Source source, Sink sink) {
    const Shared between{of.shared};
    // The last layers of a last pass, of six or more, are three.
    constexpr bool LAST_THREE = K == 3;
    DEV_ONE_TURN
    for (u32 id = threadIdx.x; id < 1u << (of.pass.layers + of.pass.log_sets - K); id += blockDim.x) {
        typename Field::Point x[1 << K];
        u32 root = 0;
        choose(of.ring, of.pass, [&](auto chosen) {
            at_round<K>(chosen, done, [&](const auto& at, u32 before) {
                Group g = group<K>(at, of.pass.first, before, id);
                root = g.root;
                constexpr bool CAN = FORWARD || LAST_THREE || !decltype(chosen)::LAST;
                if (CAN && (FORWARD ? before == 0 : before + K == at.layers())) {
                    source.template get<Field, 1 << K>(at, g, x, of.p);
                } else {
                    between.get<Field, 1 << K>(at, g, x, of.p);
                }
            });
        });
        if constexpr (FORWARD) {
            forward_network<Field, K>(x, of.table, root, of.p);
        } else {
            inverse_network<Field, K>(x, of.table, root, of.p);
        }
        choose(of.ring, of.pass, [&](auto chosen) {
            at_round<K>(chosen, done, [&](const auto& at, u32 before) {
                Group g = group<K>(at, of.pass.first, before, id);
                constexpr bool CAN = !FORWARD || LAST_THREE || !decltype(chosen)::LAST;
                if (CAN && (FORWARD ? before + K == at.layers() : before == 0)) {
                    sink.template put<Field, 1 << K>(at, g, x, of.p);
                } else {
                    between.put<Field, 1 << K>(at, g, x, of.p);
                }
            });
        });
    }
}

// A pass. in: what `source` says; out: where `sink` says.
template <class Field, bool FORWARD, class Choose, class Source, class Sink>
DEV_FN void run_pass(const Rounds& of, Choose choose, Source source, Sink sink) {
    const u32 layers = of.pass.layers;
    u32 ran = 0;
    DEV_ONE_TURN
    while (true) {
        const u32 takes = FORWARD ? next_layers(layers - ran, 3) : previous_layers(layers - ran);
        const u32 done = FORWARD ? ran : layers - ran - takes;
        if (takes == 3) {
            round_of<Field, FORWARD, 3>(of, done, choose, source, sink);
        } else {
            round_of<Field, FORWARD, 2>(of, done, choose, source, sink);
        }
        ran += takes;
        if (ran == layers) {
            return;
        }
        DEV_BARRIER();
    }
}

// The rounds of a pass whose geometry is known, from `DONE` layers on; between two of them points are in shared memory.
template <class Field, int DONE = 0, class At, class Source, class Sink>
DEV_FN void forward_compiled(const At& at, u32 first, const Pair* table, const Prime& p, u64* shared, Source source,
                             Sink sink) {
    constexpr int TAKES = next_layers(At::LAYERS - DONE, At::MOST);
    for (u32 id = threadIdx.x; id < at.words() >> TAKES; id += blockDim.x) {
        Group g = group<TAKES>(at, first, DONE, id);
        typename Field::Point x[1 << TAKES];
        source.template get<Field, 1 << TAKES>(at, g, x, p);
        forward_network<Field, TAKES>(x, table, g.root, p);
        if constexpr (DONE + TAKES == At::LAYERS) {
            sink.template put<Field, 1 << TAKES>(at, g, x, p);
        } else {
            Shared{shared}.put<Field, 1 << TAKES>(at, g, x, p);
        }
    }
    if constexpr (DONE + TAKES != At::LAYERS) {
        DEV_BARRIER();
        forward_compiled<Field, DONE + TAKES>(at, first, table, p, shared, Shared{shared}, sink);
    }
}

// The geometries of a first pass: those of N = 2^14 .. 2^17, and any.
struct FirstPass {
    template <class Body>
    DEV_METHOD void operator()(const Ring& ring, const Pass& pass, Body body) const {
        const bool known = pass.layers + pass.log_sets == 12 && pass.layers + TWO_PASSES_LAST == ring.log_n;
        if (!known || pass.layers < 6 || pass.layers > 9) {
            body(Geometry<false>(ring.log_n, pass, blockIdx.x));
        } else if (pass.layers == 8) {
            body(Geometry<false, 8, 4>(ring.log_n, pass, blockIdx.x));
        } else if (pass.layers == 7) {
            body(Geometry<false, 7, 5>(ring.log_n, pass, blockIdx.x));
        } else if (pass.layers == 6) {
            body(Geometry<false, 6, 6>(ring.log_n, pass, blockIdx.x));
        } else {
            body(Geometry<false, 9, 3>(ring.log_n, pass, blockIdx.x));
        }
    }
};

// Those of a last pass: of N = 2^14 .. 2^17, of a block that holds 2^13 points, and any.
struct LastPass {
    template <class Body>
    DEV_METHOD void operator()(const Ring& ring, const Pass& pass, Body body) const {
        if (pass.layers == 8 && pass.log_sets == 4) {
            body(Geometry<true, 8, 4>(ring.log_n, pass, blockIdx.x));
        } else if (pass.layers == 13) {
            body(Geometry<true, 13, 0>(ring.log_n, pass, blockIdx.x));
        } else {
            body(Geometry<true>(ring.log_n, pass, blockIdx.x));
        }
    }
};

// Runs `body` with the arithmetic of a prime.
template <class Body>
DEV_FN void with_field(const Prime& p, Body body) {
    if (p.in_doubles != 0) {
        body(Doubles());
    } else {
        body(Integers());
    }
}

// What a block of a transform has: its prime, that prime's factors, and rows.
struct Limb {
    const Prime p;
    const Pair* table;
    const u64* src;
    u64* dst;

    DEV_METHOD Limb(const Ring& ring, const Pair* tables, u32 prime, u32 element, u32 limb, const Rows& src, const Rows& dst)
        : p(ring.primes[prime]),
          table(tables + ((u64)prime << ring.log_n)),
          src(limb_at(src, element, limb, ring.log_n)),
          dst(limb_at(dst, element, limb, ring.log_n)) {}
    DEV_METHOD Limb(const Ring& ring, u32 prime, u32 limb, const PairRows& src)
        : p(ring.primes[prime]),
          table(ring.forward + ((u64)prime << ring.log_n)),
          src(limb_at(src, limb, ring.log_n)),
          dst(nullptr) {}
};
