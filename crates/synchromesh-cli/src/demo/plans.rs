//! The demo's parameters: planned from what each part needs, or the plans committed with this program, from which
//! every instruction set must make the same keys and ciphertexts.

use super::{BLOCK, Needs, covariance, group_by, scores};
use crate::error::Error;
use synchromesh::plan::{Description, Plan, SchemeName};

/// A prime of 48 bits that is 1 mod 2^18: slots at every degree to 2^17, and more than twice every covariance.
const COVARIANCE_MODULUS: &str = "281474975662081";

/// The plans of the three parts.
#[derive(Clone, Debug)]
pub struct Plans {
    /// Part 1.
    pub ckks: Plan,
    /// Part 2.
    pub bgv: Plan,
    /// Part 3.
    pub bfv: Plan,
}

impl Plans {
    /// The plans committed with this program.
    ///
    /// # Errors
    /// None with the plans as shipped; the plan's error if the program was built with a damaged one.
    pub fn committed() -> Result<Self, Error> {
        Ok(Self {
            ckks: Plan::from_json(include_str!("../../data/plans/ckks.json"))?,
            bgv: Plan::from_json(include_str!("../../data/plans/bgv.json"))?,
            bfv: Plan::from_json(include_str!("../../data/plans/bfv.json"))?,
        })
    }

    /// Plans anew.
    ///
    /// # Errors
    /// When no parameters fit.
    pub fn search() -> Result<Self, Error> {
        let [ckks, bgv, bfv] = descriptions();
        Ok(Self { ckks: ckks.plan()?, bgv: bgv.plan()?, bfv: bfv.plan()? })
    }
}

/// What the parts ask of the planner: CKKS, BGV, BFV.
#[must_use]
pub fn descriptions() -> [Description; 3] {
    let describe = |scheme, needs: &Needs| Description {
        rotations: needs.rotations.iter().map(|k| *k as i64).collect(),
        ..Description::new(scheme, needs.depth as usize)
    };
    // CKKS has N/2 slots, the rows of the others too.
    let (scores, covariance, group_by) = (scores::needs(), covariance::needs(), group_by::needs());
    [
        Description { precision: Some(20), min_slots: scores.slots, ..describe(SchemeName::Ckks, &scores) },
        Description {
            t: Some(COVARIANCE_MODULUS.to_owned()),
            min_slots: 2 * covariance.slots,
            additions: BLOCK - 1,
            ..describe(SchemeName::Bgv, &covariance)
        },
        Description {
            t: Some("65537".to_owned()),
            min_slots: 2 * group_by.slots,
            additions: BLOCK - 1,
            ..describe(SchemeName::Bfv, &group_by)
        },
    ]
}
