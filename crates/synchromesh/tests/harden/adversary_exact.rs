//! BFV and BGV under attack: see `adversary`.

use crate::adversary::Search;
use crate::oracle::{Ct, Device, Fixture, Judged, Model, T128, big, deep, fixture, literal};
use num_bigint::BigInt;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::{Coefficient, LinearTransform, SlotShape};
use synchromesh::ckks::embedding::Embedding;
use synchromesh::exact::{Evaluator, ParamsLiteral, Plaintext, Rotations};
use synchromesh::{Error, Result};
use synchromesh_testing::random::SplitMix;

/// The way back to a higher level, where there is one.
trait Attacked: Judged {
    fn raised(evaluator: &Evaluator<Self, Device>, x: &Ct<Self>) -> Option<Result<Ct<Self>>>;
}

impl Attacked for Bfv {
    fn raised(evaluator: &Evaluator<Self, Device>, x: &Ct<Self>) -> Option<Result<Ct<Self>>> {
        Some(evaluator.mod_raise_to(x, evaluator.context().params().top_level()))
    }
}

impl Attacked for Bgv {
    fn raised(_: &Evaluator<Self, Device>, _: &Ct<Self>) -> Option<Result<Ct<Self>>> {
        None
    }
}

/// One context under attack.
struct Attack<'a, S: Attacked> {
    f: Fixture<S>,
    search: &'a mut Search,
    note: String,
}

/// A ciphertext and what it should hold.
type Held<S> = (Ct<S>, Model);

impl<S: Attacked> Attack<'_, S> {
    /// Judges a result, if there is one: a refusal for want of room is as good.
    fn put(&mut self, what: &str, result: Result<Ct<S>>, model: Model) -> Option<Held<S>> {
        let ct = match result {
            Ok(ct) => ct,
            Err(Error::Rlwe(synchromesh::rlwe::Error::Noise { .. } | synchromesh::rlwe::Error::Level { .. })) => {
                return None;
            }
            Err(error) => {
                self.search.wrong(&format!("{what}: {error}; {}", self.note));
                return None;
            }
        };
        let measured = S::measure(&self.f, &ct, &self.f.encode(&model));
        let bound = ct.noise().bound(self.f.context.params().log_n(), 40);
        // No error at all is within any bound, that of 0 times x too.
        let gap = if measured == f64::NEG_INFINITY { f64::INFINITY } else { bound - measured };
        self.search.add(what, gap, &self.note);
        if !self.f.context.decrypt(&self.f.secret, &ct).is_ok_and(|plain| self.f.decode(&plain) == model) {
            self.search.wrong(&format!("{what}: decrypts wrongly; {}", self.note));
        }
        Some((ct, model))
    }

    fn evaluator(&self) -> Evaluator<S, Device> {
        self.f.evaluator.clone()
    }

    /// Sums of one ciphertext, by additions, by doubling and with weights.
    fn sums(&mut self, (x, a): &Held<S>, random: &mut SplitMix) {
        let e = self.evaluator();
        let mut held = self.put("x + x", e.add(x, x), self.f.add(a, a));
        for _ in 0..20 {
            let Some((s, m)) = held else { break };
            held = self.put("x + .. + x", e.add(&s, x), self.f.add(&m, a));
        }
        let mut held = self.put("x - x", e.sub(x, x), self.f.sub(a, a));
        for _ in 0..10 {
            let Some((s, m)) = held else { break };
            held = self.put("doubled ten times", e.add(&s, &s), self.f.add(&m, &m));
        }
        let weights: Vec<i64> = (0..40).map(|_| random.below(1 << 20) as i64 - (1 << 19)).collect();
        let coefficients: Vec<Coefficient<BigInt>> = weights.iter().map(|&w| w.into()).collect();
        let terms: Vec<_> = coefficients.iter().map(|w| (x, w)).collect();
        let total = BigInt::from(weights.iter().sum::<i64>());
        self.put("weighted sum of one x", e.weighted_sum(&terms), self.f.scale(a, &total));
    }

    /// x against itself brought down and up again, whose error is the rounding to come.
    fn levels(&mut self, (x, a): &Held<S>, (y, _): &Held<S>) -> Result<()> {
        let (e, top) = (self.evaluator(), self.f.context.params().top_level());
        if top == 0 {
            return Ok(());
        }
        let (low, zero) = (e.mod_switch(x)?, self.f.sub(a, a));
        self.put("down x", e.mod_switch(x), a.clone());
        if let Some(up) = S::raised(&e, &low) {
            let up = up?;
            let (less, more) = (e.sub(x, &up)?, e.add(x, &up)?);
            self.put("x - up(down x)", e.sub(x, &up), zero.clone());
            self.put("down(x - up(down x))", e.mod_switch(&less), zero.clone());
            self.put("down(x + up(down x))", e.mod_switch(&more), self.f.add(a, a));
            self.put("(x - up(down x)) y", e.mul(&less, y), zero.clone());
            self.put("(x - up(down x)) x", e.mul(&less, x), zero.clone());
            self.put("(x - up(down x))^2", e.mul(&less, &less), zero.clone());
            if self.f.has_slots() {
                self.put("rot(x - up(down x))", e.rotate_rows(&less, 1), zero.clone());
            }
        }
        self.put("x down(x)", e.mul(x, &low), self.f.mul(a, a));
        if let Some((s, m)) = self.put("x - down(x)", e.sub(x, &low), zero) {
            self.put("down(x - down(x))", e.mod_switch_to(&s, 0), m);
        }
        // Constants near what is dropped and its parts.
        let dropped = self.f.modulus(top) / self.f.modulus(top - 1);
        for c in [dropped.clone(), &dropped + 1, (&dropped + 1) / 2, &dropped - 1, (&dropped + 1) / 3] {
            let Some((s, m)) = self.put("x times about D", e.mul_scalar(x, c.clone()), self.f.scale(a, &c)) else {
                continue;
            };
            let Some((s, m)) = self.put("down(x times about D)", e.mod_switch(&s), m) else { continue };
            self.put("down(c x) - down(x)", e.sub(&s, &low), self.f.sub(&m, a));
        }
        Ok(())
    }

    /// Products and sums of what is one another's image.
    fn images(&mut self, (x, a): &Held<S>, (y, b): &Held<S>) -> Result<()> {
        let e = self.evaluator();
        let (c, ca) = (e.rotate_columns(x)?, self.f.swap(a));
        let product = self.f.mul(a, &ca);
        self.put("x conj x", e.mul(x, &c), product.clone());
        self.put("12 x conj x", e.sum_of_products(&[[x, &c]; 12]), self.f.scale(&product, &12.into()));
        self.put("12 x y", e.sum_of_products(&[[x, y]; 12]), self.f.scale(&self.f.mul(a, b), &12.into()));
        for k in [1, -3] {
            let (r, ra) = (e.rotate_rows(x, k)?, self.f.rotate(a, k));
            let Some((d, m)) = self.put("x - rot x", e.sub(x, &r), self.f.sub(a, &ra)) else { continue };
            self.put("(x - rot x) x", e.mul(&d, x), self.f.mul(&m, a));
            self.put("(x - rot x) y", e.mul(&d, y), self.f.mul(&m, b));
            self.put("down(x - rot x)", e.mod_switch_to(&d, d.level().saturating_sub(1)), m);
        }
        let mut held = (x.duplicate(&self.f.context)?, a.clone());
        for i in 0..24 {
            let k = if i % 2 == 0 { 1 } else { -3 };
            let Some(next) = self.put("24 rotations", e.rotate_rows(&held.0, k), self.f.rotate(&held.1, k)) else {
                break;
            };
            held = next;
        }
        let mut held = (x.duplicate(&self.f.context)?, a.clone());
        for _ in 0..10 {
            let swapped = e.rotate_columns(&held.0)?;
            let model = self.f.add(&held.1, &self.f.swap(&held.1));
            let Some(next) = self.put("s + swap s, ten times", e.add(&held.0, &swapped), model) else { break };
            held = next;
        }
        Ok(())
    }

    /// Linear maps with the same diagonal thrice.
    fn maps(&mut self, (x, a): &Held<S>, diagonals: &[Model]) -> Result<()> {
        let e = self.evaluator();
        let n = self.f.context.params().n();
        for d in diagonals {
            let list = [0, 1, -3].map(|k| (k, d.clone()));
            let prepared =
                LinearTransform::from_diagonals(SlotShape { row: n / 2, rows: 2 }, list)?.prepare(&e, x.level())?;
            let zero = self.f.sub(a, a);
            let sum = |m: Model, k| self.f.add(&m, &self.f.mul(d, &self.f.rotate(a, k)));
            let model = [0, 1, -3].into_iter().fold(zero, sum);
            self.put("linear map", prepared.apply(&e, x), model);
        }
        Ok(())
    }

    /// Plaintexts and messages on the frequency at which the key is largest, and others that hurt.
    fn plaintexts(&mut self, (x, a): &Held<S>, (y, b): &Held<S>, list: &[(&str, Plaintext, Model)]) -> Result<()> {
        let e = self.evaluator();
        for (what, p, m) in list {
            for public in [false, true] {
                let p = if public { p.clone().with_public_norms() } else { p.clone() };
                let mut held = (x.duplicate(&self.f.context)?, a.clone());
                for _ in 0..3 {
                    let model = self.f.mul(&held.1, m);
                    let name = format!("x times {what}{}", if public { ", public" } else { "" });
                    let Some(next) = self.put(&name, e.mul_plain(&held.0, &p), model) else { break };
                    held = next;
                }
            }
            let z = self.f.context.encrypt(&self.f.public, p, &mut self.f.randomness);
            let Some((z, m)) = self.put(what, z, m.clone()) else { continue };
            if let Some((p, pm)) = self.put(&format!("{what} times y"), e.mul(&z, y), self.f.mul(&m, b)) {
                self.put(&format!("({what} y) {what}"), e.mul(&p, &z), self.f.mul(&pm, &m));
            }
            if let Some((p, pm)) = self.put(&format!("{what} squared"), e.square(&z), self.f.mul(&m, &m)) {
                self.put(&format!("{what} to the 4th"), e.square(&p), self.f.mul(&pm, &pm));
            }
        }
        Ok(())
    }

    /// Random steps whose operands nearly always have something in common.
    fn walk(&mut self, list: &[(&str, Plaintext, Model)], random: &mut SplitMix, steps: usize) {
        let e = self.evaluator();
        let fresh = |f: &mut Fixture<S>| {
            let m = f.random();
            (f.encrypt(&m), m, 0)
        };
        let mut pool = vec![fresh(&mut self.f), fresh(&mut self.f)];
        for _ in 0..steps {
            let last = pool.len() as u64;
            let [i, j] = [(); 2].map(|()| (last - 1 - random.below(last.min(4))) as usize);
            let ((x, a, dx), (y, b, dy)) = (&pool[i], &pool[j]);
            let (_, p, m) = &list[random.below(list.len() as u64) as usize];
            let (f, deeper) = (&self.f, dx.max(dy) + 1);
            let slots = f.has_slots();
            let (what, result, model, depth) = match random.below(14) {
                0 => ("add", e.add(x, y), f.add(a, b), deeper - 1),
                1 => ("sub", e.sub(x, y), f.sub(a, b), deeper - 1),
                2 => ("mul_plain", e.mul_plain(x, p), f.mul(a, m), *dx),
                3 => ("mul_plain, public", e.mul_plain(x, &p.clone().with_public_norms()), f.mul(a, m), *dx),
                4 => {
                    let c = random.integer(&(f.t() * 3));
                    ("mul_scalar", e.mul_scalar(x, c.clone()), f.scale(a, &c), *dx)
                }
                5 | 6 if deeper < 6 => ("mul", e.mul(x, y), f.mul(a, b), deeper),
                7 if deeper < 6 => {
                    let (ab, aa) = (f.mul(a, b), f.mul(a, a));
                    (
                        "sums of products",
                        e.sum_of_products(&[[x, y], [y, x], [x, x]]),
                        f.add(&f.add(&ab, &ab), &aa),
                        deeper,
                    )
                }
                8 => ("mod_switch_to", e.mod_switch_to(x, random.below(x.level() as u64 + 1) as usize), a.clone(), *dx),
                9 => match S::raised(&e, x) {
                    Some(raised) => ("raised", raised, a.clone(), *dx),
                    None => continue,
                },
                10 if slots => ("rotate", e.rotate_rows(x, 1), f.rotate(a, 1), *dx),
                11 if slots => ("swap", e.rotate_columns(x), f.swap(a), *dx),
                12 => ("add_plain", e.add_plain(x, p), f.add(a, m), *dx),
                _ => ("neg", e.neg(x), f.scale(a, &(-1).into()), *dx),
            };
            if let Some((ct, model)) = self.put(&format!("walk: {what}"), result, model) {
                pool.push((ct, model, depth));
            }
        }
    }

    fn all(&mut self, random: &mut SplitMix) -> Result<()> {
        let (a, b) = (self.f.random(), self.f.random());
        let (x, y) = ((self.f.encrypt(&a), a), (self.f.encrypt(&b), b));
        let list = plaintexts(&self.f, random);
        self.sums(&x, random);
        self.levels(&x, &y)?;
        if self.f.has_slots() {
            self.images(&x, &y)?;
            let n = self.f.context.params().n();
            let halves = (0..n).map(|i| BigInt::from((i % 2) as i64)).collect();
            self.maps(&x, &[vec![BigInt::from(1); n], halves, list[0].2.clone()])?;
            self.walk(&list, random, 40);
        } else {
            self.walk(&list, random, 6);
        }
        self.plaintexts(&x, &y, &list)
    }
}

/// Polynomials that meet errors badly, with their models: the first on the frequency at which the key is largest.
fn plaintexts<S: Judged>(f: &Fixture<S>, random: &mut SplitMix) -> Vec<(&'static str, Plaintext, Model)> {
    let (n, t) = (f.context.params().n(), f.t());
    let high: BigInt = &t / BigInt::from(2);
    let low: BigInt = &high + BigInt::from(1) - &t;
    let small: Vec<f64> = f.secret.small().as_slice().iter().map(|&x| x as f64).collect();
    let values = Embedding::new(f.context.params().log_n()).unwrap().decode(&small).unwrap();
    let sizes = values.iter().map(|z| z.re.hypot(z.im)).enumerate();
    let at = sizes.max_by(|x, y| x.1.total_cmp(&y.1)).map_or(0, |(at, _)| at);
    let root = (0..at).fold(1, |g, _| g * 3 % (2 * n));
    let signs = |positive: &dyn Fn(usize) -> bool| -> Vec<BigInt> {
        (0..n).map(|j| if positive(j) { high.clone() } else { low.clone() }).collect()
    };
    let wave = |j: usize| (std::f64::consts::PI * (root * j % (2 * n)) as f64 / n as f64).cos() > 0.0;
    let coins: Vec<bool> = (0..n).map(|_| random.below(2) == 0).collect();
    let list = [
        ("a tone", signs(&wave)),
        ("all t/2", vec![high.clone(); n]),
        ("alternating", signs(&|j| j % 2 == 0)),
        ("random signs", signs(&|j| coins[j])),
        ("ones", vec![BigInt::from(1); n]),
    ];
    let made = |(name, coefficients): (&'static str, Vec<BigInt>)| {
        let p = f.context.encode_coefficients(&coefficients).unwrap();
        let model = f.decode(&p);
        (name, p, model)
    };
    list.into_iter().map(made).collect()
}

/// Random legal parameters for t: levels, widths, digits and special primes.
fn parameters(t: &str, random: &mut SplitMix) -> (String, ParamsLiteral) {
    let log_n = Search::log_n();
    let bits = big(t).bits() as u32 + 30;
    let depth = 1 + random.below(4) as usize;
    let extra = random.below(20) as u32;
    let wide = deep(log_n, t, bits + 8 + extra, bits + extra / 2, depth);
    let (how, literal) = match random.below(3) {
        0 => ("wide primes", wide),
        // One prime a digit, and a special prime narrower than they are.
        1 => ("digits above P", ParamsLiteral { p_bits: vec![30 + extra], omega: wide.q_bits.len(), ..wide }),
        _ => {
            let count = ((depth as u32 + 1) * bits).div_ceil(30).max(6) as usize;
            ("primes of 30 bits", literal(log_n, t, &vec![30; count], &[40], &[], count))
        }
    };
    (format!("t = {t:.12}, {how}, depth {depth}"), literal)
}

fn attack<S: Attacked>() {
    let mut search = Search::new();
    while let Some((mut random, again)) = search.next() {
        for (t, slots) in [("65537", true), ("2", false), ("1073479681", true), (T128, true)] {
            // A product of polynomials without slots takes the oracle N^2 steps.
            if !slots && random.below(4) > 0 {
                continue;
            }
            let rotations = if slots { Rotations::by([1, -3, -4]).and_swap() } else { Rotations::none() };
            let (how, literal) = parameters(t, &mut random);
            let f = fixture::<S>(literal, &rotations, random.below(1 << 40));
            let note = format!("{}, {how}: {again}", S::NAME);
            let mut attack = Attack { f, search: &mut search, note: note.clone() };
            if let Err(error) = attack.all(&mut random) {
                search.wrong(&format!("{note}: {error}"));
            }
        }
    }
    search.finish(S::NAME);
}

#[test]
fn no_error_of_bfv_exceeds_its_certificate() {
    attack::<Bfv>();
}

#[test]
fn no_error_of_bgv_exceeds_its_certificate() {
    attack::<Bgv>();
}
