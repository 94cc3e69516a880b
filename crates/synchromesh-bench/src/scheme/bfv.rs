//! The ways of multiplying in BFV, by name, and operands with the noise at which they differ.

use synchromesh::bfv::{Bfv, Ciphertext, Dropping, Evaluator, Multiplication};

use super::{Op, Report, Request, Way, measure_exact};
use crate::Error;

/// Products in the sum that `lazy` is measured on; its time is that of one of them.
pub const LAZY_TERMS: usize = 128;

/// The names of all ways.
#[must_use]
pub fn names() -> Vec<&'static str> {
    Multiplication::NAMED.iter().map(|(name, _)| *name).chain(["lazy"]).collect()
}

/// Measures a request for BFV; without a variant it multiplies by the default, `new`.
pub(super) fn measure(request: &Request) -> Result<Report, Error> {
    let asked = request.variant.as_deref().unwrap_or("new");
    let unknown = || Error::Request { reason: format!("--variant {asked}: bfv has {}", names().join(", ")) };
    let name = names().into_iter().find(|name| *name == asked).ok_or_else(unknown)?;
    let lazy = name == "lazy";
    let how =
        Multiplication::NAMED.iter().find(|(known, _)| *known == name).map_or(Multiplication::NEW, |(_, how)| *how);
    if lazy && request.op != Op::Mul && request.op != Op::MulNorelin {
        return Err(Error::Request { reason: "--variant lazy is for the operations mul and mul-norelin".to_owned() });
    }
    let leveled = how.dropping != Dropping::Never && matches!(request.op, Op::Mul | Op::MulNorelin);
    let way = Way {
        name: Some(name),
        set_up: &|evaluator: Evaluator| evaluator.with_variant(how),
        operand: &|evaluator: &Evaluator, x: Ciphertext| {
            if leveled && request.product == 1 { noisy(evaluator, &x) } else { Ok(x) }
        },
        product: &|evaluator: &Evaluator, x: &Ciphertext, y: &Ciphertext, relinearise: bool| {
            let many = [[x, y]; LAZY_TERMS];
            let pairs = if lazy { &many[..] } else { &many[..1] };
            match relinearise {
                true => evaluator.sum_of_products(pairs),
                false => evaluator.sum_of_products_no_relin(pairs),
            }
        },
        products: if lazy { LAZY_TERMS } else { 1 },
    };
    measure_exact::<Bfv>(request, &way)
}

/// A ciphertext at the top level with the noise of a product at the level of `x`: what a circuit's later levels meet.
fn noisy(evaluator: &Evaluator, x: &Ciphertext) -> synchromesh::Result<Ciphertext> {
    let product = evaluator.square(x)?;
    evaluator.mod_raise_to(&product, evaluator.context().params().top_level())
}
