//! What is said where there is no card; what a card does is judged by the example gpu_check.
#![cfg(feature = "driver")]

use std::sync::Arc;

use synchromesh_cuda::{Cuda, Driver};
use synchromesh_ring::{BackendError, Ring};
use synchromesh_testing::toy;

#[test]
fn without_a_card_opening_one_is_a_typed_error() {
    let Err(reason) = Driver::list() else { return };
    assert!(["no_driver", "old_driver", "no_device", "unsupported_device", "device_lost"].contains(&reason.kind()));
    assert!(!reason.remedy().is_empty());
    let ring = Arc::new(Ring::new(10, &toy::ntt_primes(50, 10, 1)).expect("a ring"));
    let error = Cuda::<Driver>::open(ring, 0).err().expect("no card opens");
    assert!(matches!(error, BackendError::Unavailable { .. }), "{error}");
}
