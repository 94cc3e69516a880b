//! Plans with refreshes: parameters at 128 bits, and what budgets leave to them.

use synchromesh::Error;
use synchromesh::plan::bootstrap::BootstrapRequest;
use synchromesh::plan::{Description, Limit, SchemeName};
use synchromesh::rlwe::Security;

/// The longest chain has more noise than the shortest, so that sizes which keep the precision there do not keep it here.
#[test]
fn as_many_levels_are_found_as_security_leaves() {
    let request = BootstrapRequest { baby_steps: Some(8), ..BootstrapRequest::new(16, 40, 15) };
    let found = request.find(None).unwrap().forecast;
    assert!(found.usable_levels >= 14 && found.precision_bits >= 15.0, "{found:?}");
    assert!(found.log_qp <= Security::Bits128.max_log_qp(16), "{}", found.log_qp);
}

/// At N = 2^15 there are parameters as well, with so few levels that refreshes would take most of the time.
#[test]
fn a_plan_of_open_depth_has_levels_to_compute_with() {
    let description =
        Description { precision: Some(12), bootstrap: Some(1.0), ..Description::new(SchemeName::Ckks, 0) };
    let plan = description.plan().unwrap();
    assert!(plan.log_n == 16 && plan.depth >= 4, "N = 2^{}, {} levels", plan.log_n, plan.depth);
}

/// What a circuit holds beside the keys of refreshes is not known before it runs.
#[test]
fn a_circuit_that_holds_much_gets_fewer_keys_of_refreshes() {
    const HELD: usize = 3000;
    let description = Description {
        precision: Some(10),
        bootstrap: Some(1.0),
        security: Security::Insecure,
        ..Description::new(SchemeName::Ckks, 2)
    };
    let plan = |max_memory_bytes| {
        let description = Description { max_memory_bytes, ..description.clone() };
        description.plan_ckks(&[1.0], |e, x| {
            let held = (0..HELD).map(|_| e.square(&x[0])).collect::<synchromesh::Result<Vec<_>>>()?;
            Ok(vec![e.square(&held[HELD - 1])?])
        })
    };
    let free = plan(None).unwrap();
    let refreshes = description.plan().unwrap().memory.unwrap().total_bytes;
    let needed = free.memory.unwrap().total_bytes;
    assert!(refreshes < needed, "{refreshes} {needed}: the circuit holds too little to tell");

    let less = plan(Some(needed - 1)).unwrap();
    assert!(less.memory.unwrap().total_bytes < needed && less.key_bytes < free.key_bytes, "{}", less.key_bytes);
    assert_eq!(less.refreshes, free.refreshes);
    assert!(matches!(plan(Some(needed / 4)), Err(Error::NoPlan { limit: Limit::Memory, .. })));
}
