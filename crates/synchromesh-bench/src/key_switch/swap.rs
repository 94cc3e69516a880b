//! Primes that leave and come in while a key switch divides by P: the target of a request, and its chain.

use synchromesh_ring::IndexSet;
use synchromesh_rlwe::{DigitSizes, Params, PrimeSwitching, SwitchPlan};

use super::{Chain, Method, Request, widths};
use crate::Error;

/// Large primes with the small ones that may come in for mu of them behind.
pub(super) fn widths_with_small(log: u32, width: u32, swap: Option<PrimeSwitching>) -> Result<Vec<u32>, Error> {
    let mut all = widths(log, width);
    if let Some(PrimeSwitching { mu, kappa }) = swap {
        let PrimeSwitching { mu, kappa } = PrimeSwitching::new(mu, kappa)?;
        let small = (all[0] * mu as u32).div_ceil(kappa as u32);
        all.extend(vec![small; kappa]);
    }
    Ok(all)
}

impl Request {
    /// Primes in each digit of the chain `q`: of about as many bits each where small primes are to come in, as keys that
    /// serve every level of such a chain have them.
    pub(super) fn sizes(&self, q: &[u32]) -> Result<DigitSizes, Error> {
        match (self.method, &self.chain, self.swap) {
            (Method::Hybrid { omega }, Chain::Equal { .. }, Some(_)) => Ok(DigitSizes::balanced(q, omega)?),
            _ => self.method.sizes(q.len()),
        }
    }

    /// The primes of the ciphertext that is switched, and those of the result: all that are not kept for coming in, or
    /// `limbs` of them; with a swap the mu widest less, the last of them first, and the last kappa of the chain more.
    pub(super) fn ends(&self, params: &Params) -> Result<[IndexSet; 2], Error> {
        let kept = params.level(params.top_level())?;
        let kappa = self.swap.map_or(0, |swap| swap.kappa);
        let most = kept.len().saturating_sub(kappa);
        let limbs = self.limbs.unwrap_or(most);
        let refuse = |reason: String| Err(Error::Request { reason });
        if limbs == 0 || limbs > most {
            return refuse(format!("--limbs {limbs} is outside 1..={most}"));
        }
        let active = params.level(limbs - 1)?.clone();
        let Some(PrimeSwitching { mu, kappa }) = self.swap else { return Ok([active.clone(), active]) };
        PrimeSwitching::new(mu, kappa)?;
        if active.len() <= mu {
            return refuse(format!(
                "--swap {mu},{kappa}: {mu} primes cannot leave a ciphertext of {limbs}; more limbs"
            ));
        }
        let mut widest: Vec<usize> = active.iter().collect();
        widest.sort_by_key(|&i| std::cmp::Reverse((params.ring().modulus(i).bits(), i)));
        let leaving: IndexSet = widest.into_iter().take(mu).collect();
        let coming: IndexSet = kept.iter().skip(kept.len() - kappa).collect();
        let target = active.without(&leaving).union(&coming);
        Ok([active, target])
    }

    /// `plan` with its constants where the request wants them.
    pub(super) fn with_folding(&self, plan: SwitchPlan, [active, target]: &[IndexSet; 2]) -> SwitchPlan {
        match (self.unfolded, self.swap) {
            (true, _) => plan.unfolded(),
            (false, Some(_)) => plan.folded_to(active, target),
            (false, None) => plan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_switch::{Gadget, Prepared, Second, rotation};

    fn request(swap: (usize, usize), method: Method) -> Request {
        let chain = Chain::Equal { log_q: 324, log_p: None, width: Some(54) };
        Request { swap: Some(PrimeSwitching { mu: swap.0, kappa: swap.1 }), ..rotation(11, chain, method) }
    }

    fn bits(params: &Params, primes: &IndexSet) -> Vec<u32> {
        primes.iter().map(|i| params.ring().modulus(i).bits()).collect()
    }

    #[test]
    fn large_primes_leave_and_small_ones_come_in_at_the_counts_of_the_paper() {
        for (swap, small) in [((1, 2), 27), ((2, 3), 36)] {
            let request = request(swap, Method::Hybrid { omega: 2 });
            let prepared = Prepared::new(&request).unwrap();
            let [active, target] = prepared.ends();
            assert_eq!(bits(prepared.params(), active), [54; 6]);
            assert_eq!(bits(prepared.params(), target), [vec![54; 6 - swap.0], vec![small; swap.1]].concat());
            let (l, k) = (6, prepared.plan().special.len() as u64);
            let mut counts = [0, 0];
            for (count, output_ntt) in counts.iter_mut().zip([false, true]) {
                let shape = synchromesh::cost::Shape { output_ntt, ..request.shape };
                *count = Prepared::new(&Request { shape, ..request.clone() }).unwrap().counts().unwrap().ntt;
            }
            // ePrint 2023/1642, section 3.7: 2 kappa transforms more where slots leave.
            assert_eq!(counts, [4 * (l + k), 4 * (l + k) + 2 * swap.1 as u64]);
        }
    }

    #[test]
    fn every_method_swaps_and_what_cannot_be_is_refused() {
        for method in [Method::Bv, Method::Ghs, Method::Hybrid { omega: 3 }, Method::Digits { primes: 2 }] {
            for gadget in [Gadget::Idempotent, Gadget::Coalesced, Gadget::Borrowing] {
                for second in [None, Some(Second::new(2))] {
                    let prepared = Prepared::new(&Request { gadget, second, ..request((2, 3), method) }).unwrap();
                    prepared.on_cpu().unwrap().run().unwrap();
                }
            }
        }
        for (swap, limbs) in [((2, 2), None), ((0, 1), None), ((6, 7), None), ((2, 3), Some(2)), ((2, 3), Some(7))] {
            assert!(Prepared::new(&Request { limbs, ..request(swap, Method::Bv) }).is_err(), "{swap:?} {limbs:?}");
        }
        let lowest = Prepared::new(&Request { limbs: Some(3), ..request((2, 3), Method::Bv) }).unwrap();
        assert_eq!(lowest.ends().each_ref().map(IndexSet::len), [3, 4]);
    }
}
