//! Key-switching plans that fit given parameters at a level: the choices an index map is made from.

use synchromesh_rlwe::ring::{IndexSet, rns::Overflow};
use synchromesh_rlwe::switch_plan::DoubleSearch;
use synchromesh_rlwe::{Context, DigitSizes, LevelChoice, Noise, Params, ProductRing, SwitchPlan};

use super::recorder;
use crate::error::Result;

/// One way to switch keys at a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What the plan does; two candidates with one plan share its prepared key.
    pub plan: SwitchPlan,
    /// Primes of the ciphertext that comes in.
    pub active: IndexSet,
    /// Primes of the one that goes out.
    pub target: IndexSet,
    /// Bytes of the prepared key, all its primes and digits.
    pub key_bytes: u64,
}

impl Candidate {
    /// `plan` for a switch that stays on the primes `active`.
    #[must_use]
    pub fn new(params: &Params, plan: SwitchPlan, active: &IndexSet) -> Self {
        let key_bytes = plan.prepared_bytes(params);
        Self { plan, active: active.clone(), target: active.clone(), key_bytes }
    }

    /// The method, in the words of the command line: see [`SwitchPlan::method`].
    #[must_use]
    pub fn method(&self) -> &'static str {
        method(&self.plan)
    }

    /// Digits on the active primes.
    #[must_use]
    pub fn omega(&self) -> usize {
        self.plan.active_digits(&self.active).len()
    }

    /// Most primes of a digit on the active primes.
    #[must_use]
    pub fn digit_primes(&self) -> usize {
        self.plan.active_digits(&self.active).iter().map(|(_, d)| d.len()).max().unwrap_or(0)
    }

    /// The plan in words.
    #[must_use]
    pub fn label(&self) -> String {
        let (omega, digit, special) = (self.omega(), self.digit_primes(), self.plan.special.len());
        let plain = format!("{}, {omega} digit(s) of {digit} prime(s), {special} special", self.method());
        match &self.plan.ring {
            ProductRing::Base => plain,
            ProductRing::Extended(ring) => {
                format!("{plain}, {} digit(s) of the key in {} extended", ring.key_digits.len(), ring.aux.len())
            }
        }
    }
}

/// The name of the method a plan is: one prime a digit is `bv`, whether the prime is split further or not.
#[must_use]
pub(crate) fn method(plan: &SwitchPlan) -> &'static str {
    match plan.method() {
        "rns_bv" => "bv",
        name => name,
    }
}

/// Double decompositions that are offered besides linear key switching: those with the fewest transforms.
const DOUBLES: usize = 3;
/// Parts that a prime is split into at most.
const RADIX_PARTS: u32 = 4;

/// Plans at `level` that add no more error than `reference` does, or at most `slack_bits` more: every grouping into equal
/// digits with the fewest special primes, in order; where there are none, with the fewest borrowed ones; primes split in
/// base 2^w where P is smaller than a prime; of all these the best in an extended ring. The reference itself is the first.
///
/// # Errors
/// [`crate::Error::Rlwe`] above the top level, and for a reference that does not serve the level.
pub fn candidates(params: &Params, reference: &SwitchPlan, level: usize, slack_bits: f64) -> Result<Vec<Candidate>> {
    let active = params.level(level)?;
    let search = Search::new(params, reference, active, slack_bits)?;
    let mut plans = vec![reference.clone()];
    for digit_primes in 1..=params.q().len() {
        for plan in search.specials(digit_primes) {
            let plan = plan?;
            if plan == *reference {
                continue;
            }
            if search.accepts(&plan)? {
                plans.push(plan);
                // More special primes than are needed cost time and save nothing.
                break;
            }
        }
    }
    search.radix(&mut plans)?;
    let extended = search.extended(&plans);
    plans.extend(extended);
    Ok(plans.into_iter().map(|plan| Candidate::new(params, plan, active)).collect())
}

/// What one stored key can do at `level` with an error at most `slack_bits` above that of `reference`: for each number of
/// digits the fewest special primes, where those do not suffice the fewest borrowed ones, and of all these the best in an
/// extended ring. The key's own digits and special primes are the first.
///
/// # Errors
/// [`crate::Error::Rlwe`] above the top level, and where the key does not serve the level.
pub fn choices(
    params: &Params,
    stored: &SwitchPlan,
    (reference, slack_bits): (&SwitchPlan, f64),
    level: usize,
) -> Result<Vec<(LevelChoice, Candidate)>> {
    let active = params.level(level)?;
    let search = Search::new(params, reference, active, slack_bits)?;
    let plain = LevelChoice::plain(stored);
    let mut found = vec![(plain, plain.plan(params, stored, level)?)];
    let mut digits = usize::MAX;
    for sizes in LevelChoice::all(params, stored, level)? {
        for choice in sizes {
            let plan = choice.plan(params, stored, level)?.up_to(active);
            let omega = plan.digits.len();
            // Shorter digits in the same number need no larger P.
            if omega == digits {
                break;
            }
            if search.accepts(&plan)? {
                digits = omega;
                if choice != plain {
                    found.push((choice, plan));
                }
                break;
            }
        }
    }
    let plans: Vec<SwitchPlan> = found.iter().map(|(_, plan)| plan.clone()).collect();
    for extended in search.extended(&plans) {
        let ProductRing::Extended(ring) = &extended.ring else { continue };
        let omega2 = Some(ring.key_digits.len());
        let of = |&(choice, _): &(LevelChoice, SwitchPlan)| {
            let choice = LevelChoice { omega2, ..choice };
            choice.plan(params, stored, level).is_ok_and(|plan| plan == extended).then_some(choice)
        };
        let choice = found.iter().filter(|(choice, _)| choice.omega2.is_none()).find_map(of);
        found.extend(choice.map(|choice| (choice, extended)));
    }
    Ok(found.into_iter().map(|(choice, plan)| (choice, Candidate::new(params, plan, active))).collect())
}

/// What plans are judged by.
struct Search<'a> {
    params: &'a Params,
    active: &'a IndexSet,
    context: std::sync::Arc<Context<super::DryLedger>>,
    /// Most bits of error.
    most: f64,
    /// Bits by which a digit may exceed P before counting the noise is not worth the time.
    hopeless: f64,
}

impl<'a> Search<'a> {
    fn new(params: &'a Params, reference: &SwitchPlan, active: &'a IndexSet, slack_bits: f64) -> Result<Self> {
        let context = Context::with_backend(params.clone(), recorder(params));
        let mut search = Self { params, active, context, most: slack_bits, hopeless: 0.0 };
        search.most += search.noise(reference)?;
        search.hopeless = search.excess(reference).max(0.0) + slack_bits + 4.0;
        Ok(search)
    }

    fn noise(&self, plan: &SwitchPlan) -> Result<f64> {
        let noise: Noise = self.context.switcher(plan, self.active, self.active)?.noise();
        Ok(noise.bound(self.params.ring().log_n(), synchromesh_rlwe::noise::DEFAULT_LOG2_FAILURE))
    }

    /// Bits by which the largest digit exceeds P. The noise grows with them; counting it takes far longer.
    fn excess(&self, plan: &SwitchPlan) -> f64 {
        let log2 = |set: &IndexSet| self.params.ring().log2(set);
        let digits = plan.active_digits(self.active);
        let largest = digits.iter().map(|(_, d)| log2(d)).fold(0.0, f64::max);
        let radix = plan.radix_bits.map_or(f64::MAX, f64::from);
        largest.min(radix) - log2(&plan.special)
    }

    fn accepts(&self, plan: &SwitchPlan) -> Result<bool> {
        Ok(self.excess(plan) <= self.hopeless && self.noise(plan)? <= self.most)
    }

    /// Plans with digits of so many primes and one special prime, two, ..; none when equal digits have another length.
    fn specials(&self, digit_primes: usize) -> Vec<Result<SwitchPlan>> {
        let (params, l) = (self.params, self.params.q().len());
        let special = params.p().as_slice();
        if special.is_empty() {
            let (free, most) = (l - self.active.len(), self.active.len());
            let borrowed = (1..=free).filter(|_| digit_primes <= most);
            return borrowed.map(|k| Ok(SwitchPlan::level_aware(params, digit_primes, k)?)).collect();
        }
        let plan = |count: usize| -> Result<SwitchPlan> {
            let sizes = DigitSizes::equal(l, l.div_ceil(digit_primes))?;
            let first = special[..count].iter().copied().collect();
            Ok(SwitchPlan::with_digits(params, &sizes)?.with_special(first))
        };
        let longest = l.div_ceil(l.div_ceil(digit_primes));
        (1..=special.len()).filter(|_| longest == digit_primes).map(plan).collect()
    }

    /// Adds single primes split in base 2^w, the largest w that suffices, where P is smaller than a prime.
    fn radix(&self, plans: &mut Vec<SwitchPlan>) -> Result<()> {
        let (params, l) = (self.params, self.params.q().len());
        let borrows = params.p().is_empty() && params.level(params.top_level())?.len() < l;
        let widest = self.active.iter().map(|i| params.ring().modulus(i).bits()).max().unwrap_or(0);
        if borrows || params.ring().log2(params.p()) >= f64::from(widest) {
            return Ok(());
        }
        for parts in 2..=RADIX_PARTS {
            let plan = SwitchPlan::hybrid(params, l)?.with_radix(widest.div_ceil(parts));
            if self.accepts(&plan)? {
                plans.push(plan);
                break;
            }
        }
        Ok(())
    }

    /// Those of `plans` with the fewest transforms in an extended ring, and linear key switching. The noise is the same.
    fn extended(&self, plans: &[SwitchPlan]) -> Vec<SwitchPlan> {
        let (params, active) = (self.params, self.active);
        let plain = |plan: &&SwitchPlan| plan.radix_bits.is_none() && plan.ring == ProductRing::Base;
        let mut best: Vec<(usize, SwitchPlan)> = Vec::new();
        let mut linear = Vec::new();
        for plan in plans.iter().filter(plain) {
            let plan = plan.clone().up_to(active);
            let extend = |omega2| plan.clone().in_extended_ring_at(params, active, omega2).ok();
            if plan.digits.iter().all(|d| d.len() == 1) && linear.is_empty() {
                linear.extend(extend(active.len() + plan.special.len()));
            }
            let omega = plan.digits.len();
            let search = self.double_search(&plan);
            let keyed = active.len() + plan.special.len();
            let choice = (1..=keyed).filter_map(|omega2| search.choice(omega, omega2)).min_by_key(|c| c.transforms);
            best.extend(choice.and_then(|c| extend(c.omega2).map(|plan| (c.transforms, plan))));
        }
        best.sort_by_key(|(transforms, _)| *transforms);
        let mut found: Vec<SwitchPlan> = best.into_iter().take(DOUBLES).map(|(_, plan)| plan).collect();
        found.extend(linear.into_iter().find(|plan| !found.contains(plan)));
        found
    }

    fn double_search(&self, plan: &SwitchPlan) -> DoubleSearch {
        let ring = self.params.ring();
        let bits = |set: &IndexSet| set.iter().map(|i| ring.modulus(i).bits()).max();
        let width = bits(&self.active.union(&plan.special)).unwrap_or(0);
        DoubleSearch {
            log_n: ring.log_n(),
            l: self.active.len(),
            width,
            aux_width: bits(self.params.aux()).unwrap_or(width),
            special_primes: Some(plan.special.len()),
            centred: matches!(plan.digit_overflow, Overflow::Round | Overflow::HpsRound | Overflow::Behz),
        }
    }
}
