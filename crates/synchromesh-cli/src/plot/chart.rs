//! Lines and points over two axes as SVG, linear or logarithmic, the lines named at their right ends' side.

use super::{Canvas, GRID, HEIGHT, MARGIN, MUTED, Style, WIDTH, tick_distance};
use synchromesh_papers::reproduce::{Figure, Series};

/// Place of the axes.
const LEFT: f64 = 96.0;
const RIGHT: f64 = WIDTH - 300.0;
const UPPER: f64 = 84.0;
const LOWER: f64 = HEIGHT - 64.0;

/// Colours that stay apart in print and for the colour-blind (Okabe and Ito, darkened), used in turn.
const COLOURS: [&str; 8] = ["#0b5c94", "#b8470c", "#00735a", "#8a3f73", "#8a6a00", "#3d8fc4", "#333333", "#5b6b00"];

/// Dashes that tell lines of one colour apart, used in turn when the colours are used up.
const DASHES: [&str; 3] = ["", "9 6", "2 6"];

/// Most room between the names of two lines.
const KEY: f64 = 24.0;

/// One axis: the data's ends, and where they are drawn.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64, logarithmic: bool) -> Self {
        let usable = values.filter(|v| v.is_finite() && (!logarithmic || *v > 0.0));
        let (mut low, mut high) = usable.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = (1.0, 2.0);
        }
        if logarithmic {
            (low, high) = (low / 1.15, high * 1.15);
        } else {
            let step = tick_distance((high - low).max(high.abs() * 0.05).max(1e-9));
            (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
            // Amounts start at zero where that wastes little.
            if low > 0.0 && low < 0.6 * high {
                low = 0.0;
            }
        }
        if low == high {
            high = low + 1.0;
        }
        Self { low, high, from, to, logarithmic }
    }

    fn at(&self, value: f64) -> f64 {
        let part = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (self.to - self.from) * part
    }

    fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            let step = tick_distance(self.high - self.low);
            let first = (self.low / step).ceil() as i64;
            return (first..).map(|i| i as f64 * step).take_while(|v| *v <= self.high + step * 1e-6).collect();
        }
        let decades = (self.high / self.low).log10();
        let digits: &[f64] = match decades {
            d if d < 1.3 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            d if d < 3.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let from = self.low.log10().floor() as i32;
        let to = self.high.log10().ceil() as i32;
        let all = (from..=to).flat_map(|e| digits.iter().map(move |d| d * 10f64.powi(e)));
        all.filter(|v| (self.low..=self.high).contains(v)).collect()
    }
}

/// A number as a label: no more digits than it needs.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The figure as SVG. Points that cannot be drawn are left out.
#[must_use]
pub fn chart(figure: &Figure) -> String {
    let mut canvas = Canvas::new(&figure.title);
    let points = || figure.series.iter().flat_map(|s| &s.points);
    let x = Axis::new(points().map(|p| p.0), LEFT, RIGHT, figure.logarithmic);
    let y = Axis::new(points().map(|p| p.1), LOWER, UPPER, figure.logarithmic);
    canvas.text(MARGIN, 44.0, Style { size: 22.0, weight: 600, ..Style::default() }, &figure.title);
    let tick = Style { size: 12.0, fill: MUTED, ..Style::default() };
    for value in y.ticks() {
        canvas.line((LEFT, y.at(value)), (RIGHT, y.at(value)), GRID);
        canvas.text(LEFT - 10.0, y.at(value) + 4.0, Style { anchor: "end", ..tick }, &number(value));
    }
    for value in x.ticks() {
        canvas.line((x.at(value), LOWER), (x.at(value), LOWER + 5.0), MUTED);
        canvas.text(x.at(value), LOWER + 21.0, Style { anchor: "middle", ..tick }, &number(value));
    }
    canvas.line((LEFT, LOWER), (RIGHT, LOWER), MUTED);
    let middle = Style { anchor: "middle", size: 13.0, ..Style::default() };
    canvas.text((LEFT + RIGHT) / 2.0, LOWER + 46.0, middle, &figure.x);
    canvas.text(32.0, (UPPER + LOWER) / 2.0, Style { turn: -90.0, ..middle }, &figure.y);
    let key_distance = KEY.min((LOWER - UPPER) / figure.series.len().max(1) as f64);
    let name = Style { size: 13f64.min(key_distance * 0.75), ..Style::default() };
    for (i, series) in figure.series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let dashes = DASHES[i / COLOURS.len() % DASHES.len()];
        let drawn: Vec<(f64, f64)> = visible(series, figure.logarithmic).map(|(a, b)| (x.at(a), y.at(b))).collect();
        if series.joined && drawn.len() > 1 {
            canvas.dashed(&drawn, colour, dashes);
        }
        if !series.joined || drawn.len() != 2 {
            drawn.iter().for_each(|&(a, b)| canvas.dot(a, b, colour));
        }
        let key = UPPER + 8.0 + key_distance * i as f64;
        if series.joined {
            canvas.dashed(&[(RIGHT + 28.0, key), (RIGHT + 54.0, key)], colour, dashes);
        } else {
            canvas.dot(RIGHT + 41.0, key, colour);
        }
        canvas.text(RIGHT + 62.0, key + 4.5, name, &series.name);
    }
    canvas.finish()
}

fn visible(series: &Series, logarithmic: bool) -> impl Iterator<Item = (f64, f64)> + '_ {
    let fits = move |v: f64| v.is_finite() && (!logarithmic || v > 0.0);
    series.points.iter().copied().filter(move |&(a, b)| fits(a) && fits(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(points: &[(f64, f64)], logarithmic: bool) -> Figure {
        let series = |name: &str, joined| Series { name: name.into(), points: points.to_vec(), joined };
        Figure {
            title: "a <b>".into(),
            x: "x".into(),
            y: "y".into(),
            logarithmic,
            series: vec![series("line", true), series("points", false)],
        }
    }

    #[test]
    fn every_point_is_drawn_inside_the_axes() {
        for logarithmic in [false, true] {
            let points = [(1.0, 3.0), (10.0, 40.0), (1000.0, 5000.0)];
            let svg = chart(&figure(&points, logarithmic));
            assert_eq!(svg.matches("<circle").count(), 7);
            let x = Axis::new(points.iter().map(|p| p.0), LEFT, RIGHT, logarithmic);
            for (value, _) in points {
                assert!((LEFT..=RIGHT).contains(&x.at(value)));
            }
            assert!((2..=12).contains(&x.ticks().len()), "{:?}", x.ticks());
        }
    }

    #[test]
    fn many_lines_have_names_inside_and_no_two_look_alike() {
        let mut many = figure(&[(1.0, 3.0), (2.0, 4.0), (3.0, 9.0)], false);
        many.series = (0..24).map(|i| Series { name: format!("line {i}"), ..many.series[0].clone() }).collect();
        let svg = chart(&many);
        let line = |i: usize| {
            let (before, _) = svg.split_once(&format!(">line {i}<")).expect("every line is named");
            let y = before.rsplit_once(" y=\"").and_then(|(_, rest)| rest.split_once('"')).expect("a place").0;
            let drawn =
                before.rsplit_once("<polyline").and_then(|(_, rest)| rest.split_once("stroke=")).expect("a line");
            (y.parse::<f64>().expect("a number"), drawn.1.split_once("/>").expect("its end").0.to_owned())
        };
        let lines: Vec<(f64, String)> = (0..24).map(line).collect();
        assert!(lines.iter().all(|(y, _)| (UPPER..=LOWER + 8.0).contains(y)));
        for (i, (_, drawn)) in lines.iter().enumerate() {
            assert!(lines[..i].iter().all(|(_, other)| other != drawn), "{drawn}");
        }
    }

    #[test]
    fn odd_data_makes_well_formed_svg() {
        for points in [&[][..], &[(f64::NAN, 1.0)], &[(0.0, 0.0)], &[(5.0, 5.0), (5.0, 5.0)], &[(-3.0, f64::INFINITY)]]
        {
            for logarithmic in [false, true] {
                let svg = chart(&figure(points, logarithmic));
                assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.ends_with("</svg>\n"), "{points:?}");
                assert!(svg.contains("a &lt;b&gt;"));
            }
        }
    }
}
