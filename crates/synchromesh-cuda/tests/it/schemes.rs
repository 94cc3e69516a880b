//! The three schemes on the emulated device: what they decrypt to, and the ciphertexts of the CPU bit for bit.

use std::sync::Arc;

use crate::runs::schemes::{SCHEMES, has_the_bits_of_the_cpu, refuses_ciphertexts_of_another_device};
use synchromesh_cuda::{Cuda, Emulated, Kernels, Order};

for_both! {
    every_scheme_multiplies_adds_rotates_and_decrypts,
}

fn every_scheme_multiplies_adds_rotates_and_decrypts(kernels: Kernels) {
    for scheme in SCHEMES {
        has_the_bits_of_the_cpu(scheme, |ring| {
            let device = Emulated::new(Order::Shuffled(9)).with_kernels(kernels);
            Cuda::new(Arc::clone(ring), device, None).expect("a device")
        });
    }
}

#[test]
fn ciphertexts_of_another_device_are_refused() {
    refuses_ciphertexts_of_another_device(|ring| {
        Cuda::new(Arc::clone(ring), Emulated::new(Order::Ascending), None).expect("a device")
    });
}
