//! Two endpoints, end to end.

use std::time::Duration;

use quelea_cmq_proto::wire::Kind;
use quelea_cmq_proto::{Config, DestinationOptions, Endpoint, Event, Mode, PushError};

use crate::pair::{EndpointPair, Fate, MAILBOX, messages};

fn lossy() -> DestinationOptions {
    DestinationOptions::default()
}

pub(crate) fn in_mode(mode: Mode) -> DestinationOptions {
    DestinationOptions { mode, ..DestinationOptions::default() }
}

pub(crate) const ALL_MODES: [Mode; 5] = [
    Mode::Lossy,
    Mode::LatestOnly,
    Mode::ReliableUnordered,
    Mode::ReliableOrdered,
    Mode::ReliableUntil(Duration::from_secs(5)),
];

/// Loses every so many-th datagram of data.
pub(crate) fn losing_every(nth: u64) -> Box<dyn FnMut(&crate::pair::Datagram) -> Fate> {
    let mut count = 0;
    Box::new(move |datagram| {
        count += u64::from(datagram.kind() == Some(Kind::Data));
        let lost = datagram.kind() == Some(Kind::Data) && count % nth == 0;
        if lost { Fate::Lost } else { Fate::Arrives }
    })
}

#[test]
fn what_is_pushed_is_delivered_in_every_mode() {
    for mode in ALL_MODES {
        let mut pair = EndpointPair::new(Config::default());
        let to = pair.destination(in_mode(mode));
        let sent = messages(20_000, 64);
        pair.push_all(to, &sent);
        pair.run();
        assert!(pair.received == sent, "{mode:?}: {} of 20,000", pair.received.len());
        assert!(pair.client.is_settled(to), "{mode:?}");
        let stats = pair.server.stats();
        assert_eq!(stats.received.lost_messages, 0, "{mode:?}");
        assert_eq!(stats.dropped.total() + pair.client.stats().dropped.total(), 0, "{mode:?}");
        assert_eq!(pair.client.stats().sent.messages, 20_000, "{mode:?}");
    }
}

#[test]
fn a_batch_leaves_whole_at_its_timeout() {
    let mut pair = EndpointPair::new(Config::default());
    let to = pair.destination(lossy());
    let sent = messages(100, 64);
    pair.push_all(to, &sent);
    assert_eq!(pair.client.next_deadline(), Some(pair.now.plus_us(1_000)));
    pair.run_for(Duration::from_micros(999));
    assert_eq!(pair.client.stats().sent.trains, 0, "it is not old enough");
    pair.run_for(Duration::from_micros(51));
    assert_eq!(pair.client.stats().sent.trains, 1);
    assert!(pair.received == sent);
}

#[test]
fn nothing_is_due_when_all_is_done() {
    for mode in ALL_MODES {
        let mut pair = EndpointPair::new(Config::default());
        let to = pair.destination(in_mode(mode));
        assert_eq!(pair.client.next_deadline(), None);
        pair.push_all(to, messages(1_000, 100));
        pair.run();
        assert_eq!(pair.client.next_deadline(), None, "{mode:?}");
        assert_eq!(pair.server.next_deadline(), None, "{mode:?}");
    }
}

#[test]
fn losses_of_a_lossy_flow_are_counted_to_the_message() {
    let mut pair = EndpointPair::new(Config::default());
    pair.network = losing_every(10);
    let to = pair.destination(lossy());
    pair.push_all(to, messages(50_000, 64));
    pair.client.flush(to);
    pair.run();
    let stats = pair.server.stats().received;
    assert!(stats.lost_messages > 4_000, "{stats:?}");
    assert_eq!(stats.lost_messages + pair.received.len() as u64, 50_000);
    let reported: u64 = pair
        .events
        .iter()
        .map(|event| if let Event::Lost { messages, .. } = event { *messages } else { 0 })
        .sum();
    assert_eq!(reported, stats.lost_messages);
}

#[test]
fn reliable_modes_deliver_everything_once_whatever_is_lost() {
    for mode in [
        Mode::ReliableUnordered,
        Mode::ReliableOrdered,
        Mode::ReliableUntil(Duration::from_secs(50)),
    ] {
        for nth in [2, 7, 50] {
            let mut pair = EndpointPair::new(Config::default());
            pair.network = losing_every(nth);
            let to = pair.destination(in_mode(mode));
            let sent = messages(10_000, 100);
            pair.push_all(to, &sent);
            pair.run();
            if !mode.is_ordered() {
                pair.received
                    .sort_by_key(|message| message[..4].iter().rev().copied().collect::<Vec<_>>());
            }
            assert!(pair.received == sent, "{mode:?}, {nth}: {}", pair.received.len());
            assert!(pair.client.is_settled(to));
            assert_eq!(pair.server.stats().received.lost_messages, 0);
        }
    }
}

#[test]
fn large_messages_go_in_fragments_in_every_mode() {
    for mode in ALL_MODES {
        let mut pair = EndpointPair::new(Config::default());
        let to = pair.destination(in_mode(mode));
        let sent: Vec<Vec<u8>> = [10, 1_195, 1_196, 1_232, 5_000, 100_000, 1 << 20, 3]
            .iter()
            .map(|len| (0..*len).map(|at| (at / 11) as u8).collect())
            .collect();
        pair.push_all(to, &sent);
        pair.run();
        let sizes: Vec<_> = pair.received.iter().map(Vec::len).collect();
        assert!(pair.received == sent, "{mode:?}: {sizes:?} {:?}", pair.server.stats());
    }
}

#[test]
fn a_receiver_that_takes_nothing_holds_the_sender_back() {
    for mode in [Mode::Lossy, Mode::ReliableUnordered, Mode::ReliableOrdered] {
        let mut pair = EndpointPair::new(Config::default());
        pair.pops = false;
        let to = pair.destination(in_mode(mode));
        let mut pushed = 0;
        for message in messages(20_000, 8_000) {
            match pair.push(to, &message) {
                Ok(()) => pushed += 1,
                Err(refused) => {
                    assert_eq!(refused, PushError::WouldBlock);
                    pair.run_for(Duration::from_millis(5));
                    if pair.push(to, &message).is_err() {
                        break;
                    }
                    pushed += 1;
                }
            }
        }
        assert!((4_000..20_000).contains(&pushed), "{mode:?}: {pushed}");
        let held: usize = pair.deliveries.iter().map(|delivery| delivery.batch.len()).sum();
        assert!(held <= 64 << 20, "{held}");
        pair.pops = true;
        pair.run();
        assert_eq!(pair.received.len(), pushed, "{mode:?}");
        assert_eq!(pair.server.stats().received.mailbox_full_messages, 0);
    }
}

#[test]
fn a_closed_destination_says_so_when_all_has_arrived_and_is_forgotten() {
    for mode in ALL_MODES {
        let mut pair = EndpointPair::new(Config::default());
        pair.network = losing_every(5);
        let to = pair.destination(in_mode(mode));
        pair.push_all(to, messages(5_000, 100));
        pair.client.close_destination(to);
        assert_eq!(pair.push(to, b"more"), Err(PushError::Closed));
        pair.run();
        let ended = pair.events.last();
        assert!(
            matches!(ended, Some(Event::Ended { mailbox: MAILBOX, .. })),
            "{mode:?}: {ended:?}"
        );
        assert_eq!(pair.push(to, b"more"), Err(PushError::Closed));
        let key = quelea_cmq_proto::Key { address: pair.server_address, mailbox: MAILBOX };
        assert_eq!(pair.client.find(&key), None);
        let again = pair.destination(in_mode(mode));
        pair.push_all(again, [b"again"]);
        pair.network = Box::new(|_| Fate::Arrives);
        pair.run();
        assert_eq!(pair.received.last().map(Vec::as_slice), Some(&b"again"[..]), "{mode:?}");
    }
}

#[test]
fn a_farewell_called_for_too_early_is_said_in_time() {
    let mut pair = EndpointPair::new(Config::default());
    let to = pair.destination(DestinationOptions { credit: false, ..lossy() });
    pair.push_all(to, [b"hello"]);
    pair.client.close_destination(to);
    pair.run_for(Duration::from_micros(1));
    let next = pair.client.next_deadline().unwrap();
    assert!(next > pair.now);
    pair.client.on_timer(next);
    pair.run();
    assert_eq!(pair.client.stats().sent.destinations, 0, "it is closed and forgotten");
}

#[test]
fn what_comes_twice_or_late_is_delivered_once() {
    for mode in [Mode::Lossy, Mode::ReliableUnordered, Mode::ReliableOrdered] {
        let mut pair = EndpointPair::new(Config::default());
        let mut count = 0_u64;
        pair.network = Box::new(move |_| {
            count += 1;
            match count % 5 {
                0 => Fate::Twice,
                1 => Fate::Late(count % 300),
                _ => Fate::Arrives,
            }
        });
        let to = pair.destination(in_mode(mode));
        let sent = messages(10_000, 100);
        pair.push_all(to, &sent);
        pair.run();
        if !mode.is_ordered() {
            sort(&mut pair.received);
        }
        assert!(pair.received == sent, "{mode:?}: {}", pair.received.len());
        assert!(pair.server.stats().received.duplicates > 0);
    }
}

#[test]
fn a_restarted_receiver_gets_what_the_first_had_not_taken() {
    for mode in [Mode::ReliableUnordered, Mode::ReliableOrdered] {
        let mut pair = EndpointPair::new(Config::default());
        let to = pair.destination(in_mode(mode));
        let (first, second) = (messages(5_000, 100), messages(3_000, 90));
        pair.push_all(to, &first);
        pair.run_for(Duration::from_micros(120));
        let taken = pair.received.len();
        pair.restart_server(Config::default());
        pair.push_all(to, &second);
        pair.run();
        assert!(pair.client.is_settled(to), "{mode:?}");
        assert_eq!(pair.client.stats().sent.restarts, u64::from(taken > 0), "{mode:?}");
        for message in first.iter().chain(&second) {
            assert!(pair.received.contains(message), "{mode:?}: {taken} were taken");
        }
        // Once more at most: what was taken and not acknowledged.
        assert!(pair.received.len() <= 8_000 + taken, "{mode:?}");
    }
}

/// Starts the receiver anew in the midst of a flow: a repetition is all that it hears of that, and what
/// is left comes in another flow.
fn restarted_in_the_midst(mode: Mode) -> EndpointPair {
    let mut pair = EndpointPair::new(Config::default());
    let to = pair.destination(in_mode(mode));
    pair.push_all(to, messages(100, 5_000));
    pair.run();
    pair.network = Box::new(|_| Fate::Lost);
    pair.push_all(to, messages(5, 5_000));
    pair.run_for(Duration::from_micros(1_500));
    pair.restart_server(Config::default());
    pair.network = Box::new(|_| Fate::Arrives);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client.is_settled(to), "{mode:?}");
    assert_eq!(pair.received.len(), 105, "{mode:?}");
    assert_eq!(pair.server.stats().received.proven, 2, "{mode:?}: one is that of a repetition");
    pair
}

fn assert_none_lost(pair: &EndpointPair, mode: Mode) {
    assert_eq!(pair.server.stats().received.lost_messages, 0, "{mode:?}");
    let lost = pair.events.iter().find(|event| matches!(event, Event::Lost { .. }));
    assert_eq!(lost, None, "{mode:?}");
}

const REPEATING: [Mode; 3] =
    [Mode::ReliableUnordered, Mode::ReliableOrdered, Mode::ReliableUntil(Duration::from_secs(50))];

#[test]
fn what_came_in_another_flow_after_a_restart_is_never_lost() {
    for mode in REPEATING {
        let mut pair = restarted_in_the_midst(mode);
        pair.run_for(Duration::from_secs(200));
        assert_none_lost(&pair, mode);
        assert_eq!(pair.server.reassembly_bytes(), 0, "{mode:?}");
    }
}

#[test]
fn a_sender_that_restarts_behind_its_receiver_has_lost_nothing() {
    for mode in REPEATING {
        let mut pair = restarted_in_the_midst(mode);
        pair.client = Endpoint::new(Config::default(), [4; 32]);
        let to = pair.destination(in_mode(mode));
        pair.push_all(to, messages(1, 5_000));
        pair.run_for(Duration::from_secs(1));
        assert!(pair.events.iter().any(|event| matches!(event, Event::Restarted { .. })));
        assert_none_lost(&pair, mode);
    }
}

/// By the number that each message begins with.
pub(crate) fn sort(messages: &mut [Vec<u8>]) {
    messages.sort_by_key(|message| {
        u32::from_le_bytes([message[0], message[1], message[2], message[3]])
    });
}
