//! Parameters of refreshes at 128 bits: as many levels between two of them as security leaves.

use synchromesh::ckks::bootstrap::Messages;
use synchromesh::plan::bootstrap::BootstrapRequest;
use synchromesh::rlwe::Security;

#[test]
fn as_many_levels_are_found_as_security_leaves() {
    for (log_n, log_scale, precision, least) in [(15, 35, 8, 3), (16, 40, 15, 12)] {
        let open = BootstrapRequest {
            log_n,
            log_scale,
            precision,
            levels: None,
            messages: Messages::Complex,
            slots: None,
            message_bound: 1.0,
            baby_steps: Some(8),
            rounds: 1,
            security: Security::Bits128,
        };
        let found = open.find(None).unwrap().forecast;
        assert!(found.usable_levels >= least && found.precision_bits >= f64::from(precision), "{found:?}");
        assert!(found.log_qp <= Security::Bits128.max_log_qp(log_n), "{}", found.log_qp);
        // One more is refused.
        let more = BootstrapRequest { levels: Some(found.usable_levels + 1), ..open };
        assert_eq!(more.find(None).err().map(|error| error.kind()), Some("request"), "{}", found.usable_levels);
    }
}
