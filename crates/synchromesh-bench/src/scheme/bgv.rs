//! BGV with its ways of managing factors and levels, by name, and lazy sums of products.

use synchromesh::bgv::{Bgv, Ciphertext, Context, Evaluator, Management, Params, original_primes};
use synchromesh::exact::ParamsLiteral;
use synchromesh::plan::static_bgv::StaticRule;
use synchromesh_rlwe::{PrimeSwitching, Security};

use super::bfv::LAZY_TERMS;
use super::{OMEGA, Op, Report, Request, Way, literal, measure_exact, plain_modulus, run};
use crate::Error;

/// Ways of managing factors and levels on a chain of one prime a level, by name.
const NAMED: [(&str, Management); 3] =
    [("original", Management::ORIGINAL), ("ghs", Management::GHS), ("static", Management::STATIC)];

/// The names of all ways.
#[must_use]
pub fn names() -> Vec<&'static str> {
    NAMED.iter().map(|(name, _)| *name).chain(["packed", "lazy"]).collect()
}

/// Measures a request for BGV.
pub(super) fn measure(request: &Request) -> Result<Report, Error> {
    let Some(asked) = request.variant.as_deref() else { return measure_exact::<Bgv>(request, &Way::plain()) };
    match asked {
        "lazy" => return lazy(request),
        "packed" => return packed(request),
        _ => {}
    }
    let unknown = || Error::Request { reason: format!("--variant {asked}: bgv has {}", names().join(", ")) };
    let &(name, management) = NAMED.iter().find(|(name, _)| *name == asked).ok_or_else(unknown)?;
    let mut literal = literal(request);
    if management == Management::ORIGINAL {
        let t = literal.t.parse().map_err(synchromesh::Error::from)?;
        let ParamsLiteral { log_n, q_bits, p_bits, .. } = &literal;
        literal.primes = Some(original_primes(*log_n, &t, q_bits, p_bits)?);
    }
    let context = Context::managed(Params::new(literal)?, management)?;
    run(request, &context, &Way { name: Some(name), ..Way::plain() })
}

/// The static rule's chain for the depth with as many levels to a word as there is room for (ePrint 2021/204, remark
/// 5.1): two, or three where t is very small.
fn packed(request: &Request) -> Result<Report, Error> {
    if request.limbs.is_some() || request.q_bits.is_some() || request.p_bits.is_some() {
        let reason = "--variant packed chooses its own primes: without --limbs, --q-bits and --p-bits".to_owned();
        return Err(Error::Request { reason });
    }
    let rule = |kappa| -> Result<StaticRule, Error> {
        Ok(StaticRule {
            packing: Some(PrimeSwitching::new(1, kappa)?),
            omega: Some(request.omega.unwrap_or(OMEGA)),
            security: Security::Insecure,
            ..StaticRule::new(plain_modulus(request), request.depth)
        })
    };
    let plan = match rule(3)?.plan_at(request.log_n) {
        Ok(plan) => plan,
        Err(_) => rule(2)?.plan_at(request.log_n)?,
    };
    let context = Context::managed(plan.params, Management::STATIC)?;
    run(request, &context, &Way { name: Some("packed"), ..Way::plain() })
}

fn lazy(request: &Request) -> Result<Report, Error> {
    if request.op != Op::Mul && request.op != Op::MulNorelin {
        return Err(Error::Request { reason: "--variant lazy is for the operations mul and mul-norelin".to_owned() });
    }
    let way = Way {
        name: Some("lazy"),
        product: &|evaluator: &Evaluator, x: &Ciphertext, y: &Ciphertext, relinearise: bool| {
            let pairs = [[x, y]; LAZY_TERMS];
            match relinearise {
                true => evaluator.sum_of_products(&pairs),
                false => evaluator.sum_of_products_no_relin(&pairs),
            }
        },
        products: LAZY_TERMS,
        ..Way::plain()
    };
    measure_exact::<Bgv>(request, &way)
}
