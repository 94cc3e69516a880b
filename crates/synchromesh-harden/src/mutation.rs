//! Mutants: bytes changed at random, in ways that formats are sensitive to, and sealed again so that they pass checksums.

use synchromesh_rlwe::wire::HEADER_BYTES;
use synchromesh_testing::random::SplitMix;

/// Longest input.
const LONGEST: usize = 1 << 17;

/// Most changes to one input.
const CHANGES: u64 = 6;

/// Bytes of a digest.
const DIGEST: usize = 32;

/// Digits that end a line of a journal.
const LINK: usize = 16;

/// What the checksum of a list of parties follows.
const SUM: &[u8] = b"# checksum ";

/// Checksums that a format has, so that a mutant can be given right ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// None.
    Nothing,
    /// Those of a container: length, CRC of the header, BLAKE3 of everything before the trailer.
    Container,
    /// That of a bundle: BLAKE3 of everything before it; an authentication code follows in files of version 2.
    Bundle,
    /// Those of a journal: a hash of each line and of the digits of the line before.
    Journal,
    /// That of a list of parties: BLAKE3 of everything before its last line.
    Hosts,
}

impl Seal {
    /// Puts right checksums where they belong; inputs without room for them stay as they are.
    pub fn apply(self, bytes: &mut [u8]) {
        match self {
            Self::Nothing => {}
            Self::Container => seal_container(bytes),
            Self::Bundle => {
                let codes = if bytes.get(8..10) == Some(&[2, 0]) { 2 } else { 1 };
                if let Some(end) = bytes.len().checked_sub(codes * DIGEST) {
                    seal_digest(bytes, end);
                }
            }
            Self::Journal => seal_journal(bytes),
            Self::Hosts => seal_hosts(bytes),
        }
    }
}

/// Writes the digest of what is before a place there.
fn seal_digest(bytes: &mut [u8], end: usize) {
    let digest = blake3::hash(&bytes[..end]);
    bytes[end..end + DIGEST].copy_from_slice(digest.as_bytes());
}

fn seal_container(bytes: &mut [u8]) {
    let Some(end) = bytes.len().checked_sub(DIGEST).filter(|end| *end >= HEADER_BYTES) else { return };
    let crc_at = HEADER_BYTES - 4;
    bytes[crc_at - 8..crc_at].copy_from_slice(&((end - HEADER_BYTES) as u64).to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..crc_at]);
    bytes[crc_at..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    seal_digest(bytes, end);
}

fn seal_journal(bytes: &mut [u8]) {
    let mut link = [b'0'; LINK];
    for line in bytes.split_mut(|byte| *byte == b'\n') {
        let Some((rest, digits)) = line.len().checked_sub(LINK).and_then(|at| line.split_at_mut_checked(at)) else {
            continue;
        };
        let Some((end, record)) = rest.split_last() else { continue };
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 journal");
        let hash = hasher.update(&link).update(&[*end]).update(record).finalize().to_hex();
        link = std::array::from_fn(|i| hash.as_bytes()[i]);
        digits.copy_from_slice(&link);
    }
}

fn seal_hosts(bytes: &mut [u8]) {
    let Some(at) = bytes.windows(SUM.len()).rposition(|window| window == SUM) else { return };
    let digits = blake3::hash(&bytes[..at]).to_hex();
    let from = at + SUM.len();
    if let Some(place) = bytes.get_mut(from..from + digits.len()) {
        place.copy_from_slice(digits.as_bytes());
    }
}

/// Numbers at which readers err.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    65_535,
    65_536,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];

/// Words that text formats know.
const WORDS: [&str; 28] = [
    "null",
    "true",
    "{}",
    "[]",
    "[[[[[[[[",
    "((((((((",
    "-",
    "1e999",
    "-1e-999",
    "NaN",
    "inf",
    "0x",
    "99999999999999999999",
    "18446744073709551616",
    "\"",
    "\\u0000",
    ",",
    ":",
    "\n",
    "\r\n",
    "\u{feff}",
    "\u{0}",
    "rotate(",
    "^64",
    "<f8",
    "fortran_order",
    "(1, 2)",
    "#",
];

/// Makes mutants of the inputs of a pool.
pub struct Mutator {
    random: SplitMix,
    seal: Seal,
}

impl Mutator {
    /// The mutants of a seed.
    #[must_use]
    pub fn new(seed: u64, seal: Seal) -> Self {
        Self { random: SplitMix::new(seed), seal }
    }

    /// A mutant of an input of `pool`, which is not empty. Three in four have right checksums.
    pub fn next(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.pick(pool).to_vec();
        for _ in 0..=self.random.below(CHANGES) {
            self.change(&mut bytes, pool);
        }
        bytes.truncate(LONGEST);
        if self.random.below(4) > 0 {
            self.seal.apply(&mut bytes);
        }
        bytes
    }

    fn pick<'a>(&mut self, pool: &'a [Vec<u8>]) -> &'a [u8] {
        &pool[self.below(pool.len())]
    }

    /// A number below `bound`, 0 if there is none.
    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    /// A place; the first bytes, where lengths are, half of the time.
    fn place(&mut self, length: usize) -> usize {
        let front = self.random.below(2) == 0;
        self.below(if front { length.min(160) } else { length })
    }

    fn change(&mut self, bytes: &mut Vec<u8>, pool: &[Vec<u8>]) {
        if bytes.is_empty() {
            bytes.extend_from_slice(self.pick(pool));
            return;
        }
        let at = self.place(bytes.len());
        match self.random.below(10) {
            0 | 1 => bytes[at] ^= 1 << self.random.below(8),
            2 => bytes[at] = [0, 0xff, 0x7f, 0x80, self.random.word() as u8][self.below(5)],
            3 => self.number(bytes, at),
            4 => bytes.truncate(at),
            5 => self.insert(bytes, at),
            6 => {
                let end = at + self.below(bytes.len() - at + 1);
                bytes.drain(at..end);
            }
            7 => self.splice(bytes, at, pool),
            8 => {
                let word = WORDS[self.below(WORDS.len())].as_bytes();
                let end = if self.random.below(2) == 0 { at } else { (at + word.len()).min(bytes.len()) };
                bytes.splice(at..end, word.iter().copied());
            }
            _ => self.digits(bytes, at),
        }
    }

    /// An integer of 1, 2, 4 or 8 bytes becomes an edge, a length near the input's own, or itself and one.
    fn number(&mut self, bytes: &mut [u8], at: usize) {
        let width = (1 << self.random.below(4)).min(bytes.len() - at);
        let mut old = [0; 8];
        old[..width].copy_from_slice(&bytes[at..at + width]);
        let old = u64::from_le_bytes(old);
        let length = bytes.len() as u64;
        let new = match self.random.below(5) {
            0 => old.wrapping_add(1),
            1 => old.wrapping_sub(1),
            2 => length.wrapping_sub(self.random.below(120)),
            _ => EDGES[self.below(EDGES.len())],
        };
        bytes[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
    }

    fn insert(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let most = if self.random.below(16) == 0 { 4096 } else { 16 };
        let count = self.below(most);
        let fill = [None, Some(0), Some(0xff), Some(b'9')][self.below(4)];
        let block: Vec<u8> = (0..count).map(|_| fill.unwrap_or_else(|| self.random.word() as u8)).collect();
        bytes.splice(at..at, block);
    }

    /// The rest is that of another input, or a piece of one is put in.
    fn splice(&mut self, bytes: &mut Vec<u8>, at: usize, pool: &[Vec<u8>]) {
        let other = self.pick(pool);
        let from = self.below(other.len());
        if self.random.below(2) == 0 {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        } else {
            let end = from + self.below((other.len() - from).min(256));
            bytes.splice(at..at, other[from..end].iter().copied());
        }
    }

    /// The decimal number at or after a place becomes another one.
    fn digits(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|skip| at + skip) else { return };
        let end =
            bytes[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |more| start + more);
        let number = match self.random.below(4) {
            0 => self.random.below(20),
            1 => self.random.below(1 << 20),
            _ => EDGES[self.below(EDGES.len())],
        };
        bytes.splice(start..end, number.to_string().into_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_mutants_and_they_differ() {
        let pool = vec![vec![7; 200], b"{\"a\": 12, \"b\": [3]}".to_vec()];
        let all = |seed| {
            let mut mutator = Mutator::new(seed, Seal::Container);
            (0..500).map(|_| mutator.next(&pool)).collect::<Vec<_>>()
        };
        assert_eq!(all(5), all(5));
        let mut distinct = all(5);
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() > 300, "{}", distinct.len());
    }

    #[test]
    fn empty_inputs_have_mutants() {
        let mut mutator = Mutator::new(1, Seal::Bundle);
        assert!((0..200).any(|_| !mutator.next(&[vec![], vec![1]]).is_empty()));
    }

    /// Right checksums over an input of its own format change nothing, and are right again once one was wrong.
    #[test]
    fn seals_are_those_of_the_formats() {
        for target in crate::targets::all().filter(|target| target.seal != Seal::Nothing) {
            for input in (target.seeds)().expect(target.name) {
                let mut sealed = input.clone();
                target.seal.apply(&mut sealed);
                assert!(sealed == input, "{}", target.name);
                // In a checksum, whose line may end there; an authentication code follows in sealed bundles.
                let follows = if target.seal == Seal::Bundle && input[8] == 2 { DIGEST } else { 0 };
                let at = input.len() - follows - 3;
                sealed[at] ^= 1;
                target.seal.apply(&mut sealed);
                assert!(sealed == input, "{}", target.name);
            }
        }
    }

    #[test]
    fn inputs_too_short_for_checksums_stay() {
        for seal in [Seal::Container, Seal::Bundle, Seal::Journal, Seal::Hosts] {
            for length in 0..16 {
                let mut bytes = vec![2; length];
                seal.apply(&mut bytes);
                assert_eq!(bytes, vec![2; length]);
            }
        }
    }
}
