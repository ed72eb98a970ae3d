//! Listeners that may miss what was acknowledged. Relays report them before the acknowledgement; they are
//! sent MISSED where messages are sent again, since a listener takes what is not sent again for what it has.

use std::collections::{BTreeMap, VecDeque};

use super::ProducerSession;
use crate::frame::Frame;
use crate::limits::MISSED_MAX;
use crate::session::Link;
use crate::{ClientId, MessageSeq};

/// What one listener may miss.
#[derive(Debug)]
pub(super) struct Missed {
    /// Which relay reported it; `None`: of a relay that acknowledges nothing any more.
    link: Option<Link>,
    listener: ClientId,
    below: MessageSeq,
}

impl ProducerSession {
    /// MISSED: a relay's last report of a listener counts.
    pub(super) fn note_missed(&mut self, link: Link, listener: ClientId, below: MessageSeq) {
        if !self.attachments.iter().any(|attachment| attachment.link == link) {
            return;
        }
        self.missed.retain(|of| (of.link, of.listener) != (Some(link), listener));
        self.missed.push_back(Missed { link: Some(link), listener, below });
        if self.missed.len() > MISSED_MAX {
            self.missed.pop_front();
        }
    }

    /// What the relay of this connection acknowledged has its end.
    pub(super) fn missed_ends(&mut self, link: Link, end: MessageSeq) {
        if self.attachments.iter().any(|attachment| attachment.link == link) {
            return;
        }
        for of in self.missed.iter_mut().filter(|of| of.link == Some(link)) {
            *of = Missed { link: None, below: of.below.min(end), listener: of.listener };
        }
    }

    /// All from `first` on is sent again on this connection: listeners that may miss what is below are
    /// sent MISSED before.
    pub(super) fn send_missed(&mut self, link: Link, first: MessageSeq) {
        let mut newest: VecDeque<Missed> = VecDeque::new();
        let mut places: BTreeMap<ClientId, usize> = BTreeMap::new();
        for Missed { listener, below, .. } in self.missed.drain(..) {
            let below = below.min(first);
            let place = *places.entry(listener).or_insert(newest.len());
            match newest.get_mut(place) {
                Some(of) => of.below = of.below.max(below),
                None => newest.push_back(Missed { link: None, listener, below }),
            }
        }
        let producer = self.config.producer;
        for Missed { listener, below, .. } in &newest {
            let (listener, below) = (*listener, *below);
            self.outbox.send(link, &Frame::Missed { producer, listener, below });
        }
        self.missed = newest;
    }
}
