//! Making matrix triples: keys in shares, proven encryptions, products under encryption, distributed decryption, checks.
//!
//! Every party draws A_i and B_i and sends encryptions; A and B are the sums. All compute C = A B and the MACs alpha A,
//! alpha B and alpha C on ciphertexts (ePrint 2020/451), decrypt them to shares with masks that hide the noise
//! (the widths are those that a cheater's encryptions need), and check everything before a triple leaves.
//!
//! [`GenerationPlan`] chooses parameters, [`generate_keys`] or [`deal`] makes the keys, [`Generator`] is a party's run.

#[cfg(test)]
mod adversary_tests;
mod blocks;
mod check;
mod circuit;
mod conduct;
mod decrypt;
mod decryptions;
mod encryption;
mod floor;
mod forecast;
mod generator;
mod keys;
#[cfg(test)]
mod keys_tests;
mod layout;
#[cfg(test)]
mod mac_key_tests;
mod mask;
mod numbers;
#[cfg(test)]
mod numbers_tests;
mod phases;
mod plan;
mod setup;
#[cfg(test)]
mod tests;
mod traffic;
mod tuple_check;

pub use blocks::{DeviceWorker, Workers};
pub use decryptions::DecryptionJournal;
pub use encryption::Proofs;
pub use floor::Floor;
pub(crate) use forecast::TOGETHER;
pub use forecast::{Forecast, MOST_BYTES};
pub use generator::Generator;
pub use keys::{GeneratedKeys, generate_keys, generate_keys_with};
#[cfg(test)]
pub(crate) use mask::MaskKey;
pub use phases::{Observer, Phase, Progress};
pub use plan::{GenerationPlan, Keys, Request};
pub use setup::{PartyKey, Setup, deal, deal_into, deal_into_with, deal_with};
pub use traffic::Traffic;
