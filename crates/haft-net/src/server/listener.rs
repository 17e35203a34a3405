//! The listening socket and its connections.

use std::convert::Infallible;
use std::future::Future as _;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

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

use super::slots::{ConnectionSlot, ConnectionSlots};
use super::{ConnectionLimits, RequestHandler};

/// How often the handler is called for what expires.
const TICK_INTERVAL: Duration = Duration::from_secs(1);
/// How long requests in progress may take when the server is stopped.
const GRACE_PERIOD: Duration = Duration::from_secs(3);
/// How long sent data may stay unacknowledged.
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT_MS: u32 = 60_000;
/// How long accepting pauses after an error, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Binds the address.
pub(super) fn bind(
    address: SocketAddr,
    limits: &ConnectionLimits,
) -> Result<(Runtime, TcpListener, SocketAddr), ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(limits.blocking_threads.max(1))
        .thread_name("haft-http-worker")
        .build()
        .map_err(|error| ToolError::io("start the HTTP runtime", &error))?;
    let what = || format!("listen on {address}");
    let listener = {
        let _within = runtime.enter();
        let listener = std::net::TcpListener::bind(address);
        let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        listener.and_then(TcpListener::from_std).map_err(|error| ToolError::io(what(), &error))?
    };
    let address = listener.local_addr().map_err(|error| ToolError::io(what(), &error))?;
    Ok((runtime, listener, address))
}

/// Serves connections until `stopped` is true.
pub(super) fn run<H: RequestHandler>(
    runtime: Runtime,
    listener: TcpListener,
    handler: &Arc<H>,
    limits: &ConnectionLimits,
    mut stopped: watch::Receiver<bool>,
) {
    runtime.block_on(async {
        let ticks = tokio::spawn(tick_periodically(Arc::clone(handler)));
        let mut connections = JoinSet::new();
        let slots = ConnectionSlots::new(limits.max_connections);
        while let Some(accepted) = unless_stopped(listener.accept(), &mut stopped).await {
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((connection, peer)) => {
                    // Without a slot the connection is closed.
                    if let Some(slot) = slots.take(peer) {
                        let handler = Arc::clone(handler);
                        connections.spawn(serve(
                            connection,
                            slot,
                            handler,
                            limits.header_timeout,
                            stopped.clone(),
                        ));
                    }
                }
                Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
            }
        }
        drop(listener);
        ticks.abort();
        handler.close();
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

async fn tick_periodically<H: RequestHandler>(handler: Arc<H>) {
    loop {
        sleep(TICK_INTERVAL).await;
        handler.tick();
    }
}

/// Serves one connection to its end.
async fn serve<H: RequestHandler>(
    stream: TcpStream,
    slot: Arc<ConnectionSlot>,
    handler: Arc<H>,
    header_timeout: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    // Neither option is essential; macOS does not have the second.
    let _ = set_tcp_nodelay(&stream, true);
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, TCP_USER_TIMEOUT_MS);
    let shared_slot = Arc::clone(&slot);
    let service = service_fn(move |request| {
        let (handler, slot) = (Arc::clone(&handler), Arc::clone(&shared_slot));
        async move { Ok::<_, Infallible>(handler.respond(slot, request).await) }
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
