//! Programs that cargo builds, by package and target: `synchromesh-triples/it`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::steps::Invocation;

/// Where programs are.
pub(crate) struct Programs(BTreeMap<String, String>);

impl Programs {
    /// Runs commands of cargo that build, and keeps what they say they have built.
    ///
    /// # Errors
    /// When something does not compile.
    pub(crate) fn build(root: &Path, calls: impl IntoIterator<Item = Invocation>) -> Result<Self> {
        let format = ["--message-format".to_owned(), "json-render-diagnostics".to_owned()];
        let mut all = BTreeMap::new();
        for call in calls {
            let out = call.clone().args(&format).command(root).stderr(Stdio::inherit()).output()?;
            ensure!(out.status.success(), "`{call}` failed");
            all.extend(String::from_utf8_lossy(&out.stdout).lines().filter_map(built));
        }
        Ok(Self(all))
    }

    /// Where a program is.
    ///
    /// # Errors
    /// When it is not among those that were built.
    pub(crate) fn path(&self, name: &str) -> Result<&str> {
        self.0.get(name).map(String::as_str).with_context(|| format!("no program {name} was built"))
    }

    /// A program with its arguments, split at spaces.
    ///
    /// # Errors
    /// When it is not among those that were built.
    pub(crate) fn start(&self, name: &str, args: &str) -> Result<Invocation> {
        // Without cargo's name a program does not build what it starts.
        Ok(Invocation::new(self.path(name)?, args).env_remove("CARGO"))
    }
}

/// Package and target, and the program, if a message of cargo is of one.
fn built(message: &str) -> Option<(String, String)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let program = message["executable"].as_str()?.to_owned();
    let package = Path::new(message["manifest_path"].as_str()?).parent()?.file_name()?.to_str()?;
    Some((format!("{package}/{}", message["target"]["name"].as_str()?), program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_programs() {
        let message =
            r#"{"manifest_path": "/a/crates/x/Cargo.toml", "target": {"name": "it"}, "executable": "/b/it-1"}"#;
        assert_eq!(built(message), Some(("x/it".to_owned(), "/b/it-1".to_owned())));
        assert_eq!(built(r#"{"manifest_path": "/a/x/Cargo.toml", "target": {"name": "x"}, "executable": null}"#), None);
        assert_eq!(built("no JSON"), None);
    }
}
