//! Columns decrypted by those who are there, for all of them; what is read before anybody is called.

use std::path::{Path, PathBuf};

use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::bundle::{Bundle, CIPHERTEXT, ColumnHead, KEY, Kind};
use synchromesh::ckks::Ckks;
use synchromesh::plan::{Plan, SchemeName};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::wire::{Authentic, EnvelopeKey};
use synchromesh::scheme::{Scheme, Values};
use synchromesh::session::Session as Opened;

use super::{Floor, JOURNAL, Party, Ready, Traffic, authentic, ended, envelope, traffic};
use crate::error::{Error, Result};
use crate::joint::{KeyShare, Quorum};
use crate::journal::Decryptions;

/// A column that was decrypted.
pub struct Column {
    /// Its name, and how many of the numbers are its own.
    pub head: ColumnHead,
    /// The slots of each of its ciphertexts.
    pub values: Vec<Values>,
    /// How far a number may be off; 0 where results are exact.
    pub error_bound: f64,
}

impl std::fmt::Debug for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Column({:?}, to {})", self.head, self.error_bound)
    }
}

/// Columns that were decrypted.
#[derive(Debug)]
pub struct Decrypted {
    /// The plan of the key.
    pub plan: Plan,
    /// The columns, in the order of the files.
    pub columns: Vec<Column>,
    /// Numbers of those who decrypted.
    pub members: Vec<usize>,
    /// Decryptions under the key so far, by this party's journal, and at most.
    pub decryptions: (u64, u64),
    /// What this party sent.
    pub traffic: Traffic,
}

/// A column as it is in its file, vouched for.
pub(super) struct Sealed {
    pub(super) bundle: Bundle,
    pub(super) head: ColumnHead,
    authentic: Authentic,
}

/// What is read before anybody is called.
pub(super) struct Holder {
    pub(super) ready: Ready,
    pub(super) plan: Plan,
    pub(super) envelope: EnvelopeKey,
    share: Bundle,
    journal: PathBuf,
    pub(super) columns: Vec<Sealed>,
}

impl Party {
    /// Decrypts the columns in these files with the others who are there, for all of them; of CKKS with this many bits of the bound of
    /// each message right in every slot.
    ///
    /// # Errors
    /// [`Error::Unproven`] for a file that no holder of the envelope key vouches for, and all others of files, plans and too few
    /// parties, before anybody is called; those of [`Quorum::decrypt`].
    pub fn decrypt(&self, keys: &Path, inputs: &[&Path], precision: f64, floor: &Floor) -> Result<Decrypted> {
        let holder = self.holder(keys, inputs, floor)?;
        match holder.plan.scheme {
            SchemeName::Bfv => holder.decrypt::<Bfv>(precision),
            SchemeName::Bgv => holder.decrypt::<Bgv>(precision),
            SchemeName::Ckks => holder.decrypt::<Ckks>(precision),
        }
    }

    pub(super) fn holder(&self, keys: &Path, inputs: &[&Path], floor: &Floor) -> Result<Holder> {
        let none = || Error::Unproven {
            path: keys.join(Kind::EnvelopeKey.file_name().unwrap_or_default()),
            why: synchromesh::bundle::Unproven::NoEnvelopeKey,
        };
        let envelope = envelope(keys)?.ok_or_else(none)?;
        let share = authentic(keys, Kind::KeyShare, &envelope)?;
        let plan = share.plan()?;
        let joint = floor.admit(&plan)?;
        let column = |path: &&Path| {
            let bundle = Bundle::read(path)?.require(Kind::Column)?;
            let vouched = bundle.authentic(Some(&envelope));
            let authentic = vouched.map_err(|why| Error::Unproven { path: path.to_path_buf(), why })?;
            Ok(Sealed { head: ColumnHead::of(&bundle)?, bundle, authentic })
        };
        let columns = inputs.iter().map(column).collect::<Result<Vec<_>>>()?;
        let ready = self.ready()?;
        ready.require(joint.threshold, &joint)?;
        Ok(Holder { ready, plan, envelope, share, journal: keys.join(JOURNAL), columns })
    }
}

/// A holder with its share, and all ciphertexts of all columns.
pub(super) struct Prepared<S: Scheme> {
    pub(super) opened: Opened<S>,
    pub(super) share: KeyShare,
    pub(super) journal: Decryptions,
    pub(super) ciphertexts: Vec<S::Ciphertext<Cpu>>,
    /// How many each column has.
    pub(super) counts: Vec<usize>,
}

impl<S: Scheme> Prepared<S> {
    pub(super) fn of(holder: &Holder) -> Result<Self> {
        let opened = holder.plan.open::<S>()?;
        let share = KeyShare::from_bytes(opened.rlwe(), holder.share.one(KEY)?)?;
        if share.member() != holder.ready.number {
            return Err(Error::AnothersShare { member: share.member(), party: holder.ready.number });
        }
        let journal = share.open_journal(&holder.journal)?;
        let (mut ciphertexts, mut counts) = (Vec::new(), Vec::new());
        for column in &holder.columns {
            let trust = Trust::Enclosed(column.authentic);
            let read = |bytes| S::read(opened.context(), bytes, Some(share.key()), trust);
            let before = ciphertexts.len();
            for bytes in column.bundle.all(CIPHERTEXT) {
                ciphertexts.push(read(bytes)?);
            }
            counts.push(ciphertexts.len() - before);
        }
        Ok(Self { opened, share, journal, ciphertexts, counts })
    }
}

impl Holder {
    fn decrypt<S: Scheme>(self, precision: f64) -> Result<Decrypted> {
        let mut prepared = Prepared::<S>::of(&self)?;
        let mut session = self.ready.meet("synchromesh parties, decryption")?;
        let Prepared { opened, share, journal, ciphertexts, counts } = &mut prepared;
        let (list, before): (Vec<_>, _) = (ciphertexts.iter().collect(), journal.made());
        let mut members = Vec::new();
        let results = Quorum::meet(&mut session, opened.rlwe(), share).and_then(|mut quorum| {
            members = quorum.members().to_vec();
            quorum.decrypt::<S>(opened.context(), journal, &list, precision)
        });
        let mut results = results.map_err(|error| ended(error, journal.made() > before))?.into_iter();
        let column = |(sealed, &count): (Sealed, &usize)| {
            let parts: Vec<_> = results.by_ref().take(count).collect();
            let error_bound = parts.iter().map(|part| part.error_bound).fold(0.0, f64::max);
            Column { head: sealed.head, values: parts.into_iter().map(|part| part.values).collect(), error_bound }
        };
        let columns = self.columns.into_iter().zip(counts.iter()).map(column).collect();
        let decryptions = (journal.made(), journal.most());
        Ok(Decrypted { plan: self.plan, columns, members, decryptions, traffic: traffic(&session) })
    }
}
