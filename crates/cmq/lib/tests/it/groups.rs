//! Multicast groups: who gets what is sent to them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use quelea_cmq::endpoint::Backend;
use quelea_cmq::multicast::Interface;
use quelea_cmq::{Config, Endpoint, Key, MailboxOptions, Mode, PreSharedKey};

use crate::ends::*;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 71, 18);
const LOOPBACK: Interface = Interface::Address(Ipv4Addr::LOCALHOST);

fn keyed() -> Config {
    Config { pre_shared_key: Some(PreSharedKey([5; 32])), ..Config::default() }
}

/// Pushes one message to a group that only another socket of this host has joined, and one to the
/// reader itself; returns the one that the reader gets first.
fn first_of_two(config: Config, backend: Backend) -> Vec<u8> {
    let neighbour = UdpSocket::bind("0.0.0.0:0").unwrap();
    neighbour.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST).unwrap();
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let reader = Endpoint::with_backend(socket, config.clone(), backend).unwrap();
    let queue = reader.queue(0, MailboxOptions::default()).unwrap();
    let sender = Endpoint::bind("127.0.0.1:0", config).unwrap();
    sender.set_multicast_interface(LOOPBACK).unwrap();
    let port = reader.local_addr().port();
    for (address, message) in [(GROUP, &b"to a group"[..]), (Ipv4Addr::LOCALHOST, b"to you")] {
        let key = Key::new(SocketAddr::new(IpAddr::V4(address), port), 0);
        let dest = sender.dest(key, in_mode(Mode::Lossy)).unwrap();
        dest.push(message).unwrap();
        dest.flush();
    }
    queue.pop_timeout(LONG).unwrap().bytes.to_vec()
}

#[test]
fn a_group_reaches_nobody_who_has_not_joined_it() {
    for backend in [Backend::Native, Backend::Portable] {
        for config in [Config::default(), keyed()] {
            assert_eq!(first_of_two(config, backend), b"to you", "{backend:?}");
        }
    }
}

#[test]
fn a_sealed_group_reaches_who_joined_until_it_leaves() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let reader = Endpoint::from_socket(socket, keyed()).unwrap();
    let queue = reader.queue(0, MailboxOptions::default()).unwrap();
    let sender = Endpoint::bind("127.0.0.1:0", keyed()).unwrap();
    sender.set_multicast_interface(LOOPBACK).unwrap();
    let group = IpAddr::V4(GROUP);
    let key = Key::new(SocketAddr::new(group, reader.local_addr().port()), 0);
    let dest = sender.dest(key, in_mode(Mode::Lossy)).unwrap();
    reader.join_multicast(group, LOOPBACK).unwrap();
    assert!(reader.join_multicast(group, LOOPBACK).is_err(), "it is in it");
    dest.push(b"1").unwrap();
    dest.flush();
    assert_eq!(&queue.pop_timeout(LONG).unwrap().bytes[..], b"1");
    reader.leave_multicast(group, LOOPBACK).unwrap();
    assert!(reader.leave_multicast(group, LOOPBACK).is_err(), "it has left");
}
