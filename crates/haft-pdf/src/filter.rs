//! Decoding of streams. Broken input gives what comes before the error.

use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::lexer::{decode_hex, is_space};

/// Output of one filter; the rest is dropped.
pub(crate) const MAX_OUTPUT_BYTES: usize = 24 << 20;
const READ_BUFFER_BYTES: usize = 32 << 10;

/// The parameters of a filter that are not defaults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilterParams {
    /// How bytes were arranged before compression: 1 not at all, 2 as in TIFF, from 10 on as in PNG.
    pub(crate) predictor: usize,
    pub(crate) colors: usize,
    pub(crate) bits_per_component: usize,
    pub(crate) columns: usize,
    /// Whether LZW codes grow one code early.
    pub(crate) early_change: bool,
}

/// Applies the filter `name`; `None` if it is unknown or for images.
pub(crate) fn decode(name: &str, bytes: &[u8], params: FilterParams) -> Option<Vec<u8>> {
    Some(match name {
        "FlateDecode" | "Fl" => undo_predictor(inflate(bytes), params),
        "LZWDecode" | "LZW" => undo_predictor(lzw(bytes, params.early_change), params),
        "ASCIIHexDecode" | "AHx" => decode_hex(&bytes[..memchr::memchr(b'>', bytes).unwrap_or(bytes.len())]),
        "ASCII85Decode" | "A85" => ascii85(bytes),
        "RunLengthDecode" | "RL" => run_length(bytes),
        "Crypt" => bytes.to_vec(),
        _ => return None,
    })
}

fn inflate(bytes: &[u8]) -> Vec<u8> {
    const ZLIB_HEADER_BYTES: usize = 2;
    let output = read_bounded(ZlibDecoder::new(bytes));
    if !output.is_empty() {
        return output;
    }
    // Some writers leave the header out, others write a wrong one.
    let output = read_bounded(DeflateDecoder::new(bytes));
    match bytes.get(ZLIB_HEADER_BYTES..) {
        Some(body) if output.is_empty() => read_bounded(DeflateDecoder::new(body)),
        _ => output,
    }
}

/// Reads up to the end, the limit or the first error.
fn read_bounded(mut reader: impl Read) -> Vec<u8> {
    let mut output = Vec::new();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    while output.len() < MAX_OUTPUT_BYTES {
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => output.extend_from_slice(&buffer[..read.min(MAX_OUTPUT_BYTES - output.len())]),
        }
    }
    output
}

fn lzw(bytes: &[u8], early_change: bool) -> Vec<u8> {
    const CLEAR_CODE: usize = 256;
    const END_CODE: usize = 257;
    const FIRST_TABLE_CODE: usize = 258;
    const MAX_CODES: usize = 4_096;
    // Each entry is a range of the output.
    let mut table: Vec<(usize, usize)> = Vec::with_capacity(MAX_CODES);
    let mut output: Vec<u8> = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    let (mut buffer, mut buffered_bits) = (0_u32, 0_u32);
    let mut input = bytes.iter();
    loop {
        let next_code = FIRST_TABLE_CODE + table.len() + usize::from(early_change);
        let width = match next_code {
            0..512 => 9,
            512..1_024 => 10,
            1_024..2_048 => 11,
            _ => 12,
        };
        while buffered_bits < width {
            let Some(byte) = input.next() else { return output };
            buffer = buffer << 8 | u32::from(*byte);
            buffered_bits += 8;
        }
        buffered_bits -= width;
        let code = (buffer >> buffered_bits & ((1 << width) - 1)) as usize;
        if code == END_CODE || output.len() >= MAX_OUTPUT_BYTES {
            return output;
        }
        if code == CLEAR_CODE {
            table.clear();
            last = None;
            continue;
        }
        let start = output.len();
        if code < CLEAR_CODE {
            output.push(code as u8);
        } else if let Some((from, length)) = table.get(code - FIRST_TABLE_CODE).copied() {
            output.extend_from_within(from..from + length);
        } else if let Some((from, length)) = last.filter(|_| code - FIRST_TABLE_CODE == table.len()) {
            output.extend_from_within(from..from + length);
            output.push(output[start]);
        } else {
            return output;
        }
        if let Some((from, length)) = last.filter(|_| FIRST_TABLE_CODE + table.len() < MAX_CODES) {
            // The last sequence and the first byte of this one, which follows it in the output.
            table.push((from, length + 1));
        }
        last = Some((start, output.len() - start));
    }
}

fn ascii85(bytes: &[u8]) -> Vec<u8> {
    const MAX_DIGIT: u32 = 84;
    let mut output = Vec::new();
    let mut group = [0_u32; 5];
    let mut digits = 0;
    for byte in bytes.strip_prefix(b"<~").unwrap_or(bytes) {
        match byte {
            b'!'..=b'u' => {
                group[digits] = u32::from(byte - b'!');
                digits += 1;
                if digits == group.len() {
                    output.extend_from_slice(&ascii85_group(group));
                    digits = 0;
                }
            }
            b'z' if digits == 0 => output.extend_from_slice(&[0; 4]),
            byte if is_space(*byte) => {}
            _ => break,
        }
        if output.len() >= MAX_OUTPUT_BYTES {
            return output;
        }
    }
    if digits > 1 {
        group[digits..].fill(MAX_DIGIT);
        output.extend_from_slice(&ascii85_group(group)[..digits - 1]);
    }
    output
}

fn ascii85_group(group: [u32; 5]) -> [u8; 4] {
    group.iter().fold(0_u32, |word, digit| word.wrapping_mul(85).wrapping_add(*digit)).to_be_bytes()
}

fn run_length(bytes: &[u8]) -> Vec<u8> {
    const END_CODE: u8 = 128;
    let mut output = Vec::new();
    let mut rest = bytes;
    while let [length, tail @ ..] = rest {
        match *length {
            END_CODE => break,
            length @ 0..END_CODE => {
                let (literal, tail) = tail.split_at(tail.len().min(usize::from(length) + 1));
                output.extend_from_slice(literal);
                rest = tail;
            }
            length => {
                let [byte, tail @ ..] = tail else { break };
                output.extend(std::iter::repeat_n(*byte, 257 - usize::from(length)));
                rest = tail;
            }
        }
        if output.len() >= MAX_OUTPUT_BYTES {
            break;
        }
    }
    output
}

fn undo_predictor(mut bytes: Vec<u8>, params: FilterParams) -> Vec<u8> {
    const TIFF_CODE: usize = 2;
    let FilterParams { predictor, colors, bits_per_component, columns, .. } = params;
    let row_bits = colors.saturating_mul(bits_per_component).saturating_mul(columns);
    if predictor < TIFF_CODE || row_bits == 0 || row_bits > MAX_OUTPUT_BYTES {
        return bytes;
    }
    let row_bytes = row_bits.div_ceil(8);
    let pixel_bytes = (colors * bits_per_component).div_ceil(8);
    if predictor == TIFF_CODE {
        if bits_per_component == 8 {
            for row in bytes.chunks_mut(row_bytes) {
                for at in pixel_bytes..row.len() {
                    row[at] = row[at].wrapping_add(row[at - pixel_bytes]);
                }
            }
        }
        return bytes;
    }
    let mut output: Vec<u8> = Vec::with_capacity(bytes.len());
    for encoded in bytes.chunks(row_bytes + 1) {
        let [kind, encoded @ ..] = encoded else { break };
        let start = output.len();
        for (at, byte) in encoded.iter().enumerate() {
            // Bytes before the row and above the first one count as zero.
            let byte_at =
                |back: usize, is_inside: bool| if is_inside { output[start + at - back] } else { 0 };
            let (has_left, has_above) = (at >= pixel_bytes, start > 0);
            let left = byte_at(pixel_bytes, has_left);
            let above = byte_at(row_bytes, has_above);
            let corner = byte_at(row_bytes + pixel_bytes, has_left && has_above);
            let predicted = match kind {
                1 => left,
                2 => above,
                3 => u16::midpoint(u16::from(left), u16::from(above)) as u8,
                4 => paeth(left, above, corner),
                _ => 0,
            };
            output.push(byte.wrapping_add(predicted));
        }
    }
    output
}

/// Returns which of the three is nearest to left + above - corner.
fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let target = i16::from(left) + i16::from(above) - i16::from(corner);
    let distance = |byte: u8| (target - i16::from(byte)).abs();
    if distance(left) <= distance(above) && distance(left) <= distance(corner) {
        left
    } else if distance(above) <= distance(corner) {
        above
    } else {
        corner
    }
}
