//! What is compared: the cases, the command lines that measure them, and the limits on the ratios.

use serde_json::Value;

/// A family of cases that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Ntt,
    KeySwitch,
    KeySwitchSets,
    KeySwitchLevels,
    Scheme,
    Circuits,
    Functions,
    Joint,
    Bootstrap,
}

impl Group {
    pub(crate) const ALL: [Self; 9] = [
        Self::Ntt,
        Self::KeySwitch,
        Self::KeySwitchSets,
        Self::KeySwitchLevels,
        Self::Scheme,
        Self::Circuits,
        Self::Functions,
        Self::Joint,
        Self::Bootstrap,
    ];

    /// Whether it runs where no group is named: bootstrapping takes 14 GB of memory.
    pub(crate) fn by_default(self) -> bool {
        self != Self::Bootstrap
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ntt => "ntt",
            Self::KeySwitch => "key-switch",
            Self::KeySwitchSets => "key-switch-sets",
            Self::KeySwitchLevels => "key-switch-levels",
            Self::Scheme => "scheme",
            Self::Circuits => "circuits",
            Self::Functions => "functions",
            Self::Joint => "joint",
            Self::Bootstrap => "bootstrap",
        }
    }
}

pub(crate) const LATTIGO: &str = "lattigo";
pub(crate) const OPENFHE: &str = "openfhe";
pub(crate) const TFHE_NTT: &str = "tfhe-ntt";
pub(crate) const FHEANOR: &str = "fheanor";
pub(crate) const POULPY: &str = "poulpy";

/// Ending of a peer's operation that leaves out the factor 1/N; ours always includes it.
pub(crate) const UNNORMALISED: &str = "-unnormalised";

/// One thing to measure, with all programs that can measure it. Where a program has several calls for one operation, its
/// fastest counts.
pub(crate) struct Case {
    pub(crate) group: Group,
    pub(crate) label: String,
    pub(crate) ops: Vec<&'static str>,
    pub(crate) ours: Vec<OurCall>,
    pub(crate) peers: Vec<PeerCall>,
    pub(crate) limits: Vec<Limit>,
}

/// One call of our command line; its JSON object holds a time for each field.
pub(crate) struct OurCall {
    pub(crate) args: String,
    pub(crate) fields: Vec<Field>,
}

/// Where a time stands in our JSON, as a pointer if it begins with a slash, and the factor that makes it nanoseconds.
pub(crate) struct Field {
    pub(crate) op: &'static str,
    pub(crate) key: &'static str,
    pub(crate) to_ns: f64,
}

impl Field {
    /// Its value in a line of ours, if it is there.
    pub(crate) fn of(&self, line: &Value) -> Option<f64> {
        if self.key.starts_with('/') { line.pointer(self.key)?.as_f64() } else { line[self.key].as_f64() }
    }
}

/// One call of a peer's program, which prints a line an operation, and the operations it does not have.
pub(crate) struct PeerCall {
    pub(crate) peer: &'static str,
    pub(crate) args: String,
    pub(crate) lacks: Vec<&'static str>,
}

/// The largest ratio (ours over the peer's) that is accepted.
pub(crate) struct Limit {
    pub(crate) op: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) ratio: f64,
    /// Binding only where our kernels use this instruction set.
    pub(crate) only_isa: Option<&'static str>,
}

/// Every case, in the order they are run.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for bits in [50, 60] {
        cases.extend((13..=17).map(|log_n| ntt(log_n, bits)));
    }
    cases.extend([
        key_switch(14, 280, 47, 6, 3, 0.12),
        key_switch(15, 560, 56, 10, 5, 0.14),
        key_switch(16, 1121, 56, 20, 10, 0.13),
        key_switch(17, 2242, 56, 40, 20, 0.13),
    ]);
    cases.extend(TABLE9.map(|(log_n, log_q, omega)| key_switch_set(log_n, log_q, omega)));
    cases.extend([39, 38, 37, 36, 35, 34, 33, 32, 28, 24, 20, 16, 12, 8, 4].map(key_switch_level));
    cases.extend([scheme("ckks", 15, 12), scheme("bgv", 14, 5), scheme("bfv", 14, 5), products()]);
    for name in ["bgv", "bfv"] {
        cases.extend((1..=7).map(|k| circuit(name, "product", k)));
        cases.extend([2, 4, 8, 16, 32, 48, 64].map(|k| circuit(name, "polynomial", k)));
        cases.push(circuit(name, "inner-product", 128));
    }
    cases.push(sign());
    cases.extend([joint("bgv", 14, 1), joint("ckks", 15, 3)]);
    cases.extend([
        bootstrap(16, "--log-scale 44 --levels 13 --precision 15 --baby-steps 8", "N16QP1767H32768H32"),
        bootstrap(
            15,
            "--log-scale 46 --levels 3 --precision 8 --ratio 9 --digits 8 --baby-steps 16",
            "N15QP880H16384H32",
        ),
        bootstrap_exact(),
    ]);
    cases
}

/// One limb, hot, in place. On IFMA a 50-bit prime may take at most 0.65 of tfhe-ntt's time.
fn ntt(log_n: u32, bits: u32) -> Case {
    let limit = |op| Limit {
        op,
        peer: TFHE_NTT,
        ratio: if bits == 50 { 0.65 } else { 0.95 },
        only_isa: (bits == 50).then_some("ifma"),
    };
    let field = |op, key| Field { op, key, to_ns: 1.0 };
    Case {
        group: Group::Ntt,
        label: format!("ntt, N 2^{log_n}, {bits} bits"),
        ops: vec!["forward", "inverse", "inverse-unnormalised"],
        ours: vec![OurCall {
            args: format!("bench ntt --log-n {log_n} --bits {bits} --json"),
            fields: vec![field("forward", "forward_ns"), field("inverse", "inverse_ns")],
        }],
        peers: vec![
            PeerCall { peer: TFHE_NTT, args: format!("ntt --log-n {log_n} --bits {bits}"), lacks: Vec::new() },
            PeerCall {
                peer: LATTIGO,
                args: format!("ntt --log-n {log_n} --bits {bits}"),
                lacks: vec!["inverse-unnormalised"],
            },
        ],
        limits: vec![limit("forward"), limit("inverse")],
    }
}

/// Hybrid key switching from NTT domain to NTT domain with two digits. The peers take `limbs` primes of `bits` bits in
/// Q (the nearest to `log_q` bits) and half as many in P; ours chooses its own widths for `log_q`. The limits: `ratio` of
/// Lattigo's time and 0.12 of OpenFHE's with 512-bit vectors, 0.3 of Lattigo's, which has none, with shorter ones.
fn key_switch(log_n: u32, log_q: u32, bits: u32, limbs: u32, special: u32, ratio: f64) -> Case {
    let ours = |op| OurCall {
        args: format!(
            "bench key-switch --log-n {log_n} --log-q {log_q} --omega 2 --method hybrid \
             --input ntt --output ntt --op {op} --json"
        ),
        fields: vec![Field { op, key: "median_ms", to_ns: 1e6 }],
    };
    let size = format!("key-switch --log-n {log_n} --bits {bits} --limbs {limbs}");
    Case {
        group: Group::KeySwitch,
        label: format!("key switch, N 2^{log_n}, log q {log_q}, omega 2"),
        ops: vec!["rotate", "relin"],
        ours: vec![ours("rotate"), ours("relin")],
        peers: vec![
            PeerCall { peer: LATTIGO, args: format!("{size} --special {special}"), lacks: Vec::new() },
            PeerCall { peer: OPENFHE, args: format!("{size} --omega 2"), lacks: Vec::new() },
        ],
        limits: rotation(&[(LATTIGO, ratio), (OPENFHE, 0.12)]),
    }
}

/// The limits of a rotation: these with 512-bit vectors, and 0.3 of Lattigo's time with others.
fn rotation(wide: &[(&'static str, f64)]) -> Vec<Limit> {
    let limit = |peer, ratio, only_isa| Limit { op: "rotate", peer, ratio, only_isa };
    let wide =
        ["ifma", "avx512"].into_iter().flat_map(|isa| wide.iter().map(move |&(peer, ratio)| (peer, ratio, Some(isa))));
    wide.chain([(LATTIGO, 0.3, None)]).map(|(peer, ratio, isa)| limit(peer, ratio, isa)).collect()
}

/// The sets of ePrint 2023/1642, Table 9: log2 N, bits of Q, digits.
const TABLE9: [(u32, u32, u32); 19] = [
    (14, 216, 1),
    (14, 280, 2),
    (14, 324, 3),
    (14, 342, 5),
    (15, 432, 1),
    (15, 560, 2),
    (15, 649, 3),
    (15, 684, 5),
    (15, 728, 6),
    (16, 855, 1),
    (16, 1121, 2),
    (16, 1298, 3),
    (16, 1380, 5),
    (16, 1475, 6),
    (17, 1711, 1),
    (17, 2242, 2),
    (17, 2580, 3),
    (17, 2760, 5),
    (17, 2940, 6),
];

/// A rotation with the digits of a set. The peer takes the fewest primes of at most 58 bits that all digits have equally
/// many of. The limit is 0.15 of its time but for one set.
fn key_switch_set(log_n: u32, log_q: u32, omega: u32) -> Case {
    let limbs = log_q.div_ceil(58).next_multiple_of(omega);
    let bits = log_q.div_ceil(limbs);
    let ratio = if (log_n, log_q) == (15, 649) { 0.14 } else { 0.15 };
    let mut case = key_switch(log_n, log_q, bits, limbs, limbs / omega, ratio);
    case.group = Group::KeySwitchSets;
    case.label = format!("set of Table 9, N 2^{log_n}, log q {log_q}, omega {omega}");
    case.ops.retain(|op| *op == "rotate");
    case.ours.truncate(1);
    case.ours[0].args = case.ours[0].args.replace("--omega 2", &format!("--omega {omega}"));
    case.peers.retain(|call| call.peer == LATTIGO);
    case.limits.retain(|limit| limit.peer == LATTIGO);
    case
}

/// A rotation at a level of level-aware key switching: a chain of 40 primes of 44 bits (Table 3): `limbs` primes in the ciphertext and the
/// best number of the others in P, for both.
fn key_switch_level(limbs: u32) -> Case {
    let lengths = [1, 2, 4, 8, 16].into_iter().filter(|length| limbs + length <= 40);
    let field = || Field { op: "rotate", key: "median_ms", to_ns: 1e6 };
    let ours = |length: u32| OurCall {
        args: format!(
            "bench key-switch --log-n 16 --log-q {} --log-p {} --width 44 --digit-primes {} --method hybrid --insecure \
             --input ntt --output ntt --op rotate --json",
            44 * limbs,
            44 * length,
            length.min(limbs),
        ),
        fields: vec![field()],
    };
    let peer = |length: u32| PeerCall {
        peer: LATTIGO,
        args: format!("key-switch --log-n 16 --bits 44 --limbs {limbs} --special {length}"),
        lacks: Vec::new(),
    };
    Case {
        group: Group::KeySwitchLevels,
        label: format!("level of {limbs} of 40 primes, N 2^16"),
        ops: vec!["rotate"],
        ours: lengths.clone().map(ours).collect(),
        peers: lengths.map(peer).collect(),
        limits: rotation(&[(LATTIGO, 0.14)]),
    }
}

/// Every operation of one scheme: each must be faster than each peer's; of CKKS a sum may take at most 0.8 and an
/// encryption 0.2 of Lattigo's.
fn scheme(name: &'static str, log_n: u32, depth: u32) -> Case {
    let mut ops = vec!["encrypt", "mul", "rescale", "rotate", "decrypt", "add", "mul-norelin"];
    if name == "bfv" {
        ops.retain(|op| *op != "rescale");
    }
    let bound = ops.iter().filter(|op| !["add", "mul-norelin"].contains(op));
    let limit = |op, peer, ratio| Limit { op, peer, ratio, only_isa: None };
    let sharper = if name == "ckks" { &[("add", 0.8), ("encrypt", 0.2)][..] } else { &[] };
    let limits = sharper
        .iter()
        .map(|&(op, ratio)| limit(op, LATTIGO, ratio))
        .chain(bound.flat_map(|op| [LATTIGO, OPENFHE].map(|peer| limit(op, peer, 1.0))))
        .collect();
    let ours = ops
        .iter()
        .map(|op| OurCall {
            args: format!("bench scheme --scheme {name} --log-n {log_n} --depth {depth} --op {op} --json"),
            fields: vec![Field { op, key: "median_ms", to_ns: 1e6 }],
        })
        .collect();
    let peer = |peer| PeerCall { peer, args: format!("scheme --scheme {name}"), lacks: Vec::new() };
    Case {
        group: Group::Scheme,
        label: format!("{name}, N 2^{log_n}"),
        ops,
        ours,
        peers: vec![peer(LATTIGO), peer(OPENFHE)],
        limits,
    }
}

/// Products of BFV one after another at N = 2^15, t = 65537 and parameters for ten of them, key switching included:
/// the faster of ours, raised again or not, at most 0.09 of the faster of OpenFHE's P-over-Q and leveled ones.
fn products() -> Case {
    const OPS: [&str; 10] = [
        "product 1",
        "product 2",
        "product 3",
        "product 4",
        "product 5",
        "product 6",
        "product 7",
        "product 8",
        "product 9",
        "product 10",
    ];
    let widths = ["47"; OPS.len()].join(",");
    let ours = |(i, op, variant)| OurCall {
        args: format!(
            "bench scheme --scheme bfv --log-n 15 --q-bits {widths} --omega 2 --variant {variant} --op mul --product {} --json",
            i + 1
        ),
        fields: vec![Field { op, key: "median_ms", to_ns: 1e6 }],
    };
    let calls = OPS.into_iter().enumerate().flat_map(|(i, op)| ["leveled", "descending"].map(|v| (i, op, v)));
    let limit = |op| Limit { op, peer: OPENFHE, ratio: 0.09, only_isa: None };
    Case {
        group: Group::Scheme,
        label: "bfv, N 2^15, ten products".to_owned(),
        ops: OPS.to_vec(),
        ours: calls.map(ours).collect(),
        peers: vec![PeerCall { peer: OPENFHE, args: "products --log-n 15 --depth 10".to_owned(), lacks: Vec::new() }],
        limits: OPS.map(limit).into(),
    }
}

/// A circuit of ePrint 2021/204, appendix G, at t = 65537 and 128 bits of security, each library at the degree and
/// modulus that it chooses for it: at most a quarter of OpenFHE's time.
fn circuit(name: &'static str, op: &'static str, k: u32) -> Case {
    let args = format!("--scheme {name} --circuit {op} --k {k}");
    Case {
        group: Group::Circuits,
        label: format!("{name}, {op}, k {k}"),
        ops: vec![op],
        ours: vec![OurCall {
            args: format!("bench circuit {args} --json"),
            fields: vec![Field { op, key: "median_ms", to_ns: 1e6 }],
        }],
        peers: vec![PeerCall { peer: OPENFHE, args: format!("circuit {args}"), lacks: Vec::new() }],
        limits: vec![Limit { op, peer: OPENFHE, ratio: 0.25, only_isa: None }],
    }
}

/// The sign to within 2^-10 outside a gap of 2^-7, of all slots at N = 2^16: ours certified to be so, the peers' by what they
/// are off by, which their lines say. At most 0.3 of the better.
fn sign() -> Case {
    let limit = |peer| Limit { op: "sign", peer, ratio: 0.3, only_isa: None };
    let peer =
        |peer, bits: &str| PeerCall { peer, args: format!("sign --log-n 16 --gap-bits 7{bits}"), lacks: Vec::new() };
    Case {
        group: Group::Functions,
        label: "sign to 2^-10 outside 2^-7, N 2^16".to_owned(),
        ops: vec!["sign"],
        ours: vec![OurCall {
            args: "bench sign --log-n 16 --gap-bits 7 --bits 10 --json".to_owned(),
            fields: vec![Field { op: "sign", key: "median_ms", to_ns: 1e6 }],
        }],
        peers: vec![peer(LATTIGO, ""), peer(OPENFHE, " --sign-bits 10")],
        limits: vec![limit(LATTIGO), limit(OPENFHE)],
    }
}

/// Three parties make a key with 20 rotations and decrypt 100 ciphertexts, all on one core: at most 0.3 of the time of
/// Lattigo's, which has the same moduli, adds shares of keys up once and not at every party, and decrypts ciphertexts with
/// as many primes as ours have then.
fn joint(name: &'static str, log_n: u32, level: u32) -> Case {
    let field = |op, key| Field { op, key, to_ns: 1e6 };
    let peer = PeerCall { peer: LATTIGO, args: format!("joint --scheme {name} --level {level}"), lacks: Vec::new() };
    Case {
        group: Group::Joint,
        label: format!("joint keys of three, {name}, N 2^{log_n}"),
        ops: vec!["generate", "decrypt"],
        ours: vec![OurCall {
            args: format!("bench joint --scheme {name} --json"),
            fields: vec![field("generate", "generate_ms"), field("decrypt", "decrypt_ms")],
        }],
        peers: vec![peer],
        limits: ["generate", "decrypt"].map(|op| Limit { op, peer: LATTIGO, ratio: 0.3, only_isa: None }).into(),
    }
}

/// The stages of a refresh, in the order in which we run them.
const STAGES: [(&str, &str); 4] = [
    ("SlotsToCoeffs", "/stages/0/seconds"),
    ("ModRaise", "/stages/1/seconds"),
    ("CoeffsToSlots", "/stages/2/seconds"),
    ("EvalMod", "/stages/3/seconds"),
];

/// A refresh of all slots, each library at its own parameters, what they come to being in the second table: at most a
/// quarter of Lattigo's time at its set for a uniform secret, and at N = 2^16 half of the others'. Stages have no limits, for
/// what one does in one of them another does elsewhere.
fn bootstrap(log_n: u32, args: &str, set: &str) -> Case {
    let stages = STAGES.map(|(op, key)| Field { op, key, to_ns: 1e9 });
    let fields = std::iter::once(Field { op: "refresh", key: "seconds", to_ns: 1e9 }).chain(stages).collect();
    let lattigo = PeerCall { peer: LATTIGO, args: format!("bootstrap --set {set} --runs 3"), lacks: Vec::new() };
    let poulpy = PeerCall { peer: POULPY, args: format!("bootstrap --log-n {log_n} --runs 3"), lacks: Vec::new() };
    let openfhe = PeerCall {
        peer: OPENFHE,
        args: format!("bootstrap --log-n {log_n} --levels 9 --runs 3"),
        lacks: STAGES.map(|(op, _)| op).to_vec(),
    };
    let limit = |&(peer, ratio): &(&'static str, f64)| Limit { op: "refresh", peer, ratio, only_isa: None };
    let (peers, limits) = if log_n == 16 {
        (vec![lattigo, openfhe, poulpy], &[(LATTIGO, 0.25), (OPENFHE, 0.5), (POULPY, 0.5)][..])
    } else {
        (vec![lattigo, poulpy], &[(LATTIGO, 0.25)][..])
    };
    Case {
        group: Group::Bootstrap,
        label: format!("bootstrap, N 2^{log_n}, {set}"),
        ops: std::iter::once("refresh").chain(STAGES.map(|(op, _)| op)).collect(),
        ours: vec![OurCall { args: format!("bench bootstrap --log-n {log_n} {args} --iterations 3 --json"), fields }],
        peers,
        limits: limits.iter().map(limit).collect(),
    }
}

/// A refresh of BFV modulo 65537, of the noise of all coefficients at N = 2^16 in ours and of the integers in the 2^15 slots
/// at N = 2^15 in the peer's, at the parameters of its own timing: at most half of its time.
fn bootstrap_exact() -> Case {
    Case {
        group: Group::Bootstrap,
        label: "bootstrap of BFV, t 65537".to_owned(),
        ops: vec!["refresh"],
        ours: vec![OurCall {
            args: "bench bootstrap --scheme bfv --log-n 16 --products 1 --baby-steps 4 --iterations 3 --json"
                .to_owned(),
            fields: vec![Field { op: "refresh", key: "seconds", to_ns: 1e9 }],
        }],
        peers: vec![PeerCall { peer: FHEANOR, args: "bootstrap --log-n 15 --runs 3".to_owned(), lacks: Vec::new() }],
        limits: vec![Limit { op: "refresh", peer: FHEANOR, ratio: 0.5, only_isa: None }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_names_an_operation_and_a_peer_of_its_case() {
        for case in all() {
            assert!(!case.limits.is_empty(), "{}", case.label);
            for limit in &case.limits {
                assert!(case.ops.contains(&limit.op), "{}: {}", case.label, limit.op);
                assert!(case.peers.iter().any(|call| call.peer == limit.peer), "{}: {}", case.label, limit.peer);
            }
        }
    }

    #[test]
    fn every_operation_is_measured_by_us() {
        for case in all() {
            for op in &case.ops {
                let ours = op.trim_end_matches(UNNORMALISED);
                let found = case.ours.iter().flat_map(|call| &call.fields).any(|field| field.op == ours);
                assert!(found, "{}: {op}", case.label);
            }
        }
    }
}
