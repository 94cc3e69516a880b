//! A plan as SVG: on the left its circuit, the modulus as a falling staircase and the certified noise below it; on the
//! right what a key switch takes at each level, and how it is done.

use super::{
    BOTTOM, Canvas, Frame, GRID, INK, MARGIN, MODULUS, MODULUS_FILL, MUTED, NOISE, Panel, Style, TOP, WIDTH, legend,
    round_up, ticks,
};
use crate::demo::{Health, Step};
use synchromesh::plan::{Node, Plan};

/// Steps that have room for their names.
const MOST_STEPS: usize = 26;
/// Where the left part ends and the right one begins.
const LEFT_END: f64 = 812.0;
const RIGHT_START: f64 = 880.0;

/// One level's key switch.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The level.
    pub level: usize,
    /// Predicted milliseconds by the plan's own choice; none without a profile.
    pub milliseconds: Option<f64>,
    /// The same with the fastest choice for the level alone, where that is another.
    pub fastest: Option<f64>,
    /// How it is done: digits by primes in the largest.
    pub label: String,
}

/// The plot of a plan.
#[must_use]
pub fn plan_plot(plan: &Plan, bars: &[Bar]) -> String {
    let title = format!("{} plan, depth {}, N = 2^{}", plan.scheme.name().to_uppercase(), plan.depth, plan.log_n);
    let mut canvas = Canvas::new(&title);
    canvas.text(MARGIN, 44.0, Style { size: 22.0, weight: 600, ..Style::default() }, &title);
    let lead = format!(
        "log QP = {}, {:.0} bits of security; a message decrypts while it fits between noise and modulus.",
        plan.log_qp, plan.security_bits
    );
    canvas.text(MARGIN, 68.0, Style { size: 13.5, fill: MUTED, ..Style::default() }, &lead);
    legend(&mut canvas, true);
    let panel = Panel {
        title: "Levels and noise".into(),
        subtitle: format!("{} ciphertexts, from left to right", plan.nodes.len()),
        steps: steps(&plan.nodes),
    };
    let top = round_up(plan.nodes.iter().map(|node| node.modulus_bits).fold(1.0, f64::max));
    Frame { left: MARGIN + 44.0, right: LEFT_END, top, labelled: true }.draw(&mut canvas, &panel);
    draw_bars(&mut canvas, bars);
    canvas.finish()
}

/// The nodes that say most: where a circuit has more than there is room for, key switches and ends, then every so many.
fn steps(nodes: &[Node]) -> Vec<Step> {
    let ends = |i: usize| i == 0 || i + 1 == nodes.len();
    let tells = |&(i, node): &(usize, &Node)| ends(i) || ["relinearisation", "rotation"].contains(&&*node.operation);
    let all: Vec<(usize, &Node)> = nodes.iter().enumerate().collect();
    let mut kept = if all.len() > MOST_STEPS { all.into_iter().filter(tells).collect() } else { all };
    let stride = kept.len().div_ceil(MOST_STEPS).max(1);
    let last = kept.len().saturating_sub(1);
    let mut index = 0;
    kept.retain(|_| {
        index += 1;
        (index - 1) % stride == 0 || index - 1 == last
    });
    let step = |(_, node): (usize, &Node)| Step {
        name: node.operation.clone(),
        health: Health { level: node.level as u32, modulus_bits: node.modulus_bits, noise_bits: node.noise_bits },
    };
    kept.into_iter().map(step).collect()
}

/// A bar a level, from the top level down.
fn draw_bars(canvas: &mut Canvas, bars: &[Bar]) {
    let (left, right) = (RIGHT_START, WIDTH - MARGIN);
    let timed = bars.iter().any(|bar| bar.milliseconds.is_some());
    let height = |bar: &Bar| bar.milliseconds.unwrap_or(1.0);
    let heading = if timed { "Key switch by level: predicted milliseconds" } else { "Key switch by level" };
    canvas.text(left, TOP - 38.0, Style { size: 16.0, weight: 600, ..Style::default() }, heading);
    let note = if timed {
        "line: the fastest for the level alone; below: digits x primes"
    } else {
        "digits x primes; times need a machine profile"
    };
    canvas.text(left, TOP - 18.0, Style { size: 12.5, fill: MUTED, ..Style::default() }, note);
    if bars.is_empty() {
        return;
    }
    let top = round_up(bars.iter().map(height).fold(1e-3, f64::max));
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * (value / top).clamp(0.0, 1.0);
    if timed {
        for value in ticks(top) {
            canvas.line((left, y(value)), (right, y(value)), if value == 0.0 { MUTED } else { GRID });
            let style = Style { size: 12.0, fill: MUTED, anchor: "end", ..Style::default() };
            let text = format!("{value:.3}");
            canvas.text(left - 6.0, y(value) + 4.0, style, text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    canvas.line((left, BOTTOM), (right, BOTTOM), MUTED);
    let stretch = (right - left) / bars.len() as f64;
    // Labels that would touch are left out.
    let every = (26.0 / stretch).ceil().max(1.0) as usize;
    for (i, bar) in bars.iter().rev().enumerate() {
        let (from, to) = (left + (i as f64 + 0.12) * stretch, left + (i as f64 + 0.88) * stretch);
        let (middle, high) = (f64::midpoint(from, to), y(if timed { height(bar) } else { 0.0 }));
        if timed {
            let outline = [(from, BOTTOM), (from, high), (to, high), (to, BOTTOM)];
            canvas.area(&outline, MODULUS_FILL);
            canvas.polyline(&outline, MODULUS);
            if let Some(fastest) = bar.fastest {
                canvas.polyline(&[(from, y(fastest)), (to, y(fastest))], NOISE);
            }
        }
        if i % every == 0 {
            let style = Style { size: 12.0, weight: 600, fill: MODULUS, anchor: "middle", ..Style::default() };
            canvas.text(middle, BOTTOM + 18.0, style, &format!("L{}", bar.level));
            let style = Style { size: 11.5, fill: INK, anchor: "end", turn: -60.0, ..Style::default() };
            canvas.text(middle + 4.0, BOTTOM + 34.0, style, &bar.label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use synchromesh::plan::{Description, SchemeName};

    #[test]
    fn a_plan_of_every_size_has_its_steps_and_bars_in_the_picture() {
        for (depth, ms) in [(0, None), (2, Some(0.5)), (8, Some(3.0))] {
            let mut plan = Description::new(SchemeName::Bgv, depth).plan().unwrap();
            let bar = |s: &synchromesh::plan::LevelSwitch| Bar {
                level: s.level,
                milliseconds: ms,
                fastest: ms.map(|ms| ms / 2.0),
                label: format!("{} x {}", s.omega, s.digit_primes),
            };
            let bars: Vec<Bar> = plan.switch.iter().map(bar).collect();
            let svg = plan_plot(&plan, &bars);
            assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.ends_with("</svg>\n"));
            let labels = svg.split(">L").skip(1).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            assert_eq!(labels.count(), steps(&plan.nodes).len() + bars.len(), "depth {depth}");
            assert!((1..=MOST_STEPS + 1).contains(&steps(&plan.nodes).len()));
            plan.nodes.clear();
            assert!(plan_plot(&plan, &[]).contains("no steps"));
        }
    }
}
