//! A session through files: keys in a directory, columns of numbers encrypted, computed on and decrypted, each step
//! its own process. The secret key is read by [`decrypt`] alone.
//!
//! Certificates in the files are believed if the envelope key in the directory says that its holders wrote them, or if the
//! user says so; what is computed on the user's word is written without that authentication.

mod column;
mod keys;

pub use column::{Column, Summary, Target, compute, decrypt, encrypt, evaluate};
pub use keys::{Directory, Generated, KeyFile, generate, plan_of};

use crate::error::Error;
use synchromesh::plan::Plan;

/// Fails for a plan under 128 bits of security, unless `insecure` says that this is meant.
///
/// # Errors
/// [`Error::Insecure`].
pub fn require_secure(plan: &Plan, insecure: bool) -> Result<(), Error> {
    let bits = plan.security_bits;
    if insecure || bits >= 128.0 { Ok(()) } else { Err(Error::Insecure { bits }) }
}
