//! A host name or address, parsed into the form that is checked, resolved and connected to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A target: a name for the resolver, or an address that needs none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// Lower-case ASCII without the final dot; no resolver reads it as an address.
    Name(String),
    /// An address; a mapped IPv6 address is stored as its IPv4 address.
    Address(IpAddr),
}

/// The longest name that DNS can carry.
const MAX_NAME_BYTES: usize = 253;
/// The longest label of a name.
const MAX_LABEL_BYTES: usize = 63;

impl Peer {
    /// Reads a name, an IPv4 address in any spelling that a C library takes, or an IPv6 address in brackets.
    pub fn parse(text: &[u8]) -> Result<Self, &'static str> {
        if let Some(inside) = text.strip_prefix(b"[") {
            let inside = inside.strip_suffix(b"]").ok_or("its bracket is never closed")?;
            let address = std::str::from_utf8(inside).ok().and_then(|text| text.parse::<Ipv6Addr>().ok());
            return Ok(Self::from(IpAddr::V6(address.ok_or("what is in its brackets is no IPv6 address")?)));
        }
        let text = text.strip_suffix(b".").unwrap_or(text);
        if text.is_empty() {
            return Err("it is empty");
        }
        if text.len() > MAX_NAME_BYTES {
            return Err("it is longer than a name can be");
        }
        // A list of allowed bytes, so that bytes that some resolver treats specially need not be known here.
        let usual = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let name = text.iter().all(usual).then(|| text.to_ascii_lowercase());
        let name = name.and_then(|name| String::from_utf8(name).ok());
        let name = name.ok_or("it holds a character that no host name has")?;
        if name.split('.').any(|label| label.is_empty() || label.len() > MAX_LABEL_BYTES) {
            return Err("a part of it is empty or too long");
        }
        if ends_in_number(&name) {
            let address = ipv4(&name).ok_or("it ends in a number and is no address")?;
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        if !top(&name).starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Err("its last part is no top-level domain");
        }
        Ok(Self::Name(name))
    }

    /// Whether this is a name of the machine itself, whatever a resolver says about it.
    pub fn is_localhost(&self) -> bool {
        matches!(self, Self::Name(name) if name == "localhost" || name.ends_with(".localhost"))
    }
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Reads `host:port`; the host is not judged yet.
pub fn split_port(authority: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let after_host = match authority.first() {
        Some(b'[') => authority.iter().position(|byte| *byte == b']')? + 1,
        _ => authority.iter().position(|byte| *byte == b':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(after_host);
    match rest.split_first() {
        None => Some((host, None)),
        Some((b':', digits)) if (1..=5).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) => {
            let port = std::str::from_utf8(digits).ok()?.parse().ok().filter(|port| *port > 0)?;
            Some((host, Some(port)))
        }
        Some(_) => None,
    }
}

/// Whether some resolver could take `name` for an address: no top-level domain is a number.
fn ends_in_number(name: &str) -> bool {
    let last = top(name);
    last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x")
}

/// The last label of `name`.
fn top(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The address that C libraries read: one to four numbers, each decimal, octal or hexadecimal, the last one filling
/// all bytes that are left.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let numbers = text.split('.').map(number).collect::<Option<Vec<u32>>>()?;
    let (last, firsts) = numbers.split_last()?;
    let mut bits = 0_u32;
    for (at, byte) in firsts.iter().enumerate() {
        if at == 3 || *byte > 255 {
            return None;
        }
        bits |= byte << (24 - 8 * at);
    }
    let room = u32::MAX >> (8 * firsts.len());
    (*last <= room).then(|| Ipv4Addr::from_bits(bits | last))
}

fn number(text: &str) -> Option<u32> {
    // `from_str_radix` takes a sign, which no address has; names have no sign but for the hyphen.
    let unsigned = |digits: &str, radix| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
        plain.then(|| u32::from_str_radix(digits, radix).ok()).flatten()
    };
    match text.strip_prefix("0x") {
        Some(digits) => unsigned(digits, 16),
        None if text.len() > 1 && text.starts_with('0') => unsigned(&text[1..], 8),
        None => unsigned(text, 10),
    }
}
