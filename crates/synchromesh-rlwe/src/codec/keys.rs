//! Keys as bytes: small coefficients of the secret, a seed and b for everything public.

use std::sync::Arc;

use synchromesh_ring::sampler::{Seed, SmallPoly};
use synchromesh_ring::{Backend, Error as RingError, IndexSet};
use zeroize::Zeroizing;

use super::{SEED_BYTES, digest, open, poly_bytes, read_poly, require_named, require_seeded, write_poly, write_u16};
use crate::context::Context;
use crate::derived_key::{second_id, sparse_id};
use crate::error::Error;
use crate::evaluation_keys::EvaluationKeys;
use crate::key_part::KeyPart;
use crate::params::Params;
use crate::public_key::PublicKey;
use crate::secret_key::SecretKey;
use crate::switch_key::{Source, SwitchKey, UniformHalves};
use crate::switch_plan::{DigitSizes, KeyShape};
use crate::wire::{
    EnvelopeKey, HEADER_BYTES, Header, KeyId, ObjectType, Reader, TRAILER_BYTES, WireError, Writer, limb_bytes,
};

const SQUARE: u8 = 0;
const GALOIS: u8 = 1;
const OTHER_KEY: u8 = 2;
/// Added to the tag of a key that was trimmed.
const TRIMMED: u8 = 0x20;

/// Added to the tag of a key whose halves a_j follow instead of their seed.
const GIVEN: u8 = 0x10;

/// Beside the source: a byte with the radix follows.
const RADIX: u8 = 0x80;
/// Beside the source: the special primes follow, which are not all of P.
const SPECIAL: u8 = 0x40;

/// What stands before the container of a larger ring's keys: its length.
const INSIDE_BYTES: u64 = 8;

/// Largest absolute value of a secret coefficient.
const SECRET_BOUND: u64 = 1;

pub(super) fn secret_key_bytes(params: &Params) -> u64 {
    limb_bytes(params.n(), 2 * SECRET_BOUND + 1).unwrap_or(usize::MAX) as u64
}

pub(super) fn public_key_bytes(params: &Params) -> u64 {
    (SEED_BYTES as u64).saturating_add(poly_bytes(params, &params.keyed()) as u64)
}

/// Most keys a set may have: the N Galois elements, s^2, and as many other keys.
fn largest_key_count(params: &Params) -> usize {
    2 * params.n()
}

pub(super) fn largest_key_set_bytes(params: &Params) -> u64 {
    let l = params.q().len();
    // At worst a row for each bit of each prime.
    let largest = |[_, special]: [&IndexSet; 2], keyed: IndexSet| {
        let row = poly_bytes(params, &keyed) as u64;
        let lists = 8 + 2 * (61 * l + keyed.len());
        let head = (1 + 16 + 1 + 2 + 4 + SEED_BYTES + 2 * (l + special.len()) + lists) as u64;
        // Twice where the halves are given.
        let key = head.saturating_add(row.saturating_mul(2 * 61 * l as u64));
        key.saturating_mul(largest_key_count(params) as u64).saturating_add(4)
    };
    let first = largest([params.q(), params.p()], params.keyed());
    let second = params.second().map_or(0, |second| largest([&second.q, &second.special], second.keyed()));
    let sparse = params.sparse().map_or(0, |sparse| largest([&sparse.q, &sparse.special], sparse.keyed()));
    first.saturating_add(second).saturating_add(sparse)
}

/// Bytes of one switch key inside its container, with its seed, exact; saturates.
#[must_use]
pub fn switch_key_bytes(params: &Params, source: Source, part: &KeyPart) -> u64 {
    let argument = match source {
        Source::Square => 0,
        Source::Galois(_) => 4,
        Source::Key(_) => 16,
    };
    let (shape, rows, primes) = (part.shape(), part.rows().len(), part.primes().len());
    let lists = if part.is_whole(params) { 0 } else { 8 + 2 * (rows + primes) };
    let special = if &shape.special == params.p() { 0 } else { 2 + 2 * shape.special.len() };
    let radix = usize::from(shape.radix_bits.is_some());
    let fixed = 1 + argument + radix + special + 4 + 2 * shape.sizes.0.len() + lists + SEED_BYTES;
    (poly_bytes(params, part.primes()) as u64).saturating_mul(rows as u64).saturating_add(fixed as u64)
}

/// Bytes by which a switch key is longer whose uniform halves come from no seed; saturates.
#[must_use]
pub fn given_half_bytes(params: &Params, part: &KeyPart) -> u64 {
    let halves = (poly_bytes(params, part.primes()) as u64).saturating_mul(part.rows().len() as u64);
    halves.saturating_sub(SEED_BYTES as u64)
}

impl<B: Backend> SecretKey<B> {
    /// The secret key as a container, wiped when dropped. Write it with
    /// [`Access::Secret`](crate::file::Access::Secret).
    ///
    /// # Errors
    /// [`Error::Wire`] when the key's id is [`KeyId::NONE`].
    pub fn to_bytes(&self, context: &Context<B>, envelope: Option<&EnvelopeKey>) -> Result<Zeroizing<Vec<u8>>, Error> {
        require_named(self.id())?;
        let params = context.params();
        let header = Header::new(ObjectType::SecretKey, digest(params), self.id());
        // The exact size, so that the buffer never moves and no copy is left behind.
        let mut writer = Writer::new(header, secret_key_bytes(params) as usize);
        writer.small(SECRET_BOUND, self.small().as_slice())?;
        Ok(Zeroizing::new(writer.finish(envelope)))
    }

    /// The secret key in a container. The bytes are the caller's to wipe.
    ///
    /// # Errors
    /// [`Error::Wire`] for bytes that are not a secret key of these parameters, [`Error::Security`], or when the
    /// device fails.
    pub fn from_bytes(context: &Context<B>, bytes: &[u8], envelope: Option<&EnvelopeKey>) -> Result<Self, Error> {
        let params = context.params();
        let mut reader = open(params, bytes, ObjectType::SecretKey, None, envelope)?;
        require_seeded(&reader, false)?;
        super::require_present(&reader, secret_key_bytes(params) as usize)?;
        let mut small = Zeroizing::new(vec![0; params.n()]);
        reader.small_into(SECRET_BOUND, &mut small)?;
        let id = reader.header().key;
        reader.finish()?;
        Self::from_small(context, id, SmallPoly::from_vec(std::mem::take(&mut *small)))
    }
}

impl<B: Backend> PublicKey<B> {
    /// The public key as a container: the seed of a, then b.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`] under other parameters, [`Error::Wire`] when it names no key, or when the device fails.
    pub fn to_bytes(&self, context: &Context<B>, envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>, Error> {
        require_named(self.id())?;
        let params = context.params();
        params.require_digest(self.params_digest())?;
        let header = Header::new(ObjectType::PublicKey, digest(params), self.id()).seeded();
        let mut writer = Writer::new(header, public_key_bytes(params) as usize);
        writer.raw(self.seed().as_bytes());
        write_poly(&mut writer, context, self.b())?;
        Ok(writer.finish(envelope))
    }

    /// The public key in a container; of the secret key `key` if one is named.
    ///
    /// # Errors
    /// [`Error::Wire`] for bytes that are not such a key of these parameters, [`Error::Security`], or when the device
    /// fails.
    pub fn from_bytes(
        context: &Context<B>,
        bytes: &[u8],
        key: Option<KeyId>,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<Self, Error> {
        let params = context.params();
        let mut reader = open(params, bytes, ObjectType::PublicKey, key, envelope)?;
        require_seeded(&reader, true)?;
        let seed = Seed::from_bytes(reader.array()?);
        let b = read_poly(&mut reader, context, &params.keyed())?;
        let id = reader.header().key;
        reader.finish()?;
        Self::from_parts(context, id, seed, b)
    }
}

impl<B: Backend> EvaluationKeys<B> {
    /// Bytes of [`Self::to_bytes`], exact; saturates.
    #[must_use]
    pub fn wire_bytes(&self, params: &Params) -> u64 {
        let further = [self.second(), self.sparse()].into_iter().flatten();
        let keys = self.iter().chain(further.flat_map(Self::iter));
        let keys = keys.map(|key| {
            let seeded = switch_key_bytes(params, key.source(), key.part());
            match key.uniform() {
                UniformHalves::Seed(_) => seeded,
                UniformHalves::Given(_) => seeded.saturating_add(given_half_bytes(params, key.part())),
            }
        });
        let counts = 4 + 4 * usize::from(params.second().is_some()) + 4 * usize::from(params.sparse().is_some());
        let own = keys.fold((HEADER_BYTES + TRAILER_BYTES + counts) as u64, u64::saturating_add);
        let inside = self.inside().zip(self.inside_params()).map(|(keys, params)| keys.wire_bytes(params));
        inside.map_or(own, |inside| own.saturating_add(INSIDE_BYTES).saturating_add(inside))
    }

    /// All keys as a container, in the order of their sources; behind them the container of those of the larger ring, if there
    /// are any.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`] under other parameters, or for a larger ring that the context does not have;
    /// [`Error::MissingKey`] after [`Self::into_prepared`]; [`Error::Wire`] when they name no key, or are too many;
    /// [`Error::Ring`] for a Galois element that is none; or when the device fails.
    pub fn to_bytes(&self, context: &Context<B>, envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>, Error> {
        require_named(self.target())?;
        let params = context.params();
        let limit = largest_key_count(params);
        if self.iter().len() > limit {
            let declared = self.iter().len() as u64;
            return Err(WireError::TooLarge { what: "switch keys", declared, limit: limit as u64 }.into());
        }
        let header = Header::new(ObjectType::SwitchKeySet, digest(params), self.target()).seeded();
        let payload = self.wire_bytes(params).saturating_sub((HEADER_BYTES + TRAILER_BYTES) as u64);
        let mut writer = Writer::new(header, usize::try_from(payload).unwrap_or(usize::MAX));
        write_set(&mut writer, context, Some(self), [params.q(), params.p()])?;
        if let Some(primes) = params.second() {
            if let Some(second) = self.second() {
                second.target().require(second_id(self.target()))?;
            }
            write_set(&mut writer, context, self.second(), [&primes.q, &primes.special])?;
        }
        if let Some(primes) = params.sparse() {
            if let Some(sparse) = self.sparse() {
                sparse.target().require(sparse_id(self.target()))?;
            }
            write_set(&mut writer, context, self.sparse(), [&primes.q, &primes.special])?;
        }
        if let (Some(keys), Some(params)) = (self.inside(), self.inside_params()) {
            let inside = context.inside_or_own();
            inside.params().require_digest(params.digest())?;
            let bytes = keys.to_bytes(inside, None)?;
            writer.u64(bytes.len() as u64);
            writer.raw(&bytes);
        }
        Ok(writer.finish(envelope))
    }

    /// The switch keys in a container; of the secret key `key` if one is named.
    ///
    /// # Errors
    /// [`Error::Wire`] for bytes that are not such keys of these parameters, [`Error::Ring`] for a Galois element that
    /// is none, [`Error::SwitchPlan`] for digits that do not add up, [`Error::Security`], or when the device fails.
    pub fn from_bytes(
        context: &Context<B>,
        bytes: &[u8],
        key: Option<KeyId>,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<Self, Error> {
        let params = context.params();
        let mut reader = open(params, bytes, ObjectType::SwitchKeySet, key, envelope)?;
        require_seeded(&reader, true)?;
        let target = reader.header().key;
        let mut keys = read_set(&mut reader, context, target, [params.q(), params.p()])?;
        if let Some(primes) = params.second() {
            let second = read_set(&mut reader, context, second_id(target), [&primes.q, &primes.special])?;
            if second.iter().len() > 0 {
                keys.set_second(second);
            }
        }
        if let Some(primes) = params.sparse() {
            let sparse = read_set(&mut reader, context, sparse_id(target), [&primes.q, &primes.special])?;
            if sparse.iter().len() > 0 {
                sparse.iter().try_for_each(|key| params.require_secure_sparse(primes.weight, key.part().primes()))?;
                keys.set_sparse(sparse);
            }
        }
        if let (Some(inside), 1..) = (context.inside(), reader.remaining()) {
            let length = reader.u64()?;
            let bytes = reader.raw(usize::try_from(length).unwrap_or(usize::MAX))?;
            let larger = Self::from_bytes(inside, bytes, Some(target), None)?;
            keys.set_inside(inside.params(), Arc::new(larger))?;
        }
        reader.finish()?;
        Ok(keys)
    }
}

/// The keys under one secret key, with its ciphertext and special primes, in rising order of their sources; none: no
/// keys.
fn write_set<B: Backend>(
    writer: &mut Writer,
    context: &Context<B>,
    keys: Option<&EvaluationKeys<B>>,
    [q, special]: [&IndexSet; 2],
) -> Result<(), Error> {
    writer.count("switch keys", keys.map_or(0, |keys| keys.iter().len()))?;
    keys.into_iter().flat_map(|keys| keys.iter()).try_for_each(|key| {
        let shape = key.shape();
        if &shape.q != q || !shape.special.without(special).is_empty() {
            return Err(Error::switch_plan(format!(
                "a switch key over {:?} and {:?} is not one under the secret key of {q:?} and {special:?}",
                shape.q, shape.special
            )));
        }
        write_switch_key(writer, context, key)
    })
}

fn read_set<B: Backend>(
    reader: &mut Reader<'_>,
    context: &Context<B>,
    target: KeyId,
    primes: [&IndexSet; 2],
) -> Result<EvaluationKeys<B>, Error> {
    let mut keys = EvaluationKeys::new(target);
    let mut last = None;
    for _ in 0..reader.count("switch keys", largest_key_count(context.params()))? {
        let key = read_switch_key(reader, context, target, primes)?;
        if last.replace(key.source()).is_some_and(|last| last >= key.source()) {
            return Err(reader.refuse("switch keys are not in rising order of their sources", 0).into());
        }
        keys.insert(key)?;
    }
    Ok(keys)
}

/// Fails unless g is odd and below 2N.
fn require_galois(params: &Params, element: usize) -> Result<(), Error> {
    let two_n = 2 * params.n();
    if element.is_multiple_of(2) || element >= two_n {
        return Err(RingError::GaloisElement { element, two_n }.into());
    }
    Ok(())
}

fn write_switch_key<B: Backend>(writer: &mut Writer, context: &Context<B>, key: &SwitchKey<B>) -> Result<(), Error> {
    let params = context.params();
    params.require_digest(key.params_digest())?;
    key.require_rows()?;
    let (shape, part) = (key.shape(), key.part());
    let (all_of_p, whole) = (&shape.special == params.p(), part.is_whole(params));
    let flag = |flag, set| if set { flag } else { 0 };
    let given = matches!(key.uniform(), UniformHalves::Given(_));
    let flags = flag(RADIX, shape.radix_bits.is_some()) | flag(SPECIAL, !all_of_p) | flag(TRIMMED, !whole);
    let flags = flags | flag(GIVEN, given);
    match key.source() {
        Source::Square => writer.u8(flags | SQUARE),
        Source::Galois(g) => {
            require_galois(params, g)?;
            writer.u8(flags | GALOIS);
            writer.count("Galois element", g)?;
        }
        Source::Key(id) => {
            require_named(id)?;
            writer.u8(flags | OTHER_KEY);
            writer.raw(&id.0);
        }
    }
    if let Some(bits) = shape.radix_bits {
        writer.u8(bits as u8);
    }
    if !all_of_p {
        write_u16(writer, "special primes", shape.special.len())?;
        shape.special.iter().try_for_each(|i| write_u16(writer, "a special prime", i))?;
    }
    write_list(writer, "digits", "primes of a digit", &shape.sizes.0)?;
    if !whole {
        write_list(writer, "rows", "row", part.rows())?;
        write_list(writer, "primes", "prime", part.primes().as_slice())?;
    }
    match key.uniform() {
        UniformHalves::Seed(seed) => writer.raw(seed.as_bytes()),
        UniformHalves::Given(a) => a.iter().try_for_each(|a| write_poly(writer, context, a))?,
    }
    key.b().iter().try_for_each(|b| write_poly(writer, context, b))
}

/// A count, then numbers of two bytes.
fn write_list(writer: &mut Writer, list: &'static str, item: &'static str, numbers: &[usize]) -> Result<(), WireError> {
    writer.count(list, numbers.len())?;
    numbers.iter().try_for_each(|&x| write_u16(writer, item, x))
}

/// At most `limit` numbers of two bytes.
fn read_list(reader: &mut Reader<'_>, list: &'static str, limit: usize) -> Result<Vec<usize>, WireError> {
    let count = reader.count(list, limit)?;
    (0..count).map(|_| Ok(usize::from(reader.u16()?))).collect()
}

fn read_source(reader: &mut Reader<'_>, params: &Params, tag: u8) -> Result<Source, Error> {
    match tag {
        SQUARE => Ok(Source::Square),
        GALOIS => {
            let g = reader.u32()? as usize;
            require_galois(params, g)?;
            Ok(Source::Galois(g))
        }
        OTHER_KEY => {
            let id = KeyId(reader.array()?);
            require_named(id)?;
            Ok(Source::Key(id))
        }
        _ => Err(reader.refuse("no switch key has this source", 1).into()),
    }
}

fn read_part(reader: &mut Reader<'_>, params: &Params, tag: u8, [q, p]: [&IndexSet; 2]) -> Result<KeyPart, Error> {
    let radix_bits = if tag & RADIX == 0 { None } else { Some(u32::from(reader.u8()?)) };
    let special = if tag & SPECIAL == 0 { params.p().clone() } else { read_special(reader, params, p)? };
    if !special.without(p).is_empty() {
        return Err(reader.refuse("a switch key of this secret key does not have all of P", 1).into());
    }
    let sizes = DigitSizes(read_list(reader, "digits", q.len())?);
    let whole = KeyPart::whole(params, KeyShape { q: q.clone(), sizes, radix_bits, special })?;
    if tag & TRIMMED == 0 {
        return Ok(whole);
    }
    let rows = read_list(reader, "rows", whole.rows().len())?;
    let primes = read_list(reader, "primes", whole.primes().len())?;
    let length = 2 * (rows.len() + primes.len()) + 8;
    let part = KeyPart::of(params, whole.shape().clone(), rows, primes.into_iter().collect())?;
    if part.is_whole(params) {
        return Err(reader.refuse("a whole switch key is marked as trimmed", length).into());
    }
    Ok(part)
}

fn read_switch_key<B: Backend>(
    reader: &mut Reader<'_>,
    context: &Context<B>,
    target: KeyId,
    primes: [&IndexSet; 2],
) -> Result<SwitchKey<B>, Error> {
    let params = context.params();
    let tag = reader.u8()?;
    let source = read_source(reader, params, tag & !(RADIX | SPECIAL | TRIMMED | GIVEN))?;
    let part = read_part(reader, params, tag, primes)?;
    let rows = |reader: &mut Reader<'_>| {
        part.rows().iter().map(|_| read_poly(reader, context, part.primes())).collect::<Result<_, Error>>()
    };
    let uniform = match tag & GIVEN {
        0 => UniformHalves::Seed(Seed::from_bytes(reader.array()?)),
        _ => UniformHalves::Given(rows(reader)?),
    };
    let b = rows(reader)?;
    SwitchKey::from_parts(context, source, target, part, uniform, b)
}

/// Special primes other than all of P: some of those of the secret key, in their order.
fn read_special(reader: &mut Reader<'_>, params: &Params, of: &IndexSet) -> Result<IndexSet, Error> {
    let count = usize::from(reader.u16()?);
    if count > of.len() {
        return Err(reader.refuse("more special primes than P has", 2).into());
    }
    let primes = (0..count).map(|_| Ok(usize::from(reader.u16()?))).collect::<Result<IndexSet, WireError>>()?;
    let at: Option<Vec<usize>> = primes.iter().map(|i| of.position(i)).collect();
    let ordered = at.is_some_and(|at| at.windows(2).all(|w| w[0] < w[1]));
    if !ordered || &primes == params.p() {
        return Err(reader.refuse("special primes are not some of P in rising order", 2).into());
    }
    Ok(primes)
}
