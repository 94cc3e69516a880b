// Uniform residues expanded from a seed: attempt a for coefficient j reads word a N + j of the prime's stream, the
// ChaCha20 keystream (RFC 8439) under its key with nonce 0, eight words a block.
#include "layout.h"

// Most limbs of one launch of this kernel.
#define MAX_STREAMS 32

// The key of each limb's stream.
struct StreamKeys {
    u32 word[MAX_STREAMS][8];
};

DEV_FN u32 rotate_left(u32 x, u32 by) { return x << by | x >> (32 - by); }

DEV_FN void quarter_round(u32& a, u32& b, u32& c, u32& d) {
    a += b;
    d = rotate_left(d ^ a, 16);
    c += d;
    b = rotate_left(b ^ c, 12);
    a += b;
    d = rotate_left(d ^ a, 8);
    c += d;
    b = rotate_left(b ^ c, 7);
}

// Block `counter` of a stream.
DEV_FN void chacha20_block(const u32* key, u32 counter, u32* x) {
    const u32 start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, key[0], key[1], key[2], key[3],
                           key[4],     key[5],     key[6],     key[7],     counter, 0,      0,      0};
    DEV_UNROLL
    for (int i = 0; i < 16; i++) {
        x[i] = start[i];
    }
    for (int round = 0; round < 10; round++) {
        quarter_round(x[0], x[4], x[8], x[12]);
        quarter_round(x[1], x[5], x[9], x[13]);
        quarter_round(x[2], x[6], x[10], x[14]);
        quarter_round(x[3], x[7], x[11], x[15]);
        quarter_round(x[0], x[5], x[10], x[15]);
        quarter_round(x[1], x[6], x[11], x[12]);
        quarter_round(x[2], x[7], x[8], x[13]);
        quarter_round(x[3], x[4], x[9], x[14]);
    }
    DEV_UNROLL
    for (int i = 0; i < 16; i++) {
        x[i] += start[i];
    }
}

// A thread draws eight neighbouring coefficients; N is a multiple of eight, so each attempt for them is one block.
DEV_KERNEL(uniform, DEV_ARG(Ring) ring, DEV_ARG(Limbs) limbs, DEV_ARG(Rows) dst, DEV_ARG(StreamKeys) keys) {
    const u64 q = ring.primes[limbs.prime[limb]].q;
    u64* const out = limb_at(dst, element, limb, ring.log_n);
    u64 mask = q;
    DEV_UNROLL
    for (int by = 1; by < 64; by *= 2) {
        mask |= mask >> by;
    }
    const u32 blocks = 1u << (ring.log_n - 3);
    for (u32 block = blockIdx.x * blockDim.x + threadIdx.x; block < blocks; block += gridDim.x * blockDim.x) {
        u32 missing = 0xff;
        for (u32 counter = block; missing != 0; counter += blocks) {
            u32 x[16];
            chacha20_block(keys.word[limb], counter, x);
            DEV_UNROLL
            for (int k = 0; k < 8; k++) {
                u64 word = ((u64)x[2 * k + 1] << 32 | x[2 * k]) & mask;
                if ((missing >> k & 1) != 0 && word < q) {
                    out[8 * block + k] = word;
                    missing &= ~(1u << k);
                }
            }
        }
    }
}

DEV_EXPORT_FLAT(uniform, 256)
