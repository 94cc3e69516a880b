//! A device chosen at run time: `19_devices [cpu|cuda|cuda:1|emulated]` computes there, and decrypts on the CPU.
//!
//! Without an argument it is the device that `SYNCHROMESH_DEVICE` names, else the CPU. Results have the same bits anywhere.

use std::sync::Arc;

use synchromesh::bfv::{Bfv, Context, Evaluator, Params, ParamsLiteral, Rotations};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::scheme::Scheme;
use synchromesh_cuda::{AnyDevice, DeviceChoice};
use synchromesh_ring::Backend;

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let choice = match std::env::args().nth(1) {
        Some(name) => name.parse()?,
        None => DeviceChoice::of_environment()?,
    };
    let here: Vec<String> = DeviceChoice::available().iter().map(ToString::to_string).collect();
    println!("this machine has {}", here.join(", "));
    let params = Params::new(ParamsLiteral {
        log_n: 12,
        t: "65537".to_owned(),
        q_bits: vec![35, 35],
        p_bits: vec![36],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        security: Security::Bits128,
        primes: None,
    })?;
    // A card is compared with the CPU before it is believed.
    let open = |choice| AnyDevice::open(params.rlwe().ring(), choice);
    let device = Context::with_backend(params.clone(), open(choice)?)?;
    let cpu = Context::with_backend(params.clone(), open(DeviceChoice::Cpu)?)?;
    println!("computing on {}", device.rlwe().backend().name());
    let mut randomness = Randomness::from_os();
    // Keys are made on the device and stay there; the secret one goes to the CPU too.
    let (secret, public) = device.generate_keys(&mut randomness)?;
    let keys = device.generate_evaluation_keys(&secret, &Rotations::by([1]), &mut randomness)?;
    let secret_on_cpu = secret.transfer(cpu.rlwe())?;
    let evaluator = Evaluator::new(&device, Some(Arc::new(keys)));
    let values: Vec<i64> = (0..params.n() as i64).collect();
    let x = device.encrypt(&public, &device.encode(&values)?, &mut randomness)?;
    let rotated = evaluator.rotate_rows(&evaluator.add(&x, &x)?, 1)?;
    // No file between: residues go from one memory to the other.
    let result = Bfv::transfer(&device, &rotated, &cpu)?;
    let found = cpu.decode(&cpu.decrypt(&secret_on_cpu, &result)?)?;
    println!("2 x, rotated by 1, begins with {:?}", &found[..4]);
    assert_eq!(found[..4], [2, 4, 6, 8]);
    Ok(())
}
