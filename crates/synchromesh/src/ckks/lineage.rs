//! What a ciphertext was made by, as a number: the same for the same operations on the same inputs, whatever the data, the
//! keys, the levels and the order in which it happened. A plan names the values by it that shall be refreshed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::Operation;

/// How a ciphertext came about. Two that came about alike may have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Lineage(u64);

/// A ciphertext as an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parent {
    pub(crate) lineage: Lineage,
    pub(crate) level: usize,
    /// No slot of its message is larger.
    pub(crate) bound: f64,
}

/// One step of `SplitMix64`, which mixes all bits of a word into all others.
const fn mixed(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Lineage {
    /// Of what nothing is known but its level.
    pub(crate) const fn fresh(level: usize) -> Self {
        Self(mixed(level as u64))
    }

    /// Of what an operation makes of others.
    pub(crate) fn of(operation: Operation, from: &[Parent]) -> Self {
        let start = mixed(0x6c69_6e65 ^ ((operation as u64 + 1) << 32));
        Self(from.iter().fold(start, |word, parent| mixed(word.rotate_left(17) ^ parent.lineage.0)))
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Lineage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = u64::from_str_radix(text, 16).ok().map(Self).filter(|number| number.to_string() == text);
        number.ok_or_else(|| format!("{text:?} is no number of 16 hexadecimal digits"))
    }
}

impl TryFrom<String> for Lineage {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Lineage> for String {
    fn from(lineage: Lineage) -> Self {
        lineage.to_string()
    }
}
