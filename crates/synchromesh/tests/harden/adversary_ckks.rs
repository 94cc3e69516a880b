//! CKKS under attack: see `adversary`.

use crate::adversary::Search;
use crate::ckks_fixture::{Fixture, Slots, conjugate, fixture, literal, minus, plus, rotated, times, zip};
use synchromesh::Result;
use synchromesh::circuits::{LinearTransform, SlotShape};
use synchromesh::ckks::{Ciphertext, Complex64, Mode, Params, ParamsLiteral};
use synchromesh::rlwe::PrimeSwitching;
use synchromesh_testing::random::SplitMix;

/// A ciphertext and what it should hold.
type Held = (Ciphertext, Slots);

struct Attack<'a> {
    f: Fixture,
    search: &'a mut Search,
    note: String,
}

fn scaled(x: &Slots, c: f64) -> Slots {
    x.iter().map(|z| Complex64::new(z.re * c, z.im * c)).collect()
}

fn conjugates(x: &Slots) -> Slots {
    x.iter().map(|&z| conjugate(z)).collect()
}

/// Slots at the bound, in phases that add up where errors do.
fn messages(n: usize, bound: f64, random: &mut SplitMix) -> Vec<(&'static str, Slots)> {
    let point = |turn: f64| {
        let (sin, cos) = (turn * std::f64::consts::TAU).sin_cos();
        let b = bound * (1.0 - 1e-15);
        Complex64::new(b * cos, b * sin)
    };
    let turns: Vec<f64> = (0..n).map(|_| random.below(1 << 52) as f64 / 2f64.powi(52)).collect();
    let real = |of: &dyn Fn(usize) -> f64| (0..n).map(|i| Complex64::new(bound * of(i), 0.0)).collect::<Slots>();
    let powers = std::iter::successors(Some(1usize), |g| Some(g * 3 % (4 * n)));
    vec![
        ("the bound", real(&|_| 1.0)),
        ("i times the bound", vec![Complex64::new(0.0, bound); n]),
        ("alternating", real(&|i| if i % 2 == 0 { 1.0 } else { -1.0 })),
        ("random phases", turns.iter().map(|&t| point(t)).collect()),
        ("random signs", real(&|i| if turns[i] < 0.5 { 1.0 } else { -1.0 })),
        ("a monomial", powers.take(n).map(|g| point((g * 7) as f64 / (4 * n) as f64)).collect()),
        ("a chirp", (0..n).map(|i| point((i * i) as f64 / (2 * n) as f64)).collect()),
        ("uniform", real(&|i| 2.0 * turns[i] - 1.0)),
    ]
}

impl Attack<'_> {
    fn put(&mut self, what: &str, result: Result<Ciphertext>, expected: Slots) -> Option<Held> {
        let ct = result.ok()?;
        let plain = match self.f.context.decrypt(&self.f.secret, &ct) {
            Ok(plain) => plain,
            Err(error) => {
                self.search.wrong(&format!("{what}: {error}; {}", self.note));
                return None;
            }
        };
        let slots = self.f.context.decode_complex(&plain).unwrap();
        let error = slots.iter().zip(&expected).map(|(x, y)| (x.re - y.re).hypot(x.im - y.im)).fold(0.0, f64::max);
        let largest = expected.iter().map(|z| z.re.hypot(z.im)).fold(0.0, f64::max);
        // The model is in doubles too.
        let bound = self.f.context.error_bound(&ct) + largest * 2f64.powi(-46);
        if error > 0.0 {
            self.search.add(what, bound.log2() - error.log2(), &self.note);
        }
        if largest > ct.bound() * (1.0 + 1e-9) {
            self.search.wrong(&format!("{what}: a message of {largest} above its bound {}; {}", ct.bound(), self.note));
        }
        Some((ct, expected))
    }

    /// x with itself, its conjugate, its rotation.
    fn images(&mut self, (x, a): &Held) -> Result<()> {
        let e = self.f.evaluator.clone();
        let ca = conjugates(a);
        let c = e.conjugate(x)?;
        self.put("x + conj x", e.add(x, &c), zip(a, &ca, plus));
        self.put("x - conj x", e.sub(x, &c), zip(a, &ca, minus));
        self.put("x conj x", e.mul(x, &c), zip(a, &ca, times));
        let (r, ra) = (e.rotate(x, 5)?, rotated(a, 5));
        self.put("x rot x", e.mul(x, &r), zip(a, &ra, times));
        if let Some((d, m)) = self.put("x - rot x", e.sub(x, &r), zip(a, &ra, minus)) {
            self.put("(x - rot x) x", e.mul(&d, x), zip(&m, a, times));
            self.put("(x - rot x)^2", e.square(&d), zip(&m, &m, times));
        }
        let mut held = (x.duplicate(&self.f.context)?, a.clone());
        for _ in 0..10 {
            let Some(next) = self.put("1024 x", e.add(&held.0, &held.0), zip(&held.1, &held.1, plus)) else { break };
            held = next;
        }
        let mut held = (x.duplicate(&self.f.context)?, a.clone());
        for i in 0..20 {
            let k = if i % 2 == 0 { 1 } else { -1 };
            let Some(next) = self.put("20 rotations", e.rotate(&held.0, k), rotated(&held.1, k)) else { break };
            held = next;
        }
        let mut held = (x.duplicate(&self.f.context)?, a.clone());
        for _ in 0..10 {
            let c = e.conjugate(&held.0)?;
            let sum = zip(&held.1, &conjugates(&held.1), plus);
            let Some(next) = self.put("s + conj s, ten times", e.add(&held.0, &c), sum) else { break };
            held = next;
        }
        Ok(())
    }

    /// Powers of x, and x against itself at lower levels.
    fn powers(&mut self, (x, a): &Held, (y, b): &Held) -> Result<()> {
        let e = self.f.evaluator.clone();
        self.put("x + y", e.add(x, y), zip(a, b, plus));
        self.put("x - y", e.sub(x, y), zip(a, b, minus));
        self.put("x y", e.mul(x, y), zip(a, b, times));
        let square = self.put("x^2", e.square(x), zip(a, a, times));
        let auto = self.f.context.params().literal().mode == Mode::Auto;
        if !auto {
            return Ok(());
        }
        if let Some((s, m)) = square {
            self.put("x^3", e.mul(&s, x), zip(&m, a, times));
            self.put("x^2 - x", e.sub(&s, x), zip(&m, a, minus));
            if let Some((q, m)) = self.put("x^4", e.square(&s), zip(&m, &m, times)) {
                self.put("x^8", e.square(&q), zip(&m, &m, times));
            }
        }
        let zero = zip(a, a, minus);
        for to in 0..x.level() {
            let Some((low, _)) = self.put("down x", e.mod_switch_to(x, to), a.clone()) else { continue };
            self.put("x down(x)", e.mul(x, &low), zip(a, a, times));
            if let Some((d, m)) = self.put("x - down(x)", e.sub(x, &low), zero.clone()) {
                self.put("down(x - down(x))", e.mod_switch_to(&d, 0), m);
            }
        }
        Ok(())
    }

    /// Public numbers, vectors and maps.
    fn public(&mut self, (x, a): &Held, b: &Slots, bound: f64) -> Result<()> {
        let e = self.f.evaluator.clone();
        for c in [1.0 / 3.0, -0.1, 1e-9, 12345.678, 1e6 + 0.5, 3.0, -1_048_576.0, 1e-30, 0.0, 1_099_511_627_776.0] {
            self.put("x times a number", e.mul_scalar(x, c), scaled(a, c));
            self.put("x plus a number", e.add_scalar(x, c), a.iter().map(|z| Complex64::new(z.re + c, z.im)).collect());
        }
        let w = Complex64::new(0.6, -0.8);
        self.put("x times a complex number", e.mul_scalar(x, w), a.iter().map(|&z| times(z, w)).collect());
        let plain = self.f.context.encode_complex(b, bound)?;
        self.put("x times a vector", e.mul_plain(x, &plain), zip(a, b, times));
        self.put("x plus a vector", e.add_plain(x, &plain), zip(a, b, plus));
        self.put("x minus a vector", e.sub_plain(x, &plain), zip(a, b, minus));
        if self.f.context.params().literal().mode != Mode::Auto {
            return Ok(());
        }
        let n = self.f.context.params().slots();
        let unit = b.iter().map(|z| Complex64::new(z.re / bound, z.im / bound)).collect();
        for d in [vec![1.0.into(); n], unit, (0..n).map(|i| f64::from(i as u32 % 2).into()).collect::<Slots>()] {
            let list = [0, 1, 2, 7].map(|k| (k, d.clone()));
            let map =
                LinearTransform::from_diagonals(SlotShape { row: n, rows: 1 }, list)?.prepare_with(&e, x.level(), 1)?;
            let term = |m: Slots, k| zip(&m, &zip(&d, &rotated(a, k), times), plus);
            let model = [0, 1, 2, 7].into_iter().fold(zip(a, a, minus), term);
            self.put("linear map", map.apply(&e, x), model);
        }
        Ok(())
    }

    fn all(&mut self, bound: f64, random: &mut SplitMix) -> Result<()> {
        let list = messages(self.f.context.params().slots(), bound, random);
        let note = self.note.clone();
        for (what, a) in &list {
            let (other, b) = &list[random.below(list.len() as u64) as usize];
            self.note = format!("{what} and {other}, bound {bound}: {note}");
            let (x, y) = (self.f.encrypt(a, bound), self.f.encrypt(b, bound));
            let Some(x) = self.put("fresh", Ok(x), a.clone()) else { continue };
            self.images(&x)?;
            self.powers(&x, &(y, b.clone()))?;
            self.public(&x, b, bound)?;
        }
        Ok(())
    }
}

/// Random legal parameters: scales from 25 to 90 bits, narrow and wide special primes, schedules, a second key.
fn parameters(random: &mut SplitMix) -> (&'static str, ParamsLiteral) {
    let (log_n, few) = (Search::log_n(), 1 + random.below(3) as usize);
    let scale = 25 + random.below(21) as u32;
    let chain = |first: u32| -> Vec<u32> { std::iter::once(first).chain((0..few + 1).map(|_| scale)).collect() };
    let plain = |q: &[u32], p: &[u32], omega| ParamsLiteral { omega, ..literal(log_n, scale, q, p) };
    match random.below(6) {
        0 => ("two special primes", plain(&chain(58), &[60, 60], 3)),
        1 => ("digits above P", plain(&chain(58), &[30], few + 2)),
        2 => {
            let wide = literal(log_n, 90, &[60, 60, 40, 45, 45, 45, 45], &[60, 60, 60]);
            ("a scale of 90 bits", ParamsLiteral { level_limbs: vec![3, 5, 7], ..wide })
        }
        3 => {
            let scale = 33 + random.below(6) as u32;
            let c = PrimeSwitching::new(2, 3).unwrap().chain(scale + 15, scale, few + 2, 60).unwrap();
            let p = [60, 60, 60, 60];
            (
                "prime switching",
                ParamsLiteral { schedule: c.schedule, omega: 3, ..literal(log_n, scale, &c.q_bits, &p) },
            )
        }
        4 => {
            let mut q = vec![40; 4 + few];
            q[0] = 55;
            let mut second = ParamsLiteral { omega: 4, ..literal(log_n, 40, &q, &[50, 50]) };
            second.schedule = second.schedule.with_second_key(2);
            ("a second key", second)
        }
        _ => ("scales by hand", ParamsLiteral { mode: Mode::Manual, ..plain(&chain(58), &[60, 60], 3) }),
    }
}

#[test]
fn no_error_of_ckks_exceeds_its_certificate() {
    let mut search = Search::new();
    while let Some((mut random, again)) = search.next() {
        for bound in [1.0, 0.001, 1000.0] {
            let (how, literal) = parameters(&mut random);
            // Not every scale has primes near it.
            if Params::new(literal.clone()).is_err() {
                continue;
            }
            let f = fixture(literal, random.below(1 << 40));
            let note = format!("CKKS, {how}: {again}");
            let mut attack = Attack { f, search: &mut search, note: note.clone() };
            if let Err(error) = attack.all(bound, &mut random) {
                search.wrong(&format!("{note}: {error}"));
            }
        }
    }
    search.finish("CKKS");
}
