//! The programs that parts run, built before the first part begins: those of the tests' profile in one call of cargo, those of
//! release mode in another, both at once, since each waits for one crate most of the time. Neither compiles benches, papers or the translated kernels, which no part runs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use crate::programs::Programs;
use crate::steps::Invocation;

/// With debug assertions.
const CHECKED: &[&str] =
    &["build --quiet --package synchromesh --package synchromesh-cli --package synchromesh-harden \
                            --no-default-features --features synchromesh-harden/cli --bin synchromesh \
                            --bin synchromesh-harden --example crashes --example differential --test harden"];

/// Without assertions, which branch on what they assert, and with the marks of secrets, which Valgrind reads and which are
/// a few instructions without effect elsewhere.
const RELEASED: &[&str] =
    &["test --release --quiet --package synchromesh-triples --features memcheck --lib --example timing_leaks --no-run"];

/// Which programs a part runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Built {
    /// None, or some that it builds itself.
    Apart,
    /// Those of the tests' profile.
    Checked,
    /// Those of release mode.
    Released,
}

static BUILT: [OnceLock<Programs>; 2] = [OnceLock::new(), OnceLock::new()];

/// Builds all that these parts run.
///
/// # Errors
/// When something does not compile.
pub(super) fn build_all(root: &Path, wanted: impl Iterator<Item = Built>) -> Result<()> {
    let kinds: BTreeSet<Built> = wanted.collect();
    std::thread::scope(|scope| {
        let builds: Vec<_> = kinds.iter().map(|kind| scope.spawn(|| kind.build(root))).collect();
        builds.into_iter().try_for_each(|build| build.join().unwrap_or_else(|_| bail!("a build panicked")))
    })
}

impl Built {
    /// Builds what is not up to date.
    ///
    /// # Errors
    /// When it does not compile.
    fn build(self, root: &Path) -> Result<()> {
        let (calls, place) = match self {
            Self::Apart => return Ok(()),
            Self::Checked => (CHECKED, &BUILT[0]),
            Self::Released => (RELEASED, &BUILT[1]),
        };
        if place.get().is_none() {
            let programs = Programs::build(root, calls.iter().map(|words| Invocation::cargo(words)))?;
            place.get_or_init(|| programs);
        }
        Ok(())
    }

    fn programs(self) -> Result<&'static Programs> {
        let place = match self {
            Self::Apart => None,
            Self::Checked => BUILT[0].get(),
            Self::Released => BUILT[1].get(),
        };
        place.context("a part runs what was not built for it")
    }

    /// Where a program is: package and target.
    ///
    /// # Errors
    /// When it was not built.
    pub(super) fn path(self, name: &str) -> Result<String> {
        Ok(self.programs()?.path(name)?.to_owned())
    }

    /// A program with its arguments, split at spaces.
    ///
    /// # Errors
    /// When it was not built.
    pub(super) fn start(self, name: &str, args: &str) -> Result<Invocation> {
        self.programs()?.start(name, args)
    }
}
