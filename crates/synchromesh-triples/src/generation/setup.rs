//! Keys for one plan: the public ones, and each party's share of the secret key; and how a dealer makes them.
//!
//! The share of the MAC key is drawn with them, or is one that there was before: then what is made with these keys and
//! what was made before go together.
//!
//! He draws the secret key, makes all public material, splits s into uniform shares modulo the level of decryptions,
//! and the MAC key into shares mod p, which he encrypts too. He knows everything; that he forgets it is what `security_model` "dealer" means.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use synchromesh::batch::{PlainPoly, Residues};
use synchromesh::bgv::{Bgv, Ciphertext, Context, Evaluator, Factor};
use synchromesh::exact::{Plaintext, Scheme};
use synchromesh::rlwe::file::{self, Access, Existing};
use synchromesh::rlwe::ring::{IndexSet, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::wire::{Expected, Header, ObjectType, ParamsDigest, Reader, WireError, Writer};
use synchromesh::rlwe::{EvaluationKeys, KeyId, PublicKey, Randomness, codec, entropy};
use zeroize::Zeroizing;

use super::circuit::believed;
use super::decryptions::DecryptionJournal;
use super::encryption::{dealt_log2_noise, read_fresh};
use super::floor::Floor;
use super::layout::Layout;
use super::mask::MaskKey;
use super::plan::{GenerationPlan, Keys};
use crate::error::{Error, Result};
use crate::field::Element;
use crate::mac::MacKeyShare;
use crate::mac::home::{Home, Name};
use crate::share::Shape;

/// First bytes of a party's key in the format before containers, which had no checksum and no record of the MAC key.
const FORMER: &[u8] = b"synchromesh party key 1\n";

/// Words of prepared keys that are kept, in bytes.
const PREPARED_BYTES: u64 = 1 << 30;

/// What all parties know.
pub struct Setup {
    plan: GenerationPlan,
    context: Arc<Context>,
    public: Arc<PublicKey>,
    keys: Arc<EvaluationKeys>,
    evaluator: Evaluator,
    layout: Layout,
    digest: [u8; 32],
    fresh: Factor,
    ciphertext_bytes: usize,
    alpha: Option<Arc<Ciphertext>>,
}

/// What one party knows alone.
pub struct PartyKey {
    party: usize,
    key: KeyId,
    share: SecretPoly<synchromesh::rlwe::ring::Cpu>,
    flood: MaskKey,
    mac: MacKeyShare,
    file: OnceLock<PathBuf>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Setup({})", blake3::Hash::from(self.digest))
    }
}

impl std::fmt::Debug for PartyKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PartyKey(party {}, secret)", self.party)
    }
}

/// Deals keys into a directory: the files of [`Setup::write`] and of [`PartyKey::write`] for each party, all or none.
/// Returns their paths.
///
/// # Errors
/// As [`deal`]; [`synchromesh_parties::Error::File`] if one is there already or cannot be written.
pub fn deal_into(plan: GenerationPlan, directory: &Path) -> Result<Vec<PathBuf>> {
    deal_into_with(plan, None, directory)
}

/// The same with these shares of the MAC key, one for each party.
///
/// # Errors
/// As [`deal_into`] and [`deal_with`].
pub fn deal_into_with(plan: GenerationPlan, macs: Option<Vec<MacKeyShare>>, directory: &Path) -> Result<Vec<PathBuf>> {
    let keys: Vec<PathBuf> = (0..plan.parties()).map(|party| PartyKey::path(directory, party)).collect();
    let public = ["plan.json", "public.key", "eval.keys", "mac.ct"].map(|name| directory.join(name));
    let names = public.iter().chain(&keys).filter_map(|path| path.file_name()?.to_str()).collect::<Vec<_>>();
    let begun = file::Set::begin(directory, &names)?;
    let (setup, dealt) = deal_with(plan, macs)?;
    let begun = begun.open()?;
    dealt.iter().try_for_each(|key| key.write(directory, &setup).map(drop))?;
    setup.write(directory)?;
    begun.finish()?;
    // A key is of use with the two beside it alone.
    let with_records = |path: &PathBuf| [path.with_extension("journal"), path.with_extension("mac"), path.clone()];
    Ok(public.into_iter().chain(keys.iter().flat_map(with_records)).collect())
}

/// Draws all keys, as a dealer: the public ones and each party's.
///
/// # Errors
/// [`synchromesh_parties::Error::Entropy`] without randomness, or [`Error::Library`].
pub fn deal(plan: GenerationPlan) -> Result<(Setup, Vec<PartyKey>)> {
    deal_with(plan, None)
}

/// The same with these shares of the MAC key, one for each party, or with fresh ones.
///
/// # Errors
/// As [`deal`]; [`synchromesh_parties::Error::Parties`] for another number of shares, [`Error::MacKeyBurnt`] for one that
/// others may know.
pub fn deal_with(plan: GenerationPlan, macs: Option<Vec<MacKeyShare>>) -> Result<(Setup, Vec<PartyKey>)> {
    let mut macs = match macs {
        None => (0..plan.parties()).map(|_| MacKeyShare::random(plan.field())).collect::<Result<Vec<_>>>()?,
        Some(macs) if macs.len() == plan.parties() => macs,
        Some(macs) => {
            let (party, parties) = (macs.len(), plan.parties());
            return Err(synchromesh_parties::Error::Parties { party, parties, most: parties }.into());
        }
    }
    .into_iter();
    let context = Context::new(plan.params().clone())?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = EvaluationKeys::generate_parts(context.rlwe(), &secret, plan.key_parts(&context)?, &mut randomness)?;
    let primes = decryption_primes(&plan)?;
    let mut rest = SecretPoly::new(secret.slots().poly().restrict(context.backend(), &primes)?);
    let mut parties: Vec<PartyKey> = Vec::with_capacity(plan.parties());
    for party in 0..plan.parties() {
        let share = if party + 1 < plan.parties() {
            let share = SecretPoly::uniform(context.rlwe(), &primes)?;
            let mut next = rest.poly().duplicate(context.backend())?;
            next.sub_assign(context.backend(), share.poly())?;
            rest = SecretPoly::new(next);
            share
        } else {
            SecretPoly::new(rest.poly().duplicate(context.backend())?)
        };
        let mac = macs.next().ok_or_else(Error::aborted)?;
        parties.push(PartyKey::with_share(party, secret.id(), share, mac)?);
    }
    let alpha = match plan.keys() {
        Keys::Dealt => Some(encrypted_mac_key(&plan, &context, &public, &parties)?.to_bytes(&context, None)?),
        Keys::Generated => None,
    };
    Ok((Setup::new(plan, context, public, keys, alpha)?, parties))
}

/// The sum of the parties' shares of the MAC key in every slot, encrypted by whoever knows them all.
fn encrypted_mac_key(
    plan: &GenerationPlan,
    context: &Context,
    public: &PublicKey,
    parties: &[PartyKey],
) -> Result<Ciphertext> {
    let mut coefficients = Zeroizing::new(vec![Element::ZERO; plan.params().n()]);
    for party in parties {
        coefficients[0] = plan.field().add(coefficients[0], party.mac.secret());
    }
    let residues = Residues::Wide(coefficients.iter().map(|x| x.0).collect());
    let plaintext = Plaintext::from(PlainPoly::new(context.params().t(), residues)?);
    Ok(context.encrypt(public, &plaintext, &mut Randomness::from_os())?)
}

/// The primes of the highest level at which ciphertexts are decrypted: of each party's share of s.
pub(super) fn decryption_primes(plan: &GenerationPlan) -> Result<IndexSet> {
    Ok(plan.params().rlwe().level(plan.decryption())?.clone())
}

impl Setup {
    pub(super) fn new(
        plan: GenerationPlan,
        context: Arc<Context>,
        public: PublicKey,
        keys: EvaluationKeys,
        alpha: Option<Vec<u8>>,
    ) -> Result<Self> {
        let fresh = Bgv::fresh_header(&context, context.params().top_level())?;
        let read = |bytes: Vec<u8>| {
            let read = read_fresh(&context, (public.id(), &fresh), &bytes)?;
            believed(&context, &read, dealt_log2_noise(context.params()))
        };
        let alpha = alpha.map(read).transpose()?;
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 triples, setup");
        let mut parts = vec![
            plan.to_json().into_bytes(),
            public.to_bytes(context.rlwe(), None)?,
            keys.to_bytes(context.rlwe(), None)?,
        ];
        if let Some(alpha) = &alpha {
            parts.push(alpha.to_bytes(&context, None)?);
        }
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(&part);
        }
        keys.set_prepared_budget(PREPARED_BYTES);
        let keys = Arc::new(keys);
        let evaluator = Evaluator::new(&context, Some(Arc::clone(&keys)));
        let layout = Layout::new(plan.matrices())?;
        let zero = context.encode_coefficients(&[0i64][..])?;
        let sample = context.encrypt(&public, &zero, &mut Randomness::from_os())?;
        let ciphertext_bytes = sample.to_bytes(&context, None)?.len();
        let digest = *hasher.finalize().as_bytes();
        let (public, alpha) = (Arc::new(public), alpha.map(Arc::new));
        Ok(Self { plan, context, public, keys, evaluator, layout, digest, fresh, ciphertext_bytes, alpha })
    }

    /// The same setup, turned to another shape of its plan.
    ///
    /// # Errors
    /// As [`GenerationPlan::of`].
    pub fn of(&self, shape: Shape) -> Result<Self> {
        let plan = self.plan.of(shape)?;
        let layout = Layout::new(plan.matrices())?;
        Ok(Self {
            plan,
            layout,
            context: Arc::clone(&self.context),
            public: Arc::clone(&self.public),
            keys: Arc::clone(&self.keys),
            evaluator: Evaluator::new(&self.context, Some(Arc::clone(&self.keys))),
            digest: self.digest,
            fresh: self.fresh.clone(),
            ciphertext_bytes: self.ciphertext_bytes,
            alpha: self.alpha.clone(),
        })
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &GenerationPlan {
        &self.plan
    }

    /// The hash of all of it.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(crate) fn key(&self) -> KeyId {
        self.public.id()
    }

    pub(crate) fn keys(&self) -> &EvaluationKeys {
        &self.keys
    }

    pub(crate) fn evaluator(&self) -> &Evaluator {
        &self.evaluator
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn fresh_header(&self) -> &Factor {
        &self.fresh
    }

    /// The encryption of the MAC key that came with the keys, if it did; else the parties make one in each session.
    pub(crate) fn alpha(&self) -> Option<&Ciphertext> {
        self.alpha.as_deref()
    }

    /// Bytes of a fresh ciphertext as it travels.
    pub(crate) fn ciphertext_bytes(&self) -> usize {
        self.ciphertext_bytes
    }

    /// Writes `plan.json`, `public.key`, `eval.keys`, and `mac.ct` if a dealer made the keys.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if one is there already or cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        self.write_keys(directory)?;
        self.plan.write(directory)
    }

    /// Writes all of them but the plan, `public.key` last.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_keys(&self, directory: &Path) -> Result<()> {
        let rlwe = self.context.rlwe();
        let put = |name: &str, bytes: &[u8]| file::write(&directory.join(name), bytes, Access::Public, Existing::Keep);
        if let Some(alpha) = &self.alpha {
            put("mac.ct", &alpha.to_bytes(&self.context, None)?)?;
        }
        put("eval.keys", &self.keys.to_bytes(rlwe, None)?)?;
        Ok(put("public.key", &self.public.to_bytes(rlwe, None)?)?)
    }

    /// Whether there are keys beside the plan in this directory.
    #[must_use]
    pub fn exists(directory: &Path) -> bool {
        directory.join("public.key").exists()
    }

    /// Reads what [`Self::write`] wrote, and checks the plan's certificates again, and that it gives what `floor` wants.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`], [`Error::BelowFloor`], [`Error::NoParameters`] for a plan that does not
    /// hold, [`Error::Library`] for damaged keys.
    pub fn read(directory: &Path, floor: &Floor) -> Result<Self> {
        Self::read_keys(GenerationPlan::read(directory, floor)?, directory)
    }

    /// Reads the keys that belong to a plan.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_keys(plan: GenerationPlan, directory: &Path) -> Result<Self> {
        let limit = |object| codec::largest_container(plan.params().rlwe(), object);
        let public = file::read(&directory.join("public.key"), limit(ObjectType::PublicKey))?;
        let keys = file::read(&directory.join("eval.keys"), limit(ObjectType::SwitchKeySet))?;
        let alpha = match plan.keys() {
            Keys::Dealt => Some(file::read(&directory.join("mac.ct"), limit(ObjectType::Ciphertext))?),
            Keys::Generated => None,
        };
        Self::from_bytes(plan, &public, &keys, alpha)
    }

    /// The setup of the contents of these files: `public.key`, `eval.keys` and, from a dealer, `mac.ct`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_bytes(plan: GenerationPlan, public: &[u8], keys: &[u8], alpha: Option<Vec<u8>>) -> Result<Self> {
        let context = Context::new(plan.params().clone())?;
        let public = PublicKey::from_bytes(context.rlwe(), public, None, None)?;
        let keys = EvaluationKeys::from_bytes(context.rlwe(), keys, Some(public.id()), None)?;
        Self::new(plan, context, public, keys, alpha)
    }
}

impl PartyKey {
    /// The key of a party with these shares of s, on the primes of the highest level of decryptions, and of the MAC key;
    /// the rest is drawn.
    pub(super) fn with_share(
        party: usize,
        key: KeyId,
        share: SecretPoly<synchromesh::rlwe::ring::Cpu>,
        mac: MacKeyShare,
    ) -> Result<Self> {
        mac.usable()?;
        let flood = MaskKey::new(Zeroizing::new(entropy::random_bytes::<32>()?));
        Ok(Self { party, key, share, flood, mac, file: OnceLock::new() })
    }

    /// Number of the party, from 0.
    #[must_use]
    pub fn party(&self) -> usize {
        self.party
    }

    /// The party's share of the MAC key.
    #[must_use]
    pub fn mac(&self) -> &MacKeyShare {
        &self.mac
    }

    pub(crate) fn share(&self) -> &SecretPoly<synchromesh::rlwe::ring::Cpu> {
        &self.share
    }

    pub(crate) fn flood(&self) -> &MaskKey {
        &self.flood
    }

    /// Where the file of a party's key is.
    #[must_use]
    pub fn path(directory: &Path, party: usize) -> PathBuf {
        directory.join(format!("party-{party}.key"))
    }

    /// The file that the key was read from or first written to.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.file.get().cloned()
    }

    /// The same key as if nobody had used it, in no file.
    #[cfg(test)]
    pub(crate) fn unused(&self, setup: &Setup) -> Self {
        let share = SecretPoly::new(self.share.poly().duplicate(setup.context.backend()).unwrap());
        let mac = MacKeyShare::of(self.mac.secret(), self.mac.name().unwrap(), Vec::new());
        Self { party: self.party, key: self.key, share, flood: self.flood.clone(), mac, file: OnceLock::new() }
    }

    /// Writes the key to `party-<i>.key`, mode 0600: a container of the digest of the setup, the party's number, the
    /// name of the MAC key, the flooding key, the share of the MAC key, and the share of s in words. Beside it go
    /// `party-<i>.journal`, the [journal](DecryptionJournal) of decryptions, and `party-<i>.mac`, the record of the MAC
    /// key, without which the key is not read.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if it is there already or cannot be written.
    pub fn write(&self, directory: &Path, setup: &Setup) -> Result<PathBuf> {
        let path = Self::path(directory, self.party);
        self.write_to(&path, setup)?;
        Ok(path)
    }

    /// As [`Self::write`], to this file.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_to(&self, path: &Path, setup: &Setup) -> Result<()> {
        if path.exists() {
            return Err(file::FileError::Exists { path: path.to_owned() }.into());
        }
        let bytes = Zeroizing::new(self.to_bytes(setup)?);
        DecryptionJournal::begin(&path.with_extension("journal"), self, Existing::beside(path))?;
        self.mac.house(path)?;
        self.mac.homes()?.iter().try_for_each(|home| home.wrote(path))?;
        file::write(path, &bytes, Access::Secret, Existing::Keep)?;
        let _ = self.file.set(path.to_owned());
        Ok(())
    }

    fn to_bytes(&self, setup: &Setup) -> Result<Vec<u8>> {
        let words = Zeroizing::new(self.share.poly().to_words(setup.context.backend())?);
        let params = ParamsDigest(*setup.plan.params().rlwe().digest());
        let mut writer = Writer::new(Header::new(ObjectType::PartyKey, params, self.key), 128 + 8 * words.len());
        writer.raw(&setup.digest);
        writer.u64(self.party as u64);
        writer.raw(&self.mac.name()?.0);
        writer.raw(self.flood.bytes());
        let mut mac = Zeroizing::new(Vec::with_capacity(setup.plan.field().element_bytes()));
        setup.plan.field().write(self.mac.secret(), &mut mac);
        writer.raw(&mac);
        words.iter().for_each(|word| writer.u64(*word));
        Ok(writer.finish(None))
    }

    /// Reads a party's key.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`], [`synchromesh_parties::Error::Format`] for a file of another setup or
    /// party, or a damaged one; [`Error::Unbound`] for one without its record, and [`Error::MacKeyBurnt`] for one whose
    /// MAC key others may know.
    pub fn read(path: &Path, setup: &Setup, party: usize) -> Result<Self> {
        let fail = |reason: String| Error::format(path, reason);
        let primes = decryption_primes(&setup.plan)?;
        let (n, field) = (setup.plan.params().n(), setup.plan.field());
        let payload = (32 + 8 + 16 + 32 + field.element_bytes() + 8 * n * primes.len()) as u64;
        let bytes = Zeroizing::new(file::read(path, payload + 4096)?);
        if bytes.starts_with(FORMER) {
            let reason = "it is of the former format 1, which did not say whether its MAC key is still secret";
            return Err(fail(reason.into()));
        }
        let params = ParamsDigest(*setup.plan.params().rlwe().digest());
        let any = Expected::any(ObjectType::PartyKey, payload);
        let read = || {
            let mut reader = Reader::open(&bytes, &Expected { params: Some(params), key: Some(setup.key()), ..any })?;
            let (digest, number, name) = (reader.array::<32>()?, reader.u64()?, Name(reader.array()?));
            let (flood, mac) = (Zeroizing::new(reader.array::<32>()?), reader.raw(field.element_bytes())?);
            let count = n * primes.len();
            let words = (0..count).map(|_| reader.u64()).collect::<std::result::Result<Vec<u64>, WireError>>();
            let words = Zeroizing::new(words?);
            reader.finish()?;
            Ok((digest, number, name, flood, mac, words))
        };
        let (digest, number, name, flood, mac, words) = read().map_err(|error: WireError| fail(error.to_string()))?;
        if (digest, number) != (setup.digest, party as u64) {
            return Err(fail("it is of another setup or party".into()));
        }
        let ring = setup.plan.params().rlwe().ring();
        let above = |(prime, limb): (usize, &[u64])| {
            let q = ring.modulus(prime).value();
            limb.iter().fold(false, |above, &x| above | (x >= q))
        };
        if primes.iter().zip(words.chunks(n)).map(above).fold(false, |any, above| any | above) {
            return Err(fail("its share of the secret key is not below the primes".into()));
        }
        let share = SecretPoly::new(Poly::from_words(setup.context.backend(), &primes, &words)?);
        let home = Home::open(&path.with_extension("mac"), name, path)?;
        let mac = MacKeyShare::of(field.read(mac)?, name, vec![home]);
        mac.usable()?;
        let file = OnceLock::from(path.to_owned());
        Ok(Self { party, key: setup.key(), share, flood: MaskKey::new(flood), mac, file })
    }
}
