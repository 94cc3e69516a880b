//! A random-access stream of 64-bit words: the ChaCha20 keystream (RFC 8439, nonce 0) under a key derived by BLAKE3
//! from (seed, purpose, digit, prime), read as little-endian words; word w lies in block w / 8.

#[cfg(target_arch = "x86_64")]
mod avx512;

use super::{Purpose, Seed};
use crate::isa::Isa;
use chacha20::ChaChaCore;
use chacha20::R20;
use chacha20::cipher::{Array, KeyIvInit, StreamCipherCore, consts::U64};
use chacha20::variants::Ietf;
use zeroize::{Zeroize, Zeroizing};

/// Domain of the stream keys; BLAKE3 derives keys under different contexts independently.
const STREAM_CONTEXT: &str = "synchromesh v1 random stream";

/// 64-bit words in one ChaCha20 block.
const BLOCK_WORDS: usize = 8;

/// The ChaCha20 key of a stream, as eight little-endian words; see [`Stream::new`].
#[must_use]
pub fn stream_key(seed: &Seed, purpose: Purpose, digit: u32, prime: u64) -> Zeroizing<[u32; 8]> {
    let mut hasher = blake3::Hasher::new_derive_key(STREAM_CONTEXT);
    hasher.update(seed.as_bytes());
    hasher.update(&purpose.id().to_le_bytes());
    hasher.update(&digit.to_le_bytes());
    hasher.update(&prime.to_le_bytes());
    let mut bytes = Zeroizing::new([0u8; 32]);
    hasher.finalize_xof().fill(&mut *bytes);
    hasher.zeroize();
    let mut words = Zeroizing::new([0; 8]);
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// Random words addressed by position: 2^35 of them for each (seed, purpose, digit, prime).
///
/// Zeroised on drop. The words are the same on every [`Isa`].
pub struct Stream {
    core: ChaChaCore<R20, Ietf>,
    /// For the kernel that takes sixteen blocks at a time.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "there is no such kernel here"))]
    key: Zeroizing<[u32; 8]>,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "there is no such kernel here"))]
    isa: Isa,
}

impl Stream {
    /// The stream of `purpose` under `seed`. `digit` counts polynomials of that purpose; `prime` is the value of the
    /// modulus for uniform residues and 0 for small integer polynomials.
    #[must_use]
    pub fn new(seed: &Seed, purpose: Purpose, digit: u32, prime: u64) -> Self {
        let key = stream_key(seed, purpose, digit, prime);
        let mut bytes = Zeroizing::new([0u8; 32]);
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(key.iter()) {
            *bytes = word.to_le_bytes();
        }
        let core = ChaChaCore::new(&Array(*bytes), &Array([0; 12]));
        // A bad request in the environment is reported where tables are built; here it only costs speed.
        Self { core, key, isa: Isa::detect().unwrap_or(Isa::Scalar) }
    }

    /// Writes words `start .. start + out.len()` of the stream. Positions are taken modulo 2^35.
    pub fn fill_words(&mut self, start: u64, out: &mut [u64]) {
        let lead = (start % BLOCK_WORDS as u64) as usize;
        let mut block = start / BLOCK_WORDS as u64;
        let mut rest = out;
        if lead != 0 {
            let take = rest.len().min(BLOCK_WORDS - lead);
            let (head, tail) = rest.split_at_mut(take);
            self.partial(block, lead, head);
            block += 1;
            rest = tail;
        }
        let whole = rest.len() - rest.len() % BLOCK_WORDS;
        let (body, tail) = rest.split_at_mut(whole);
        if !body.is_empty() {
            self.blocks(block, body);
        }
        if !tail.is_empty() {
            self.partial(block + (whole / BLOCK_WORDS) as u64, 0, tail);
        }
    }

    /// Words `lead ..` of one block.
    fn partial(&mut self, block: u64, lead: usize, out: &mut [u64]) {
        let mut words = [0u64; BLOCK_WORDS];
        self.blocks(block, &mut words);
        out.copy_from_slice(&words[lead..lead + out.len()]);
        words.zeroize();
    }

    /// Whole blocks from `block` on; `out` is a multiple of eight words long.
    fn blocks(&mut self, block: u64, out: &mut [u64]) {
        let done = self.wide_blocks(block, out);
        let rest = &mut out[done..];
        if !rest.is_empty() {
            self.narrow_blocks(block + (done / BLOCK_WORDS) as u64, rest);
        }
    }

    /// As many blocks as the widest kernel takes at a time; returns the words written.
    #[cfg(target_arch = "x86_64")]
    fn wide_blocks(&self, block: u64, out: &mut [u64]) -> usize {
        if self.isa < Isa::Avx512 {
            return 0;
        }
        let chunks = out.as_chunks_mut::<{ avx512::WORDS }>().0;
        for (i, chunk) in chunks.iter_mut().enumerate() {
            let first = block + (i * avx512::WORDS / BLOCK_WORDS) as u64;
            // SAFETY: `isa` is only set by `Isa::detect`, which returns what this CPU has.
            unsafe { avx512::sixteen_blocks(&self.key, first as u32, chunk) };
        }
        chunks.len() * avx512::WORDS
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn wide_blocks(&self, _block: u64, _out: &mut [u64]) -> usize {
        0
    }

    fn narrow_blocks(&mut self, block: u64, out: &mut [u64]) {
        // The counter has 32 bits; the truncation is the "modulo 2^35" of `fill_words`.
        self.core.set_block_pos(block as u32);
        let bytes: &mut [[u8; 64]] = bytemuck::cast_slice_mut(out);
        self.core.write_keystream_blocks(Array::<u8, U64>::cast_slice_from_core_mut(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_gives_the_words_of_the_reference() {
        let seed = Seed::from_bytes([6; 32]);
        for start in [0, 3, (1 << 35) - 200] {
            let words = |isa| {
                let mut stream = Stream { isa, ..Stream::new(&seed, Purpose::PublicRandomness, 1, 2) };
                let mut out = vec![0; 1000];
                stream.fill_words(start, &mut out);
                out
            };
            for isa in Isa::available() {
                assert_eq!(words(isa), words(Isa::Scalar), "{} from {start}", isa.name());
            }
        }
    }
}
