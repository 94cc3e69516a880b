//! Parameters of refreshes at 128 bits.

use synchromesh::ckks::bootstrap::Messages;
use synchromesh::plan::bootstrap::BootstrapRequest;
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::Security;

/// The longest chain has more noise than the shortest, so that sizes which keep the precision there do not keep it here.
#[test]
fn as_many_levels_are_found_as_security_leaves() {
    let request = BootstrapRequest {
        log_n: 16,
        log_scale: 40,
        precision: 15,
        levels: None,
        messages: Messages::Complex,
        slots: None,
        message_bound: 1.0,
        baby_steps: Some(8),
        rounds: 1,
        security: Security::Bits128,
    };
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
