//! Both implementations, over loopback.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quelea_cmq_proto::Transmit;

use super::*;

fn backends(address: &str) -> Vec<Box<dyn Net>> {
    let bind = || socket2::Socket::from(UdpSocket::bind(address).unwrap());
    vec![
        Box::new(linux::Linux::new(bind()).unwrap()),
        Box::new(portable::Portable::new(bind()).unwrap()),
    ]
}

fn address_of(net: &dyn Net) -> SocketAddr {
    let local = net.socket().local_addr().unwrap().as_socket().unwrap();
    if local.ip().is_unspecified() {
        SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), local.port())
    } else {
        local
    }
}

fn transmit(to: SocketAddr, bytes: &[u8], segment_bytes: Option<usize>) -> Transmit {
    Transmit { to, bytes: Bytes::copy_from_slice(bytes), segment_bytes, may_fragment: false }
}

fn send_all(net: &dyn Net, transmits: &[Transmit]) {
    net.send(transmits, &mut |_, why| panic!("refused: {why:?}"));
}

/// Receives `count` datagrams, however they were put together on their way.
fn receive_datagrams(net: &dyn Net, count: usize) -> Vec<Vec<u8>> {
    let (mut pool, mut received, mut datagrams) = (Pool::default(), Vec::new(), Vec::new());
    while datagrams.len() < count {
        net.wait(Reader::Leader, Some(Duration::from_secs(10)));
        net.recv(Amount::All, &mut pool, &mut received);
        assert!(!received.is_empty(), "only {} of {count} came", datagrams.len());
        for one in received.drain(..) {
            datagrams.extend(one.bytes.chunks(one.segment_bytes).map(<[u8]>::to_vec));
        }
    }
    datagrams
}

#[test]
fn a_train_arrives_as_its_datagrams_in_order() {
    let receivers = backends("127.0.0.1:0");
    for sender in backends("127.0.0.1:0") {
        for receiver in &receivers {
            let bytes: Vec<u8> = (0..6_500_u32).map(|n| (n / 100) as u8).collect();
            let train = transmit(address_of(&**receiver), &bytes[..6_450], Some(100));
            send_all(&*sender, &[train]);
            let datagrams = receive_datagrams(&**receiver, 65);
            for (n, datagram) in datagrams.iter().enumerate() {
                assert_eq!(datagram[..], vec![n as u8; if n == 64 { 50 } else { 100 }]);
            }
        }
    }
}

#[test]
fn many_small_datagrams_to_many_receivers_arrive() {
    let receivers = backends("127.0.0.1:0");
    for sender in backends("127.0.0.1:0") {
        let transmits: Vec<_> = (0..40_u8)
            .flat_map(|n| receivers.iter().map(move |to| transmit(address_of(&**to), &[n], None)))
            .collect();
        send_all(&*sender, &transmits);
        for receiver in &receivers {
            let datagrams = receive_datagrams(&**receiver, 40);
            assert_eq!(datagrams, (0..40_u8).map(|n| vec![n]).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_socket_of_both_families_reaches_both_and_names_ipv4_peers() {
    for dual in backends("[::]:0") {
        let Some(v4) = backends("127.0.0.1:0").pop() else { unreachable!() };
        send_all(&*dual, &[transmit(address_of(&*v4), b"to you", None)]);
        let mut received = Vec::new();
        v4.wait(Reader::Leader, Some(Duration::from_secs(10)));
        v4.recv(Amount::All, &mut Pool::default(), &mut received);
        send_all(&*v4, &[transmit(received[0].from, b"and back", None)]);
        received.clear();
        dual.wait(Reader::Leader, Some(Duration::from_secs(10)));
        dual.recv(Amount::All, &mut Pool::default(), &mut received);
        assert_eq!(received[0].bytes[..], *b"and back");
        assert_eq!(received[0].from, address_of(&*v4));
    }
}

#[test]
fn a_kernel_without_trains_gets_their_datagrams_one_by_one() {
    let sender =
        linux::Linux::new(UdpSocket::bind("127.0.0.1:0").unwrap().into()).unwrap().without_trains();
    let receivers = backends("127.0.0.1:0");
    let bytes = [7; 1_000];
    send_all(&sender, &[transmit(address_of(&*receivers[0]), &bytes, Some(300))]);
    let datagrams = receive_datagrams(&*receivers[0], 4);
    assert_eq!(datagrams.iter().map(Vec::len).collect::<Vec<_>>(), [300, 300, 300, 100]);
}

#[test]
fn a_datagram_too_long_is_distinguished_from_one_without_a_route() {
    let sender = linux::Linux::new(UdpSocket::bind("127.0.0.1:0").unwrap().into()).unwrap();
    let mut why = Vec::new();
    let too_long = transmit(address_of(&sender), &vec![0; 65_508], None);
    // A socket of loopback has no way to anywhere else.
    let no_way = transmit("192.0.2.1:9".parse().unwrap(), b"hello", None);
    sender.send(&[too_long], &mut |_, refused| why.push(refused));
    sender.send(&[no_way], &mut |_, refused| why.push(refused));
    assert_eq!(why[0], SendError::TooLong);
    assert!(matches!(why[1], SendError::Unreachable | SendError::Other), "{why:?}");
}

#[test]
fn the_kernels_drops_are_counted() {
    let receivers = backends("127.0.0.1:0");
    let receiver = &*receivers[0];
    receiver.socket().set_recv_buffer_size(4_096).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..100 {
        sender.send_to(&[1; 1_000], address_of(receiver)).unwrap();
    }
    let (mut pool, mut received) = (Pool::default(), Vec::new());
    while receiver.recv(Amount::All, &mut pool, &mut received) {}
    let arrived = received.len();
    received.clear();
    // The kernel reports with the next datagram that it takes.
    sender.send_to(&[1; 1_000], address_of(receiver)).unwrap();
    receiver.wait(Reader::Leader, Some(Duration::from_secs(10)));
    receiver.recv(Amount::All, &mut pool, &mut received);
    let drops = receiver.counters().kernel_drops.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(drops, 100 - arrived as u64);
    assert!(drops > 0);
}

#[test]
fn a_socket_reaches_itself_only_where_there_is_a_way() {
    let own = |address: &str, only_v6: bool, reaches: fn(IpAddr) -> bool| {
        let domain = socket2::Domain::for_address(address.parse().unwrap());
        let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None).unwrap();
        if domain == socket2::Domain::IPV6 {
            socket.set_only_v6(only_v6).unwrap();
        }
        socket.bind(&address.parse::<SocketAddr>().unwrap().into()).unwrap();
        linux::own_address(&socket, reaches).map(|own| own.ip().to_string())
    };
    for (address, only_v6, reaches, expected) in [
        ("0.0.0.0:0", false, (|_| true) as fn(IpAddr) -> bool, Some("127.0.0.1")),
        ("0.0.0.0:0", false, |_| false, None),
        ("127.0.0.1:0", false, |_| false, None),
        ("[::]:0", false, |_| true, Some("::1")),
        ("[::]:0", false, |ip| ip.is_ipv4(), Some("127.0.0.1")),
        ("[::]:0", true, |ip| ip.is_ipv4(), None),
        ("[::]:0", false, |_| false, None),
    ] {
        assert_eq!(own(address, only_v6, reaches).as_deref(), expected, "{address}, {only_v6}");
    }
}

#[test]
fn a_waiting_thread_is_called_away() {
    for net in backends("127.0.0.1:0") {
        let started = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| net.wait(Reader::Leader, Some(Duration::from_secs(60))));
            net.interrupt(Reader::Leader);
        });
        assert!(started.elapsed() < Duration::from_secs(60), "it waited to the end");
        let (mut pool, mut received) = (Pool::default(), Vec::new());
        net.recv(Amount::All, &mut pool, &mut received);
        assert!(received.is_empty(), "the call is not a datagram of anybody's");
    }
}
