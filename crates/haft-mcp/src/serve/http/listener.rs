//! The listening socket and its connections.

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
use rustix::net::sockopt::set_tcp_nodelay;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::HttpServerOptions;
use super::router::{HttpState, respond};
use super::slots::{ConnectionSlot, ConnectionSlots};

/// How often expired sessions and streams are removed.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long requests in progress may take when the server is stopped.
const GRACE_PERIOD: Duration = Duration::from_secs(3);
/// How long sent data may stay unacknowledged.
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT_MS: u32 = 60_000;
/// How long accepting pauses after an error, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Threads that parse large bodies, besides those that run requests.
const PARSER_THREADS: usize = 8;

/// Binds the address.
pub(super) fn bind(options: &HttpServerOptions) -> Result<(Runtime, TcpListener, SocketAddr), ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(options.limits.max_requests + PARSER_THREADS)
        .thread_name("mcp-worker")
        .build()
        .map_err(|error| ToolError::io("start the HTTP runtime", &error))?;
    let what = || format!("listen on {}", options.address);
    let listener = {
        let _within = runtime.enter();
        #[expect(clippy::disallowed_methods, reason = "the user chooses the address to listen on")]
        let listener = std::net::TcpListener::bind(options.address);
        let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        listener.and_then(TcpListener::from_std).map_err(|error| ToolError::io(what(), &error))?
    };
    let address = listener.local_addr().map_err(|error| ToolError::io(what(), &error))?;
    Ok((runtime, listener, address))
}

/// Serves connections until `stopped` is true.
pub(super) fn run(
    runtime: Runtime,
    listener: TcpListener,
    state: &Arc<HttpState>,
    mut stopped: watch::Receiver<bool>,
) {
    runtime.block_on(async {
        let expiry = tokio::spawn(expire_periodically(Arc::clone(state)));
        let mut connections = JoinSet::new();
        let slots = ConnectionSlots::new(state.limits.max_connections);
        while let Some(accepted) = unless_stopped(listener.accept(), &mut stopped).await {
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((connection, _)) => {
                    // Without a slot the connection is closed.
                    if let Some(slot) = slots.take() {
                        connections.spawn(serve(connection, slot, Arc::clone(state), stopped.clone()));
                    }
                }
                Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
            }
        }
        drop(listener);
        expiry.abort();
        state.server.close();
        state.sessions.close();
        // Connections that exceed the grace period are dropped.
        let _ = timeout(GRACE_PERIOD, async { while connections.join_next().await.is_some() {} }).await;
        connections.shutdown().await;
    });
    runtime.shutdown_timeout(GRACE_PERIOD);
}

/// Waits for `future`; `None` if the server is stopped first.
async fn unless_stopped<T>(
    future: impl Future<Output = T>,
    stopped: &mut watch::Receiver<bool>,
) -> Option<T> {
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

async fn expire_periodically(state: Arc<HttpState>) {
    loop {
        sleep(EXPIRY_INTERVAL).await;
        state.sessions.expire(Instant::now());
    }
}

/// Serves one connection to its end.
async fn serve(
    stream: TcpStream,
    slot: Arc<ConnectionSlot>,
    state: Arc<HttpState>,
    mut stopped: watch::Receiver<bool>,
) {
    // Neither option is essential; macOS does not have the second.
    let _ = set_tcp_nodelay(&stream, true);
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, TCP_USER_TIMEOUT_MS);
    let header_timeout = state.limits.header_timeout;
    let shared_slot = Arc::clone(&slot);
    let service = service_fn(move |request| {
        let (state, slot) = (Arc::clone(&state), Arc::clone(&shared_slot));
        async move { Ok::<_, Infallible>(respond(&state, &slot, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_header_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut evicted = pin!(slot.evicted());
    let served = unless_stopped(
        std::future::poll_fn(|context| {
            if evicted.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            // A protocol error ends this connection only.
            connection.as_mut().poll(context).map(drop)
        }),
        &mut stopped,
    )
    .await;
    if served.is_none() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(GRACE_PERIOD, connection).await;
    }
}
