//! Keys that the parties make themselves: s is the sum of their ternary secrets, and nobody knows it.
//!
//! Every share is proven ([`synchromesh_parties::proven`]), and what is proven is what every certificate of the plan holds for
//! ([`super::Keys::Generated`]); a share whose proof fails ends the session with the blame, and no key is returned.

use std::sync::Arc;

use synchromesh::bgv::Context;
use synchromesh::rlwe::ring::Poly;
use synchromesh::rlwe::ring::sampler::{Purpose, SmallPoly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::{EvaluationKeys, KeyId, PublicKey, Randomness};
use synchromesh_parties::proven::{Conduct, Honest, Maker, ProvenKeys, Step};
use synchromesh_parties::seeds::Seeds;
use synchromesh_parties::session;
use synchromesh_parties::transport::Transport;

use super::phases::{Observer, Phase, Recorder};
use super::plan::{GenerationPlan, Keys};
use super::setup::{PartyKey, Setup, decryption_primes};
use crate::error::{Error, Result};
use crate::mac::MacKeyShare;
use crate::session::Session;

/// What a party has once keys are made, and the channels for what comes next.
#[non_exhaustive]
pub struct GeneratedKeys<T> {
    /// What all parties know, the same for each.
    pub setup: Setup,
    /// What this one knows alone.
    pub key: PartyKey,
    /// What it took.
    pub phases: Vec<Phase>,
    /// The channels.
    pub transport: T,
}

/// Makes keys for a plan with the other parties.
///
/// # Errors
/// [`Error::NoParameters`] for a plan of dealt keys, as [`Session::new`], and [`synchromesh_parties::Error::Abort`]
/// with the blame for a party whose share is not what it should be: no key may be used then.
pub fn generate_keys<T: Transport>(
    transport: T,
    plan: GenerationPlan,
    observer: Box<Observer<'_>>,
) -> Result<GeneratedKeys<T>> {
    KeyMaker::new(transport, plan, observer)?.make()
}

/// The same with a share of the MAC key that this party has already: what is made with these keys and what was made before
/// under that MAC key go together, if all parties go on with theirs.
///
/// # Errors
/// As [`generate_keys`]; [`Error::MacKeyBurnt`] for a key that others may know, and then nothing was sent.
pub fn generate_keys_with<T: Transport>(
    transport: T,
    plan: GenerationPlan,
    mac: MacKeyShare,
    observer: Box<Observer<'_>>,
) -> Result<GeneratedKeys<T>> {
    mac.ready()?;
    let mut maker = KeyMaker::new(transport, plan, observer)?;
    maker.mac = Some(mac);
    maker.make()
}

/// A party's run.
pub(crate) struct KeyMaker<'a, T> {
    session: Session<T>,
    plan: GenerationPlan,
    context: Arc<Context>,
    recorder: Recorder<'a>,
    /// The share of the MAC key, if it is not to be drawn.
    mac: Option<MacKeyShare>,
    pub(crate) conduct: Box<dyn Conduct + 'a>,
}

impl<'a, T: Transport> KeyMaker<'a, T> {
    pub(crate) fn new(transport: T, plan: GenerationPlan, observer: Box<Observer<'a>>) -> Result<Self> {
        let refused = |reason: &str| Error::NoParameters {
            shape: plan.shape().to_string(),
            parties: plan.parties(),
            reason: reason.into(),
        };
        if plan.keys() != Keys::Generated {
            return Err(refused("its bounds hold for keys from a dealer only"));
        }
        let (party, parties) = (transport.party(), transport.parties());
        if parties != plan.parties() {
            return Err(synchromesh_parties::Error::Parties { party, parties, most: plan.parties() }.into());
        }
        let recorder = Recorder::new("key_session", observer);
        let agreed = blake3::hash(plan.to_json().as_bytes());
        let description = format!("keys for matrix triples {} by plan {agreed}", plan.shape());
        let session = Session::new(transport, plan.field(), plan.statistical_security(), &description)?;
        let context = Context::new(plan.params().clone())?;
        let (mac, conduct) = (None, Box::new(Honest));
        Ok(Self { session, plan, context, recorder, mac, conduct })
    }

    pub(crate) fn make(mut self) -> Result<GeneratedKeys<T>> {
        let params = self.plan.params().rlwe().clone();
        let sources = self.plan.key_parts(&self.context)?;
        let seeds = Seeds::new(self.session.coin()?, sources.len());
        let seed = Randomness::from_os().next_seed()?;
        let secret = self.conduct.secret(params.secret().sample(&seed, Purpose::SecretKey, 0, params.n()));
        let context = Arc::clone(&self.context);
        let maker = Maker { context: context.rlwe(), keys: &sources, seeds: &seeds, conduct: &*self.conduct };
        let (recorder, parties) = (&mut self.recorder, self.plan.parties());
        let mut observer = |session: &mut session::Session<T>, step| match step {
            Step::Shares => recorder.enter(session, "key_shares", parties),
            Step::Relinearisation => recorder.enter(session, "relinearisation_key", parties),
            Step::Checked(done) => recorder.tell(session, done, parties),
            _ => {}
        };
        let ProvenKeys { public, evaluation, .. } =
            maker.make(&mut self.session, std::slice::from_ref(&secret), &mut observer)?;
        self.finish(&secret, seeds.id, public, evaluation)
    }

    fn finish(
        mut self,
        secret: &SmallPoly,
        id: KeyId,
        public: PublicKey,
        keys: EvaluationKeys,
    ) -> Result<GeneratedKeys<T>> {
        let (backend, primes) = (self.context.backend(), decryption_primes(&self.plan)?);
        let share = SecretPoly::new(Poly::from_small(backend, &primes, secret)?.into_ntt(backend)?);
        let mac = self.mac.take().map_or_else(|| MacKeyShare::random(self.plan.field()), Ok)?;
        let key = PartyKey::with_share(self.session.party(), id, share, mac)?;
        self.recorder.enter(&mut self.session, "key_session", 1);
        let setup = Setup::new(self.plan, self.context, public, keys, None)?;
        self.recorder.enter(&mut self.session, "done", 1);
        Ok(GeneratedKeys {
            setup,
            key,
            phases: self.recorder.phases().to_vec(),
            transport: self.session.into_transport()?,
        })
    }
}
