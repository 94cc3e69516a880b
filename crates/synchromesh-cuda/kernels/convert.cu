// Base conversion: out_i (+)= sum_j y_j M_ij + u c_i + b_i mod q_i with y_j = x_j s_j mod p_j (ePrint 2021/204,
// section 2.3); how u is counted is a part of the result's definition, bit for bit.
#include "layout.h"

// Most source primes.
#define MAX_SOURCES 128

// What is known of a source prime p.
struct Source {
    u64 p;
    // floor(2^(51 + bits) / p), below 2^52.
    u64 factor;
    // s.
    Pair prescale;
    // 1 / p rounded to nearest.
    double inverse;
    // Bits of p.
    u32 bits;
    // For counts in integers modulo 2^32.
    u32 weight;
};

// What is known of a destination prime q.
struct Target {
    u64 bias;
    u32 prime;
    u32 unused;
};

// How u is counted.
#define COUNT_NONE 0u
#define COUNT_FIXED 1u
#define COUNT_DOUBLE 2u
#define COUNT_MONTGOMERY 3u

// Coefficients and targets that a thread computes together.
#define TILE_COEFFICIENTS 2u
#define TILE_TARGETS 4u
// Most products between two reductions, beside two residues: fewer than SUM_TERMS.
#define TILE_TERMS 60u

struct Conversion {
    const Source* sources;
    const Target* targets;
    // M and the corrections as its last column, in tiles of TILE_TARGETS rows, the last one filled up: column after
    // column, the words of the rows in parts.
    const u64* matrix;
    u32 source_count;
    u32 target_count;
    u32 count;
    // Rounds u to nearest.
    u32 half;
    // Words are in parts of so many bits, at least 17.
    u32 half_bits;
    u32 unused;
};

struct SourceRows {
    const u64* words;
    u32 stride;
    u32 unused;
    u32 row[MAX_SOURCES];
};

// Two words in parts, as they are loaded together.
struct alignas(16) PartsPair {
    Parts first;
    Parts second;
};

// What is counted of the y_j of one coefficient; each in the order of the sources.
struct Overflows {
    u64 fixed;
    double real;
};

// in: y < p.
DEV_FN void count_overflow(Overflows& sum, const Conversion& conversion, const Source& source, u64 y) {
    if (conversion.count == COUNT_FIXED) {
        u64 lead = source.bits > 51 ? y >> (source.bits - 51) : y << (51 - source.bits);
        sum.fixed += mul_high(lead << 12, source.factor);
    } else if (conversion.count == COUNT_DOUBLE) {
        sum.real = double_add(sum.real, double_mul(double_of(y), source.inverse));
    } else if (conversion.count == COUNT_MONTGOMERY) {
        sum.fixed += (u32)y * source.weight;
    }
}

// out: u < 2^33.
DEV_FN u64 overflow(const Overflows& sum, const Conversion& conversion) {
    switch (conversion.count) {
        case COUNT_FIXED:
            return (sum.fixed + (conversion.half ? 1ull << 49 : 0)) >> 50;
        case COUNT_DOUBLE:
            return double_floor(double_add(sum.real, conversion.half ? 0.5 : 0.0));
        case COUNT_MONTGOMERY:
            return (u32)((1u << 31) - (u32)sum.fixed);
        default:
            return 0;
    }
}

// The sums of a tile over the columns from..until. in: parts of words in y, TILE_COEFFICIENTS columns.
DEV_FN void add_tile(PartSum (&sums)[TILE_TARGETS][TILE_COEFFICIENTS], const Parts* y, u32 stride, const PartsPair* rows,
                     u32 from, u32 until) {
    for (u32 j = from; j < until; j++) {
        Parts words[TILE_TARGETS];
        DEV_UNROLL
        for (u32 k = 0; k < TILE_TARGETS; k += 2) {
            PartsPair pair = rows[(j * TILE_TARGETS + k) / 2];
            words[k] = pair.first;
            words[k + 1] = pair.second;
        }
        DEV_UNROLL
        for (u32 c = 0; c < TILE_COEFFICIENTS; c++) {
            Parts word = y[(j * TILE_COEFFICIENTS + c) * stride];
            DEV_UNROLL
            for (u32 k = 0; k < TILE_TARGETS; k++) {
                add_product(sums[k][c], word, words[k]);
            }
        }
    }
}

// A thread converts TILE_COEFFICIENTS coefficients to the targets of its block's group, `group` of them from `first` on, a
// tile at a time. Its columns of shared memory hold the prescaled sources, so that no thread waits for another.
DEV_KERNEL(convert, DEV_ARG(Ring) ring, DEV_ARG(Conversion) conversion, DEV_ARG(SourceRows) src, DEV_ARG(Rows) dst,
           u32 first, u32 last, u32 group, u32 accumulate, u32 prescaled) {
    DEV_SHARED();
    const u32 i = blockIdx.x * blockDim.x * TILE_COEFFICIENTS + threadIdx.x;
    Parts* const y = reinterpret_cast<Parts*>(shared) + threadIdx.x;
    const u32 stride = blockDim.x, sources = conversion.source_count, bits = conversion.half_bits;
    Overflows counted[TILE_COEFFICIENTS] = {};
    for (u32 j = 0; j < sources; j++) {
        const Source source = conversion.sources[j];
        u64 row = (u64)element * src.stride + src.row[j];
        const u64* const words = src.words + (row << ring.log_n) + i;
        DEV_UNROLL
        for (u32 c = 0; c < TILE_COEFFICIENTS; c++) {
            u64 x = words[c * stride];
            x = prescaled ? x : mul_constant(x, source.prescale, source.p);
            count_overflow(counted[c], conversion, source, x);
            y[(j * TILE_COEFFICIENTS + c) * stride] = parts(x, bits);
        }
    }
    DEV_UNROLL
    for (u32 c = 0; c < TILE_COEFFICIENTS; c++) {
        y[(sources * TILE_COEFFICIENTS + c) * stride] = parts(overflow(counted[c], conversion), bits);
    }
    const u32 columns = sources + 1, terms = parts_terms(bits), most = terms < TILE_TERMS ? terms : TILE_TERMS;
    const u32 from = first + limb * group, until = from + group < last ? from + group : last;
    for (u32 tile = from; tile < until; tile += TILE_TARGETS) {
        const PartsPair* rows = reinterpret_cast<const PartsPair*>(conversion.matrix + (u64)tile * columns);
        // Columns that do not fit one sum come on top of what was written for the ones before.
        for (u32 at = 0; at < columns; at += most) {
            PartSum sums[TILE_TARGETS][TILE_COEFFICIENTS] = {};
            const bool onto = at != 0 || accumulate != 0;
            add_tile(sums, y, stride, rows, at, columns - at <= most ? columns : at + most);
            DEV_UNROLL
            for (u32 k = 0; k < TILE_TARGETS; k++) {
                if (tile + k < until) {
                    const Target target = conversion.targets[tile + k];
                    const Prime& p = ring.primes[target.prime];
                    u64* const out = limb_at(dst, element, tile + k - first, ring.log_n) + i;
                    DEV_UNROLL
                    for (u32 c = 0; c < TILE_COEFFICIENTS; c++) {
                        Sum sum = joined(sums[k][c], bits);
                        add_words(sum, onto ? out[c * stride] : 0, 0);
                        add_words(sum, at == 0 ? target.bias : 0, 0);
                        out[c * stride] = reduce_sum(sum, p);
                    }
                }
            }
        }
    }
}

DEV_EXPORT_FLAT(convert, 128)
