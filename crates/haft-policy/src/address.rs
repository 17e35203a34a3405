//! Which addresses are on the public network, and what the others are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use haft_tool::net::{Authority, Peer};

/// What the host is, unless it is a name or an address on the public network.
pub fn not_public_host(authority: &Authority) -> Option<&'static str> {
    match &authority.peer {
        Peer::Address(address) => not_public(*address),
        peer if peer.is_localhost() => Some("a name of this machine"),
        Peer::Name(_) => None,
    }
}

/// What the address is, unless it is an ordinary public one.
pub fn not_public(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    Some(match address.octets() {
        [0, ..] => "an unspecified address",
        [127, ..] => "a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private address",
        // 169.254.169.254 is the usual one; three clouds chose their own.
        [169, 254, 169, 254] | [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16] => {
            "a cloud's metadata address"
        }
        [169, 254, ..] => "a link-local address",
        [100, 64..=127, ..] => "a carrier's inner address",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "a documentation address",
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => "a special-purpose address",
        [224..=239, ..] => "a multicast address",
        [240..=255, ..] => "a reserved address",
        _ => return None,
    })
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    let embedded = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => "an unspecified address",
        [0, 0, 0, 0, 0, 0, 0, 1] => "a loopback address",
        // NAT64 and 6to4 only carry an IPv4 packet, so it is that address that counts.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            return not_public_v4(embedded(high, low));
        }
        [0xfe80..=0xfebf, ..] => "a link-local address",
        [0xfc00..=0xfdff, ..] => "a private address",
        [0xff00..=0xffff, ..] => "a multicast address",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "a documentation address",
        [0x2001, 0..=0x1ff, ..] => "a special-purpose address",
        [0x2000..=0x3fff, ..] => return None,
        _ => "an address outside the public network",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_refused_from_its_first_to_its_last_address_and_its_neighbours_are_not() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "255.255.255.255"),
        ] {
            let (first, last): (Ipv4Addr, Ipv4Addr) = (first.parse().unwrap(), last.parse().unwrap());
            let middle = Ipv4Addr::from_bits(first.to_bits() + (last.to_bits() - first.to_bits()) / 2);
            for inside in [first, middle, last] {
                let [a, b, c, d] = inside.octets();
                let pairs = (u16::from(a) << 8 | u16::from(b), u16::from(c) << 8 | u16::from(d));
                for form in [
                    IpAddr::V4(inside),
                    IpAddr::V6(inside.to_ipv6_mapped()),
                    IpAddr::V6(Ipv6Addr::new(0x2002, pairs.0, pairs.1, 0, 0, 0, 0, 1)),
                    IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, pairs.0, pairs.1)),
                ] {
                    assert!(not_public(form).is_some(), "{form}");
                }
            }
            for outside in [first.to_bits().checked_sub(1), last.to_bits().checked_add(1)] {
                let outside = outside.map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)));
                assert_eq!(outside.and_then(not_public), None, "{outside:?}");
            }
        }
    }

    #[test]
    fn ipv6_is_public_only_inside_its_public_blocks() {
        for refused in [
            "::",
            "::1",
            "::7f00:1",
            "::ffff:0:127.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
        ] {
            assert!(not_public(refused.parse().unwrap()).is_some(), "{refused}");
        }
        for public in [
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00:1450::1",
            "2002:808:808::1",
            "64:ff9b::808:808",
            "3fff:1000::1",
        ] {
            assert_eq!(not_public(public.parse().unwrap()), None, "{public}");
        }
    }

    #[test]
    fn a_metadata_address_is_named_as_one() {
        for address in ["169.254.169.254", "100.100.100.200", "192.0.0.192", "168.63.129.16"] {
            assert_eq!(not_public(address.parse().unwrap()), Some("a cloud's metadata address"), "{address}");
        }
    }

    #[test]
    fn every_spelling_of_a_private_address_is_recognised() {
        for text in
            ["127.1", "0x7f.1:80", "2130706433", "017700000001", "[::ffff:127.0.0.1]", "0", "LocalHost.:3000"]
        {
            assert!(not_public_host(&Authority::parse(text).unwrap()).is_some(), "{text}");
        }
        assert_eq!(not_public_host(&Authority::parse("example.com:8080").unwrap()), None);
        assert!(Authority::parse("example.com:http").is_err());
    }
}
