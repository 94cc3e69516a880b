//! What happens to files that are there, paths that are none, sets that are cut short, and temporaries of the dead.

use super::*;
use crate::wire::ObjectType;
use std::fs::File;

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn files_are_replaced_whole_or_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    write(&path, b"one", Access::Public, Existing::Keep).unwrap();
    let refused = write(&path, b"two", Access::Public, Existing::Keep).unwrap_err();
    assert_eq!(refused, FileError::Exists { path: path.clone() });
    assert_eq!(read(&path, 3).unwrap(), b"one");
    write(&path, b"three", Access::Public, Existing::Replace).unwrap();
    assert_eq!(read(&path, 5).unwrap(), b"three");
    assert_eq!(names(dir.path()), ["key"], "no temporary file may stay");
}

#[test]
fn keys_are_replaced_by_force_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let container = |kind: ObjectType| [&crate::wire::MAGIC[..], &[1, 0, kind as u8, 0], &[0; 90]].concat();
    let (secret, ciphertext) = (container(ObjectType::SecretKey), container(ObjectType::Ciphertext));
    let kinds = [
        ObjectType::SecretKey,
        ObjectType::PublicKey,
        ObjectType::SwitchKeySet,
        ObjectType::EnvelopeKey,
        ObjectType::PartyKey,
        ObjectType::PartyIdentity,
        ObjectType::ShareSeal,
        ObjectType::KeyShare,
    ];
    let foreign = [&b"-----BEGIN PRIVATE KEY-----\n"[..], b"-----BEGIN OPENSSH PRIVATE KEY-----\n"].map(<[u8]>::to_vec);
    for key in kinds.map(container).iter().chain(&foreign) {
        fs::write(&path, key).unwrap();
        for existing in [Existing::Replace, Existing::Keep] {
            let refused = write(&path, b"new", Access::Public, existing).unwrap_err();
            assert_eq!(refused.kind(), if existing == Existing::Keep { "file_exists" } else { "file_is_a_key" });
            assert_eq!(permit(&path, existing).unwrap_err(), refused);
        }
        assert_eq!(fs::read(&path).unwrap(), *key);
        write(&path, b"new", Access::Public, Existing::Force).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
    for other in [&ciphertext[..], &secret[..10], b"", b"synchromesh"] {
        fs::write(&path, other).unwrap();
        write(&path, b"new", Access::Public, Existing::Replace).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_never_replaced() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let dir = tempfile::tempdir().unwrap();
    let [pipe, link, gone, key] = ["pipe", "link", "gone", "key"].map(|name| dir.path().join(name));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink(&pipe, &link).unwrap();
    for path in [pipe.as_path(), link.as_path(), dir.path(), Path::new("/dev/null")] {
        for existing in [Existing::Replace, Existing::Force, Existing::Keep] {
            let refused = write(path, b"x", Access::Public, existing).unwrap_err();
            assert_eq!(refused, FileError::NotAFile { path: path.to_owned() });
        }
        assert_eq!(read(path, 9).unwrap_err().kind(), "not_a_file");
    }
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    // A link that leads nowhere is replaced; one that leads to a key is as good as the key.
    symlink(dir.path().join("nowhere"), &gone).unwrap();
    write(&gone, b"x", Access::Public, Existing::Replace).unwrap();
    fs::write(&key, [&crate::wire::MAGIC[..], &[1, 0, 33, 0]].concat()).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&key, &link).unwrap();
    assert_eq!(write(&link, b"x", Access::Public, Existing::Replace).unwrap_err().kind(), "file_is_a_key");
}

#[cfg(unix)]
#[test]
fn the_mode_of_a_file_that_is_replaced_is_kept_unless_a_secret_goes_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret");
    write(&path, b"", Access::Public, Existing::Keep).unwrap();
    assert_ne!(mode(&path) & 0o400, 0);
    for (before, access, after) in [
        (0o640, Access::Public, 0o640),
        (0o666, Access::Public, 0o666),
        (0o600, Access::Public, 0o600),
        (0o644, Access::Secret, 0o600),
        (0o400, Access::Secret, 0o400),
    ] {
        set_mode(&path, before);
        write(&path, b"s", access, Existing::Replace).unwrap();
        assert_eq!(mode(&path), after, "{before:o}");
    }
    let new = dir.path().join("new");
    write(&new, b"s", Access::Secret, Existing::Replace).unwrap();
    assert_eq!(mode(&new), 0o600);
    let private = dir.path().join("a/b");
    create_private_directory(&private).unwrap();
    assert_eq!([mode(&private), mode(&dir.path().join("a"))], [0o700; 2]);
}

#[test]
fn impossible_paths_are_typed_errors_with_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    assert_eq!(read(&path, 9).unwrap_err(), FileError::NotFound { path: path.clone() });
    assert_eq!(read(dir.path(), 9).unwrap_err().kind(), "not_a_file");
    fs::write(&path, b"0123456789").unwrap();
    assert_eq!(read(&path, 9).unwrap_err(), FileError::TooLarge { path: path.clone(), limit: 9 });
    assert_eq!(read(&path, 10).unwrap().len(), 10);
    let lost = write(&dir.path().join("no/such/dir"), b"", Access::Public, Existing::Replace).unwrap_err();
    assert_eq!(lost.kind(), "file_system");
    assert!(lost.to_string().contains("no/such/dir"), "{lost}");
    assert!(write(dir.path(), b"", Access::Public, Existing::Replace).is_err());
    assert!(write(Path::new(""), b"", Access::Public, Existing::Replace).is_err());
    assert_eq!(names(dir.path()), ["file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_larger_than_memory_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse");
    File::create(&path).unwrap().set_len(1 << 42).unwrap();
    let refused = read(&path, u64::MAX).unwrap_err();
    assert!(
        matches!(refused, FileError::Memory { needed, free, .. } if needed == 1 << 42 && free < needed),
        "{refused}"
    );
    let ten = dir.path().join("ten");
    fs::write(&ten, b"0123456789").unwrap();
    let opened = || Opened::open(&ten, 10).unwrap();
    let refused = FileError::Memory { path: ten.clone(), needed: 10, free: 9 };
    assert_eq!(opened().read_into(Some(9)).unwrap_err(), refused);
    assert_eq!(opened().read_into(Some(10)).unwrap().len(), 10);
    // A file of the system that says it is empty, and is not; one that emulators hand through.
    assert_eq!(read(Path::new("/proc/self/status"), 9).unwrap_err().kind(), "file_changed");
}

#[test]
fn temporaries_of_the_dead_are_removed_and_of_the_living_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let alive = Temporary::new(&path, b"in the making", Access::Public).unwrap();
    let [own, foreign] = [".file.dead00.synchromesh-tmp", ".file.tmp"];
    fs::write(dir.path().join(own), b"left").unwrap();
    fs::write(dir.path().join(foreign), b"not ours").unwrap();
    write(&dir.path().join("other"), b"", Access::Public, Existing::Keep).unwrap();
    assert!(!names(dir.path()).contains(&own.to_owned()) && names(dir.path()).contains(&foreign.to_owned()));
    alive.commit(&path, false).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"in the making");
    let long = dir.path().join("\u{1f511}".repeat(60));
    write(&long, b"", Access::Public, Existing::Keep).unwrap();
}

const PARTS: [Part<'static>; 3] = [
    Part { name: "a", bytes: b"first", access: Access::Secret },
    Part { name: "b", bytes: b"second", access: Access::Public },
    Part { name: "c", bytes: b"third", access: Access::Public },
];

fn begin(dir: &Path) -> Result<Set, FileError> {
    Set::begin(dir, &PARTS.map(|part| part.name))
}

/// The record that a writer of [`PARTS`] leaves if it is stopped.
fn record() -> String {
    PARTS.iter().fold("head\n".to_owned(), |text, part| {
        text + &format!("{} {}\n", blake3::hash(part.bytes).to_hex(), part.name)
    })
}

#[test]
fn a_set_is_there_whole_or_a_second_try_makes_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    // Stopped before the record, and after it with none, some or all of the files named.
    fs::write(path(".a.dead00.synchromesh-tmp"), b"fir").unwrap();
    begin(dir.path()).unwrap();
    assert_eq!(names(dir.path()), [""; 0]);
    for named in 0..3 {
        fs::write(path(".a.synchromesh-set"), record()).unwrap();
        PARTS[..named].iter().for_each(|part| fs::write(path(part.name), part.bytes).unwrap());
        begin(dir.path()).unwrap();
        assert_eq!(names(dir.path()), [""; 0], "{named}");
    }
    let paths = begin(dir.path()).unwrap().write(&PARTS).unwrap();
    assert_eq!(paths, PARTS.map(|part| path(part.name)));
    fs::write(path(".a.synchromesh-set"), record()).unwrap();
    assert_eq!(begin(dir.path()).unwrap_err(), FileError::Exists { path: path("a") });
    assert_eq!(names(dir.path()), ["a", "b", "c"], "a whole set stays");
}

#[test]
fn files_made_one_by_one_are_there_once_they_are_finished() {
    let dir = tempfile::tempdir().unwrap();
    let make = |part: &Part<'_>| fs::write(dir.path().join(part.name), part.bytes).unwrap();
    // Given up, and stopped with some or all of them made.
    let begun = begin(dir.path()).unwrap().open().unwrap();
    assert_eq!(begin(dir.path()).unwrap_err().kind(), "file_busy");
    make(&PARTS[0]);
    drop(begun);
    assert_eq!(names(dir.path()), [""; 0]);
    for made in 0..=3 {
        fs::write(dir.path().join(".a.synchromesh-set"), "head\n- a\n- b\n- c\n").unwrap();
        PARTS[..made].iter().for_each(make);
        begin(dir.path()).unwrap();
        assert_eq!(names(dir.path()), [""; 0], "{made}");
    }
    // Of two that begin at once one makes the files, and the other leaves them.
    let (first, second) = (begin(dir.path()).unwrap(), begin(dir.path()).unwrap());
    let begun = first.open().unwrap();
    PARTS.iter().for_each(make);
    begun.finish().unwrap();
    assert_eq!(second.open().unwrap_err(), FileError::Exists { path: dir.path().join("a") });
    assert_eq!(names(dir.path()), ["a", "b", "c"]);
    assert_eq!(begin(dir.path()).unwrap_err(), FileError::Exists { path: dir.path().join("a") });
}

#[test]
fn a_set_clears_nothing_that_it_did_not_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("b"), b"somebody's").unwrap();
    assert_eq!(begin(dir.path()).unwrap_err(), FileError::Exists { path: path("b") });
    fs::write(path(".a.synchromesh-set"), record() + &format!("{} d\n", blake3::hash(b"d").to_hex())).unwrap();
    fs::write(path("a"), PARTS[0].bytes).unwrap();
    fs::write(path("d"), b"d").unwrap();
    assert_eq!(begin(dir.path()).unwrap_err(), FileError::Exists { path: path("b") });
    assert_eq!(names(dir.path()), ["b", "d"]);
}

#[test]
fn two_writers_of_one_set_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (begin(dir.path()).unwrap(), begin(dir.path()).unwrap());
    let other = PARTS.map(|part| Part { bytes: b"other", ..part });
    // While one is at it, the record is locked.
    fs::write(dir.path().join(".a.synchromesh-set"), record()).unwrap();
    let lock = File::open(dir.path().join(".a.synchromesh-set")).unwrap();
    lock.try_lock().unwrap();
    assert_eq!(begin(dir.path()).unwrap_err().kind(), "file_busy");
    assert_eq!(begin(dir.path()).unwrap_err().kind(), "file_busy");
    drop(lock);
    begin(dir.path()).unwrap();
    first.write(&PARTS).unwrap();
    assert_eq!(second.write(&other).unwrap_err(), FileError::Exists { path: dir.path().join("a") });
    for part in PARTS {
        assert_eq!(fs::read(dir.path().join(part.name)).unwrap(), part.bytes);
    }
    assert_eq!(names(dir.path()), ["a", "b", "c"]);
}
