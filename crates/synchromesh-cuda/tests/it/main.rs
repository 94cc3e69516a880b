//! The integration tests of synchromesh-cuda, one program: what they share is compiled once.

/// Tests that take a set of kernels, for the sources and for the PTX made of them.
macro_rules! for_both {
    ($($name:ident),* $(,)?) => {
        mod sources {
            $(#[test]
            fn $name() {
                super::$name(synchromesh_cuda::Kernels::Sources);
            })*
        }

        mod ptx {
            $(#[test]
            fn $name() {
                super::$name(synchromesh_cuda::Kernels::Ptx);
            })*
        }
    };
}

mod bootstrap;
mod card;
mod counts;
mod driver;
mod emulator;
mod key_switch;
mod laws;
mod predicted;

mod runs;
mod schemes;
mod self_test;
mod spread;
mod translated;
mod uploads;
