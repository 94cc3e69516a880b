//! Logistic regression trained on encrypted data: `17_training [FOLDER] [secure]` makes 30 steps of Nesterov's gradient
//! descent on the shipped table, features and labels encrypted, and draws loss and levels over time.
//!
//! Without `secure` it takes 128 patients and 7 features at an insecure degree, in seconds; with it all patients for
//! training and all 30 features at 128 bits (N = 2^16), where each refresh takes many seconds and all of it up to 14 GB.
//! Patient i has `columns` slots from i columns on; weights repeat themselves all along the slots.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use synchromesh::circuits::{Arithmetic, Coefficient, Combination, SlotSum};
use synchromesh::ckks::{Ciphertext, Ckks, Complex64, Evaluator};
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::ring::Backend;
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::scheme::{Operation, Values, apply};

const STEPS: usize = 30;
const RATE: f64 = 1.0;
const PENALTY: f64 = 0.05;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// A patient's features in [-1, 1], a one, and zeros up to a power of two; 1 for malignant, -1 for benign.
type Patient = (Vec<f64>, f64);

/// What is trained on, and how.
struct Task {
    train: Vec<Patient>,
    test: Vec<Patient>,
    /// Slots of a patient.
    columns: usize,
    /// No score exceeds it.
    reach: f64,
    /// 1 / (1 + exp(u)), nearly, for u up to there: coefficients of 1, u, u^3.
    likelihood: [f64; 3],
}

impl Task {
    /// The shipped table; every fifth patient is for testing.
    fn load(features: &[usize], reach: f64) -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../synchromesh-cli/data/breast_cancer_wisconsin.csv");
        let text = std::fs::read_to_string(path)?;
        let row = |line: &str| line.split(',').map(|cell| Ok(cell.parse()?)).collect::<Result<Vec<f64>>>();
        let rows = text.lines().skip(1).map(row).collect::<Result<Vec<_>>>()?;
        let tests = |i: usize| i.is_multiple_of(5);
        let columns = (features.len() + 1).next_power_of_two();
        let mut patients = vec![vec![0.0; columns]; rows.len()];
        for (column, &feature) in features.iter().enumerate() {
            let own: Vec<f64> = (0..rows.len()).filter(|&i| !tests(i)).map(|i| rows[i][feature]).collect();
            let mean = own.iter().sum::<f64>() / own.len() as f64;
            let deviation = (own.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / own.len() as f64).sqrt();
            for (patient, row) in patients.iter_mut().zip(&rows) {
                patient[column] = ((row[feature] - mean) / (3.0 * deviation)).clamp(-1.0, 1.0);
            }
        }
        let (mut train, mut test) = (Vec::new(), Vec::new());
        for (i, (mut patient, row)) in patients.into_iter().zip(&rows).enumerate() {
            patient[features.len()] = 1.0;
            let label = if row.last() == Some(&1.0) { 1.0 } else { -1.0 };
            if tests(i) { &mut test } else { &mut train }.push((patient, label));
        }
        // The cubic polynomial through the function at Chebyshev's four points, of which two are the others' negatives.
        let value = |u: f64| 1.0 / (1.0 + u.exp()) - 0.5;
        let [a, b] = [1.0, 3.0].map(|k| reach * (k * std::f64::consts::PI / 8.0).cos());
        let cubic = (value(a) / a - value(b) / b) / (a * a - b * b);
        let likelihood = [0.5, value(a) / a - cubic * a * a, cubic];
        Ok(Self { train, test, columns, reach, likelihood })
    }

    /// Patients that so many slots have room for.
    fn patients(&self, slots: usize) -> &[Patient] {
        &self.train[..self.train.len().min(slots / self.columns)]
    }

    /// Features and labels as they are encrypted.
    fn slots(&self, slots: usize) -> [Vec<f64>; 2] {
        let patients = self.patients(slots);
        let features = patients.iter().flat_map(|(features, _)| features.iter().copied()).collect();
        let labels = patients.iter().flat_map(|(_, label)| vec![*label; self.columns]).collect();
        [features, labels]
    }

    fn accuracy(&self, weights: &[f64]) -> f64 {
        let right =
            self.test.iter().filter(|(features, label)| (dot(features, weights) > 0.0) == (*label > 0.0)).count();
        right as f64 / self.test.len() as f64
    }

    /// The mean of log(1 + exp(-margin)).
    fn loss(&self, weights: &[f64], slots: usize) -> f64 {
        let patients = self.patients(slots);
        let each = |(features, label): &Patient| (-label * dot(features, weights)).exp().ln_1p();
        patients.iter().map(each).sum::<f64>() / patients.len() as f64
    }

    /// The same steps in the clear; weights after each.
    fn in_the_clear(&self, slots: usize) -> Vec<Vec<f64>> {
        let patients = self.patients(slots);
        let [one, linear, cubic] = self.likelihood;
        let (mut w, mut v) = (vec![0.0; self.columns], vec![0.0; self.columns]);
        let mut all = Vec::new();
        for momentum in momenta() {
            let mut next: Vec<f64> = v.iter().map(|v| (1.0 - RATE * PENALTY) * v).collect();
            for (features, label) in patients {
                let u = label * dot(features, &v);
                let p = one + linear * u + cubic * u.powi(3);
                next.iter_mut().zip(features).for_each(|(w, x)| *w += RATE / patients.len() as f64 * p * label * x);
            }
            v = next.iter().zip(&w).map(|(next, w)| next + momentum * (next - w)).collect();
            w.clone_from(&next);
            all.push(next);
        }
        all
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// What Nesterov's method adds of the last step, step after step.
fn momenta() -> impl Iterator<Item = f64> {
    let next = |t: &f64| Some(0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt()));
    let times: Vec<f64> = std::iter::successors(Some(1.0), next).take(STEPS + 1).collect();
    (0..STEPS).map(move |k| (times[k] - 1.0) / times[k + 1])
}

/// a x + b y.
fn weighted<B: Backend>(
    e: &Evaluator<B>,
    (a, x): (f64, &Ciphertext<B>),
    (b, y): (f64, &Ciphertext<B>),
) -> synchromesh::Result<Ciphertext<B>> {
    let [a, b] = [a, b].map(|number| Coefficient::All(Complex64::new(number, 0.0)));
    e.combine(&Combination { products: Vec::new(), weights: vec![(x, &a), (y, &b)], constant: None })
}

/// Weights as they were computed, of which we know that they are at most 1.
fn settled<B: Backend>(e: &Evaluator<B>, x: Ciphertext<B>) -> synchromesh::Result<Ciphertext<B>> {
    let (x, _) = e.as_computed(&e.declare_bound(x, 1.0)?)?;
    e.declare_bound(x, 1.0)
}

/// The weights after all steps; `watch` is told them after each.
fn train<B: Backend>(
    e: &Evaluator<B>,
    task: &Task,
    [x, y]: [&Ciphertext<B>; 2],
    mut watch: impl FnMut(&Ciphertext<B>),
) -> synchromesh::Result<Ciphertext<B>> {
    let slots = e.context().params().slots();
    let own = SlotSum::new(task.columns);
    let (spread, down) = (own.stride(-1), SlotSum::new(slots / task.columns).stride(task.columns as i64));
    let sum = |sum: &SlotSum, x: &Ciphertext<B>| apply::<Ckks, B>(e, &Operation::SumSlots(sum), &[x]);
    let heads: Vec<bool> = (0..slots).map(|slot| slot % task.columns == 0).collect();
    let [one, linear, cubic] = task.likelihood;
    let likelihood = Values::Reals(vec![one, linear, 0.0, cubic].into());
    let likelihood = Operation::Polynomial(&likelihood, Some(&heads));
    let share = RATE / task.patients(slots).len() as f64;

    let z = e.mul(x, y)?;
    let mut before: Option<[Ciphertext<B>; 2]> = None;
    for momentum in momenta() {
        let [next, ahead] = match &before {
            None => {
                let next = settled(e, e.mul_scalar(&sum(&down, &z)?, 0.5 * share)?)?;
                [next.duplicate(e.context())?, next]
            }
            Some([w, v]) => {
                let u = e.declare_bound(sum(&own, &e.mul(&z, v)?)?, task.reach)?;
                let p = e.declare_bound(apply::<Ckks, B>(e, &likelihood, &[&u])?, 1.0)?;
                let p = e.declare_bound(sum(&spread, &p)?, 1.0)?;
                let rise = sum(&down, &e.mul(&z, &p)?)?;
                let next = settled(e, weighted(e, (1.0 - RATE * PENALTY, v), (share, &rise))?)?;
                let ahead = settled(e, weighted(e, (1.0 + momentum, &next), (-momentum, w))?)?;
                [next, ahead]
            }
        };
        watch(&next);
        before = Some([next, ahead]);
    }
    before.map(|[w, _]| w).ok_or(synchromesh::Error::Argument { rule: "no steps".into() })
}

fn description(secure: bool) -> Description {
    let description = Description::new(SchemeName::Ckks, if secure { 0 } else { 8 });
    let security = if secure { Security::Bits128 } else { Security::Insecure };
    let max_memory_bytes = secure.then_some(14_000_000_000);
    Description { precision: Some(12), bootstrap: Some(1.0), security, max_memory_bytes, ..description }
}

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let secure = arguments.iter().any(|argument| argument == "secure");
    let folder = arguments.iter().find(|argument| *argument != "secure");
    let all: Vec<usize> = (0..30).collect();
    let task = if secure { Task::load(&all, 8.0)? } else { Task::load(&[20, 21, 27, 24, 22, 23, 26], 4.0)? };
    let plan = description(secure).plan_ckks(&[1.0, 1.0], |e, x| Ok(vec![train(e, &task, [&x[0], &x[1]], |_| ())?]))?;
    plan.explain.iter().for_each(|line| println!("{line}"));

    let session = plan.open::<Ckks>()?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = session.generate_keys(&mut randomness)?;
    let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness)?);
    let [x, y] = task.slots(plan.slots).map(|values| session.encrypt(&public, values, &mut randomness));
    let (x, y) = (x?, y?);

    let start = Instant::now();
    let bar = ProgressBar::new(STEPS as u64)
        .with_style(ProgressStyle::with_template("{bar:32} {pos}/{len} steps  loss {msg}  {elapsed}")?);
    let weights = |w: &Ciphertext| -> Result<Vec<f64>> {
        let found = session.decrypt(&secret, w)?;
        Ok(found.complexes("ckks")?.iter().take(task.columns).map(|z| z.re).collect())
    };
    let mut losses = Vec::new();
    let trained = train(&evaluator, &task, [&x, &y], |w| {
        // For the picture, by the owner of the key; whoever trains sees nothing of it.
        let loss = weights(w).map_or(f64::NAN, |w| task.loss(&w, plan.slots));
        losses.push(loss);
        bar.set_message(format!("{loss:.4}"));
        bar.inc(1);
    })?;
    bar.finish();
    let (found, clear) = (weights(&trained)?, task.in_the_clear(plan.slots));
    let last = clear.last().ok_or("no steps")?;
    let (ours, theirs) = (task.accuracy(&found), task.accuracy(last));
    let off = found.iter().zip(last).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("{STEPS} steps in {:.1} s; weights are off by {off:.1e}", start.elapsed().as_secs_f64());
    println!("accuracy {ours:.4}, of the same steps in the clear {theirs:.4}");
    if let Some(folder) = folder {
        let clear: Vec<f64> = clear.iter().map(|w| task.loss(w, plan.slots)).collect();
        std::fs::create_dir_all(folder)?;
        let path = Path::new(folder).join("training.svg");
        std::fs::write(&path, picture(&plan, &losses, &clear))?;
        println!("{}", path.display());
    }
    let one_patient = 1.0 / task.test.len() as f64 + 1e-9;
    if (ours - theirs).abs() > one_patient {
        Err("encrypted training differs by more than a patient".into())
    } else {
        Ok(())
    }
}

/// Loss over the steps on the left, levels of the circuit's first ciphertexts on the right.
fn picture(plan: &Plan, losses: &[f64], clear: &[f64]) -> String {
    let mut svg = String::from(concat!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1200 400\" font-family=\"sans-serif\" font-size=\"13\">\n",
        "<rect width=\"1200\" height=\"400\" fill=\"white\"/>\n"
    ));
    let most = clear.iter().chain(losses).copied().fold(0.1, f64::max);
    let left = Axes { left: 60.0, width: 400.0, x: clear.len() as f64, y: most };
    left.frame(&mut svg, "loss over steps: line in the clear, points encrypted");
    let points = |values: &[f64]| values.iter().enumerate().map(|(i, &y)| (i as f64 + 1.0, y)).collect::<Vec<_>>();
    left.line(&mut svg, &points(clear));
    left.dots(&mut svg, &points(losses));
    let shown = &plan.nodes[..plan.nodes.len().min(400)];
    let top = shown.iter().map(|node| node.level).max().unwrap_or(1);
    let right = Axes { left: 540.0, width: 620.0, x: shown.len() as f64, y: top as f64 };
    right.frame(&mut svg, "levels of the first ciphertexts that training makes; points are refreshes");
    let levels: Vec<_> = shown.iter().enumerate().map(|(i, node)| (i as f64 + 1.0, node.level as f64)).collect();
    right.line(&mut svg, &levels);
    let refreshed = levels.iter().zip(shown).filter(|(_, node)| node.operation == "refresh").map(|(&at, _)| at);
    right.dots(&mut svg, &refreshed.collect::<Vec<_>>());
    svg.push_str("</svg>\n");
    svg
}

/// Four to ten round numbers from 0 to `most`, and how they are written.
fn ticks(most: f64) -> Vec<(f64, String)> {
    let power = (most / 4.0).log10().floor();
    let step = [5.0, 2.0, 1.0].map(|digit| digit * 10f64.powf(power)).into_iter().find(|step| most / step >= 4.0);
    let (step, decimals) = (step.unwrap_or(most), (-power).max(0.0) as usize);
    (0..=10).map(|i| f64::from(i) * step).filter(|x| *x <= most).map(|x| (x, format!("{x:.decimals$}"))).collect()
}

/// A panel 300 high, from 0 to x and to y.
struct Axes {
    left: f64,
    width: f64,
    x: f64,
    y: f64,
}

impl Axes {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.left + self.width * x / self.x, 350.0 - 300.0 * y / self.y)
    }

    fn frame(&self, svg: &mut String, title: &str) {
        let _ = writeln!(svg, "<text x=\"{}\" y=\"30\" font-size=\"15\">{title}</text>", self.left);
        let right = self.left + self.width;
        for (value, text) in ticks(self.x) {
            let (x, _) = self.at((value, 0.0));
            let _ = writeln!(svg, "<path d=\"M{x:.1} 50V350\" stroke=\"#ddd\" fill=\"none\"/>");
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"370\" text-anchor=\"middle\">{text}</text>");
        }
        for (value, text) in ticks(self.y) {
            let (_, y) = self.at((0.0, value));
            let _ = writeln!(svg, "<path d=\"M{:.1} {y:.1}H{right:.1}\" stroke=\"#ddd\" fill=\"none\"/>", self.left);
            let (x, y) = (self.left - 6.0, y + 4.0);
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{text}</text>");
        }
    }

    fn line(&self, svg: &mut String, points: &[(f64, f64)]) {
        let mut path = String::new();
        for (i, &point) in points.iter().enumerate() {
            let (x, y) = self.at(point);
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
        }
        let _ = writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"#b8470c\" stroke-width=\"1.4\"/>");
    }

    fn dots(&self, svg: &mut String, points: &[(f64, f64)]) {
        for &point in points {
            let (x, y) = self.at(point);
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"#0b5c94\"/>");
        }
    }
}
