//! Containers and what is in them: parameters, keys, ciphertexts of every scheme, bundles.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::bundle::{Bundle, BundleError, CIPHERTEXT, COLUMN, ColumnHead, KEY, Kind, PLAN};
use synchromesh::ckks::Ckks;
use synchromesh::rlwe::ring::prime::ntt_primes;
use synchromesh::rlwe::ring::{Coeff, Ntt};
use synchromesh_rlwe::codec::{Attached, CiphertextHead, Received, Trust};
use synchromesh_rlwe::wire::{
    EnvelopeKey, Expected, Header, KeyId, ObjectType, ParamsDigest, Reader, TRAILER_BYTES, WireError, Writer, peek,
};
use synchromesh_rlwe::{
    Ciphertext, Context, Error, EvaluationKeys, Params, ParamsLiteral, PublicKey, Randomness, SecretKey, Security,
    Source, SwitchDomain, SwitchPlan,
};

use super::{Outcome, SMALL, TABLES, Target, outcome, text};
use crate::mutation::Seal;
use crate::schemes::{Sample, Size, Subject, message};

pub(super) const TARGETS: &[Target] = &[
    object("container", container_seeds, container, SMALL),
    Target { seal: Seal::Nothing, checksummed: false, ..object("payload", payload_seeds, payload, SMALL) },
    object("params", params_seeds, params, 8 * SMALL),
    object("secret_key", secret_seeds, secret_key, SMALL),
    object("public_key", public_seeds, public_key, SMALL),
    object("switch_keys", switch_seeds, switch_keys, SMALL),
    object("envelope_key", envelope_seeds, envelope_key, SMALL),
    object("ciphertext", ciphertext_seeds, ciphertext, SMALL),
    object("bfv_ciphertext", scheme_seeds::<Bfv>, scheme::<Bfv>, SMALL),
    object("bgv_ciphertext", scheme_seeds::<Bgv>, scheme::<Bgv>, SMALL),
    object("ckks_ciphertext", scheme_seeds::<Ckks>, scheme::<Ckks>, SMALL),
    Target { seal: Seal::Bundle, ..object("bundle", bundle_seeds, bundle, TABLES) },
];

const fn object(
    name: &'static str,
    seeds: fn() -> Result<Vec<Vec<u8>>>,
    read: fn(&[u8]) -> Outcome,
    slack: usize,
) -> Target {
    Target { name, seeds, read, seal: Seal::Container, checksummed: true, slack }
}

/// Two primes of 22 bits and a special one: files of a few kilobytes.
struct Small {
    context: Arc<Context>,
    secret: SecretKey,
    public: PublicKey,
    keys: EvaluationKeys,
    randomness: Randomness,
}

fn make() -> Result<Small> {
    let primes = ntt_primes(22, 10, 3)?;
    let params = Params::new(ParamsLiteral {
        tag: "fuzz".to_owned(),
        log_n: 10,
        q: primes[..2].to_vec(),
        p: primes[2..].to_vec(),
        aux: vec![],
        level_limbs: vec![],
        schedule: Default::default(),
        error_multiple: "1".to_owned(),
        error: Default::default(),
        security: Security::Insecure,
    })?;
    let context = Context::new(params)?;
    let mut randomness = Randomness::insecure_from_number(1);
    let secret = SecretKey::generate(&context, &mut randomness)?;
    let public = PublicKey::generate(&context, &secret, &mut randomness)?;
    let plan = SwitchPlan::hybrid(context.params(), 2)?;
    let sources = [Source::Square, Source::Galois(3)];
    let keys = EvaluationKeys::generate(&context, &secret, sources, &plan, &mut randomness)?;
    Ok(Small { context, secret, public, keys, randomness })
}

/// The one context that inputs are read in.
fn context() -> &'static Context {
    static CONTEXT: OnceLock<Arc<Context>> = OnceLock::new();
    CONTEXT.get_or_init(|| make().expect("small parameters").context)
}

fn params_seeds() -> Result<Vec<Vec<u8>>> {
    let small = make()?;
    let exact = Subject::<Bfv>::new(Size::Working, 1)?;
    let all = [small.context.params(), exact.rlwe().params()];
    Ok(all.into_iter().map(|params| params.to_bytes(None)).collect::<Result<_, _>>()?)
}

fn secret_seeds() -> Result<Vec<Vec<u8>>> {
    let small = make()?;
    Ok(vec![small.secret.to_bytes(&small.context, None)?.to_vec()])
}

fn public_seeds() -> Result<Vec<Vec<u8>>> {
    let small = make()?;
    Ok(vec![small.public.to_bytes(&small.context, None)?])
}

fn switch_seeds() -> Result<Vec<Vec<u8>>> {
    let small = make()?;
    Ok(vec![small.keys.to_bytes(&small.context, None)?])
}

fn envelope_seeds() -> Result<Vec<Vec<u8>>> {
    let small = make()?;
    Ok(vec![envelope().to_container(small.context.params(), small.secret.id())?.to_vec()])
}

fn ciphertext_seeds() -> Result<Vec<Vec<u8>>> {
    let mut small = make()?;
    let (slots, coefficients) = (one::<Ntt>(&mut small)?, one::<Coeff>(&mut small)?);
    Ok(slots.into_iter().chain(coefficients).collect())
}

/// A ciphertext of nothing, whole and as its seed.
fn one<D: SwitchDomain>(small: &mut Small) -> Result<Vec<Vec<u8>>> {
    let context = &small.context;
    let level = context.params().top_level();
    let primes = context.params().level(level)?;
    let zero = synchromesh_rlwe::ring::Poly::<_, Coeff>::zero(context.backend(), primes)?;
    let (ciphertext, seed) = small.secret.encrypt::<D>(context, &zero, level, &mut small.randomness)?;
    let whole = ciphertext.to_bytes(context, Attached { scheme_header: b"fuzz", seed: None }, None)?;
    Ok(vec![whole, ciphertext.to_bytes(context, Attached { scheme_header: &[], seed: Some(&seed) }, None)?])
}

fn container_seeds() -> Result<Vec<Vec<u8>>> {
    Ok([params_seeds()?, secret_seeds()?, public_seeds()?].concat())
}

/// What reads an object and writes it again.
type Again = fn(&Context, &[u8]) -> Result<Vec<u8>, Error>;

/// Holds an input against the law of objects with one encoding.
fn judge(again: Again, bytes: &[u8]) -> Outcome {
    let written = again(context(), bytes);
    if let Ok(written) = &written {
        assert!(written == bytes, "two encodings of one object");
    }
    outcome!(written)
}

/// Any container: what opens is sealed again to the same bytes.
fn container(bytes: &[u8]) -> Outcome {
    let seen = outcome!(peek(bytes));
    for object in ObjectType::ALL {
        let Ok(mut reader) = Reader::open(bytes, &Expected::any(object, 1 << 20)) else { continue };
        let payload = reader.raw(reader.remaining()).expect("what remains can be read");
        let mut writer = Writer::new(*reader.header(), payload.len());
        writer.raw(payload);
        assert!(writer.finish(None) == bytes, "two encodings of one container");
        assert!(reader.finish().is_ok(), "nothing is left");
        return seen;
    }
    match seen {
        Outcome::Accepted => Outcome::Refused("its body".to_owned()),
        refused => refused,
    }
}

/// The header of payloads that the input makes up.
const HEADER: Header = Header::new(ObjectType::Ciphertext, ParamsDigest([1; 32]), KeyId([2; 16]));

/// Bytes that choose a primitive and its arguments.
const STEP: usize = 12;

fn payload_seeds() -> Result<Vec<Vec<u8>>> {
    let steps: Vec<u8> = (0..10u8).flat_map(|op| [op, 44, 255, 255, 255, 255, 255, 255, 255, 255, 4, 0]).collect();
    Ok(vec![[&[10][..], &steps, &[1, 1, 2, 0, 3, 0, 0, 0], &[0; 200]].concat(), [&[1][..], &[0; 40]].concat()])
}

/// A payload read by primitives that the input chooses, as many as its first byte says: what one accepts is written again
/// to the same bytes.
fn payload(bytes: &[u8]) -> Outcome {
    let Some((count, rest)) = bytes.split_first() else { return Outcome::Refused("no input".to_owned()) };
    let (steps, _) = rest.as_chunks::<STEP>();
    let steps = &steps[..steps.len().min(usize::from(count % 64))];
    let payload = &rest[steps.len() * STEP..];
    let mut sealed = Writer::new(HEADER, payload.len());
    sealed.raw(payload);
    let sealed = sealed.finish(None);
    let mut reader = Reader::open(&sealed, &Expected::any(ObjectType::Ciphertext, u64::MAX)).expect("sealed here");
    let mut writer = Writer::new(HEADER, 0);
    for step in steps {
        let (start, written) = (payload.len() - reader.remaining(), writer.payload_len());
        let result = primitive(step, &mut reader, &mut writer);
        if result.is_err() {
            return outcome!(result);
        }
        let read = payload.len() - reader.remaining() - start;
        assert_eq!(read, writer.payload_len() - written, "read and written differ in length");
    }
    let read = payload.len() - reader.remaining();
    let copy = writer.finish(None);
    let end = copy.len() - TRAILER_BYTES;
    assert!(copy[end - read..end] == payload[..read], "two encodings of one payload");
    Outcome::Accepted
}

/// Reads one primitive, chosen with its arguments by `step`, and writes it again.
fn primitive(step: &[u8; STEP], reader: &mut Reader<'_>, writer: &mut Writer) -> Result<(), WireError> {
    let [op, shift, q @ .., low, high] = *step;
    let (q, n) = (u64::from_le_bytes(q) >> (shift & 63), usize::from(u16::from_le_bytes([low, high])));
    match op % 11 {
        0 => writer.u8(reader.u8()?),
        1 => writer.bool(reader.bool()?),
        2 => writer.u16(reader.u16()?),
        3 => writer.u32(reader.u32()?),
        4 => writer.u64(reader.u64()?),
        5 => writer.bytes("bytes", reader.bytes("bytes", n)?)?,
        6 => writer.string("string", reader.string("string", n)?)?,
        7 => writer.scheme_header(reader.scheme_header()?)?,
        8 => writer.limb(q, &reader.limb(q, n)?)?,
        9 => {
            let mut small = vec![0; n];
            reader.small_into(q, &mut small)?;
            assert!(small.iter().all(|c| c.unsigned_abs() <= q), "a coefficient above its bound");
            writer.small(q, &small)?;
        }
        _ => {
            // A length nobody can allocate must fail on the bytes present.
            assert!(reader.limb((1 << 61) - 1, usize::MAX >> (shift & 15)).is_err(), "a limb beyond all memory");
        }
    }
    Ok(())
}

/// Parameters.
fn params(bytes: &[u8]) -> Outcome {
    judge(|_, bytes| Params::from_bytes(bytes, None)?.to_bytes(None), bytes)
}

/// A secret key.
fn secret_key(bytes: &[u8]) -> Outcome {
    judge(|c, bytes| Ok(SecretKey::from_bytes(c, bytes, None)?.to_bytes(c, None)?.to_vec()), bytes)
}

/// A public key.
fn public_key(bytes: &[u8]) -> Outcome {
    judge(|c, bytes| PublicKey::from_bytes(c, bytes, None, None)?.to_bytes(c, None), bytes)
}

/// A set of switch keys.
fn switch_keys(bytes: &[u8]) -> Outcome {
    judge(|c, bytes| EvaluationKeys::from_bytes(c, bytes, None, None)?.to_bytes(c, None), bytes)
}

/// The key of sealed files.
fn envelope_key(bytes: &[u8]) -> Outcome {
    let again = |c: &Context, bytes: &[u8]| {
        let (key, of) = EnvelopeKey::from_container(c.params(), bytes)?;
        Ok(key.to_container(c.params(), of)?.to_vec())
    };
    judge(again, bytes)
}

/// A ciphertext in either domain.
fn ciphertext(bytes: &[u8]) -> Outcome {
    match judge(resting::<Ntt>, bytes) {
        Outcome::Accepted => Outcome::Accepted,
        Outcome::Refused(_) => judge(resting::<Coeff>, bytes),
    }
}

fn resting<D: SwitchDomain>(context: &Context, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let Received { ciphertext, seed, head }: Received<_, D> =
        Ciphertext::from_bytes(context, bytes, None, Trust::Certificate)?;
    assert_eq!(head, CiphertextHead::from_bytes(context.params(), bytes, None)?, "two heads of one ciphertext");
    let attached = Attached { scheme_header: &head.scheme_header, seed: seed.as_ref() };
    ciphertext.to_bytes(context, attached, None)
}

/// The subject whose ciphertexts are read, one for each scheme.
fn subject<S: Sample>() -> &'static Subject<S> {
    use std::any::{Any, TypeId};
    use std::collections::HashMap;
    use std::sync::Mutex;
    static ALL: Mutex<Option<HashMap<TypeId, &'static (dyn Any + Send + Sync)>>> = Mutex::new(None);
    let mut all = ALL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let found = all.get_or_insert_default().entry(TypeId::of::<S>()).or_insert_with(|| {
        let subject: &'static Subject<S> = Box::leak(Box::new(Subject::new(Size::Small, 1).expect("small parameters")));
        subject
    });
    found.downcast_ref().expect("what was put there")
}

fn scheme_seeds<S: Sample>() -> Result<Vec<Vec<u8>>> {
    let subject = subject::<S>();
    let fresh = subject.encrypt(&message(subject.slots()?, 1), &mut Randomness::insecure_from_number(2))?;
    Ok(vec![subject.to_bytes(&fresh)?])
}

fn scheme<S: Sample>(bytes: &[u8]) -> Outcome {
    let subject = subject::<S>();
    let read = subject.read(bytes);
    if let Ok(ciphertext) = &read {
        assert!(subject.to_bytes(ciphertext).is_ok_and(|again| again == bytes), "two encodings of one ciphertext");
        // Whatever was let in decrypts or is refused; the values are of whoever made the container.
        let _ = subject.holds(ciphertext, &[]);
    }
    outcome!(read)
}

fn bundle_seeds() -> Result<Vec<Vec<u8>>> {
    let subject = subject::<Bfv>();
    let plan = text::plan_json();
    let fresh = subject.encrypt(&[1, 2, 3], &mut Randomness::insecure_from_number(3))?;
    let head = ColumnHead { name: "x".to_owned(), rows: 3 }.to_bytes()?;
    let ciphertext = subject.to_bytes(&fresh)?;
    let column = [(PLAN, plan.as_bytes()), (COLUMN, &head[..]), (CIPHERTEXT, &ciphertext[..])];
    let secret = subject.secret().to_bytes(subject.rlwe(), None)?;
    let public = subject.public().to_bytes(subject.rlwe(), None)?;
    let key = |key| [(PLAN, plan.as_bytes()), (KEY, key)];
    let all = [
        Bundle::encode(Kind::Column, &column, None)?,
        Bundle::encode(Kind::Column, &column, Some(&envelope()))?,
        Bundle::encode(Kind::SecretKey, &key(&secret[..]), None)?,
        Bundle::encode(Kind::PublicKey, &key(&public[..]), None)?,
    ];
    Ok(all.into_iter().map(|bytes| bytes.to_vec()).collect())
}

/// The envelope key of sealed files.
fn envelope() -> EnvelopeKey {
    EnvelopeKey::from_bytes([7; 32])
}

/// A file of sections: its kind, plan, head of a column and key, and its seal if it has one.
fn bundle(bytes: &[u8]) -> Outcome {
    let read = Bundle::decode(bytes.to_vec()).and_then(|bundle| {
        bundle.plan()?;
        if bundle.kind() == Kind::Column {
            ColumnHead::of(&bundle)?;
        }
        bundle.key_id()?;
        Ok::<_, BundleError>(bundle)
    });
    match read {
        Ok(bundle) if bundle.is_sealed() => outcome!(bundle.authentic(Some(&envelope()))),
        read => outcome!(read),
    }
}
