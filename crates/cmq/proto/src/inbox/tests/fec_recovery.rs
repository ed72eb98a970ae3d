//! Flows with parity.

use super::*;
use crate::mode::Repair;
use crate::repair::GroupEncoder;

/// A flow whose every `data` datagrams are followed by parity.
struct Careful {
    sender: Sender,
    encoder: GroupEncoder,
}

impl Careful {
    fn new(mode: FlowMode, repair: Repair) -> (Self, Receiver) {
        let mut sender = Sender::new(mode);
        let receiver = Receiver::proven(&mut sender);
        (Self { sender, encoder: GroupEncoder::new(repair).unwrap() }, receiver)
    }

    /// Returns so many datagrams with a message each, and the parity behind each full group.
    fn send(&mut self, count: usize) -> Vec<Sent> {
        let mut sent = Vec::new();
        for _ in 0..count {
            let data = self.sender.one();
            self.add(data, &mut sent);
        }
        sent
    }

    /// Returns the datagrams of one message, and the parity behind them: they are a group.
    fn fragments(&mut self, message: &[u8], fragments: u32) -> Vec<Sent> {
        let mut sent = Vec::new();
        for data in self.sender.fragments(message, fragments) {
            self.add(data, &mut sent);
        }
        sent
    }

    fn add(&mut self, mut data: Sent, sent: &mut Vec<Sent>) {
        data.header.flags |= flags::REPAIR;
        let full = self.encoder.add(&data.header, &data.body);
        sent.push(data);
        if full {
            let sender = &mut self.sender;
            self.encoder.finish(|head, parity| {
                let header = sender.header(Kind::Parity, sender.sequence, 0);
                sender.sequence += 1;
                let mut body = Vec::new();
                head.write(&mut body);
                body.extend_from_slice(parity);
                sent.push(Sent { header, body: body.into() });
            });
        }
    }
}

fn take(receiver: &mut Receiver, sender: &Sender, sent: &Sent) -> Result<(), Malformed> {
    let arrived = Arrived {
        from: sender.from,
        header: &sent.header,
        buffer: &sent.body,
        body: 0..sent.body.len(),
        bytes: HEADER_BYTES + sent.body.len(),
        now: receiver.now,
    };
    let taken = match sent.header.kind {
        Kind::Parity => receiver.inbox.on_parity(&arrived),
        _ => receiver.inbox.on_data(&arrived),
    };
    taken.map(|_| ())
}

#[test]
fn a_lost_datagram_comes_back_with_the_parity() {
    for mode in [FlowMode::Lossy, FlowMode::ReliableOrdered] {
        let (mut careful, mut receiver) = Careful::new(mode, Repair::Xor { data: 4 });
        let sent = careful.send(8);
        for (at, sent) in sent.iter().enumerate() {
            if at != 2 && at != 5 {
                take(&mut receiver, &careful.sender, sent).unwrap();
            }
        }
        let mut numbers = receiver.numbers();
        if mode == FlowMode::Lossy {
            numbers.sort_unstable();
        }
        assert_eq!(numbers, (1..=8).collect::<Vec<_>>(), "{mode:?}");
        receiver.wait(60_000);
        let counters = receiver.inbox.counters();
        assert_eq!((counters.repaired, counters.reordered, counters.lost_messages), (2, 0, 0));
    }
}

#[test]
fn as_many_come_back_as_there_are_parities() {
    let repair = Repair::ReedSolomon { data: 6, parity: 2 };
    let (mut careful, mut receiver) = Careful::new(FlowMode::Lossy, repair);
    let sent = careful.send(12);
    for (at, sent) in sent.iter().enumerate() {
        // Two of the first group, three of the second.
        if ![1, 4, 8, 9, 10].contains(&at) {
            take(&mut receiver, &careful.sender, sent).unwrap();
        }
    }
    receiver.wait(60_000);
    assert_eq!(receiver.messages().len(), 12 - 3);
    let counters = receiver.inbox.counters();
    assert_eq!((counters.repaired, counters.lost_messages, counters.lost_datagrams), (2, 3, 3));
}

#[test]
fn a_first_fragment_lost_with_what_was_before_it_comes_back() {
    let text = "long".repeat(500);
    for mode in [FlowMode::Lossy, FlowMode::LatestOnly] {
        let (mut careful, mut receiver) = Careful::new(mode, Repair::Xor { data: 4 });
        let [before, message] = [careful.send(4), careful.fragments(text.as_bytes(), 4)];
        let [before @ .., _lost_parity] = &before[..] else { panic!("five datagrams") };
        let [_lost_first, fragments @ .., parity] = &message[..] else { panic!("five datagrams") };
        for sent in before.iter().chain(fragments) {
            take(&mut receiver, &careful.sender, sent).unwrap();
        }
        assert_eq!(receiver.numbers().len(), 4);
        // The others come slowly: what is missing is given up, but not what parity may bring.
        receiver.wait(500_000);
        assert_eq!(receiver.inbox.counters().lost_datagrams, 1, "{mode:?}");
        take(&mut receiver, &careful.sender, parity).unwrap();
        assert_eq!(receiver.messages(), [&text[..]], "{mode:?}");
        receiver.wait(2_000_000);
        let counters = receiver.inbox.counters();
        assert_eq!((counters.repaired, counters.lost_messages, counters.lost_datagrams), (1, 0, 1));
    }
}

#[test]
fn lost_parity_is_no_lost_message() {
    let (mut careful, mut receiver) = Careful::new(FlowMode::Lossy, Repair::Xor { data: 2 });
    let sent = careful.send(4);
    for sent in sent.iter().filter(|sent| sent.header.kind == Kind::Data) {
        take(&mut receiver, &careful.sender, sent).unwrap();
    }
    receiver.wait(60_000);
    let counters = receiver.inbox.counters();
    assert_eq!((counters.lost_messages, counters.lost_datagrams), (0, 1), "the last is not missed");
}

#[test]
fn parity_that_recovers_nonsense_is_malformed_and_the_loss_stays_a_loss() {
    let (mut careful, mut receiver) = Careful::new(FlowMode::Lossy, Repair::Xor { data: 2 });
    let mut sent = careful.send(2);
    let mut body = sent[2].body.to_vec();
    body[14] ^= 0xff;
    sent[2].body = body.into();
    take(&mut receiver, &careful.sender, &sent[0]).unwrap();
    assert!(take(&mut receiver, &careful.sender, &sent[2]).is_err());
    receiver.wait(60_000);
    assert_eq!(receiver.messages().len(), 1);
    assert_eq!(receiver.inbox.counters().lost_messages, 1);
}

#[test]
fn what_is_kept_to_recover_with_is_bounded_over_all_flows() {
    let config =
        Config { reassembly_bytes_max: 50_000, message_bytes_max: 2_000, ..Config::default() };
    let mut receiver = Receiver::with(&config, &MailboxOptions::default());
    for port in 1..100 {
        let from = SocketAddr::from(([127, 0, 0, 1], port));
        let mut sender = Sender { from, ..Sender::new(FlowMode::Lossy) };
        receiver.meet(&mut sender);
        for _ in 0..10 {
            let mut data = sender.data(&[&[b'x'; 1_000]]);
            data.header.flags |= flags::REPAIR;
            receiver.take(&sender, &data);
            assert!(receiver.inbox.waiting_bytes() <= 50_000);
        }
    }
    assert_eq!(receiver.inbox.counters().messages, 99 * 11, "none is refused for that");
}
