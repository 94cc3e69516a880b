//! The sign is as near as is said of it, and no nearer than its polynomials are.

use synchromesh_bench::sign::{Request, measure};
use synchromesh_rlwe::Security;

#[test]
fn signs_are_within_their_certificates() {
    let request = Request { log_n: 10, gap_bits: 4, bits: 6, security: Security::Insecure };
    let report = measure(&request).expect("a small plan");
    assert!(report.worst <= report.certified && report.certified <= 1.0 / 64.0, "{report:?}");
    assert!(report.worst > 1e-3 && report.log_n >= 10 && report.median_ms > 0.0, "{report:?}");
    assert!(measure(&Request { bits: 0, ..request }).is_err());
}
