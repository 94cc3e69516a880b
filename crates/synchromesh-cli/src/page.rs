//! The report of `reproduce all` as one HTML page that needs no network: every table and figure, theirs beside ours.

mod table;

use std::fmt::Write as _;

use crate::plot::chart::chart;
use crate::plot::escape;
use synchromesh_papers::reproduce::{Figure, Row};

use self::table::Table;

const STYLE: &str = include_str!("page/style.css");

/// One item of the report.
#[derive(Debug)]
pub struct Section<'a> {
    /// Its name on the command line.
    pub id: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// Where it is from.
    pub paper: &'a str,
    /// What was measured, and what the paper has.
    pub rows: &'a [Row],
    /// What differs and why.
    pub deviations: &'a [String],
    /// The item as a figure.
    pub figure: Option<&'a Figure>,
    /// Why there is no result, and what helps.
    pub failure: Option<&'a str>,
    /// How long it took.
    pub seconds: f64,
}

/// The page; `head` is what machine, commit and run this is, as pairs of a word and what it is.
#[must_use]
pub fn page(head: &[(&str, String)], sections: &[Section<'_>]) -> String {
    let tables: Vec<Table> = sections.iter().map(|section| Table::new(section.rows)).collect();
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>synchromesh: tables and figures, measured again</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>Tables and figures, measured again</h1>\n<dl>\n"
    );
    for (word, what) in head {
        let _ = writeln!(html, "<div><dt>{}</dt><dd>{}</dd></div>", escape(word), escape(what));
    }
    html.push_str(
        "</dl>\n<p>In every table <b class=\"ours\">ours</b> is what this run found and <b>theirs</b> what the \
         paper prints; <b>÷</b> is ours divided by theirs, = where both are equal. Their times are of other machines, \
         which the notes below each table name. Rows in italics were not measured in this run but extrapolated from \
         one that was.</p>\n</header>\n<main>\n",
    );
    overview(&mut html, sections, &tables);
    let mut paper = "";
    for (section, table) in sections.iter().zip(&tables) {
        if section.paper != paper {
            paper = section.paper;
            let _ = writeln!(html, "<h2>{}</h2>", escape(&sentence(paper)));
        }
        item(&mut html, section, table);
    }
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

/// All items with how near ours are to theirs, each a link.
fn overview(html: &mut String, sections: &[Section<'_>], tables: &[Table]) {
    html.push_str(
        "<nav aria-label=\"Items\">\n<div class=\"wide\"><table class=\"overview\">\n<thead><tr><th>item</th>\
         <th>what</th><th>rows</th><th>compared</th><th>equal</th><th>median ÷</th><th>notes</th><th>seconds</th></tr>\
         </thead>\n<tbody>\n",
    );
    let mut paper = "";
    for (section, table) in sections.iter().zip(tables) {
        if section.paper != paper {
            paper = section.paper;
            let _ = writeln!(html, "<tr><th colspan=\"8\" scope=\"rowgroup\">{}</th></tr>", escape(&sentence(paper)));
        }
        let compared = table.comparison();
        let count = |n: usize| if compared.cells == 0 { "–".to_owned() } else { n.to_string() };
        let rows = if section.failure.is_some() { "not run".to_owned() } else { section.rows.len().to_string() };
        let _ = writeln!(
            html,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{rows}</td><td>{2}</td><td>{3}</td><td>{4}</td>\
             <td>{5}</td><td>{6:.1}</td></tr>",
            escape(section.id),
            escape(section.title),
            count(compared.cells),
            count(compared.equal),
            compared.median.map_or_else(|| "–".to_owned(), table::ratio),
            section.deviations.len(),
            section.seconds,
        );
    }
    html.push_str("</tbody>\n</table></div>\n</nav>\n");
}

fn item(html: &mut String, section: &Section<'_>, table: &Table) {
    let id = escape(section.id);
    let _ = writeln!(html, "<section id=\"{id}\">\n<h3><a href=\"#{id}\">{id}</a> {}</h3>", escape(section.title));
    if let Some(why) = section.failure {
        let _ = writeln!(html, "<p class=\"failure\">Not run: {}</p>", escape(why));
    }
    if let Some(figure) = section.figure {
        let _ = writeln!(html, "<div class=\"wide figure\">\n{}</div>", chart(figure));
    }
    if !section.rows.is_empty() {
        let long = section.rows.len() > 40;
        if long {
            let _ = writeln!(html, "<details><summary>{} rows</summary>", section.rows.len());
        }
        let _ = writeln!(html, "<div class=\"wide\">{}</div>", table.html(section.rows));
        if long {
            html.push_str("</details>\n");
        }
        let _ = writeln!(html, "<p class=\"files\"><a href=\"{id}.csv\">{id}.csv</a></p>");
    }
    if !section.deviations.is_empty() {
        html.push_str("<h4>What deviates, and why</h4>\n<ul>\n");
        section.deviations.iter().for_each(|line| {
            let _ = writeln!(html, "<li>{}</li>", escape(&sentence(line)));
        });
        html.push_str("</ul>\n");
    }
    html.push_str("</section>\n");
}

/// With a capital, unless it begins with a symbol such as `t = 2`, `k^2` or `--quick`.
fn sentence(line: &str) -> String {
    let mut chars = line.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if first.is_lowercase() && second.is_lowercase() => {
            first.to_uppercase().chain(line.chars().skip(1)).collect()
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use synchromesh_papers::reproduce::Series;

    fn row(value: serde_json::Value) -> Row {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn every_item_has_its_table_figure_and_deviations() {
        let rows = [row(json!({"set": "<1>", "ours_ms": 2.0, "paper_ms": 4.0, "measured": false}))];
        let deviations = ["their machine has \"AVX\" & more".to_owned()];
        let series = vec![Series { name: "x".into(), points: vec![(1.0, 2.0), (2.0, 3.0)], joined: true }];
        let figure = Figure { title: "a figure".into(), x: "x".into(), y: "y".into(), logarithmic: false, series };
        let one = Section {
            id: "linear-table8",
            title: "first",
            paper: "Paper A",
            rows: &rows,
            deviations: &deviations,
            figure: Some(&figure),
            failure: None,
            seconds: 1.0,
        };
        let other = Section { id: "linear-b", rows: &[], figure: None, failure: Some("no memory"), ..one };
        let html = page(&[("machine", "a <fast> one".into())], &[one, other]);
        for part in [
            "a &lt;fast&gt; one",
            "&lt;1&gt;",
            "<td class=\"ratio\">0.50</td>",
            "class=\"extrapolated\"",
            "Their machine has &quot;AVX&quot; &amp; more",
            "<svg",
            "Not run: no memory",
            "href=\"linear-table8.csv\"",
        ] {
            assert!(html.contains(part), "{part} in\n{html}");
        }
        // Nothing is fetched; links stay within the page and its folder.
        assert!(!html.replace("http://www.w3.org/2000/svg", "").contains("://"));
        assert_eq!(html.matches("<h2>").count(), 1);
        for tag in ["table", "tr", "td", "th", "section", "ul", "li", "div", "svg", "details", "nav", "dl"] {
            let opened = html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn sentences_begin_large_unless_with_a_symbol() {
        for (given, shown) in [("the text", "The text"), ("k = 2", "k = 2"), ("--quick: x", "--quick: x"), ("", "")] {
            assert_eq!(sentence(given), shown);
        }
    }
}
