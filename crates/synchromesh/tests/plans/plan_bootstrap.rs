//! Plans with refreshes: parameters at 128 bits, and what budgets leave to them.

use synchromesh::Error;
use synchromesh::plan::bootstrap::{BootstrapRequest, RefreshForecast};
use synchromesh::plan::{Description, Limit, SchemeName};
use synchromesh::rlwe::Security;

/// The longest chain has the most digits of a key switch, and takes more of a refresh for each of its levels. It has more
/// noise as well, so that sizes which keep the precision of the shortest do not keep its own.
#[test]
fn open_levels_are_those_that_take_the_least_each() {
    let open = BootstrapRequest { baby_steps: Some(8), ..BootstrapRequest::new(16, 40, 15) };
    let found = open.find(None).unwrap().forecast;
    assert!(found.precision_bits >= 15.0 && found.log_qp <= Security::Bits128.max_log_qp(16), "{found:?}");

    let each = |found: &RefreshForecast| found.multiplications / found.usable_levels as f64;
    let more = BootstrapRequest { levels: Some(found.usable_levels + 4), ..open }.find(None).unwrap().forecast;
    assert!(each(&more) > each(&found), "{:e} {:e}", each(&more), each(&found));
}

/// The precision that comes nearest may be more than was asked for: then it is security that stands against it.
#[test]
fn what_security_refuses_is_said_with_its_modulus() {
    let found = |precision| BootstrapRequest::new(15, 40, precision).find(None);
    let error = found(15).unwrap_err().to_string();
    let limit = Security::Bits128.max_log_qp(15);
    let (_, near) = error.split_once("come nearest, and take ").unwrap_or_else(|| panic!("{error}"));
    let (log_qp, rest) = near.split_once(" bits of QP, ").unwrap_or_else(|| panic!("{error}"));
    assert!(log_qp.parse::<u32>().unwrap() > limit, "{error}");
    assert!(rest.starts_with(&format!("of which security allows {limit}")), "{error}");
    assert!(found(8).unwrap().forecast.log_qp <= limit);
}

/// Fewer levels take fewer digits of a key switch, and so smaller keys: the most levels may not fit with any baby steps.
#[test]
fn budgets_make_open_levels_fewer() {
    const MOST: u64 = 7_000_000_000;
    let description = Description {
        max_memory_bytes: Some(MOST),
        precision: Some(15),
        bootstrap: Some(1.0),
        min_slots: 1 << 15,
        ..Description::new(SchemeName::Ckks, 0)
    };
    let plan = description.plan().unwrap();
    assert!(plan.memory.unwrap().total_bytes <= MOST, "{:?}", plan.memory);
    assert!((4..13).contains(&plan.depth) && plan.log_n == 16, "N = 2^{}, {} levels", plan.log_n, plan.depth);
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
