//! The escapes of `$'…'`.

use std::iter::Peekable;
use std::str::Chars;

/// The bytes that bash makes of the text between the quotes. A NUL ends the text, as in bash.
pub(crate) fn decode(text: &str) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            push(&mut decoded, c);
            continue;
        }
        // The first digit of an octal number is the escape itself, so the escape is looked at before it is consumed.
        if let Some(value) = number(&mut chars, 8, 3) {
            if !push_byte(&mut decoded, value) {
                return decoded;
            }
            continue;
        }
        let Some(escape) = chars.next() else {
            decoded.push(b'\\');
            break;
        };
        match escape {
            'a' => decoded.push(0x07),
            'b' => decoded.push(0x08),
            'e' | 'E' => decoded.push(0x1b),
            'f' => decoded.push(0x0c),
            'n' => decoded.push(b'\n'),
            'r' => decoded.push(b'\r'),
            't' => decoded.push(b'\t'),
            'v' => decoded.push(0x0b),
            '\\' | '\'' | '"' | '?' => push(&mut decoded, escape),
            'x' => match number(&mut chars, 16, 2) {
                Some(value) if !push_byte(&mut decoded, value) => return decoded,
                Some(_) => {}
                None => decoded.extend_from_slice(b"\\x"),
            },
            'u' | 'U' => match number(&mut chars, 16, if escape == 'u' { 4 } else { 8 }) {
                Some(0) => return decoded,
                Some(value) => {
                    push(&mut decoded, char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                None => {
                    decoded.push(b'\\');
                    push(&mut decoded, escape);
                }
            },
            'c' => match chars.next() {
                Some(control) if control.is_ascii() => decoded.push(control as u8 & 0x1f),
                Some(other) => push(&mut decoded, other),
                None => decoded.extend_from_slice(b"\\c"),
            },
            other => {
                decoded.push(b'\\');
                push(&mut decoded, other);
            }
        }
    }
    decoded
}

/// Reads a number of at most `max_digits` digits.
fn number(chars: &mut Peekable<Chars<'_>>, radix: u32, max_digits: usize) -> Option<u32> {
    let (mut value, mut count) = (0_u32, 0_usize);
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)).filter(|_| count < max_digits) {
        value = value.wrapping_mul(radix).wrapping_add(digit);
        count += 1;
        chars.next();
    }
    (count > 0).then_some(value)
}

fn push(decoded: &mut Vec<u8>, c: char) {
    decoded.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Adds the low byte of a number, unless it is NUL.
fn push_byte(decoded: &mut Vec<u8>, value: u32) -> bool {
    let byte = value.to_le_bytes()[0];
    decoded.push(byte);
    if byte == 0 {
        decoded.pop();
    }
    byte != 0
}
