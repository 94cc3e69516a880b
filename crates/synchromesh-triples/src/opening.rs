//! Opening shared matrices, and the check that what was opened is what the MACs say (SPDZ, ePrint 2012/642, section 3).

use synchromesh_parties::Blame;
use synchromesh_parties::session::Kind;
use synchromesh_parties::transport::Transport;
use zeroize::Zeroize;

use crate::error::Result;
use crate::field::Element;
use crate::mac::MacKeyShare;
use crate::matrix::Matrix;
use crate::session::Session;
use crate::share::Shared;

/// Opened matrices whose MACs nobody has looked at yet. Nothing computed from them may be revealed before the check.
#[derive(Debug, Default)]
pub struct Unchecked {
    /// The opened values and the own shares of their MACs.
    opened: Vec<(Matrix, Matrix)>,
}

impl Unchecked {
    /// Nothing opened so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The matrices that these shares add up to, opened to everyone in one round.
    ///
    /// # Errors
    /// As [`Session::broadcast`](synchromesh_parties::session::Session::broadcast); a residue that is none is the
    /// sender's fault.
    pub fn open<T: Transport>(&mut self, session: &mut Session<T>, shares: &[&Shared]) -> Result<Vec<Matrix>> {
        self.open_each(session, shares)?;
        let new = self.opened.len() - shares.len();
        Ok(self.opened[new..].iter().map(|(sum, _)| sum.clone()).collect())
    }

    /// The same; returned are each party's shares.
    pub(crate) fn open_each<T: Transport>(
        &mut self,
        session: &mut Session<T>,
        shares: &[&Shared],
    ) -> Result<Vec<Vec<Matrix>>> {
        let field = session.field().clone();
        let mut payload = Vec::new();
        for share in shares {
            share.value().entries().iter().for_each(|&entry| field.write(entry, &mut payload));
        }
        let received = session.broadcast(Kind::Opening, &payload, payload.len())?;
        let mut sums: Vec<Matrix> = Vec::with_capacity(shares.len());
        for share in shares {
            sums.push(Matrix::zero(share.value().rows(), share.value().columns())?);
        }
        let mut all = Vec::with_capacity(received.len());
        for (party, bytes) in received.iter().enumerate() {
            let mut elements = bytes.chunks_exact(field.element_bytes()).map(|bytes| field.read(bytes));
            let mut own = Vec::with_capacity(shares.len());
            for sum in &mut sums {
                let entries = elements.by_ref().take(sum.entries().len()).collect::<Result<Vec<Element>>>();
                let Ok(share) = entries.and_then(|entries| Matrix::new(sum.rows(), sum.columns(), entries)) else {
                    return Err(session.abort(Blame::Party(party), "sent a share that is not below p").into());
                };
                *sum = sum.add(&field, &share)?;
                own.push(share);
            }
            all.push(own);
        }
        for (sum, share) in sums.into_iter().zip(shares) {
            self.opened.push((sum, share.mac().clone()));
        }
        Ok(all)
    }

    /// Checks everything opened so far: that all parties saw the same, and that a random combination of the values fits its
    /// MAC. A wrong value passes with probability at most 2/p. The key counts as burnt from before the shares of the MAC are
    /// opened until they have added up.
    ///
    /// # Errors
    /// [`Error::MacKeyLeaked`](crate::Error::MacKeyLeaked) if something does not fit; who cheated is not known then,
    /// and the key is of no use any more. [`Error::MacKeyBurnt`](crate::Error::MacKeyBurnt) if it was of none before.
    pub fn check<T: Transport>(&mut self, session: &mut Session<T>, key: &MacKeyShare) -> Result<()> {
        session.agree()?;
        let field = session.field().clone();
        let opened = std::mem::take(&mut self.opened);
        let count = opened.iter().map(|(value, _)| value.entries().len()).sum();
        let mut coefficients = session.toss(count)?.into_iter();
        let (mut value, mut mac) = (Element::ZERO, Element::ZERO);
        for (values, macs) in &opened {
            for ((&x, &share), coefficient) in values.entries().iter().zip(macs.entries()).zip(&mut coefficients) {
                value = field.add(value, field.mul(x, coefficient));
                mac = field.add(mac, field.mul(share, coefficient));
            }
        }
        // Whether it holds decides whether the key lives: nobody but the key itself can ask.
        let verdict = key.check(session, value, mac);
        mac.zeroize();
        verdict?;
        Ok(session.agree()?)
    }
}
