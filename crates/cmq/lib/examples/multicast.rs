//! Multicast (paper, "Multicast IPC"): one push reaches all who joined the group, without a broker and
//! without anybody knowing them. Time to live 1: it stays in this network; here, on loopback.
//!
//! `cargo run -p quelea-cmq --example multicast`

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use quelea_cmq::multicast::Interface;
use quelea_cmq::{Config, DestinationOptions, Endpoint, Key, MailboxOptions, Queue};
use socket2::{Domain, Socket, Type};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 71, 17);
const NEWS: u64 = 7;
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let loopback = Interface::Address(Ipv4Addr::LOCALHOST);
    // The first one gets a port, the others share it: all members of a group have the same.
    let first = shared_socket(0)?;
    let port = first.local_addr()?.port();
    let readers = [first, shared_socket(port)?, shared_socket(port)?]
        .into_iter()
        .map(|socket| subscribe(socket, loopback))
        .collect::<Result<Vec<_>, _>>()?;

    let paper = Endpoint::bind("127.0.0.1:0", Config::default())?;
    paper.set_multicast_interface(loopback)?;
    paper.set_multicast_ttl(1)?;
    let group = Key::new(SocketAddr::new(IpAddr::V4(GROUP), port), NEWS);
    let news = paper.dest(group, DestinationOptions::default())?;
    news.push(b"extra, extra")?;
    news.push(b"read all about it")?;
    news.flush();

    for (number, reader) in readers.iter().enumerate() {
        for _ in 0..2 {
            let message = reader.pop_timeout(PATIENCE).ok_or("no news")?;
            println!("reader {number}: {}", String::from_utf8_lossy(&message.bytes));
        }
        reader.endpoint().leave_multicast(IpAddr::V4(GROUP), loopback)?;
    }
    Ok(())
}

fn subscribe(socket: UdpSocket, interface: Interface) -> Result<Queue, Box<dyn Error>> {
    let endpoint = Endpoint::from_socket(socket, Config::default())?;
    endpoint.join_multicast(IpAddr::V4(GROUP), interface)?;
    Ok(endpoint.queue(NEWS, MailboxOptions::default())?)
}

/// Binds a socket whose port others on this host may have too.
fn shared_socket(port: u16) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
    Ok(socket.into())
}
