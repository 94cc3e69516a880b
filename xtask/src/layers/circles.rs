//! Circles of modules: which modules at the top of a crate use one another, read from the paths in their tokens.
//!
//! What counts is a path that begins with `crate` or climbs by `super`, in `use` or anywhere else, macros included; a name
//! that the crate's root re-exports stands for the module that has it. What is compiled for tests only does not count, nor
//! does what a module and its own parts use of each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Which modules at the top of a crate use which, each with one place where it does.
#[derive(Debug, Default)]
pub(super) struct Uses(BTreeMap<String, BTreeMap<String, String>>);

/// A path as it is written, or an absolute one without `crate`.
type Segments = Vec<String>;

/// A module while its tokens are read.
struct Module {
    path: Segments,
    /// Its file, relative to the sources.
    file: String,
}

/// What the files of a crate say.
#[derive(Default)]
struct Crate {
    /// The modules at the top.
    tops: BTreeSet<String>,
    /// By what name the root knows which path.
    root: Vec<(String, Segments)>,
    /// (module at the top, file, absolute path that it names).
    named: Vec<(String, String, Segments)>,
    /// Modules with files that are still to be read.
    unread: Vec<Segments>,
}

/// What a crate with its sources in `src` uses of itself.
///
/// # Errors
/// When a file cannot be read or is no Rust.
pub(super) fn uses(src: &Path) -> Result<Uses> {
    let mut found = Crate::default();
    let mut next = Some(Module { path: Vec::new(), file: "lib.rs".into() });
    while let Some(module) = next {
        let path = src.join(&module.file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        found.read(&text, &module).with_context(|| path.display().to_string())?;
        next = found.unread.pop().map(|path| Module { file: path.join("/") + ".rs", path });
    }
    Ok(found.uses())
}

impl Crate {
    fn read(&mut self, text: &str, module: &Module) -> Result<()> {
        let tokens: TokenStream = text.parse().map_err(|e| anyhow!("{e}"))?;
        self.scan(tokens, module);
        Ok(())
    }

    fn scan(&mut self, tokens: TokenStream, module: &Module) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = &tokens[..];
        while let Some((token, tail)) = rest.split_first() {
            rest = match token {
                TokenTree::Punct(p) if p.as_char() == '#' && for_tests(tail) => after_item(tail),
                TokenTree::Group(group) => {
                    self.scan(group.stream(), module);
                    tail
                }
                TokenTree::Ident(word) if word == "mod" => self.module(tail, module),
                TokenTree::Ident(word) => self.path(vec![word.to_string()], tail, module),
                _ => tail,
            };
        }
    }

    /// What follows `mod`; returns what follows the module.
    fn module<'t>(&mut self, tokens: &'t [TokenTree], module: &Module) -> &'t [TokenTree] {
        let [TokenTree::Ident(name), body, rest @ ..] = tokens else { return tokens };
        let path = [&module.path[..], &[name.to_string()]].concat();
        if let [top] = &path[..] {
            self.tops.insert(top.clone());
        }
        match body {
            TokenTree::Group(body) => self.scan(body.stream(), &Module { path, file: module.file.clone() }),
            _ => self.unread.push(path),
        }
        rest
    }

    /// What follows the first segments of a path or of a tree of `use`; returns what follows it.
    fn path<'t>(&mut self, mut segments: Segments, tokens: &'t [TokenTree], module: &Module) -> &'t [TokenTree] {
        let Some(rest) = after_colons(tokens) else {
            let name = match tokens {
                [TokenTree::Ident(word), TokenTree::Ident(name), ..] if word == "as" => Some(name.to_string()),
                _ => segments.last().cloned(),
            };
            self.enter(name.unwrap_or_default(), &segments, module);
            return tokens;
        };
        match rest.split_first() {
            Some((TokenTree::Ident(word), rest)) => {
                segments.push(word.to_string());
                self.path(segments, rest, module)
            }
            Some((TokenTree::Group(group), rest)) if group.delimiter() == Delimiter::Brace => {
                let list: Vec<TokenTree> = group.stream().into_iter().collect();
                for branch in list.split(|token| is_punct(token, ',')) {
                    if let Some((TokenTree::Ident(word), rest)) = branch.split_first() {
                        self.path([&segments[..], &[word.to_string()]].concat(), rest, module);
                    }
                }
                rest
            }
            _ => {
                self.enter(String::new(), &segments, module);
                rest
            }
        }
    }

    /// A whole path, known by `name`.
    fn enter(&mut self, name: String, segments: &[String], module: &Module) {
        let mut at = module.path.clone();
        let mut rest = segments;
        while let Some((first, tail)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                "self" => {}
                _ => break,
            }
            rest = tail;
        }
        let absolute = [&at[..], rest].concat();
        match module.path.first() {
            None => self.root.push((name, absolute)),
            Some(top) if rest.len() < segments.len() => self.named.push((top.clone(), module.file.clone(), absolute)),
            // From where the module stands: a part of it, or another crate.
            Some(_) => {}
        }
    }

    fn uses(&self) -> Uses {
        let mut uses = Uses::default();
        let of_root = |name: &String| self.root.iter().find(|(known, path)| known == name && path.len() > 1);
        for (top, file, path) in &self.named {
            let Some(first) = path.first() else { continue };
            let by_root = || of_root(first).map(|(_, path)| &path[0]);
            let used = Some(first).filter(|first| self.tops.contains(*first)).or_else(by_root);
            if let Some(used) = used.filter(|used| *used != top && self.tops.contains(*used)) {
                let place = || format!("{file} has {}", path.join("::"));
                uses.0.entry(top.clone()).or_default().entry(used.clone()).or_insert_with(place);
            }
        }
        uses
    }
}

impl Uses {
    /// The shortest circle through each module that is in one, every circle once.
    pub(super) fn circles(&self) -> Vec<String> {
        let circles: BTreeSet<Vec<&String>> = self.0.keys().filter_map(|module| self.circle(module)).collect();
        circles.into_iter().map(|circle| self.words(&circle)).collect()
    }

    /// A shortest circle through a module, from its first member in the order of the alphabet.
    fn circle<'a>(&'a self, module: &'a String) -> Option<Vec<&'a String>> {
        let mut ways = VecDeque::from([vec![module]]);
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            for used in self.0.get(way[way.len() - 1]).into_iter().flat_map(BTreeMap::keys) {
                if used == module {
                    let first = (0..way.len()).min_by_key(|&i| way[i]).unwrap_or(0);
                    return Some([&way[first..], &way[..first]].concat());
                }
                if seen.insert(used) {
                    ways.push_back([&way[..], &[used]].concat());
                }
            }
        }
        None
    }

    fn words(&self, circle: &[&String]) -> String {
        let step = |i: usize| {
            let (from, to) = (circle[i], circle[(i + 1) % circle.len()]);
            let place = self.0.get(from).and_then(|used| used.get(to)).map_or("", String::as_str);
            format!("{from} uses {to} ({place})")
        };
        (0..circle.len()).map(step).collect::<Vec<_>>().join(", ")
    }
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == c)
}

/// What follows `::`, if that is what comes first.
fn after_colons(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    match tokens {
        [a, b, rest @ ..] if is_punct(a, ':') && is_punct(b, ':') => Some(rest),
        _ => None,
    }
}

/// Whether what follows `#` is an attribute by which only tests have an item: `[cfg(test)]`, `[cfg(all(test, ..))]`.
fn for_tests(tokens: &[TokenTree]) -> bool {
    let Some(TokenTree::Group(attribute)) = tokens.first() else { return false };
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    text.starts_with("cfg(test)") || text.starts_with("cfg(all(test,")
}

/// What follows an item, its last attributes included: a body in braces, or all up to a semicolon.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is_punct(token, ';'),
    };
    tokens.iter().position(is_end).map_or(&[], |end| &tokens[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles of a crate with these files.
    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let mut found = Crate::default();
        for (file, text) in files {
            let path = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect::<Segments>();
            let path = if *file == "lib.rs" { Vec::new() } else { path };
            found.read(text, &Module { path, file: (*file).to_owned() }).expect("tokens");
        }
        found.uses().circles()
    }

    const LIB: (&str, &str) =
        ("lib.rs", "pub mod a; pub mod b; mod c; pub use c::{Known as Other, d::*}; pub use b::Thing;");

    #[test]
    fn a_circle_is_found_and_printed_with_its_places() {
        let found = circles(&[
            LIB,
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "use crate::{c, y};"),
            ("c.rs", "fn f() { super::a::g() }"),
        ]);
        let words = "a uses b (a.rs has b::X), b uses c (b.rs has c), c uses a (c.rs has a::g)";
        assert_eq!(found, [words]);
        assert!(circles(&[LIB, ("a.rs", "use crate::b::X;"), ("b.rs", "use crate::c;")]).is_empty());
    }

    #[test]
    fn paths_count_wherever_they_stand() {
        let back = ("b.rs", "use crate::a;");
        let places = [
            "use crate::{error::{E, F}, b::{self, x::y}};",
            "impl crate::b::T for X {}",
            "fn f(x: &[crate::b::T; 3]) {}",
            "macro!(a, [crate::b::f(1)]);",
            "mod inner { use super::super::b::T; }",
            "pub(crate) use crate::b as z;",
            "use crate::Thing;",
            "fn f() -> Vec<crate::Thing> {}",
        ];
        for place in places {
            assert_eq!(circles(&[LIB, ("a.rs", place), back]).len(), 1, "{place}");
        }
        for (part, place) in [
            ("a/p.rs", "use crate::b;"),
            ("a/p.rs", "use super::super::b;"),
            ("a/p/q.rs", "use super::super::super::b;"),
        ] {
            assert_eq!(circles(&[LIB, (part, place), back]).len(), 1, "{part}: {place}");
        }
        assert_eq!(circles(&[LIB, ("a.rs", "use crate::Other;"), ("c.rs", "use crate::a;")]).len(), 1);
    }

    #[test]
    fn tests_parts_other_crates_and_words_do_not_count() {
        let back = ("b.rs", "use crate::a;");
        let places = [
            "#[cfg(test)] mod tests { use crate::b; }",
            "#[cfg(test)] use crate::b::{X, Y}; fn f() {}",
            "#[cfg(all(test, unix))] #[other] fn f<A, B>() -> [u8; 3] { crate::b::g() }",
            "/// See [`crate::b::X`].\nfn f() {} // crate::b",
            "const X: &str = \"crate::b\";",
            "use other::b::X; use b::c;",
            "use super::a::part::X; use self::part::Y; use crate::a::part;",
            "fn f() { b::g() }",
        ];
        for place in places {
            assert!(circles(&[LIB, ("a.rs", place), back]).is_empty(), "{place}");
        }
        let counted = "#[cfg(not(test))] use crate::b; #[cfg(unix)] fn f() {}";
        assert_eq!(circles(&[LIB, ("a.rs", counted), back]).len(), 1);
        assert!(circles(&[LIB, ("a/p.rs", "use super::x; use crate::a::q;"), ("a.rs", "use self::p::X;")]).is_empty());
    }
}
