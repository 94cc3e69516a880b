//! What functions take: `cargo run --release -p synchromesh --example functions [DIRECTORY]` prints the table of
//! docs/functions.md, and writes docs/functions.csv and docs/functions.svg; `cargo xtask verify functions` runs it.
//!
//! For each function: the degrees of its polynomials, levels, products, and the proved bound on its distance from the
//! function beside the largest distance at a million points, which fails where it is larger. Nothing is encrypted here.

use std::fmt::Write as _;
use std::path::Path;

use synchromesh::circuits::functions::{Approximation, Function, FunctionName};
use synchromesh::ckks::Evaluator;

/// Points of a curve, and of the largest distance.
const DRAWN: usize = 600;
const TRIED: usize = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const HEAD: [&str; 8] =
        ["function", "interval", "tolerance", "degrees", "depth", "products", "proved bound", "largest seen"];
    println!("| {} |\n|{}", HEAD.join(" | "), "---|".repeat(HEAD.len()));
    let mut csv = format!("{}\n", HEAD.join(","));
    for function in table() {
        let row = row(&function.approximate()?)?;
        println!("| {} |", row.join(" | "));
        let _ = writeln!(csv, "{}", row.map(|cell| cell.replace(',', "")).join(","));
    }
    if let Some(directory) = std::env::args().nth(1) {
        std::fs::write(Path::new(&directory).join("functions.csv"), csv)?;
        std::fs::write(Path::new(&directory).join("functions.svg"), picture()?)?;
    }
    Ok(())
}

fn table() -> Vec<Function> {
    let power = |k: i32| 2f64.powi(-k);
    let wide = (1.0 / 1024.0, 1.0);
    let mut all: Vec<Function> = [
        (FunctionName::Exp, (-1.0, 1.0), power(20)),
        (FunctionName::Exp, (-8.0, 0.0), power(20)),
        (FunctionName::Log, (0.5, 2.0), power(20)),
        (FunctionName::Log, (0.01, 1.0), power(10)),
        (FunctionName::Sigmoid, (-8.0, 8.0), power(10)),
        (FunctionName::Sigmoid, (-8.0, 8.0), power(20)),
        (FunctionName::Tanh, (-4.0, 4.0), power(20)),
        (FunctionName::Gelu, (-6.0, 6.0), power(10)),
        (FunctionName::Gelu, (-6.0, 6.0), power(20)),
        (FunctionName::Sqrt, (0.25, 4.0), power(20)),
        (FunctionName::Sqrt, wide, power(10)),
        (FunctionName::Rsqrt, (0.25, 4.0), power(20)),
        (FunctionName::Rsqrt, wide, power(10)),
        (FunctionName::Inverse, (0.5, 2.0), power(20)),
        (FunctionName::Inverse, wide, power(10)),
        (FunctionName::Abs, (-1.0, 1.0), power(10)),
        (FunctionName::Relu, (-1.0, 1.0), power(10)),
        (FunctionName::Clip { low: 0.0, high: 1.0 }, (-1.0, 2.0), power(8)),
        (FunctionName::Max, (0.0, 1.0), power(10)),
        (FunctionName::Min, (0.0, 1.0), power(10)),
    ]
    .map(|(name, interval, tolerance)| Function::new(name, interval, tolerance))
    .into();
    for (gap, tolerance) in [(4, 8), (7, 10), (10, 14), (12, 20), (16, 20)] {
        all.push(Function::new(FunctionName::Sign, (-1.0, 1.0), power(tolerance)).with_gap(power(gap)));
    }
    for (name, interval) in [(FunctionName::Step, (-1.0, 1.0)), (FunctionName::Compare, (0.0, 1.0))] {
        all.push(Function::new(name, interval, power(10)).with_gap(power(7)));
    }
    all
}

/// A number as a power of two where it is one.
fn short(x: f64) -> String {
    if x > 0.0 && x.log2().fract() == 0.0 && x < 0.125 { format!("2^{}", x.log2()) } else { format!("{x}") }
}

/// A row of the table; fails where the function is further than was proved.
fn row(approximation: &Approximation) -> Result<[String; 8], String> {
    let function = approximation.function();
    let (low, high) = function.interval;
    let mut name = function.name.name().to_owned();
    if let FunctionName::Clip { low, high } = function.name {
        name = format!("clip to {low} to {high}");
    }
    if function.name.jumps() {
        name = format!("{name}, gap {}", short(approximation.gap()));
    }
    let mut worst = 0.0f64;
    for i in 0..TRIED {
        let at = |part: f64| low + (high - low) * part;
        let x = [at(i as f64 / (TRIED - 1) as f64), at((i * 7919 % TRIED) as f64 / TRIED as f64)];
        let x = &x[..function.name.arguments()];
        let difference = x[0] - x.get(1).copied().unwrap_or(0.0);
        if !function.name.jumps() || difference.abs() >= approximation.gap() {
            worst = worst.max((approximation.value(x) - function.name.value(x)).abs());
        }
    }
    let plan = approximation.plan::<Evaluator>();
    let degrees: Vec<String> = approximation.degrees().iter().map(ToString::to_string).collect();
    let error = approximation.error();
    if worst > error {
        return Err(format!("{name} is off by {worst:e}, and {error:e} was proved"));
    }
    Ok([
        name,
        format!("{} to {}", short(low), short(high)),
        short(function.tolerance),
        degrees.join(", "),
        plan.depth.to_string(),
        plan.products.to_string(),
        format!("{error:.2e}"),
        format!("{worst:.2e}"),
    ])
}

/// A name, and what is drawn of it.
type Curve = (String, Box<dyn Fn(f64) -> f64>);

/// One panel of the picture: a title, what is drawn, from where to where, and the lowest and highest value.
struct Panel {
    title: &'static str,
    curves: Vec<Curve>,
    x: (f64, f64),
    y: (f64, f64),
}

fn picture() -> Result<String, synchromesh::Error> {
    let curve = |label: &str, function: Function| -> Result<Curve, synchromesh::Error> {
        let approximation = function.approximate()?;
        Ok((label.to_owned(), Box::new(move |x| approximation.value(&[x]))))
    };
    let error = |label: &str, function: Function| -> Result<Curve, synchromesh::Error> {
        let approximation = function.approximate()?;
        let bound = approximation.error();
        let distance = move |x: f64| (approximation.value(&[x]) - approximation.function().name.value(&[x])) / bound;
        Ok((label.to_owned(), Box::new(distance)))
    };
    let sign = |gap, tolerance| Function::new(FunctionName::Sign, (-1.0, 1.0), tolerance).with_gap(gap);
    let relu = Function::new(FunctionName::Relu, (-1.0, 1.0), 0.05);
    let gelu = Function::new(FunctionName::Gelu, (-6.0, 6.0), 1e-3);
    let sigmoid = Function::new(FunctionName::Sigmoid, (-8.0, 8.0), 1e-3);
    let panels = [
        Panel {
            title: "sign: undecided within the gap",
            curves: vec![curve("gap 1/4", sign(0.25, 0.05))?, curve("gap 1/32", sign(1.0 / 32.0, 0.02))?],
            x: (-1.0, 1.0),
            y: (-1.2, 1.2),
        },
        Panel {
            title: "relu to within 0.05",
            curves: vec![("max(x, 0)".to_owned(), Box::new(|x: f64| x.max(0.0))), curve("approximated", relu)?],
            x: (-0.3, 0.3),
            y: (-0.1, 0.35),
        },
        Panel {
            title: "sigmoid: its error in units of the proved bound",
            curves: vec![error("within 0.001", sigmoid)?],
            x: (-8.0, 8.0),
            y: (-1.2, 1.2),
        },
        Panel {
            title: "gelu: its error in units of the proved bound",
            curves: vec![error("within 0.001", gelu)?],
            x: (-6.0, 6.0),
            y: (-1.2, 1.2),
        },
    ];
    let mut svg = String::from(concat!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 640\" font-family=\"sans-serif\" font-size=\"13\">\n",
        "<rect width=\"960\" height=\"640\" fill=\"white\"/>\n"
    ));
    for (i, panel) in panels.iter().enumerate() {
        draw(&mut svg, panel, (60.0 + 470.0 * (i % 2) as f64, 40.0 + 310.0 * (i / 2) as f64));
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// A panel of 400 x 230 at a place.
fn draw(svg: &mut String, panel: &Panel, (left, top): (f64, f64)) {
    let (width, height) = (400.0, 230.0);
    let across = |x: f64| left + width * (x - panel.x.0) / (panel.x.1 - panel.x.0);
    let down = |y: f64| top + height * (panel.y.1 - y) / (panel.y.1 - panel.y.0);
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"{}\" font-size=\"15\">{}</text>", top - 12.0, panel.title);
    for tick in 0..=4 {
        let x = panel.x.0 + (panel.x.1 - panel.x.0) * f64::from(tick) / 4.0;
        let (at, below) = (across(x), top + height);
        let _ = writeln!(svg, "<path d=\"M{at:.1} {top:.1}V{below:.1}\" stroke=\"#ddd\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            below + 18.0,
            (1e3 * x).round() / 1e3
        );
    }
    let step = if panel.y.1 - panel.y.0 > 1.0 { 0.5 } else { 0.1 };
    let first = (panel.y.0 / step).ceil() as i32;
    for y in (first..).map(|i| f64::from(i) * step).take_while(|y| *y <= panel.y.1) {
        let (at, right) = (down(y), left + width);
        let _ = writeln!(svg, "<path d=\"M{left:.1} {at:.1}H{right:.1}\" stroke=\"#ddd\"/>");
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{y:.1}</text>", left - 6.0, at + 4.0);
    }
    for (i, (label, f)) in panel.curves.iter().enumerate() {
        let colour = ["#0b5c94", "#b8470c"][i % 2];
        let mut path = String::new();
        for j in 0..=DRAWN {
            let x = panel.x.0 + (panel.x.1 - panel.x.0) * j as f64 / DRAWN as f64;
            let _ = write!(path, "{}{:.1} {:.1}", if j == 0 { "M" } else { "L" }, across(x), down(f(x)));
        }
        let _ = writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>");
        let (x, y) = (left + 12.0, top + 18.0 + 18.0 * i as f64);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{label}</text>");
    }
}
