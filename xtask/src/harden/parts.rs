//! The parts of `cargo xtask harden`, in the order in which they run.

use super::{Part, Work, adversary, supply};

/// All parts. Quick ones share twenty minutes.
pub(super) const PARTS: &[Part] = &[
    Part {
        name: "soak",
        shows: "mixed operations of all schemes, on sixteen threads that share one context of each, give what the clear gives, \
                and the process does not grow",
        quick: Work::Cargo("run --quiet -p synchromesh-harden --no-default-features -- soak --operations 10000"),
        full: Work::Cargo("run --quiet -p synchromesh-harden --no-default-features -- soak --operations 1000000"),
    },
    Part {
        name: "supply-chain",
        shows: "every dependency has a licence that this project may be given out with, comes from the registry or from this \
            repository, and stands in the bill of materials; what is published says what it is and under which licence. \
            The full run asks `cargo deny` as well",
        quick: Work::Check(supply::check),
        full: Work::Check(supply::check),
    },
    Part {
        name: "adversary",
        shows: "circuits that make errors as large as they get, on messages and plaintexts that hurt most, under random legal \
                parameters of all schemes, leave no error above its certificate at 2^-40",
        quick: Work::Check(adversary::check),
        full: Work::Check(adversary::check),
    },
];
