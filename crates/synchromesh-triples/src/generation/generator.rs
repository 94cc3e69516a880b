//! One party's run of the protocol that makes matrix triples (ePrint 2020/451; ePrint 2023/593, section 2.5).

use synchromesh::batch::{PlainPoly, Residues};
use synchromesh::bgv::{Ciphertext, Evaluator};
use synchromesh::circuits::Side;
use synchromesh::rlwe::ring::Cpu;
use synchromesh_parties::Blame;
use synchromesh_parties::session::Kind;
use synchromesh_parties::transport::Transport;
use zeroize::Zeroizing;

use super::blocks::{Remote, Workers};
use super::check::{Candidate, check, random};
use super::circuit::{Factors, Products, multiply};
use super::conduct::{Conduct, Honest};
use super::decrypt::{Pending, share_bytes};
use super::decryptions::DecryptionJournal;
use super::encryption::{Content, Encryptions};
use super::forecast::MOST_BYTES;
use super::phases::{Observer, Phase, Recorder};
use super::plan::Placement;
use super::setup::{PartyKey, Setup};
use crate::error::{Error, Result};
use crate::field::Element;
use crate::matrix::Matrix;
use crate::session::Session;
use crate::share::{MatrixTriple, Shared};

/// One party of a session that makes triples.
///
/// All parties call the same functions with the same arguments. After an error the session is over, and so are its
/// ciphertexts: what remains to do is to begin another, with a fresh generator.
pub struct Generator<'a, T> {
    pub(super) session: Session<T>,
    pub(super) setup: &'a Setup,
    pub(super) key: &'a PartyKey,
    journal: DecryptionJournal,
    threads: usize,
    workers: Option<Box<dyn Workers + 'a>>,
    blocks: u64,
    alpha: Option<Ciphertext>,
    recorder: Recorder<'a>,
    pub(crate) conduct: Box<dyn Conduct<T> + 'a>,
}

impl<'a, T: Transport> Generator<'a, T> {
    /// Begins a session with the others: agreement on what is to be done.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::Parties`] for a key that is not this party's, and as [`Session::new`];
    /// [`synchromesh_parties::Error::Abort`] with the blame for a party that misbehaves; [`Error::MacKeyBurnt`] for a
    /// key with which no triple may be made, and then nothing was sent.
    pub fn new(
        transport: T,
        setup: &'a Setup,
        key: &'a PartyKey,
        journal: DecryptionJournal,
        observer: Box<Observer<'a>>,
    ) -> Result<Self> {
        key.mac().ready()?;
        let recorder = Recorder::new("session", observer);
        let plan = setup.plan();
        let (party, parties) = (transport.party(), transport.parties());
        if party != key.party() || parties != plan.parties() {
            return Err(synchromesh_parties::Error::Parties { party, parties, most: plan.parties() }.into());
        }
        let description = format!("triples by setup {}", blake3::Hash::from(*setup.digest()));
        let session = Session::new(transport, plan.field(), plan.statistical_security(), &description)?;
        Ok(Self {
            session,
            setup,
            key,
            journal,
            threads: 1,
            workers: None,
            blocks: 0,
            alpha: None,
            recorder,
            conduct: Box::new(Honest),
        })
    }

    /// The same with this many threads for products of matrices.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The same with products of matrices computed by others, in blocks.
    #[must_use]
    pub fn with_workers(self, workers: Box<dyn Workers + 'a>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// What the phases took so far, each name once.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        self.recorder.phases()
    }

    /// The number of the session.
    pub(crate) fn session_id(&self) -> &[u8; 32] {
        self.session.id()
    }

    /// What each party says was the last session under this key that ended with triples, the same to all.
    pub(crate) fn last_sessions(&mut self, own: &[u8; 32]) -> Result<Vec<[u8; 32]>> {
        let said = self.session.broadcast(Kind::Record, own, 32)?;
        self.session.agree()?;
        let read = |bytes: Vec<u8>| <[u8; 32]>::try_from(bytes).map_err(|_| Error::aborted());
        said.into_iter().map(read).collect()
    }

    /// Checks that all parties are about to make the same.
    pub(crate) fn same(&mut self, wants: &[String]) -> Result<()> {
        let hash = *blake3::hash(wants.join("\n").as_bytes()).as_bytes();
        Ok(self.session.same("what is to be made", &hash)?)
    }

    /// Rounds so far, and bytes that this party sent.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        self.session.traffic()
    }

    /// The session, for what the parties do next.
    #[must_use]
    pub fn into_session(self) -> Session<T> {
        self.session
    }

    pub(super) fn enter(&mut self, name: &'static str, of: usize) {
        self.recorder.enter(&mut self.session, name, of);
    }

    pub(super) fn tell(&mut self, done: usize, of: usize) {
        self.recorder.tell(&self.session, done, of);
    }

    /// Makes `count` triples, at least one. They are checked: C = A B and all MACs hold, or an error is returned.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::Abort`] with the blame, [`synchromesh_parties::Error::DecryptedBefore`] or [`synchromesh_parties::Error::KeySpent`] from the
    /// journal; no triple of the batch may be used then, and none is returned. [`Error::MacKeyLeaked`] if the key is of
    /// no use any more either, [`Error::TooLarge`] for more triples than anybody has memory for.
    pub fn generate(&mut self, count: usize) -> Result<Vec<MatrixTriple>> {
        self.setup.plan().require_memory(count, MOST_BYTES)?;
        let mut made = self.with_alpha(|own, alpha| own.batches(count.max(1), alpha))?;
        made.truncate(count);
        Ok(made)
    }

    /// Goes on to another shape of the plan: `setup` is the one that the session began with, [turned](Setup::of) to it.
    ///
    /// # Errors
    /// [`Error::NoParameters`] for another setup.
    pub fn turn(&mut self, setup: &'a Setup) -> Result<()> {
        if setup.digest() != self.setup.digest() {
            return Err(Error::NoParameters {
                shape: setup.plan().shape().to_string(),
                parties: setup.plan().parties(),
                reason: "the session began with another setup".into(),
            });
        }
        self.setup = setup;
        Ok(())
    }

    /// Does something with the encryption of the MAC key, which is made first if there is none in this session.
    pub(super) fn with_alpha<R>(&mut self, done: impl FnOnce(&mut Self, &Ciphertext) -> Result<R>) -> Result<R> {
        let alpha = match (self.alpha.take(), self.setup.alpha()) {
            (Some(alpha), _) => alpha,
            (None, Some(dealt)) => dealt.duplicate(self.setup.context())?,
            (None, None) => self.mac_key()?,
        };
        let made = done(self, &alpha);
        self.alpha = Some(alpha);
        made
    }

    /// The sum of the parties' encryptions of their shares of the MAC key, each in every slot.
    fn mac_key(&mut self) -> Result<Ciphertext> {
        self.enter("mac_key", 1);
        let (context, n) = (self.setup.context(), self.setup.plan().params().n());
        let mut coefficients = vec![Element::ZERO.0; n];
        coefficients[0] = self.key.mac().secret().0;
        self.conduct.alpha(&mut coefficients);
        let poly = PlainPoly::new(context.params().t(), Residues::Wide(coefficients))?;
        let sums = self.exchange(Content::Constant, vec![poly])?;
        sums.into_iter().next().ok_or_else(Error::aborted)
    }

    /// Everybody's encryptions, proven and checked, summed over the parties.
    pub(super) fn exchange(&mut self, content: Content, plaintexts: Vec<PlainPoly>) -> Result<Vec<Ciphertext>> {
        let (setup, session, count) = (self.setup, *self.session.id(), plaintexts.len());
        let own = self.session.party();
        let encryptions = |content| Encryptions::new(setup.plan().proofs(), setup.context(), setup.public(), content);
        let mut message = encryptions(self.conduct.content(content))?.make(setup, plaintexts, own, &session)?;
        self.conduct.encryptions(count, &mut message);
        if content == Content::Any {
            self.enter("exchange", self.session.parties());
        }
        let messages = self.session.commit_and_open(&message)?;
        self.session.agree()?;
        let encryptions = encryptions(content)?;
        let evaluator = Evaluator::new(self.setup.context(), None);
        let mut sums: Vec<Ciphertext> = Vec::new();
        for (party, message) in messages.iter().enumerate() {
            let opened = encryptions.open(setup, message, count, [party, own], &session);
            let opened = opened.map_err(|error| {
                if party == own || !error.blames_sender() {
                    return error;
                }
                self.session.abort(Blame::Party(party), &format!("sent a bad encryption: {error}")).into()
            })?;
            if sums.is_empty() {
                sums = opened;
            } else {
                let pairs = sums.iter().zip(&opened);
                sums = pairs.map(|(sum, x)| Ok(evaluator.add(sum, x)?)).collect::<Result<_>>()?;
            }
            self.tell(party + 1, messages.len());
        }
        Ok(sums)
    }

    fn batches(&mut self, count: usize, alpha: &Ciphertext) -> Result<Vec<MatrixTriple>> {
        let (plan, layout) = (self.setup.plan(), self.setup.layout());
        let groups = count.div_ceil(plan.batch());
        self.enter("encrypt", groups);
        let encoder = self.setup.context().slot_encoder()?;
        let (mut own, mut plaintexts) = (Vec::with_capacity(groups), Vec::new());
        for group in 0..groups {
            let matrices = |side, extra| (0..plan.batch()).map(|_| random(plan.field(), side, extra)).collect();
            let (a, b): (Result<Vec<Matrix>>, Result<Vec<Matrix>>) =
                (matrices(plan.shape().a(), 0), matrices(plan.shape().b(), 1));
            let (a, b) = (a?, b?);
            plaintexts.extend(layout.encode(Side::Left, encoder, &a)?);
            plaintexts.extend(layout.encode(Side::Right, encoder, &b)?);
            own.push((a, b));
            self.tell(group + 1, groups);
        }
        self.conduct.inputs(&mut own, plan.field());
        let mut sums = self.exchange(Content::Any, plaintexts)?.into_iter();
        let [left, right] = [Side::Left, Side::Right].map(|side| plan.matrices().ciphertexts(side));
        let mut factors = || [left, right].map(|size| sums.by_ref().take(size).collect::<Vec<Ciphertext>>());
        let mut candidates = Vec::with_capacity(groups * plan.batch());
        let mut remote = match self.workers.is_some() {
            true => self.send_blocks((0..groups).map(|_| factors()), alpha)?.into_iter(),
            false => Vec::new().into_iter(),
        };
        for (group, (a, b)) in own.into_iter().enumerate() {
            self.enter("multiply", groups);
            self.tell(group, groups);
            let made = match remote.next() {
                Some(batch) => self.receive_blocks(batch)?,
                None => self.multiply(factors(), alpha)?,
            };
            candidates.extend(self.decrypt(&made, a, b)?);
        }
        self.enter("check", 1);
        self.conduct.candidates(&mut candidates, plan.field());
        self.conduct.before_check(&mut self.session, self.key.mac(), &candidates)?;
        let triples = check(&mut self.session, self.key.mac(), candidates)?;
        self.enter("done", 1);
        Ok(triples)
    }

    /// The products of a batch, computed here.
    fn multiply(&self, [a, b]: [Vec<Ciphertext>; 2], alpha: &Ciphertext) -> Result<Products<Cpu>> {
        let plan = self.setup.plan();
        let choices = plan.choices().threads(self.threads);
        let factors = Factors { a: &a, b: &b, alpha, macs: [true; 2] };
        multiply(self.setup.evaluator(), plan.matrices(), &choices, &factors, plan.placement().product)
    }

    /// Begins all blocks of all batches: as many as the workers compute at one time, where there are so many.
    fn send_blocks(
        &mut self,
        batches: impl ExactSizeIterator<Item = [Vec<Ciphertext>; 2]>,
        alpha: &Ciphertext,
    ) -> Result<Vec<Remote>> {
        let workers = self.workers.as_deref_mut().ok_or_else(Error::aborted)?;
        let each = workers.count().div_ceil(batches.len().max(1));
        batches.map(|[a, b]| Remote::begin(self.setup, workers, &mut self.blocks, each, [&a, &b], alpha)).collect()
    }

    fn receive_blocks(&mut self, batch: Remote) -> Result<Products<Cpu>> {
        let mut workers = self.workers.take().ok_or_else(Error::aborted)?;
        let made = batch.finish(self.setup, &mut *workers, |done, of| self.tell(done, of));
        self.workers = Some(workers);
        made
    }

    /// Shares of C and of all MACs of a group, beside the own A and B.
    fn decrypt(&mut self, made: &Products<Cpu>, a: Vec<Matrix>, b: Vec<Matrix>) -> Result<Vec<Candidate>> {
        self.enter("decrypt", 4);
        let layout = self.setup.layout();
        let mut slots = self.open(made, self.setup.plan().placement())?.into_iter();
        let mut take = |count: usize| slots.by_ref().take(count).collect::<Vec<_>>();
        let c = layout.products(take(made.c.len()))?;
        let mac_a = layout.factors(Side::Left, &take(made.macs[0].len()))?;
        let mac_b = layout.factors(Side::Right, &take(made.macs[1].len()))?;
        let mac_c = layout.products(take(made.macs[2].len()))?;
        let values = a.into_iter().zip(b).zip(c);
        let macs = mac_a.into_iter().zip(mac_b).zip(mac_c);
        let one = |(((a, b), c), ((mac_a, mac_b), mac_c))| {
            Ok(Candidate { a: Shared::new(a, mac_a)?, b: Shared::new(b, mac_b)?, c: Shared::new(c, mac_c)? })
        };
        values.zip(macs).map(one).collect()
    }

    /// The own shares of all slots of these ciphertexts. What is about to be decrypted is in the journal before anything is
    /// sent.
    pub(super) fn open(&mut self, made: &Products<Cpu>, placement: &Placement) -> Result<Vec<Zeroizing<Vec<Element>>>> {
        let pending = made.all().map(|x| Pending::new(self.setup, placement, x)).collect::<Result<Vec<_>>>()?;
        self.journal.intend(&pending.iter().map(|x| x.hash).collect::<Vec<_>>())?;
        let (session, each) = (*self.session.id(), share_bytes(self.setup, placement.decryption)?);
        let (mut message, mut masks) = (Vec::with_capacity(each * pending.len()), Vec::with_capacity(pending.len()));
        for x in &pending {
            let (bytes, mask) = x.share(self.setup, self.key, &session)?;
            message.extend_from_slice(&bytes);
            masks.push(mask);
        }
        self.conduct.decryptions(&mut message, each, made);
        let messages = self.session.broadcast(Kind::Decryption, &message, message.len())?;
        let mut slots = Vec::with_capacity(pending.len());
        for (at, (x, mask)) in pending.iter().zip(&masks).enumerate() {
            let parts: Vec<&[u8]> = messages.iter().map(|bytes| &bytes[at * each..(at + 1) * each]).collect();
            match x.finish(self.setup, self.key, mask, &parts) {
                Ok(made) => slots.push(made),
                Err((Some(party), _)) => {
                    let deed = "sent a share that is no polynomial modulo the primes";
                    return Err(self.session.abort(Blame::Party(party), deed).into());
                }
                Err((None, error)) => return Err(error),
            }
        }
        Ok(slots)
    }
}
