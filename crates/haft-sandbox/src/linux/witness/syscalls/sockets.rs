//! Connects, binds and listens, with a copy of the program's socket. The address is read once.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use haft_files::birth_id_of;
use haft_tool::Network;
use haft_tool::net::Domains;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::socket_address::{
    SocketAddress, bind, bound_address, connect, inet_address, is_dual_stack, parse_address, path_address,
    read_address,
};
use crate::linux::witness::caller::Caller;
use crate::linux::witness::listeners::{abstract_sockets, tcp_listeners};
use crate::linux::witness::notifications::Syscall;
use crate::linux::witness::paths::{DirectoryEntry, ResolvedTarget};
use crate::linux::witness::recorder::entry_birth_id;
use crate::linux::witness::supervisor::{Reply, Supervisor};
use crate::linux::witness::write_policy::WriteArea;
use crate::session::NetworkReach;

const NO_NETWORK: &str = "the network is not part of the scope";
const ALLOW_NETWORK: &str = "--network HOST, or --network all";
const OTHER_SOCKET: &str = "another program's socket";
/// The bits of a socket type besides its flags.
const SOCKET_TYPE_MASK: i32 = 0xf;

impl Supervisor {
    pub(super) fn connect(&mut self, call: &Syscall) -> Result<Reply, Errno> {
        let raw = read_address(call)?;
        let address = parse_address(&raw)?;
        let socket = self.copy_fd(call, call.int(0))?;
        match address {
            // The kernel refuses it to programs without capabilities, which Haft may have.
            SocketAddress::Netlink { is_kernel: false } => return Err(Errno::PERM),
            SocketAddress::Unspecified | SocketAddress::Netlink { is_kernel: true } => {}
            SocketAddress::Inet(to) => {
                if self.network == NetworkReach::Own && !is_local(to) {
                    // The kernel reports that the network is unreachable; the denial says why.
                    let allow = Some(ALLOW_NETWORK.to_owned());
                    self.denials.add("connect", to.to_string(), NO_NETWORK, allow);
                }
                if let Err(rule) = self.check_reachable(to) {
                    self.denials.add("connect", to.to_string(), rule, Some(ALLOW_NETWORK.to_owned()));
                    return Err(Errno::ACCESS);
                }
            }
            SocketAddress::Abstract(name) => {
                if self.network != NetworkReach::Own
                    && !self.policy.resources.have_bound(|| abstract_sockets(&name))
                {
                    let place = format!("@{}", String::from_utf8_lossy(&name));
                    self.denials.add("connect", place, OTHER_SOCKET, None);
                    return Err(Errno::ACCESS);
                }
            }
            SocketAddress::Path(path) => return self.connect_to_path(call, socket, &path),
        }
        self.blocked.start(&self.listener, call, move || Ok(connect(&socket, &raw).into()))
    }

    fn connect_to_path(&mut self, call: &Syscall, socket: OwnedFd, path: &[u8]) -> Result<Reply, Errno> {
        let ResolvedTarget::Entry(entry) = self.resolve_followed(call, libc::AT_FDCWD, path)? else {
            return Err(Errno::CONNREFUSED);
        };
        let kind = entry.file_type()?;
        if entry.is_not_a_directory() {
            return Err(Errno::NOTDIR);
        }
        if kind != FileType::Socket {
            return Err(Errno::CONNREFUSED);
        }
        let file = open_socket_file(&entry)?;
        let is_own = entry.dir.area == WriteArea::Private
            || birth_id_of(&file).is_some_and(|socket| self.policy.resources.has_socket(socket));
        if !is_own {
            self.denials.add("connect", entry.path().display().to_string(), OTHER_SOCKET, None);
            return Err(Errno::ACCESS);
        }
        let raw = path_address(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))?;
        self.blocked.start(&self.listener, call, move || {
            let result = connect(&socket, &raw);
            drop(file);
            Ok(result.into())
        })
    }

    pub(super) fn bind(&mut self, call: &Syscall) -> Result<Reply, Errno> {
        let raw = read_address(call)?;
        let socket = self.copy_fd(call, call.int(0))?;
        match parse_address(&raw)? {
            SocketAddress::Netlink { .. } => Ok(bind(&socket, &raw).into()),
            SocketAddress::Unspecified if self.may_bind_unspecified(&socket) => {
                Ok(bind(&socket, &raw).into())
            }
            SocketAddress::Unspecified => Err(Errno::AFNOSUPPORT),
            SocketAddress::Abstract(_) => {
                bind(&socket, &raw)?;
                self.add_bound(&socket)?;
                Ok(Reply::Value(0))
            }
            SocketAddress::Inet(_) if self.network == NetworkReach::Own => Ok(bind(&socket, &raw).into()),
            SocketAddress::Inet(at)
                if is_in_use(at)
                    && !self.policy.resources.have_bound(|| tcp_listeners(at).unwrap_or_default()) =>
            {
                // With SO_REUSEPORT the command could share the port and get another program's connections.
                Err(Errno::ADDRINUSE)
            }
            SocketAddress::Inet(_) if self.network == NetworkReach::All => {
                bind(&socket, &raw)?;
                self.add_bound(&socket)?;
                Ok(Reply::Value(0))
            }
            SocketAddress::Inet(at) => {
                let Some(local) = loopback_for(at, &socket) else {
                    self.denials.add("serve", at.to_string(), NO_NETWORK, Some(ALLOW_NETWORK.to_owned()));
                    return Err(Errno::ACCESS);
                };
                bind(&socket, &inet_address(local))?;
                self.add_bound(&socket)?;
                Ok(Reply::Value(0))
            }
            SocketAddress::Path(path) => self.bind_to_path(call, &socket, &path),
        }
    }

    /// Whether an address without a family is harmless: an internet socket would be bound to every interface.
    fn may_bind_unspecified(&self, socket: &OwnedFd) -> bool {
        matches!(self.network, NetworkReach::Own | NetworkReach::All) || bound_address(socket).is_none()
    }

    fn bind_to_path(&mut self, call: &Syscall, socket: &OwnedFd, path: &[u8]) -> Result<Reply, Errno> {
        let ResolvedTarget::Entry(entry) = self.resolve(call, libc::AT_FDCWD, path)? else {
            return Err(Errno::ACCESS);
        };
        if entry.exists() {
            return Err(Errno::ADDRINUSE);
        }
        if entry.dir.area == WriteArea::Private {
            self.before_change(&entry)?;
            // Landlock lets it create sockets there and nowhere else.
            return Ok(Reply::Continue);
        }
        if !self.may_change("create", &entry) {
            return Err(Errno::ACCESS);
        }
        self.check_not_guarded("create", &entry)?;
        self.before_change(&entry)?;
        self.use_umask_of(call);
        // By its name in the directory that was checked, which is also the name that the socket itself reports.
        rustix::process::fchdir(&entry.dir.fd)?;
        bind(socket, &path_address(Path::new(&entry.name))?)?;
        self.recorder.after_creation(&entry);
        self.policy.resources.add_socket(entry_birth_id(&entry).ok_or(Errno::NOENT)?)?;
        Ok(Reply::Value(0))
    }

    /// Binds an unbound socket to the loopback address, because it would listen on all addresses.
    pub(super) fn listen(&mut self, call: &Syscall) -> Result<Reply, Errno> {
        let socket = self.copy_fd(call, call.int(0))?;
        if !matches!(self.network, NetworkReach::All | NetworkReach::Own)
            && let Some(at) = bound_address(&socket)
            && at.port() == 0
        {
            let local = loopback_for(at, &socket).ok_or(Errno::ACCESS)?;
            bind(&socket, &inet_address(local))?;
            self.add_bound(&socket)?;
        }
        // Not done by the caller, because another thread could put a different socket in its place.
        Ok(rustix::net::listen(&socket, call.int(1)).into())
    }

    /// Refuses a socket that can send without connecting.
    pub(super) fn refuse_socket(&mut self, call: &Syscall) -> Reply {
        let is_datagram = call.int(1) & SOCKET_TYPE_MASK == libc::SOCK_DGRAM;
        let place = if is_datagram { "udp" } else { "raw sockets" };
        self.denials.add("connect", place.to_owned(), NO_NETWORK, Some("--network all".to_owned()));
        Reply::Error(Errno::ACCESS)
    }

    /// Makes a pair of sequenced-packet sockets in place of datagram sockets, with which a program could send to any socket in
    /// the file system.
    pub(super) fn make_socket_pair(&mut self, call: &Syscall) -> Result<Reply, Errno> {
        let [family, kind, protocol] = [call.int(0), call.int(1), call.int(2)];
        if family != libc::AF_UNIX || protocol != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        let mut flags = SocketFlags::CLOEXEC;
        flags.set(SocketFlags::NONBLOCK, kind & libc::SOCK_NONBLOCK != 0);
        let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let close_on_exec = kind & libc::SOCK_CLOEXEC != 0;
        let mut numbers = Vec::new();
        for socket in [&pair.0, &pair.1] {
            numbers.extend(self.listener.add_fd(call.id, socket, close_on_exec)?.to_ne_bytes());
        }
        Caller::of(call).write_bytes(call.arguments[3], &numbers)?;
        Ok(Reply::Value(0))
    }

    /// Why an address may not be connected to.
    fn check_reachable(&self, to: SocketAddr) -> Result<(), &'static str> {
        match self.network {
            NetworkReach::All | NetworkReach::Own => Ok(()),
            NetworkReach::Proxy(proxy) | NetworkReach::None(Some(proxy)) if proxy == to => Ok(()),
            _ if is_local(to)
                && self.policy.resources.have_bound(|| tcp_listeners(to).unwrap_or_default()) =>
            {
                Ok(())
            }
            NetworkReach::Proxy(_) if is_local(to) && self.lists(to) => Ok(()),
            NetworkReach::Proxy(_) => Err("only listed domains may be reached, through the proxy"),
            NetworkReach::None(_) => Err(NO_NETWORK),
        }
    }

    /// Whether the scope lists this very address.
    fn lists(&self, to: SocketAddr) -> bool {
        let Network::Domains(list) = &self.policy.scope.network else { return false };
        Domains::parse(list).is_ok_and(|list| list.lists(to.ip(), to.port()))
    }

    /// Remembers a bound socket as one of the session's.
    fn add_bound(&self, socket: &OwnedFd) -> Result<(), Errno> {
        self.policy.resources.add_bound(rustix::fs::fstat(socket)?.st_ino)
    }
}

/// Whether an address means this machine.
fn is_local(address: SocketAddr) -> bool {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unspecified(),
    }
}

fn open_socket_file(entry: &DirectoryEntry) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(&entry.dir.fd, &entry.name, flags, Mode::empty())
}

fn is_in_use(address: SocketAddr) -> bool {
    let is_in_use = |error: std::io::Error| error.kind() == std::io::ErrorKind::AddrInUse;
    address.port() != 0 && std::net::TcpListener::bind(address).is_err_and(is_in_use)
}

/// The loopback address to bind to instead of `address`; `None` if that names another interface.
fn loopback_for(address: SocketAddr, socket: &OwnedFd) -> Option<SocketAddr> {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => IpAddr::V4(ip),
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_loopback() => IpAddr::V6(ip),
        IpAddr::V6(ip) if ip.is_unspecified() && is_dual_stack(socket) => {
            IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped())
        }
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()) => IpAddr::V6(ip),
        _ => return None,
    };
    Some(SocketAddr::new(ip, address.port()))
}
