//! `cargo xtask docs`: the documentation site, built by MkDocs, and looked at in a browser.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::{python, workspace};

/// The site's sources.
const BOOK: &str = "docs/book";

/// Where it is built.
const SITE: &str = "out/docs";

/// Pages that the check opens, with a word that each must show.
const PAGES: [(&str, &str); 3] =
    [("index.html", "Quickstart"), ("tutorials/levels.html", "Levels"), ("migration.html", "Lattigo")];

/// Widths of the screenshots: a desk and a phone.
const WIDTHS: [u32; 2] = [1280, 400];

/// Browsers that are tried.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Builds the site; with `--check` a browser opens three pages, without network, and takes screenshots.
///
/// # Errors
/// For a dead link, a page that does not render, or where Python or, for the check, a browser is missing.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let check = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        other => bail!("unknown arguments {other:?}; usage: cargo xtask docs [--check]"),
    };
    let root = workspace::root()?;
    build(&root)?;
    println!("built {SITE}/index.html");
    if check {
        browse(&root)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the site; a dead link is an error.
fn build(root: &Path) -> Result<()> {
    python::make_environment(root, "docs", &format!("{BOOK}/requirements.txt"))?;
    let (config, site) = (format!("{BOOK}/mkdocs.yml"), root.join(SITE).display().to_string());
    let mkdocs = python::program(root, "docs", "mkdocs");
    python::run(root, &mkdocs, &["build", "--quiet", "--strict", "--clean", "-f", &config, "-d", &site])?;
    let index = std::fs::read_to_string(root.join(SITE).join("search/search_index.js"));
    ensure!(index.is_ok_and(|text| text.contains("certificate")), "the search index lacks the pages' words");
    Ok(())
}

/// Opens pages as a person without network would, and searches.
fn browse(root: &Path) -> Result<()> {
    let found = BROWSERS.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    let browser = found.context("no browser: install Debian's package chromium")?;
    let search = format!("file://{}?q=certificate", root.join(SITE).join("index.html").display());
    let text = chromium(root, browser, &["--dump-dom", &search])?;
    let hits = text.matches("md-search-result__item").count();
    ensure!(hits > 0, "searching for \"certificate\" finds nothing");
    println!("search: {hits} pages have \"certificate\"");
    for (page, word) in PAGES {
        let address = format!("file://{}", root.join(SITE).join(page).display());
        let text = chromium(root, browser, &["--dump-dom", &address])?;
        ensure!(text.contains(word), "{page} does not show {word:?}");
        for width in WIDTHS {
            let name = format!("{}-{width}.png", page.replace(['/', '.'], "-"));
            let shot = root.join("out").join(&name).display().to_string();
            chromium(
                root,
                browser,
                &[&format!("--window-size={width},900"), &format!("--screenshot={shot}"), &address],
            )?;
            println!("{page}: out/{name}");
        }
    }
    Ok(())
}

fn chromium(root: &Path, browser: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=15000"])
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .args(args)
        .current_dir(root)
        .output()
        .with_context(|| format!("cannot start {browser}"))?;
    ensure!(output.status.success(), "{browser} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
