//! Files of triples: MP-SPDZ's layout byte for byte, the journal that gives each triple out once, and damage of all kinds.

use num_bigint::BigUint;
use synchromesh_triples::dealer::TrustedDealer;
use synchromesh_triples::field::{DEFAULT_PRIME, Field};
use synchromesh_triples::journal::TripleStore;
use synchromesh_triples::mp_spdz::Preprocessing;
use synchromesh_triples::share::check_opened;
use synchromesh_triples::{Element, MacKeyShare, Matrix, MatrixTriple, Shape, Shared};

fn field() -> Field {
    DEFAULT_PRIME.parse().unwrap()
}

fn deal(dealer: &TrustedDealer, shape: Shape, count: usize) -> Vec<Vec<MatrixTriple>> {
    let mut lists: Vec<Vec<MatrixTriple>> = dealer.keys().iter().map(|_| Vec::new()).collect();
    for _ in 0..count {
        lists.iter_mut().zip(dealer.triple(shape).unwrap()).for_each(|(list, triple)| list.push(triple));
    }
    lists
}

#[test]
fn triples_survive_the_files_of_mp_spdz() {
    for prime in [BigUint::from(u64::MAX - 58), field().prime().clone(), (BigUint::from(1u8) << 255u32) - 19u8] {
        let field = Field::new(&prime).unwrap();
        for (shape, name) in [("3x4x2", "Matrix-3x4x2-P1"), ("1x1x1", "Triples-p-P1"), ("1x2x1", "Matrix-1x2x1-P1")] {
            let (root, shape) = (tempfile::tempdir().unwrap(), shape.parse::<Shape>().unwrap());
            let dealer = TrustedDealer::new(&field, 3).unwrap();
            let mut read = Vec::new();
            for (party, triples) in deal(&dealer, shape, 2).into_iter().enumerate() {
                let files = Preprocessing::new(root.path(), &field, party, 3).unwrap();
                let key = &dealer.keys()[party];
                files.write_key(key).unwrap();
                let path = files.write_triples(key, shape, triples).unwrap();
                let header = 8 + 8 + 1 + 4 + field.bits().div_ceil(8) + 4 + field.element_bytes() as u64;
                let body = (2 * 2 * shape.elements() * field.element_bytes()) as u64;
                assert_eq!(path.metadata().unwrap().len(), header + body);
                assert!(party != 1 || path.ends_with(name));
                let key = files.read_key().unwrap();
                read.push(files.read_triples(&key, shape).unwrap());
            }
            check_opened(&field, dealer.keys(), &read).unwrap();
        }
    }
}

/// The bytes of a file written down by hand from the format's description: p = 0xffffffffffffffffffffffffff820001, R = 2^128,
/// so that R mod p = 2^128 - p = 0x7dffff and an element x below 2^100 is x 0x7dffff.
#[test]
fn the_layout_is_exact() {
    let (field, root) = (field(), tempfile::tempdir().unwrap());
    let files = Preprocessing::new(root.path(), &field, 0, 2).unwrap();
    let key = MacKeyShare::new(field.small(3));
    files.write_key(&key).unwrap();
    let part = |value, mac| {
        let single = |x| Matrix::new(1, 1, vec![field.small(x)]).unwrap();
        Shared::new(single(value), single(mac)).unwrap()
    };
    let triple = MatrixTriple::new(part(1, 2), part(4, 5), part(6, 7)).unwrap();
    let path = files.write_triples(&key, "1x1x1".parse().unwrap(), vec![triple]).unwrap();
    let mut expected = vec![49, 0, 0, 0, 0, 0, 0, 0];
    expected.extend(b"SPDZ gfp\0\x10\0\0\0");
    expected.extend([vec![0xff; 13], vec![0x82, 0, 1], vec![1, 0, 0, 0]].concat());
    for x in [3u128, 1, 2, 4, 5, 6, 7] {
        expected.extend((x * 0x7d_ffff).to_le_bytes());
    }
    assert_eq!(std::fs::read(path).unwrap(), expected);
    let text = |name: &str| std::fs::read_to_string(files.directory().join(name)).unwrap();
    assert_eq!(text("Params-Data"), "340282366920938463463374607431759953921\n1\n");
    assert_eq!(text("Player-MAC-Keys-p-P0"), "2\n3\n");
    assert!(files.directory().ends_with("2-p-128"));
}

/// 128 x 128 x 128 takes the 1,572,921 bytes that MP-SPDZ was seen to read.
#[test]
fn the_size_is_that_of_a_file_that_was_read() {
    let shape: Shape = "128x128x128".parse().unwrap();
    assert_eq!(57 + 32 * shape.elements(), 1_572_921);
}

#[test]
fn a_second_file_and_another_key_are_refused() {
    let (field, root) = (field(), tempfile::tempdir().unwrap());
    let (shape, dealer) = ("2x2x2".parse().unwrap(), TrustedDealer::new(&field, 2).unwrap());
    let files = Preprocessing::new(root.path(), &field, 0, 2).unwrap();
    let key = &dealer.keys()[0];
    files.write_key(key).unwrap();
    files.write_key(key).unwrap();
    assert_eq!(files.write_key(&dealer.keys()[1]).unwrap_err().kind(), "format");
    let mut lists = deal(&dealer, shape, 3).remove(0);
    let path = files.write_triples(key, shape, vec![lists.remove(0)]).unwrap();
    assert_eq!(files.write_triples(key, shape, vec![lists.remove(0)]).unwrap_err().kind(), "file_exists");
    let other = "2x2x1".parse().unwrap();
    assert_eq!(files.write_triples(key, other, vec![lists.remove(0)]).unwrap_err().kind(), "shape");
    assert_eq!(files.read_triples(&dealer.keys()[1], shape).unwrap_err().kind(), "format");
    let bytes = std::fs::read(&path).unwrap();
    for damaged in [&bytes[..bytes.len() - 1], &bytes[..20], &[], &[&bytes[..57], &[0xff; 384]].concat()] {
        std::fs::write(&path, damaged).unwrap();
        let kind = files.read_triples(key, shape).unwrap_err().kind();
        assert!(["format", "not_an_element"].contains(&kind), "{kind}");
    }
}

#[test]
fn wrong_triples_are_found() {
    let (field, shape) = (field(), "2x3x2".parse().unwrap());
    let dealer = TrustedDealer::new(&field, 2).unwrap();
    let matrix = |(rows, columns)| Matrix::random(&field, rows, columns).unwrap();
    let three = |shape: Shape| [shape.a(), shape.b(), shape.c()].map(|side| dealer.share(&matrix(side)).unwrap());
    let [a, b, c] = three(shape);
    let lists = a.into_iter().zip(b).zip(c).map(|((a, b), c)| vec![MatrixTriple::new(a, b, c).unwrap()]);
    let error = check_opened(&field, dealer.keys(), &lists.collect::<Vec<_>>()).unwrap_err();
    assert!(error.to_string().contains("C is not A B"));
    let stranger = [MacKeyShare::new(Element::ZERO), dealer.keys()[1].clone()];
    let error = check_opened(&field, &stranger, &deal(&dealer, shape, 1)).unwrap_err();
    assert!(error.to_string().contains("MAC"));
}

#[test]
fn a_triple_is_given_out_once() {
    let (field, root, shape) = (field(), tempfile::tempdir().unwrap(), "2x3x4".parse::<Shape>().unwrap());
    let dealer = TrustedDealer::new(&field, 2).unwrap();
    let mut paths = Vec::new();
    for (party, triples) in deal(&dealer, shape, 3).into_iter().enumerate() {
        paths.push(TripleStore::create(root.path(), &field, (party, 2), shape, triples).unwrap());
    }
    let open = |party: usize| TripleStore::open(&paths[party], &field, (party, 2), shape);
    let mut stores = [open(0).unwrap(), open(1).unwrap()];
    assert_eq!(open(0).unwrap_err().kind(), "format");
    let mut taken = stores.each_mut().map(|store| vec![store.take().unwrap().unwrap()]);
    drop(stores);
    let mut stores = [open(0).unwrap(), open(1).unwrap()];
    assert_eq!(stores[0].left(), 2);
    for _ in 0..2 {
        taken.iter_mut().zip(&mut stores).for_each(|(list, store)| list.push(store.take().unwrap().unwrap()));
    }
    assert!(stores.iter_mut().all(|store| store.take().unwrap().is_none()));
    check_opened(&field, dealer.keys(), &taken).unwrap();
    drop(stores);
    // A line of the journal that a crash cut short counts.
    std::fs::write(paths[0].with_extension("journal"), "0\n1").unwrap();
    assert_eq!(open(0).unwrap().left(), 1);
    assert_eq!(TripleStore::open(&paths[0], &field, (1, 2), shape).unwrap_err().kind(), "format");
}
