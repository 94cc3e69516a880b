//! Adversaries of the certificates: public functions with extreme numbers, and circuits that make errors as large as they
//! get. The tests are quick; `SYNCHROMESH_ADVERSARY_SECONDS` makes the search long.

mod adversary;
mod adversary_ckks;
mod adversary_exact;
#[path = "../it/ckks_fixture.rs"]
#[expect(dead_code, reason = "shared with the integration tests, which use all of it")]
mod ckks_fixture;
mod extremes;
mod extremes_ckks;
mod extremes_exact;
#[path = "../it/judge_bfv.rs"]
mod judge_bfv;
#[path = "../it/judge_bgv.rs"]
mod judge_bgv;
#[path = "../it/oracle.rs"]
#[expect(dead_code, reason = "shared with the integration tests, which use all of it")]
mod oracle;
