//! From a stream's bytes in the file to what they mean.

use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::lexer::{is_space, unhex};

/// What one filter may make of its input.
pub(crate) const MOST_OUTPUT: usize = 24 << 20;

/// How the bytes before compression were arranged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Predictor {
    pub(crate) kind: usize,
    pub(crate) colors: usize,
    pub(crate) bits: usize,
    pub(crate) columns: usize,
}

/// One filter; `None` if it is one for pictures or unknown. What is broken gives what came before the break.
pub(crate) fn decode(name: &str, bytes: &[u8], predictor: Predictor, early: bool) -> Option<Vec<u8>> {
    Some(match name {
        "FlateDecode" | "Fl" => unpredict(inflate(bytes), predictor),
        "LZWDecode" | "LZW" => unpredict(lzw(bytes, early), predictor),
        "ASCIIHexDecode" | "AHx" => unhex(&bytes[..memchr::memchr(b'>', bytes).unwrap_or(bytes.len())]),
        "ASCII85Decode" | "A85" => ascii85(bytes),
        "RunLengthDecode" | "RL" => run_length(bytes),
        "Crypt" => bytes.to_vec(),
        _ => return None,
    })
}

fn inflate(bytes: &[u8]) -> Vec<u8> {
    let made = drain(ZlibDecoder::new(bytes));
    if !made.is_empty() {
        return made;
    }
    // Some writers forget the two bytes of header, others spoil them.
    let raw = drain(DeflateDecoder::new(bytes));
    if raw.is_empty() && bytes.len() > 2 { drain(DeflateDecoder::new(&bytes[2..])) } else { raw }
}

/// Everything up to the end, the limit or the first error.
fn drain(mut from: impl Read) -> Vec<u8> {
    let mut made = Vec::new();
    let mut buffer = vec![0; 32 << 10];
    while made.len() < MOST_OUTPUT {
        match from.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(got) => made.extend_from_slice(&buffer[..got.min(MOST_OUTPUT - made.len())]),
        }
    }
    made
}

fn lzw(bytes: &[u8], early: bool) -> Vec<u8> {
    const CLEAR: usize = 256;
    const STOP: usize = 257;
    // Each entry is a piece of the output that was made before.
    let mut table: Vec<(usize, usize)> = Vec::with_capacity(4_096);
    let mut made: Vec<u8> = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    let (mut held, mut bits) = (0_u32, 0_u32);
    let mut input = bytes.iter();
    loop {
        let known = CLEAR + 2 + table.len() + usize::from(early);
        let width = match known {
            0..512 => 9,
            512..1_024 => 10,
            1_024..2_048 => 11,
            _ => 12,
        };
        while bits < width {
            let Some(byte) = input.next() else { return made };
            held = held << 8 | u32::from(*byte);
            bits += 8;
        }
        bits -= width;
        let code = (held >> bits & ((1 << width) - 1)) as usize;
        if code == STOP || made.len() >= MOST_OUTPUT {
            return made;
        }
        if code == CLEAR {
            table.clear();
            last = None;
            continue;
        }
        let start = made.len();
        if code < CLEAR {
            made.push(code as u8);
        } else if let Some((from, length)) = table.get(code - CLEAR - 2).copied() {
            for at in from..from + length {
                made.push(made[at]);
            }
        } else if let Some((from, length)) = last.filter(|_| code - CLEAR - 2 == table.len()) {
            for at in from..from + length {
                made.push(made[at]);
            }
            made.push(made[start]);
        } else {
            return made;
        }
        if let Some((from, length)) = last.filter(|_| table.len() < 4_096 - CLEAR - 2) {
            // What was last, and the first byte of this, which follows it in the output.
            table.push((from, length + 1));
        }
        last = Some((start, made.len() - start));
    }
}

fn ascii85(bytes: &[u8]) -> Vec<u8> {
    let mut made = Vec::new();
    let mut group = [0_u32; 5];
    let mut held = 0;
    for byte in bytes.strip_prefix(b"<~").unwrap_or(bytes) {
        match byte {
            b'!'..=b'u' => {
                group[held] = u32::from(byte - b'!');
                held += 1;
                if held == 5 {
                    made.extend_from_slice(&word85(group));
                    held = 0;
                }
            }
            b'z' if held == 0 => made.extend_from_slice(&[0; 4]),
            byte if is_space(*byte) => {}
            _ => break,
        }
        if made.len() >= MOST_OUTPUT {
            return made;
        }
    }
    if held > 1 {
        group[held..].fill(84);
        made.extend_from_slice(&word85(group)[..held - 1]);
    }
    made
}

fn word85(group: [u32; 5]) -> [u8; 4] {
    group.iter().fold(0_u32, |word, digit| word.wrapping_mul(85).wrapping_add(*digit)).to_be_bytes()
}

fn run_length(bytes: &[u8]) -> Vec<u8> {
    let mut made = Vec::new();
    let mut rest = bytes;
    while let [length, tail @ ..] = rest {
        match *length {
            128 => break,
            length @ 0..128 => {
                let (piece, tail) = tail.split_at(tail.len().min(usize::from(length) + 1));
                made.extend_from_slice(piece);
                rest = tail;
            }
            length => {
                let [byte, tail @ ..] = tail else { break };
                made.extend(std::iter::repeat_n(*byte, 257 - usize::from(length)));
                rest = tail;
            }
        }
        if made.len() >= MOST_OUTPUT {
            break;
        }
    }
    made
}

fn unpredict(mut bytes: Vec<u8>, predictor: Predictor) -> Vec<u8> {
    let Predictor { kind, colors, bits, columns } = predictor;
    let row_bits = colors.saturating_mul(bits).saturating_mul(columns);
    if kind < 2 || row_bits == 0 || row_bits > MOST_OUTPUT {
        return bytes;
    }
    let row = row_bits.div_ceil(8);
    let pixel = (colors * bits).div_ceil(8);
    if kind == 2 {
        if bits == 8 {
            for line in bytes.chunks_mut(row) {
                for at in pixel..line.len() {
                    line[at] = line[at].wrapping_add(line[at - pixel]);
                }
            }
        }
        return bytes;
    }
    let mut made = Vec::with_capacity(bytes.len());
    let mut above = vec![0; row];
    let mut current = vec![0; row];
    for line in bytes.chunks(row + 1) {
        let [kind, line @ ..] = line else { break };
        current[..line.len()].copy_from_slice(line);
        current[line.len()..].fill(0);
        for at in 0..row {
            let left = if at >= pixel { current[at - pixel] } else { 0 };
            let corner = if at >= pixel { above[at - pixel] } else { 0 };
            let add = match kind {
                1 => left,
                2 => above[at],
                3 => u16::midpoint(u16::from(left), u16::from(above[at])) as u8,
                4 => paeth(left, above[at], corner),
                _ => 0,
            };
            current[at] = current[at].wrapping_add(add);
        }
        made.extend_from_slice(&current[..line.len()]);
        std::mem::swap(&mut above, &mut current);
    }
    made
}

/// Whichever of the three is nearest to left + above - corner.
fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let goal = i16::from(left) + i16::from(above) - i16::from(corner);
    let far = |byte: u8| (goal - i16::from(byte)).abs();
    if far(left) <= far(above) && far(left) <= far(corner) {
        left
    } else if far(above) <= far(corner) {
        above
    } else {
        corner
    }
}
