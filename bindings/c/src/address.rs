//! Addresses and keys as plain structures.

use std::ffi::{CStr, c_char};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use quelea_cmq::Key;

use crate::code::{Failure, QueleaCmqCode, guarded};
use crate::wait::{given, given_out};

/// The port where none is named, as on the command line.
pub const QUELEA_CMQ_PORT: u16 = 4711;

/// Bytes of the longest address or key as a text, with its zero at the end: an IPv6 address with zone,
/// port and mailbox.
pub const QUELEA_CMQ_KEY_TEXT_BYTES: usize = 96;

/// A UDP socket's address. Equal addresses are equal byte for byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct QueleaCmqAddress {
    /// 4 or 6.
    pub version: u32,
    /// An IPv6 address's zone, or zero.
    pub scope: u32,
    /// The port, in the host's byte order.
    pub port: u32,
    /// The address as it is on the wire; IPv4's is in the first four bytes, the others are zero.
    pub ip: [u8; 16],
}

/// The paper's key: an address, and who there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct QueleaCmqKey {
    /// The receiving socket, or a multicast group.
    pub address: QueleaCmqAddress,
    /// Who there.
    pub mailbox: u64,
}

impl From<SocketAddr> for QueleaCmqAddress {
    fn from(address: SocketAddr) -> Self {
        let port = u32::from(address.port());
        match address {
            SocketAddr::V4(v4) => {
                let mut ip = [0; 16];
                ip[..4].copy_from_slice(&v4.ip().octets());
                Self { version: 4, scope: 0, port, ip }
            }
            SocketAddr::V6(v6) => {
                Self { version: 6, scope: v6.scope_id(), port, ip: v6.ip().octets() }
            }
        }
    }
}

impl QueleaCmqAddress {
    pub(crate) fn to_socket_address(self) -> Result<SocketAddr, Failure> {
        let Self { version, scope, port, ip } = self;
        let port = u16::try_from(port)
            .map_err(|_| Failure::invalid(format!("port {port} is not one from 0 to 65535")))?;
        match version {
            4 => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3])), port)),
            6 => Ok(SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope))),
            _ => Err(Failure::invalid(format!("an address has version 4 or 6, not {version}"))),
        }
    }
}

impl QueleaCmqKey {
    pub(crate) fn to_key(self) -> Result<Key, Failure> {
        Ok(Key::new(self.address.to_socket_address()?, self.mailbox))
    }
}

impl From<Key> for QueleaCmqKey {
    fn from(key: Key) -> Self {
        Self { address: key.address.into(), mailbox: key.mailbox.0 }
    }
}

/// Reads a key of the form "host:port/mailbox". Without a port it is QUELEA_CMQ_PORT, without a
/// mailbox zero. A name is looked up, which may take a while. Thread-safe.
///
/// # Safety
/// `text` ends with a zero; `key` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_key_parse(
    text: *const c_char,
    key: *mut QueleaCmqKey,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (text, key) = unsafe { (text_of(text, "text")?, given_out(key, "key")?) };
        let (at, mailbox) = match text.split_once('/') {
            Some((at, number)) => {
                let wrong = |_| Failure::invalid(format!("{text:?}: a mailbox is a number"));
                (at, number.parse().map_err(wrong)?)
            }
            None => (text, 0),
        };
        key.write(QueleaCmqKey { address: address_of(at)?.into(), mailbox });
        Ok(())
    })
}

/// Writes "host:port/mailbox" with a zero at the end; a buffer of QUELEA_CMQ_KEY_TEXT_BYTES is always
/// large enough. Thread-safe.
///
/// # Safety
/// `key` can be read; `text` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_key_format(
    key: *const QueleaCmqKey,
    text: *mut c_char,
    bytes: usize,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promise.
        let key = unsafe { given(key, "key")? };
        if text.is_null() {
            return Err(Failure::invalid("text is NULL"));
        }
        let formatted = format!("{}\0", key.to_key()?);
        if formatted.len() > bytes {
            let needed = formatted.len();
            return Err(Failure::invalid(format!("the text needs {needed} bytes, not {bytes}")));
        }
        // SAFETY: the caller's promise, and the text is not longer than `bytes`.
        unsafe { text.copy_from_nonoverlapping(formatted.as_ptr().cast(), formatted.len()) };
        Ok(())
    })
}

/// Parses "host:port", or "host" with the usual port, and returns the address; a name is looked up.
pub(crate) fn address_of(text: &str) -> Result<SocketAddr, Failure> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, QUELEA_CMQ_PORT));
    }
    let mut found = if text.contains(':') {
        text.to_socket_addrs()?
    } else {
        (text, QUELEA_CMQ_PORT).to_socket_addrs()?
    };
    found.next().ok_or_else(|| Failure::invalid(format!("{text:?} has no address")))
}

/// # Safety
/// `text` is NULL or ends with a zero.
pub(crate) unsafe fn text_of<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL")));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::invalid(format!("{name} is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_went() {
        for text in ["127.0.0.1:4711", "[::1]:1", "[fe80::1%3]:65535", "[ff02::5]:0"] {
            let address: SocketAddr = text.parse().unwrap();
            let plain = QueleaCmqAddress::from(address);
            assert_eq!(plain.to_socket_address().unwrap(), address);
        }
    }

    #[test]
    fn a_key_without_a_port_has_the_usual_one() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:4711"),
            ("::1", "[::1]:4711"),
            ("[::1]", "[::1]:4711"),
            ("[::1]:7", "[::1]:7"),
        ] {
            assert_eq!(address_of(text).unwrap(), expected.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn the_longest_key_fits_its_buffer() {
        let ip = Ipv6Addr::from([0xff_u8; 16]);
        let address = SocketAddr::V6(SocketAddrV6::new(ip, u16::MAX, 0, u32::MAX));
        let text = Key::new(address, u64::MAX).to_string();
        assert!(text.len() < QUELEA_CMQ_KEY_TEXT_BYTES, "{} bytes", text.len());
    }
}
