//! `triples`: matrix triples for multi-party computation, among processes on one machine or several.

use crate::error::Error;
use crate::interrupt::{Children, end_with_input};
use crate::output::Report;
use crate::triples::{Format, Local, Origin, Party, Wanted, identity, most_bytes};
use clap::{Args, Subcommand};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;
use synchromesh_triples::generation::{Floor, Proofs};

/// Make authenticated matrix triples: shares of random A, B and C = A B and of their MACs.
#[derive(Subcommand, Debug)]
pub(super) enum Triples {
    /// Run all parties as processes of this machine, and check what they made.
    Local(LocalRun),
    /// Run one party.
    Party(PartyRun),
    /// Choose parameters and deal all keys, as somebody whom all parties trust; with --keys generate, parameters only.
    Deal(Dealing),
    /// Make a party's certificate and print the fingerprint that the others need.
    Identity {
        /// The file.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(super) struct What {
    /// Parties.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=64))]
    parties: u32,
    /// The shape: rows of A, columns of A, columns of B.
    #[arg(long, value_name = "RxKxC")]
    shape: String,
    /// Triples.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Statistical security in bits: of MACs, of flooding and of proofs.
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u32).range(20..=128))]
    security: u32,
    /// The prime, decimal or 0x.. [default: 0xffffffffffffffffffffffffff820001].
    #[arg(long)]
    prime: Option<String>,
    /// log2 of how many ciphertexts may be decrypted under one key.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(4..=40))]
    decryptions: u32,
    /// log2 of the ring degree [default: the smallest that works].
    #[arg(long, value_parser = clap::value_parser!(u32).range(10..=17))]
    log_n: Option<u32>,
    /// Where keys come from: dealer, whom all parties trust; generate: the parties make them, with proofs.
    #[arg(long, value_enum, default_value = "dealer")]
    keys: Origin,
    /// Rotations made from one decomposition, and as many keys for each factor [default: 8 from a dealer, else 1].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    window: Option<u32>,
    /// Allow less than 128 bits of computational security.
    #[arg(long)]
    insecure: bool,
}

impl What {
    fn wanted(&self, most_bytes: Option<u64>) -> Wanted {
        Wanted {
            parties: self.parties as usize,
            shape: self.shape.clone(),
            count: self.count as usize,
            security: self.security,
            prime: self.prime.clone(),
            decryptions: self.decryptions,
            log_n: self.log_n,
            insecure: self.insecure,
            keys: self.keys,
            window: self.window.map(|window| window as usize),
            most_bytes,
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct How {
    /// Where triples go.
    #[arg(long, value_name = "DIR", default_value = "triples")]
    out: PathBuf,
    /// mp-spdz: files that MP-SPDZ reads; plain: residues that NumPy reads, each triple given out once.
    #[arg(long, value_enum, default_value = "mp-spdz")]
    format: Format,
    /// Threads of a party.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Seconds to wait for a message before giving up.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Say on standard error where the run is, even if that is no terminal.
    #[arg(long)]
    progress: bool,
    /// Most memory that may be used here, by all parties together [default: what is free].
    #[arg(long, value_name = "BYTES")]
    max_memory_bytes: Option<u64>,
}

impl How {
    fn speaks(&self) -> bool {
        self.progress || std::io::stderr().is_terminal()
    }
}

#[derive(Args, Debug)]
pub(super) struct LocalRun {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    how: How,
}

#[derive(Args, Debug)]
pub(super) struct Dealing {
    #[command(flatten)]
    what: What,
    /// Where plan, public keys and the parties' keys go.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Most memory that may be used for it [default: what is free].
    #[arg(long, value_name = "BYTES")]
    max_memory_bytes: Option<u64>,
}

#[derive(Args, Debug)]
pub(super) struct PartyRun {
    /// Number of this party, from 0.
    #[arg(long)]
    id: usize,
    /// The list of parties: a line for each, host:port and fingerprint.
    #[arg(long, value_name = "FILE")]
    hosts: PathBuf,
    /// Where plan.json, public.key, eval.keys and mac.ct are; with a plan of --keys generate alone, a directory of this party's
    /// own, where it puts the keys that it makes with the others first.
    #[arg(long, value_name = "DIR")]
    setup: PathBuf,
    /// This party's key [default: party-ID.key in the directory of the setup]. Beside it are its journal of decryptions
    /// (.journal) and the record of its MAC key (.mac): move all three together.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// This party's certificate, of `triples identity`.
    #[arg(long, value_name = "FILE")]
    identity: PathBuf,
    /// Triples.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Take a plan with less than 128 bits of computational security, whoever wrote it.
    #[arg(long)]
    insecure: bool,
    /// Bits of statistical security that the plan must have.
    #[arg(long, value_name = "BITS", default_value_t = Floor::default().statistical_security)]
    least_statistical_security: u32,
    /// Take a plan by which nothing is proven of encryptions: a party that encrypts what it likes may learn of your shares.
    #[arg(long)]
    without_proofs: bool,
    /// End when standard input does, as `triples local` wants it.
    #[arg(long, hide = true)]
    end_with_input: bool,
    #[command(flatten)]
    how: How,
}

impl PartyRun {
    fn floor(&self) -> Floor {
        Floor {
            statistical_security: self.least_statistical_security,
            insecure: self.insecure,
            proofs: if self.without_proofs { Proofs::Nothing } else { Proofs::Knowledge },
        }
    }
}

impl Triples {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        let children = Children::default();
        children.end_with_signals(json)?;
        match self {
            Self::Identity { out } => Report::new(&identity(out)?),
            Self::Deal(deal) => Report::new(&deal.what.wanted(deal.max_memory_bytes).deal(&deal.out)?),
            Self::Party(run) => {
                if run.end_with_input {
                    end_with_input(json)?;
                }
                let party = synchromesh_triples::party::Party {
                    id: run.id,
                    hosts: run.hosts.clone(),
                    setup: run.setup.clone(),
                    key: run.key.clone(),
                    identity: run.identity.clone(),
                    out: run.how.out.clone(),
                    count: run.count as usize,
                    threads: run.how.threads as usize,
                    format: run.how.format.into(),
                    timeout: Duration::from_secs(run.how.timeout),
                    floor: run.floor(),
                    most_bytes: most_bytes(run.how.max_memory_bytes),
                };
                Report::new(&Party { run: party, progress: run.how.speaks() }.run()?)
            }
            Self::Local(run) => {
                let local = Local {
                    wanted: run.what.wanted(run.how.max_memory_bytes),
                    out: run.how.out.clone(),
                    threads: run.how.threads as usize,
                    format: run.how.format,
                    timeout: Duration::from_secs(run.how.timeout),
                    progress: run.how.speaks(),
                };
                let (report, verified) = local.run(&children)?;
                Ok(Report::new(&report)?.check(verified, "the opened shares are triples with right MACs"))
            }
        }
    }
}
