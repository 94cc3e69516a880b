//! Times CKKS bootstrapping by the crate poulpy-ckks, whole and stage by stage, and prints a JSON object for each.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use poulpy_ckks::api::{
    CKKSAllOpsTmpBytes, CKKSBootstrappingCIOps, CKKSBootstrappingOps, CKKSDecryptOps, CKKSEncodingHostOps,
    CKKSEncryptOps,
};
use poulpy_ckks::layouts::{
    BootstrappingCIKeys, BootstrappingContextPrepared, BootstrappingKeySet, BootstrappingKeys, BootstrappingKeysLayout,
    BootstrappingKeysPrepared, BootstrappingLinearKeys, BootstrappingPipeline, CKKSCiphertextAlloc,
    CKKSCiphertextOwned, CKKSPlaintextAlloc, EvalModRing,
};
use poulpy_ckks::presets::bootstrapping::{BootstrappingPreset, all};
use poulpy_ckks::{CKKSInfos, SetCKKSInfos};
use poulpy_core::api::{GLWEAutomorphismKeyPreparedFactory, GLWESecretPreparedFactory, GLWESecretSampling};
use poulpy_core::layouts::{
    BackendGLWESecret, BackendGLWESecretPrepared, GLWESecretAlloc, LWEInfos, SetK,
    prepared::GLWEAutomorphismKeyPrepared,
};
// The fastest kernels of the library here: those of the ring, and of the conjugate-invariant ring of the same degree.
#[cfg(not(all(target_feature = "avx512ifma", target_feature = "avx512vl")))]
use poulpy_cpu_avx::{NTT4x30Avx as Complex, NTT4x30CIAvx as Real};
#[cfg(all(target_feature = "avx512ifma", target_feature = "avx512vl"))]
use poulpy_cpu_avx512::{NTT3x42CIIfma as Real, NTT3x42Ifma as Complex};
use poulpy_hal::AlignedBuf;
use poulpy_hal::api::{ScratchOwnedAlloc, ScratchOwnedBorrow};
use poulpy_hal::layouts::{Backend, Module, ScratchOwned, WriterTo};
use poulpy_hal::source::Source;
use serde_json::json;

const USAGE: &str = "usage: peer-poulpy bootstrap [--log-n 16] [--set NAME] [--runs 3]";
const VERSION: &str = "0.10.0";

/// The sets of the library (`presets::bootstrapping`) that are timed at each degree. All refresh all complex slots; at
/// 2^15 there is no other, at 2^16 this one is tuned for speed.
const SETS: [(u32, &str); 2] = [(15, "n15_d35_k180_p18_c2s"), (16, "n16_d35_k685_p19_s2c_ffr_ci")];

/// What the library says of its sets (`presets::bootstrapping`, section Security).
const SECURITY_BITS: u32 = 128;

/// Limbs are as wide as a probability of overflow of 2^-128 lets them be, as in the library's own timings
/// (`BOOTSTRAP_FAILURE_BITS` in `test_suite::presets`).
const FAILURE_BITS: usize = 128;

/// Bits above its scale that a result is decrypted with (`PRECISION_LOG_BUDGET` in `test_suite::presets`).
const DECRYPTED_BITS: usize = 8;

/// A set promises the precision of each part of a slot; both together may be off by half a bit more.
const SLACK_BITS: f64 = 1.0;

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Ciphertext = CKKSCiphertextOwned<Complex>;
type KeySet = BootstrappingKeySet<AlignedBuf, i64>;
type Context = BootstrappingContextPrepared<Complex, f64>;
type Prepared<B> = BootstrappingKeysPrepared<AlignedBuf, Complex, B>;

struct Case {
    set: String,
    runs: usize,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match parse(&args).and_then(|case| run(&case)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn parse(args: &[String]) -> Result<Case> {
    let (mut log_n, mut set, mut runs) = (16, None, 3);
    let (command, flags) = args.split_first().ok_or(USAGE)?;
    if command != "bootstrap" || flags.len() % 2 != 0 {
        return Err(USAGE.into());
    }
    for pair in flags.chunks_exact(2) {
        let bad = |_| format!("{} takes a number, not '{}'\n{USAGE}", pair[0], pair[1]);
        match pair[0].as_str() {
            "--log-n" => log_n = pair[1].parse().map_err(bad)?,
            "--set" => set = Some(pair[1].clone()),
            "--runs" => runs = pair[1].parse().map_err(bad)?,
            // Every peer is told how long to measure; here runs are counted.
            "--min-time" => {}
            _ => return Err(USAGE.into()),
        }
    }
    let usual = SETS.iter().find(|(degree, _)| *degree == log_n).map(|(_, name)| (*name).to_owned());
    match set.or(usual) {
        Some(set) if runs > 0 => Ok(Case { set, runs }),
        _ => Err(format!("log-n is 15 or 16 and runs at least 1\n{USAGE}").into()),
    }
}

/// Refreshes one ciphertext again and again, the first time to warm up, and looks at each result.
fn run(case: &Case) -> Result<()> {
    let sets = all()?;
    let names = || sets.iter().map(BootstrappingPreset::name).collect::<Vec<_>>().join(", ");
    let set = sets.iter().find(|set| set.name() == case.set);
    let set = set.ok_or_else(|| format!("no set is called '{}'; there are {}", case.set, names()))?;
    let set = set.with_backend_base2k::<Complex, Real>(FAILURE_BITS)?;

    let start = Instant::now();
    let mut refresher = Refresher::new(&set)?;
    let mut random = Source::new([5; 32]);
    let mut part = || (0..set.n() / 2).map(|_| random.next_f64(-1.0, 1.0) * std::f64::consts::FRAC_1_SQRT_2).collect();
    let message: [Vec<f64>; 2] = [part(), part()];
    let fresh = refresher.encrypt(&message)?;
    eprintln!("everything made in {:.1} s", start.elapsed().as_secs_f64());

    let mut refreshed = refresher.module.ckks_ciphertext_alloc_from_glwe_infos(&set.bootstrap_layout());
    let (mut runs, mut least, mut mean) = (Vec::new(), f64::INFINITY, f64::INFINITY);
    for _ in 0..=case.runs {
        refreshed.set_k(set.bootstrap_k().into());
        runs.push(refresher.refresh(&mut refreshed, &fresh)?);
        let bits = precision(&message, &refresher.decrypt(&refreshed)?);
        (least, mean) = (bits.0.min(least), bits.1.min(mean));
        if least < set.log2_precision() as f64 - SLACK_BITS {
            return Err(format!("a refreshed slot has {least:.1} bits of {}", set.log2_precision()).into());
        }
    }
    let whole = |stages: &[Duration; 4]| stages.iter().sum::<Duration>();
    runs.remove(0);
    runs.sort_unstable_by_key(whole);
    let median = &runs[runs.len() / 2];
    let mut line = json!({
        "peer": "poulpy", "version": VERSION, "bench": "bootstrap", "set": set.name(), "log_n": set.log_n(),
        "runs": case.runs, "log_qp": widest(set.keys_layout()), "limb_bits": set.base2k(), "slots": message[0].len(),
        "usable_bits": refreshed.k().as_usize() - fresh.k().as_usize(), "measured_bits": least, "mean_bits": mean,
        "weights": [set.dense_secret_hamming_weight(), set.sparse_secret_hamming_weight()],
        "security_bits": SECURITY_BITS, "key_bytes": refresher.key_bytes, "peak_bytes": peak_bytes(),
    });
    let stages = Stage::ALL.map(|stage| (stage.name(), median[stage as usize]));
    for (op, took) in std::iter::once(("refresh", whole(median))).chain(stages) {
        (line["op"], line["median_ns"]) = (json!(op), json!(took.as_nanos() as u64));
        println!("{line}");
    }
    Ok(())
}

/// Minus log2 of the largest and of the mean distance between slots.
fn precision(want: &[Vec<f64>; 2], have: &[Vec<f64>; 2]) -> (f64, f64) {
    let distance = |i: usize| (want[0][i] - have[0][i]).hypot(want[1][i] - have[1][i]);
    let distances = || (0..want[0].len()).map(distance);
    (-distances().fold(0.0, f64::max).log2(), -(distances().sum::<f64>() / want[0].len() as f64).log2())
}

/// Bits of the widest key of the dense secret, which every ciphertext is narrower than: what others call log QP.
fn widest(keys: &BootstrappingKeysLayout) -> usize {
    let raise = keys.encapsulation.and_then(|keys| keys.sparse_to_dense).or(keys.first_factor_key);
    let conversions = keys.conversion_keys.into_iter().flat_map(|(trace, embed)| [trace, embed]);
    let switches = raise.into_iter().chain(conversions).map(|key| key.k());
    let others = keys.rotation_keys.values().map(LWEInfos::k).chain([keys.tensor_key.k()]);
    switches.chain(others).map(|k| k.as_usize()).max().unwrap_or_default()
}

/// A secret, and what refreshes its ciphertexts.
struct Refresher {
    module: Module<Complex>,
    set: BootstrappingPreset,
    secret: BackendGLWESecretPrepared<Complex>,
    keys: Keys,
    key_bytes: usize,
    context: Context,
    scratch: ScratchOwned<Complex>,
}

/// Prepared keys, with what EvalMod takes besides where it is in the conjugate-invariant ring.
enum Keys {
    Complex(Watched<Complex>),
    Real(Watched<Real>, Module<Real>, ScratchOwned<Real>),
}

impl Refresher {
    fn new(set: &BootstrappingPreset) -> Result<Self> {
        let real = set.plan().eval_mod_ring() != EvalModRing::Standard;
        // The way between the two rings is through the ring of twice the degree.
        let module = Module::new(if real { 2 * set.n() } else { set.n() } as u64);
        let layout = set.bootstrap_layout();
        let mut raw = module.glwe_secret_alloc_from_infos(&layout);
        module.glwe_secret_fill_ternary_hw(&mut raw, set.dense_secret_hamming_weight(), &mut Source::new([0; 32]));
        let mut secret = module.glwe_secret_prepared_alloc_from_infos(&layout);
        module.glwe_secret_prepare(&mut secret, &raw);
        let made = if real { real_keys(&module, set, &raw)? } else { complex_keys(&module, set, &raw)? };
        let (keys, key_bytes, context, bytes) = made;
        let scratch = ScratchOwned::alloc(bytes.max(operation_bytes(&module, set)));
        Ok(Self { module, set: set.clone(), secret, keys, key_bytes, context, scratch })
    }

    fn encrypt(&mut self, message: &[Vec<f64>; 2]) -> Result<Ciphertext> {
        let layout = self.set.input_layout();
        let base2k = self.set.base2k().into();
        let mut plain = self.module.ckks_plaintext_alloc_from_slots(message[0].len(), base2k, layout.k());
        plain.set_meta(layout.meta());
        self.module.ckks_encode_slots_host_into(&mut plain, &message[0], &message[1], &mut self.scratch.borrow())?;
        let mut x = self.module.ckks_ciphertext_alloc_from_glwe_infos(&layout);
        let [mut xe, mut xa] = [3, 4].map(|seed| Source::new([seed; 32]));
        self.module.ckks_encrypt_sk(&mut x, &plain, &self.secret, &mut xe, &mut xa, &mut self.scratch.borrow())?;
        Ok(x)
    }

    fn decrypt(&mut self, x: &Ciphertext) -> Result<[Vec<f64>; 2]> {
        let slots = self.set.n() / 2;
        let bits = x.log_delta() + DECRYPTED_BITS.min(x.log_budget());
        let mut plain = self.module.ckks_plaintext_alloc_from_slots(slots, x.base2k(), bits.into());
        plain.set_meta(x.meta());
        self.module.ckks_decrypt(&mut plain, x, &self.secret, &mut self.scratch.borrow())?;
        let [mut re, mut im] = [vec![0.0; slots], vec![0.0; slots]];
        self.module.ckks_decode_slots_host_into(&plain, &mut re, &mut im, &mut self.scratch.borrow())?;
        Ok([re, im])
    }

    /// Refreshes `from` into `to`, and returns how long each stage took.
    fn refresh(&mut self, to: &mut Ciphertext, from: &Ciphertext) -> Result<[Duration; 4]> {
        let pipeline = self.context.pipeline();
        let mut scratch = self.scratch.borrow();
        let start = Instant::now();
        Ok(match &mut self.keys {
            Keys::Complex(keys) => {
                self.module.ckks_bootstrap(to, from, &self.context, &*keys, &mut scratch)?;
                keys.stages(start, Instant::now(), pipeline)
            }
            Keys::Real(keys, ci, scratch_ci) => {
                let scratch_ci = &mut scratch_ci.borrow();
                self.module.ckks_bootstrap_ci_into(ci, to, from, &self.context, &*keys, &mut scratch, scratch_ci)?;
                keys.stages(start, Instant::now(), pipeline)
            }
        })
    }
}

/// Room for making a key, and for encoding, encrypting and decrypting a message.
fn operation_bytes(module: &Module<Complex>, set: &BootstrappingPreset) -> usize {
    let (layout, tensor) = (set.bootstrap_layout(), &set.keys_layout().tensor_key);
    let bytes = |key| module.ckks_all_ops_with_atk_tmp_bytes(&layout, &layout, tensor, key);
    set.keys_layout().rotation_key_layouts().iter().map(bytes).max().unwrap_or_default()
}

fn sources() -> [Source; 3] {
    [6, 7, 8].map(|seed| Source::new([seed; 32]))
}

/// Keys, their bytes, what is computed once and the room that a refresh takes, with EvalMod in the ring itself.
fn complex_keys(
    module: &Module<Complex>,
    set: &BootstrappingPreset,
    secret: &BackendGLWESecret<Complex>,
) -> Result<(Keys, usize, Context, usize)> {
    let (plan, layout) = (set.plan(), set.keys_layout());
    let [mut xs, mut xe, mut xa] = sources();
    let mut scratch = ScratchOwned::alloc(operation_bytes(module, set).max(layout.prepare_tmp_bytes(module)));
    let mut keys = plan.generate_keys(module, secret, layout, &mut xs, &mut xe, &mut xa, &mut scratch.borrow())?;
    let bytes = serialized(&keys)?;
    let rotations = prepare_rotations(module, &mut keys, &mut scratch);
    let mut prepared = keys.prepare(module, &mut scratch.borrow());
    prepared.rotation_keys = rotations;

    let mut scratch = ScratchOwned::alloc(Context::compile_unprepared_tmp_bytes(module, plan)?);
    let context = Context::compile_unprepared(module, set.base2k().into(), plan, &mut scratch.borrow())?;
    let mut scratch = ScratchOwned::alloc(context.prepare_tmp_bytes(module));
    let context = context.prepare(module, &mut scratch.borrow())?;
    let room = module.ckks_bootstrap_tmp_bytes(&set.bootstrap_layout(), &set.input_layout(), &context, layout);
    Ok((Keys::Complex(Watched::new(prepared)), bytes, context, room))
}

/// [`complex_keys`], with EvalMod in the conjugate-invariant ring.
fn real_keys(
    module: &Module<Complex>,
    set: &BootstrappingPreset,
    secret: &BackendGLWESecret<Complex>,
) -> Result<(Keys, usize, Context, usize)> {
    let (plan, layout, ci) = (set.plan(), set.keys_layout(), Module::<Real>::new(set.n() as u64));
    let (made, made_ci) = layout.generate_ci_tmp_bytes(module, &ci);
    let (prepared, prepared_ci) = layout.prepare_ci_tmp_bytes(module, &ci);
    let (compiled, compiled_ci) = Context::compile_ci_unprepared_tmp_bytes(module, &ci, plan)?;
    let mut scratch = ScratchOwned::alloc(made.max(prepared).max(compiled));
    let mut scratch_ci = ScratchOwned::alloc(made_ci.max(prepared_ci).max(compiled_ci));
    let [mut xs, mut xe, mut xa] = sources();
    let mut keys = plan.generate_keys_ci(
        module,
        &ci,
        secret,
        layout,
        &mut xs,
        &mut xe,
        &mut xa,
        &mut scratch.borrow(),
        &mut scratch_ci.borrow(),
    )?;
    let bytes = serialized(&keys)?;
    let rotations = prepare_rotations(module, &mut keys, &mut scratch);
    let mut prepared = keys.prepare_ci(module, &ci, &mut scratch.borrow(), &mut scratch_ci.borrow())?;
    prepared.rotation_keys = rotations;

    let context = Context::compile_ci_unprepared(
        module,
        &ci,
        set.base2k().into(),
        plan,
        &mut scratch.borrow(),
        &mut scratch_ci.borrow(),
    )?;
    let mut scratch = ScratchOwned::alloc(context.prepare_tmp_bytes(module));
    let context = context.prepare(module, &mut scratch.borrow())?;
    let (room, room_ci) =
        module.ckks_bootstrap_ci_tmp_bytes(&ci, &set.bootstrap_layout(), &set.input_layout(), &context, layout);
    Ok((Keys::Real(Watched::new(prepared), ci, ScratchOwned::alloc(room_ci)), bytes, context, room))
}

/// Prepares rotation keys one after another and drops what each is made from, for both forms of all take half as much
/// memory again.
fn prepare_rotations(
    module: &Module<Complex>,
    keys: &mut KeySet,
    scratch: &mut ScratchOwned<Complex>,
) -> HashMap<i64, GLWEAutomorphismKeyPrepared<AlignedBuf, Complex>> {
    let prepare = |(element, key)| {
        let mut prepared = module.glwe_automorphism_key_prepared_alloc_from_infos(&key);
        module.glwe_automorphism_key_prepare(&mut prepared, &key, &mut scratch.borrow());
        (element, prepared)
    };
    keys.rotation_keys.drain().map(prepare).collect()
}

/// How many bytes the keys are that one sends.
fn serialized(keys: &KeySet) -> Result<usize> {
    /// Counts what is written.
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    keys.rotation_keys.values().try_for_each(|key| key.write_to(&mut counter))?;
    keys.tensor_key.write_to(&mut counter)?;
    if let Some((to_sparse, to_dense)) = &keys.encapsulation_keys {
        to_sparse.write_to(&mut counter)?;
        to_dense.iter().try_for_each(|key| key.write_to(&mut counter))?;
    }
    keys.first_factor_keys.values().try_for_each(|key| key.write_to(&mut counter))?;
    if let Some((trace, embed)) = &keys.conversion_keys {
        trace.write_to(&mut counter)?;
        embed.write_to(&mut counter)?;
    }
    Ok(counter.0)
}

/// The stages of a refresh. Where a set has them, the first factor of CoeffsToSlots is in ModRaise, the way to the
/// conjugate-invariant ring in CoeffsToSlots and the way back in EvalMod.
#[derive(Clone, Copy)]
enum Stage {
    SlotsToCoeffs,
    ModRaise,
    CoeffsToSlots,
    EvalMod,
}

impl Stage {
    const ALL: [Self; 4] = [Self::SlotsToCoeffs, Self::ModRaise, Self::CoeffsToSlots, Self::EvalMod];

    fn name(self) -> &'static str {
        match self {
            Self::SlotsToCoeffs => "SlotsToCoeffs",
            Self::ModRaise => "ModRaise",
            Self::CoeffsToSlots => "CoeffsToSlots",
            Self::EvalMod => "EvalMod",
        }
    }

    fn key(self) -> Key {
        match self {
            Self::SlotsToCoeffs | Self::CoeffsToSlots => Key::Rotation,
            Self::ModRaise => Key::Raise,
            Self::EvalMod => Key::Tensor,
        }
    }
}

/// A kind of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Rotation,
    Raise,
    Tensor,
}

/// Keys that note when a refresh asks for which: each stage begins with asking for its own. No public call does the
/// raise alone where a set has SlotsToCoeffs before it.
struct Watched<B: Backend> {
    keys: Prepared<B>,
    asked: Mutex<Vec<(Key, Instant)>>,
}

impl<B: Backend> Watched<B> {
    fn new(keys: Prepared<B>) -> Self {
        Self { keys, asked: Mutex::default() }
    }

    fn note(&self, key: Key) {
        self.asked.lock().expect("nothing panics with it").push((key, Instant::now()));
    }

    /// How long each stage of a refresh took, from the last one back: before the first are checks, which ask as well.
    fn stages(&self, start: Instant, mut end: Instant, pipeline: BootstrappingPipeline) -> [Duration; 4] {
        let mut asked = std::mem::take(&mut *self.asked.lock().expect("nothing panics with it"));
        let mut order = Stage::ALL;
        if pipeline == BootstrappingPipeline::C2SFirst {
            order.rotate_left(1);
        }
        let mut took = [Duration::ZERO; 4];
        for stage in order.into_iter().rev() {
            let mut begin = end;
            while let Some((_, at)) = asked.pop_if(|(key, _)| *key == stage.key()) {
                begin = at;
            }
            took[stage as usize] = end - begin;
            end = begin;
        }
        took[order[0] as usize] += end - start;
        took
    }
}

impl<B: Backend> BootstrappingLinearKeys<Complex> for Watched<B> {
    type RotationKeys = <Prepared<B> as BootstrappingLinearKeys<Complex>>::RotationKeys;
    type SwitchingKey = <Prepared<B> as BootstrappingLinearKeys<Complex>>::SwitchingKey;

    fn rotation_keys(&self) -> &Self::RotationKeys {
        self.note(Key::Rotation);
        self.keys.rotation_keys()
    }

    fn encapsulation_keys(&self) -> Option<(&Self::SwitchingKey, Option<&Self::SwitchingKey>)> {
        self.note(Key::Raise);
        self.keys.encapsulation_keys()
    }

    fn first_factor_key(&self, rotation: i64) -> Option<&Self::SwitchingKey> {
        self.note(Key::Raise);
        self.keys.first_factor_key(rotation)
    }
}

impl BootstrappingKeys<Complex> for Watched<Complex> {
    type TensorKey = <Prepared<Complex> as BootstrappingKeys<Complex>>::TensorKey;

    fn tensor_key(&self) -> &Self::TensorKey {
        self.note(Key::Tensor);
        BootstrappingKeys::tensor_key(&self.keys)
    }
}

impl BootstrappingCIKeys<Complex, Real> for Watched<Real> {
    type TensorKey = <Prepared<Real> as BootstrappingCIKeys<Complex, Real>>::TensorKey;
    type TraceKey = <Prepared<Real> as BootstrappingCIKeys<Complex, Real>>::TraceKey;
    type EmbedKey = <Prepared<Real> as BootstrappingCIKeys<Complex, Real>>::EmbedKey;

    fn tensor_key(&self) -> &Self::TensorKey {
        self.note(Key::Tensor);
        BootstrappingCIKeys::tensor_key(&self.keys)
    }

    fn conversion_keys(&self) -> Option<(&Self::TraceKey, &Self::EmbedKey)> {
        self.keys.conversion_keys()
    }

    fn keys_layout(&self) -> Option<BootstrappingKeysLayout> {
        self.keys.keys_layout()
    }
}

/// The most memory that this process had, as Linux says it; 0 elsewhere.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kilobytes| kilobytes << 10)
}
