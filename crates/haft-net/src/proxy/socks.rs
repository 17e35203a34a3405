//! SOCKS5 without authentication, CONNECT only; SOCKS4 is refused in its own words.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::client::Client;
use super::gate::{Failure, Gate};
use super::listener::Place;
use super::tunnel::Body;
use super::wait::Stop;
use haft_tool::net::Peer;

/// The first byte of a client that speaks SOCKS5.
pub(super) const FIVE: u8 = 5;
/// The first byte of a client that speaks SOCKS4.
pub(super) const FOUR: u8 = 4;

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

const SUCCEEDED: u8 = 0;
const FAILED: u8 = 1;
const REFUSED: u8 = 2;
const NETWORK_UNREACHABLE: u8 = 3;
const HOST_UNREACHABLE: u8 = 4;
const CONNECTION_REFUSED: u8 = 5;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_ADDRESS_TYPE: u8 = 8;

/// Serves one SOCKS5 connection; a client that hangs up or is too slow just ends it.
pub(super) fn serve(mut client: Client, gate: &Gate, place: &Place) {
    let Ok(asked) = listen(&mut client) else { return };
    let reached = match asked {
        Asked::Connect(host, port) => gate.reach(&host, port, place).map_err(|failure| code(&failure)),
        Asked::Other(host, port) => {
            gate.refuse(shown(&host), port, "SOCKS can only CONNECT here", None);
            Err(Some(NO_SUCH_COMMAND))
        }
        Asked::Unreadable => Err(Some(NO_SUCH_ADDRESS_TYPE)),
        Asked::NoMethod => return client.last_word(&[FIVE, NO_METHOD]),
        Asked::NotSocks => return client.last_word(&reply(FAILED)),
    };
    match reached {
        Ok((upstream, _)) => {
            if client.say(&reply(SUCCEEDED)).is_ok() {
                client.join(&upstream, Vec::new(), Body::Open);
            }
        }
        Err(Some(code)) => client.last_word(&reply(code)),
        Err(None) => {}
    }
}

/// Refuses a SOCKS4 connection, which has no way to leave names to the proxy.
pub(super) fn serve_four(mut client: Client, gate: &Gate) {
    let Ok(request) = client.take(8) else { return };
    if let [_, _, high, low, a, b, c, d] = request[..] {
        let host = Ipv4Addr::new(a, b, c, d).to_string();
        let port = u16::from_be_bytes([high, low]);
        gate.refuse(host, port, "SOCKS4 is not spoken here; SOCKS5 and HTTP are", None);
    }
    client.last_word(&[0, 0x5b, 0, 0, 0, 0, 0, 0]);
}

/// What a client asks for.
enum Asked {
    Connect(Vec<u8>, u16),
    /// BIND, UDP or something unheard of.
    Other(Vec<u8>, u16),
    /// An address of no known type, of which not even the length is known.
    Unreadable,
    /// It insists on authentication.
    NoMethod,
    NotSocks,
}

fn listen(client: &mut Client) -> Result<Asked, Stop> {
    let count = client.take(2)?[1];
    if !client.take(count.into())?.contains(&NO_AUTHENTICATION) {
        return Ok(Asked::NoMethod);
    }
    client.say(&[FIVE, NO_AUTHENTICATION])?;
    let request = client.take(4)?;
    let [FIVE, command, _, kind] = request[..] else { return Ok(Asked::NotSocks) };
    let host = match kind {
        1 => address(<[u8; 4]>::try_from(client.take(4)?).map(IpAddr::from)),
        3 => {
            let length = client.take(1)?[0];
            client.take(length.into())?
        }
        4 => address(<[u8; 16]>::try_from(client.take(16)?).map(IpAddr::from)),
        _ => return Ok(Asked::Unreadable),
    };
    let port = client.take(2)?;
    let port = u16::from_be_bytes([port[0], port[1]]);
    Ok(if command == CONNECT { Asked::Connect(host, port) } else { Asked::Other(host, port) })
}

/// An address as text, so that it is read and judged by the same code as one that came as text.
fn address(bytes: Result<IpAddr, Vec<u8>>) -> Vec<u8> {
    let address = bytes.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    Peer::from(address).to_string().into_bytes()
}

fn shown(host: &[u8]) -> String {
    host.escape_ascii().to_string()
}

/// The reply to a failure, if there is still somebody to tell.
fn code(failure: &Failure) -> Option<u8> {
    Some(match failure {
        Failure::Refused(_) => REFUSED,
        Failure::Busy => FAILED,
        Failure::Unknown(_) => HOST_UNREACHABLE,
        Failure::Unreachable(ErrorKind::ConnectionRefused, _) => CONNECTION_REFUSED,
        Failure::Unreachable(ErrorKind::NetworkUnreachable, _) => NETWORK_UNREACHABLE,
        Failure::Unreachable(..) => HOST_UNREACHABLE,
        Failure::Ended => return None,
    })
}

/// A reply; the address it was bound to is nobody's business.
fn reply(code: u8) -> [u8; 10] {
    [FIVE, code, 0, 1, 0, 0, 0, 0, 0, 0]
}
