//! The tidy check: file sizes, first lines, unfinished marks and module file names of everything under version control.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

const MAX_LINES: usize = 1000;
const MAX_BYTES: u64 = 1 << 20;

/// Folders that hold no sources when the files are listed without git.
const NOT_SOURCES: &[&str] = &[".git", "target", "out", "__pycache__", "corpus", "artifacts"];

/// Checks the files of the workspace at `root`; the text says how many were read.
///
/// # Errors
/// Lists every fault as `path: what is wrong`.
pub(crate) fn check(root: &Path) -> Result<String> {
    let files = list(root)?;
    let mut faults = Vec::new();
    let mut sources = 0;
    for path in &files {
        let shown = path.display().to_string();
        let full = root.join(path);
        let bytes = fs::metadata(&full).with_context(|| format!("cannot read {shown}"))?.len();
        if bytes > MAX_BYTES {
            faults.push(format!("{shown}: {bytes} bytes, the limit is {MAX_BYTES}"));
            continue;
        }
        let Some(comment) = comment_mark(path) else { continue };
        sources += 1;
        let text = fs::read_to_string(&full).with_context(|| format!("cannot read {shown}"))?;
        faults.extend(faults_of(path, comment, &text).into_iter().map(|fault| format!("{shown}: {fault}")));
    }
    if faults.is_empty() {
        Ok(format!("tidy: {} files, {sources} of them sources", files.len()))
    } else {
        bail!("tidy:\n  {}", faults.join("\n  "))
    }
}

/// How a comment begins in a source file; `None` for other files.
fn comment_mark(path: &Path) -> Option<&'static str> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("rs" | "go" | "cu" | "cuh" | "c" | "cpp" | "h") => Some("//"),
        Some("py" | "pyi" | "sh") => Some("#"),
        None if path.starts_with(".ci") => Some("#"),
        _ => None,
    }
}

fn faults_of(path: &Path, comment: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let count = text.lines().count();
    if count > MAX_LINES {
        faults.push(format!("{count} lines, the limit is {MAX_LINES}: split it by subject"));
    }
    let mut lines = text.lines().skip_while(|line| line.starts_with("#!/"));
    let first = lines.next().unwrap_or_default();
    let documented = first.starts_with(comment) || first.starts_with("#![doc") || first.starts_with("\"\"\"");
    if !documented {
        faults.push("the first line does not say what the file is".into());
    }
    let shared_by_tests = path.components().any(|part| part.as_os_str() == "tests");
    if path.file_name().is_some_and(|name| name == "mod.rs") && !shared_by_tests {
        faults.push("name the module file after the module, beside its folder".into());
    }
    for (index, line) in text.lines().enumerate() {
        if let Some(mark) = marks().into_iter().find(|mark| contains_word(line, mark)) {
            faults.push(format!("line {}: the unfinished mark '{mark}'", index + 1));
        }
    }
    faults
}

/// The marks of unfinished work, spelt so that this file does not contain them.
fn marks() -> [String; 6] {
    [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["XX", "X"].concat(),
        ["HA", "CK"].concat(),
        ["to", "do!"].concat(),
        ["unimple", "mented!"].concat(),
    ]
}

fn contains_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        ![before, after].into_iter().flatten().any(|c| c.is_alphanumeric() || c == '_')
    })
}

/// Paths relative to `root` that version control holds or would hold; all but build outputs where there is no git.
fn list(root: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output();
    let mut files: Vec<PathBuf> = match output {
        Ok(output) if output.status.success() => output
            .stdout
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
            .filter(|path| root.join(path).is_file())
            .collect(),
        _ => {
            let mut found = Vec::new();
            walk(root, root, &mut found)?;
            found
        }
    };
    files.sort();
    files.dedup();
    Ok(files)
}

fn walk(root: &Path, dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            if !NOT_SOURCES.contains(&name.as_str()) && !name.starts_with(".venv") {
                walk(root, &path, found)?;
            }
        } else if entry.file_type()?.is_file() {
            found.push(path.strip_prefix(root)?.to_path_buf());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> Vec<String> {
        faults_of(Path::new("src/a.rs"), "//", text)
    }

    #[test]
    fn this_workspace_is_tidy() {
        check(&workspace_root()).expect("a tidy workspace");
    }

    fn workspace_root() -> PathBuf {
        crate::workspace::root().expect("a root")
    }

    #[test]
    fn a_file_without_a_first_comment_is_a_fault() {
        assert_eq!(rust("use std::fmt;\n").len(), 1);
        assert!(rust("//! Formats.\nuse std::fmt;\n").is_empty());
        assert!(faults_of(Path::new("run"), "#", "#!/bin/sh\n# Runs.\n").is_empty());
        assert_eq!(faults_of(Path::new("run"), "#", "#!/bin/sh\nexit\n").len(), 1);
    }

    #[test]
    fn unfinished_marks_are_found_as_whole_words() {
        for mark in marks() {
            assert_eq!(rust(&format!("//! A.\n// {mark} later\n")).len(), 1, "{mark}");
        }
        assert!(rust("//! A.\nconst HACKNEY: u32 = 1;\n").is_empty());
    }

    #[test]
    fn long_files_and_mod_files_are_faults() {
        assert_eq!(rust(&format!("//! A.\n{}", "\n".repeat(MAX_LINES))).len(), 1);
        assert!(rust(&format!("//! A.\n{}", "\n".repeat(MAX_LINES - 1))).is_empty());
        assert_eq!(faults_of(Path::new("src/a/mod.rs"), "//", "//! A.\n").len(), 1);
        assert!(faults_of(Path::new("tests/common/mod.rs"), "//", "//! A.\n").is_empty());
    }

    #[test]
    fn listing_without_git_finds_the_same_sources() {
        let root = workspace_root();
        let mut walked = Vec::new();
        walk(&root, &root, &mut walked).expect("a readable tree");
        let this = Path::new("xtask/src/tidy.rs");
        assert!(walked.iter().any(|path| path == this));
        assert!(list(&root).expect("a list").iter().any(|path| path == this));
    }
}
