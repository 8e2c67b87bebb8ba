//! IP addresses as numbers.
//!
//! An IPv4 address is a number of 32 bits, an IPv6 address one of 128. The type `ip` has both, the IPv4
//! addresses first, in 128 bits: `::ffff:a.b.c.d` *is* the IPv4 address `a.b.c.d` (RFC 4291, 2.5.5.2), so that
//! all addresses together are just 2^128. The IPv4 address `a` is the number `a`; IPv6 addresses below
//! `::ffff:0:0` follow, each plus 2^32; those above `::ffff:ffff:ffff` are their own numbers.

use super::text::TextError;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

/// First address that stands for an IPv4 address: `::ffff:0:0`.
const MAPPED: u128 = 0xffff << 32;
/// Number of IPv4 addresses.
const V4: u128 = 1 << 32;

fn utf8(text: &[u8]) -> Result<&str, TextError> {
    core::str::from_utf8(text).map_err(|_| TextError::Form)
}

/// Reads `192.0.2.1`.
pub(super) fn read_v4(text: &[u8]) -> Result<u32, TextError> {
    let text = utf8(text)?;
    text.parse::<Ipv4Addr>().map(u32::from).map_err(|_| match text.parse::<Ipv6Addr>() {
        Ok(_) => TextError::Family,
        Err(_) => TextError::Form,
    })
}

/// Reads `2001:db8::1`.
pub(super) fn read_v6(text: &[u8]) -> Result<u128, TextError> {
    let text = utf8(text)?;
    text.parse::<Ipv6Addr>().map(u128::from).map_err(|_| match text.parse::<Ipv4Addr>() {
        Ok(_) => TextError::Family,
        Err(_) => TextError::Form,
    })
}

/// Reads an address of either family.
pub(super) fn read(text: &[u8]) -> Result<u128, TextError> {
    match read_v4(text) {
        Ok(address) => Ok(address.into()),
        Err(_) => Ok(both_of_v6(read_v6(text)?)),
    }
}

/// Returns the number among all addresses of an IPv6 address.
#[must_use]
pub const fn both_of_v6(address: u128) -> u128 {
    if address >= MAPPED + V4 {
        address
    } else if address >= MAPPED {
        address - MAPPED
    } else {
        address + V4
    }
}

/// Returns the IPv6 address of a number among all addresses; that of an IPv4 address is the mapped one.
#[must_use]
pub const fn v6_of_both(number: u128) -> u128 {
    if number >= MAPPED + V4 {
        number
    } else if number >= V4 {
        number - V4
    } else {
        number + MAPPED
    }
}

pub(super) fn put_v4(address: u32, out: &mut Vec<u8>) {
    let _ = write!(out, "{}", Ipv4Addr::from(address));
}

pub(super) fn put_v6(address: u128, out: &mut Vec<u8>) {
    let _ = write!(out, "{}", Ipv6Addr::from(address));
}

pub(super) fn put(number: u128, out: &mut Vec<u8>) {
    if number < V4 { put_v4(number as u32, out) } else { put_v6(v6_of_both(number), out) }
}

/// Reads a network such as `192.0.2.0/24`, or a single address, as its first and last number of the type.
/// `bits` is the number of address bits of the type: 32 for IPv4, 128 for IPv6, and for both 0.
pub(super) fn network(text: &[u8], bits: u32) -> Result<(u128, u128), TextError> {
    let (address, length) = match text.iter().position(|&byte| byte == b'/') {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let length = |most: u32| match length {
        None => Ok(most),
        // As many digits as a length has: no sign, no leading zeros.
        Some(digits) if digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit) => {
            let number = utf8(digits)?.parse().map_err(|_| TextError::Form)?;
            if number <= most { Ok(number) } else { Err(TextError::Form) }
        }
        Some(_) => Err(TextError::Form),
    };
    let last_of = |first: u128, free: u32| {
        let ones = if free == 128 { u128::MAX } else { (1 << free) - 1 };
        if first & ones == 0 { Ok(first | ones) } else { Err(TextError::Host) }
    };
    if bits != 128 {
        match read_v4(address) {
            Ok(first) => {
                let first = u128::from(first);
                return Ok((first, last_of(first, 32 - length(32)?)?));
            }
            Err(error) if bits == 32 => return Err(error),
            Err(_) => {}
        }
    }
    let first = read_v6(address)?;
    let last = last_of(first, 128 - length(128)?)?;
    if bits == 128 {
        return Ok((first, last));
    }
    // A network around all IPv4 addresses has all numbers up to its last one, as they come first.
    let is_around = first < MAPPED && last >= MAPPED;
    Ok(if is_around { (0, last) } else { (both_of_v6(first), both_of_v6(last)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_have_one_number_in_their_order() {
        let edges = [0, 1, V4 - 1, V4, MAPPED - 1, MAPPED, MAPPED + 1, MAPPED + V4 - 1, MAPPED + V4];
        let far = [MAPPED - V4, MAPPED - V4 - 1, MAPPED + V4 + 1, 1 << 127, u128::MAX - 1, u128::MAX];
        for number in edges.into_iter().chain(far) {
            assert_eq!(both_of_v6(v6_of_both(number)), number, "{number:x}");
            assert_eq!(v6_of_both(both_of_v6(number)), number, "{number:x}");
            let mut text = Vec::new();
            put(number, &mut text);
            assert_eq!(read(&text), Ok(number), "{}", String::from_utf8_lossy(&text));
        }
        let ascending = ["0.0.0.0", "255.255.255.255", "::", "::1", "::fffe:ffff:ffff", "::1:0:0:0", "ff::"];
        let numbers = ascending.map(|text| read(text.as_bytes()).expect("an address"));
        assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:x?}");
        assert_eq!(numbers[1] + 1, numbers[2]);
        assert_eq!(numbers[4] + 1, numbers[5]);
        assert_eq!(read(b"::ffff:192.0.2.1"), read(b"192.0.2.1"));
    }

    #[test]
    fn networks_are_ranges() {
        assert_eq!(network(b"10.0.0.0/8", 32), Ok((10 << 24, (11 << 24) - 1)));
        assert_eq!(network(b"0.0.0.0/0", 32), Ok((0, V4 - 1)));
        assert_eq!(network(b"10.0.0.1", 0), Ok(((10 << 24) + 1, (10 << 24) + 1)));
        assert_eq!(network(b"::/0", 128), Ok((0, u128::MAX)));
        assert_eq!(network(b"::/0", 0), Ok((0, u128::MAX)));
        assert_eq!(network(b"::ffff:10.0.0.0/104", 0), network(b"10.0.0.0/8", 32));
        for (text, length) in
            [("::", 79), ("::", 80), ("::", 81), ("::", 96), ("::1:0:0:0", 80), ("8000::", 1)]
        {
            let (first, last) = network(format!("{text}/{length}").as_bytes(), 0).expect("a network");
            assert_eq!(last - first + 1, 1 << (128 - length), "{text}/{length}");
        }
        assert_eq!(network(b"10.0.0.1/8", 32), Err(TextError::Host));
        assert_eq!(network(b"::/0", 32), Err(TextError::Family));
        assert_eq!(network(b"10.0.0.0/8", 128), Err(TextError::Family));
        for bad in [&b"10.0.0.0/33"[..], b"10.0.0.0/", b"10.0.0.0/+8", b"/8", b"10.0.0.0/8/8", b"::/129"] {
            assert_eq!(network(bad, 0), Err(TextError::Form), "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn addresses_of_the_other_family_are_named() {
        assert_eq!(read_v4(b"::1"), Err(TextError::Family));
        assert_eq!(read_v6(b"192.0.2.1"), Err(TextError::Family));
        for bad in [&b""[..], b"192.0.2", b"192.0.2.256", b"192.0.2.1/24", b"01.2.3.4", b"1::2::3", b"\xff"] {
            assert_eq!(read(bad), Err(TextError::Form), "{}", String::from_utf8_lossy(bad));
        }
    }
}
