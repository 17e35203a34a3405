//! Whose socket listens at an address of this machine. Addresses can change hands, so the socket itself counts: its inode.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// The inodes of the TCP sockets that a connection to `to` may reach.
pub(super) fn tcp_listeners(to: SocketAddr) -> Vec<u64> {
    let ip = to.ip().to_canonical();
    let all: Vec<(IpAddr, u64)> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .flat_map(|table| parse_table(&fs::read_to_string(table).unwrap_or_default(), to.port()))
        .collect();
    let exact: Vec<u64> = all.iter().filter(|(bound, _)| *bound == ip).map(|(_, inode)| *inode).collect();
    // The kernel prefers a socket that is bound to the address itself.
    if exact.is_empty() || ip.is_unspecified() {
        all.iter().map(|(_, inode)| *inode).collect()
    } else {
        exact
    }
}

/// The inodes of the sockets with an abstract name.
pub(super) fn abstract_sockets(name: &[u8]) -> Vec<u64> {
    let table = fs::read("/proc/net/unix").unwrap_or_default();
    let shown: Vec<u8> =
        std::iter::once(b'@').chain(name.iter().map(|&byte| if byte == 0 { b'@' } else { byte })).collect();
    let lines = table.split(|&byte| byte == b'\n').filter(|line| line.ends_with(&shown));
    lines
        .filter_map(|line| std::str::from_utf8(line).ok()?.split_ascii_whitespace().nth(6)?.parse().ok())
        .collect()
}

/// The addresses and inodes of sockets that listen on a port.
fn parse_table(table: &str, port: u16) -> Vec<(IpAddr, u64)> {
    let parse = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (ip, bound_port) = fields.next()?.split_once(':')?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?.parse().ok()?;
        let is_listening = state == LISTENING && u16::from_str_radix(bound_port, 16) == Ok(port);
        is_listening.then_some((parse_ip(ip)?.to_canonical(), inode))
    };
    table.lines().filter_map(parse).collect()
}

/// An address in hexadecimal words, each in the byte order of the machine.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let word = |index: usize| {
        let digits = text.get(index * 8..index * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    if text.len() == 8 {
        return Some(Ipv4Addr::from(word(0)?).into());
    }
    let bytes = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn listeners_are_found_by_address() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let at = listener.local_addr().unwrap();
            let inode = rustix::fs::fstat(listener.as_fd()).unwrap().st_ino;
            assert_eq!(tcp_listeners(at), [inode], "{address}");
            let other: SocketAddr = SocketAddr::new("127.0.0.9".parse().unwrap(), at.port());
            assert!(!tcp_listeners(other).is_empty(), "without a better one, any is taken for it");
            drop(listener);
            assert!(tcp_listeners(at).is_empty());
        }
    }
}
