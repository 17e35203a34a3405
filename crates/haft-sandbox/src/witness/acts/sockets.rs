//! Connecting and serving. The socket is the program's own, held by a copy; the address is ours once it is read.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::witness::Reach;
use crate::witness::notify::{Call, last_error};
use crate::witness::paths::Found;
use crate::witness::places::Area;
use crate::witness::supervisor::{Answer, Supervisor};
use crate::witness::target::{Target, place};

/// No address is longer.
const LONGEST: u64 = 128;
const NETWORK_NONE: &str = "the network is not part of the scope";
const ALLOW_NETWORK: &str = "--network HOST, or --network all";

/// An address as a program gave it.
enum Address {
    Inet(SocketAddr),
    Path(Vec<u8>),
    Abstract(Vec<u8>),
    /// No address at all: the kernel chooses one, or a connection is dissolved.
    Unnamed,
}

impl Supervisor {
    pub(super) fn connect(&mut self, call: &Call) -> Result<Answer, Errno> {
        let raw = raw_address(call)?;
        let address = parse(&raw)?;
        let socket = Target::of(call).descriptor(call.int(0))?;
        match address {
            Address::Unnamed => {}
            Address::Inet(to) => {
                if let Err(why) = self.may_reach(to) {
                    self.denials.add("connect", to.to_string(), why, Some(ALLOW_NETWORK.to_owned()));
                    return Err(Errno::ACCESS);
                }
            }
            Address::Abstract(name) => {
                if !self.places.shared.knows_abstract(&name) {
                    let place = format!("@{}", String::from_utf8_lossy(&name));
                    self.denials.add("connect", place, "another program's socket", None);
                    return Err(Errno::ACCESS);
                }
            }
            Address::Path(path) => return self.connect_to_path(call, &socket, &path),
        }
        let (listener, id) = (Arc::clone(&self.listener), call.id);
        // The other side may take its time, and everybody else's calls wait for this thread.
        std::thread::spawn(move || {
            let result = connect(&socket, &raw);
            listener.answer(id, result.map(|()| 0));
        });
        Ok(Answer::Later)
    }

    fn connect_to_path(&mut self, call: &Call, socket: &OwnedFd, path: &[u8]) -> Result<Answer, Errno> {
        let Found::Spot(spot) = self.find_through(call, libc::AT_FDCWD, path)? else {
            return Err(Errno::CONNREFUSED);
        };
        let kind = FileType::from_raw_mode(spot.stat()?.st_mode);
        if spot.is_misnamed() {
            return Err(Errno::NOTDIR);
        }
        if kind != FileType::Socket {
            return Err(Errno::CONNREFUSED);
        }
        if self.places.area(spot.path()) == Area::Outside || !self.may_change("connect", &spot) {
            let place = spot.path().display().to_string();
            self.denials.add("connect", place, "another program's socket", None);
            return Err(Errno::ACCESS);
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(&spot.dir.fd, &spot.name, flags, Mode::empty())?;
        let raw = path_address(Path::new(&format!("/proc/self/fd/{}", held.as_raw_fd())))?;
        Ok(connect(socket, &raw).into())
    }

    pub(super) fn bind(&mut self, call: &Call) -> Result<Answer, Errno> {
        let raw = raw_address(call)?;
        let socket = Target::of(call).descriptor(call.int(0))?;
        match parse(&raw)? {
            Address::Unnamed => Ok(bind(&socket, &raw).into()),
            Address::Abstract(name) => {
                bind(&socket, &raw)?;
                self.places.shared.add_abstract(&name);
                Ok(Answer::Done(0))
            }
            Address::Inet(at) if is_taken(at) && !self.places.shared.serves(at.port()) => {
                // With the right option it could be shared, and with it somebody else's callers.
                Err(Errno::ADDRINUSE)
            }
            Address::Inet(at) if self.network == Reach::All => {
                bind(&socket, &raw)?;
                self.serve(&socket, at);
                Ok(Answer::Done(0))
            }
            Address::Inet(at) => {
                let Some(local) = loopback_for(at, &socket) else {
                    self.denials.add("serve", at.to_string(), NETWORK_NONE, Some(ALLOW_NETWORK.to_owned()));
                    return Err(Errno::ACCESS);
                };
                bind(&socket, &inet_address(local))?;
                self.serve(&socket, local);
                Ok(Answer::Done(0))
            }
            Address::Path(path) => {
                let Found::Spot(spot) = self.find(call, libc::AT_FDCWD, &path)? else {
                    return Err(Errno::ACCESS);
                };
                if spot.exists() {
                    return Err(Errno::ADDRINUSE);
                }
                if !self.may_change("create", &spot) {
                    return Err(Errno::ACCESS);
                }
                self.refuse_any_guard("create", &spot)?;
                self.touch(&spot)?;
                self.with_umask_of(call);
                if path.starts_with(b"/proc/") {
                    return Err(Errno::ACCESS);
                }
                // The socket keeps the name as the program gave it. The kernel looks for it once more, and finds the
                // same: no sandboxed program changes a name while this thread has its turn.
                let here = place(&Target::of(call).base(libc::AT_FDCWD))?;
                rustix::process::fchdir(&here)?;
                Ok(bind(&socket, &raw).into())
            }
        }
    }

    /// Serving without a bound address would be serving on all of them.
    pub(super) fn listen(&mut self, call: &Call) -> Result<Answer, Errno> {
        let socket = Target::of(call).descriptor(call.int(0))?;
        if self.network != Reach::All
            && let Some(at) = bound(&socket)
            && at.port() == 0
        {
            let local = loopback_for(at, &socket).ok_or(Errno::ACCESS)?;
            bind(&socket, &inet_address(local))?;
            self.serve(&socket, local);
        }
        Ok(Answer::GoOn)
    }

    /// A socket that could send without being asked where to.
    pub(super) fn refuse_socket(&mut self, call: &Call) -> Answer {
        let kind = if call.int(1) & 0xf == libc::SOCK_DGRAM { "udp" } else { "raw sockets" };
        self.denials.add("connect", kind.to_owned(), NETWORK_NONE, Some("--network all".to_owned()));
        Answer::Fail(Errno::ACCESS)
    }

    fn may_reach(&self, to: SocketAddr) -> Result<(), String> {
        let local = matches!(canonical(to.ip()), IpAddr::V4(ip) if ip.is_loopback() || ip.is_unspecified())
            || to.ip() == IpAddr::V6(Ipv6Addr::LOCALHOST)
            || to.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        if local && self.places.shared.serves(to.port()) {
            return Ok(());
        }
        match self.network {
            Reach::All => Ok(()),
            Reach::Proxy(proxy) if proxy == to => Ok(()),
            Reach::Proxy(_) => Err("only listed domains may be reached, through the proxy".to_owned()),
            Reach::None => Err(NETWORK_NONE.to_owned()),
        }
    }

    fn serve(&mut self, socket: &OwnedFd, asked: SocketAddr) {
        let port = bound(socket).map_or(asked.port(), |bound| bound.port());
        self.places.shared.serve(port);
        self.ports.push(port);
    }
}

/// Whether somebody serves there.
fn is_taken(at: SocketAddr) -> bool {
    at.port() != 0
        && std::net::TcpListener::bind(at).is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
}

fn canonical(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// The address on this machine alone that stands for `at`; nothing if it names another interface.
fn loopback_for(at: SocketAddr, socket: &OwnedFd) -> Option<SocketAddr> {
    let ip = match at.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => IpAddr::V4(ip),
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_loopback() => IpAddr::V6(ip),
        IpAddr::V6(ip) if ip.is_unspecified() && takes_both(socket) => {
            IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped())
        }
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()) => IpAddr::V6(ip),
        _ => return None,
    };
    Some(SocketAddr::new(ip, at.port()))
}

#[expect(unsafe_code, reason = "socket options have no safe wrapper here")]
fn takes_both(socket: &OwnedFd) -> bool {
    let mut only: libc::c_int = 0;
    let mut size: libc::socklen_t = 4;
    // SAFETY: the option is one int.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IPV6,
            libc::IPV6_V6ONLY,
            (&raw mut only).cast(),
            &raw mut size,
        )
    };
    result == 0 && only == 0
}

fn raw_address(call: &Call) -> Result<Vec<u8>, Errno> {
    let length = u64::from(call.int(2).cast_unsigned());
    if length > LONGEST {
        return Err(Errno::INVAL);
    }
    Target::of(call).bytes(call.arguments[1], usize::try_from(length).unwrap_or(0))
}

fn parse(raw: &[u8]) -> Result<Address, Errno> {
    let Some((family, rest)) = raw.split_first_chunk::<2>() else { return Err(Errno::INVAL) };
    let port = || rest.first_chunk::<2>().map(|port| u16::from_be_bytes(*port)).ok_or(Errno::INVAL);
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => {
            let ip = rest.get(2..6).and_then(|ip| ip.first_chunk::<4>()).ok_or(Errno::INVAL)?;
            Ok(Address::Inet(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(*ip)), port()?)))
        }
        libc::AF_INET6 => {
            let ip = rest.get(6..22).and_then(|ip| ip.first_chunk::<16>()).ok_or(Errno::INVAL)?;
            Ok(Address::Inet(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(*ip)), port()?)))
        }
        libc::AF_UNIX if rest.is_empty() => Ok(Address::Unnamed),
        libc::AF_UNIX if rest[0] == 0 => Ok(Address::Abstract(rest[1..].to_vec())),
        libc::AF_UNIX => {
            let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
            Ok(Address::Path(rest[..end].to_vec()))
        }
        libc::AF_UNSPEC => Ok(Address::Unnamed),
        _ => Err(Errno::AFNOSUPPORT),
    }
}

fn path_address(path: &Path) -> Result<Vec<u8>, Errno> {
    let path = path.as_os_str().as_encoded_bytes();
    if path.len() > 107 {
        return Err(Errno::NAMETOOLONG);
    }
    let family = u16::try_from(libc::AF_UNIX).unwrap_or_default();
    Ok([&family.to_ne_bytes()[..], path, &[0]].concat())
}

fn inet_address(at: SocketAddr) -> Vec<u8> {
    let family = |family: i32| u16::try_from(family).unwrap_or_default().to_ne_bytes();
    let port = at.port().to_be_bytes();
    match at.ip() {
        IpAddr::V4(ip) => [&family(libc::AF_INET)[..], &port, &ip.octets(), &[0; 8]].concat(),
        IpAddr::V6(ip) => [&family(libc::AF_INET6)[..], &port, &[0; 4], &ip.octets(), &[0; 4]].concat(),
    }
}

/// Where an internet socket is bound, port 0 if nowhere yet; nothing for other sockets.
#[expect(unsafe_code, reason = "the address has no safe reader here")]
fn bound(socket: &OwnedFd) -> Option<SocketAddr> {
    let mut raw = [0_u8; 128];
    let mut size: libc::socklen_t = 128;
    // SAFETY: the buffer is as long as is said.
    let result = unsafe { libc::getsockname(socket.as_raw_fd(), raw.as_mut_ptr().cast(), &raw mut size) };
    if result != 0 {
        return None;
    }
    match parse(raw.get(..usize::try_from(size).unwrap_or(0))?) {
        Ok(Address::Inet(at)) => Some(at),
        _ => None,
    }
}

#[expect(unsafe_code, reason = "addresses of any family have no safe wrapper")]
fn connect(socket: &OwnedFd, raw: &[u8]) -> Result<(), Errno> {
    let size = libc::socklen_t::try_from(raw.len()).unwrap_or_default();
    loop {
        // SAFETY: the address is `raw`, as long as is said.
        let result = unsafe { libc::connect(socket.as_raw_fd(), raw.as_ptr().cast(), size) };
        match result {
            0 => return Ok(()),
            _ => match last_error() {
                Errno::INTR => {}
                error => return Err(error),
            },
        }
    }
}

#[expect(unsafe_code, reason = "addresses of any family have no safe wrapper")]
fn bind(socket: &OwnedFd, raw: &[u8]) -> Result<(), Errno> {
    let size = libc::socklen_t::try_from(raw.len()).unwrap_or_default();
    // SAFETY: the address is `raw`, as long as is said.
    let result = unsafe { libc::bind(socket.as_raw_fd(), raw.as_ptr().cast(), size) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}
