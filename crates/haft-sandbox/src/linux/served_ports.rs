//! Makes TCP ports of a session's commands reachable on the loopback interface of the machine.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags};

use super::session_view::NamespaceCache;
use crate::process::pipe;

/// Connections to all ports of a session at a time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 256;
const STACK_BYTES: usize = 128 * 1024;

/// The ports of one session. Dropping it closes the listeners.
pub(super) struct ServedPorts {
    _stop: OwnedFd,
}

impl ServedPorts {
    /// Listens on `ports`; connections lead to the same port in any of the session's namespaces.
    pub(super) fn start(ports: &[u16], namespaces: &Arc<NamespaceCache>) -> io::Result<Self> {
        let (stopped, stop) = pipe()?;
        let open = Arc::new(AtomicUsize::new(0));
        for &port in ports {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            let (namespaces, stopped) = (Arc::clone(namespaces), stopped.try_clone()?);
            let open = Arc::clone(&open);
            let accept = move || accept(&listener, &stopped, port, &namespaces, &open);
            thread::Builder::new()
                .name(format!("haft-serve-{port}"))
                .stack_size(STACK_BYTES)
                .spawn(accept)?;
        }
        Ok(Self { _stop: stop })
    }
}

fn accept(
    listener: &TcpListener,
    stopped: &OwnedFd,
    port: u16,
    namespaces: &Arc<NamespaceCache>,
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
        let (namespaces, counted) = (Arc::clone(namespaces), Arc::clone(open));
        let serve = move || {
            if let Some(server) = namespaces.connect(port) {
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
