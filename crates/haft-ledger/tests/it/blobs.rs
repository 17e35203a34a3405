//! The content-addressed store.

use std::fs;
use std::path::PathBuf;

use haft_tool::ErrorKind;

use crate::setting::{large, setting};

fn blob_files(set: &crate::setting::Setting) -> Vec<PathBuf> {
    let Ok(folders) = fs::read_dir(set.home().join("blobs")) else { return Vec::new() };
    folders
        .flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .collect()
}

#[test]
fn equal_bytes_are_kept_once_and_come_back_as_they_were() {
    let set = setting();
    for (size, files) in [(0, 0), (1, 0), (32 * 1024, 0), (32 * 1024 + 1, 1), (1_000_000, 2)] {
        let bytes: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let hash = set.ledger.keep(&bytes).unwrap();
        assert_eq!(set.ledger.keep(&bytes).unwrap(), hash);
        assert_eq!(hash, blake3::hash(&bytes).to_hex().to_string());
        assert_eq!(set.ledger.blob(&hash).unwrap(), bytes);
        assert_eq!(blob_files(&set).len(), files, "{size}");
    }
    assert_eq!(set.ledger.stats().unwrap().blobs, 5);
}

#[test]
fn a_large_blob_lies_under_its_hash() {
    let set = setting();
    let hash = set.ledger.keep(&large(7)).unwrap();
    assert_eq!(blob_files(&set), [set.home().join("blobs").join(&hash[..2]).join(&hash[2..])]);
}

#[test]
fn a_damaged_or_missing_blob_is_an_error_that_says_so() {
    let set = setting();
    let (small, big) = (set.ledger.keep(b"small").unwrap(), set.ledger.keep(&large(7)).unwrap());
    let file = blob_files(&set).remove(0);
    fs::write(&file, large(8)).unwrap();
    set.meddle("UPDATE blobs SET bytes = x'00' WHERE bytes IS NOT NULL");
    for hash in [&small, &big] {
        assert!(set.ledger.blob(hash).unwrap_err().message.contains("damaged"));
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(set.ledger.blob(&big).unwrap_err().kind, ErrorKind::FileNotFound);
    let never = "0".repeat(64);
    assert!(set.ledger.blob(&never).unwrap_err().message.contains("forgotten"));
}

#[test]
fn a_large_blob_that_lost_its_file_is_written_again() {
    let set = setting();
    let hash = set.ledger.keep(&large(7)).unwrap();
    let file = blob_files(&set).remove(0);
    fs::write(&file, b"torn").unwrap();
    assert_eq!(set.ledger.keep(&large(7)).unwrap(), hash);
    assert_eq!(set.ledger.blob(&hash).unwrap(), large(7));
}

#[test]
fn a_hash_that_is_none_leads_nowhere() {
    let set = setting();
    for hash in ["", "..", "../../../../etc/passwd", "zz", &"G".repeat(64), &"A".repeat(64), &"é".repeat(32)]
    {
        assert!(set.ledger.blob(hash).unwrap_err().message.contains("is not the hash"), "{hash:?}");
    }
}
