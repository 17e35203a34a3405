//! Finds the sockets that listen at an address of this machine. Addresses can change hands, so sockets are identified by inode.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;

use crate::process::last_error;

/// The state of a listening socket.
const LISTENING_STATE_BIT: u32 = 10;
/// `SOCK_DIAG_CODE`, the type of requests and answers.
const SOCK_DIAG_CODE: u16 = 20;
/// The length of a message's header.
const HEADER_BYTES: usize = 16;
/// The length of a request, with its header.
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
/// Offsets of the local address and the inode in an answer, after its header.
const SOURCE_OFFSET: usize = 8;
const INODE_OFFSET: usize = 68;

/// The inodes of the TCP sockets that a connection to `to` may reach.
pub(super) fn tcp_listeners(to: SocketAddr) -> Result<Vec<u64>, Errno> {
    let ip = to.ip().to_canonical();
    let mut all = listeners(libc::AF_INET, to.port())?;
    all.extend(listeners(libc::AF_INET6, to.port())?);
    let exact: Vec<u64> = all.iter().filter(|(bound, _)| *bound == ip).map(|(_, inode)| *inode).collect();
    // The kernel prefers a socket that is bound to the address itself.
    let any = exact.is_empty() || ip.is_unspecified();
    Ok(if any { all.into_iter().map(|(_, inode)| inode).collect() } else { exact })
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

/// The addresses and inodes of sockets that listen on a port. Uses netlink, because for `/proc/net/tcp` the kernel walks
/// through all connections of the machine.
#[expect(unsafe_code, reason = "netlink has no safe wrapper")]
fn listeners(family: i32, port: u16) -> Result<Vec<(IpAddr, u64)>, Errno> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: plain numbers.
    let socket = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
    if socket < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just created it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    rustix::io::write(&socket, &request(family, port))?;
    let mut found = Vec::new();
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let length = rustix::io::read(&socket, &mut buffer)?;
        let mut rest = &buffer[..length];
        while let Some((header, _)) = rest.split_at_checked(HEADER_BYTES) {
            let size = u32_at(header, 0).and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
            let kind = header.get(4..6).map_or(0, |kind| u16::from_ne_bytes([kind[0], kind[1]]));
            let Some(message) = rest.get(HEADER_BYTES..size) else { return Err(Errno::PROTO) };
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(found),
                libc::NLMSG_ERROR => return Err(Errno::OPNOTSUPP),
                _ => found.extend(parse_answer(family, message)),
            }
            rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

/// A request for the listening sockets of a family on a port.
fn request(family: i32, port: u16) -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    let mut put = |at: usize, bytes: &[u8]| request[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &u32::try_from(REQUEST_BYTES).unwrap_or_default().to_ne_bytes());
    put(4, &SOCK_DIAG_CODE.to_ne_bytes());
    let flags = u16::try_from(libc::NLM_F_REQUEST | libc::NLM_F_DUMP).unwrap_or_default();
    put(6, &flags.to_ne_bytes());
    put(
        HEADER_BYTES,
        &[u8::try_from(family).unwrap_or_default(), u8::try_from(libc::IPPROTO_TCP).unwrap_or_default()],
    );
    put(HEADER_BYTES + 4, &(1_u32 << LISTENING_STATE_BIT).to_ne_bytes());
    put(HEADER_BYTES + 8, &port.to_be_bytes());
    request
}

fn parse_answer(family: i32, message: &[u8]) -> Option<(IpAddr, u64)> {
    let source = message.get(SOURCE_OFFSET..SOURCE_OFFSET + 16)?;
    let ip = if family == libc::AF_INET {
        IpAddr::V4(Ipv4Addr::from(*source.first_chunk::<4>()?))
    } else {
        IpAddr::V6(Ipv6Addr::from(*source.first_chunk::<16>()?))
    };
    Some((ip.to_canonical(), u32_at(message, INODE_OFFSET)?.into()))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.first_chunk::<4>().map(|bytes| u32::from_ne_bytes(*bytes))
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
            assert_eq!(tcp_listeners(at), Ok(vec![inode]), "{address}");
            let other: SocketAddr = SocketAddr::new("127.0.0.9".parse().unwrap(), at.port());
            assert_ne!(tcp_listeners(other), Ok(Vec::new()), "without a better one, any is taken for it");
            drop(listener);
            assert_eq!(tcp_listeners(at), Ok(Vec::new()));
        }
    }
}
