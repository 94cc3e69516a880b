//! The same parameters on several devices: keys on each of them, or each key where there is room, and operations spread.
//!
//! Devices give the same bits, so that it does not matter where an operation runs: whoever is free takes the next item.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use synchromesh_ring::{Backend, BackendError, Error as RingError};

use crate::context::Context;
use crate::error::Error;
use crate::evaluation_keys::EvaluationKeys;
use crate::switch_key::Source;

/// Which of several devices has the key from which source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPlaces {
    devices: usize,
    places: BTreeMap<Source, BTreeSet<usize>>,
}

impl KeyPlaces {
    /// Places for keys of so many bytes on devices that have room for so many: all keys on each device where that fits, else
    /// each key, the largest first, where most room is left.
    ///
    /// # Errors
    /// [`BackendError::Memory`] for a key that fits no device.
    pub fn plan(keys: &[(Source, u64)], room: &[u64]) -> Result<Self, Error> {
        let all: u64 = keys.iter().map(|(_, bytes)| bytes).sum();
        let mut places: BTreeMap<Source, BTreeSet<usize>> = BTreeMap::new();
        if room.iter().all(|room| all <= *room) {
            places.extend(keys.iter().map(|(source, _)| (*source, (0..room.len()).collect())));
            return Ok(Self { devices: room.len(), places });
        }
        let mut left = room.to_vec();
        let mut keys = keys.to_vec();
        keys.sort_by_key(|(source, bytes)| (std::cmp::Reverse(*bytes), *source));
        for (source, bytes) in keys {
            let most = (0..left.len()).max_by_key(|&i| (left[i], std::cmp::Reverse(i)));
            match most.filter(|&i| left[i] >= bytes) {
                Some(at) => {
                    left[at] -= bytes;
                    places.insert(source, BTreeSet::from([at]));
                }
                None => {
                    let available = most.map_or(0, |i| left[i]);
                    let device = format!("any of {} devices", left.len());
                    return Err(RingError::from(BackendError::Memory { device, needed: bytes, available }).into());
                }
            }
        }
        Ok(Self { devices: room.len(), places })
    }

    /// The devices that have all of these keys.
    #[must_use]
    pub fn with(&self, sources: &[Source]) -> BTreeSet<usize> {
        let nowhere = BTreeSet::new();
        let has = |device: &usize| sources.iter().all(|s| self.places.get(s).unwrap_or(&nowhere).contains(device));
        (0..self.devices).filter(has).collect()
    }
}

/// Contexts of the same parameters, one a device.
pub struct Spread<B: Backend> {
    contexts: Vec<Arc<Context<B>>>,
}

impl<B: Backend> Spread<B> {
    /// At least one context.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`]; [`BackendError::Unavailable`] for none.
    pub fn new(contexts: Vec<Arc<Context<B>>>) -> Result<Self, Error> {
        let Some(first) = contexts.first() else {
            let reason = "operations are to be spread over no device".to_owned();
            return Err(RingError::from(BackendError::Unavailable { device: "none".to_owned(), reason }).into());
        };
        let digest = first.params().digest();
        contexts.iter().try_for_each(|context| context.params().require_digest(digest))?;
        Ok(Self { contexts })
    }

    /// The contexts, by the numbers of their devices.
    #[must_use]
    pub fn contexts(&self) -> &[Arc<Context<B>>] {
        &self.contexts
    }

    /// Puts keys from another device where [`KeyPlaces::plan`] says, with room for so many bytes of them on each: of a key
    /// both columns are kept in memory once it is prepared. Keys under derived secret keys go with all, and so do those
    /// of a larger ring.
    ///
    /// # Errors
    /// As [`KeyPlaces::plan`], [`Error::ParamsDiffer`], or when a device fails.
    pub fn place<From: Backend>(
        &self,
        from: &Context<From>,
        keys: &EvaluationKeys<From>,
        room: &[u64],
    ) -> Result<(KeyPlaces, Vec<EvaluationKeys<B>>), Error> {
        let n = from.params().n();
        let bytes: Vec<(Source, u64)> = keys.iter().map(|key| (key.source(), 2 * key.part().bytes(n))).collect();
        let places = KeyPlaces::plan(&bytes, &room[..room.len().min(self.contexts.len())])?;
        let put = |(device, to): (usize, &Arc<Context<B>>)| {
            let mut made = EvaluationKeys::new(keys.target());
            for key in keys.iter().filter(|key| places.with(&[key.source()]).contains(&device)) {
                made.insert(key.transfer(from, to)?)?;
            }
            if let Some(second) = keys.second() {
                made.set_second(second.transfer(from, to)?);
            }
            if let Some(sparse) = keys.sparse() {
                made.set_sparse(sparse.transfer(from, to)?);
            }
            if let Some(inside) = keys.inside() {
                let (from, to) = (from.inside_or_own(), to.inside_or_own());
                made.set_inside(to.params(), Arc::new(inside.transfer(from, to)?))?;
            }
            Ok(made)
        };
        let placed = self.contexts.iter().enumerate().map(put).collect::<Result<_, Error>>()?;
        Ok((places, placed))
    }

    /// Runs `run` with each item and the number of a device, one of those that `may` names; a thread a device, and results in
    /// the order of the items. What goes wrong first, by the items' order, is returned.
    ///
    /// # Errors
    /// What `run` returns; `E` made of [`BackendError::Unavailable`] for an item that no device may take.
    pub fn map<T: Sync, R: Send, E: Send + From<Error>>(
        &self,
        items: &[T],
        may: impl Fn(&T) -> BTreeSet<usize>,
        run: impl Fn(usize, &T) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let devices = self.contexts.len();
        let allowed: Vec<BTreeSet<usize>> = items.iter().map(may).collect();
        if let Some(item) = allowed.iter().position(|to| to.range(..devices).next().is_none()) {
            let reason = format!("no device has what item {item} takes");
            let error = BackendError::Unavailable { device: format!("any of {devices} devices"), reason };
            return Err(Error::from(RingError::from(error)).into());
        }
        let waiting = Mutex::new((0..items.len()).collect::<BTreeSet<usize>>());
        let results = Mutex::new(BTreeMap::new());
        let serve = |device: usize| {
            loop {
                let next = {
                    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                    // What fewer devices may take goes first.
                    let fits = waiting.iter().copied().filter(|&item| allowed[item].contains(&device));
                    let next = fits.min_by_key(|&item| allowed[item].len());
                    if let Some(item) = &next {
                        waiting.remove(item);
                    }
                    next
                };
                let Some(item) = next else { return };
                let result = run(device, &items[item]);
                let failed = result.is_err();
                results.lock().unwrap_or_else(PoisonError::into_inner).insert(item, result);
                if failed {
                    // Nobody begins anything else.
                    waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
                }
            }
        };
        std::thread::scope(|scope| {
            for device in 1..devices {
                let spawned = std::thread::Builder::new().spawn_scoped(scope, move || serve(device));
                // Without a thread of its own a device is served by this one.
                if spawned.is_err() {
                    serve(device);
                }
            }
            serve(0);
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_everywhere_where_they_fit_and_somewhere_where_not() {
        let keys = [(Source::Square, 50), (Source::Galois(3), 40), (Source::Galois(5), 30), (Source::Galois(7), 20)];
        let sources = keys.map(|(source, _)| source);
        let whole = KeyPlaces::plan(&keys, &[140, 200]).unwrap();
        assert_eq!(whole.with(&sources), BTreeSet::from([0, 1]));
        let split = KeyPlaces::plan(&keys, &[70, 80]).unwrap();
        // 50 to the second, 40 to the first, 30 to the first, which is as free, 20 to the second.
        assert_eq!(split.with(&[sources[0], sources[3]]), BTreeSet::from([1]));
        assert_eq!(split.with(&[sources[1], sources[2]]), BTreeSet::from([0]));
        assert_eq!(split.with(&sources), BTreeSet::new());
        assert_eq!(split.with(&[]), BTreeSet::from([0, 1]));
        let error = KeyPlaces::plan(&keys, &[60, 60]).unwrap_err();
        assert_eq!(error.kind(), "memory_budget", "{error}");
        assert!(KeyPlaces::plan(&keys, &[]).is_ok_and(|none| none.with(&[]).is_empty()));
    }
}
