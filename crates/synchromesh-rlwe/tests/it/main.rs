//! The integration tests of synchromesh-rlwe, one program: what they share is compiled once.

mod allocation;
mod common;
mod key_switch;
mod level_aware;
mod level_choice;
mod prime_switch;
mod refused_plans;
mod second_key;
mod sparse_key;
mod switch_counts;
mod switch_extended;
mod switch_product;
mod trimmed_keys;
mod wire;
