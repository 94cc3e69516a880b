//! What an emulated device counts of the PTX that it runs.

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What launches of a kernel did, counted over the PTX's instructions: a card's assembler makes one or several of
        /// its own of each, or none of a move. An instruction counts once for a warp of 32 threads, as often as the thread
        /// that runs it most often.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[repr(C)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// The names of the fields, in their order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The fields, in their order.
            #[must_use]
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$name),*]
            }
        }
    };
}

// Twin of `Counts` in emulator/emulator.h.
counts! {
    /// Launches.
    launches,
    /// Blocks of threads.
    blocks,
    /// Threads.
    threads,
    /// Products of words of 64 bits, with or without a sum.
    multiply64,
    /// Products of words of at most 32 bits.
    multiply32,
    /// Quotients and remainders.
    divide,
    /// Sums, shifts and logic on 64 bits.
    integer64,
    /// The same on at most 32 bits.
    integer32,
    /// Operations on doubles.
    double,
    /// Comparisons, selections and logic on predicates.
    compare,
    /// Moves, addresses and conversions between integers.
    moves,
    /// Loads and stores of device memory.
    global,
    /// Loads and stores of shared memory.
    shared,
    /// Loads and stores by addresses of either.
    generic,
    /// Loads of the parameter.
    parameter,
    /// Branches.
    branch,
    /// Barriers; two for one of a cluster.
    barrier,
    /// Instructions of an assembler (sm_90) that these are, issued by warps in the same way.
    assembled,
    /// Those for the lanes that multiply.
    assembled_multiply,
    /// Those for the lanes of sums, shifts, logic and comparisons.
    assembled_integer,
    /// Those for the lanes of doubles.
    assembled_double,
    /// Those of memory.
    assembled_memory,
    /// Bytes of device memory that warps ask for, each once.
    global_bytes,
    /// Sectors of 32 bytes that these are in.
    global_sectors,
    /// Those that a second-level cache had not, or had to write back; 0 where none is emulated.
    missed_sectors,
    /// Passes over the banks of shared memory.
    shared_passes,
    /// Passes that there would be without conflicts.
    shared_least,
    /// The most passes for one that there would be without conflicts.
    shared_ways,
}

impl Counts {
    /// All instructions.
    #[must_use]
    pub const fn instructions(&self) -> u64 {
        let products = self.multiply64 + self.multiply32 + self.divide;
        let memory = self.global + self.shared + self.generic + self.parameter;
        let others = self.compare + self.moves + self.branch + self.barrier;
        products + self.integer64 + self.integer32 + self.double + memory + others
    }
}
