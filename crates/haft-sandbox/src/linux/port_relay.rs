//! TCP ports between the loopback interface of the machine and that of a session's commands, in both directions.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use haft_tool::Network;
use haft_tool::net::{Authority, Peer};
use rustix::event::{PollFd, PollFlags};

use super::namespaces::Namespaces;
use super::session_view::NamespaceCache;
use crate::process::pipe;

/// Connections to all ports of a relay at a time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 256;
const STACK_BYTES: usize = 128 * 1024;

/// Listeners whose connections lead to the other side. Dropping it closes them.
#[derive(Debug)]
pub(super) struct PortRelay {
    _stop: OwnedFd,
}

impl PortRelay {
    /// Makes `ports` of the session's commands reachable on the machine, in any of the session's namespaces.
    pub(super) fn serve(ports: &[u16], namespaces: &Arc<NamespaceCache>) -> io::Result<Self> {
        Self::start(
            ports,
            |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)),
            |port| {
                let namespaces = Arc::clone(namespaces);
                move || namespaces.connect(port)
            },
        )
    }

    /// Makes the ports of the machine that a network lists reachable for the commands in `namespaces`.
    pub(super) fn forward(network: &Network, namespaces: &Namespaces) -> io::Result<Option<Self>> {
        let ports = loopback_ports(network);
        if ports.is_empty() {
            return Ok(None);
        }
        let local = |ip: IpAddr, port| TcpStream::connect((ip, port)).ok();
        let started = Self::start(
            &ports,
            |port| namespaces.listen(port),
            |port| {
                move || {
                    local(Ipv4Addr::LOCALHOST.into(), port)
                        .or_else(|| local(Ipv6Addr::LOCALHOST.into(), port))
                }
            },
        );
        started.map(Some)
    }

    fn start<C: Fn() -> Option<TcpStream> + Send + Sync + 'static>(
        ports: &[u16],
        listen: impl Fn(u16) -> io::Result<TcpListener>,
        connect: impl Fn(u16) -> C,
    ) -> io::Result<Self> {
        let (stopped, stop) = pipe()?;
        let open = Arc::new(AtomicUsize::new(0));
        for &port in ports {
            let (listener, stopped) = (listen(port)?, stopped.try_clone()?);
            let (connect, open) = (Arc::new(connect(port)), Arc::clone(&open));
            thread::Builder::new()
                .name(format!("haft-port-{port}"))
                .stack_size(STACK_BYTES)
                .spawn(move || accept(&listener, &stopped, &connect, &open))?;
        }
        Ok(Self { _stop: stop })
    }
}

fn accept<C: Fn() -> Option<TcpStream> + Send + Sync + 'static>(
    listener: &TcpListener,
    stopped: &OwnedFd,
    connect: &Arc<C>,
    open: &Arc<AtomicUsize>,
) {
    loop {
        let mut fds = [PollFd::new(stopped, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        match rustix::event::poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !fds[0].revents().is_empty() => return,
            Ok(_) => {}
        }
        let Ok((client, _)) = listener.accept() else { continue };
        if open.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (connect, counted) = (Arc::clone(connect), Arc::clone(open));
        let serve = move || {
            if let Some(server) = connect() {
                // An error ends the connection, as it would without Haft between.
                let _ = relay(&client, &server);
            }
            counted.fetch_sub(1, Ordering::SeqCst);
        };
        if thread::Builder::new().stack_size(STACK_BYTES).spawn(serve).is_err() {
            open.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The ports of this machine that a list of domains names.
fn loopback_ports(network: &Network) -> Vec<u16> {
    let Network::Domains(list) = network else { return Vec::new() };
    let places = list.iter().filter_map(|entry| Authority::parse(entry).ok());
    let local = places.filter(|place| match &place.peer {
        Peer::Address(address) => address.is_loopback(),
        name @ Peer::Name(_) => name.is_localhost(),
    });
    let mut ports: Vec<u16> = local.filter_map(|place| place.port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Copies in both directions until both ends are closed.
fn relay(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    let copy = |mut from: &TcpStream, mut to: &TcpStream| {
        let copied = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
        if copied.is_err() {
            let _ = from.shutdown(Shutdown::Both);
        }
        copied.map(drop)
    };
    thread::scope(|scope| {
        let there = thread::Builder::new().stack_size(STACK_BYTES);
        let there = there.spawn_scoped(scope, || copy(client, server))?;
        let back = copy(server, client);
        let _ = there.join();
        back
    })
}
