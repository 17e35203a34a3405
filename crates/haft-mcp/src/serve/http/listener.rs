//! The address, and the connections that come to it.

use std::convert::Infallible;
use std::future::Future as _;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use haft_tool::ToolError;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::{set_tcp_nodelay, set_tcp_user_timeout};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::HttpOptions;
use super::front::{Door, answer};
use super::seats::{Seat, Seats};

/// How often what nobody uses any more is looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// How long what is under way may take when the server is stopped.
const GRACE: Duration = Duration::from_secs(3);
/// How long a client may take nothing of what it is sent.
const STALLED: u32 = 60_000;
/// How many bytes the headers of a request may have.
const MOST_HEADER_BYTES: usize = 64 << 10;
/// Threads besides those for requests: for large bodies.
const MORE_THREADS: usize = 8;

/// Binds the address.
pub(super) fn open(options: &HttpOptions) -> Result<(Runtime, TcpListener, SocketAddr), ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(options.limits.calls + MORE_THREADS)
        .thread_name("mcp-call")
        .build()
        .map_err(|error| ToolError::io("start what serves HTTP", &error))?;
    let what = || format!("listen on {}", options.address);
    let listener = {
        let _within = runtime.enter();
        #[expect(clippy::disallowed_methods, reason = "whoever starts a server says where it listens")]
        let listener = std::net::TcpListener::bind(options.address);
        let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        listener.and_then(TcpListener::from_std).map_err(|error| ToolError::io(what(), &error))?
    };
    let address = listener.local_addr().map_err(|error| ToolError::io(what(), &error))?;
    Ok((runtime, listener, address))
}

/// Serves whoever comes until it is stopped.
pub(super) fn run(
    runtime: Runtime,
    listener: TcpListener,
    door: &Arc<Door>,
    mut stopped: watch::Receiver<bool>,
) {
    runtime.block_on(async {
        let sweeping = tokio::spawn(sweep(Arc::clone(door)));
        let mut connections = JoinSet::new();
        let seats = Seats::new(door.limits.connections);
        while let Some(arrived) = until(listener.accept(), &mut stopped).await {
            while connections.try_join_next().is_some() {}
            match arrived {
                Ok((connection, _)) => {
                    // With no seat left the connection is closed, which is an answer, too.
                    if let Some(seat) = seats.take() {
                        connections.spawn(serve(connection, seat, Arc::clone(door), stopped.clone()));
                    }
                }
                // There may be too many open files; some will be closed before long.
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
        drop(listener);
        sweeping.abort();
        door.server.close();
        door.sessions.close();
        // What does not end by itself is ended when the connections are dropped.
        let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
        connections.shutdown().await;
    });
    runtime.shutdown_timeout(GRACE);
}

/// What comes of a future, unless the server is stopped before.
async fn until<T>(future: impl Future<Output = T>, stopped: &mut watch::Receiver<bool>) -> Option<T> {
    let mut future = pin!(future);
    let mut stop = pin!(stopped.wait_for(|stopped| *stopped));
    std::future::poll_fn(|context| {
        if stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(context).map(Some)
    })
    .await
}

async fn sweep(door: Arc<Door>) {
    loop {
        sleep(SWEEP).await;
        door.sessions.sweep(Instant::now());
    }
}

/// One connection's whole life.
async fn serve(stream: TcpStream, seat: Arc<Seat>, door: Arc<Door>, mut stopped: watch::Receiver<bool>) {
    // Neither is worth refusing anybody for.
    let _ = set_tcp_nodelay(&stream, true);
    let _ = set_tcp_user_timeout(&stream, STALLED);
    let header_time = door.limits.header_time;
    let sitting = Arc::clone(&seat);
    let service = service_fn(move |request| {
        let (door, seat) = (Arc::clone(&door), Arc::clone(&sitting));
        async move { Ok::<_, Infallible>(answer(&door, &seat, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_header_size(MOST_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut given_away = pin!(seat.given_away());
    let served = until(
        std::future::poll_fn(|context| {
            if given_away.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            // Whatever a client does wrong ends its connection and nothing else.
            connection.as_mut().poll(context).map(drop)
        }),
        &mut stopped,
    )
    .await;
    if served.is_none() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(GRACE, connection).await;
    }
}
