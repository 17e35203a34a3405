//! The names by which a server is reached on its own machine. Another `Host` may be a web page's attempt to reach it (DNS rebinding).

use std::net::SocketAddr;

const HTTP_PORT: u16 = 80;

/// The hosts that always name this server.
pub fn own_hosts(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let mut hosts = vec![format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")];
    if !address.ip().is_unspecified() && !hosts.contains(&address.to_string()) {
        hosts.push(address.to_string());
    }
    if port == HTTP_PORT {
        let without_port: Vec<String> =
            hosts.iter().filter_map(|host| host.strip_suffix(":80").map(str::to_owned)).collect();
        hosts.extend(without_port);
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_hosts_have_the_servers_port() {
        let hosts = own_hosts("127.0.0.1:4711".parse().unwrap());
        assert_eq!(hosts, ["localhost:4711", "127.0.0.1:4711", "[::1]:4711"]);
        assert!(own_hosts("127.0.0.1:80".parse().unwrap()).contains(&"localhost".to_owned()));
        assert!(own_hosts("192.0.2.7:81".parse().unwrap()).contains(&"192.0.2.7:81".to_owned()));
        assert!(!own_hosts("0.0.0.0:81".parse().unwrap()).contains(&"0.0.0.0:81".to_owned()));
    }
}
