//! Linear relations with short solutions: A w = u modulo Q, A of public ring elements, w of short integer polynomials.

use num_bigint::BigUint;
use synchromesh::rlwe::Context;
use synchromesh::rlwe::ring::{Backend, IndexSet, Ntt, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;

use super::Masking;
use super::error::Result;
use super::integers::Integers;
use super::transcript::Transcript;

/// One polynomial of the witness.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What it is, for messages.
    pub name: &'static str,
    /// The largest absolute value of a coefficient of an honest prover.
    pub bound: BigUint,
    /// The root of the mean square of an honest prover's coefficients, where masks are Gaussian.
    pub deviation: f64,
    /// Whether it has a constant coefficient only.
    pub constant: bool,
    /// How its responses hide it, where that is not what the proof's parameters say.
    pub masking: Option<Masking>,
}

/// What multiplies a polynomial of the witness.
pub enum Factor<B: Backend> {
    /// An integer, by its residue modulo each prime.
    Integer(Vec<u64>),
    /// A ring element.
    Ring(Poly<B, Ntt>),
}

/// factor w(X^g).
#[non_exhaustive]
pub struct Term<B: Backend> {
    /// Which polynomial of the witness.
    pub column: usize,
    /// g, 1 for w itself. Others need challenges that are integers.
    pub galois: usize,
    /// The factor.
    pub factor: Factor<B>,
}

/// The matrix A, row by row, and what is claimed of w.
pub struct Relation<B: Backend> {
    primes: IndexSet,
    columns: Vec<Column>,
    rows: Vec<Vec<Term<B>>>,
    digest: [u8; 32],
}

impl<B: Backend> Relation<B> {
    /// The relation over `primes` with these columns and rows, whose terms name columns there are.
    ///
    /// # Errors
    /// When the device fails.
    pub(super) fn new(
        context: &Context<B>,
        primes: &IndexSet,
        columns: Vec<Column>,
        rows: Vec<Vec<Term<B>>>,
    ) -> Result<Self> {
        let mut transcript = Transcript::new(context.params().digest(), 0, "relation");
        let number = |x: usize| (x as u64).to_le_bytes();
        for prime in primes.iter() {
            transcript.absorb("prime", &number(prime));
        }
        for column in &columns {
            transcript.absorb("column", column.name.as_bytes());
            transcript.absorb("bound", &column.bound.to_bytes_le());
            transcript.absorb("deviation", &column.deviation.to_le_bytes());
            transcript.absorb("constant", &[u8::from(column.constant)]);
            transcript.absorb("masking", &[column.masking.map_or(2, Masking::number)]);
        }
        for (i, row) in rows.iter().enumerate() {
            for term in row {
                transcript.absorb("row", &number(i));
                transcript.absorb("column", &number(term.column));
                transcript.absorb("galois", &number(term.galois));
                match &term.factor {
                    Factor::Integer(residues) => transcript.absorb_words("integer", residues),
                    Factor::Ring(poly) => transcript.absorb_words("ring", &poly.to_words(context.backend())?),
                }
            }
        }
        Ok(Self { primes: primes.clone(), columns, rows, digest: transcript.digest() })
    }

    /// The primes of Q.
    #[must_use]
    pub const fn primes(&self) -> &IndexSet {
        &self.primes
    }

    /// The polynomials of the witness.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Number of ring elements in u.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Whether an automorphism is applied to the witness anywhere.
    #[must_use]
    pub fn has_automorphisms(&self) -> bool {
        self.rows.iter().flatten().any(|term| term.galois != 1)
    }

    /// Whether part of the witness is a constant.
    #[must_use]
    pub fn has_constants(&self) -> bool {
        self.columns.iter().any(|column| column.constant)
    }

    /// Hash of all of it.
    pub(super) const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// A w, in slots.
    pub(super) fn image(&self, context: &Context<B>, witness: &[Integers]) -> Result<Vec<SecretPoly<B>>> {
        let backend = context.backend();
        let slots = |w: &Integers| Ok(SecretPoly::new(w.to_poly(backend, &self.primes)?.into_ntt(backend)?));
        let slots = witness.iter().map(slots).collect::<Result<Vec<_>>>()?;
        self.rows.iter().map(|row| self.row_image(context, row, &slots)).collect()
    }

    fn row_image(&self, context: &Context<B>, row: &[Term<B>], witness: &[SecretPoly<B>]) -> Result<SecretPoly<B>> {
        let backend = context.backend();
        let mut sum = Poly::zero(backend, &self.primes)?;
        for term in row {
            let w = witness[term.column].poly();
            let moved = (term.galois != 1).then(|| w.automorphism(backend, term.galois)).transpose()?;
            let moved = moved.map(SecretPoly::new);
            let w = moved.as_ref().map_or(w, SecretPoly::poly);
            match &term.factor {
                Factor::Integer(residues) => sum.mul_scalar_acc(backend, w, residues)?,
                Factor::Ring(factor) => sum.mul_acc(backend, factor, w)?,
            }
        }
        Ok(SecretPoly::new(sum))
    }
}
