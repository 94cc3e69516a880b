//! Two figures side by side for each scheme: by how much the estimate is off, and what is lost above the largest error.

use std::fmt::Write;

use super::Row;

/// Height of a row, of what stands above and below the rows of a scheme, and of the heading.
const LINE: f64 = 15.0;
const ABOVE: f64 = 44.0;
const BELOW: f64 = 40.0;
const HEAD: f64 = 62.0;

/// An axis: where it begins, its width, its range and the distance of its ticks.
struct Axis {
    left: f64,
    width: f64,
    range: [f64; 2],
    step: f64,
    title: &'static str,
}

const DEVIATION: Axis = Axis {
    left: 200.0,
    width: 300.0,
    range: [-0.2, 0.2],
    step: 0.05,
    title: "estimate less measured standard deviation, bits; bars: two standard errors",
};
const GAP: Axis = Axis {
    left: 560.0,
    width: 480.0,
    range: [0.0, 16.0],
    step: 2.0,
    title: "bits above the largest error; at 0: below it",
};

/// Width of the whole.
const WIDTH: f64 = 1080.0;

type Model = (&'static str, &'static str, fn(&Row) -> f64);

const MODELS: [Model; 4] = [
    ("certificate 2^-40", "#1b7f4d", |r| r.certificate_40),
    ("certificate 2^-128", "#1f5fa8", |r| r.certificate_128),
    ("canonical norm", "#c9822b", |r| r.canonical),
    ("worst case", "#b03a3a", |r| r.worst_case),
];

impl Axis {
    fn at(&self, x: f64) -> f64 {
        let [low, high] = self.range;
        self.left + self.width * (x.clamp(low, high) - low) / (high - low)
    }

    /// Lines and labels from `top` to `bottom`.
    fn draw(&self, out: &mut String, top: f64, bottom: f64) {
        let [low, high] = self.range;
        let ticks = ((high - low) / self.step).round() as usize;
        let digits = if self.step < 1.0 { 2 } else { 0 };
        for tick in 0..=ticks {
            let value = low + self.step * tick as f64;
            // No "-0.00" in the middle.
            let value = if value.abs() < self.step / 2.0 { 0.0 } else { value };
            let x = self.at(value);
            line(out, [x, top, x, bottom + 4.0], if value == 0.0 { "#888888" } else { "#dddddd" });
            text(out, x, bottom + 16.0, "middle", &format!("{value:.digits$}"));
        }
        text(out, self.left + self.width / 2.0, bottom + 31.0, "middle", self.title);
    }
}

fn line(out: &mut String, [x1, y1, x2, y2]: [f64; 4], colour: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"1\"/>"
    );
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

fn dot(out: &mut String, x: f64, y: f64, size: f64, colour: &str) {
    let _ =
        writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size:.1}\" fill=\"{colour}\" fill-opacity=\"0.75\"/>");
}

/// The name of every operation of a scheme once, in order.
fn operations(rows: &[&Row]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for row in rows {
        if !names.contains(&row.operation) {
            names.push(row.operation);
        }
    }
    names
}

/// A part for each scheme, a line for each operation, a point for each degree; smaller points for smaller degrees.
#[must_use]
pub fn svg(rows: &[Row]) -> String {
    let mut schemes: Vec<&str> = Vec::new();
    for row in rows {
        if !schemes.contains(&row.scheme.as_str()) {
            schemes.push(&row.scheme);
        }
    }
    let (mut body, mut top) = (String::new(), HEAD);
    for scheme in schemes {
        let of: Vec<&Row> = rows.iter().filter(|row| row.scheme == scheme).collect();
        top = part(&mut body, scheme, &of, top);
    }
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{top}\" viewBox=\"0 0 {WIDTH} {top}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let least = rows.iter().map(|row| row.log_n).min().unwrap_or(0);
    let most = rows.iter().map(|row| row.log_n).max().unwrap_or(0);
    let sizes = format!("N = 2^{least} to 2^{most}, larger points for larger degrees");
    text(&mut out, 8.0, 18.0, "start", &format!("Errors measured, estimated and certified; {sizes}"));
    let estimates = "left: black, operands of the average case";
    text(&mut out, 8.0, 38.0, "start", estimates);
    for (i, (name, colour, _)) in MODELS.iter().enumerate() {
        let x = GAP.left + 125.0 * i as f64;
        dot(&mut out, x, 34.0, 4.0, colour);
        text(&mut out, x + 8.0, 38.0, "start", name);
    }
    out.push_str(&body);
    out.push_str("</svg>\n");
    out
}

/// The part of one scheme from `top` on; returns where it ends.
fn part(out: &mut String, scheme: &str, rows: &[&Row], top: f64) -> f64 {
    let names = operations(rows);
    let (first, bottom) = (top + ABOVE, top + ABOVE + LINE * (names.len() as f64 - 0.5));
    let _ = writeln!(out, "<text x=\"8\" y=\"{:.1}\" font-size=\"14\">{scheme}</text>", first - 18.0);
    DEVIATION.draw(out, first - LINE / 2.0, bottom);
    GAP.draw(out, first - LINE / 2.0, bottom);
    for (i, name) in names.iter().enumerate() {
        let y = first + LINE * i as f64;
        text(out, 8.0, y + 4.0, "start", name);
        for row in rows.iter().filter(|row| row.operation == *name) {
            let size = 1.5 + 0.6 * (f64::from(row.log_n) - 11.0).max(0.0);
            if row.average && row.deviation().is_finite() {
                let [low, high] = [-2.0, 2.0].map(|k| DEVIATION.at(row.deviation() + k * row.standard_error));
                if row.standard_error.is_finite() {
                    line(out, [low, y, high, y], "#555555");
                }
                dot(out, DEVIATION.at(row.deviation()), y, size, "#222222");
            }
            for (_, colour, of) in MODELS {
                let bits = of(row) - row.largest;
                if bits.is_finite() {
                    dot(out, GAP.at(bits), y, size, colour);
                }
            }
        }
    }
    bottom + BELOW
}
