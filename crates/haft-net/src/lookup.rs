//! Name resolution, and error texts for people.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;

use haft_policy::not_public;

/// Resolves a name to its addresses.
pub(crate) type Lookup = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// The resolver of this machine.
pub(crate) fn system_lookup(name: &str) -> io::Result<Vec<IpAddr>> {
    // The final dot keeps the resolver from trying the name below the network's own domains first. Names of the hosts
    // file have no dot.
    let addresses = (format!("{name}."), 0).to_socket_addrs().or_else(|_| (name, 0).to_socket_addrs())?;
    Ok(addresses.map(|address| address.ip()).collect())
}

/// The first address of a name that resolves only to addresses that are not public, with its range.
pub fn special_address(name: &str) -> Option<(IpAddr, &'static str)> {
    let addresses = system_lookup(name).ok()?;
    let ranges = addresses.iter().map(|address| Some((*address, not_public(address.to_canonical())?)));
    ranges.collect::<Option<Vec<_>>>()?.first().copied()
}

/// The text of an operating system error without what Rust adds to it.
pub(crate) fn os_text(text: &str) -> String {
    let text = text.split(" (os error ").next().unwrap_or(text);
    text.strip_prefix("failed to lookup address information: ").unwrap_or(text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::special_address;

    #[test]
    fn a_name_without_a_public_address_is_found() {
        let (address, range) = special_address("localhost").unwrap();
        assert!(address.is_loopback() && range == "a loopback address", "{address} {range}");
        assert_eq!(special_address("name.invalid"), None);
    }
}
