//! A stream in bounded memory: its beginning, its end and its length.

use haft_tool::Capture;

/// Keeps the first and the last bytes of a stream of any length.
#[derive(Debug)]
pub(super) struct HeadTailBuffer {
    head: Vec<u8>,
    /// A ring once it is full.
    tail: Vec<u8>,
    /// Index of the oldest byte of a full tail.
    oldest: usize,
    head_capacity: usize,
    tail_capacity: usize,
    total: u64,
}

impl HeadTailBuffer {
    /// Keeps at most `bytes`, half from the beginning and half from the end.
    pub(super) fn new(bytes: usize) -> Self {
        let tail_capacity = bytes / 2;
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            oldest: 0,
            head_capacity: bytes - tail_capacity,
            tail_capacity,
            total: 0,
        }
    }

    /// Appends the next bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_capacity - self.head.len()));
        self.head.extend_from_slice(first);
        if rest.len() >= self.tail_capacity {
            self.tail.clear();
            self.tail.extend_from_slice(&rest[rest.len() - self.tail_capacity..]);
            self.oldest = 0;
            return;
        }
        let (fits, rest) = rest.split_at(rest.len().min(self.tail_capacity - self.tail.len()));
        self.tail.extend_from_slice(fits);
        let (before_wrap, after_wrap) = rest.split_at(rest.len().min(self.tail_capacity - self.oldest));
        self.tail[self.oldest..self.oldest + before_wrap.len()].copy_from_slice(before_wrap);
        self.tail[..after_wrap.len()].copy_from_slice(after_wrap);
        self.oldest = (self.oldest + rest.len()) % self.tail_capacity;
    }

    /// The kept bytes.
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
    fn kept_bytes_do_not_depend_on_read_sizes() {
        let stream: Vec<u8> = (0..=255).collect();
        for keep in 0..40 {
            for length in [0, 1, 7, 19, 20, 21, 38, 39, 40, 41, 97, 256] {
                for read in 1..45 {
                    let mut buffer = HeadTailBuffer::new(keep);
                    stream[..length].chunks(read).for_each(|chunk| buffer.push(chunk));
                    let capture = buffer.finish();
                    let case = format!("keep {keep}, length {length}, read {read}");
                    assert_eq!(capture.total, length as u64);
                    if length <= keep {
                        assert_eq!(capture.head, stream[..length], "{case}");
                        assert!(capture.tail.is_empty());
                    } else {
                        let half = keep / 2;
                        assert_eq!(capture.head, stream[..keep - half], "{case}");
                        assert_eq!(capture.tail, stream[length - half..length], "{case}");
                    }
                }
            }
        }
    }
}
