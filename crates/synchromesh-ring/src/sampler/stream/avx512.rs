//! Sixteen ChaCha20 blocks at a time: vector i holds word i of the sixteen states, lane b belongs to block b.

use std::arch::x86_64::*;

/// Words of 64 bits that sixteen blocks give.
pub(super) const WORDS: usize = 128;

/// Keystream blocks `block .. block + 16` (nonce 0) in order. Counters wrap modulo 2^32.
///
/// # Safety
/// The CPU must have AVX-512F.
#[target_feature(enable = "avx512f")]
pub(super) fn sixteen_blocks(key: &[u32; 8], block: u32, out: &mut [u64; WORDS]) {
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut start = [_mm512_setzero_si512(); 16];
    for (word, constant) in [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574].into_iter().enumerate() {
        start[word] = _mm512_set1_epi32(constant);
    }
    for (word, value) in key.iter().enumerate() {
        start[4 + word] = _mm512_set1_epi32(*value as i32);
    }
    start[12] = _mm512_add_epi32(_mm512_set1_epi32(block as i32), lanes);
    let mut v = start;
    for _ in 0..10 {
        quarter_round(&mut v, 0, 4, 8, 12);
        quarter_round(&mut v, 1, 5, 9, 13);
        quarter_round(&mut v, 2, 6, 10, 14);
        quarter_round(&mut v, 3, 7, 11, 15);
        quarter_round(&mut v, 0, 5, 10, 15);
        quarter_round(&mut v, 1, 6, 11, 12);
        quarter_round(&mut v, 2, 7, 8, 13);
        quarter_round(&mut v, 3, 4, 9, 14);
    }
    for (word, first) in v.iter_mut().zip(start) {
        *word = _mm512_add_epi32(*word, first);
    }
    store_transposed(&v, out);
}

/// The quarter round of RFC 8439, section 2.1, on all lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn quarter_round(v: &mut [__m512i; 16], a: usize, b: usize, c: usize, d: usize) {
    v[a] = _mm512_add_epi32(v[a], v[b]);
    v[d] = _mm512_rol_epi32::<16>(_mm512_xor_si512(v[d], v[a]));
    v[c] = _mm512_add_epi32(v[c], v[d]);
    v[b] = _mm512_rol_epi32::<12>(_mm512_xor_si512(v[b], v[c]));
    v[a] = _mm512_add_epi32(v[a], v[b]);
    v[d] = _mm512_rol_epi32::<8>(_mm512_xor_si512(v[d], v[a]));
    v[c] = _mm512_add_epi32(v[c], v[d]);
    v[b] = _mm512_rol_epi32::<7>(_mm512_xor_si512(v[b], v[c]));
}

/// Writes lane b of all sixteen vectors as block b: a 16 x 16 transposition of 32-bit words.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_transposed(v: &[__m512i; 16], out: &mut [u64; WORDS]) {
    // quads[g][k], 128-bit lane L: words 4g .. 4g + 4 of block 4L + k.
    let mut quads = [[_mm512_setzero_si512(); 4]; 4];
    for (quad, rows) in quads.iter_mut().zip(v.chunks_exact(4)) {
        let (low01, high01) = (_mm512_unpacklo_epi32(rows[0], rows[1]), _mm512_unpackhi_epi32(rows[0], rows[1]));
        let (low23, high23) = (_mm512_unpacklo_epi32(rows[2], rows[3]), _mm512_unpackhi_epi32(rows[2], rows[3]));
        *quad = [
            _mm512_unpacklo_epi64(low01, low23),
            _mm512_unpackhi_epi64(low01, low23),
            _mm512_unpacklo_epi64(high01, high23),
            _mm512_unpackhi_epi64(high01, high23),
        ];
    }
    for k in 0..4 {
        let front01 = _mm512_shuffle_i32x4::<0x44>(quads[0][k], quads[1][k]);
        let back01 = _mm512_shuffle_i32x4::<0xee>(quads[0][k], quads[1][k]);
        let front23 = _mm512_shuffle_i32x4::<0x44>(quads[2][k], quads[3][k]);
        let back23 = _mm512_shuffle_i32x4::<0xee>(quads[2][k], quads[3][k]);
        let blocks = [
            _mm512_shuffle_i32x4::<0x88>(front01, front23),
            _mm512_shuffle_i32x4::<0xdd>(front01, front23),
            _mm512_shuffle_i32x4::<0x88>(back01, back23),
            _mm512_shuffle_i32x4::<0xdd>(back01, back23),
        ];
        for (lane, block) in blocks.into_iter().enumerate() {
            let words = &mut out[8 * (4 * lane + k)..][..8];
            // SAFETY: `words` is a live, exclusive slice of eight u64, 64 bytes; the store needs no alignment.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), block) };
        }
    }
}
