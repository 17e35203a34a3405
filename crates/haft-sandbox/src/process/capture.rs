//! A stream in bounded memory: its beginning, its end and its true length.

use haft_tool::Capture;

/// Takes a stream of any length and keeps the first and the last bytes of it.
#[derive(Debug)]
pub(super) struct Keep {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Where the oldest byte of a full tail is.
    oldest: usize,
    head_room: usize,
    tail_room: usize,
    total: u64,
}

impl Keep {
    /// Keeps at most `bytes`, half from the beginning and half from the end.
    pub(super) fn new(bytes: usize) -> Self {
        let tail_room = bytes / 2;
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            oldest: 0,
            head_room: bytes - tail_room,
            tail_room,
            total: 0,
        }
    }

    /// Takes the next bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_room - self.head.len()));
        self.head.extend_from_slice(first);
        if rest.len() >= self.tail_room {
            self.tail.clear();
            self.tail.extend_from_slice(&rest[rest.len() - self.tail_room..]);
            self.oldest = 0;
            return;
        }
        let (fits, rest) = rest.split_at(rest.len().min(self.tail_room - self.tail.len()));
        self.tail.extend_from_slice(fits);
        let (before_wrap, after_wrap) = rest.split_at(rest.len().min(self.tail_room - self.oldest));
        self.tail[self.oldest..self.oldest + before_wrap.len()].copy_from_slice(before_wrap);
        self.tail[..after_wrap.len()].copy_from_slice(after_wrap);
        self.oldest = (self.oldest + rest.len()) % self.tail_room;
    }

    /// What was kept.
    pub(super) fn finish(mut self) -> Capture {
        self.tail.rotate_left(self.oldest);
        if (self.head.len() + self.tail.len()) as u64 == self.total {
            self.head.append(&mut self.tail);
        }
        Capture { head: self.head, tail: self.tail, total: self.total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_cutting_a_stream_into_reads_keeps_the_same_bytes() {
        let stream: Vec<u8> = (0..=255).collect();
        for keep in 0..40 {
            for length in [0, 1, 7, 19, 20, 21, 38, 39, 40, 41, 97, 256] {
                for read in 1..45 {
                    let mut kept = Keep::new(keep);
                    stream[..length].chunks(read).for_each(|chunk| kept.push(chunk));
                    let capture = kept.finish();
                    assert_eq!(capture.total, length as u64);
                    if length <= keep {
                        assert_eq!(
                            capture.head,
                            stream[..length],
                            "keep {keep}, length {length}, read {read}"
                        );
                        assert!(capture.tail.is_empty());
                    } else {
                        let half = keep / 2;
                        assert_eq!(
                            capture.head,
                            stream[..keep - half],
                            "keep {keep}, length {length}, read {read}"
                        );
                        assert_eq!(capture.tail, stream[length - half..length], "{keep}, {length}, {read}");
                    }
                }
            }
        }
    }
}
