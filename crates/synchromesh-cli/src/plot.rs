//! The noise-and-level plot as SVG: for each computation a panel with its steps from left to right, the modulus as a
//! falling staircase, the certified noise as a line below it, and the level above each stair.

#[cfg(feature = "measure")]
pub mod chart;
pub mod plan;

use crate::demo::Step;
use std::fmt::Write as _;

/// One computation.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Scheme and computation.
    pub title: String,
    /// Parameters, in one line.
    pub subtitle: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

const WIDTH: f64 = 1280.0;
const HEIGHT: f64 = 572.0;
const MARGIN: f64 = 32.0;
const GAP: f64 = 28.0;
const TOP: f64 = 158.0;
const BOTTOM: f64 = 452.0;
const AXIS: f64 = 44.0;

const INK: &str = "#1f2933";
const MUTED: &str = "#616e7c";
const GRID: &str = "#e4e7eb";
const MODULUS: &str = "#2b6cb0";
const MODULUS_FILL: &str = "#ebf4fc";
const NOISE: &str = "#c2410c";
const NOISE_FILL: &str = "#fdeadd";

/// The plot of up to a handful of panels side by side, on one scale of bits. Points that are not finite are left out.
#[must_use]
pub fn noise_plot(heading: &str, panels: &[Panel]) -> String {
    let mut canvas = Canvas::new(heading);
    canvas.text(MARGIN, 44.0, Style { size: 22.0, weight: 600, ..Style::default() }, heading);
    let with_noise = panels.iter().flat_map(|p| &p.steps).any(|s| s.health.noise_bits.is_finite());
    let lead = if with_noise {
        "Every operation adds noise; a message decrypts while it fits between the noise and the modulus."
    } else {
        "A message and its noise must fit below the modulus; each multiplication goes down one level."
    };
    canvas.text(MARGIN, 68.0, Style { size: 13.5, fill: MUTED, ..Style::default() }, lead);
    legend(&mut canvas, with_noise);
    let top = round_up(panels.iter().flat_map(|p| &p.steps).map(|s| finite(s.health.modulus_bits)).fold(1.0, f64::max));
    let count = panels.len().max(1) as f64;
    let width = (WIDTH - 2.0 * MARGIN - GAP * (count - 1.0)) / count;
    for (index, panel) in panels.iter().enumerate() {
        let left = MARGIN + index as f64 * (width + GAP);
        Frame { left: left + AXIS, right: left + width, top, labelled: index == 0 }.draw(&mut canvas, panel);
    }
    canvas.finish()
}

/// The place of a panel and its scale.
struct Frame {
    left: f64,
    right: f64,
    /// Bits at the upper end of the scale.
    top: f64,
    /// Whether the scale has its title.
    labelled: bool,
}

impl Frame {
    fn draw(&self, canvas: &mut Canvas, panel: &Panel) {
        canvas.text(self.left, TOP - 38.0, Style { size: 16.0, weight: 600, ..Style::default() }, &panel.title);
        canvas.text(self.left, TOP - 18.0, Style { size: 12.5, fill: MUTED, ..Style::default() }, &panel.subtitle);
        self.scale(canvas);
        if panel.steps.is_empty() {
            let style = Style { anchor: "middle", fill: MUTED, ..Style::default() };
            canvas.text((self.left + self.right) / 2.0, (TOP + BOTTOM) / 2.0, style, "no steps");
            return;
        }
        let stairs = self.stairs(&panel.steps);
        canvas.area(&stairs, MODULUS_FILL);
        let noise: Vec<_> = panel
            .steps
            .iter()
            .enumerate()
            .filter(|(_, step)| step.health.noise_bits.is_finite())
            .map(|(i, step)| (self.x(i, panel.steps.len()), self.y(step.health.noise_bits)))
            .collect();
        canvas.area(&self.flush(&noise), NOISE_FILL);
        self.grid(canvas);
        canvas.polyline(&stairs, MODULUS);
        canvas.polyline(&self.flush(&noise), NOISE);
        noise.iter().for_each(|&(x, y)| canvas.dot(x, y, NOISE));
        for (i, step) in panel.steps.iter().enumerate() {
            self.annotate(canvas, i, panel.steps.len(), step);
        }
    }

    /// Numbers of the scale, and its title.
    fn scale(&self, canvas: &mut Canvas) {
        let style = Style { size: 12.0, fill: MUTED, anchor: "end", ..Style::default() };
        for bits in ticks(self.top) {
            canvas.text(self.left - 8.0, self.y(bits) + 4.0, style, &format!("{bits}"));
        }
        if self.labelled {
            let (x, y) = (self.left - AXIS + 4.0, (TOP + BOTTOM) / 2.0);
            let style = Style { size: 13.0, fill: MUTED, anchor: "middle", turn: -90.0, ..Style::default() };
            canvas.text(x, y, style, "bits (log2)");
        }
    }

    fn grid(&self, canvas: &mut Canvas) {
        for bits in ticks(self.top) {
            let colour = if bits == 0.0 { MUTED } else { GRID };
            canvas.line((self.left, self.y(bits)), (self.right, self.y(bits)), colour);
        }
    }

    /// The level above the stair, the noise above its dot where they leave room, and the name below the axis.
    fn annotate(&self, canvas: &mut Canvas, index: usize, count: usize, step: &Step) {
        let x = self.x(index, count);
        let stair = self.y(step.health.modulus_bits);
        let level = Style { size: 12.0, weight: 600, fill: MODULUS, anchor: "middle", ..Style::default() };
        canvas.text(x, stair - 7.0, level, &format!("L{}", step.health.level));
        let dot = self.y(step.health.noise_bits);
        if step.health.noise_bits.is_finite() && dot - stair > 20.0 {
            let noise = Style { size: 11.5, fill: NOISE, anchor: "middle", ..Style::default() };
            canvas.text(x, dot - 9.0, noise, &format!("{:.0}", step.health.noise_bits));
        }
        canvas.line((x, BOTTOM), (x, BOTTOM + 5.0), MUTED);
        let name = Style { size: 12.5, anchor: "end", turn: -38.0, ..Style::default() };
        canvas.text(x + 5.0, BOTTOM + 18.0, name, &step.name);
    }

    /// The modulus as a staircase: each step has its stretch of the axis.
    fn stairs(&self, steps: &[Step]) -> Vec<(f64, f64)> {
        let half = self.stretch(steps.len()) / 2.0;
        steps
            .iter()
            .enumerate()
            .flat_map(|(i, step)| {
                let (x, y) = (self.x(i, steps.len()), self.y(step.health.modulus_bits));
                [(x - half, y), (x + half, y)]
            })
            .collect()
    }

    /// `points` carried on level to both edges of the panel.
    fn flush(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
        [&[(self.left, first.1)], points, &[(self.right, last.1)]].concat()
    }

    fn stretch(&self, count: usize) -> f64 {
        (self.right - self.left) / count.max(1) as f64
    }

    fn x(&self, index: usize, count: usize) -> f64 {
        self.left + (index as f64 + 0.5) * self.stretch(count)
    }

    fn y(&self, bits: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * (finite(bits) / self.top).clamp(0.0, 1.0)
    }
}

fn legend(canvas: &mut Canvas, with_noise: bool) {
    let y = 40.0;
    let style = Style { size: 13.0, ..Style::default() };
    let (first, second) = (WIDTH - MARGIN - 330.0, WIDTH - MARGIN - 148.0);
    canvas.polyline(&[(first, y), (first + 26.0, y)], MODULUS);
    canvas.text(first + 34.0, y + 4.5, style, "modulus (L: level)");
    if !with_noise {
        return;
    }
    canvas.polyline(&[(second, y), (second + 26.0, y)], NOISE);
    canvas.dot(second + 13.0, y, NOISE);
    canvas.text(second + 34.0, y + 4.5, style, "certified noise");
}

/// 0 in place of NaN and infinities.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// Distance of the grid lines for a scale up to `top`: 1, 2 or 5 times a power of ten, four to nine of them.
fn tick_distance(top: f64) -> f64 {
    let unit = 10f64.powf((top / 5.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|m| m * unit).into_iter().find(|d| top / d <= 6.5).unwrap_or(top)
}

/// The next grid line at or above `top`.
fn round_up(top: f64) -> f64 {
    let distance = tick_distance(top);
    (top * 1.04 / distance).ceil() * distance
}

fn ticks(top: f64) -> impl Iterator<Item = f64> {
    let distance = tick_distance(top);
    (0..=(top / distance).round() as usize).map(move |i| i as f64 * distance)
}

/// How a text looks.
#[derive(Clone, Copy)]
struct Style {
    size: f64,
    weight: u32,
    fill: &'static str,
    anchor: &'static str,
    /// Degrees, clockwise.
    turn: f64,
}

impl Default for Style {
    fn default() -> Self {
        Self { size: 13.0, weight: 400, fill: INK, anchor: "start", turn: 0.0 }
    }
}

/// SVG text in the making. Writing to a `String` cannot fail, so the results of `write!` are dropped.
struct Canvas {
    svg: String,
}

impl Canvas {
    fn new(title: &str) -> Self {
        let mut svg = String::new();
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" font-family=\"Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif\" \
             role=\"img\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            escape(title)
        );
        Self { svg }
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }

    fn text(&mut self, x: f64, y: f64, style: Style, text: &str) {
        let Style { size, weight, fill, anchor, turn } = style;
        let turn = if turn == 0.0 { String::new() } else { format!(" transform=\"rotate({turn} {x:.1} {y:.1})\"") };
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" font-weight=\"{weight}\" fill=\"{fill}\" \
             text-anchor=\"{anchor}\"{turn}>{}</text>",
            escape(text)
        );
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str) {
        let _ = writeln!(
            self.svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"1\"/>"
        );
    }

    fn dot(&mut self, x: f64, y: f64, colour: &str) {
        let _ = writeln!(
            self.svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
    }

    fn polyline(&mut self, points: &[(f64, f64)], colour: &str) {
        self.dashed(points, colour, "");
    }

    /// A line of dashes and gaps of these lengths; none: unbroken.
    fn dashed(&mut self, points: &[(f64, f64)], colour: &str, dashes: &str) {
        let dashes = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        let _ = writeln!(
            self.svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.2\" stroke-linejoin=\"round\" \
             stroke-linecap=\"round\"{dashes}/>",
            list(points)
        );
    }

    /// The area from `points` down to the axis.
    fn area(&mut self, points: &[(f64, f64)], colour: &str) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
        let closed = [&[(first.0, BOTTOM)], points, &[(last.0, BOTTOM)]].concat();
        let _ = writeln!(self.svg, "<polygon points=\"{}\" fill=\"{colour}\"/>", list(&closed));
    }
}

fn list(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::Health;

    fn panel(title: &str, steps: &[(&str, u32, f64, f64)]) -> Panel {
        let step = |&(name, level, modulus_bits, noise_bits): &(&str, _, _, _)| Step {
            name: name.to_owned(),
            health: Health { level, modulus_bits, noise_bits },
        };
        Panel {
            title: title.into(),
            subtitle: "N = 2^14, log Q = 260, 128-bit security".into(),
            steps: steps.iter().map(step).collect(),
        }
    }

    fn sample() -> [Panel; 3] {
        [
            panel(
                "CKKS: logistic scores",
                &[
                    ("encrypt", 4, 240.0, 21.0),
                    ("times weights", 3, 198.0, 24.0),
                    ("sum over features", 3, 198.0, 29.0),
                    ("u²", 2, 156.0, 30.0),
                    ("u⁴", 1, 114.0, 33.0),
                    ("terms in u⁵, u⁷", 1, 114.0, 36.0),
                    ("score", 0, 72.0, 39.0),
                ],
            ),
            panel(
                "BGV: covariance",
                &[
                    ("encrypt", 2, 262.0, 62.0),
                    ("sum x", 2, 262.0, 72.0),
                    ("sum x sum y", 1, 180.0, 92.0),
                    ("x y", 1, 180.0, 82.0),
                    ("n sum x y", 1, 180.0, 101.0),
                    ("covariance", 1, 180.0, 103.0),
                ],
            ),
            panel(
                "BFV: group by",
                &[
                    ("encrypt", 0, 220.0, 40.0),
                    ("b²", 0, 220.0, 68.0),
                    ("b³", 0, 220.0, 96.0),
                    ("quartile = q", 0, 220.0, 124.0),
                    ("and diagnosis = m", 0, 220.0, 153.0),
                    ("count", 0, 220.0, 163.0),
                ],
            ),
        ]
    }

    #[test]
    fn every_step_has_its_name_level_and_dot() {
        let svg = noise_plot("Noise and levels", &sample());
        let steps: usize = sample().iter().map(|p| p.steps.len()).sum();
        assert_eq!(svg.matches("<circle").count(), steps + 1);
        assert_eq!(svg.matches(">L").count(), steps);
        for step in sample().iter().flat_map(|p| &p.steps) {
            assert!(svg.contains(&format!(">{}</text>", step.name)), "{}", step.name);
        }
    }

    #[test]
    fn stairs_fall_with_the_modulus() {
        let frame = Frame { left: 0.0, right: 100.0, top: 300.0, labelled: false };
        let stairs = frame.stairs(&sample()[0].steps);
        assert!(stairs.windows(2).all(|w| w[0].1 <= w[1].1 && w[0].0 <= w[1].0 + 1e-9));
        assert_eq!(frame.y(0.0), BOTTOM);
        assert_eq!(frame.y(300.0), TOP);
    }

    #[test]
    fn scales_are_round_and_hold_the_data() {
        for top in [1.0, 7.0, 61.0, 99.0, 262.0, 438.0, 3500.0] {
            let rounded = round_up(top);
            let count = ticks(rounded).count();
            assert!(rounded >= top && rounded <= 1.6 * top && (3..=9).contains(&count), "{top}: {rounded}, {count}");
        }
    }

    #[test]
    fn odd_input_makes_well_formed_svg() {
        let odd = panel("<&\">", &[("a<b", 0, f64::NAN, f64::INFINITY), ("c", 1, 10.0, -3.0)]);
        let svg = noise_plot("x", &[odd, panel("empty", &[])]);
        assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("&lt;&amp;&quot;&gt;"));
        assert!(svg.contains("no steps"));
        assert!(noise_plot("none", &[]).ends_with("</svg>\n"));
    }
}
