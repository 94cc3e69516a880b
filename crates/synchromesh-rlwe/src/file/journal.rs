//! Append-only files: a line for each record, with a checksum of it and of all lines before, synced before anything depends on it.
//!
//! A line is the record, a space, and the first 16 hexadecimal digits of a BLAKE3 hash of the previous line's digits and
//! the record. The first line is the file's title, which says whose it is, so that no file can stand for another and no line
//! can be altered, moved or left out but at the end.
//!
//! What a crash or a full disk leaves of the last line is a record too, one of which only the beginning is known
//! ([`Record::Cut`]): it is ended, when the file is opened, by the byte 0x18 and digits of its own, so that it counts for
//! ever and the next record begins a new line.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::read::regular_size;
use super::{Access, Existing, FileError};

/// Digits after a record.
const DIGITS: usize = 16;

/// Ends a line that was cut short.
const CUT: u8 = 0x18;

/// Largest journal, in bytes: the most that is read.
const LARGEST: u64 = 1 << 36;

/// What one line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// What was written.
    Whole(String),
    /// Something was begun to be written, and whoever wrote it did not get so far as to know that it was.
    Cut,
}

/// How long a lock is asked for that is to be had now.
const MOMENT: Duration = Duration::from_millis(500);

/// What is done while another process writes to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// An error, after half a second: a process that this one starts has the locks of this one until it runs its program.
    Now,
    /// It is waited for.
    Wait,
}

/// An append-only file that this process has to itself.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    link: [u8; DIGITS],
    /// Whether the last append failed, so that nobody knows how the file ends.
    torn: bool,
}

/// A file's lines.
struct Parsed {
    records: Vec<Record>,
    link: [u8; DIGITS],
    /// What is missing at the end.
    ending: Vec<u8>,
}

impl Journal {
    /// Writes a journal without records.
    ///
    /// # Errors
    /// As [`super::write`].
    pub fn create(path: &Path, title: &str, access: Access, existing: Existing) -> Result<(), FileError> {
        super::write(path, &Self::blank(title), access, existing)
    }

    /// What a journal without records holds: for a file that is written with others.
    #[must_use]
    pub fn blank(title: &str) -> Vec<u8> {
        Self::begun(title, &[])
    }

    /// What a journal with these records holds, each a line without control characters.
    #[must_use]
    pub fn begun(title: &str, records: &[String]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let first = push(&mut bytes, &[b'0'; DIGITS], &head(title));
        records.iter().fold(first, |link, record| push(&mut bytes, &link, record));
        bytes
    }

    /// Opens a journal of this title, with its records; a line that was cut short is ended, for good.
    ///
    /// # Errors
    /// [`FileError::NotFound`]; [`FileError::Busy`] if another has it open and is not waited for; [`FileError::Damaged`] for
    /// another title or a line that is not what was written; [`FileError::System`].
    pub fn open(path: &Path, title: &str, lock: Lock) -> Result<(Self, Vec<Record>), FileError> {
        let fail = |doing| move |e: io::Error| FileError::system(path, doing, &e);
        regular_size(path, &fs::metadata(path).map_err(fail("open"))?, LARGEST)?;
        let mut file = OpenOptions::new().append(true).read(true).open(path).map_err(fail("open"))?;
        match lock {
            Lock::Wait => file.lock().map_err(fail("lock"))?,
            Lock::Now => {
                let begin = Instant::now();
                while let Err(refused) = file.try_lock() {
                    match refused {
                        TryLockError::WouldBlock if begin.elapsed() < MOMENT => thread::sleep(MOMENT / 50),
                        TryLockError::WouldBlock => return Err(FileError::Busy { path: path.to_owned() }),
                        TryLockError::Error(e) => return Err(fail("lock")(e)),
                    }
                }
            }
        }
        let Parsed { records, link, ending } = read_from(path, &mut file, title)?;
        if !ending.is_empty() {
            file.write_all(&ending).and_then(|()| file.sync_data()).map_err(fail("end its last line"))?;
        }
        Ok((Self { path: path.to_owned(), file, link, torn: false }, records))
    }

    /// The records of a journal, which is left as it is.
    ///
    /// # Errors
    /// As [`open`](Self::open), but that a journal in use is read all the same.
    pub fn read(path: &Path, title: &str) -> Result<Vec<Record>, FileError> {
        let fail = |doing| move |e: io::Error| FileError::system(path, doing, &e);
        regular_size(path, &fs::metadata(path).map_err(fail("open"))?, LARGEST)?;
        let mut file = File::open(path).map_err(fail("open"))?;
        Ok(read_from(path, &mut file, title)?.records)
    }

    /// Adds records, of one line each, and syncs them.
    ///
    /// # Errors
    /// [`FileError::System`]. They may be in the file then, or a part of them, and nothing more can be added before it is opened
    /// anew.
    pub fn append<R: AsRef<str>>(&mut self, records: &[R]) -> Result<(), FileError> {
        let fail = |reason: String| FileError::System { path: self.path.clone(), doing: "append", reason };
        if self.torn {
            return Err(fail("an earlier record could not be written; open it again".to_owned()));
        }
        let mut lines = Vec::new();
        let mut link = self.link;
        for record in records {
            let record = record.as_ref();
            if record.chars().any(char::is_control) {
                return Err(fail(format!("a record of {} bytes is not one line of text", record.len())));
            }
            link = push(&mut lines, &link, record);
        }
        self.torn = true;
        self.file.write_all(&lines).and_then(|()| self.file.sync_data()).map_err(|e| fail(e.to_string()))?;
        (self.link, self.torn) = (link, false);
        Ok(())
    }
}

fn head(title: &str) -> String {
    format!("synchromesh journal 1, {title}")
}

/// Appends a line, and returns its digits.
fn push(bytes: &mut Vec<u8>, link: &[u8; DIGITS], record: &str) -> [u8; DIGITS] {
    let next = digits(link, b' ', record.as_bytes());
    bytes.extend_from_slice(record.as_bytes());
    bytes.push(b' ');
    bytes.extend_from_slice(&next);
    bytes.push(b'\n');
    next
}

/// The digits that end a line by this byte.
fn digits(link: &[u8; DIGITS], end: u8, record: &[u8]) -> [u8; DIGITS] {
    let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 journal");
    hasher.update(link).update(&[end]).update(record);
    let hex = hasher.finalize().to_hex();
    std::array::from_fn(|i| hex.as_bytes()[i])
}

/// What a whole line says, and its digits.
fn line(bytes: &[u8], link: &[u8; DIGITS]) -> Option<(Record, [u8; DIGITS])> {
    let (rest, found) = bytes.split_at_checked(bytes.len().checked_sub(DIGITS)?)?;
    let (&end, record) = rest.split_last()?;
    let expected = digits(link, end, record);
    if found != expected {
        return None;
    }
    match end {
        CUT => Some((Record::Cut, expected)),
        b' ' => Some((Record::Whole(String::from_utf8(record.to_vec()).ok()?), expected)),
        _ => None,
    }
}

fn read_from(path: &Path, file: &mut File, title: &str) -> Result<Parsed, FileError> {
    let mut bytes = Vec::new();
    let read = Read::by_ref(file).take(LARGEST).read_to_end(&mut bytes);
    read.map_err(|e| FileError::system(path, "read", &e))?;
    parse(&bytes, title).map_err(|what| FileError::Damaged { path: path.to_owned(), what })
}

fn parse(bytes: &[u8], title: &str) -> Result<Parsed, String> {
    let (mut link, mut records, mut number) = ([b'0'; DIGITS], Vec::new(), 0usize);
    let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
    let mut ending = Vec::new();
    while let Some(bytes) = lines.next() {
        number += 1;
        let last = lines.peek().is_none();
        if last && bytes.is_empty() {
            break;
        }
        let read = line(bytes, &link);
        let (record, next) = match read {
            Some(read) => read,
            None if last && number > 1 => {
                // A line of which the end alone is wrong was not cut.
                if line(&bytes[..bytes.len() - 1], &link).is_some() {
                    return Err(format!("line {number} does not end as it was written"));
                }
                let digits = digits(&link, CUT, bytes);
                ending.push(CUT);
                ending.extend_from_slice(&digits);
                (Record::Cut, digits)
            }
            None => return Err(format!("line {number} is not what was written")),
        };
        if last {
            ending.push(b'\n');
        }
        link = next;
        match record {
            Record::Whole(text) if number == 1 => {
                if text != head(title) {
                    return Err(format!("it is another one: \"{text}\" where \"{}\" belongs", head(title)));
                }
            }
            record => records.push(record),
        }
    }
    if link == [b'0'; DIGITS] {
        return Err("it is empty".to_owned());
    }
    Ok(Parsed { records, link, ending })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: &str = "a test";

    fn whole(text: &str) -> Record {
        Record::Whole(text.to_owned())
    }

    fn sample(records: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal");
        Journal::create(&path, TITLE, Access::Secret, Existing::Keep).unwrap();
        let (mut journal, none) = Journal::open(&path, TITLE, Lock::Now).unwrap();
        assert!(none.is_empty());
        journal.append(records).unwrap();
        (root, path)
    }

    #[test]
    fn a_cut_at_any_place_leaves_a_record_that_counts_for_ever() {
        let (_root, path) = sample(&["one", "two"]);
        let bytes = fs::read(&path).unwrap();
        let lines: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i] == b'\n').map(|i| i + 1).collect();
        for length in lines[0]..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            let complete = lines.iter().filter(|&&line| line <= length).count() - 1;
            let begun = complete + usize::from(!lines.contains(&length));
            // Waits: a process that another test starts has our locks until it runs its program.
            let (mut journal, records) = Journal::open(&path, TITLE, Lock::Wait).unwrap();
            assert_eq!(records.len(), begun, "{length}");
            journal.append(&["next"]).unwrap();
            drop(journal);
            // However often it is opened, and even if what ends the cut line was cut itself.
            let ended = fs::read(&path).unwrap();
            for again in length..=ended.len() {
                fs::write(&path, &ended[..again]).unwrap();
                let (_, twice) = Journal::open(&path, TITLE, Lock::Wait).unwrap();
                assert_eq!(twice[..records.len()], records[..], "{length} {again}");
                assert!(twice.len() <= records.len() + 1);
            }
            assert_eq!(Journal::read(&path, TITLE).unwrap().last(), Some(&whole("next")));
        }
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let (_root, path) = sample(&["one", "two"]);
        let bytes = fs::read(&path).unwrap();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &damaged).unwrap();
            assert_eq!(Journal::open(&path, TITLE, Lock::Now).unwrap_err().kind(), "file_damaged", "bit {bit}");
            assert_eq!(fs::read(&path).unwrap(), damaged);
        }
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for damaged in
            [[lines[0], lines[2]].concat(), [lines[0], lines[1], lines[1]].concat(), vec![], bytes[..9].to_vec()]
        {
            fs::write(&path, &damaged).unwrap();
            assert_eq!(Journal::read(&path, TITLE).unwrap_err().kind(), "file_damaged");
        }
    }

    #[test]
    fn one_has_it_at_a_time_and_others_titles_are_refused() {
        let (_root, path) = sample(&["one"]);
        let (mut journal, records) = Journal::open(&path, TITLE, Lock::Now).unwrap();
        assert_eq!(records, [whole("one")]);
        assert_eq!(Journal::open(&path, TITLE, Lock::Now).unwrap_err().kind(), "file_busy");
        // As long as a process that was just started may have it.
        let elsewhere = File::open(&path).unwrap();
        drop(journal);
        elsewhere.lock().unwrap();
        let release = thread::spawn(move || {
            thread::sleep(MOMENT / 10);
            drop(elsewhere);
        });
        (journal, _) = Journal::open(&path, TITLE, Lock::Now).unwrap();
        release.join().unwrap();
        assert_eq!(Journal::read(&path, "another").unwrap_err().kind(), "file_damaged");
        assert_eq!(journal.append(&["a\nb"]).unwrap_err().kind(), "file_system");
        journal.append(&["two"]).unwrap();
        assert_eq!(Journal::read(&path, TITLE).unwrap(), [whole("one"), whole("two")]);
        fs::remove_file(&path).unwrap();
        assert_eq!(Journal::open(&path, TITLE, Lock::Wait).unwrap_err().kind(), "file_not_found");
    }
}
