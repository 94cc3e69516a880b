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
    u64 correction;
    u64 bias;
    u32 prime;
    u32 unused;
};

// How u is counted.
#define COUNT_NONE 0u
#define COUNT_FIXED 1u
#define COUNT_DOUBLE 2u
#define COUNT_MONTGOMERY 3u

struct Conversion {
    const Source* sources;
    const Target* targets;
    // M, row after row of `source_count`.
    const u64* matrix;
    u32 source_count;
    u32 target_count;
    u32 count;
    // Rounds u to nearest.
    u32 half;
};

struct SourceRows {
    const u64* words;
    u32 stride;
    u32 unused;
    u32 row[MAX_SOURCES];
};

// y_j < p_j for one coefficient at y[j stride]; out: u < 2^33.
DEV_FN u64 count_overflows(const Conversion& conversion, const u64* y, u32 stride) {
    const u32 sources = conversion.source_count;
    if (conversion.count == COUNT_FIXED) {
        u64 sum = conversion.half ? 1ull << 49 : 0;
        for (u32 j = 0; j < sources; j++) {
            const Source& source = conversion.sources[j];
            u64 word = y[j * stride];
            u64 lead = source.bits > 51 ? word >> (source.bits - 51) : word << (51 - source.bits);
            sum += mul_high(lead << 12, source.factor);
        }
        return sum >> 50;
    }
    if (conversion.count == COUNT_DOUBLE) {
        double sum = 0.0;
        for (u32 j = 0; j < sources; j++) {
            sum = double_add(sum, double_mul(double_of(y[j * stride]), conversion.sources[j].inverse));
        }
        return double_floor(double_add(sum, conversion.half ? 0.5 : 0.0));
    }
    if (conversion.count == COUNT_MONTGOMERY) {
        u32 sum = 0;
        for (u32 j = 0; j < sources; j++) {
            sum += (u32)y[j * stride] * conversion.sources[j].weight;
        }
        return (u32)((1u << 31) - sum);
    }
    return 0;
}

// A thread converts one coefficient to the targets of its block's group: `group` of them from `first` on. Its column
// of shared memory holds the prescaled sources, so that no thread waits for another.
DEV_KERNEL(convert, DEV_ARG(Ring) ring, DEV_ARG(Conversion) conversion, DEV_ARG(SourceRows) src, DEV_ARG(Rows) dst,
           u32 first, u32 last, u32 group, u32 accumulate, u32 prescaled) {
    DEV_SHARED();
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    u64* const y = shared + threadIdx.x;
    const u32 stride = blockDim.x, sources = conversion.source_count;
    for (u32 j = 0; j < sources; j++) {
        const Source source = conversion.sources[j];
        u64 row = (u64)element * src.stride + src.row[j];
        u64 x = src.words[(row << ring.log_n) + i];
        y[j * stride] = prescaled ? x : mul_constant(x, source.prescale, source.p);
    }
    u64 overflows = count_overflows(conversion, y, stride);
    u32 from = first + limb * group, until = from + group < last ? from + group : last;
    for (u32 t = from; t < until; t++) {
        const Target target = conversion.targets[t];
        const Prime p = ring.primes[target.prime];
        const u64* matrix = conversion.matrix + (u64)t * sources;
        Sum sum = {target.bias, 0};
        add_product(sum, overflows, target.correction);
        u32 room = SUM_TERMS - 1;
        for (u32 j = 0; j < sources; j++) {
            if (room == 0) {
                sum = Sum{reduce_sum(sum, p), 0};
                room = SUM_TERMS;
            }
            add_product(sum, y[j * stride], matrix[j]);
            room--;
        }
        u64* out = limb_at(dst, element, t - first, ring.log_n) + i;
        u64 value = reduce_sum(sum, p);
        *out = accumulate ? below(*out + value, p.q) : value;
    }
}

DEV_EXPORT_FLAT(convert, 128)
