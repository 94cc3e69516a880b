//! Search among encrypted unit vectors: every record outside the gap is found or not as in the clear, with what it carries.

use std::sync::Arc;

use synchromesh::ckks::{Ciphertext, Ckks, Complex64, Context, Evaluator};
use synchromesh::plan::Plan;
use synchromesh::rlwe::{Randomness, SecretKey, Security};
use synchromesh::search::Search;

const DIMENSION: usize = 12;

struct Fixture {
    search: Search,
    plan: Plan,
    context: Arc<Context>,
    evaluator: Evaluator,
    secret: SecretKey,
    randomness: Randomness,
}

impl Fixture {
    fn new(search: Search) -> Self {
        let plan = search.plan(Security::Insecure).unwrap();
        let session = plan.open::<Ckks>().unwrap();
        let mut randomness = Randomness::insecure_from_number(11);
        let (secret, _) = session.generate_keys(&mut randomness).unwrap();
        let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness).unwrap());
        let context = Arc::clone(session.context());
        Self { search, plan, context, evaluator, secret, randomness }
    }

    fn encrypt(&mut self, slots: &[Complex64], bound: f64, level: usize) -> Ciphertext {
        let plaintext = self.context.encode_complex(slots, bound).unwrap();
        self.context.encrypt_with_secret(&self.secret, &plaintext, level, &mut self.randomness).unwrap().0
    }

    /// Both halves for a query among the records of one block.
    fn found(&mut self, query: &[f64], records: &[f32]) -> [Ciphertext; 2] {
        let (top, message) =
            (self.context.params().top_level(), self.search.encode_query(&self.context, query).unwrap());
        let seed = &mut self.randomness;
        let (query, _) = self.context.encrypt_with_secret(&self.secret, &message, top, seed).unwrap();
        self.search.check_records(0, records).unwrap();
        let columns: Vec<_> = (0..DIMENSION)
            .map(|j| {
                let message = self.search.encode_column(&self.context, records, j).unwrap();
                let made = self.context.encrypt_with_secret(&self.secret, &message, top, &mut self.randomness);
                made.unwrap().0
            })
            .collect();
        let query = self.search.expanded(&self.evaluator, &query).unwrap();
        let column = |j: usize| columns[j].duplicate(&self.context);
        self.search.found(&self.evaluator, &query, column).unwrap()
    }

    fn slots(&self, x: &Ciphertext) -> Vec<Complex64> {
        self.context.decode_complex(&self.context.decrypt(&self.secret, x).unwrap()).unwrap()
    }
}

/// Unit vectors, many of them near the query, and the query.
fn data(count: usize) -> (Vec<f32>, Vec<f64>) {
    let mut state = 5u64;
    let mut normal = || {
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..12).map(|_| word()).sum::<f64>() - 6.0
    };
    let unit = |x: Vec<f64>| {
        let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.into_iter().map(|x| x / length).collect::<Vec<f64>>()
    };
    let query = unit((0..DIMENSION).map(|_| normal()).collect());
    let mut records = Vec::new();
    for i in 0..count {
        let near = [0.0, 1.0, 2.5][i % 3];
        let record = unit(query.iter().map(|q| near * q + 0.3 * normal()).collect());
        records.extend(record.into_iter().map(|x| x as f32));
    }
    (records, query)
}

/// Inner products in the clear.
fn products(records: &[f32], query: &[f64]) -> Vec<f64> {
    let product = |record: &[f32]| record.iter().zip(query).map(|(&x, q)| f64::from(x) * q).sum();
    records.chunks(DIMENSION).map(product).collect()
}

#[test]
fn records_are_found_as_in_the_clear_outside_the_gap() {
    let search = Search::new(DIMENSION, 0.8, 0.05);
    let mut f = Fixture::new(search);
    let (records, query) = data(Search::block(&f.context) - 3);
    let halves = f.found(&query, &records);
    let joined = Search::joined(&f.evaluator, &halves).unwrap();
    assert_eq!(joined.level(), 0, "{:?}", f.plan.q_bits);
    let found = Search::parted(&f.slots(&joined));
    let mut counts = [0; 3];
    for (x, product) in found.iter().zip(products(&records, &query)) {
        if (product - 0.8).abs() < search.gap {
            counts[2] += 1;
            assert!((-0.1..1.1).contains(x));
            continue;
        }
        let expected = f64::from(product > 0.8);
        counts[expected as usize] += 1;
        assert!((x - expected).abs() <= search.tolerance, "{product}: {x}");
    }
    assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
}

#[test]
fn what_found_records_carry_comes_back() {
    let search = Search::new(DIMENSION, 0.8, 0.05);
    let mut f = Fixture::new(search.carrying(1));
    let count = Search::block(&f.context);
    let (records, query) = data(count);
    let halves = f.found(&query, &records);
    let payload: Vec<f64> = (0..count).map(|i| (i * 37 % 512) as f64 / 512.0).collect();
    let slots = f.context.params().slots();
    let products = products(&records, &query);
    for (half, own) in halves.iter().zip(payload.chunks(slots)) {
        let numbers: Vec<Complex64> = own.iter().map(|&x| Complex64::new(x, 1.0)).collect();
        let carried = f.encrypt(&numbers, 1.5, half.level());
        let made = f.evaluator.mul(half, &carried).unwrap();
        assert_eq!(made.level(), 0);
        let start = if std::ptr::eq(half, &halves[0]) { 0 } else { slots };
        for (s, z) in f.slots(&made).iter().enumerate() {
            let product = products[start + s];
            if (product - 0.8).abs() >= search.gap {
                let is = f64::from(product > 0.8);
                assert_eq!((z.re * 512.0).round(), own[s] * 512.0 * is, "{product}");
                assert_eq!(z.im.round(), is);
            }
        }
    }
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let none = |search: Search| search.plan(Security::Insecure).err().map(|e| e.kind());
    for wrong in [Search::new(0, 0.8, 0.1), Search::new(4, 1.5, 0.1), Search::new(4, f64::NAN, 0.1)] {
        assert_eq!(none(wrong), Some("argument"));
    }
    assert_eq!(none(Search::new(4, 0.8, 0.0)), Some("argument"));
    assert_eq!(none(Search::new(usize::MAX, 0.8, 0.1)), Some("argument"));
    assert_eq!(none(Search::new(4, 0.8, 0.1).within(0.0)), Some("argument"));
    let search = Search::new(DIMENSION, 0.8, 0.1);
    for (records, words) in [
        (vec![0.0; DIMENSION], "record 0 must be a vector of 12 coordinates and of length 1"),
        (vec![f32::NAN; DIMENSION], "record 0 must be"),
        (vec![1.0; DIMENSION + 1], "no multiple"),
    ] {
        assert!(search.check_records(0, &records).unwrap_err().to_string().contains(words));
    }
    let f = Fixture::new(search);
    for query in [vec![1.0; DIMENSION], vec![1.0], vec![f64::INFINITY; DIMENSION]] {
        let refused = search.encode_query(&f.context, &query).err().unwrap();
        assert!(refused.to_string().contains("the query must be"), "{refused}");
    }
    let column =
        |search: &Search, records: &[f32], j| search.encode_column(&f.context, records, j).err().map(|e| e.kind());
    let most = Search::block(&f.context);
    assert_eq!(column(&search, &vec![0.5; most * DIMENSION], DIMENSION - 1), None);
    assert_eq!(column(&search, &vec![0.5; (most + 1) * DIMENSION], 0), Some("argument"));
    assert_eq!(column(&search, &[0.5; DIMENSION], DIMENSION), Some("argument"));
    assert_eq!(column(&search, &[0.5; DIMENSION + 1], 0), Some("argument"));
    let none = Search::new(0, 0.8, 0.1);
    assert_eq!(column(&none, &[], 0), Some("argument"));
    assert!(none.check_records(0, &[]).is_err() && none.encode_query(&f.context, &[]).is_err());
    let nothing = f.context.encode(&[0.0]).unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let (query, _) = f.context.encrypt_with_secret(&f.secret, &nothing, 1, &mut randomness).unwrap();
    let query = search.expanded(&f.evaluator, &query).unwrap();
    let gone = |_| f.context.encode(&[2.0]).map(|_| unreachable!());
    assert!(search.found(&f.evaluator, &query, gone).is_err());
}
