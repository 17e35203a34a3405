//! Socket addresses as the kernel passes them, and calls that take one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;

use crate::linux::witness::caller::Caller;
use crate::linux::witness::notifications::Syscall;
use crate::process::last_error;

/// `sizeof(struct sockaddr_storage)`.
const MAX_ADDRESS_BYTES: usize = 128;
/// The kernel's limit for the path of a socket.
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// The address of a socket.
pub(super) enum SocketAddress {
    Inet(SocketAddr),
    Path(Vec<u8>),
    Abstract(Vec<u8>),
    /// For messages of the kernel about network interfaces, or of another program.
    Netlink {
        is_kernel: bool,
    },
    /// With this, bind chooses an address and connect dissolves a connection.
    Unspecified,
}

/// Reads the address of a connect or bind call.
pub(super) fn read_address(call: &Syscall) -> Result<Vec<u8>, Errno> {
    let length = usize::try_from(call.int(2)).unwrap_or(usize::MAX);
    if length > MAX_ADDRESS_BYTES {
        return Err(Errno::INVAL);
    }
    Caller::of(call).read_bytes(call.arguments[1], length)
}

pub(super) fn parse_address(raw: &[u8]) -> Result<SocketAddress, Errno> {
    let Some((family, rest)) = raw.split_first_chunk::<2>() else { return Err(Errno::INVAL) };
    let port = || rest.first_chunk::<2>().map(|port| u16::from_be_bytes(*port)).ok_or(Errno::INVAL);
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => {
            let ip = rest.get(2..6).and_then(|ip| ip.first_chunk::<4>()).ok_or(Errno::INVAL)?;
            Ok(SocketAddress::Inet(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(*ip)), port()?)))
        }
        libc::AF_INET6 => {
            let ip = rest.get(6..22).and_then(|ip| ip.first_chunk::<16>()).ok_or(Errno::INVAL)?;
            Ok(SocketAddress::Inet(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(*ip)), port()?)))
        }
        libc::AF_UNIX if rest.is_empty() => Ok(SocketAddress::Unspecified),
        libc::AF_UNIX if rest[0] == 0 => Ok(SocketAddress::Abstract(rest[1..].to_vec())),
        libc::AF_UNIX => {
            let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
            Ok(SocketAddress::Path(rest[..end].to_vec()))
        }
        // Padding, the number of the socket, its groups.
        libc::AF_NETLINK => {
            let peer = rest.get(2..10).ok_or(Errno::INVAL)?;
            Ok(SocketAddress::Netlink { is_kernel: peer.iter().all(|&byte| byte == 0) })
        }
        libc::AF_UNSPEC => Ok(SocketAddress::Unspecified),
        _ => Err(Errno::AFNOSUPPORT),
    }
}

/// The raw address of a socket in the file system.
pub(super) fn path_address(path: &Path) -> Result<Vec<u8>, Errno> {
    let path = path.as_os_str().as_encoded_bytes();
    if path.len() > MAX_SOCKET_PATH_BYTES {
        return Err(Errno::NAMETOOLONG);
    }
    Ok([&family_bytes(libc::AF_UNIX)[..], path, &[0]].concat())
}

/// The raw form of an internet address.
pub(super) fn inet_address(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&family_bytes(libc::AF_INET)[..], &port, &ip.octets(), &[0; 8]].concat(),
        IpAddr::V6(ip) => [&family_bytes(libc::AF_INET6)[..], &port, &[0; 4], &ip.octets(), &[0; 4]].concat(),
    }
}

fn family_bytes(family: i32) -> [u8; 2] {
    u16::try_from(family).unwrap_or_default().to_ne_bytes()
}

/// The address that an internet socket is bound to, with port 0 if it is not bound; `None` for other sockets.
#[expect(unsafe_code, reason = "the address has no safe reader here")]
pub(super) fn bound_address(socket: &OwnedFd) -> Option<SocketAddr> {
    let mut raw = [0_u8; MAX_ADDRESS_BYTES];
    let mut size = libc::socklen_t::try_from(raw.len()).unwrap_or_default();
    // SAFETY: the buffer has the given length.
    let result = unsafe { libc::getsockname(socket.as_raw_fd(), raw.as_mut_ptr().cast(), &raw mut size) };
    if result != 0 {
        return None;
    }
    match parse_address(raw.get(..usize::try_from(size).unwrap_or(0))?) {
        Ok(SocketAddress::Inet(address)) => Some(address),
        _ => None,
    }
}

/// Whether an IPv6 socket also accepts IPv4.
#[expect(unsafe_code, reason = "socket options have no safe wrapper here")]
pub(super) fn is_dual_stack(socket: &OwnedFd) -> bool {
    let mut only_v6: libc::c_int = 0;
    let mut size = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or_default();
    let (level, name) = (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
    // SAFETY: the option is one int.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut only_v6).cast(), &raw mut size)
    };
    result == 0 && only_v6 == 0
}

#[expect(unsafe_code, reason = "addresses of any family have no safe wrapper")]
pub(super) fn connect(socket: &OwnedFd, raw: &[u8]) -> Result<(), Errno> {
    let size = libc::socklen_t::try_from(raw.len()).unwrap_or_default();
    // SAFETY: the address is `raw`, with its length.
    let result = unsafe { libc::connect(socket.as_raw_fd(), raw.as_ptr().cast(), size) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

#[expect(unsafe_code, reason = "addresses of any family have no safe wrapper")]
pub(super) fn bind(socket: &OwnedFd, raw: &[u8]) -> Result<(), Errno> {
    let size = libc::socklen_t::try_from(raw.len()).unwrap_or_default();
    // SAFETY: the address is `raw`, with its length.
    let result = unsafe { libc::bind(socket.as_raw_fd(), raw.as_ptr().cast(), size) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}
