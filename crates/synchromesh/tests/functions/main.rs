//! Functions on intervals: in doubles within their bounds at a million points each, and encrypted within their
//! certificates; what cannot be approximated is refused with the nearest that can.

use std::sync::Arc;

use synchromesh::Error;
use synchromesh::circuits::functions::{Approximation, Function, FunctionName};
use synchromesh::ckks::{Ckks, Evaluator, Rotations};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::{Randomness, Security};

/// Every function with an interval, a tolerance and, for those that jump, a gap.
fn all() -> Vec<Function> {
    let clip = FunctionName::Clip { low: -0.5, high: 1.0 };
    [
        (FunctionName::Exp, (-1.0, 1.0), 1e-6),
        (FunctionName::Exp, (-8.0, 0.0), 1e-5),
        (FunctionName::Log, (0.5, 4.0), 1e-5),
        (FunctionName::Sigmoid, (-8.0, 8.0), 1e-4),
        (FunctionName::Tanh, (-4.0, 4.0), 1e-4),
        (FunctionName::Gelu, (-6.0, 6.0), 1e-4),
        (FunctionName::Sqrt, (0.25, 4.0), 1e-5),
        (FunctionName::Sqrt, (1.0 / 256.0, 1.0), 1e-4),
        (FunctionName::Rsqrt, (0.25, 4.0), 1e-4),
        (FunctionName::Rsqrt, (1.0 / 512.0, 1.0), 1e-3),
        (FunctionName::Inverse, (0.5, 2.0), 1e-5),
        (FunctionName::Inverse, (-3.0, -1.0), 1e-6),
        (FunctionName::Inverse, (1.0 / 256.0, 1.0), 1e-3),
        (FunctionName::Inverse, (-20.0, -1.0 / 16.0), 1e-3),
        (FunctionName::Abs, (-1.0, 1.0), 2f64.powi(-8)),
        (FunctionName::Relu, (-1.0, 3.0), 2f64.powi(-6)),
        (clip, (-2.0, 2.0), 2f64.powi(-6)),
        (FunctionName::Max, (0.0, 1.0), 2f64.powi(-7)),
        (FunctionName::Min, (-1.0, 1.0), 2f64.powi(-7)),
    ]
    .map(|(name, interval, tolerance)| Function::new(name, interval, tolerance))
    .into_iter()
    .chain([
        Function::new(FunctionName::Sign, (-1.0, 1.0), 2f64.powi(-10)).with_gap(2f64.powi(-7)),
        Function::new(FunctionName::Step, (-2.0, 2.0), 2f64.powi(-8)).with_gap(2f64.powi(-5)),
        Function::new(FunctionName::Compare, (0.0, 1.0), 2f64.powi(-8)).with_gap(2f64.powi(-6)),
    ])
    .collect()
}

/// Arguments number `i` of `count`, ends included, more of them near 0.
fn argument(function: &Function, i: usize, count: usize) -> Vec<f64> {
    let (low, high) = function.interval;
    let at = |i: usize| {
        let part = (i % count) as f64 / (count - 1) as f64;
        let x = low + (high - low) * part;
        if i.is_multiple_of(3) && low < 0.0 && high > 0.0 { x * part.powi(3) } else { x.clamp(low, high) }
    };
    [at(i), at(i.wrapping_mul(7919))][..function.name.arguments()].to_vec()
}

fn decided(approximation: &Approximation, x: &[f64]) -> bool {
    let difference = x[0] - x.get(1).copied().unwrap_or(0.0);
    !approximation.function().name.jumps() || difference.abs() >= approximation.gap()
}

#[test]
fn no_value_of_a_million_is_further_off_than_the_bound_and_bounds_are_tight() {
    for function in all() {
        let approximation = function.approximate().unwrap();
        assert!(approximation.error() <= function.tolerance * (1.0 + 1e-6), "{function:?}: {approximation:?}");
        let (mut worst, count) = (0.0f64, 1_000_000);
        for i in 0..count {
            let x = argument(&function, i, count);
            if decided(&approximation, &x) {
                worst = worst.max((approximation.value(&x) - function.name.value(&x)).abs());
            }
        }
        let error = approximation.error();
        assert!(worst <= error, "{function:?}: {worst:e} above {error:e}");
        // Steps square an error that is largest elsewhere; where a function bends, signs are used at one place only.
        let (low, high) = function.interval;
        let wide = low * high > 0.0 && (low / high).max(high / low) > 100.0;
        assert!(wide || worst > error / 30.0, "{function:?}: {error:e} is said of {worst:e}");
    }
}

/// The bits that a plan asks for: one less than the tolerance has.
fn bits(function: &Function) -> u32 {
    (-function.tolerance.log2() - 1.0).min(8.0) as u32
}

/// The function on encrypted numbers, at a plan of its own for so many bits of the result, or of the arguments; how far
/// off it was and what the certificate said.
fn encrypted(function: &Function, (bits, of_result): (u32, bool), seed: u64) -> (f64, f64) {
    let approximation = function.approximate().unwrap();
    let (low, high) = function.interval;
    let bounds = vec![low.abs().max(high.abs()); function.name.arguments()];
    let shape = approximation.plan::<Evaluator>();
    let mut description = Description::new(SchemeName::Ckks, shape.depth);
    description.additions = 0;
    (description.security, description.precision) = (Security::Insecure, Some(bits));
    let plan = description
        .plan_ckks(&bounds, |e, x| {
            let y = approximation.evaluate(e, &x.iter().collect::<Vec<_>>())?;
            // An interval of width 2 is mapped by an integer, which takes no level.
            let spared = usize::from(high - low == 2.0);
            assert!((shape.depth - spared..=shape.depth).contains(&(x[0].level() - y.level())), "{function:?}");
            Ok(vec![if of_result { y } else { x[0].duplicate(e.context())? }])
        })
        .unwrap();
    assert!(plan.log_n <= 12, "N = 2^{}", plan.log_n);
    let session = plan.open::<Ckks>().unwrap();
    let context = session.context();
    let mut randomness = Randomness::insecure_from_number(seed);
    let (secret, public) = session.generate_keys(&mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, &Rotations::default(), &mut randomness).unwrap();
    let evaluator = Evaluator::new(context, Some(Arc::new(keys)));
    let arguments: Vec<Vec<f64>> = (0..plan.slots).map(|i| argument(function, i, plan.slots)).collect();
    let operands: Vec<_> = (0..function.name.arguments())
        .map(|k| {
            let column: Vec<f64> = arguments.iter().map(|x| x[k]).collect();
            let plaintext = context.encode_bounded(&column, bounds[k]).unwrap();
            context.encrypt(&public, &plaintext, &mut randomness).unwrap()
        })
        .collect();
    let result = approximation.evaluate(&evaluator, &operands.iter().collect::<Vec<_>>()).unwrap();
    let values = context.decode(&context.decrypt(&secret, &result).unwrap()).unwrap();
    let mut worst = 0.0f64;
    for (x, value) in arguments.iter().zip(&values) {
        if decided(&approximation, x) {
            worst = worst.max((value - function.name.value(x)).abs());
        }
    }
    (worst, context.error_bound(&result))
}

#[test]
fn encrypted_values_are_the_functions_within_their_certificates() {
    for (i, function) in all().iter().enumerate() {
        let (worst, certificate) = encrypted(function, (bits(function), true), 900 + i as u64);
        eprintln!("{:?} {:?}: {worst:.2e} of {certificate:.2e}", function.name, function.interval);
        assert!(worst <= certificate, "{function:?}: {worst:e} above {certificate:e}");
        assert!(certificate <= (-f64::from(bits(function))).exp2(), "{function:?}: {certificate:e}");
    }
}

#[test]
fn certificates_are_those_of_the_function_and_not_of_the_polynomial() {
    for name in [FunctionName::Sigmoid, FunctionName::Tanh, FunctionName::Gelu] {
        let function = Function::new(name, (-4.0, 4.0), 0.02);
        let (worst, certificate) = encrypted(&function, (24, false), 950);
        let error = function.approximate().unwrap().error();
        // Noise is next to nothing here: what is left is the distance of the polynomial.
        assert!(worst > 0.5 * error && worst <= certificate, "{name:?}: {worst:e} {error:e} {certificate:e}");
        assert!(certificate < 1.01 * error, "{name:?}: {error:e} {certificate:e}");
    }
}

#[test]
fn what_cannot_be_approximated_is_refused_with_what_can() {
    let refused = |name, interval, tolerance| {
        let error = Function::new(name, interval, tolerance).approximate().unwrap_err();
        (error.kind(), error)
    };
    for (name, interval) in [
        (FunctionName::Inverse, (-1.0, 2.0)),
        (FunctionName::Log, (0.0, 1.0)),
        (FunctionName::Sqrt, (-1.0, 1.0)),
        (FunctionName::Rsqrt, (0.0, 4.0)),
    ] {
        let (kind, error) = refused(name, interval, 1e-3);
        assert_eq!(kind, "singular", "{error}");
        assert!(error.remedy().contains("before 0"), "{}", error.remedy());
    }
    for (name, interval, tolerance) in [
        (FunctionName::Exp, (-1.0, 1.0), 1e-17),
        (FunctionName::Exp, (0.0, 40.0), 1e-6),
        (FunctionName::Log, (1e-9, 1.0), 1e-6),
        (FunctionName::Sigmoid, (-8.0, 8.0), 1e-18),
        (FunctionName::Inverse, (1e-9, 1.0), 1e-9),
        (FunctionName::Abs, (-1.0, 1.0), 1e-12),
        (FunctionName::Sign, (-1.0, 1.0), 1e-12),
        (FunctionName::Relu, (-1e6, 1e6), 1e-6),
    ] {
        let (kind, error) = refused(name, interval, tolerance);
        assert_eq!(kind, "tolerance", "{error}");
        let Error::Tolerance { nearest, .. } = error else { panic!("{error}") };
        assert!(nearest > tolerance, "{name:?}: {nearest:e} for {tolerance:e}");
        let found = Function::new(name, interval, nearest).approximate();
        assert!(found.is_ok(), "{name:?}: {nearest:e} was said to work: {found:?}");
    }
    let sign = Function::new(FunctionName::Sign, (-1.0, 1.0), 1e-18).with_gap(0.125);
    let Error::Tolerance { nearest, .. } = sign.approximate().unwrap_err() else { panic!("{sign:?}") };
    assert!(nearest < 1e-9 && Function { tolerance: nearest, ..sign }.approximate().is_ok(), "{nearest:e}");
    for (function, word) in [
        (Function::new(FunctionName::Exp, (1.0, 1.0), 1e-3), "interval"),
        (Function::new(FunctionName::Exp, (0.0, f64::NAN), 1e-3), "interval"),
        (Function::new(FunctionName::Exp, (0.0, 1.0), 0.0), "tolerance"),
        (Function::new(FunctionName::Exp, (0.0, 1.0), f64::INFINITY), "tolerance"),
        (Function::new(FunctionName::Exp, (0.0, 1.0), 1e-3).with_gap(0.1), "gap"),
        (Function::new(FunctionName::Sign, (-1.0, 1.0), 1e-3).with_gap(1.5), "gap"),
        (Function::new(FunctionName::Sign, (-1.0, 1.0), 1e-3).with_gap(1e-9), "gap"),
        (Function::new(FunctionName::Clip { low: 2.0, high: 1.0 }, (-1.0, 1.0), 1e-3), "range"),
    ] {
        let error = function.approximate().unwrap_err();
        assert_eq!(error.kind(), "argument", "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn arguments_that_may_leave_the_interval_are_refused() {
    let approximation = Function::new(FunctionName::Sigmoid, (-8.0, 8.0), 1e-3).approximate().unwrap();
    let mut description = Description::new(SchemeName::Ckks, 6);
    description.security = Security::Insecure;
    let planned = |description: &Description, bounds: &[f64]| {
        description.plan_ckks(bounds, |e, x| Ok(vec![approximation.evaluate(e, &x.iter().collect::<Vec<_>>())?]))
    };
    let wide = planned(&description, &[9.0]).unwrap_err();
    assert_eq!(wide, Error::Interval { function: "sigmoid", have: 9.0, low: -8.0, high: 8.0 });
    assert!(wide.remedy().contains("reaches 9"), "{}", wide.remedy());
    assert_eq!(planned(&description, &[1.0, 1.0]).unwrap_err().kind(), "shape");
    // A tolerance above the precision asked for is named, not searched for.
    description.precision = Some(20);
    let coarse = planned(&description, &[8.0]).unwrap_err();
    assert_eq!(coarse.kind(), "plan_precision", "{coarse}");
    assert!(coarse.remedy().contains("a precision of 10 bits"), "{} {}", coarse, coarse.remedy());
}

#[test]
fn functions_are_data() {
    for function in all() {
        let text = serde_json::to_string(&function).unwrap();
        assert_eq!(serde_json::from_str::<Function>(&text).unwrap(), function, "{text}");
    }
}
