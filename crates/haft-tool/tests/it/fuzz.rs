//! Mutated host names, addresses and lists of domains.

use std::net::IpAddr;

use haft_tool::TraceContext;
use haft_tool::net::{Authority, Domains, Peer, split_port};

const HOSTS: [&[u8]; 12] = [
    b"example.com",
    b"*.Example.COM.",
    b"xn--bcher-kva.example:8443",
    b"localhost:3000",
    b"127.0.0.1:80",
    b"0x7f.1",
    b"2130706433:65535",
    b"0177.0.0.01",
    b"[::1]:80",
    b"[::ffff:10.1.2.3]",
    b"[2606:4700::1111]:443",
    b"fd00::1",
];

const TRACEPARENTS: [&[u8]; 4] = [
    b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    b"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes-later",
    b"00-00000000000000000000000000000000-0000000000000000-00",
    b" 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff ",
];

#[test]
fn parsed_traceparent_equals_its_text() {
    haft_fuzz::check(&TRACEPARENTS, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let Some(context) = TraceContext::parse(&text, Some(&text)) else { return };
        assert_eq!(context.to_string().len(), 55);
        assert!(context.trace_id != [0; 16] && context.span_id != [0; 8]);
        let json = serde_json::to_string(&context).unwrap();
        assert_eq!(serde_json::from_str::<TraceContext>(&json).unwrap(), context);
    });
}

#[test]
fn parsed_authority_equals_its_text() {
    haft_fuzz::check(&HOSTS, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let Ok(authority) = Authority::parse(&text) else { return };
        assert_eq!(Authority::parse(&authority.to_string()), Ok(authority.clone()));
        // No other spelling of a name or address remains that a list could miss.
        match &authority.peer {
            Peer::Name(name) => {
                assert!(name.parse::<IpAddr>().is_err() && !name.ends_with('.'), "{name}");
                assert!(name.bytes().all(|byte| !byte.is_ascii_uppercase() && byte.is_ascii_graphic()));
            }
            Peer::Address(address) => assert_eq!(*address, address.to_canonical()),
        }
    });
}

#[test]
fn own_entries_allow_an_authority_and_nothing_on_other_ports() {
    haft_fuzz::check(&HOSTS, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let Ok(authority) = Authority::parse(&text) else { return };
        let list = Domains::parse(&authority.entries()).unwrap();
        assert!(authority.is_in(&list), "{authority}");
        let other_port = Authority { port: Some(if authority.port == Some(1) { 2 } else { 1 }), ..authority };
        assert!(!other_port.is_in(&list), "{other_port}");
        assert!(!Authority::parse("other.example").unwrap().is_in(&list) || text.contains("other"));
    });
}

#[test]
fn list_entries_and_ports_are_parsed_or_refused() {
    haft_fuzz::check(&HOSTS, |bytes| {
        if let Some((host, port)) = split_port(bytes) {
            assert!(bytes.starts_with(host) && port != Some(0));
        }
        let _ = Peer::parse(bytes);
        let entry = String::from_utf8_lossy(bytes).into_owned();
        if let Ok(list) = Domains::parse(std::slice::from_ref(&entry)) {
            assert!(!list.allows("localhost", 80), "{entry}");
        }
    });
}
