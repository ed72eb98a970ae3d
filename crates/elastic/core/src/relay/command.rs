//! The commands of a directory to a relay.

use std::sync::Arc;

use quelea_elastic_proto::frame::{
    Acknowledge, Capacity, ErrorCode, Frame, Register, RelaySettings, WireError,
};
use quelea_elastic_proto::{RelayId, Slot};

use crate::relay::Relay;
use crate::relay::client::Kind;
use crate::relay::limits::RING_BYTES_MIN;

/// What its driver has to do of a directory's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The relay is registered, or has other settings.
    Registered {
        /// REPORT so often: milliseconds between two.
        report_ms: u32,
    },
    /// The directories that there are now, this one first.
    Directories(Arc<[String]>),
    /// Another directory owns the queue.
    Redirected {
        /// Its address.
        address: String,
        /// Not before.
        retry_after_ms: u32,
    },
    /// End now.
    Stop,
    /// The directory could not do what was asked.
    Refused(WireError),
    /// The directory ends the connection, with its reason.
    Bye(String),
    /// Answer this.
    Answer(Frame),
    /// All is done.
    Done,
}

impl Relay {
    /// Returns REGISTER, as it is now.
    #[must_use]
    pub fn register(
        &self,
        relay: RelayId,
        request: &str,
        address: String,
        zmtp: (String, String),
    ) -> Frame {
        let connections = u32::try_from(self.config.connections_max).unwrap_or(u32::MAX);
        Frame::Register(Register {
            relay,
            queue: self.config.queue.clone(),
            request: request.to_owned(),
            address,
            zmtp,
            capacity: Capacity { connections, ..Capacity::default() },
            fence: self.fence,
        })
    }

    /// Executes a frame of a directory.
    pub fn command(&mut self, frame: Frame) -> Command {
        match self.execute(frame) {
            Ok(command) => command,
            Err(error) => Command::Answer(Frame::Error(error)),
        }
    }

    fn execute(&mut self, frame: Frame) -> Result<Command, WireError> {
        match frame {
            Frame::Registered { fence, settings } => {
                self.see_fence(fence)?;
                let report_ms = settings.report_ms;
                self.set(settings);
                Ok(Command::Registered { report_ms })
            }
            Frame::Drain { fence, deadline_ms } => {
                self.see_fence(fence)?;
                self.drain(deadline_ms);
                Ok(Command::Done)
            }
            Frame::Stop { fence } => {
                self.see_fence(fence)?;
                Ok(Command::Stop)
            }
            Frame::FenceProducer { fence, producer, below } => {
                self.see_fence(fence)?;
                self.fence_producer(producer, below);
                Ok(Command::Done)
            }
            Frame::Directories(directories) => Ok(Command::Directories(directories)),
            Frame::Redirect { address, retry_after_ms, .. } => {
                Ok(Command::Redirected { address, retry_after_ms })
            }
            Frame::Ping(number) => Ok(Command::Answer(Frame::Pong(number))),
            Frame::Pong(_) | Frame::Notice { .. } => Ok(Command::Done),
            Frame::Error(error) => Ok(Command::Refused(error)),
            Frame::Bye(reason) => Ok(Command::Bye(reason)),
            other => {
                let text = format!(
                    "{} is no frame that a directory sends to a relay",
                    other.kind().name()
                );
                Err(WireError::refusal(ErrorCode::Order, "kind", text))
            }
        }
    }

    /// Other settings from now on. A ring that is fuller than the new bound is not cut.
    pub fn set(&mut self, settings: RelaySettings) {
        let bytes = settings.ring_bytes_max.max(RING_BYTES_MIN);
        self.ring_bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
        let before = std::mem::replace(&mut self.config.settings, settings);
        let acknowledge = self.config.settings.acknowledge;
        if before.acknowledge != acknowledge {
            self.announce_level(acknowledge);
        }
    }

    /// Listeners that attached under another level have to know whether RECEIVED is waited for.
    fn announce_level(&mut self, acknowledge: Acknowledge) {
        for at in 0..self.listeners.len() {
            let index = self.listeners[at];
            if self.clients[index as usize].kind == Kind::Native {
                let attached = Frame::Attached { slot: Slot(0), acknowledge, credit_bytes: 0 };
                self.send(index, &attached);
            }
        }
        if acknowledge != Acknowledge::Stored {
            self.clear_keeper_queue();
        }
        if !acknowledge.waits_for_listeners() {
            // Nobody says RECEIVED any more: what waits for it is done.
            for at in 0..self.listeners.len() {
                self.spill_holds_nothing(self.listeners[at]);
                let client = &mut self.clients[self.listeners[at] as usize];
                let Some(listener) = &mut client.listener else { continue };
                listener.left_behind = false;
                for awaiting in std::mem::take(&mut listener.awaiting) {
                    let holds = super::Holds { credit: false, acknowledgement: true };
                    self.release(awaiting.producer, awaiting.slot, awaiting.entry, holds);
                }
            }
        }
    }
}
