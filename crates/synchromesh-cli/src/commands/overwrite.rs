//! What a command that writes may replace.

use crate::error::Error;
use clap::Args;
use std::path::Path;
use synchromesh_rlwe::file::{self, Existing};

/// Regular files are replaced; keys only if the user says so, and what is no file never.
#[derive(Args, Debug, Clone, Copy)]
pub(in crate::commands) struct Overwrite {
    /// Replace a file even if it holds a key.
    #[arg(long)]
    force: bool,
}

impl Overwrite {
    /// How the files at these paths are written: asked before the work whose result goes there.
    pub(in crate::commands) fn permit<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Result<Existing, Error> {
        let existing = if self.force { Existing::Force } else { Existing::Replace };
        paths.into_iter().try_for_each(|path| file::permit(path, existing))?;
        Ok(existing)
    }
}
