//! Products of blocks on other machines and on other devices: what goes to a worker, and what comes back.
//!
//! A block is a part of a batch's products: some rows and columns of the ciphertexts of C, computed from those rows of A's
//! ciphertexts, those columns of B's, and the MAC key's. All of it is public to the parties, and the products are a function of it
//! and of the setup, to the bit, so that a block whose worker is lost may be computed again by another. Shares of decryptions are
//! made by the party alone.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use synchromesh::bgv::{Ciphertext, Context, Evaluator};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::ring::{Backend, Cpu};

use super::circuit::{Factors, Products, multiply};
use super::setup::Setup;
use crate::error::{Error, Result};

/// Who computes products of blocks in the place of this process: machines that the party trusts as it trusts itself, since
/// what they send back is decrypted.
pub trait Workers {
    /// How many blocks they compute at one time, at least 1.
    fn count(&self) -> usize;

    /// Begins block `number`, counted from 0 over the whole session, and does not wait for it.
    ///
    /// # Errors
    /// [`Error::Workers`] if it cannot be begun.
    fn begin(&mut self, number: u64, block: Vec<u8>) -> Result<()>;

    /// Waits for block `number`, which was begun: what [`Setup::multiply_block`] makes of it.
    ///
    /// # Errors
    /// [`Error::Workers`] if nobody can compute it.
    fn finish(&mut self, number: u64) -> Result<Vec<u8>>;
}

/// Which rows and columns of C's ciphertexts a block computes. The MACs of A are computed with the first column, those of B
/// with the first row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Place {
    fn macs(&self) -> [bool; 2] {
        [self.columns.start == 0, self.rows.start == 0]
    }

    /// The places of all blocks of a batch with that many rows and columns of ciphertexts: at least `wanted`, if there
    /// are so many.
    fn all([rows, columns]: [usize; 2], wanted: usize) -> Vec<Self> {
        let (mut high, mut wide) = (rows, columns);
        while rows.div_ceil(high) * columns.div_ceil(wide) < wanted && high * wide > 1 {
            if high >= wide { high = high.div_ceil(2) } else { wide = wide.div_ceil(2) }
        }
        let cut = |size: usize, step: usize| (0..size).step_by(step).map(move |at| at..(at + step).min(size));
        cut(rows, high)
            .flat_map(|rows| cut(columns, wide).map(move |columns| Self { rows: rows.clone(), columns }))
            .collect()
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let ends = [self.rows.start, self.rows.end, self.columns.start, self.columns.end];
        ends.iter().for_each(|&end| bytes.extend_from_slice(&(end as u64).to_le_bytes()));
    }

    /// The place at the front of a block, if it is one of that many rows and columns, and the rest.
    fn read(bytes: &[u8], [rows, columns]: [usize; 2]) -> Option<(Self, &[u8])> {
        let (head, rest) = bytes.split_first_chunk::<32>()?;
        let mut ends = head.chunks(8).map(|x| usize::try_from(u64::from_le_bytes(x.try_into().ok()?)).ok());
        let mut next = || ends.next().flatten();
        let place = Self { rows: next()?..next()?, columns: next()?..next()? };
        let within = |part: &Range<usize>, size| part.start < part.end && part.end <= size;
        (within(&place.rows, rows) && within(&place.columns, columns)).then_some((place, rest))
    }
}

fn wrong(what: &str) -> Error {
    Error::Workers { reason: format!("these bytes are no {what} of this setup") }
}

/// Appends a ciphertext after its length.
fn put<B: Backend>(context: &Context<B>, x: &Ciphertext<B>, bytes: &mut Vec<u8>) -> Result<()> {
    let container = x.to_bytes(context, None)?;
    bytes.extend_from_slice(&(container.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&container);
    Ok(())
}

/// All ciphertexts in `bytes`, which are `count`; their certificates are believed.
fn take<B: Backend>(
    (setup, context): (&Setup, &Context<B>),
    mut bytes: &[u8],
    count: usize,
    what: &str,
) -> Result<Vec<Ciphertext<B>>> {
    let mut list = Vec::new();
    for _ in 0..count {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| wrong(what))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| wrong(what))?;
        let (container, rest) = rest.split_at_checked(length).ok_or_else(|| wrong(what))?;
        list.push(Ciphertext::from_bytes(context, container, Some(setup.key()), Trust::Certificate)?);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(list) } else { Err(wrong(what)) }
}

/// A batch whose products others compute.
pub(super) struct Remote {
    blocks: Vec<(u64, Place)>,
}

impl Remote {
    /// Sends all blocks of a batch, at least `wanted` of them if there are so many.
    pub(super) fn begin(
        setup: &Setup,
        workers: &mut dyn Workers,
        next: &mut u64,
        wanted: usize,
        [a, b]: [&[Ciphertext]; 2],
        alpha: &Ciphertext,
    ) -> Result<Self> {
        let [rows, inner, columns] = setup.plan().matrices().blocks();
        let mut blocks = Vec::new();
        for place in Place::all([rows, columns], wanted) {
            let mut bytes = Vec::new();
            place.write(&mut bytes);
            let left = &a[place.rows.start * inner..place.rows.end * inner];
            let right = (0..inner).flat_map(|l| &b[l * columns..][place.columns.clone()]);
            left.iter().chain(right).chain([alpha]).try_for_each(|x| put(setup.context(), x, &mut bytes))?;
            workers.begin(*next, bytes)?;
            blocks.push((*next, place));
            *next += 1;
        }
        Ok(Self { blocks })
    }

    /// Waits for all blocks and puts them together; `done` is told how many there are.
    pub(super) fn finish(
        self,
        setup: &Setup,
        workers: &mut dyn Workers,
        mut done: impl FnMut(usize, usize),
    ) -> Result<Products<Cpu>> {
        let [rows, inner, columns] = setup.plan().matrices().blocks();
        let empty = |count| (0..count).map(|_| None).collect::<Vec<Option<Ciphertext>>>();
        let (mut c, mut macs) = (empty(rows * columns), [rows * inner, inner * columns, rows * columns].map(empty));
        let count = self.blocks.len();
        for (at, (number, place)) in self.blocks.into_iter().enumerate() {
            let [of_a, of_b] = place.macs();
            let products = || place.rows.clone().flat_map(|i| place.columns.clone().map(move |j| i * columns + j));
            let left = (place.rows.start * inner..place.rows.end * inner).filter(|_| of_a);
            let right = (0..inner).flat_map(|l| place.columns.clone().map(move |j| l * columns + j)).filter(|_| of_b);
            let places: [Vec<usize>; 4] = [products().collect(), left.collect(), right.collect(), products().collect()];
            let total = places.iter().map(Vec::len).sum();
            let mut made =
                take((setup, setup.context()), &workers.finish(number)?, total, "products of a block")?.into_iter();
            for (to, at) in std::iter::once(&mut c).chain(&mut macs).zip(places) {
                at.into_iter().zip(&mut made).for_each(|(at, x)| to[at] = Some(x));
            }
            done(at + 1, count);
        }
        let whole = |list: Vec<Option<Ciphertext>>| list.into_iter().flatten().collect::<Vec<_>>();
        Ok(Products { c: whole(c), macs: macs.map(whole) })
    }
}

impl Setup {
    /// The products of a block, as a worker computes them on `threads` threads: of public data alone, the same bytes
    /// each time.
    ///
    /// # Errors
    /// [`Error::Workers`] for bytes that are no block of this setup, or [`Error::Library`].
    pub fn multiply_block(&self, block: &[u8], threads: usize) -> Result<Vec<u8>> {
        self.multiply_block_on(self.evaluator(), block, threads)
    }

    fn multiply_block_on<B: Backend>(&self, evaluator: &Evaluator<B>, block: &[u8], threads: usize) -> Result<Vec<u8>> {
        let (plan, context) = (self.plan(), evaluator.context());
        let [rows, inner, columns] = plan.matrices().blocks();
        let (place, rest) = Place::read(block, [rows, columns]).ok_or_else(|| wrong("block"))?;
        let [left, right] = [place.rows.len() * inner, inner * place.columns.len()];
        let list = take((self, context), rest, left + right + 1, "block")?;
        let (factors, alpha) = list.split_at(left + right);
        let (a, b) = factors.split_at(left);
        let factors = Factors { a, b, alpha: alpha.first().ok_or_else(|| wrong("block"))?, macs: place.macs() };
        let choices = plan.choices().threads(threads.max(1));
        let made = multiply(evaluator, plan.matrices(), &choices, &factors, plan.placement().product)?;
        let mut bytes = Vec::new();
        made.all().try_for_each(|x| put(context, x, &mut bytes))?;
        Ok(bytes)
    }
}

/// A device of this machine that computes the products of blocks, a card say: whose bits are those of the CPU.
pub struct DeviceWorker<'a, B: Backend> {
    setup: &'a Setup,
    evaluator: Evaluator<B>,
    begun: BTreeMap<u64, Vec<u8>>,
}

impl<'a, B: Backend> DeviceWorker<'a, B> {
    /// A device that was opened for the setup's ring, with its evaluation keys.
    ///
    /// # Errors
    /// [`Error::Library`] where the device fails.
    pub fn new(setup: &'a Setup, device: B) -> Result<Self> {
        let context = Context::with_backend(setup.context().params().clone(), device)?;
        let keys = setup.keys().transfer(setup.context().rlwe(), context.rlwe()).map_err(synchromesh::Error::from)?;
        let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
        Ok(Self { setup, evaluator, begun: BTreeMap::new() })
    }
}

impl<B: Backend> Workers for DeviceWorker<'_, B> {
    fn count(&self) -> usize {
        1
    }

    fn begin(&mut self, number: u64, block: Vec<u8>) -> Result<()> {
        self.begun.insert(number, block);
        Ok(())
    }

    fn finish(&mut self, number: u64) -> Result<Vec<u8>> {
        let block = self.begun.remove(&number);
        let block = block.ok_or_else(|| Error::Workers { reason: format!("block {number} was not begun") })?;
        self.setup.multiply_block_on(&self.evaluator, &block, 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use synchromesh::rlwe::Security;
    use synchromesh_cuda::{Cuda, Emulated, Order};

    use super::*;
    use crate::field::{DEFAULT_PRIME, Field};
    use crate::generation::tests::{journal_of, unused};
    use crate::generation::{GenerationPlan, Generator, PartyKey, Request, deal};
    use crate::share::{MatrixTriple, check_opened};
    use synchromesh_parties::transport::{InProcess, Transport};

    /// What workers do to the products of a block.
    type Deed = fn(u64, Vec<u8>) -> Vec<u8>;

    /// Workers that compute a block when they are asked for it, and again in the place of one that was lost.
    struct Here<'a> {
        setup: &'a Setup,
        begun: HashMap<u64, Vec<u8>>,
        deed: Deed,
    }

    impl Workers for Here<'_> {
        fn count(&self) -> usize {
            7
        }

        fn begin(&mut self, number: u64, block: Vec<u8>) -> Result<()> {
            assert_eq!(number, self.begun.len() as u64, "blocks are numbered in turn");
            assert!(self.begun.insert(number, block).is_none());
            Ok(())
        }

        fn finish(&mut self, number: u64) -> Result<Vec<u8>> {
            let made = self.setup.multiply_block(&self.begun[&number], 1)?;
            if number == 1 {
                assert_eq!(self.setup.multiply_block(&self.begun[&number], 2)?, made, "the same again, bit for bit");
            }
            Ok((self.deed)(number, made))
        }
    }

    /// Two parties, of which the first has workers; what each made.
    fn run(setup: &Setup, keys: &[PartyKey], count: usize, deed: Deed) -> Vec<Result<Vec<MatrixTriple>>> {
        run_with(setup, keys, count, || Box::new(Here { setup, begun: HashMap::new(), deed }))
    }

    fn run_with<'a>(
        setup: &'a Setup,
        keys: &'a [PartyKey],
        count: usize,
        workers: impl Fn() -> Box<dyn Workers + 'a> + Sync,
    ) -> Vec<Result<Vec<MatrixTriple>>> {
        let root = tempfile::tempdir().unwrap();
        let keys = &unused((setup, keys));
        let party = |transport: InProcess| {
            let number = transport.party();
            let journal = root.path().join(format!("{number}.journal"));
            let journal = journal_of(&journal, &keys[number], setup.plan().most_decryptions())?;
            let mut generator = Generator::new(transport, setup, &keys[number], journal, Box::new(|_| ()))?;
            if number == 0 {
                generator = generator.with_workers(workers());
            }
            generator.generate(count)
        };
        std::thread::scope(|scope| {
            let transports = InProcess::mesh(keys.len(), Duration::from_secs(60));
            let threads: Vec<_> = transports.into_iter().map(|transport| scope.spawn(|| party(transport))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn a_card_computes_what_the_party_would() {
        let field: Field = DEFAULT_PRIME.parse().unwrap();
        let base = Request::new(&field, 2, "4x3x4".parse().unwrap());
        let request =
            Request { security: Security::Insecure, log_n: Some(10), statistical_security: 40, count: 1, ..base };
        let (setup, keys) = deal(GenerationPlan::find(&request).unwrap()).unwrap();
        let device = || {
            let ring = Arc::clone(setup.context().params().rlwe().ring());
            Cuda::new(ring, Emulated::new(Order::Ascending), None).unwrap()
        };
        let card = || -> Box<dyn Workers + '_> { Box::new(DeviceWorker::new(&setup, device()).unwrap()) };
        let made: Vec<_> = run_with(&setup, &keys, 1, card).into_iter().map(Result::unwrap).collect();
        let macs: Vec<_> = keys.iter().map(|key| key.mac().clone()).collect();
        check_opened(&field, &macs, &made).unwrap();
        // What was not begun is refused.
        let mut worker = DeviceWorker::new(&setup, device()).unwrap();
        assert!(worker.finish(3).is_err_and(|error| error.kind() == "workers"));
    }

    #[test]
    fn workers_compute_what_the_party_would() {
        let field: Field = DEFAULT_PRIME.parse().unwrap();
        let base = Request::new(&field, 2, "40x3x40".parse().unwrap());
        let request =
            Request { security: Security::Insecure, log_n: Some(10), statistical_security: 40, count: 2, ..base };
        let (setup, keys) = deal(GenerationPlan::find(&request).unwrap()).unwrap();
        let [rows, _, columns] = setup.plan().matrices().blocks();
        assert!(rows > 1 && columns > 1, "{rows} x {columns} ciphertexts");
        let made: Vec<_> = run(&setup, &keys, 2, |_, made| made).into_iter().map(Result::unwrap).collect();
        let macs: Vec<_> = keys.iter().map(|key| key.mac().clone()).collect();
        check_opened(&field, &macs, &made).unwrap();
        // A product of other ciphertexts is caught by the checks at the latest, bytes that are none at once.
        let wrong: Deed = |number, mut made| {
            if number == 2 {
                made.truncate(100);
            }
            made
        };
        let kinds = |results: Vec<Result<Vec<MatrixTriple>>>| results.into_iter().map(|x| x.unwrap_err().kind());
        assert_eq!(kinds(run(&setup, &keys, 2, wrong)).collect::<Vec<_>>(), ["workers", "abort"]);
        assert!(setup.multiply_block(b"no block", 1).is_err_and(|error| error.kind() == "workers"));
    }

    #[test]
    fn blocks_cover_everything_once() {
        for rows in 1..6 {
            for columns in 1..6 {
                for wanted in 1..40 {
                    let places = Place::all([rows, columns], wanted);
                    assert!(places.len() >= wanted.min(rows * columns), "{rows} x {columns}, {wanted}");
                    let mut seen = vec![0; rows * columns];
                    let mut macs = [0; 2];
                    for place in &places {
                        place.rows.clone().for_each(|i| place.columns.clone().for_each(|j| seen[i * columns + j] += 1));
                        let [a, b] = place.macs();
                        macs[0] += if a { place.rows.len() } else { 0 };
                        macs[1] += if b { place.columns.len() } else { 0 };
                        let mut bytes = Vec::new();
                        place.write(&mut bytes);
                        assert_eq!(Place::read(&bytes, [rows, columns]), Some((place.clone(), &[][..])));
                        assert_eq!(Place::read(&bytes, [rows, place.columns.end - 1]), None);
                        assert_eq!(Place::read(&bytes[1..], [rows, columns]), None);
                    }
                    assert!(seen.iter().all(|&count| count == 1) && macs == [rows, columns], "{rows} x {columns}");
                }
            }
        }
    }
}
