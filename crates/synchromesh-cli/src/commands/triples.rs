//! `triples`: matrix triples and tuples of numbers for multi-party computation, among processes on one machine or several.

use crate::error::Error;
use crate::interrupt::{Children, end_with_input};
use crate::output::Report;
use crate::programs::use_files;
use crate::triples::{Format, Local, Origin, Party, Wanted, identity, most_bytes};
use clap::{Args, Subcommand};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use synchromesh_triples::generation::{Floor, Proofs};
use synchromesh_triples::party::{Spread, Want};

/// Make authenticated matrix triples: shares of random A, B and C = A B and of their MACs.
#[derive(Subcommand, Debug)]
pub(super) enum Triples {
    /// Run all parties as processes of this machine, and check what they made.
    Local(LocalRun),
    /// Run one party.
    Party(PartyRun),
    /// Choose parameters and deal all keys, as somebody whom all parties trust; with --keys generate, parameters only.
    Deal(Dealing),
    /// Run a program of MP-SPDZ with the files of one run, which are used up by it: `triples use --id 0 --from run-1 --
    /// ./Player-Online.x -N 2 -p 0 PROGRAM`.
    Use(Using),
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
    /// Shapes that the same keys are for: rows of A, columns of A, columns of B [default: those of --make, else 1x1x1].
    /// Triples, squares, bits, inverses and inputs of single numbers are made with any keys.
    #[arg(long, value_name = "RxKxC", value_delimiter = ',')]
    shape: Vec<String>,
    /// Triples of the first shape in a run. Parameters are chosen for it: more in a run pack more into each ciphertext, and
    /// each takes fewer bytes (of two of 128x128x128 each a third less than one alone); a run that makes another number wastes what
    /// it does not fill.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// What a run makes, in place of --count: RxKxC:COUNT, or triples, squares, bits, inverses or inputs (as many for each
    /// party) with :COUNT, and so many more that MP-SPDZ, which reads 101 at a time, finds whole ones.
    #[arg(long, value_name = "WHAT:COUNT", value_delimiter = ',', conflicts_with = "count")]
    make: Vec<String>,
    /// What a run makes: as much as a program of MP-SPDZ takes, by the lines after "Program requires at most:" in this file,
    /// to which what `compile.py` printed was written.
    #[arg(long = "for", value_name = "FILE", conflicts_with_all = ["make", "count"])]
    program: Option<PathBuf>,
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
    /// Go on with the MAC key in this Player-Data, which has the shares of all parties: what is made goes with what is there.
    /// `local` does so by itself with that in --out. One without a record, as MP-SPDZ makes it, is taken on your word that no
    /// check under it has failed.
    #[arg(long, value_name = "DIR")]
    mac_keys: Option<PathBuf>,
}

impl What {
    fn wanted(&self, spread: Spread, most_bytes: Option<u64>) -> Result<Wanted, Error> {
        Ok(Wanted {
            parties: self.parties as usize,
            shapes: self.shape.clone(),
            count: self.count as usize,
            make: self.program.as_deref().map_or_else(|| Ok(self.make.clone()), demand)?,
            spread,
            mac_keys: self.mac_keys.clone(),
            security: self.security,
            prime: self.prime.clone(),
            decryptions: self.decryptions,
            log_n: self.log_n,
            insecure: self.insecure,
            keys: self.keys,
            window: self.window.map(|window| window as usize),
            most_bytes,
        })
    }
}

/// What a program takes, by what its compiler printed into this file.
fn demand(file: &Path) -> Result<Vec<String>, Error> {
    let text = String::from_utf8_lossy(&synchromesh_rlwe::file::read(file, 1 << 24)?).into_owned();
    Ok(synchromesh_triples::demand::of_compiler(&text)?.iter().map(ToString::to_string).collect())
}

/// For what files are.
#[derive(Args, Debug)]
pub(super) struct For {
    /// Make files for so many runs of a program, in directories run-1, run-2, .. of --out, each with as much as is said to be
    /// made: MP-SPDZ begins at the start of a file of matrix triples in every run.
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..=Spread::MOST as i64))]
    runs: Option<u32>,
    /// Make files for each of so many threads of a program, each with as much as is said to be made, for MP-SPDZ with
    /// --file-prep-per-thread: without it, threads begin at the start of one file of matrix triples all together.
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u32).range(1..=Spread::MOST as i64))]
    program_threads: Option<u32>,
}

impl For {
    fn spread(&self) -> Spread {
        Spread {
            runs: self.runs.map(|runs| runs as usize),
            threads: self.program_threads.map(|threads| threads as usize),
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct Using {
    /// Number of this party, from 0.
    #[arg(long)]
    id: usize,
    /// The directory of the run: run-1, .. of --out, or --out itself if it was made without --runs. The same run at every party.
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// Where MP-SPDZ reads: its Player-Data. Files go there for as long as the program runs.
    #[arg(long, value_name = "DIR", default_value = "Player-Data")]
    player_data: PathBuf,
    /// The program and its arguments. With --json what it prints goes to standard error.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

#[derive(Args, Debug)]
pub(super) struct How {
    /// Where triples go: with mp-spdz, to Player-Data there. What is under one MAC key may go to one directory, of
    /// several runs too; files that are there stay, and a run that would write over one ends before it begins.
    #[arg(long, value_name = "DIR", default_value = "triples")]
    out: PathBuf,
    /// mp-spdz: files that MP-SPDZ reads; plain: residues that NumPy reads, each triple given out once. Tuples of single
    /// numbers are always in files that MP-SPDZ reads.
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
    of: For,
    #[command(flatten)]
    how: How,
}

#[derive(Args, Debug)]
pub(super) struct Dealing {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    of: For,
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
    /// Triples of the plan's first shape; all parties must say the same. A multiple of those that the plan makes together
    /// (`packing` in the report of `deal`) wastes nothing.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// What to make, in place of --count: RxKxC:COUNT of a shape of the plan, or triples, squares, bits, inverses or inputs (as
    /// many for each party) with :COUNT, and so many more that MP-SPDZ, which reads 101 at a time, finds whole ones. All parties
    /// must say the same.
    #[arg(long, value_name = "WHAT:COUNT", value_delimiter = ',', conflicts_with = "count")]
    make: Vec<String>,
    /// What to make: as much as a program of MP-SPDZ takes, by the lines after "Program requires at most:" in this file, to
    /// which what `compile.py` printed was written.
    #[arg(long = "for", value_name = "FILE", conflicts_with_all = ["make", "count"])]
    program: Option<PathBuf>,
    #[command(flatten)]
    of: For,
    /// Go on with the MAC key in this Player-Data, where the parties make their keys first [default: with that in --out, if
    /// it has one]. One without a record, as MP-SPDZ makes it, is taken on your word that no check under it has failed.
    #[arg(long, value_name = "DIR")]
    mac_key: Option<PathBuf>,
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
    fn wants(&self) -> Result<Vec<Want>, Error> {
        let make = self.program.as_deref().map_or_else(|| Ok(self.make.clone()), demand)?;
        if make.is_empty() {
            return Ok(vec![Want::Matrices { shape: None, count: self.count as usize }]);
        }
        Ok(make.iter().map(|text| text.parse()).collect::<Result<_, synchromesh_triples::Error>>()?)
    }

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
            Self::Deal(deal) => {
                let wanted = deal.what.wanted(deal.of.spread(), deal.max_memory_bytes)?;
                Report::new(&wanted.deal(&deal.out)?)
            }
            Self::Use(using) => {
                let places = (using.from.as_path(), using.player_data.as_path());
                Report::new(&use_files(places, using.id, (&using.program, json), &children)?)
            }
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
                    wants: run.wants()?,
                    spread: run.of.spread(),
                    mac_key: run.mac_key.clone(),
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
                    wanted: run.what.wanted(run.of.spread(), run.how.max_memory_bytes)?,
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
