//! Profiles of cards that nothing was measured on, beside the record of whole operations: what is priced operation by operation
//! comes to what its launches come to.

use synchromesh::cost::{self, Profile};
use synchromesh_cuda::model::CARDS;

use crate::runs::operations::{OPERATIONS, RECORD, params, plan, shape};
use crate::runs::say;

/// What a sum of fitted operations may be of the sum of its launches. Operations of few primes do not show what large ones leave
/// in a cache that is too small for it.
const AGREES: std::ops::RangeInclusive<f64> = 0.4..=1.6;

#[test]
fn predicted_profiles_agree_with_the_launches_of_whole_operations() {
    let path = format!("{}/{RECORD}", env!("CARGO_MANIFEST_DIR"));
    let record = std::fs::read_to_string(path).expect("the record of operations");
    let mut apart = Vec::new();
    for operation in &OPERATIONS {
        let params = params(operation);
        let plan = plan(operation, &params);
        let top = params.level(params.top_level()).expect("a level");
        for card in CARDS {
            let begin = format!("{},{},all,", operation.name, card.name);
            let line = record.lines().find(|line| line.starts_with(&begin)).expect("a row for all kernels");
            let launches: f64 = line.split(',').next_back().and_then(|word| word.parse().ok()).expect("microseconds");
            let name = format!("{}-predicted", card.name.to_lowercase().replace(' ', "-"));
            let profile = Profile::predicted(&name).expect("a profile").expect("a profile of this name");
            let priced = 1e6 * cost::predict(&profile, &params, &plan, [top, top], shape(operation)).expect("a price");
            let line = format!("{begin} by operations {priced:.0} us, by launches {launches:.0}");
            say(&line);
            if !AGREES.contains(&(priced / launches)) {
                apart.push(line);
            }
        }
    }
    assert!(apart.is_empty(), "{apart:?}");
}
