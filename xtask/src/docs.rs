//! `cargo xtask docs`: the documentation site, built by MkDocs, and looked at in a browser.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::{python, workspace};

/// The site's sources.
const BOOK: &str = "docs/book";

/// Where it is built.
const SITE: &str = "out/docs";

/// Pages of which screenshots are taken, with a word that each must show.
const PAGES: [(&str, &str); 3] =
    [("index.html", "Quickstart"), ("tutorials/levels.html", "Levels"), ("key-switching.html", "decompose")];

/// Screenshots: a desk in light and dark, a phone in light and dark.
const SHOTS: [(u32, &str); 4] = [(1280, "light"), (1280, "dark"), (PHONE, "light"), (PHONE, "dark")];

/// Width of a phone's screen, in the pixels that pages count in.
const PHONE: u32 = 400;

/// Fewest characters of a page that has rendered.
const LEAST_TEXT: usize = 300;

/// Browsers that are tried.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Builds the site; with `--check` a browser without network searches, opens every page at the width of a phone, and takes
/// screenshots of three.
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

/// Builds the site; a dead link is an error, and so is a block of code that is not taken for one.
fn build(root: &Path) -> Result<()> {
    python::make_environment(root, "docs", &format!("{BOOK}/requirements.txt"))?;
    let (config, site) = (format!("{BOOK}/mkdocs.yml"), root.join(SITE).display().to_string());
    let mkdocs = python::program(root, "docs", "mkdocs");
    python::run(root, &mkdocs, &["build", "--quiet", "--strict", "--clean", "-f", &config, "-d", &site])?;
    let index = std::fs::read_to_string(root.join(SITE).join("search/search_index.js"));
    ensure!(index.is_ok_and(|text| text.contains("certificate")), "the search index lacks the pages' words");
    let mut pages = Vec::new();
    list(&root.join(SITE), "", &mut pages)?;
    for page in pages {
        let text =
            std::fs::read_to_string(root.join(SITE).join(&page)).with_context(|| format!("cannot read {page}"))?;
        ensure!(!text.contains("```"), "{page} shows the marks of a block of code, and not the block");
    }
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
    let pages = every_page(root, browser)?;
    println!("{pages} pages render, none wider than a phone");
    for (page, word) in PAGES {
        let address = format!("file://{}", root.join(SITE).join(page).display());
        let text = chromium(root, browser, &["--dump-dom", &address])?;
        ensure!(text.contains(word), "{page} does not show {word:?}");
        for (width, colours) in SHOTS {
            let name = format!("{}-{width}-{colours}.png", page.replace(['/', '.'], "-"));
            let shot = root.join("out").join(&name).display().to_string();
            // 0 is dark for this engine, 1 light.
            let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(colours == "light"));
            let size = format!("--window-size={width},900");
            chromium(root, browser, &[&size, &scheme, &format!("--screenshot={shot}"), &address])?;
            println!("{page}: out/{name}");
        }
    }
    Ok(())
}

/// Opens every page in a frame as wide as a phone's screen, and reads what came of it; how many there are.
fn every_page(root: &Path, browser: &str) -> Result<usize> {
    let mut pages = Vec::new();
    list(&root.join(SITE), "", &mut pages)?;
    let probe = root.join("out/docs-check.html");
    std::fs::write(
        &probe,
        PROBE.replace("PAGES", &serde_json::to_string(&pages)?).replace("PHONE", &PHONE.to_string()),
    )
    .context("cannot write the page that opens all others")?;
    let address = format!("file://{}", probe.display());
    let text = chromium(root, browser, &["--allow-file-access-from-files", "--dump-dom", &address])?;
    let found: Vec<Vec<&str>> =
        text.lines().filter_map(|l| l.strip_prefix("page ")).map(|l| l.split(' ').collect()).collect();
    for page in &pages {
        let Some([_, width, length]) = found.iter().find(|f| f.first() == Some(&page.as_str())).map(Vec::as_slice)
        else {
            bail!("{page} was not opened:\n{text}");
        };
        let (width, length): (u32, usize) = (width.parse()?, length.parse()?);
        ensure!(length >= LEAST_TEXT, "{page} shows {length} characters");
        ensure!(width <= PHONE, "{page} is {width} pixels wide on a screen of {PHONE}");
    }
    Ok(pages.len())
}

/// A page that opens all others, one after another, and writes down how wide they are and how much text they show.
const PROBE: &str = "<!DOCTYPE html><pre id=log></pre><script>
(async () => {
  for (const page of PAGES) {
    const frame = document.createElement('iframe');
    frame.style = 'width: PHONEpx; height: 800px; border: 0';
    const loaded = new Promise(done => { frame.onload = done; });
    frame.src = 'docs/' + page;
    document.body.append(frame);
    await loaded;
    const shown = frame.contentDocument;
    const wide = Math.max(shown.documentElement.scrollWidth, shown.body.scrollWidth);
    document.getElementById('log').textContent += `\npage ${page} ${wide} ${shown.body.innerText.length}\n`;
    frame.remove();
  }
})();
</script>
";

/// The site's pages, by their paths.
fn list(folder: &Path, prefix: &str, pages: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)?.flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            list(&entry.path(), &format!("{name}/"), pages)?;
        } else if name.ends_with(".html") && name != "404.html" {
            pages.push(name);
        }
    }
    pages.sort();
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
