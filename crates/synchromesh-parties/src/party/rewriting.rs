//! Columns that those who are there write anew, without seeing what they hold: under the key of a receiver, or fresh under their
//! own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::bundle::{Bundle, CIPHERTEXT, COLUMN, KEY, Kind, PLAN};
use synchromesh::ckks::Ckks;
use synchromesh::plan::{Plan, SchemeName};
use synchromesh::rlwe::PublicKey;
use synchromesh::rlwe::file::{self, Access, Existing};
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::wire::EnvelopeKey;
use synchromesh::scheme::Scheme;
use synchromesh::shares::Shares;

use super::opening::{Holder, Prepared};
use super::{Floor, Party, Traffic, authentic, ended, envelope, traffic};
use crate::error::Result;
use crate::joint::Quorum;
use crate::journal::Decryptions;
use crate::tls::Tls;

/// The section of what Python knows of a column beyond its length, which goes along.
pub const TENSOR: &str = "tensor";

/// Columns that were written anew.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The plan of the key.
    pub plan: Plan,
    /// Numbers in all columns.
    pub rows: usize,
    /// Ciphertexts of all columns.
    pub ciphertexts: usize,
    /// The level of all of them, which is that of fresh ones where they were refreshed, and the lowest where they differ.
    pub level: usize,
    /// The files, with their sizes in bytes.
    pub files: Vec<(PathBuf, u64)>,
    /// Whether they are authenticated under an envelope key: the receiver's, or their own.
    pub authenticated: bool,
    /// Numbers of those who did it.
    pub members: Vec<usize>,
    /// Decryptions under the key so far, by this party's journal, and at most.
    pub decryptions: (u64, u64),
    /// What this party sent.
    pub traffic: Traffic,
}

/// Where columns go, under whose plan and envelope key.
struct Outputs<'a> {
    plan: Plan,
    envelope: Option<EnvelopeKey>,
    paths: &'a [&'a Path],
    existing: Existing,
}

impl Party {
    /// Brings the columns in these files under the key of a receiver, whose directory has `public.key` and, if it is to believe
    /// the certificates, `envelope.key`; the columns go to `outputs`, one for each input.
    ///
    /// # Errors
    /// As [`Self::decrypt`]; those of [`Quorum::pass_on`].
    pub fn pass_on(
        &self,
        keys: &Path,
        inputs: &[&Path],
        (receiver, outputs, existing): (&Path, &[&Path], Existing),
        precision: f64,
        floor: &Floor,
    ) -> Result<Rewritten> {
        outputs.iter().try_for_each(|path| file::permit(path, existing))?;
        let holder = self.holder(keys, inputs, floor)?;
        let envelope = envelope(receiver)?;
        let key = Bundle::read(&receiver.join(Kind::PublicKey.file_name().unwrap_or_default()))?;
        let outputs = Outputs { plan: key.plan()?, envelope, paths: outputs, existing };
        let key = key.require(Kind::PublicKey)?;
        match holder.plan.scheme {
            SchemeName::Bfv => holder.pass_on::<Bfv>(&key, outputs, precision),
            SchemeName::Bgv => holder.pass_on::<Bgv>(&key, outputs, precision),
            SchemeName::Ckks => holder.pass_on::<Ckks>(&key, outputs, precision),
        }
    }

    /// Makes the columns in these files fresh, at the highest level, under the same key; they go to `outputs`, one for each
    /// input, authenticated under the envelope key of all holders.
    ///
    /// # Errors
    /// As [`Self::decrypt`]; those of [`Quorum::refresh`].
    pub fn refresh(
        &self,
        keys: &Path,
        inputs: &[&Path],
        (outputs, existing): (&[&Path], Existing),
        floor: &Floor,
    ) -> Result<Rewritten> {
        outputs.iter().try_for_each(|path| file::permit(path, existing))?;
        let holder = self.holder(keys, inputs, floor)?;
        let key = authentic(keys, Kind::PublicKey, &holder.envelope)?;
        let envelope = Some(holder.envelope.clone());
        let outputs = Outputs { plan: holder.plan.clone(), envelope, paths: outputs, existing };
        match holder.plan.scheme {
            SchemeName::Bfv => holder.refresh::<Bfv>(&key, outputs),
            SchemeName::Bgv => holder.refresh::<Bgv>(&key, outputs),
            SchemeName::Ckks => holder.refresh::<Ckks>(&key, outputs),
        }
    }
}

/// What a quorum makes of ciphertexts under a public key.
type Rewrite<'a, S> = dyn Fn(
        &mut Quorum<'_, Tls>,
        &Arc<<S as Scheme>::Context<Cpu>>,
        &mut Decryptions,
        &PublicKey,
        &[&<S as Scheme>::Ciphertext<Cpu>],
    ) -> Result<Vec<<S as Scheme>::Ciphertext<Cpu>>>
    + 'a;

impl Holder {
    fn pass_on<S: Scheme>(self, key: &Bundle, outputs: Outputs<'_>, precision: f64) -> Result<Rewritten> {
        self.rewrite::<S>("synchromesh parties, passing on", key, outputs, &|quorum, context, journal, key, list| {
            quorum.pass_on::<S>(context, journal, list, key, precision)
        })
    }

    fn refresh<S: Shares>(self, key: &Bundle, outputs: Outputs<'_>) -> Result<Rewritten> {
        self.rewrite::<S>("synchromesh parties, refresh", key, outputs, &|quorum, context, journal, key, list| {
            quorum.refresh::<S>(context, journal, key, list)
        })
    }

    /// Reads, meets, has it done, and writes.
    fn rewrite<S: Scheme>(
        self,
        description: &str,
        key: &Bundle,
        outputs: Outputs<'_>,
        make: &Rewrite<'_, S>,
    ) -> Result<Rewritten> {
        let mut prepared = Prepared::<S>::of(&self)?;
        let Prepared { opened, share, journal, ciphertexts, counts } = &mut prepared;
        let context = opened.context();
        let key = PublicKey::from_bytes(opened.rlwe(), key.one(KEY)?, None, None)?;
        let mut session = self.ready.meet(description)?;
        let (list, before): (Vec<_>, _) = (ciphertexts.iter().collect(), journal.made());
        let mut members = Vec::new();
        let made = Quorum::meet(&mut session, opened.rlwe(), share).and_then(|mut quorum| {
            members = quorum.members().to_vec();
            make(&mut quorum, context, journal, &key, &list)
        });
        let made = made.map_err(|error| ended(error, journal.made() > before))?;
        let levels = made.iter().map(|x| Ok(S::state(context, x)?.level)).collect::<Result<Vec<usize>>>()?;
        let (mut made, plan) = (made.iter(), outputs.plan.bare().to_json()?);
        let mut files = Vec::with_capacity(self.columns.len());
        for ((column, &count), path) in self.columns.iter().zip(counts.iter()).zip(outputs.paths) {
            let parts = made.by_ref().take(count).map(|x| S::write(context, x, None));
            let parts = parts.collect::<std::result::Result<Vec<_>, _>>()?;
            let head = column.head.to_bytes()?;
            let mut sections = vec![(PLAN, plan.as_bytes()), (COLUMN, &head[..])];
            sections.extend(column.bundle.all(TENSOR).map(|bytes| (TENSOR, bytes)));
            sections.extend(parts.iter().map(|bytes| (CIPHERTEXT, &bytes[..])));
            let written = (Access::Public, outputs.existing);
            let size = Bundle::write(path, Kind::Column, &sections, outputs.envelope.as_ref(), written)?;
            files.push((path.to_path_buf(), size));
        }
        Ok(Rewritten {
            rows: self.columns.iter().map(|column| column.head.rows).sum(),
            ciphertexts: counts.iter().sum(),
            level: levels.into_iter().min().unwrap_or(0),
            plan: self.plan,
            files,
            authenticated: outputs.envelope.is_some(),
            members,
            decryptions: (journal.made(), journal.most()),
            traffic: traffic(&session),
        })
    }
}
