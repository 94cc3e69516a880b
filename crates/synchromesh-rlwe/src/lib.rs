//! Ring learning with errors: keys, ciphertexts, key switching, modulus switching, noise, security; no encodings.
//!
//! This crate knows one number from the schemes above it: the error multiple t (1 for BFV and CKKS, the plaintext
//! modulus for BGV). A [`Context`] holds checked [`Params`] on a device; everything else acts within one.

#![forbid(unsafe_code)]

pub mod ciphertext;
pub mod codec;
pub mod context;
pub mod derived_key;
pub mod domain;
pub mod entropy;
pub mod error;
pub mod evaluation_keys;
pub mod file;
pub mod flood;
pub mod hoisted;
pub mod key_part;
pub mod key_switch;
pub mod level_choice;
pub mod level_plans;
pub mod memory;
pub mod noise;
pub mod observer;
pub mod operations;
pub mod params;
pub mod prepared_key;
pub mod product;
pub mod public_key;
pub mod raise;
pub mod randomness;
pub mod rotation_sum;
pub mod schedule;
pub mod secret_key;
pub mod security;
pub mod spectrum;
pub mod spread;
pub mod switch_key;
pub mod switch_plan;
mod transfer;
pub mod wire;

pub use ciphertext::Ciphertext;
pub use context::Context;
pub use domain::{MixedPoly, Operand, SwitchDomain};
pub use error::Error;
pub use evaluation_keys::EvaluationKeys;
pub use hoisted::{HoistedCiphertext, HoistedTerm};
pub use key_part::KeyPart;
pub use key_switch::Switcher;
pub use level_choice::LevelChoice;
pub use level_plans::{DigitChoice, LevelPlans};
pub use noise::{Certificate, Noise};
pub use observer::{Made, Observer, Operation};
pub use params::{Params, ParamsLiteral, Security};
pub use prepared_key::PreparedKey;
pub use public_key::PublicKey;
pub use randomness::Randomness;
pub use rotation_sum::{Giant, RotationSum};
pub use schedule::{NarrowChain, PrimeSwitching, Schedule, SecondKey, SparseKey, SwitchedChain};
pub use secret_key::{KeyId, SecretKey};
pub use spread::{KeyPlaces, Spread};
pub use switch_key::{Source, SwitchKey, UniformHalves};
pub use switch_plan::{AuxBound, DigitSizes, ExtendedRing, Folding, Gadget, KeyShape, ProductRing, SwitchPlan};
pub use synchromesh_ring as ring;
