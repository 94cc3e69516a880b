//! Files of triples: MP-SPDZ's layout byte for byte, the journal that gives each triple out once, and damage of all kinds.

use std::path::{Path, PathBuf};

use num_bigint::BigUint;
use synchromesh::rlwe::file;
use synchromesh_triples::dealer::TrustedDealer;
use synchromesh_triples::field::{DEFAULT_PRIME, Field};
use synchromesh_triples::journal::TripleStore;
use synchromesh_triples::mp_spdz::Preprocessing;
use synchromesh_triples::parties::tls::Identity;
use synchromesh_triples::share::check_opened;
use synchromesh_triples::tuples::{Kind, Tuples};
use synchromesh_triples::{Element, Error, MacKeyShare, Matrix, MatrixTriple, Shape, Shared};

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

/// The same of tuples: the owner of input masks has after share and MAC the number itself, others have not.
#[test]
fn the_layout_of_tuples_is_exact() {
    let (field, root) = (field(), tempfile::tempdir().unwrap());
    let files = Preprocessing::new(root.path(), &field, 1, 2).unwrap();
    let key = MacKeyShare::new(field.small(3));
    files.write_key(&key).unwrap();
    let row =
        |numbers: &[u32]| Matrix::new(1, numbers.len(), numbers.iter().map(|&x| field.small(x)).collect()).unwrap();
    let shared = |values: &[u32], macs: &[u32]| Shared::new(row(values), row(macs)).unwrap();
    let squares = Tuples::new(Kind::Squares, vec![shared(&[1, 5], &[2, 6]), shared(&[3, 7], &[4, 8])]).unwrap();
    let own = Tuples::inputs(1, shared(&[1, 4], &[2, 5]), Some(row(&[3, 6]))).unwrap();
    let others = Tuples::inputs(0, shared(&[1, 3], &[2, 4]), None).unwrap();
    for (tuples, name, count) in [(squares, "Squares-p-P1", 8), (own, "Inputs-p-P1-1", 6), (others, "Inputs-p-P1-0", 4)]
    {
        let path = files.write_tuples(&key, tuples).unwrap();
        assert!(path.ends_with(name), "{}", path.display());
        let bytes = std::fs::read(path).unwrap();
        let numbers: Vec<u8> = (1..=count).flat_map(|x: u128| (x * 0x7d_ffff).to_le_bytes()).collect();
        assert_eq!((bytes.len(), &bytes[57..]), (57 + 16 * count as usize, &numbers[..]), "{name}");
    }
    let thread = files.of_thread(3);
    assert!(thread.tuples_path(Kind::Bits, None).ends_with("Bits-p-P1-T3"));
    assert!(thread.tuples_path(Kind::Inputs, Some(0)).ends_with("Inputs-p-P1-0-T3"));
    assert!(thread.triples_path("3x4x2".parse().unwrap()).ends_with("Matrix-3x4x2-P1-T3"));
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
    assert_eq!(files.write_key(&dealer.keys()[1]).unwrap_err().kind(), "other_mac_key");
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
        let key = &dealer.keys()[party];
        paths.push(TripleStore::create(root.path(), &field, (party, 2), shape, key, triples).unwrap());
    }
    let open = |party: usize| TripleStore::open(&paths[party], &field, (party, 2), shape);
    let mut stores = [open(0).unwrap(), open(1).unwrap()];
    assert_eq!(open(0).unwrap_err().kind(), "file_busy");
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
    assert_eq!(TripleStore::open(&paths[0], &field, (1, 2), shape).unwrap_err().kind(), "format");
}

/// One party's store of six triples, and how to open it.
fn six() -> (tempfile::TempDir, PathBuf, impl Fn() -> Result<TripleStore, Error>) {
    let (field, root, shape) = (field(), tempfile::tempdir().unwrap(), "2x2x2".parse::<Shape>().unwrap());
    let dealer = TrustedDealer::new(&field, 2).unwrap();
    let triples = deal(&dealer, shape, 6).remove(0);
    let path = TripleStore::create(root.path(), &field, (0, 2), shape, &dealer.keys()[0], triples).unwrap();
    let own = path.clone();
    (root, path, move || TripleStore::open(&own, &field, (0, 2), shape))
}

#[test]
fn a_store_without_its_journal_its_seal_or_its_key_is_refused() {
    let (root, path, open) = six();
    open().unwrap();
    let seal = path.with_file_name("triples-2x2x2-P0.bin.seal");
    for name in [path.with_extension("journal"), seal.clone(), path.with_extension("mac")] {
        let bytes = std::fs::read(&name).unwrap();
        std::fs::remove_file(&name).unwrap();
        let error = open().unwrap_err();
        assert!(error.kind() == "record_missing" && !error.remedy().is_empty(), "{error}");
        std::fs::write(&name, bytes).unwrap();
    }
    // Another store's journal is none of this one.
    let (_other, other_path, _) = six();
    std::fs::copy(other_path.with_extension("journal"), path.with_extension("journal")).unwrap();
    assert_eq!(open().unwrap_err().kind(), "file_damaged");
    drop(root);
}

/// Every bit of the head and of the seal is checked when a store is opened, and those of a triple when it is given out.
#[test]
fn every_flipped_bit_of_a_store_is_refused() {
    let (_root, path, open) = six();
    let bytes = std::fs::read(&path).unwrap();
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let head: serde_json::Value = serde_json::from_slice(&bytes[..line]).unwrap();
    let offset = head["offset"].as_u64().unwrap() as usize;
    let journal = std::fs::read(path.with_extension("journal")).unwrap();
    let flipped = |bit: usize, path: &Path, bytes: &[u8]| {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(path, damaged).unwrap();
    };
    for bit in 0..8 * offset {
        flipped(bit, &path, &bytes);
        assert_eq!(open().unwrap_err().kind(), "format", "bit {bit}");
    }
    let triple = (bytes.len() - offset) / 6;
    for bit in (8 * offset..8 * (offset + triple)).step_by(7) {
        flipped(bit, &path, &bytes);
        std::fs::write(path.with_extension("journal"), &journal).unwrap();
        assert_eq!(open().unwrap().take().unwrap_err().kind(), "format", "bit {bit}");
    }
    std::fs::write(&path, &bytes).unwrap();
    std::fs::write(path.with_extension("journal"), &journal).unwrap();
    let seal = path.with_file_name("triples-2x2x2-P0.bin.seal");
    let sealed = std::fs::read(&seal).unwrap();
    for bit in 0..8 * sealed.len() {
        flipped(bit, &seal, &sealed);
        assert_eq!(open().unwrap_err().kind(), "format", "bit {bit}");
    }
    std::fs::write(&seal, sealed).unwrap();
    open().unwrap().take().unwrap().unwrap();
}

/// A run that was killed before it wrote the shares themselves left what stands beside them, which stops no other run.
#[test]
fn shares_are_written_where_a_run_got_no_further() {
    let (root, path, open) = six();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(open().unwrap_err().kind(), "file_not_found");
    let (field, shape) = (field(), "2x2x2".parse::<Shape>().unwrap());
    let dealer = TrustedDealer::new(&field, 2).unwrap();
    let create = || {
        let triples = deal(&dealer, shape, 3).remove(0);
        TripleStore::create(root.path(), &field, (0, 2), shape, &dealer.keys()[0], triples)
    };
    create().unwrap();
    assert_eq!(open().unwrap().left(), 3);
    assert_eq!(create().unwrap_err().kind(), "file_exists");
}

/// The first lines of a file of the format before digests.
#[test]
fn a_store_of_the_former_format_says_what_it_is() {
    let (_root, path, open) = six();
    let mut former =
        b"{\"format\": \"synchromesh triples 1\", \"prime\": \"340282366920938463463374607431759953921\", \"shape\": \
        \"2x2x2\", \"party\": 0, \"parties\": 2, \"count\":          6, \"words\": 2, \"offset\":  192}"
            .to_vec();
    former.resize(191, b' ');
    former.push(b'\n');
    former.resize(192 + 6 * 12 * 2 * 16, 0);
    std::fs::write(&path, former).unwrap();
    let error = open().unwrap_err();
    assert!(error.kind() == "format" && error.to_string().contains("former format"), "{error}");
}

/// No command writes over what a party cannot make again: it is known by its first bytes.
#[test]
fn files_of_shares_and_identities_are_told_by_their_first_bytes() {
    let (root, store, _) = six();
    let files = Preprocessing::new(root.path(), &field(), 0, 2).unwrap();
    let (shape, dealer) = ("2x2x2".parse().unwrap(), TrustedDealer::new(&field(), 2).unwrap());
    files.write_key(&dealer.keys()[0]).unwrap();
    let triples = files.write_triples(&dealer.keys()[0], shape, deal(&dealer, shape, 1).remove(0)).unwrap();
    let identity = root.path().join("identity");
    Identity::new().unwrap().write(&identity).unwrap();
    let seal = store.with_file_name("triples-2x2x2-P0.bin.seal");
    for (path, what) in [
        (&store, "shares of triples"),
        (&triples, "shares of triples"),
        (&seal, "the seal of shares"),
        (&store.with_extension("journal"), "the record of a key or of shares"),
        (&store.with_extension("mac"), "the record of a key or of shares"),
        (&identity, "a party's identity"),
    ] {
        assert_eq!(file::key_in(&std::fs::read(path).unwrap()), Some(what), "{}", path.display());
    }
}

/// MP-SPDZ's files are as MP-SPDZ writes them; the seals beside them notice what changed since.
#[test]
fn every_flipped_bit_of_the_files_of_mp_spdz_is_refused() {
    let (field, root, shape) = (field(), tempfile::tempdir().unwrap(), "1x1x1".parse::<Shape>().unwrap());
    let dealer = TrustedDealer::new(&field, 2).unwrap();
    let files = Preprocessing::new(root.path(), &field, 0, 2).unwrap();
    let key = &dealer.keys()[0];
    files.write_key(key).unwrap();
    let path = files.write_triples(key, shape, deal(&dealer, shape, 1).remove(0)).unwrap();
    let seal = |path: &Path| PathBuf::from(format!("{}.seal", path.display()));
    let all =
        [files.directory().join("Params-Data"), files.key_path(), seal(&files.key_path()), path.clone(), seal(&path)];
    for file in &all {
        let bytes = std::fs::read(file).unwrap();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(file, damaged).unwrap();
            let read = files.read_key().and_then(|key| files.read_triples(&key, shape));
            let kind = read.err().unwrap_or_else(|| panic!("{} bit {bit}", file.display())).kind();
            assert!(["format", "not_an_element", "other_prime"].contains(&kind), "{kind}");
        }
        std::fs::write(file, bytes).unwrap();
    }
    files.read_key().unwrap();
    // Files that others wrote have no seal, until somebody answers for their key.
    std::fs::remove_file(seal(&files.key_path())).unwrap();
    std::fs::remove_file(seal(&path)).unwrap();
    std::fs::remove_file(files.directory().join("Player-MAC-Keys-p-P0.mac")).unwrap();
    assert_eq!(files.read_key().unwrap_err().kind(), "record_missing");
    let key = files.adopt_key(&[shape]).unwrap();
    assert_eq!(files.read_triples(&key, shape).unwrap().len(), 1);
    assert_eq!(files.adopt_key(&[shape]).unwrap_err().kind(), "file_exists");
}
