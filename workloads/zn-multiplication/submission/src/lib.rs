//! Products modulo 2^64 of encrypted pairs, exactly: BGV modulo a prime t > (2^64 - 1)^2, one pair in each slot.
//!
//! A product of two 64-bit numbers is below t, so that a slot holds it whole; the client reduces it modulo 2^64. The
//! server multiplies slot by slot and nothing else: the product stays in three components, which takes no key at all, and
//! goes down to the lowest level, which is all that decryption needs. Inputs are encrypted under the secret key, so that
//! half of each is a seed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use synchromesh::bgv::{Bgv, Context, Params, ParamsLiteral};
use synchromesh::plan::{Description, SchemeName, SchemeParams};
use synchromesh::rlwe::SecretKey;

/// A prime of 128 bits above (2^64 - 1)^2 that is 1 modulo 2^17: slots up to N = 2^16.
pub const T: &str = "0xffffffffffffffffffffffffff820001";

/// The folders of one size, under the root of the harness's checkout.
pub struct Folders {
    datasets: PathBuf,
    io: PathBuf,
}

impl Folders {
    /// Those of the size that follows the stage.
    pub fn from_args() -> Result<Self> {
        let name = std::env::args()
            .nth(2)
            .context("the stage is followed by the size's name: single, small, medium, large")?;
        Ok(Self { datasets: Path::new("datasets").join(&name), io: Path::new("io").join(name) })
    }

    /// lhs.txt or rhs.txt.
    pub fn dataset(&self, side: &str) -> PathBuf {
        self.datasets.join(format!("{side}.txt"))
    }

    /// A file in a folder of io, which is made if it is not there.
    pub fn io(&self, folder: &str, file: &str) -> Result<PathBuf> {
        let folder = self.io.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder.join(file))
    }
}

/// The number of pairs, which follows the size.
pub fn count_from_args() -> Result<usize> {
    let count = std::env::args().nth(3).context("the size is followed by the number of pairs")?;
    count.parse().with_context(|| format!("{count} is no number of pairs"))
}

/// The smallest parameters of 128 bits of security at which the server's circuit runs.
pub fn planned() -> Result<ParamsLiteral> {
    let description = Description { t: Some(T.to_owned()), additions: 0, ..Description::new(SchemeName::Bgv, 1) };
    let plan = description.plan_exact::<Bgv>(2, |evaluator, x| {
        Ok(vec![evaluator.mod_switch_to(&evaluator.mul_no_relin(&x[0], &x[1])?, 0)?])
    })?;
    match plan.params {
        SchemeParams::Bgv(literal) => Ok(literal),
        _ => bail!("the plan is of another scheme"),
    }
}

/// The context that the key generation chose.
pub fn context(folders: &Folders) -> Result<Arc<Context>> {
    let literal = fs::read(folders.io("public_keys", "params.json")?).context("run client_key_generation first")?;
    Ok(Context::new(Params::new(serde_json::from_slice(&literal)?)?)?)
}

/// The client's key.
pub fn secret_key(folders: &Folders, context: &Context) -> Result<SecretKey> {
    Ok(SecretKey::from_bytes(context.rlwe(), &fs::read(folders.io("secret_key", "secret.key")?)?, None)?)
}

/// Numbers of 64 bits, or of 128, one after the other in little-endian bytes.
pub fn write_numbers<const W: usize>(path: &Path, numbers: impl Iterator<Item = [u8; W]>) -> Result<()> {
    let bytes: Vec<u8> = numbers.flatten().collect();
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// What [`write_numbers`] wrote.
pub fn read_numbers<const W: usize>(path: &Path) -> Result<Vec<[u8; W]>> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (numbers, []) = bytes.as_chunks::<W>() else { bail!("{} ends within a number", path.display()) };
    Ok(numbers.to_vec())
}
