//! How many threads the CPU computes on, and the pool that they are; results do not depend on their number.
//!
//! A [`Threads`] is shared by whatever was opened with it. The caller's own thread takes part in the work, so that one
//! thread needs no pool. Inside [`Threads::try_map`], whose items are whole operations, the operations themselves stay on
//! one thread each: nothing waits for a pool from within it, and no more threads run than were asked for.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{hint, io, thread};

/// Environment variable with the number of threads of [`Threads::of_process`].
pub const THREADS_VARIABLE: &str = "SYNCHROMESH_THREADS";

/// The variable that other libraries read, and that Ray and Slurm set for a task: heeded where the other is not set.
const COMMON_VARIABLE: &str = "OMP_NUM_THREADS";

/// Most threads that may be asked for.
pub const MOST_THREADS: usize = 1024;

/// Words of residues below which work is not spread: it is done before another thread has woken up.
const GRAIN: usize = 1 << 15;

/// How long a thread that has run out of work stays awake for more: an operation is some ten pieces of spread work, one
/// after another, and to be woken takes as long as a tenth of one.
const AWAKE: Duration = Duration::from_micros(200);

/// Why threads cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadsError {
    /// Not a number of threads.
    #[error("{asked} is no number of threads: 1 to {MOST_THREADS}")]
    Number {
        /// What was asked for.
        asked: String,
    },
    /// The system started none.
    #[error("{asked} threads could not be started: {reason}")]
    Start {
        /// The number asked for.
        asked: usize,
        /// What the system said.
        reason: String,
    },
    /// The process computes on another number already.
    #[error("this process computes on {settled} threads already, not on {asked}")]
    Settled {
        /// The number asked for.
        asked: usize,
        /// The number in use.
        settled: usize,
    },
}

impl ThreadsError {
    /// A stable word for scripts.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        "threads"
    }

    /// What the caller can do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Number { .. } => "give a number from 1 to 1024, with --threads or in SYNCHROMESH_THREADS",
            Self::Start { .. } => "ask for fewer threads, or raise the system's limit on processes",
            Self::Settled { .. } => {
                "settle the number before the first context is made, or open contexts with threads of their own"
            }
        }
    }
}

/// Bytes of addresses that a thread takes to begin: 2 MiB of stack, and what the system's libraries allocate for it.
const THREAD_BYTES: usize = 3 << 20;

/// Starts a thread, if there is room for one, and returns when it runs: a thread that has its stack and nothing else is
/// the end of the whole process, as the C library knows no other way out, so that the room is looked for beforehand and
/// not taken for anything else meanwhile.
///
/// # Errors
/// Of kind `OutOfMemory` where there is no room; else what the system says.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<thread::JoinHandle<T>> {
    Vec::<u8>::new().try_reserve_exact(THREAD_BYTES).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let begun = Arc::new(Barrier::new(2));
    let begins = Arc::clone(&begun);
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
        // The first allocation of a thread is also that of the allocator's arena for it.
        drop(hint::black_box(Box::new(0_u64)));
        begins.wait();
        work()
    })?;
    begun.wait();
    Ok(thread)
}

/// A number of threads, the caller's among them. Clones share the pool.
#[derive(Clone)]
pub struct Threads {
    pool: Option<Arc<Pool>>,
    grain: usize,
}

struct Pool {
    /// One thread fewer than are computed on: the caller is the other.
    helpers: rayon::ThreadPool,
    /// The process that started them: a forked child has none of them.
    process: u32,
}

thread_local! {
    /// Whether this thread works on an item of [`Threads::try_map`].
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Until when this thread, a helper without work, stays awake, if it does.
    static AWAKE_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

static OF_PROCESS: OnceLock<Threads> = OnceLock::new();

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Threads({})", self.count())
    }
}

impl Threads {
    /// The caller's thread alone.
    pub const ONE: Self = Self { pool: None, grain: GRAIN };

    /// A pool of its own with this many threads, the caller's included.
    ///
    /// # Errors
    /// [`ThreadsError::Number`] for 0 and for more than [`MOST_THREADS`], [`ThreadsError::Start`] if the system refuses.
    pub fn new(count: usize) -> Result<Self, ThreadsError> {
        if !(1..=MOST_THREADS).contains(&count) {
            return Err(ThreadsError::Number { asked: count.to_string() });
        }
        if count == 1 {
            return Ok(Self::ONE);
        }
        let begin = |helper: rayon::ThreadBuilder| {
            let name = format!("synchromesh-{}", helper.index() + 1);
            spawn(&name, move || helper.run()).map(drop)
        };
        let helpers = rayon::ThreadPoolBuilder::new().num_threads(count - 1).spawn_handler(begin).build();
        let helpers = helpers.map_err(|e| ThreadsError::Start { asked: count, reason: e.to_string() })?;
        Ok(Self { pool: Some(Arc::new(Pool { helpers, process: std::process::id() })), grain: GRAIN })
    }

    /// The threads that contexts of this process share unless they are opened with others: as many as
    /// [`THREADS_VARIABLE`] says, else as `OMP_NUM_THREADS` says, else as many as the system lets this process use.
    ///
    /// # Errors
    /// As [`Self::new`], of the variable's value.
    pub fn of_process() -> Result<Self, ThreadsError> {
        if let Some(threads) = OF_PROCESS.get() {
            return Ok(threads.clone());
        }
        let threads = Self::new(count_from_environment()?)?;
        Ok(OF_PROCESS.get_or_init(|| threads).clone())
    }

    /// Makes `count` the number of [`Self::of_process`].
    ///
    /// # Errors
    /// As [`Self::new`], and [`ThreadsError::Settled`] if another number is in use.
    pub fn settle(count: usize) -> Result<Self, ThreadsError> {
        let settled = match OF_PROCESS.get() {
            Some(settled) => settled,
            None => {
                let threads = Self::new(count)?;
                OF_PROCESS.get_or_init(|| threads)
            }
        };
        match settled.count() {
            same if same == count => Ok(settled.clone()),
            other => Err(ThreadsError::Settled { asked: count, settled: other }),
        }
    }

    /// The same threads, spreading work of `words` words of residues or more.
    #[must_use]
    pub fn with_grain(self, words: usize) -> Self {
        Self { grain: words, ..self }
    }

    /// How many threads, the caller's included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.helpers.current_num_threads() + 1)
    }

    /// Runs `run` on each item, in any order and on any thread. `words` is the size of one item in words of residues.
    ///
    /// # Errors
    /// That of an item; items not begun by then are left.
    pub fn try_for_each<T: Send, E: Send>(
        &self,
        items: Vec<T>,
        words: usize,
        run: impl Fn(T) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let spread = items.len() > 1 && items.len().saturating_mul(words) >= self.grain;
        let Some(pool) = self.pool.as_ref().filter(|pool| spread && pool.is_free()) else {
            return items.into_iter().try_for_each(run);
        };
        let failed = Mutex::new(None);
        pool.run(items, |item| {
            if let Err(error) = run(item) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                return false;
            }
            true
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// What `run` makes of each item, in the order of the items. For items that are operations of their own: each stays
    /// on one thread. Fewer items than threads are taken one after another, each on all threads.
    ///
    /// # Errors
    /// The error of the first item, in their order, among those that failed; later items may be left.
    pub fn try_map<T: Send, R: Send, E: Send>(
        &self,
        items: Vec<T>,
        run: impl Fn(T) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let Some(pool) = self.pool.as_ref().filter(|pool| items.len() >= self.count() && pool.is_free()) else {
            return items.into_iter().map(run).collect();
        };
        let made: Mutex<Vec<(usize, Result<R, E>)>> = Mutex::new(Vec::with_capacity(items.len()));
        pool.run(items.into_iter().enumerate().collect(), |(index, item)| {
            let result = Inside::enter(|| run(item));
            let well = result.is_ok();
            made.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
            well
        });
        let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        made.sort_unstable_by_key(|(index, _)| *index);
        made.into_iter().map(|(_, result)| result).collect()
    }
}

/// Marks this thread as working on an item, also if the item panics.
struct Inside;

impl Inside {
    fn enter<R>(run: impl FnOnce() -> R) -> R {
        INSIDE.set(true);
        let _inside = Self;
        run()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl Pool {
    /// Whether this thread may wait for the helpers.
    fn is_free(&self) -> bool {
        !INSIDE.get() && self.process == std::process::id()
    }

    /// The items one after another, each taken by whoever is free, until all are done or one says that it was the last.
    fn run<T: Send>(&self, items: Vec<T>, run: impl Fn(T) -> bool + Sync) {
        let helpers = self.helpers.current_num_threads().min(items.len() - 1);
        let queue = Mutex::new(items.into_iter());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some(item) = next() {
                if !run(item) {
                    while next().is_some() {}
                }
            }
        };
        let working = AtomicUsize::new(helpers);
        self.helpers.in_place_scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(|_| {
                    let _done = Done(&working);
                    work();
                });
            }
            work();
            // The scope would go to sleep until they are done.
            let begin = Instant::now();
            while working.load(Ordering::Acquire) > 0 && begin.elapsed() < 2 * AWAKE {
                hint::spin_loop();
            }
        });
    }
}

/// A helper's part of some work, counted down at its end also if it panics; the helper then stays awake for a while.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
        // One that stays awake already runs this within `stay_awake`.
        if AWAKE_UNTIL.replace(Some(Instant::now() + AWAKE)).is_none() {
            rayon::spawn(stay_awake);
        }
    }
}

/// Takes work as it comes until there was none for a while; runs on a helper.
fn stay_awake() {
    while AWAKE_UNTIL.get().is_some_and(|until| Instant::now() < until) {
        if rayon::yield_now() != Some(rayon::Yield::Executed) {
            hint::spin_loop();
        }
    }
    AWAKE_UNTIL.set(None);
}

/// The number that the environment asks for, or that of the system.
fn count_from_environment() -> Result<usize, ThreadsError> {
    if let Some(text) = std::env::var_os(THREADS_VARIABLE) {
        return parse(&text.to_string_lossy());
    }
    // Not ours to judge: a list of numbers for nested regions, or nonsense.
    let common = std::env::var(COMMON_VARIABLE).ok();
    let common = common.and_then(|text| parse(text.split(',').next().unwrap_or_default()).ok());
    let system = || thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_THREADS);
    Ok(common.unwrap_or_else(system))
}

fn parse(text: &str) -> Result<usize, ThreadsError> {
    let number = || ThreadsError::Number { asked: text.chars().take(32).collect() };
    text.trim().parse().ok().filter(|count| (1..=MOST_THREADS).contains(count)).ok_or_else(number)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn numbers_of_threads_are_checked() {
        for count in [0, MOST_THREADS + 1, usize::MAX] {
            assert_eq!(Threads::new(count).unwrap_err(), ThreadsError::Number { asked: count.to_string() });
        }
        for text in ["", "0", "-1", "two", "1025", "99999999999999999999999"] {
            assert!(matches!(parse(text), Err(ThreadsError::Number { .. })), "{text:?}");
        }
        assert_eq!([parse(" 7 "), parse("1024")], [Ok(7), Ok(1024)]);
        assert_eq!([Threads::ONE.count(), Threads::new(3).unwrap().count()], [1, 3]);
    }

    #[test]
    fn every_item_is_done_once_and_results_keep_their_order() {
        for count in [1, 2, 7] {
            let threads = Threads::new(count).unwrap().with_grain(0);
            let done: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            let each = |i: usize| {
                done[i].fetch_add(1, Ordering::Relaxed);
                Ok::<(), ()>(())
            };
            threads.try_for_each((0..100).collect(), 1, each).unwrap();
            assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 1));
            let squares = threads.try_map((0..100).collect(), |i: usize| Ok::<_, ()>(i * i)).unwrap();
            assert_eq!(squares, (0..100).map(|i| i * i).collect::<Vec<_>>());
        }
    }

    #[test]
    fn items_run_on_several_threads_and_operations_inside_them_on_one() {
        let threads = Threads::new(2).unwrap().with_grain(0);
        let barrier = Barrier::new(2);
        let inner = |_: usize| {
            let ids = Mutex::new(HashSet::new());
            let note = |_: usize| {
                ids.lock().unwrap().insert(thread::current().id());
                Ok::<(), ()>(())
            };
            threads.try_for_each((0..50).collect(), 1, note).unwrap();
            // Both items are under way at once, or this waits for ever.
            barrier.wait();
            Ok::<_, ()>(ids.into_inner().unwrap())
        };
        let ids = threads.try_map(vec![0, 1], inner).unwrap();
        assert_eq!([ids[0].len(), ids[1].len()], [1, 1]);
        assert_ne!(ids[0], ids[1]);
    }

    #[test]
    fn the_first_error_ends_the_work() {
        for count in [1, 2] {
            let threads = Threads::new(count).unwrap().with_grain(0);
            let fail = |i: usize| if i % 10 == 3 { Err(i) } else { Ok(i) };
            assert_eq!(threads.try_map((0..100).collect(), fail), Err(3));
            let begun = AtomicUsize::new(0);
            let each = |i: usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                fail(i).map(drop)
            };
            assert!(threads.try_for_each((0..10_000).collect(), 1, each).is_err());
            assert!(begun.into_inner() < 10_000);
        }
    }

    #[test]
    fn a_panic_in_an_item_reaches_the_caller_and_the_threads_live_on() {
        let threads = Threads::new(2).unwrap().with_grain(0);
        let panics =
            || threads.try_map((0..10).collect(), |i: usize| if i == 5 { panic!("five") } else { Ok::<_, ()>(i) });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(threads.try_map(vec![1, 2], Ok::<i32, ()>), Ok(vec![1, 2]));
    }
}
