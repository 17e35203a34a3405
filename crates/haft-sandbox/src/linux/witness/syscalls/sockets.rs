//! Connects, binds and listens. The socket is a copy of the program's own; the address is read once.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::socket_address::{
    SocketAddress, bind, bound_address, connect, inet_address, is_dual_stack, parse_address, path_address,
    read_address,
};
use crate::linux::witness::caller::{Caller, open_proc};
use crate::linux::witness::notifications::Syscall;
use crate::linux::witness::paths::ResolvedTarget;
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
        let socket = Caller::of(call).copy_fd(call.int(0))?;
        match address {
            SocketAddress::Unspecified => {}
            SocketAddress::Inet(to) => {
                if let Err(rule) = self.check_reachable(to) {
                    self.denials.add("connect", to.to_string(), rule, Some(ALLOW_NETWORK.to_owned()));
                    return Err(Errno::ACCESS);
                }
            }
            SocketAddress::Abstract(name) => {
                if !self.policy.resources.has_abstract_name(&name) {
                    let place = format!("@{}", String::from_utf8_lossy(&name));
                    self.denials.add("connect", place, OTHER_SOCKET, None);
                    return Err(Errno::ACCESS);
                }
            }
            SocketAddress::Path(path) => return self.connect_to_path(call, &socket, &path),
        }
        let (listener, id) = (Arc::clone(&self.listener), call.id);
        // In another thread, because it may block.
        std::thread::spawn(move || {
            let result = connect(&socket, &raw);
            listener.reply(id, result.map(|()| 0));
        });
        Ok(Reply::Deferred)
    }

    fn connect_to_path(&mut self, call: &Syscall, socket: &OwnedFd, path: &[u8]) -> Result<Reply, Errno> {
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
        if self.policy.area(entry.path()) == WriteArea::Outside || !self.may_change("connect", &entry) {
            self.denials.add("connect", entry.path().display().to_string(), OTHER_SOCKET, None);
            return Err(Errno::ACCESS);
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&entry.dir.fd, &entry.name, flags, Mode::empty())?;
        let raw = path_address(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))?;
        Ok(connect(socket, &raw).into())
    }

    pub(super) fn bind(&mut self, call: &Syscall) -> Result<Reply, Errno> {
        let raw = read_address(call)?;
        let socket = Caller::of(call).copy_fd(call.int(0))?;
        match parse_address(&raw)? {
            SocketAddress::Unspecified => Ok(bind(&socket, &raw).into()),
            SocketAddress::Abstract(name) => {
                bind(&socket, &raw)?;
                self.policy.resources.add_abstract_name(&name);
                Ok(Reply::Value(0))
            }
            SocketAddress::Inet(at) if is_in_use(at) && !self.policy.resources.has_port(at.port()) => {
                // With SO_REUSEPORT the command could share the port, and get another program's connections.
                Err(Errno::ADDRINUSE)
            }
            SocketAddress::Inet(at) if self.network == NetworkReach::All => {
                bind(&socket, &raw)?;
                self.add_port(&socket, at);
                Ok(Reply::Value(0))
            }
            SocketAddress::Inet(at) => {
                let Some(local) = loopback_for(at, &socket) else {
                    self.denials.add("serve", at.to_string(), NO_NETWORK, Some(ALLOW_NETWORK.to_owned()));
                    return Err(Errno::ACCESS);
                };
                bind(&socket, &inet_address(local))?;
                self.add_port(&socket, local);
                Ok(Reply::Value(0))
            }
            SocketAddress::Path(path) => self.bind_to_path(call, &socket, &path, &raw),
        }
    }

    fn bind_to_path(
        &mut self,
        call: &Syscall,
        socket: &OwnedFd,
        path: &[u8],
        raw: &[u8],
    ) -> Result<Reply, Errno> {
        let ResolvedTarget::Entry(entry) = self.resolve(call, libc::AT_FDCWD, path)? else {
            return Err(Errno::ACCESS);
        };
        if entry.exists() {
            return Err(Errno::ADDRINUSE);
        }
        if !self.may_change("create", &entry) {
            return Err(Errno::ACCESS);
        }
        self.check_not_guarded("create", &entry)?;
        self.before_change(&entry)?;
        self.use_umask_of(call);
        if path.starts_with(b"/proc/") {
            return Err(Errno::ACCESS);
        }
        // The socket keeps the name as the program wrote it. The kernel resolves it again, with the same result: no
        // sandboxed program changes a name while this thread has its turn.
        let cwd = open_proc(&Caller::of(call).base_path(libc::AT_FDCWD))?;
        rustix::process::fchdir(&cwd)?;
        bind(socket, raw)?;
        self.recorder.after_creation(&entry);
        Ok(Reply::Value(0))
    }

    /// Binds an unbound socket to the loopback address, because it would listen on all addresses.
    pub(super) fn listen(&mut self, call: &Syscall) -> Result<Reply, Errno> {
        let socket = Caller::of(call).copy_fd(call.int(0))?;
        if self.network != NetworkReach::All
            && let Some(at) = bound_address(&socket)
            && at.port() == 0
        {
            let local = loopback_for(at, &socket).ok_or(Errno::ACCESS)?;
            bind(&socket, &inet_address(local))?;
            self.add_port(&socket, local);
        }
        Ok(Reply::Continue)
    }

    /// Refuses a socket that can send without connecting.
    pub(super) fn refuse_socket(&mut self, call: &Syscall) -> Reply {
        let is_datagram = call.int(1) & SOCKET_TYPE_MASK == libc::SOCK_DGRAM;
        let place = if is_datagram { "udp" } else { "raw sockets" };
        self.denials.add("connect", place.to_owned(), NO_NETWORK, Some("--network all".to_owned()));
        Reply::Error(Errno::ACCESS)
    }

    /// Why an address may not be connected to.
    fn check_reachable(&self, to: SocketAddr) -> Result<(), &'static str> {
        let is_local = match to.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_unspecified(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unspecified(),
        };
        if is_local && self.policy.resources.has_port(to.port()) {
            return Ok(());
        }
        match self.network {
            NetworkReach::All => Ok(()),
            NetworkReach::Proxy(proxy) if proxy == to => Ok(()),
            NetworkReach::Proxy(_) => Err("only listed domains may be reached, through the proxy"),
            NetworkReach::None => Err(NO_NETWORK),
        }
    }

    fn add_port(&mut self, socket: &OwnedFd, requested: SocketAddr) {
        let port = bound_address(socket).map_or(requested.port(), |bound| bound.port());
        self.policy.resources.add_port(port);
        self.ports.push(port);
    }
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
