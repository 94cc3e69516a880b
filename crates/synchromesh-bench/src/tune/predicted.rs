//! Profiles of cards that nothing was measured on: the launches of each operation, counted on the emulator, as a model of the
//! card prices them.

use synchromesh::cost::{Profile, Streaming};
use synchromesh_cuda::model::Card;
use synchromesh_cuda::{Cuda, Emulated, Order};

use super::{Clock, Plan, date, measure_backend};
use crate::Error;

/// Degrees that are counted, as log2: others are as the nearest, in proportion.
const DEGREES: [u32; 2] = [13, 16];
/// Working sets: two that every card's second-level cache holds, and one that none does.
const SETS: [usize; 3] = [4 << 20, 16 << 20, 128 << 20];
/// Calls that are counted where every operand comes from memory.
const COUNTED: usize = 3;

/// What a card takes for the launches that were counted.
struct Priced<'a> {
    card: &'a Card,
    device: &'a Emulated,
}

impl Clock<Cuda<Emulated>> for Priced<'_> {
    fn seconds(
        &self,
        _: &Cuda<Emulated>,
        (sets, bytes): (usize, usize),
        pass: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<f64, Error> {
        // Of operands that the cache holds all have been read before; of others none is there, whatever was.
        let held = (sets * bytes) as u64 <= self.card.cache_bytes;
        let (before, calls) = if held { (sets, sets) } else { (1, COUNTED) };
        drop(self.device.take_launches());
        pass(before)?;
        drop(self.device.take_launches());
        pass(calls)?;
        let launches = self.device.take_launches();
        let seconds: f64 = launches.iter().map(|launch| self.card.predict(launch).seconds).sum();
        Ok(seconds / calls as f64)
    }
}

/// The profile of a card; `progress` hears what comes next. A model says how long each operation takes.
///
/// # Errors
/// [`Error`] where memory is short.
pub fn predict(card: &Card, progress: impl FnMut(&str)) -> Result<Profile, Error> {
    let mut device = Emulated::new(Order::Ascending).sampling(card.cache_bytes);
    if card.fast_doubles {
        device = device.with_fast_doubles();
    }
    if card.clusters {
        device = device.with_clusters();
    }
    let rate = 1e-9 * card.memory;
    let streaming = Streaming { read_gb_per_s: rate, write_gb_per_s: rate, copy_gb_per_s: rate };
    let machine = format!("NVIDIA {}, predicted from counted instructions", card.name);
    let head = Profile::new(machine, "cuda".to_owned(), "cuda".to_owned(), date(), streaming).as_predicted();
    let sizes =
        Plan { log_n: DEGREES.to_vec(), rounds: 1, sets: &SETS, most_bytes: SETS[SETS.len() - 1], ..Plan::full() };
    let open = |ring| Ok(Cuda::new(ring, device.clone(), None)?);
    let mut profile = measure_backend(&sizes, head, open, &Priced { card, device: &device }, progress)?;
    // Four digits say more than a model knows.
    for ns in profile.entries.iter_mut().flat_map(|entry| &mut entry.points).flat_map(|point| &mut point.ns) {
        *ns = format!("{ns:.3e}").parse().unwrap_or(*ns);
    }
    Ok(profile)
}
