// Base conversion: out_i (+)= sum_j y_j M_ij + u c_i + b_i mod q_i with y_j = x_j s_j mod p_j (ePrint 2021/204,
// section 2.3); how u is counted is a part of the result's definition, bit for bit.
#include "doubles.h"
#include "layout.h"

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

// What is known of a destination prime q; where q is computed with in doubles, `bias` is the bits of it in (-q/2, q/2), and
// the factors are that of the matrix's high parts, of the words' and of both: 2^b, 2^a and 2^(a + b) mod q.
struct Target {
    Pair factors[3];
    u64 bias;
    u32 prime;
    // Whether sums are reduced in doubles: those of all parts are below 2^52, and q is computed with in doubles.
    u32 in_doubles;
    double modulus;
    double inverse;
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
// Most tasks of one launch, and rows of all of them.
#define MAX_TASKS 72
#define MAX_TASK_ROWS 640

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
    // Words are in parts of so many bits, at least 17, and those of the matrix: a and b.
    u32 source_bits;
    u32 target_bits;
    // Whether the input has its factors s already.
    u32 prescaled;
    u32 unused;
};

// What a block of threads converts: the targets first..last of a conversion.
struct Task {
    const Conversion* conversion;
    // Where its rows begin in the list of the launch: those of its sources, and those of its targets.
    u16 sources;
    u16 targets;
    u16 first;
    u16 last;
};

struct Tasks {
    Task task[MAX_TASKS];
};

// Rows of all tasks: each begins at words + ((element stride + row) << log_n).
struct TaskRows {
    u32 row[MAX_TASK_ROWS];
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

// A sum of products of words in parts, the first in parts of a bits and the second of b: high 2^(a + b) + first 2^a +
// second 2^b + low.
struct CrossSum {
    u64 low;
    u64 second;
    u64 first;
    u64 high;
};

// Products that such a sum holds, a, b <= 31.
DEV_FN u32 cross_terms(u32 bits) { return 1u << (bits < 33 ? 31 : 64 - bits); }

DEV_FN void add_product(CrossSum& sum, Parts a, Parts b) {
    sum.low += (u64)a.low * b.low;
    sum.second += (u64)a.low * b.high;
    sum.first += (u64)a.high * b.low;
    sum.high += (u64)a.high * b.high;
}

// in: 0 < a, b <= 31; out: the same sum, 128 bits.
DEV_FN Sum joined(const CrossSum& parts, u32 a, u32 b) {
    Sum sum = {parts.low, 0};
    add_words(sum, parts.second << b, parts.second >> (64 - b));
    add_words(sum, parts.first << a, parts.first >> (64 - a));
    add_words(sum, parts.high << (a + b), parts.high >> (64 - a - b));
    return sum;
}

// The sums of a tile over so many columns. in: parts of words from y on, TILE_COEFFICIENTS columns.
DEV_FN void add_tile(CrossSum (&sums)[TILE_TARGETS][TILE_COEFFICIENTS], const Parts* y, u32 stride, const PartsPair* rows,
                     u32 columns) {
    const u32 step = TILE_COEFFICIENTS * stride;
    for (const PartsPair* const end = rows + columns * TILE_TARGETS / 2; rows != end; rows += TILE_TARGETS / 2) {
        Parts words[TILE_TARGETS];
        DEV_UNROLL
        for (u32 k = 0; k < TILE_TARGETS; k += 2) {
            PartsPair pair = rows[k / 2];
            words[k] = pair.first;
            words[k + 1] = pair.second;
        }
        DEV_UNROLL
        for (u32 c = 0; c < TILE_COEFFICIENTS; c++) {
            Parts word = y[c * stride];
            DEV_UNROLL
            for (u32 k = 0; k < TILE_TARGETS; k++) {
                add_product(sums[k][c], word, words[k]);
            }
        }
        y += step;
    }
}

// in: parts of the sum below 2^52, |bias| <= q/2, word < q; out: sum + bias + word mod q, < q. What is reduced last is at
// most (1/2 + 2^-19 + 3 (5/8) + 1/2 + 1) q < 4q <= 2^52.
DEV_FN u64 reduce_in_doubles(const CrossSum& sum, const Target& target, double bias, u64 word) {
    const double q = target.modulus;
    double x = double_add(centred(integer_of(sum.low), q, target.inverse), bias);
    x = double_add(x, product(integer_of(sum.second), target.factors[0], q));
    x = double_add(x, product(integer_of(sum.first), target.factors[1], q));
    x = double_add(x, product(integer_of(sum.high), target.factors[2], q));
    return residue(centred(double_add(x, integer_of(word)), q, target.inverse), q);
}

// A thread converts TILE_COEFFICIENTS coefficients to the targets of its block's task, a tile at a time. Its columns of
// shared memory hold the prescaled sources, so that no thread waits for another.
DEV_KERNEL(convert, DEV_ARG(Ring) ring, DEV_ARG(Tasks) tasks, DEV_ARG(TaskRows) rows, const u64* src, u64* dst,
           u32 src_stride, u32 dst_stride, u32 accumulate) {
    DEV_SHARED();
    const Task task = tasks.task[limb];
    const Conversion conversion = *task.conversion;
    const u32 i = blockIdx.x * blockDim.x * TILE_COEFFICIENTS + threadIdx.x;
    Parts* const y = reinterpret_cast<Parts*>(shared) + threadIdx.x;
    const u32 stride = blockDim.x, sources = conversion.source_count, bits = conversion.source_bits;
    Overflows counted[TILE_COEFFICIENTS] = {};
    for (u32 j = 0; j < sources; j++) {
        const Source source = conversion.sources[j];
        u64 row = (u64)element * src_stride + rows.row[task.sources + j];
        const u64* const words = src + (row << ring.log_n) + i;
        DEV_UNROLL
        for (u32 c = 0; c < TILE_COEFFICIENTS; c++) {
            u64 x = words[c * stride];
            x = conversion.prescaled ? x : mul_constant(x, source.prescale, source.p);
            count_overflow(counted[c], conversion, source, x);
            y[(j * TILE_COEFFICIENTS + c) * stride] = parts(x, bits);
        }
    }
    DEV_UNROLL
    for (u32 c = 0; c < TILE_COEFFICIENTS; c++) {
        y[(sources * TILE_COEFFICIENTS + c) * stride] = parts(overflow(counted[c], conversion), bits);
    }
    const u32 columns = sources + 1, target_bits = conversion.target_bits, terms = cross_terms(bits + target_bits);
    const u32 most = terms < TILE_TERMS ? terms : TILE_TERMS;
    for (u32 tile = task.first; tile < task.last; tile += TILE_TARGETS) {
        const PartsPair* matrix = reinterpret_cast<const PartsPair*>(conversion.matrix + (u64)tile * columns);
        // Columns that do not fit one sum come on top of what was written for the ones before.
        for (u32 at = 0; at < columns; at += most) {
            CrossSum sums[TILE_TARGETS][TILE_COEFFICIENTS] = {};
            const bool onto = at != 0 || accumulate != 0;
            add_tile(sums, y + at * TILE_COEFFICIENTS * stride, stride, matrix + at * TILE_TARGETS / 2,
                     columns - at <= most ? columns - at : most);
            DEV_UNROLL
            for (u32 k = 0; k < TILE_TARGETS; k++) {
                if (tile + k < task.last) {
                    const Target& target = conversion.targets[tile + k];
                    u64 row = (u64)element * dst_stride + rows.row[task.targets + tile + k - task.first];
                    u64* const out = dst + (row << ring.log_n) + i;
                    if (target.in_doubles != 0) {
                        const double bias = at == 0 ? double_from(target.bias) : 0.0;
                        DEV_UNROLL
                        for (u32 c = 0; c < TILE_COEFFICIENTS; c++) {
                            out[c * stride] = reduce_in_doubles(sums[k][c], target, bias, onto ? out[c * stride] : 0);
                        }
                        continue;
                    }
                    const Prime& p = ring.primes[target.prime];
                    const u64 bias = at == 0 ? target.bias : 0;
                    DEV_UNROLL
                    for (u32 c = 0; c < TILE_COEFFICIENTS; c++) {
                        Sum sum = joined(sums[k][c], bits, target_bits);
                        add_words(sum, onto ? out[c * stride] : 0, 0);
                        add_words(sum, bias, 0);
                        out[c * stride] = reduce_sum(sum, p);
                    }
                }
            }
        }
    }
}

// Most sources and targets of a conversion that needs no shared memory, and coefficients of a thread.
#define FEW 2u
#define FEW_COEFFICIENTS 4u

// A word that is kept in parts, the lower of so many bits.
DEV_FN u64 whole(Parts parts, u32 bits) { return (u64)parts.high << bits | parts.low; }

// The same from at most FEW sources to at most FEW targets, in registers: what a thread looks up is for more coefficients, and
// no sum is computed that nobody asks for.
DEV_KERNEL(convert_few, DEV_ARG(Ring) ring, DEV_ARG(Tasks) tasks, DEV_ARG(TaskRows) rows, const u64* src, u64* dst,
           u32 src_stride, u32 dst_stride, u32 accumulate) {
    const Task task = tasks.task[limb];
    const Conversion conversion = *task.conversion;
    const u32 i = blockIdx.x * blockDim.x * FEW_COEFFICIENTS + threadIdx.x;
    const u32 stride = blockDim.x, sources = conversion.source_count, targets = task.last;
    u64 y[FEW][FEW_COEFFICIENTS] = {};
    Overflows counted[FEW_COEFFICIENTS] = {};
    DEV_UNROLL
    for (u32 j = 0; j < FEW; j++) {
        if (j < sources) {
            const Source source = conversion.sources[j];
            u64 row = (u64)element * src_stride + rows.row[task.sources + j];
            const u64* const words = src + (row << ring.log_n) + i;
            DEV_UNROLL
            for (u32 c = 0; c < FEW_COEFFICIENTS; c++) {
                u64 x = words[c * stride];
                y[j][c] = conversion.prescaled ? x : mul_constant(x, source.prescale, source.p);
                count_overflow(counted[c], conversion, source, y[j][c]);
            }
        }
    }
    u64 u[FEW_COEFFICIENTS];
    DEV_UNROLL
    for (u32 c = 0; c < FEW_COEFFICIENTS; c++) {
        u[c] = overflow(counted[c], conversion);
    }
    for (u32 k = 0; k < targets; k++) {
        const Target& target = conversion.targets[k];
        const Prime& p = ring.primes[target.prime];
        // All targets are rows of the first tile.
        const Parts* const matrix = reinterpret_cast<const Parts*>(conversion.matrix) + k;
        u64 factors[FEW] = {};
        DEV_UNROLL
        for (u32 j = 0; j < FEW; j++) {
            factors[j] = j < sources ? whole(matrix[j * TILE_TARGETS], conversion.target_bits) : 0;
        }
        const u64 correction = whole(matrix[sources * TILE_TARGETS], conversion.target_bits);
        const u64 bias = target.in_doubles != 0 ? residue(double_from(target.bias), target.modulus) : target.bias;
        u64 row = (u64)element * dst_stride + rows.row[task.targets + k];
        u64* const out = dst + (row << ring.log_n) + i;
        DEV_UNROLL
        for (u32 c = 0; c < FEW_COEFFICIENTS; c++) {
            Sum sum = {bias, 0};
            add_words(sum, accumulate != 0 ? out[c * stride] : 0, 0);
            DEV_UNROLL
            for (u32 j = 0; j < FEW; j++) {
                if (j < sources) {
                    add_product(sum, y[j][c], factors[j]);
                }
            }
            add_product(sum, u[c], correction);
            out[c * stride] = reduce_sum(sum, p);
        }
    }
}

DEV_EXPORT_FLAT(convert, 128)
DEV_EXPORT_FLAT(convert_few, 128)
