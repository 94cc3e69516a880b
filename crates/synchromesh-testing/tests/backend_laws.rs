//! The laws of a backend on every one this workspace has, on every instruction set and toy set.

use synchromesh_ring::isa::Isa;
use synchromesh_ring::{Counting, Cpu, Threads};
use synchromesh_testing::laws;
use synchromesh_testing::toy::{ToySet, sets};

fn cpu(set: &ToySet, isa: Isa) -> Cpu {
    Cpu::with_isa(laws::ring(set), isa).expect("an instruction set of this machine")
}

#[test]
fn the_cpu_obeys_the_laws_on_every_instruction_set() {
    for set in sets().iter().filter(|set| set.q.len() + set.p.len() > 1) {
        for isa in Isa::available() {
            laws::all(&cpu(set, isa), 1);
        }
    }
}

#[test]
fn every_instruction_set_gives_the_bits_of_the_scalar_one() {
    for set in sets() {
        let scalar = cpu(&set, Isa::Scalar);
        for isa in Isa::available() {
            laws::same_bits(&scalar, &cpu(&set, isa), 2);
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_bits_of_one() {
    for set in sets() {
        let one = cpu(&set, Isa::best());
        for count in [2, 7] {
            // Work of any size is spread.
            let several = Threads::new(count).expect("threads").with_grain(0);
            let several = cpu(&set, Isa::best()).with_threads(several);
            laws::same_bits(&one, &several, 4);
            laws::all(&several, 5);
        }
    }
}

#[test]
fn fused_stages_give_the_bits_of_their_primitives() {
    for set in sets() {
        let fused = cpu(&set, Isa::best());
        let counted = Counting::new(cpu(&set, Isa::best()));
        laws::same_bits(&fused, &counted, 3);
    }
}

/// The smallest set of several primes on scalar kernels, for an interpreter that checks every access to memory: `cargo xtask
/// harden miri`.
fn smallest() -> Cpu {
    let several = sets().into_iter().filter(|set| set.q.len() + set.p.len() > 1);
    let smallest = several.min_by_key(|set| (set.log_n, set.q.len() + set.p.len())).expect("a toy set");
    cpu(&smallest, Isa::Scalar)
}

#[test]
fn every_primitive_and_stage_interpreted() {
    // Stages as they are, and taken apart.
    let (fused, apart) = (smallest(), Counting::new(smallest()));
    assert!(laws::perform(&fused, 3) + laws::perform(&apart, 3) > 20);
}
