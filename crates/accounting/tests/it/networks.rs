//! What names a network, and what lies in a range.

use std::net::IpAddr;

use scrinium_accounting::{AddressRange, Network, NetworkPrefixes, is_within};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_network_is_an_address_of_ipv4_or_what_one_customer_has_of_ipv6() {
    let of = |text| Network::of(address(text), NetworkPrefixes::default());
    assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    assert_eq!(of("2001:db8::1"), of("2001:db8:0:0:ffff::1"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("2001:db8::1").to_string(), "2001:db8::/64");
    assert_eq!(of("192.0.2.1").to_string(), "192.0.2.1");
    let wide = NetworkPrefixes { ipv4_bits: 24, ipv6_bits: 0 };
    assert_eq!(Network::of(address("192.0.2.1"), wide), Network::of(address("192.0.2.255"), wide));
    assert_eq!(Network::of(address("::1"), wide), Network::of(address("2001:db8::1"), wide));
}

#[test]
fn ranges_hold_what_their_bits_say() {
    let ranges: Vec<AddressRange> = ["10.0.0.0/8", "192.0.2.7", "2001:db8::/33", "0.0.0.0/32"]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    for inside in ["10.255.0.1", "::ffff:10.0.0.1", "192.0.2.7", "2001:db8:7fff::1", "0.0.0.0"] {
        assert!(is_within(&ranges, address(inside)), "{inside}");
    }
    for outside in ["11.0.0.1", "192.0.2.8", "2001:db8:8000::1", "::", "::1"] {
        assert!(!is_within(&ranges, address(outside)), "{outside}");
    }
    assert!("0.0.0.0/0".parse::<AddressRange>().unwrap().holds(address("203.0.113.9")));
    for wrong in ["", "10.0.0.0/33", "10.0.0/8", "localhost", "::1/129", "10.0.0.0/-1", "10.0.0.0/8/8"] {
        assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
    }
}
