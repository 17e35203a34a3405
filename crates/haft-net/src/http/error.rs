//! Errors of requests, with the host and what to do.

use std::error::Error;
use std::io;
use std::time::Duration;

use haft_tool::net::Authority;
use haft_tool::{ErrorKind, ToolError};

use crate::lookup::os_text;

/// The error of a failed request.
pub(super) fn request_failed(
    error: &reqwest::Error,
    authority: &Authority,
    proxy: Option<&str>,
) -> ToolError {
    let through = proxy.map(|proxy| format!(" through the proxy {proxy}")).unwrap_or_default();
    let failed = |kind, what: String| ToolError::new(kind, format!("{authority}{through}: {what}"));
    if let Some(error) = find::<rustls::Error>(error) {
        return failed(ErrorKind::ExecutionFailed, format!("no secure connection: {}", tls_text(error)));
    }
    if error.is_builder() {
        return ToolError::invalid_arguments(format!(
            "the request to {authority} cannot be sent: {}",
            innermost(error)
        ));
    }
    if let Some(os) = find::<io::Error>(error) {
        use io::ErrorKind as Os;
        let what = match os.kind() {
            Os::ConnectionRefused => "nothing listens there; check the port".to_owned(),
            Os::TimedOut => "no response in time".to_owned(),
            Os::NetworkUnreachable | Os::HostUnreachable | Os::AddrNotAvailable => {
                "it is not reachable from this machine; check its network".to_owned()
            }
            Os::ConnectionReset | Os::ConnectionAborted | Os::BrokenPipe | Os::UnexpectedEof => {
                "the server closed the connection; try again".to_owned()
            }
            _ => os_text(&os.to_string()),
        };
        return failed(if os.kind() == Os::TimedOut { ErrorKind::Timeout } else { ErrorKind::Io }, what);
    }
    let why = innermost(error);
    let what = match error {
        error if error.is_decode() => format!("the response cannot be decompressed: {why}"),
        error if error.is_connect() => format!("no connection: {why}"),
        error if error.is_body() => format!("the response ended early: {why}"),
        _ => format!("the response is not valid HTTP: {why}"),
    };
    failed(ErrorKind::Io, what)
}

pub(super) fn name_not_found(authority: &Authority, error: &io::Error) -> ToolError {
    let why = os_text(&error.to_string());
    let name = &authority.peer;
    let what = format!("the name {name} was not found: {why}; check its spelling and this machine's network");
    ToolError::new(ErrorKind::Io, what)
}

pub(super) fn timeout(authority: &Authority, limit: Duration) -> ToolError {
    let seconds = limit.as_secs_f64();
    let what =
        format!("{authority} did not respond in full within {seconds} s; try again, or a smaller page");
    ToolError::new(ErrorKind::Timeout, what)
}

pub(super) fn too_many_redirects(authority: &Authority, limit: usize) -> ToolError {
    ToolError::failed(format!("{authority} keeps redirecting; stopped after {limit} redirects"))
}

fn tls_text(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => format!(
            "its certificate is not trusted ({why}); if it is yours, add its root to this machine or name it in SSL_CERT_FILE"
        ),
        rustls::Error::InvalidMessage(_) => {
            "the server does not speak TLS there; check the port, or try http".to_owned()
        }
        other => os_text(&other.to_string()),
    }
}

/// The cause of this type, also if an `io::Error` wraps it.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    os_text(&last.to_string())
}
