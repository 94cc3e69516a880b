//! The axes of a method beyond its digits: the gadget, borrowed primes and the extended ring; and the fastest choice.

use synchromesh::cost::Profile;
use synchromesh_ring::IndexSet;
use synchromesh_rlwe::switch_plan::DoubleSearch;
use synchromesh_rlwe::{DigitSizes, Params, SwitchPlan};

use super::{Chain, Method, Prepared, Request, most_bits, p_widths, q_widths};
use crate::Error;

/// How the digits come from the stored key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gadget {
    /// The key is stored with the digits that are used.
    #[default]
    Idempotent,
    /// The key is stored with single-prime digits, of which the digits are sums.
    Coalesced,
    /// As coalesced; P is ciphertext primes that the input has lost: level-aware key switching.
    Borrowing,
}

/// A second decomposition, of the key, and the primes of the extended ring E.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Second {
    /// Digits of the key, of ceil((l + k) / omega2) primes.
    pub omega2: usize,
    /// The primes of E.
    pub aux: Aux,
}

/// The primes of E.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aux {
    /// As few as the bound allows.
    Enough {
        /// Bits of each; none: as wide as those of the chain may be.
        width: Option<u32>,
    },
    /// Primes of these widths, however few: for published parameters. Results are wrong where they are too few.
    Published(Vec<u32>),
}

impl Second {
    /// `omega2` digits and as few primes of E as the bound allows.
    #[must_use]
    pub const fn new(omega2: usize) -> Self {
        Self { omega2, aux: Aux::Enough { width: None } }
    }
}

/// The plan of a request whose parameters are built.
pub(super) fn plan(request: &Request, params: &Params) -> Result<SwitchPlan, Error> {
    let kept = params.level(params.top_level())?;
    let widths: Vec<u32> = kept.iter().map(|i| params.ring().modulus(i).bits()).collect();
    let sizes = request.sizes(&widths)?;
    let plan = match request.gadget {
        Gadget::Idempotent => SwitchPlan::with_digits(params, &sizes)?,
        Gadget::Coalesced | Gadget::Borrowing => {
            let borrowed: IndexSet = params.q().without(kept);
            SwitchPlan::coalesced(params, &DigitSizes::single(params.q().len()), sizes.split(kept)?, &borrowed)?
        }
    };
    let Some(second) = &request.second else { return Ok(plan) };
    let plan = plan.in_extended_ring(params, second.omega2)?;
    Ok(match second.aux {
        Aux::Enough { .. } => plan,
        Aux::Published(_) => plan.with_unchecked_aux(params.aux().clone()),
    })
}

/// Widths of the primes of E: enough for N sum_j max|d_j| max|k_m| (ePrint 2023/1642, section 4.2, with whole primes,
/// the number of digits and the sign).
pub(super) fn aux_widths(request: &Request, q: &[u32], p: &[u32]) -> Result<Vec<u32>, Error> {
    let Some(second) = &request.second else { return Ok(vec![]) };
    let width = match &second.aux {
        Aux::Published(widths) => return Ok(widths.clone()),
        Aux::Enough { width: Some(width) } => *width,
        Aux::Enough { width: None } => aux_width(&request.chain)?,
    };
    let sizes = request.sizes(q)?.0;
    let keyed: Vec<u32> = q.iter().chain(p).copied().collect();
    let mut rest = q;
    let digits = sizes.iter().map(|&size| {
        let (digit, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        digit.iter().sum::<u32>()
    });
    let digit = digits.max().unwrap_or(0);
    let key_digit =
        keyed.chunks(keyed.len().div_ceil(second.omega2.max(1)).max(1)).map(|d| d.iter().sum::<u32>()).max();
    let bits = digit + key_digit.unwrap_or(0) + request.log_n + sizes.len().next_power_of_two().trailing_zeros();
    Ok(vec![width; bits.div_ceil(width) as usize])
}

/// Width of each prime of E.
fn aux_width(chain: &Chain) -> Result<u32, Error> {
    match chain {
        Chain::Equal { width, .. } => most_bits(*width),
        Chain::Widths { .. } => most_bits(None),
    }
}

impl Request {
    /// Double decomposition; digits that are not given are those with the fewest transforms.
    ///
    /// # Errors
    /// [`Error::Request`] when P is smaller than a digit of any admissible number of digits.
    pub fn double(self, omega: Option<usize>, omega2: Option<usize>) -> Result<Self, Error> {
        if let (Some(omega), Some(omega2)) = (omega, omega2) {
            return Ok(Self { method: Method::Hybrid { omega }, second: Some(Second::new(omega2)), ..self });
        }
        let q = q_widths(&self)?;
        let l = q.len();
        if let Some(omega) = omega {
            Method::Hybrid { omega }.digit_primes(l)?;
        }
        let special_primes = match &self.chain {
            Chain::Equal { log_p: None, .. } => None,
            _ => Some(p_widths(&self, &q)?.len()),
        };
        let (log_n, aux_width) = (self.log_n, aux_width(&self.chain)?);
        let search = DoubleSearch { log_n, l, width: q[0], aux_width, special_primes, centred: true };
        // Equal digits of whole primes: another number of digits may be the nearest there is.
        let reached = |omega: usize| l.div_ceil(l.div_ceil(omega));
        let omegas = omega.map_or(1..=l, |omega| reached(omega)..=reached(omega));
        let all = omegas.flat_map(|omega| (1..=2 * l + 1).filter_map(move |omega2| search.choice(omega, omega2)));
        let fitting = all.filter(|choice| omega2.is_none_or(|omega2| choice.omega2 == omega2));
        let Some(best) = fitting.min_by_key(|choice| (choice.transforms, choice.omega)) else {
            let reason = format!(
                "no double decomposition of {l} primes has omega = {omega:?} and omega2 = {omega2:?} with P of \
                 {special_primes:?} primes: P must not be smaller than a digit"
            );
            return Err(Error::Request { reason });
        };
        let omega = omega.unwrap_or(best.omega);
        Ok(Self { method: Method::Hybrid { omega }, second: Some(Second::new(best.omega2)), ..self })
    }

    /// Linear key switching: one prime in each digit of ciphertext and key. P has `alpha` primes, by default what the
    /// chain says, or one.
    ///
    /// # Errors
    /// [`Error::Request`] for a chain that cannot be built.
    pub fn linear(self, alpha: Option<usize>) -> Result<Self, Error> {
        let q = q_widths(&self)?;
        let tried = Self { method: Method::Bv, ..self };
        let p = match alpha {
            Some(alpha) => vec![q[0]; alpha],
            None => p_widths(&tried, &q)?,
        };
        let aux = Aux::Enough { width: Some(aux_width(&tried.chain)?) };
        let second = Some(Second { omega2: q.len() + p.len(), aux });
        Ok(Self { chain: Chain::Widths { q, p }, second, ..tried })
    }

    /// Every method at these primes, P or what is borrowed as large as the largest digit unless the chain says
    /// otherwise: hybrid and level-aware key switching with every number of digits, double decomposition with the digits
    /// of fewest transforms for each of a few numbers, and linear key switching.
    ///
    /// # Errors
    /// Primes that cannot be had.
    pub fn variants(&self) -> Result<Vec<Self>, Error> {
        let l = q_widths(self)?.len();
        let mut all = Vec::new();
        for omega in 1..=l {
            all.push(Self { method: Method::Hybrid { omega }, ..self.clone() });
        }
        for omega in 2..=l {
            all.push(Self { method: Method::Hybrid { omega }, gadget: Gadget::Borrowing, ..self.clone() });
        }
        let best = self.clone().double(None, None).ok().and_then(|request| match request.method {
            Method::Hybrid { omega } => Some(omega),
            _ => None,
        });
        let few = best.into_iter().flat_map(|omega| [omega.saturating_sub(1).max(1), omega, l.min(omega + 1)]);
        all.extend(few.filter_map(|omega| self.clone().double(Some(omega), None).ok()));
        all.extend(self.clone().linear(None).ok());
        Ok(all)
    }
}

/// The fastest by `profile` of all methods and numbers of digits, among those with 128 bits of security if `secure`;
/// without a profile the smallest number of digits of hybrid key switching from two on, or one (ePrint 2023/1642,
/// section 4.4). None when nothing is secure.
///
/// # Errors
/// [`Error`] for a modulus that cannot be built, and a profile that lacks an operation.
pub fn fastest(request: &Request, secure: bool, profile: Option<&Profile>) -> Result<Option<Request>, Error> {
    let mut best: Option<(f64, Request)> = None;
    for tried in request.variants()? {
        // Wide special moduli may need more primes than there are: other numbers of digits need fewer.
        let Ok(prepared) = Prepared::new(&tried) else { continue };
        if secure && !prepared.is_secure() {
            continue;
        }
        match profile {
            Some(profile) => {
                let seconds = prepared.predict(profile)?;
                if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
                    best = Some((seconds, tried));
                }
            }
            None if prepared.plan().digits.len() >= 2 => return Ok(Some(tried)),
            None => best = Some((0.0, tried)),
        }
    }
    Ok(best.map(|(_, request)| request))
}
