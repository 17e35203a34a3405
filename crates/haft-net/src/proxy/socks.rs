//! SOCKS5 without authentication, CONNECT only; SOCKS4 is refused.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use haft_tool::net::Peer;

use super::connection::ClientConnection;
use super::server::ProxySlot;
use super::tunnel::BodyLength;
use super::upstream::{Upstream, UpstreamError, escape};
use super::wake::WaitEnd;

/// The first byte of a SOCKS5 client.
pub(super) const VERSION_5: u8 = 5;
/// The first byte of a SOCKS4 client.
pub(super) const VERSION_4: u8 = 4;

const NO_AUTH_CODE: u8 = 0;
const NO_METHOD_CODE: u8 = 0xff;
const CONNECT_CODE: u8 = 1;
const IPV4_CODE: u8 = 1;
const NAME_CODE: u8 = 3;
const IPV6_CODE: u8 = 4;

const SUCCEEDED_CODE: u8 = 0;
const FAILED_CODE: u8 = 1;
const NOT_ALLOWED_CODE: u8 = 2;
const NETWORK_UNREACHABLE_CODE: u8 = 3;
const HOST_UNREACHABLE_CODE: u8 = 4;
const CONNECTION_REFUSED_CODE: u8 = 5;
const NO_SUCH_COMMAND_CODE: u8 = 7;
const NO_SUCH_ADDRESS_TYPE_CODE: u8 = 8;
const VERSION_4_REJECTED: u8 = 0x5b;

/// Serves one SOCKS5 connection.
pub(super) fn serve(mut client: ClientConnection, upstream: &Upstream, slot: &ProxySlot) {
    let Ok(request) = read_request(&mut client) else { return };
    let connected = match request {
        SocksRequest::Connect(host, port) => {
            upstream.connect(&host, port, false, slot).map_err(|error| reply_code(&error))
        }
        SocksRequest::Other(host, port) => {
            upstream.refuse(escape(&host), port, "only CONNECT is supported over SOCKS", None);
            Err(Some(NO_SUCH_COMMAND_CODE))
        }
        SocksRequest::UnknownAddressType => Err(Some(NO_SUCH_ADDRESS_TYPE_CODE)),
        SocksRequest::NeedsAuthentication => return client.finish(&[VERSION_5, NO_METHOD_CODE]),
        SocksRequest::Invalid => return client.finish(&reply(FAILED_CODE)),
    };
    match connected {
        Ok(connected) => {
            if client.send(&reply(SUCCEEDED_CODE)).is_ok() {
                client.tunnel(&connected.stream, Vec::new(), BodyLength::UntilEof);
            }
        }
        Err(Some(code)) => client.finish(&reply(code)),
        Err(None) => {}
    }
}

/// Refuses a SOCKS4 connection: that protocol cannot leave names to the proxy.
pub(super) fn refuse_version_4(mut client: ClientConnection, upstream: &Upstream) {
    let Ok(request) = client.take(8) else { return };
    if let [_, _, high, low, a, b, c, d] = request[..] {
        let host = Ipv4Addr::new(a, b, c, d).to_string();
        let port = u16::from_be_bytes([high, low]);
        upstream.refuse(host, port, "SOCKS4 is not supported; use SOCKS5 or HTTP", None);
    }
    client.finish(&[0, VERSION_4_REJECTED, 0, 0, 0, 0, 0, 0]);
}

/// A parsed request.
enum SocksRequest {
    Connect(Vec<u8>, u16),
    /// BIND, UDP ASSOCIATE or an unknown command.
    Other(Vec<u8>, u16),
    UnknownAddressType,
    NeedsAuthentication,
    Invalid,
}

fn read_request(client: &mut ClientConnection) -> Result<SocksRequest, WaitEnd> {
    let count = client.take(2)?[1];
    if !client.take(count.into())?.contains(&NO_AUTH_CODE) {
        return Ok(SocksRequest::NeedsAuthentication);
    }
    client.send(&[VERSION_5, NO_AUTH_CODE])?;
    let request = client.take(4)?;
    let [VERSION_5, command, _, address_type] = request[..] else {
        return Ok(SocksRequest::Invalid);
    };
    let host = match address_type {
        IPV4_CODE => address(<[u8; 4]>::try_from(client.take(4)?).map(IpAddr::from)),
        NAME_CODE => {
            let length = client.take(1)?[0];
            client.take(length.into())?
        }
        IPV6_CODE => address(<[u8; 16]>::try_from(client.take(16)?).map(IpAddr::from)),
        _ => return Ok(SocksRequest::UnknownAddressType),
    };
    let port = client.take(2)?;
    let port = u16::from_be_bytes([port[0], port[1]]);
    Ok(if command == CONNECT_CODE {
        SocksRequest::Connect(host, port)
    } else {
        SocksRequest::Other(host, port)
    })
}

/// An address as text, so that the same code parses and checks it.
fn address(bytes: Result<IpAddr, Vec<u8>>) -> Vec<u8> {
    let address = bytes.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    Peer::from(address).to_string().into_bytes()
}

/// The reply code of an error; `None` if the client gets no reply.
fn reply_code(error: &UpstreamError) -> Option<u8> {
    Some(match error {
        UpstreamError::Refused(_) => NOT_ALLOWED_CODE,
        UpstreamError::TooManyConnections => FAILED_CODE,
        UpstreamError::NameNotFound(_) => HOST_UNREACHABLE_CODE,
        UpstreamError::Unreachable(ErrorKind::ConnectionRefused, _) => CONNECTION_REFUSED_CODE,
        UpstreamError::Unreachable(ErrorKind::NetworkUnreachable, _) => NETWORK_UNREACHABLE_CODE,
        UpstreamError::Unreachable(..) => HOST_UNREACHABLE_CODE,
        UpstreamError::Stopped => return None,
    })
}

/// A reply; the bound address is left out.
fn reply(code: u8) -> [u8; 10] {
    [VERSION_5, code, 0, IPV4_CODE, 0, 0, 0, 0, 0, 0]
}
