//! How much senders may have under way.

use super::*;
use crate::inbox::{INITIAL_WINDOW_BYTES, KERNEL_BYTES};

fn config(receive_window_bytes: usize) -> Config {
    Config { receive_window_bytes, ..Config::default() }
}

fn other(sender: &Sender, port: u16) -> Sender {
    Sender { from: SocketAddr::from(([127, 0, 0, 1], port)), ..sender.clone() }
}

#[test]
fn a_status_comes_with_every_quarter_of_the_window() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::with(&config(100_000), &MailboxOptions::default());
    receiver.meet(&mut sender);
    let bytes = [0; 4_000];
    let mut statuses = 0;
    for step in 1..=100 {
        let sent = sender.data(&[&bytes]);
        receiver.take(&sender, &sent);
        receiver.messages();
        receiver.pop_all();
        if let Some(status) = receiver.statuses().pop() {
            statuses += 1;
            assert_eq!(status.window_bytes, 100_000);
            assert_eq!(status.highest, step + 1);
            assert_eq!(status.acknowledged_below, step + 1);
        }
    }
    let charged = 100 * (4_000 + 38 + KERNEL_BYTES);
    assert!((charged / 30_000..=charged / 25_000).contains(&statuses), "{statuses}");
    assert_eq!(receiver.inbox.next_deadline(), None, "no timer in a lossy flow without gaps");
}

#[test]
fn active_senders_share_the_sockets_buffer() {
    let mut receiver = Receiver::with(&config(100_000), &MailboxOptions::default());
    let mut first = Sender::new(FlowMode::Lossy);
    let mut second = other(&first, 6_000);
    receiver.meet(&mut first);
    receiver.meet(&mut second);
    let probe = first.probe(0);
    receiver.probe(&first, &probe);
    assert_eq!(receiver.status().window_bytes, 50_000);
    receiver.wait(2_000_000);
    let probe = first.probe(0);
    receiver.probe(&first, &probe);
    assert_eq!(receiver.status().window_bytes, 100_000, "the second is silent");
}

#[test]
fn many_senders_may_each_send_a_datagram_while_the_mailbox_has_room() {
    for mode in [FlowMode::Lossy, FlowMode::ReliableOrdered] {
        let mut receiver = Receiver::with(&config(100_000), &MailboxOptions::default());
        let mut senders: Vec<Sender> =
            (0..50).map(|at| other(&Sender::new(mode), 6_000 + at)).collect();
        senders.iter_mut().for_each(|sender| receiver.meet(sender));
        // One delivery stays in the mailbox all the time.
        for sender in &mut senders {
            let sent = sender.data(&[&[0; 8_000]]);
            receiver.take(sender, &sent);
            receiver.messages();
            receiver.answers();
        }
        for sender in &mut senders {
            let probe = sender.probe(0);
            receiver.probe(sender, &probe);
            let window = receiver.status().window_bytes;
            assert!((8_000..20_000).contains(&window), "{mode:?}: {window} of the buffer");
        }
    }
}

#[test]
fn a_mailbox_that_nobody_pops_closes_the_window_and_opens_it_again() {
    let options = MailboxOptions { bytes_max: 20_000, ..MailboxOptions::default() };
    let mut receiver = Receiver::with(&config(1 << 20), &options);
    let mut sender = Sender::new(FlowMode::Lossy);
    receiver.meet(&mut sender);
    let bytes = [0; 1_000];
    let probe = sender.probe(0);
    receiver.probe(&sender, &probe);
    let mut window = receiver.status().window_bytes as usize;
    assert!(window <= 20_000, "no more than the mailbox holds: {window}");
    let mut sent = 0;
    while window >= 1_000 + 38 + KERNEL_BYTES {
        let datagram = sender.data(&[&bytes]);
        receiver.take(&sender, &datagram);
        window -= 1_000 + 38 + KERNEL_BYTES;
        sent += 1;
        if let Some(status) = receiver.statuses().pop() {
            window = status.window_bytes as usize;
        }
        receiver.messages();
        assert!(sent < 100, "the window never closes");
    }
    assert_eq!(receiver.inbox.counters().mailbox_full, 0, "credit ends before");
    assert!(sent >= 15, "{sent}");
    receiver.pop_all();
    let status = receiver.status();
    assert!(status.window_bytes > 10_000, "{status:?}");
}

#[test]
fn what_does_not_fit_its_mailbox_is_counted_and_nothing_else_suffers() {
    let options = MailboxOptions { bytes_max: 3_000, ..MailboxOptions::default() };
    let mut receiver = Receiver::with(&config(1 << 20), &options);
    receiver.inbox.open(Mailbox(8), &MailboxOptions::default()).unwrap();
    let mut sender = Sender::new(FlowMode::Lossy);
    for _ in 0..5 {
        let sent = sender.data(&[&[0; 1_000], b"second"]);
        receiver.take(&sender, &sent);
    }
    let mut other = Sender { flow: 2, ..Sender::new(FlowMode::Lossy) };
    let mut sent = other.one();
    sent.header.mailbox = Mailbox(8);
    receiver.take(&other, &sent);
    assert_eq!(receiver.messages().len(), 2 * 2 + 1);
    let counters = receiver.inbox.counters();
    assert_eq!((counters.mailbox_full, counters.mailbox_full_messages), (3, 6));
    receiver.wait(60_000);
    assert_eq!(receiver.inbox.counters().lost_messages, 0, "they came, there was no room");
}

#[test]
fn a_new_sender_gets_credit_within_a_quarter_of_its_window() {
    let mut receiver = Receiver::with(&config(1 << 20), &MailboxOptions::default());
    let mut sender = Sender::new(FlowMode::Lossy);
    receiver.meet(&mut sender);
    let mut charged = 0;
    while receiver.statuses().is_empty() {
        let sent = sender.data(&[&[0; 1_000]]);
        receiver.take(&sender, &sent);
        charged += 1_038 + KERNEL_BYTES;
        assert!(charged <= (1 << 20) / 4 + 2_000);
    }
    assert!(charged > INITIAL_WINDOW_BYTES as usize / 4);
}

#[test]
fn a_sender_without_credit_gets_no_status_unless_it_probes() {
    let mut receiver = Receiver::new();
    let mut sender = Sender::new(FlowMode::Lossy);
    sender.flags = FlowMode::Lossy as u8;
    receiver.meet(&mut sender);
    for _ in 0..100 {
        let sent = sender.data(&[&[0; 1_000]]);
        receiver.take(&sender, &sent);
    }
    assert!(receiver.statuses().is_empty());
    let mut asking = sender.one();
    asking.header.flags |= flags::STATUS_WANTED;
    receiver.take(&sender, &asking);
    assert_eq!(receiver.status().highest, 102);
}

#[test]
fn a_sender_that_was_silent_has_its_share_again_when_it_speaks() {
    let mut receiver = Receiver::with(&config(100_000), &MailboxOptions::default());
    let mut first = Sender::new(FlowMode::Lossy);
    let mut second = other(&first, 6_000);
    receiver.meet(&mut first);
    receiver.meet(&mut second);
    receiver.wait(5_000_000);
    for _ in 0..2 {
        for sender in [&mut first, &mut second] {
            let probe = sender.probe(0);
            receiver.probe(sender, &probe);
            receiver.statuses();
        }
    }
    let probe = first.probe(0);
    receiver.probe(&first, &probe);
    assert_eq!(receiver.status().window_bytes, 50_000);
}

#[test]
fn a_message_larger_than_its_mailbox_passes_an_empty_one() {
    let options = MailboxOptions { bytes_max: 10_000, ..MailboxOptions::default() };
    for mode in [FlowMode::Lossy, FlowMode::ReliableUnordered, FlowMode::ReliableOrdered] {
        let mut receiver = Receiver::with(&config(1 << 20), &options);
        let mut sender = Sender::new(mode);
        receiver.meet(&mut sender);
        for sent in sender.fragments(&[b'x'; 50_000], 50) {
            receiver.take(&sender, &sent);
            receiver.wait(1_000);
            for status in receiver.statuses() {
                let open = status.window_bytes >= 1_000 || status.highest == 51;
                assert!(open, "{mode:?}: {status:?}");
            }
        }
        assert_eq!(receiver.messages().len(), 1, "{mode:?}");
    }
}

#[test]
fn an_ordered_flow_goes_on_when_others_took_the_memory() {
    let config = Config {
        receive_window_bytes: 1 << 20,
        reassembly_bytes_max: 50_000,
        message_bytes_max: 10_000,
        ..Config::default()
    };
    let mut receiver = Receiver::with(&config, &MailboxOptions::default());
    let mut stuck = Sender::new(FlowMode::ReliableOrdered);
    receiver.meet(&mut stuck);
    stuck.one();
    for _ in 0..100 {
        let sent = stuck.data(&[&[b'x'; 1_000]]);
        receiver.take(&stuck, &sent);
    }
    assert!(receiver.inbox.counters().reassembly_full > 0);
    receiver.statuses();
    let mut free = other(&Sender::new(FlowMode::ReliableOrdered), 6_000);
    receiver.meet(&mut free);
    let probe = free.probe(0);
    receiver.probe(&free, &probe);
    assert!(receiver.status().window_bytes >= INITIAL_WINDOW_BYTES);
}

#[test]
fn a_message_whose_end_waits_for_room_is_not_given_up() {
    let options = MailboxOptions { bytes_max: 20_000, ..MailboxOptions::default() };
    let mut receiver = Receiver::with(&config(1 << 20), &options);
    let mut sender = Sender::new(FlowMode::Lossy);
    receiver.meet(&mut sender);
    let whole = sender.data(&[&[b'x'; 8_000]]);
    receiver.take(&sender, &whole);
    let mut sent = sender.fragments(&[b'y'; 10_000], 5);
    sent[3].header.flags |= flags::STATUS_WANTED;
    receiver.take_all(&sender, &sent[..4]);
    assert_eq!(receiver.messages().len(), 1);
    assert_eq!(receiver.statuses().pop().unwrap().window_bytes, 0);
    receiver.wait(10_000_000);
    receiver.pop_all();
    assert!(receiver.status().window_bytes > 2_000);
    receiver.take(&sender, &sent[4]);
    assert_eq!(receiver.messages().len(), 1);
    assert_eq!(receiver.inbox.counters().lost_messages, 0);
}
