//! Functions of integers by their values, in BFV and BGV: every value of the range, modulo small and large t, decrypted.

use synchromesh::circuits::functions::Table;
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::scheme::{Encryptor, Operation, Values};

const EXACT: [SchemeName; 2] = [SchemeName::Bfv, SchemeName::Bgv];

/// What a table makes of one or two vectors, at a plan for it; and the levels that it took.
fn computed(scheme: SchemeName, t: Option<&str>, table: &Table, operands: &[Vec<i64>]) -> (Vec<i64>, usize) {
    let depth = table.plan::<synchromesh::bgv::Evaluator>().unwrap().depth;
    let description = Description {
        security: Security::Insecure,
        t: t.map(str::to_owned),
        additions: 0,
        ..Description::new(scheme, depth + 1)
    };
    let session = description.plan().unwrap().open_any().unwrap();
    let mut randomness = Randomness::insecure_from_number(5);
    let (secret, public) = session.generate_keys(&mut randomness).unwrap();
    let keys = session.generate_keys_for(&secret, session.rotations(), &mut randomness).unwrap();
    session.add_keys(&std::sync::Arc::new(keys));
    let (by, top) = (Encryptor::Public(&public), session.top_level());
    let encrypted: Vec<_> = operands
        .iter()
        .map(|x| session.encrypt(&by, &Values::from(&x[..]), 1.0, top, &mut randomness).unwrap())
        .collect();
    let found = session.apply(&Operation::Table(table), &encrypted.iter().collect::<Vec<_>>()).unwrap();
    let level = session.state(&found).unwrap().level;
    (session.decrypt(&secret, &found).unwrap().reals().iter().map(|&x| x as i64).collect(), top - level)
}

#[test]
fn comparisons_are_right_for_all_pairs_of_the_range() {
    for scheme in EXACT {
        for (t, most) in [(None, 12i64), (Some("2305843009213554689"), 5)] {
            let (x, y): (Vec<i64>, Vec<i64>) = (0..=most).flat_map(|x| (0..=most).map(move |y| (x, y))).unzip();
            let holds = [Table::equal(most as u32).unwrap(), Table::less(most as u32).unwrap()];
            for (table, holds) in holds.iter().zip([|x, y| x == y, |x: i64, y: i64| x < y]) {
                let (found, levels) = computed(scheme, t, table, &[x.clone(), y.clone()]);
                for ((x, y), &found) in x.iter().zip(&y).zip(&found) {
                    assert_eq!(found, i64::from(holds(*x, *y)), "{} {x} {y}", scheme.name());
                }
                assert!(levels <= table.plan::<synchromesh::bgv::Evaluator>().unwrap().depth, "{levels}");
            }
        }
    }
}

#[test]
fn look_ups_give_every_value() {
    for scheme in EXACT {
        for (low, values) in [
            (-3, vec![100, -200, 300, -400, 500, 600, 7]),
            (5, vec![9, -8, 7, 7, -8, 9]),
            (0, vec![11]),
            (2, vec![4, 4]),
        ] {
            let table = Table::new(low, values.iter().copied()).unwrap();
            let x: Vec<i64> = (low..low + values.len() as i64).collect();
            let (found, _) = computed(scheme, None, &table, &[x]);
            assert_eq!(found[..values.len()], values[..], "{}", scheme.name());
        }
    }
}

#[test]
fn tables_take_the_least_depth() {
    let plan = |table: Table| table.plan::<synchromesh::bgv::Evaluator>().unwrap();
    for (reach, equal, less) in [(1u32, 1, 1), (7, 4, 4), (15, 5, 5), (255, 9, 9)] {
        let (e, l) = (plan(Table::equal(reach).unwrap()), plan(Table::less(reach).unwrap()));
        eprintln!("differences up to {reach}: equal {e:?}, less {l:?}");
        assert_eq!((e.depth, l.depth), (equal, less), "{reach}");
        assert!(e.products < l.products || reach == 1, "{reach}: {e:?} {l:?}");
    }
    // 2 (255)^(1/2) and 2 (510)^(1/2), and what powers of two take beyond.
    assert!(plan(Table::equal(255).unwrap()).products <= 36 && plan(Table::less(255).unwrap()).products <= 50);
}

#[test]
fn what_t_does_not_hold_is_refused() {
    let refused = |t: &str, table: &Table| {
        let description =
            Description { security: Security::Insecure, t: Some(t.to_owned()), ..Description::new(SchemeName::Bgv, 2) };
        let session = description.plan().unwrap().open_any().unwrap();
        let mut randomness = Randomness::insecure_from_number(5);
        let (_, public) = session.generate_keys(&mut randomness).unwrap();
        let by = Encryptor::Public(&public);
        let x = session.encrypt(&by, &Values::from(&[1i64][..]), 1.0, session.top_level(), &mut randomness).unwrap();
        session.apply(&Operation::Table(table), &[&x, &x, &x][..table.values().len().min(3)]).err().unwrap().kind()
    };
    assert_eq!(refused("65537", &Table::new(0, [1i64 << 40]).unwrap()), "value_exceeds_modulus");
    assert_eq!(refused("65537", &Table::new(0, [1, 2, 3]).unwrap()), "shape");
    let description = Description { security: Security::Insecure, ..Description::new(SchemeName::Ckks, 3) };
    let planned = description.plan_ckks(&[1.0], |e, x| {
        Ok(vec![synchromesh::scheme::apply::<synchromesh::ckks::Ckks, _>(
            e,
            &Operation::Table(&Table::less(3).unwrap()),
            &[&x[0]],
        )?])
    });
    assert_eq!(planned.err().map(|e| e.kind()), Some("scheme"));
}
