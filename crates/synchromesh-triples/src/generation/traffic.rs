//! What a party sends in a session, from the plan alone.

use synchromesh::bgv::Context;
use synchromesh::circuits::Side;
use synchromesh::rlwe::Randomness;
use synchromesh_parties::polynomials::poly_bytes;
use synchromesh_parties::session::{HEADER, NONCE};

use super::encryption::{Content, Encryptions};
use super::plan::{GenerationPlan, Keys};
use crate::error::Result;

/// What one phase of a session sends: what [`Phase`](super::Phase) will say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// The phase.
    pub name: &'static str,
    /// Bytes that each party sends to all others together.
    pub bytes_sent: u64,
    /// Rounds.
    pub rounds: u64,
}

/// Payloads of one phase, a number for each round.
struct Payloads(Vec<usize>);

impl Payloads {
    /// All commit, agree on the commitments, and open.
    fn commit_and_open(mut self, length: usize) -> Self {
        self.0.extend([32, 32, NONCE + length]);
        self
    }

    fn and(mut self, length: usize) -> Self {
        self.0.push(length);
        self
    }
}

impl GenerationPlan {
    /// What a party of a session that makes `count` triples at a time sends, phase by phase, and in how many rounds.
    /// Frames of TLS are not in it, and what making keys sends is not.
    ///
    /// # Errors
    /// [`Error::Library`](crate::Error::Library), of which none is known.
    pub fn traffic(&self, count: usize) -> Result<Vec<Traffic>> {
        let context = Context::new(self.params().clone())?;
        let mut randomness = Randomness::from_os();
        let (_, public) = context.generate_keys(&mut randomness)?;
        let zero = context.encode_coefficients(&[0i64][..])?;
        let ciphertext = context.encrypt(&public, &zero, &mut randomness)?.to_bytes(&context, None)?.len();
        let encryptions =
            |content, count| Encryptions::new(self.proofs(), &context, &public, content)?.bytes(ciphertext, count);
        let groups = count.max(1).div_ceil(self.batch());
        let candidates = groups * self.batch();
        let [left, right] = [Side::Left, Side::Right].map(|side| self.matrices().ciphertexts(side));
        let [rows, _, columns] = self.matrices().blocks();
        let share = poly_bytes(context.rlwe(), self.params().rlwe().level(self.placement().decryption)?);
        let (element, none) = (self.field().element_bytes(), || Payloads(Vec::new()));
        let mac_key = match self.keys() {
            Keys::Dealt => none(),
            Keys::Generated => none().commit_and_open(encryptions(Content::Constant, 1)?).and(32),
        };
        let exchange = none().commit_and_open(encryptions(Content::Any, groups * (left + right))?).and(32);
        let decrypt = Payloads(vec![share * (2 * rows * columns + left + right); groups]);
        // A coin, both openings, agreement, a coin, the differences of the MACs, agreement.
        let [e, zeros] = [self.shape().b().0, self.shape().a().0].map(|side| candidates * side * element);
        let check = none().commit_and_open(32).and(e).and(zeros).and(32).commit_and_open(32);
        let check = check.commit_and_open(element).and(32);
        let phases = [
            ("session", none().and(32).and(32)),
            ("mac_key", mac_key),
            ("exchange", exchange),
            ("decrypt", decrypt),
            ("check", check),
        ];
        let others = self.parties() - 1;
        let sent = |(name, Payloads(all)): (&'static str, Payloads)| Traffic {
            name,
            bytes_sent: all.iter().map(|payload| ((HEADER + payload) * others) as u64).sum(),
            rounds: all.len() as u64,
        };
        Ok(phases.into_iter().map(sent).filter(|phase| phase.rounds > 0).collect())
    }
}
