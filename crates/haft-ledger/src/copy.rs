//! Copying a file's bytes without holding them: shared with the original where the file system can, holes kept.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// How many bytes are held at a time where the kernel does not copy by itself.
const PIECE: usize = 256 * 1024;

/// Makes `to`, which is empty, hold the same bytes as `from`.
pub(crate) fn copy(from: &File, to: &File) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let size = from.metadata()?.len();
    let mut at = 0;
    while let Some((start, end)) = next_data(from, at, size) {
        copy_stretch(from, to, start, end)?;
        at = end;
    }
    to.set_len(size)
}

/// The next stretch that holds data, at `at` or behind it.
#[cfg(target_os = "linux")]
fn next_data(file: &File, at: u64, size: u64) -> Option<(u64, u64)> {
    use rustix::fs::SeekFrom;
    use rustix::io::Errno;
    if at >= size {
        return None;
    }
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) => {
            let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(size);
            (start < size).then(|| (start, end.clamp(start + 1, size)))
        }
        Err(Errno::NXIO) => None,
        // A file system that knows nothing of holes.
        Err(_) => Some((at, size)),
    }
}

/// The next stretch that holds data: all that is left.
#[cfg(not(target_os = "linux"))]
fn next_data(_file: &File, at: u64, size: u64) -> Option<(u64, u64)> {
    (at < size).then_some((at, size))
}

fn copy_stretch(from: &File, to: &File, start: u64, end: u64) -> io::Result<()> {
    let mut at = start;
    #[cfg(target_os = "linux")]
    while at < end {
        let (mut read, mut written) = (at, at);
        let most = usize::try_from(end - at).unwrap_or(usize::MAX).min(1 << 30);
        match rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut written), most) {
            Ok(0) | Err(_) => break,
            Ok(copied) => at += copied as u64,
        }
    }
    let mut piece = Vec::new();
    while at < end {
        piece.resize(PIECE.min(usize::try_from(end - at).unwrap_or(PIECE)), 0);
        match from.read_at(&mut piece, at)? {
            // It became shorter meanwhile; its hash will tell.
            0 => break,
            got => {
                to.write_all_at(&piece[..got], at)?;
                at += got as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_copy_has_the_same_bytes_and_no_fewer_holes() {
        for folder in [std::env::temp_dir(), "/dev/shm".into()] {
            let Ok(mut from) = tempfile::tempfile_in(&folder) else { continue };
            from.set_len(8 << 20).unwrap();
            from.write_all_at(b"in the middle", 3 << 20).unwrap();
            from.write_all_at(b"at the end", (8 << 20) - 10).unwrap();
            let mut to = tempfile::tempfile_in(&folder).unwrap();
            copy(&from, &to).unwrap();
            let read = |file: &mut File| {
                let mut bytes = Vec::new();
                file.rewind().unwrap();
                file.read_to_end(&mut bytes).unwrap();
                bytes
            };
            assert!(read(&mut from) == read(&mut to));
            assert!(to.metadata().unwrap().blocks() <= from.metadata().unwrap().blocks() + 64);
        }
    }

    #[test]
    fn an_empty_file_stays_empty() {
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        copy(&from, &to).unwrap();
        assert_eq!(to.metadata().unwrap().len(), 0);
    }
}
