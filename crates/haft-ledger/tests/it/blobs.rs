//! The content-addressed store.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use haft_tool::{Change, ErrorKind, FileContent, Intent, Node, Record};

use crate::fixture::{Fixture, file, finish, hash_of, large};

fn blob_files(fixture: &Fixture) -> Vec<PathBuf> {
    let Ok(folders) = fs::read_dir(fixture.home().join("blobs")) else { return Vec::new() };
    folders
        .flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .collect()
}

/// Stores a content, as that of a removed file; returns its hash.
fn store(fixture: &Fixture, bytes: &[u8]) -> String {
    hash_of(&fixture.write("a", bytes, b"new").changes[0].before).to_owned()
}

#[test]
fn equal_contents_are_stored_once_and_read_back_unchanged() {
    let fixture = Fixture::new();
    for (size, files) in [(0, 0), (1, 0), (32 * 1024, 0), (32 * 1024 + 1, 1), (1_000_000, 2)] {
        let bytes: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let hash = store(&fixture, &bytes);
        assert_eq!(store(&fixture, &bytes), hash);
        assert_eq!(hash, blake3::hash(&bytes).to_hex().to_string());
        assert_eq!(fixture.ledger.blob(&hash).unwrap(), bytes);
        assert_eq!(blob_files(&fixture).len(), files, "{size}");
        let mut read = Vec::new();
        fixture.ledger.open_blob(&hash).unwrap().read_to_end(&mut read).unwrap();
        assert!(read == bytes);
    }
    assert_eq!(fixture.ledger.stats().unwrap().blobs, 5);
}

#[test]
fn content_from_a_reader_is_stored_whole() {
    let fixture = Fixture::new();
    let mut bytes = vec![0; 3 << 20];
    bytes[1 << 20] = 7;
    bytes.extend_from_slice(b"end");
    let (record, change) = (fixture.record(), Change::new("/w/a", file(&bytes), Node::Absent));
    let intent =
        Intent { change: change.clone(), previous: FileContent::Reader(&mut bytes.as_slice()), temp: None };
    record.intend(&mut [intent]).unwrap();
    record.changed(change.clone());
    finish(&record);
    assert!(fixture.ledger.blob(hash_of(&change.before)).unwrap() == bytes);
}

#[test]
fn large_blob_is_a_file_named_by_its_hash() {
    let fixture = Fixture::new();
    let hash = store(&fixture, &large(7));
    assert_eq!(blob_files(&fixture), [fixture.home().join("blobs").join(&hash[..2]).join(&hash[2..])]);
}

#[test]
fn damaged_or_missing_blob_is_a_clear_error() {
    let fixture = Fixture::new();
    let (small, big) = (store(&fixture, b"small"), store(&fixture, &large(7)));
    let file = blob_files(&fixture).remove(0);
    fs::write(&file, large(8)).unwrap();
    fixture.tamper("UPDATE blobs SET bytes = x'00' WHERE bytes IS NOT NULL");
    for hash in [&small, &big] {
        assert!(fixture.ledger.blob(hash).unwrap_err().message.contains("damaged"));
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(fixture.ledger.blob(&big).unwrap_err().kind, ErrorKind::FileNotFound);
    let unknown = "0".repeat(64);
    assert!(fixture.ledger.blob(&unknown).unwrap_err().message.contains("gc removed them"));
}

#[test]
fn large_blob_with_a_damaged_file_is_written_again() {
    let fixture = Fixture::new();
    let hash = store(&fixture, &large(7));
    fs::write(blob_files(&fixture).remove(0), b"torn").unwrap();
    assert_eq!(store(&fixture, &large(7)), hash);
    assert_eq!(fixture.ledger.blob(&hash).unwrap(), large(7));
}

#[test]
fn invalid_hash_is_no_path() {
    let fixture = Fixture::new();
    for hash in ["", "..", "../../../../etc/passwd", "zz", &"G".repeat(64), &"A".repeat(64), &"é".repeat(32)]
    {
        assert!(fixture.ledger.blob(hash).unwrap_err().message.contains("is not the hash"), "{hash:?}");
    }
}
