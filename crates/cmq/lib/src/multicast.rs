//! Groups of receivers: a key with a group's address reaches all who joined it, without a broker and
//! without a list of them.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use socket2::{InterfaceIndexOrAddress, Socket};

/// By which interface a group is joined or reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interface {
    /// The kernel chooses.
    #[default]
    Any,
    /// The one with this address: IPv4.
    Address(Ipv4Addr),
    /// The one with this number: IPv6, and to join or leave also IPv4.
    Index(u32),
}

/// Linux gives a socket of all addresses what is sent to any group that any socket of the host has joined. This one
/// gets that of its own groups only.
pub(crate) fn only_what_was_joined(socket: &Socket) {
    #[cfg(target_os = "linux")]
    {
        // A socket of IPv4 has not the second; kernels before 4.20 have it for nobody.
        let _ = socket.set_multicast_all_v4(false);
        let _ = socket.set_multicast_all_v6(false);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

pub(crate) fn join(socket: &Socket, group: IpAddr, interface: Interface) -> io::Result<()> {
    match group {
        IpAddr::V4(group) => socket.join_multicast_v4_n(&group, &interface.v4()),
        IpAddr::V6(group) => socket.join_multicast_v6(&group, interface.v6()?),
    }
}

pub(crate) fn leave(socket: &Socket, group: IpAddr, interface: Interface) -> io::Result<()> {
    match group {
        IpAddr::V4(group) => socket.leave_multicast_v4_n(&group, &interface.v4()),
        IpAddr::V6(group) => socket.leave_multicast_v6(&group, interface.v6()?),
    }
}

pub(crate) fn set_interface(
    socket: &Socket,
    is_ipv6: bool,
    interface: Interface,
) -> io::Result<()> {
    if is_ipv6 {
        return socket.set_multicast_if_v6(interface.v6()?);
    }
    match interface {
        Interface::Any => socket.set_multicast_if_v4(&Ipv4Addr::UNSPECIFIED),
        Interface::Address(address) => socket.set_multicast_if_v4(&address),
        Interface::Index(_) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "an IPv4 socket's interface is named by its address",
        )),
    }
}

pub(crate) fn set_loop(socket: &Socket, is_ipv6: bool, on: bool) -> io::Result<()> {
    if is_ipv6 { socket.set_multicast_loop_v6(on) } else { socket.set_multicast_loop_v4(on) }
}

pub(crate) fn set_ttl(socket: &Socket, is_ipv6: bool, ttl: u32) -> io::Result<()> {
    if is_ipv6 { socket.set_multicast_hops_v6(ttl) } else { socket.set_multicast_ttl_v4(ttl) }
}

impl Interface {
    const fn v4(self) -> InterfaceIndexOrAddress {
        match self {
            Self::Any => InterfaceIndexOrAddress::Address(Ipv4Addr::UNSPECIFIED),
            Self::Address(address) => InterfaceIndexOrAddress::Address(address),
            Self::Index(index) => InterfaceIndexOrAddress::Index(index),
        }
    }

    fn v6(self) -> io::Result<u32> {
        match self {
            Self::Any => Ok(0),
            Self::Index(index) => Ok(index),
            Self::Address(_) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an IPv6 socket's interface is named by its number",
            )),
        }
    }
}
