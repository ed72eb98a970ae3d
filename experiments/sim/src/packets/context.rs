//! What a machine is given with each signal: its clock, its network, and who watches it.

use bytes::BytesMut;
use quelea_elastic_core::ownership::{Call, Request};
use quelea_elastic_proto::frame::Frame;
use quelea_elastic_proto::{FrameBuffer, Time};
use quelea_testkit::Agenda;
use quelea_testkit::stream_network::{ConnId, Incarnation, StreamNetwork};

use crate::packets::check::Check;
use crate::packets::event::{Event, ProviderCall};
use crate::packets::participant::Participant;

/// Lent to a machine for one signal.
pub(super) struct Context<'a> {
    pub(super) incarnation: Incarnation,
    pub(super) participant: Participant,
    /// By the machine's clock.
    pub(super) now: Time,
    pub(super) agenda: &'a mut Agenda<Event>,
    pub(super) net: &'a mut StreamNetwork<Participant>,
    pub(super) check: &'a mut Check,
    /// The process ends after this signal.
    pub(super) exits: bool,
}

impl Context<'_> {
    pub(super) fn connect(&mut self, address: &str) -> ConnId {
        self.net.connect(self.agenda, self.incarnation, address)
    }

    pub(super) fn send(&mut self, conn: ConnId, frame: &Frame) {
        let mut bytes = BytesMut::new();
        if let Err(error) = frame.encode(&mut bytes) {
            self.check.wrong(format!("{}: a frame of its own is none: {error}", self.participant));
        }
        self.net.send(self.agenda, conn, self.incarnation.node, &bytes.freeze());
    }

    pub(super) fn close(&mut self, conn: ConnId) {
        self.net.close(self.agenda, conn, self.incarnation.node);
    }

    pub(super) fn ask_store(&mut self, call: Call, asked: Request) {
        let delay = self.net.delay_us();
        self.agenda.after(delay, Event::Store(self.incarnation, call, asked));
    }

    pub(super) fn ask_provider(&mut self, call: u64, asked: ProviderCall) {
        let delay = self.net.delay_us();
        self.agenda.after(delay, Event::Provider(self.incarnation, call, asked));
    }
}

/// Puts what came behind what was left of it.
pub(super) fn read_into(buffer: &mut FrameBuffer, bytes: &[u8]) {
    buffer.room_of(bytes.len()).extend_from_slice(bytes);
}
