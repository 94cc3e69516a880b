//! A party's share of the MAC key alpha, and the check of MACs, which may give alpha away and therefore burns it first.
//!
//! A check opens sigma_i = mac_i - alpha_i x of a random combination x of opened values. If x is right they add up to 0, and
//! the others learn nothing; if x is off by d they add up to -alpha d, and whoever opened the wrong value knows alpha from
//! then on (`docs/triples.md` has the argument). So that nobody computes under a key that is known, a share can be checked
//! with by `MacKeyShare::check` alone, which sends nothing before the key counts as burnt: in this process for all clones of the
//! share, and on disk by a mark beside each of the key's records. Only a check that passed takes its own
//! mark away.

pub(crate) mod home;
pub(crate) mod seal;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use synchromesh::rlwe::entropy;
use synchromesh_parties::Blame;
use synchromesh_parties::transport::Transport;
use zeroize::{Zeroize, Zeroizing};

use crate::error::{Error, Result};
use crate::field::{Element, Field};
use crate::session::Session;
use home::{Home, Mark, Name, Standing};

/// How long a check that passed waits for those of other sessions under the same key, which may yet give it away.
const PATIENCE: Duration = Duration::from_secs(900);

/// How often it looks.
const PAUSE: Duration = Duration::from_millis(2);

/// One party's share of the MAC key alpha. Wiped when dropped, and never printed.
///
/// Clones are one key: what burns one burns all, and so it is with what was read from the same files.
#[derive(Clone)]
pub struct MacKeyShare {
    share: Element,
    state: Arc<Mutex<State>>,
}

/// What is known of a key.
#[derive(Default)]
struct State {
    burnt: bool,
    /// Checks that go on in this process.
    open: BTreeSet<u64>,
    checks: u64,
    name: Option<Name>,
    homes: Vec<Home>,
}

impl MacKeyShare {
    /// A share that was dealt, of a key that is in no file.
    #[must_use]
    pub fn new(share: Element) -> Self {
        Self { share, state: Arc::default() }
    }

    /// A fresh uniform share: the sum of all parties' is uniform if one of them is honest.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::Entropy`] when the system gives no randomness.
    pub fn random(field: &Field) -> Result<Self> {
        field.random().map(Self::new)
    }

    /// A share that was read, of the key with these records.
    pub(crate) fn of(share: Element, name: Name, homes: Vec<Home>) -> Self {
        let state = State { name: Some(name), homes, ..State::default() };
        Self { share, state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn secret(&self) -> Element {
        self.share
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the key's records are known by.
    pub(crate) fn name(&self) -> Result<Name> {
        let mut state = self.state();
        match state.name {
            Some(name) => Ok(name),
            None => Ok(*state.name.insert(Name(entropy::random_bytes()?))),
        }
    }

    /// Begins a record of this key beside a file of it: one more if it has some.
    pub(crate) fn house(&self, file: &Path) -> Result<()> {
        let name = self.name()?;
        let mut state = self.state();
        let home = Home::create(&file.with_extension("mac"), file, name, &state.homes)?;
        state.homes.push(home);
        Ok(())
    }

    /// Where the key's records are, copies among them; none for a key that is in no file.
    pub(crate) fn homes(&self) -> Result<Vec<Home>> {
        let homes = self.state().homes.clone();
        home::with_copies(&homes)
    }

    /// Whether nobody else can know the key, as far as this process and the key's records know.
    ///
    /// # Errors
    /// [`Error::MacKeyBurnt`], or that a record cannot be read.
    pub fn usable(&self) -> Result<()> {
        if self.state().burnt {
            let why = "a check of its MACs failed in this process".to_owned();
            return Err(Error::MacKeyBurnt { why, void: self.files() });
        }
        home::usable(&self.homes()?)
    }

    /// Whether the key is [usable](Self::usable), and can be marked before a check.
    ///
    /// # Errors
    /// As [`usable`](Self::usable), and [`synchromesh_parties::Error::File`] where a mark could not be written.
    pub fn ready(&self) -> Result<()> {
        self.usable()?;
        self.homes()?.iter().try_for_each(Home::probe)
    }

    /// Files that hold this key, or triples under it, as far as its records know.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.homes().map(|homes| home::files(&homes)).unwrap_or_default()
    }

    /// Opens sigma_i = mac_i - alpha_i x of the combination x of opened values, of which `mac` is the share of the MAC.
    /// The key is burnt before a share leaves, and is not any more when they add up to 0.
    ///
    /// # Errors
    /// [`Error::MacKeyBurnt`] and [`synchromesh_parties::Error::File`], and nothing was sent; as
    /// [`Session::commit_and_open`] before any share was opened; [`Error::MacKeyLeaked`] from then on;
    /// [`Error::MacKeyBusy`] if another check under this key does not end.
    pub(crate) fn check<T: Transport>(&self, session: &mut Session<T>, value: Element, mac: Element) -> Result<()> {
        self.usable()?;
        let field = session.field().clone();
        let mut sigma = field.sub(mac, field.mul(self.share, value));
        let mut bytes = Zeroizing::new(Vec::with_capacity(field.element_bytes()));
        field.write(sigma, &mut bytes);
        sigma.zeroize();
        let mut burning = None;
        let opened = session.commit_then_open(&bytes, || {
            burning = Some(Burning::begin(self)?);
            Ok(())
        });
        let verdict = opened.and_then(|shares| add_up(session, &field, &shares));
        match (verdict, burning) {
            (Ok(()), Some(burning)) => burning.passed().inspect_err(|_| {
                // Nothing of this session may be used.
                session.abort(Blame::Somebody, "made the MAC key known");
            }),
            (Err(error), Some(burning)) => {
                let void = self.files();
                drop(burning);
                Err(Error::MacKeyLeaked { abort: Box::new(error), void })
            }
            (Err(error), None) => Err(error),
            (Ok(()), None) => Err(Error::aborted()),
        }
    }
}

fn add_up<T: Transport>(session: &mut Session<T>, field: &Field, shares: &[Vec<u8>]) -> Result<()> {
    let mut sum = Element::ZERO;
    for (party, bytes) in shares.iter().enumerate() {
        let Ok(share) = field.read(bytes) else {
            return Err(session.abort(Blame::Party(party), "sent a share that is not below p").into());
        };
        sum = field.add(sum, share);
    }
    if sum == Element::ZERO {
        Ok(())
    } else {
        Err(session.abort(Blame::Somebody, "opened a value that its MAC does not fit").into())
    }
}

/// A check that goes on: its key is burnt unless it passes.
struct Burning<'a> {
    key: &'a MacKeyShare,
    number: u64,
    marks: Vec<(Home, Mark)>,
    passed: bool,
}

impl<'a> Burning<'a> {
    /// Marks the key in all its records. If one cannot be marked, none stays so.
    fn begin(key: &'a MacKeyShare) -> Result<Self> {
        let homes = key.homes()?;
        let mut marks = Vec::with_capacity(homes.len());
        for home in homes {
            match home.mark() {
                Ok(mark) => marks.push((home, mark)),
                Err(error) => {
                    marks.into_iter().try_for_each(|(_, mark): (Home, Mark)| mark.clear())?;
                    return Err(error);
                }
            }
        }
        let mut state = key.state();
        let number = state.checks;
        state.checks += 1;
        state.open.insert(number);
        drop(state);
        Ok(Self { key, number, marks, passed: false })
    }

    /// Takes the marks away, and waits for the checks that others have begun until then: if one fails, its cheater may
    /// have known the key before this check passed.
    fn passed(mut self) -> Result<()> {
        let mut homes = Vec::with_capacity(self.marks.len());
        for (home, mark) in self.marks.drain(..) {
            mark.clear()?;
            homes.push(home);
        }
        let others = {
            let mut state = self.key.state();
            state.open.remove(&self.number);
            self.passed = true;
            state.open.clone()
        };
        let begun = homes.iter().map(Home::pending).collect::<Result<Vec<_>>>()?;
        let start = Instant::now();
        loop {
            self.key.usable()?;
            let here = self.key.state().open.is_disjoint(&others);
            let mut elsewhere = false;
            for (home, begun) in homes.iter().zip(&begun) {
                elsewhere |= matches!(home.standing(begun)?, Standing::Pending);
            }
            if here && !elsewhere {
                // Whoever was not pending any more has passed, or has left a mark by now.
                return self.key.usable();
            }
            if start.elapsed() > PATIENCE {
                return Err(Error::MacKeyBusy { files: self.key.files(), seconds: PATIENCE.as_secs() });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Burning<'_> {
    fn drop(&mut self) {
        if !self.passed {
            let mut state = self.key.state();
            state.open.remove(&self.number);
            state.burnt = true;
        }
    }
}

impl fmt::Debug for MacKeyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKeyShare(secret)")
    }
}

impl Drop for MacKeyShare {
    fn drop(&mut self) {
        self.share.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::field::DEFAULT_PRIME;

    /// What becomes of a check that passes while another goes on, once that one ends so.
    fn outcome(end: impl FnOnce(Burning<'_>) + Send) -> Result<()> {
        let key = MacKeyShare::new(DEFAULT_PRIME.parse::<Field>().unwrap().small(3));
        let (one, other) = (Burning::begin(&key).unwrap(), Burning::begin(&key).unwrap());
        key.usable().unwrap();
        thread::scope(|scope| {
            let one = scope.spawn(|| one.passed());
            thread::sleep(20 * PAUSE);
            assert!(!one.is_finished(), "it has not waited for the other");
            end(other);
            one.join().unwrap()
        })
    }

    #[test]
    fn a_check_that_passed_stands_or_falls_with_those_that_it_overlaps() {
        outcome(|other| other.passed().unwrap()).unwrap();
        assert_eq!(outcome(|other: Burning<'_>| drop(other)).unwrap_err().kind(), "mac_key_burnt");
    }
}
