//! BGV with its ways of managing factors and levels, by name, and lazy sums of products.

use synchromesh::bgv::{Bgv, Ciphertext, Context, Evaluator, Management, Params, original_primes};
use synchromesh::exact::ParamsLiteral;

use super::bfv::LAZY_TERMS;
use super::{Op, Report, Request, Way, literal, measure_exact, run};
use crate::Error;

/// Ways of managing factors and levels, by name.
const NAMED: [(&str, Management); 3] =
    [("original", Management::ORIGINAL), ("ghs", Management::GHS), ("static", Management::STATIC)];

/// The names of all ways.
#[must_use]
pub fn names() -> Vec<&'static str> {
    NAMED.iter().map(|(name, _)| *name).chain(["lazy"]).collect()
}

/// Measures a request for BGV.
pub(super) fn measure(request: &Request) -> Result<Report, Error> {
    let Some(asked) = request.variant.as_deref() else { return measure_exact::<Bgv>(request, &Way::plain()) };
    if asked == "lazy" {
        return lazy(request);
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
