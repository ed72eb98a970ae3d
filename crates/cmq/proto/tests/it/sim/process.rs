//! A process: one endpoint, its driver and its application.

use std::collections::VecDeque;
use std::net::SocketAddr;

use fastrand::Rng;
use quelea_cmq_proto::config::PreSharedKey;
use quelea_cmq_proto::limits::OUTBOX_BYTES_MIN;
use quelea_cmq_proto::{
    Config, Delivery, DestinationId, DestinationOptions, Endpoint, Key, Mailbox, MailboxOptions,
    Peer, PeerCounts, Repair, Time,
};

use super::message::MESSAGE_BYTES_MAX;
use super::plan::Plan;

/// A mailbox takes what it waits for, though it is full: one datagram more.
const BEYOND_BYTES: usize = 65_507;

/// How a process stands at the end of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct End {
    pub(crate) life: u16,
    /// Messages for which its mailboxes or its memory had no room.
    pub(crate) no_room: u64,
    /// Messages that are missing by the numbers of senders that had proven nothing.
    pub(crate) unproven_lost: u64,
    /// How often it began a flow anew, since the receiver had.
    pub(crate) restarts: u64,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    /// None while the process is down.
    pub(crate) endpoint: Option<Endpoint>,
    /// How often it was started before.
    pub(crate) life: u16,
    /// How often its mailboxes were closed, by itself or with it.
    pub(crate) closings: u16,
    /// Whether the application pops nothing.
    pub(crate) stalled: bool,
    /// Delivered, not yet popped.
    pub(crate) ring: VecDeque<Delivery>,
    /// The flows that begin here, by their numbers in the plan.
    pub(crate) destinations: Vec<(usize, DestinationId)>,
}

impl Process {
    pub(crate) const fn down(address: SocketAddr) -> Self {
        Self {
            address,
            endpoint: None,
            life: 0,
            closings: 0,
            stalled: false,
            ring: VecDeque::new(),
            destinations: Vec::new(),
        }
    }

    /// Starts the process as its part in the plan says.
    pub(crate) fn start(
        &mut self,
        plan: &Plan,
        number: usize,
        addresses: &[SocketAddr],
        path_bytes: usize,
    ) {
        let config = Config {
            receive_window_bytes: plan.receive_window_bytes,
            outbox_bytes_max: plan.outbox_bytes,
            reassembly_bytes_max: plan.reassembly_bytes,
            message_bytes_max: MESSAGE_BYTES_MAX,
            pre_shared_key: plan.sealed.then_some(PreSharedKey([7; 32])),
            ..Config::default()
        };
        let own = ((number as u64) << 48) ^ (u64::from(self.life) << 40);
        let mut rng = Rng::with_seed(plan.seed.0 ^ own);
        let mut seed = [0; 32];
        rng.fill(&mut seed);
        let mut endpoint = Endpoint::new(config, seed);
        self.destinations.clear();
        for (index, flow) in plan.flows.iter().enumerate() {
            if flow.from == number {
                let key = Key::new(addresses[flow.to], index as u64);
                let options = DestinationOptions {
                    mode: flow.mode,
                    repair: flow.repair,
                    credit: flow.credit,
                    path_bytes,
                    ..DestinationOptions::default()
                };
                let id = endpoint.destination(key, options).unwrap();
                self.destinations.push((index, id));
            }
        }
        self.endpoint = Some(endpoint);
        self.open(plan, number);
    }

    /// Opens its mailboxes.
    pub(crate) fn open(&mut self, plan: &Plan, number: usize) {
        let Some(endpoint) = &mut self.endpoint else { return };
        for (index, flow) in plan.flows.iter().enumerate().filter(|(_, flow)| flow.to == number) {
            let options = MailboxOptions {
                bytes_max: plan.mailbox_bytes,
                acknowledged_by_application: flow.by_application,
            };
            endpoint.open_mailbox(Mailbox(index as u64), options).unwrap();
        }
    }

    /// Closes its mailboxes.
    pub(crate) fn close(&mut self, plan: &Plan, number: usize) {
        let Some(endpoint) = &mut self.endpoint else { return };
        for (index, _) in plan.flows.iter().enumerate().filter(|(_, flow)| flow.to == number) {
            endpoint.close_mailbox(Mailbox(index as u64));
        }
        self.ring.clear();
        self.closings += 1;
    }

    /// Ends the process as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.check_peers();
        self.endpoint = None;
        self.stalled = false;
        self.ring.clear();
        self.destinations.clear();
        self.life += 1;
        self.closings += 1;
    }

    pub(crate) fn next_us(&self) -> Option<u64> {
        self.endpoint.as_ref()?.next_deadline().map(Time::as_micros)
    }

    /// Memory is bounded whatever comes.
    pub(crate) fn check_bounds(&self, plan: &Plan) {
        let Some(endpoint) = &self.endpoint else { return };
        // Parity of what was taken comes on top, with its headers.
        let parity = plan.flows.iter().map(|flow| match flow.repair {
            Repair::None => 0,
            Repair::Xor { data } => 100 / usize::from(data),
            Repair::ReedSolomon { data, parity } => 100 * usize::from(parity) / usize::from(data),
        });
        let percent = parity.max().filter(|&parity| parity > 0).map_or(100, |parity| 110 + parity);
        let most = plan.outbox_bytes.max(OUTBOX_BYTES_MIN) * percent / 100;
        let held = endpoint.outbox_bytes();
        assert!(held <= most, "{held} of {most} bytes are held to be sent");
        let (held, least) = (endpoint.reassembly_bytes(), 2 * MESSAGE_BYTES_MAX * 9 / 8);
        let most = plan.reassembly_bytes.max(least);
        assert!(held <= most, "{held} of {most} bytes wait for something missing");
        let popped: usize = self.ring.iter().map(|delivery| delivery.batch.len()).sum();
        let most = (plan.mailbox_bytes + BEYOND_BYTES) * plan.flows.len();
        assert!(popped <= most, "{popped} of {most} bytes wait to be popped");
    }

    /// What is counted of each peer makes what is counted of all.
    fn check_peers(&self) {
        let Some(endpoint) = &self.endpoint else { return };
        let mut sum = endpoint.forgotten_peers();
        let mut next = Some(0);
        while let Some(from) = next {
            let page = endpoint.peers(from);
            page.peers.iter().for_each(|peer| sum += believed(peer));
            next = page.next;
        }
        let stats = endpoint.stats();
        let received = stats.received;
        // Some never came to a flow: of malformed ones and of replays, not all are of one either.
        let flowless = received.unknown_mailbox
            + received.old_session
            + stats.dropped.malformed.iter().sum::<u64>();
        assert!(sum.datagrams <= received.datagrams, "{sum:?}, {stats:?}");
        assert!(received.datagrams <= sum.datagrams + flowless, "{sum:?}, {stats:?}");
        assert!(received.duplicates <= sum.duplicates, "{sum:?}, {stats:?}");
        let most = received.duplicates + stats.dropped.replayed;
        assert!(sum.duplicates <= most, "{sum:?}, {stats:?}");
        let expected = PeerCounts {
            datagrams: sum.datagrams,
            messages: received.messages,
            lost_datagrams: received.lost_datagrams,
            lost_messages: received.lost_messages,
            mailbox_full_messages: received.mailbox_full_messages,
            duplicates: sum.duplicates,
            reordered: received.reordered,
            late: received.late,
            repaired: received.repaired,
            restarts: received.restarts,
        };
        assert_eq!(sum, expected);
    }

    pub(crate) fn end(&self) -> End {
        self.check_peers();
        let stats = self.endpoint.as_ref().map(Endpoint::stats);
        let no_room = stats.map_or(0, |stats| stats.received.mailbox_full_messages);
        let unproven_lost = stats.map_or(0, |stats| stats.received.unproven_lost_messages);
        let restarts = stats.map_or(0, |stats| stats.sent.restarts);
        End { life: self.life, no_room, unproven_lost, restarts }
    }

    /// Returns whether nothing that was pushed here waits for anything, and nothing for the
    /// application.
    pub(crate) fn is_settled(&self) -> bool {
        let Some(endpoint) = &self.endpoint else { return false };
        self.ring.is_empty() && self.destinations.iter().all(|&(_, id)| endpoint.is_settled(id))
    }
}

/// Returns what was counted of a peer, without what it says to have sent and has not proven.
fn believed(peer: &Peer) -> PeerCounts {
    if peer.proven {
        return peer.counts;
    }
    PeerCounts { lost_datagrams: 0, lost_messages: 0, ..peer.counts }
}
