//! Choosing parameters: describe what shall be computed, read why the plan is as it is, keep it as a file.

use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::Security;
use synchromesh::{Result, bfv};

fn main() -> Result<()> {
    by_hand()?;
    by_depth()?;
    by_plaintext_modulus()?;
    by_precision()?;
    what_keys_cost()?;
    what_cannot_be()?;
    a_plan_is_a_file()
}

fn show(what: &str, plan: &Plan) {
    let (levels, bits) = (plan.switch.len(), plan.log_qp);
    println!("  {what:<18} N = 2^{}, {levels} levels, log2 QP = {bits}, keys {} kB", plan.log_n, plan.key_bytes / 1024);
    assert!(plan.security_bits >= 128.0);
}

/// The naive way: choose primes until it works. A larger modulus leaves more room for noise and makes the scheme weaker,
/// a larger N makes it stronger and slower. The limits are a table made with the Lattice Estimator. Parameters under
/// 128 bits are refused, with the numbers, unless they say in so many words that they are insecure.
fn by_hand() -> Result<()> {
    let literal = bfv::ParamsLiteral {
        log_n: 12,
        t: "65537".to_owned(),
        q_bits: vec![40, 40],
        p_bits: vec![45],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        security: Security::Bits128,
        primes: None,
    };
    println!("by hand:");
    let refused = bfv::Params::new(literal.clone()).err();
    assert!(refused.is_some());
    if let Some(error) = refused {
        println!("  refused: {error}\n  what to do: {}", error.remedy());
    }
    let smaller = bfv::Params::new(bfv::ParamsLiteral { q_bits: vec![36, 30], p_bits: vec![37], ..literal.clone() })?;
    println!("  accepted: {} bits, for log2 QP = {}", smaller.rlwe().security_bits(), smaller.rlwe().log_qp());
    let toy = bfv::Params::new(bfv::ParamsLiteral { security: Security::Insecure, ..literal })?;
    println!("  with the word insecure: {} bits\n", toy.rlwe().security_bits());
    Ok(())
}

/// The better way: say what shall be computed. The plan runs the circuit on a device that holds no data, where every
/// operation still computes the noise bound of its result, and takes the smallest parameters in which all is well.
fn by_depth() -> Result<()> {
    println!("by depth, BGV with t = 65537:");
    let mut last = 0;
    for depth in [1, 2, 4] {
        let plan = Description::new(SchemeName::Bgv, depth).plan()?;
        show(&format!("{depth} product(s)"), &plan);
        assert!(plan.log_qp > last);
        last = plan.log_qp;
        if depth == 4 {
            // Every choice comes with its reason.
            plan.explain.iter().for_each(|line| println!("    {line}"));
        }
    }
    println!();
    Ok(())
}

/// A plaintext modulus of more bits costs more bits at every level.
fn by_plaintext_modulus() -> Result<()> {
    println!("by plaintext modulus, BFV with 2 products:");
    for t in ["2", "65537", "1073479681", "0xffffffffffffffffffffffffff820001"] {
        let mut description = Description::new(SchemeName::Bfv, 2);
        description.t = Some(t.to_owned());
        let plan = description.plan()?;
        let slots = if plan.slots > 0 { format!("{} slots", plan.slots) } else { "no slots".to_owned() };
        show(&format!("{} bits, {slots}", plan.bfv()?.t().bits()), &plan);
    }
    println!();
    Ok(())
}

/// In CKKS it is the precision of the results. Encoding works with doubles, which certify at most some 38 bits.
fn by_precision() -> Result<()> {
    println!("by precision, CKKS with 2 products:");
    for precision in [10, 20, 30] {
        let mut description = Description::new(SchemeName::Ckks, 2);
        description.precision = Some(precision);
        let plan = description.plan()?;
        show(&format!("within 2^-{precision}"), &plan);
    }
    println!();
    Ok(())
}

/// Every rotation has its own key. A limit on their bytes makes the plan choose fewer digits, or say that there is none.
fn what_keys_cost() -> Result<()> {
    println!("by rotations, BFV with 2 products:");
    let mut description = Description::new(SchemeName::Bfv, 2);
    for rotations in [vec![], vec![1, 2, 4, 8]] {
        description.rotations = rotations;
        show(&format!("{} rotation(s)", description.rotations.len()), &description.plan()?);
    }
    description.rotations.clear();
    description.max_key_bytes = Some(100_000);
    let refused = description.plan().err();
    assert!(refused.is_some());
    if let Some(error) = refused {
        println!("  in 100 kB: {error}");
    }
    println!();
    Ok(())
}

/// What no parameters allow is an error that says how near the largest came.
fn what_cannot_be() -> Result<()> {
    let mut description = Description::new(SchemeName::Ckks, 2);
    description.precision = Some(60);
    let refused = description.plan().err();
    assert!(refused.as_ref().is_some_and(|error| error.kind() == "plan_precision"));
    if let Some(error) = refused {
        println!("within 2^-60, CKKS with 2 products:\n  {error}\n");
    }
    Ok(())
}

/// A plan lists its primes, so that the file means the same parameters on every machine and in every version. Reading it
/// checks everything again, the security too.
fn a_plan_is_a_file() -> Result<()> {
    let plan = Description::new(SchemeName::Bfv, 1).plan()?;
    let text = plan.to_json()?;
    let read = Plan::from_json(&text)?;
    assert_eq!(read, plan);
    assert_eq!(read.bfv()?, plan.bfv()?);
    println!("as a file: {} bytes of JSON", text.len());
    let altered = text.replacen(&format!("\"version\": {}", plan.version), "\"version\": 999", 1);
    let refused = Plan::from_json(&altered).err();
    assert!(refused.is_some());
    if let Some(error) = refused {
        println!("  of a later version: {error}");
    }
    Ok(())
}
