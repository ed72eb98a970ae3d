//! No peer, however silent, holds up a call beyond its time, and no failure of a handler is for ever.

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use quelea_cmq::gap_detector::GapDetectorOptions;
use quelea_cmq::responder::ResponderOptions;
use quelea_cmq::{
    Caller, Dest, DestinationOptions, Endpoint, GapDetector, Key, MailboxOptions, Mode, OnLoss,
    PushError, Replace, Replay, Responder,
};

use crate::ends::*;

const SHORT: Duration = Duration::from_millis(20);

/// Returns a socket that hears and says nothing, and the destination there with no room left.
fn silent(from: &Endpoint) -> (UdpSocket, Dest) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let key = Key::new(socket.local_addr().unwrap(), 0);
    let options =
        DestinationOptions { mode: Mode::ReliableOrdered, ..DestinationOptions::default() };
    let dest = from.dest(key, options).unwrap();
    while dest.try_push(&[0; 10]) == Ok(()) {}
    (socket, dest)
}

#[test]
fn a_request_waits_for_room_within_its_time() {
    let a = endpoint();
    let (_socket, dest) = silent(&a);
    let options =
        DestinationOptions { mode: Mode::ReliableOrdered, ..DestinationOptions::default() };
    let caller = Caller::new(&a, dest.key(), options).unwrap();
    let asked = caller.request(b"are you there", SHORT, OnLoss::Fail);
    assert_eq!(asked.err(), Some(PushError::WouldBlock));
    assert_eq!(caller.outstanding(), 0);
}

#[test]
fn a_sender_attends_within_its_time() {
    let a = endpoint();
    let (_socket, dest) = silent(&a);
    let mut replay = Replay::new(dest.clone(), queue(&a, 1), 10);
    assert_eq!(replay.attend(SHORT), Err(PushError::WouldBlock));
    let mut replace = Replace::new(dest, queue(&a, 2));
    assert_eq!(replace.attend(SHORT, |_| None), Err(PushError::WouldBlock));
}

/// Returns a request as docs/cmq/library.md has it.
fn request(id: u64, reply_to: u64) -> Vec<u8> {
    [&[1][..], &id.to_le_bytes(), &reply_to.to_le_bytes()].concat()
}

#[test]
fn a_caller_that_takes_nothing_does_not_hold_up_the_server() {
    let (a, b) = (endpoint(), endpoint());
    let responder = Responder::new(queue(&b, 0), ResponderOptions::default());
    let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
    for id in 0..8 {
        dest.push(&request(id, 1)).unwrap();
    }
    dest.flush();
    let requests: Vec<_> = (0..8).map(|_| responder.next_timeout(LONG).unwrap()).collect();
    assert!(dest.wait_acknowledged(LONG).is_acknowledged());
    a.close(LONG).unwrap();
    let answers: Vec<_> =
        requests.iter().map(|request| responder.answer(request, &[0; 200_000])).collect();
    assert_eq!(answers.first(), Some(&Ok(())));
    assert_eq!(answers.last(), Some(&Err(PushError::WouldBlock)));
}

#[test]
fn a_number_far_ahead_is_requested_in_part_and_given_up() {
    let (a, b) = (endpoint(), endpoint());
    let options = GapDetectorOptions { asks_max: 2, ..GapDetectorOptions::default() };
    let mut detector = GapDetector::new(queue(&b, 0), options);
    let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
    // A message, numbered far ahead: a report names 64 of those before it, and so does the next.
    let message = [&[1][..], &7_u64.to_le_bytes(), &1_000_000_u64.to_le_bytes(), b"late"].concat();
    dest.push(&message).unwrap();
    dest.flush();
    assert_eq!(&detector.pop_timeout(LONG).unwrap().bytes[..], b"late");
    while detector.lost() < 4_096 {
        assert!(detector.pop_timeout(SHORT).is_none());
    }
    assert_eq!((detector.lost(), detector.reported()), (4_096, 2 * 4_096));
}

#[test]
fn a_request_that_was_dropped_unanswered_may_be_asked_again() {
    let (a, b) = (endpoint(), endpoint());
    let responder = Responder::new(queue(&b, 0), ResponderOptions::default());
    let server = Key::new(b.local_addr(), 0);
    let caller = Caller::new(&a, server, DestinationOptions::default()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let failed = responder.next_timeout(LONG).unwrap();
            drop(failed);
            let request = responder.next_timeout(LONG).unwrap();
            responder.answer(&request, b"done").unwrap();
            // Answered and dropped, it is remembered: another one of the same is not done again.
            drop(request);
            b.flush();
        });
        let on_loss = OnLoss::Resend { times: 1_000 };
        let pending = caller.request(b"do it", SHORT, on_loss).unwrap();
        assert_eq!(&pending.wait().unwrap()[..], b"done");
    });
    let raw = dest(&a, &b, 0, Mode::Lossy);
    let reply_to = a.queue(9, MailboxOptions::default()).unwrap();
    raw.push(&request(1, 9)).unwrap();
    raw.flush();
    // The resent ones of before may stand before it.
    let first = responder.next_timeout(LONG).unwrap();
    responder.answer(&first, b"once").unwrap();
    drop(first);
    b.flush();
    assert_eq!(&reply_to.pop_timeout(LONG).unwrap().bytes[9..], b"once");
    let before = responder.repeated();
    raw.push(&request(1, 9)).unwrap();
    raw.flush();
    while responder.repeated() == before {
        assert!(responder.next_timeout(SHORT).is_none());
    }
    b.flush();
    assert_eq!(&reply_to.pop_timeout(LONG).unwrap().bytes[9..], b"once");
}
