//! Why there is no answer, in words that name the host and what to do.

use std::error::Error;
use std::io;
use std::time::Duration;

use haft_tool::net::Authority;
use haft_tool::{ErrorKind, ToolError};

/// What a failed request means.
pub(super) fn of(error: &reqwest::Error, place: &Authority, proxy: Option<&str>) -> ToolError {
    let through = proxy.map(|proxy| format!(" through the proxy {proxy}")).unwrap_or_default();
    let said = |kind, what: String| ToolError::new(kind, format!("{place}{through}: {what}"));
    if let Some(error) = find::<rustls::Error>(error) {
        return said(ErrorKind::ExecutionFailed, format!("no secure connection: {}", tls(error)));
    }
    if error.is_builder() {
        return ToolError::invalid_arguments(format!(
            "the request to {place} cannot be sent: {}",
            innermost(error)
        ));
    }
    if let Some(os) = find::<io::Error>(error) {
        use io::ErrorKind as Os;
        let what = match os.kind() {
            Os::ConnectionRefused => "nothing listens there; check the port".to_owned(),
            Os::TimedOut => "no answer in time".to_owned(),
            Os::NetworkUnreachable | Os::HostUnreachable | Os::AddrNotAvailable => {
                "there is no way there from this machine; check its network".to_owned()
            }
            Os::ConnectionReset | Os::ConnectionAborted | Os::BrokenPipe | Os::UnexpectedEof => {
                "the server broke the connection off; try again".to_owned()
            }
            _ => plain(&os.to_string()),
        };
        return said(if os.kind() == Os::TimedOut { ErrorKind::Timeout } else { ErrorKind::Io }, what);
    }
    let why = innermost(error);
    let what = match error {
        error if error.is_decode() => format!("the answer cannot be decompressed: {why}"),
        error if error.is_connect() => format!("no connection: {why}"),
        error if error.is_body() => format!("the answer broke off: {why}"),
        _ => format!("no answer that HTTP knows: {why}"),
    };
    said(ErrorKind::Io, what)
}

pub(super) fn not_found(place: &Authority, error: &io::Error) -> ToolError {
    let why = plain(&error.to_string());
    let why = why.strip_prefix("failed to lookup address information: ").unwrap_or(&why).to_owned();
    ToolError::new(
        ErrorKind::Io,
        format!(
            "the name {} was not found: {why}; check its spelling and this machine's network",
            place.peer
        ),
    )
}

pub(super) fn late(place: &Authority, limit: Duration) -> ToolError {
    ToolError::new(
        ErrorKind::Timeout,
        format!(
            "{place} had not answered in full after {} s; try again, or a smaller page",
            limit.as_secs_f64()
        ),
    )
}

pub(super) fn too_many_redirects(place: &Authority, most: usize) -> ToolError {
    ToolError::failed(format!("{place} leads from redirect to redirect; given up after {most}"))
}

fn tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => {
            format!(
                "its certificate is not trusted ({why}); if it is yours, add its root to this machine or name it in SSL_CERT_FILE"
            )
        }
        rustls::Error::InvalidMessage(_) => {
            "it does not speak TLS there; check the port, or try http".to_owned()
        }
        other => plain(&other.to_string()),
    }
}

/// The cause of this type, also where an `io::Error` holds it.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match held {
            Some(held) => Some(held),
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
    plain(&last.to_string())
}

/// The operating system's words without Rust's ` (os error N)`.
fn plain(text: &str) -> String {
    text.split(" (os error ").next().unwrap_or(text).to_lowercase()
}
