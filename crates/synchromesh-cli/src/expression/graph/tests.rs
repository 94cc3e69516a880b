//! Values against arithmetic modulo 2^61 - 1, sharing, depth and limits.

use super::*;
use proptest::prelude::*;
use std::convert::Infallible;

const MODULUS: i128 = (1 << 61) - 1;

fn pair(a: i128, b: i128) -> [i128; 2] {
    [a.rem_euclid(MODULUS), b.rem_euclid(MODULUS)]
}

fn slot(number: &Number) -> i128 {
    let residue = number.to_integer().unwrap() % BigInt::from(MODULUS);
    i128::try_from(residue).unwrap()
}

/// An operation on pairs of integers modulo 2^61 - 1 as slots, and its name; the conjugate swaps them.
fn on_pairs(names: &[String], operation: &Operation<&[i128; 2]>) -> ([i128; 2], &'static str) {
    let swapped = |a: &[i128; 2]| [a[1], a[0]];
    match operation {
        Operation::Input(index) => {
            let value = match &*names[*index] {
                "x" => [3, 5],
                "y" => [-7, 11],
                _ => [13, 17],
            };
            (value, "input")
        }
        Operation::Add(a, b) => (pair(a[0] + b[0], a[1] + b[1]), "add"),
        Operation::Sub(a, b) => (pair(a[0] - b[0], a[1] - b[1]), "sub"),
        Operation::Neg(a) => (pair(-a[0], -a[1]), "neg"),
        Operation::Mul(a, b) => (pair(a[0] * b[0], a[1] * b[1]), "mul"),
        Operation::Square(a) => (pair(a[0] * a[0], a[1] * a[1]), "square"),
        Operation::AddConst(a, c) => (pair(a[0] + slot(c), a[1] + slot(c)), "add_const"),
        Operation::MulConst(a, c) => (pair(a[0] * slot(c), a[1] * slot(c)), "mul_const"),
        Operation::Rotate(a, k) => (if k % 2 == 0 { **a } else { swapped(a) }, "rotate"),
        Operation::Conjugate(a) => (swapped(a), "conjugate"),
        Operation::Refresh(a) => (**a, "refresh"),
        // No integers: which function it was is what tests look at.
        Operation::Table(a, b, table) => {
            let centred = |v: i128| if v > MODULUS / 2 { v - MODULUS } else { v };
            let at =
                |i: usize| centred((a[i] - b.map_or(0, |b| b[i])).rem_euclid(MODULUS)) - i128::from(table.range().0);
            let value = |i: usize| {
                usize::try_from(at(i))
                    .ok()
                    .and_then(|i| table.values().get(i))
                    .map_or(0, |v| slot(&Number::Int(v.clone())))
            };
            (pair(value(0), value(1)), "table")
        }
        Operation::Apply(a, b, f) => (pair(a[0] + b.map_or(0, |b| b[0]), a[1]), f.function().name.name()),
    }
}

/// The value of a graph, and the names of what was computed for it.
fn computed(graph: &Graph) -> ([i128; 2], Vec<&'static str>) {
    let mut calls = Vec::new();
    let Ok(value) = graph.evaluate(|operation| {
        let (value, name) = on_pairs(graph.inputs(), &operation);
        calls.push(name);
        Ok::<_, Infallible>(value)
    });
    calls.retain(|call| *call != "input");
    (pair(value[0], value[1]), calls)
}

fn value(text: &str) -> [i128; 2] {
    computed(&Graph::parse(text).unwrap()).0
}

fn calls(text: &str) -> Vec<&'static str> {
    computed(&Graph::parse(text).unwrap()).1
}

#[test]
fn values_are_those_of_arithmetic() {
    for (text, a, b) in [
        ("x*y + 2*x", 3 * -7 + 6, 5 * 11 + 10),
        ("-x^2 - 1", -10, -26),
        ("2 - x", -1, -3),
        ("-x - y", 4, -16),
        ("(x - y)*(x + y)", 9 - 49, 25 - 121),
        ("2*(3*(x + 1)) - 2^5", 6 * 4 - 32, 6 * 6 - 32),
        ("rotate(x, -3) - conj(x)", 0, 0),
        ("x*y*refresh(x^3)", -21 * 27, 55 * 125),
        ("rotate(x, 1)*y", -35, 33),
        ("x^5*y^3", 243 * -343, 3125 * 1331),
        ("x*0 + z", 13, 17),
        ("-(-x)", 3, 5),
        ("x^0 + y^1", -6, 12),
        ("less(x, y, -10, 20)", 0, 1),
        ("equal(x, y + 10, -20, 20) - less(y, x, -20, 20)", 0, 0),
        ("2*lookup(x, 3, 10, -20, 30)", 20, 60),
    ] {
        assert_eq!(value(text), pair(a, b), "{text}");
    }
}

#[test]
fn equal_subexpressions_are_computed_once() {
    assert_eq!(calls("x*y + y*x"), ["mul", "add"]);
    assert_eq!(calls("x^3 - x*x*x"), ["square", "mul", "sub"]);
    assert_eq!(calls("(x+y)^2 + (y+x)*3"), ["add", "mul_const", "square", "add"]);
    assert_eq!(calls("rotate(x*y, 2) - rotate(y*x, 2)*y"), ["mul", "rotate", "mul", "sub"]);
}

#[test]
fn a_refresh_makes_levels_good() {
    let depth = |text: &str| Graph::parse(text).unwrap().depth();
    assert_eq!((depth("x*y*refresh(x^4)"), depth("x*y*x^4"), depth("refresh(x^4)")), (2, 3, 0));
}

#[test]
fn functions_are_nodes_with_their_depth() {
    assert_eq!(calls("exp(x) + exp(x)*exp(x, -1, 1)"), ["exp", "square", "add"]);
    assert_eq!(calls("max(x, y) - min(x, y, 0, 1)"), ["min", "max", "sub"]);
    let graph = Graph::parse("x*sigmoid(x*y, -8, 8, 1e-2)").unwrap();
    let Operation::Apply(_, None, f) = &graph.operations()[3] else { panic!("{graph:?}") };
    assert_eq!(graph.depth() as usize, 2 + f.plan::<Evaluator>().depth);
    let graph = Graph::parse("x*less(x, y, 0, 15) + equal(y, x, 0, 15)").unwrap();
    assert_eq!((graph.depth(), calls("less(x, y, 0, 15)*less(x, y, 0, 15)")), (6, vec!["table", "square"]));
    assert_eq!(Graph::parse("equal(x, 3, 0, 15)").unwrap_err().kind(), "expression");
    let refused = Graph::parse("x + inverse(x, -1, 1)").unwrap_err();
    assert_eq!((refused.kind(), &refused.span), ("singular", &(4..21)), "{refused}");
    assert_eq!(Graph::parse("exp(x, -1, 1, 1e-18)").unwrap_err().kind(), "tolerance");
    assert_eq!(Graph::parse("exp(2)*x").unwrap_err().problem, Problem::Constant("exp"));
}

#[test]
fn powers_and_products_are_as_shallow_as_can_be() {
    for (text, multiplications, depth) in [
        ("x^7", 4, 3),
        ("x^8", 3, 3),
        ("x^3", 2, 2),
        ("x*y*z*x*y*z*x*y", 7, 3),
        ("2*x*3*y", 2, 2),
        ("x^4*y*2*z", 5, 3),
        ("x*y - x*y*z*w", 3, 2),
    ] {
        let graph = Graph::parse(text).unwrap();
        assert_eq!(graph.depth(), depth, "{text}");
        let count = calls(text).iter().filter(|c| matches!(**c, "mul" | "square" | "mul_const")).count();
        assert_eq!(count, multiplications, "{text}");
    }
}

#[test]
fn constants_fold_and_units_vanish() {
    assert_eq!(calls("2*3*x + 4 - 4"), ["mul_const"]);
    assert_eq!(calls("1.0*x"), [""; 0]);
    assert_eq!(calls("x*(0-1)"), ["neg"]);
    let graph = Graph::parse("0.5*2*x + 0.25 + 2").unwrap();
    assert_eq!(graph.operations(), [Operation::Input(0), Operation::AddConst(0, Number::Real(2.25))]);
    assert_eq!(Graph::parse("0*y + z").unwrap().inputs(), ["z"]);
}

#[test]
fn what_a_plan_needs_is_known_before_evaluation() {
    let graph = Graph::parse("rotate(b, 4)*a + rotate(rotate(b, 4), -1) + rotate(b, 0)").unwrap();
    assert_eq!(graph.inputs(), ["b", "a"]);
    assert_eq!(graph.rotations().into_iter().collect::<Vec<_>>(), [-1, 4]);
    assert_eq!(graph.depth(), 1);
}

#[test]
fn constants_alone_and_runaway_constants_are_refused() {
    let problem = |text: &str| Graph::parse(text).unwrap_err();
    assert_eq!(problem("1 + 2").problem, Problem::NoCiphertext);
    assert_eq!(problem("x*0").problem, Problem::NoCiphertext);
    assert_eq!(problem("x + rotate(2, 1)").problem, Problem::Constant("rotate"));
    assert_eq!(problem("conj(2)*x").problem, Problem::Constant("conj"));
    let overflow = problem("x + 3^4000");
    assert_eq!((overflow.problem, overflow.span), (Problem::Overflow, 4..10));
    assert_eq!(problem("x*1e200*1e200").problem, Problem::Overflow);
    let many = (0..6000).map(|i| format!("{i}*x")).collect::<Vec<_>>().join("+");
    assert!(Graph::parse(&many).is_ok());
    let more = (0..8500).map(|i| format!("{i}*x")).collect::<Vec<_>>().join("+");
    assert_eq!(problem(&more).problem, Problem::TooLarge { what: "operations", limit: MAX_NODES });
}

/// Values that count how many of them there are.
#[derive(Default)]
struct Counted {
    now: std::rc::Rc<std::cell::Cell<usize>>,
    most: usize,
}

struct One(std::rc::Rc<std::cell::Cell<usize>>);

impl Drop for One {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Counted {
    fn one(&mut self) -> Result<One, Infallible> {
        self.now.set(self.now.get() + 1);
        self.most = self.most.max(self.now.get());
        Ok(One(self.now.clone()))
    }
}

#[test]
fn few_values_are_held_at_a_time() {
    let joined = |term: &dyn Fn(usize) -> String, by: &str| (0..1000).map(term).collect::<Vec<_>>().join(by);
    for (text, most) in [
        (joined(&|i| format!("{}*x", i + 2), " + "), 4),
        (joined(&|i| format!("rotate(x*y, {i})*y^2"), " - "), 6),
        (joined(&|i| format!("(x + {i})"), " * "), 14),
        (format!("(x + {}) + y", joined(&|i| format!("{}*(x + {i})", i + 2), " + ")), 5),
    ] {
        let mut counted = Counted::default();
        let Ok(value) = Graph::parse(&text).unwrap().evaluate(|_| counted.one());
        assert!(counted.most <= most, "{} values at once for {}", counted.most, &text[..40]);
        drop(value);
        assert_eq!(counted.now.get(), 0);
    }
}

/// A random expression with its value, computed by this test from the definition.
fn sample() -> impl Strategy<Value = (String, [i128; 2])> {
    let leaf = prop_oneof![
        Just(("x".to_owned(), [3, 5])),
        Just(("y".to_owned(), [-7, 11])),
        (0i128..100).prop_map(|c| (c.to_string(), [c, c])),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|((a, u), (b, v))| (format!("({a} + {b})"), pair(u[0] + v[0], u[1] + v[1]))),
            two.clone().prop_map(|((a, u), (b, v))| (format!("({a} - {b})"), pair(u[0] - v[0], u[1] - v[1]))),
            two.prop_map(|((a, u), (b, v))| (format!("{a}*{b}"), pair(u[0] * v[0], u[1] * v[1]))),
            inner.clone().prop_map(|(a, u)| (format!("(-{a})"), pair(-u[0], -u[1]))),
            inner.clone().prop_map(|(a, u)| (format!("rotate(x + {a}, 1)"), pair(5 + u[1], 3 + u[0]))),
            inner.prop_map(|(a, u)| (format!("({a})^2"), pair(u[0] * u[0], u[1] * u[1]))),
        ]
    })
}

proptest! {
    #[test]
    fn random_expressions_have_their_value((text, expected) in sample()) {
        match Graph::parse(&format!("z*{text}")) {
            Ok(graph) => {
                prop_assert_eq!(computed(&graph).0, pair(13 * (expected[0] % MODULUS), 17 * (expected[1] % MODULUS)));
            }
            Err(error) => {
                let zero = error.problem == Problem::NoCiphertext && expected == [0, 0];
                prop_assert!(zero || error.problem == Problem::Overflow, "{}: {}", text, error);
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[xyz0-9.e+*^(), -]{0,40}|\\PC{0,20}") {
        let _ = Graph::parse(&text);
    }
}
