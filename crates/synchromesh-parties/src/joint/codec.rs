//! A share of a joint key as a container: the plan (29 bytes), the member's number (8), the key of the noise (32), and the share
//! in slots on all primes of keys, prime by prime, or so each secret that the member knows; where shares are proven the seed of the
//! public key (32), and in the same way each secret's share of that.

use synchromesh::rlwe::ring::sampler::Seed;
use synchromesh::rlwe::ring::{Cpu, IndexSet, Ntt, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::wire::{
    Expected, HEADER_BYTES, Header, KeyId, ObjectType, ParamsDigest, Reader, WireError, Writer, limb_bytes,
};
use synchromesh::rlwe::{Context, Params};
use zeroize::Zeroizing;

use super::noise::{self, NoiseKey};
use super::plan::{self, Plan};
use super::replicated;
use super::share::{KeyShare, Publics};
use crate::error::{Error, Result};
use crate::proven::Rows;

/// Where the plan, whose threshold is no larger, has the number of the sharing.
const SHARING: std::ops::Range<usize> = 12..16;

/// Bytes of a seed.
const SEED_BYTES: usize = 32;

/// How many secrets a share of a plan has, and how many shares of the public key beside them where these are proven.
fn polynomials(plan: &Plan) -> (usize, Option<usize>) {
    match plan.proofs {
        true => (replicated::known(plan, 0).len(), Some(plan.secrets().len())),
        false => (1, None),
    }
}

/// Bytes of the payload of a share with so many secrets and shares of the public key.
fn payload_bytes(params: &Params, primes: &IndexSet, (secrets, publics): (usize, Option<usize>)) -> usize {
    let limb = |prime| limb_bytes(params.n(), params.ring().modulus(prime).value()).unwrap_or(usize::MAX);
    let each = primes.iter().map(limb).fold(0, usize::saturating_add);
    let seed = if publics.is_some() { SEED_BYTES } else { 0 };
    each.saturating_mul(secrets + publics.unwrap_or(0)).saturating_add(plan::PLAN_BYTES + 8 + noise::KEY_BYTES + seed)
}

/// The words of a polynomial on these primes, below each.
fn read_words(
    reader: &mut Reader<'_>,
    params: &Params,
    primes: &IndexSet,
    words: &mut [u64],
) -> std::result::Result<(), WireError> {
    let limbs = primes.iter().zip(words.chunks_exact_mut(params.n()));
    limbs.into_iter().try_for_each(|(prime, limb)| reader.limb_into(params.ring().modulus(prime).value(), limb))
}

impl KeyShare {
    /// The share as a container, wiped when dropped. Write it with
    /// [`Access::Secret`](synchromesh::rlwe::file::Access::Secret), beside a journal.
    ///
    /// # Errors
    /// [`Error::Library`] under other parameters, or when the device fails.
    pub fn to_bytes(&self, context: &Context<Cpu>) -> Result<Zeroizing<Vec<u8>>> {
        let params = context.params();
        self.check(params)?;
        let header = Header::new(ObjectType::KeyShare, ParamsDigest(*params.digest()), self.key);
        // The exact size, so that the buffer never moves and no copy is left behind.
        let mut writer = Writer::new(header, payload_bytes(params, &params.keyed(), polynomials(&self.plan)));
        let mut plan = plan::to_bytes(&self.plan);
        plan[SHARING].copy_from_slice(&self.sharing.to_le_bytes());
        writer.raw(&plan);
        writer.u64(self.member as u64);
        writer.raw(self.noise.as_bytes());
        let write = |writer: &mut Writer, poly: &Poly<Cpu, Ntt>| -> Result<()> {
            let words = Zeroizing::new(poly.to_words(context.backend())?);
            for (prime, limb) in poly.primes().iter().zip(words.chunks_exact(params.n())) {
                writer.limb(params.ring().modulus(prime).value(), limb).map_err(synchromesh::rlwe::Error::from)?;
            }
            Ok(())
        };
        self.secrets.iter().try_for_each(|secret| write(&mut writer, secret.poly()))?;
        if let Some(publics) = &self.publics {
            writer.raw(publics.seed.as_bytes());
            publics.shares.iter().try_for_each(|share| write(&mut writer, share))?;
        }
        Ok(Zeroizing::new(writer.finish(None)))
    }

    /// The share in a container. The bytes are the caller's to wipe.
    ///
    /// # Errors
    /// [`Error::Library`] for bytes that are no share under these parameters, and [`Error::JointKey`] for a plan that they do
    /// not fit.
    pub fn from_bytes(context: &Context<Cpu>, bytes: &[u8]) -> Result<Self> {
        let params = context.params();
        let (n, primes) = (params.n(), params.keyed());
        let expected = Expected {
            object: ObjectType::KeyShare,
            params: Some(ParamsDigest(*params.digest())),
            key: None,
            max_payload: payload_bytes(params, &primes, (Plan::MOST_PARTIES, Some(Plan::MOST_PARTIES))) as u64,
            envelope: None,
        };
        let wire = |error: WireError| Error::from(synchromesh::rlwe::Error::from(error));
        let mut reader = Reader::open(bytes, &expected).map_err(wire)?;
        let (key, seeded) = (reader.header().key, reader.header().seeded);
        if key == KeyId::NONE || seeded {
            return Err(wire(WireError::NonCanonical { what: "a share names its key and has no seed", offset: 12 }));
        }
        let neither = WireError::NonCanonical { what: "shares are proven or not", offset: HEADER_BYTES as u64 + 28 };
        let mut plan: [u8; plan::PLAN_BYTES] = reader.array().map_err(wire)?;
        let sharing = plan[SHARING].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        plan[SHARING].fill(0);
        let plan = plan::from_bytes(&plan).ok_or_else(|| wire(neither))?;
        plan::check(&plan, params)?;
        let (known, publics) = polynomials(&plan);
        let need = (payload_bytes(params, &primes, (known, publics)) - plan::PLAN_BYTES) as u64;
        let have = reader.remaining() as u64;
        if have < need {
            return Err(wire(WireError::Truncated { need, have }));
        }
        let member = usize::try_from(reader.u64().map_err(wire)?).unwrap_or(usize::MAX);
        if member >= plan.parties {
            let rule = format!("member {member} is none of them");
            return Err(Error::JointKey { parties: plan.parties, rule });
        }
        let noise = NoiseKey::from_bytes(Zeroizing::new(reader.array().map_err(wire)?));
        let mut words = Zeroizing::new(vec![0; n * primes.len()]);
        let mut read = |reader: &mut Reader<'_>| -> Result<Poly<Cpu, Ntt>> {
            read_words(reader, params, &primes, &mut words).map_err(wire)?;
            Ok(Poly::from_words(context.backend(), &primes, &words)?)
        };
        let secrets = (0..known).map(|_| Ok(SecretPoly::new(read(&mut reader)?))).collect::<Result<Vec<_>>>()?;
        let publics = match publics {
            Some(count) => {
                let seed = Seed::from_bytes(reader.array::<SEED_BYTES>().map_err(wire)?);
                Some(Publics { seed, shares: (0..count).map(|_| read(&mut reader)).collect::<Result<Rows>>()? })
            }
            None => None,
        };
        reader.finish().map_err(wire)?;
        Ok(Self { plan, member, key, sharing, params_digest: *params.digest(), secrets, noise, publics })
    }
}

#[cfg(test)]
mod tests {
    use synchromesh::bgv::Bgv;
    use synchromesh::rlwe::wire::{HEADER_BYTES, TRAILER_BYTES};
    use synchromesh::rotations::Rotations;
    use synchromesh::scheme::Scheme;

    use super::super::test_kit::{Judged, Kit};
    use super::super::{KeyShare, Plan};

    /// `bytes` with one changed, and the digest that needs no key made anew.
    fn sealed(mut bytes: Vec<u8>, at: usize, with: u8) -> Vec<u8> {
        bytes[at] ^= with;
        let end = bytes.len() - TRAILER_BYTES;
        let digest = *blake3::hash(&bytes[..end]).as_bytes();
        bytes[end..].copy_from_slice(&digest);
        bytes
    }

    #[test]
    fn shares_survive_their_files_and_decrypt() {
        survive(Plan::any_of(2, 3).with_decryptions(8), &[2, 0]);
        survive(Plan::all_of(3).with_decryptions(8).with_proofs(), &[2, 0, 1]);
        survive(Plan::any_of(2, 3).with_decryptions(8).with_proofs(), &[2, 0]);
    }

    fn survive(plan: Plan, members: &[usize]) {
        let params = Bgv::with_joint(&Bgv::small(3), &plan);
        let mut kit = Kit::<Bgv>::new(params, plan, &Rotations::none());
        let values = Bgv::sample(kit.context(), 4);
        let x = kit.encrypt(&values);
        for i in 0..3 {
            let bytes = kit.parties[i].share.to_bytes(kit.rlwe()).unwrap();
            let read = KeyShare::from_bytes(kit.rlwe(), &bytes).unwrap();
            assert_eq!(read.to_bytes(kit.rlwe()).unwrap(), bytes, "one encoding");
            assert_eq!((read.member(), read.key(), *read.plan()), (i, kit.parties[i].share.key(), plan));
            kit.parties[i].share = read;
        }
        assert!(Bgv::agree(&kit.open(members, &[&x], 0.0)[0], &values, 0.0));
    }

    #[test]
    fn what_is_no_share_is_refused() {
        let kit = Kit::<Bgv>::new(Bgv::small(2), Plan::all_of(2), &Rotations::none());
        let bytes = kit.parties[0].share.to_bytes(kit.rlwe()).unwrap().to_vec();
        let refused = |bytes: &[u8]| KeyShare::from_bytes(kit.rlwe(), bytes).unwrap_err().kind();
        for cut in [0, 7, 40, HEADER_BYTES, HEADER_BYTES + 60, bytes.len() - 1] {
            refused(&bytes[..cut]);
        }
        assert_eq!(refused(&[&bytes[..], b"x"].concat()), "trailing_bytes");
        for bit in (0..8 * HEADER_BYTES).chain([8 * (bytes.len() - 40)]) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            refused(&damaged);
        }
        // Another number of parties, a threshold of 3 of 2, and member 4 of 2, all sealed as they are.
        for at in [0, 8, 29] {
            assert_eq!(refused(&sealed(bytes.clone(), HEADER_BYTES + at, 4)), "joint_key", "byte {at}");
        }
        // A limb above its prime.
        let mut large = bytes.clone();
        large[HEADER_BYTES + 69..HEADER_BYTES + 77].fill(0xff);
        assert_eq!(refused(&sealed(large, HEADER_BYTES + 69, 0)), "non_canonical");
        // Proofs that there were none of, and neither proofs nor none.
        assert_eq!(refused(&sealed(bytes.clone(), HEADER_BYTES + 28, 1)), "joint_key");
        assert_eq!(refused(&sealed(bytes, HEADER_BYTES + 28, 2)), "non_canonical");
    }
}
