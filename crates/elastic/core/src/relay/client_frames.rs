//! The frames of clients, and their answers.

use bytes::{Buf as _, Bytes};
use quelea_elastic_proto::error::FrameError;
use quelea_elastic_proto::frame::{ErrorCode, Frame, Hello, Role, Welcome, WireError};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::wire::{FrameHeader, Kind};

use crate::relay::client::Phase;
use crate::relay::limits::{CONTROL_BYTES_MAX, HEARTBEAT_MS, LINGER_MS};
use crate::relay::overflow::Overflow;
use crate::relay::ring::{Control, encoded};
use crate::relay::{Port, Relay};

impl Relay {
    /// Whole frames that a client sent.
    pub fn received(&mut self, port: Port, mut frames: Bytes) {
        let Some(client) = self.index(port) else { return };
        let now = self.now;
        let state = &mut self.clients[client as usize];
        state.last_read_at = now;
        state.pings = 0;
        let buffer_bytes = frames.len();
        while !frames.is_empty() && !self.clients[client as usize].is_closing() {
            let outcome = match FrameHeader::read(&frames) {
                Ok(Some(header)) if header.kind == Kind::Data => {
                    self.messages(client, &mut frames, buffer_bytes)
                }
                Ok(Some(header)) => {
                    let mut frame = frames.split_to(header.frame_bytes().min(frames.len()));
                    match Frame::decode(&mut frame) {
                        Ok(Some(frame)) => self.frame(client, frame),
                        Ok(None) => Err(WireError::fatal(
                            ErrorCode::Malformed,
                            "length",
                            "a frame is not whole",
                        )),
                        Err(error) => Err(error.into()),
                    }
                }
                Ok(None) => {
                    Err(WireError::fatal(ErrorCode::Malformed, "length", "a frame is not whole"))
                }
                Err(error) => Err(error.into()),
            };
            if let Err(error) = outcome {
                self.refuse(client, error);
            }
        }
        frames.advance(frames.len());
    }

    /// What a client sent is no frame.
    pub fn malformed(&mut self, port: Port, error: FrameError) {
        if let Some(client) = self.index(port) {
            self.refuse(client, error.into());
        }
    }

    /// Sends a client what is wrong, and closes its connection if it cannot go on. One that is closing was sent why, and a
    /// second leaving would throw that away.
    pub(crate) fn refuse(&mut self, client: u32, error: WireError) {
        if self.clients[client as usize].is_closing() {
            return;
        }
        let ends = error.fatal;
        if ends {
            // First, or else its ring's end would be thrown away with the rest.
            self.leave(client);
        }
        if self.clients[client as usize].phase == Phase::Greeting {
            self.counters.refused += 1;
        }
        self.send(client, &Frame::Error(error));
        if ends {
            self.close(client);
        }
    }

    /// Nothing more is taken from this client, or given to it but what was said last.
    pub(crate) fn close(&mut self, client: u32) {
        let until = self.now.plus_ms(LINGER_MS);
        self.clients[client as usize].phase = Phase::Closing(until);
        self.mark_dirty(client);
    }

    fn frame(&mut self, client: u32, frame: Frame) -> Result<(), WireError> {
        if self.clients[client as usize].phase == Phase::Greeting {
            return match frame {
                Frame::Hello(hello) => self.hello(client, hello),
                _ => {
                    Err(WireError::fatal(ErrorCode::Order, "kind", "the first frame must be HELLO"))
                }
            };
        }
        match frame {
            Frame::AttachProducer { queue, producer, fence, epoch } => {
                self.check_queue(&queue)?;
                self.attach_producer(client, producer, fence, epoch)
            }
            Frame::AttachListener(attach) => {
                self.check_queue(&attach.queue)?;
                self.attach_listener(client, attach)
            }
            Frame::Subscribe(prefix) => self.subscribe(client, &prefix),
            Frame::Unsubscribe(prefix) => self.unsubscribe(client, &prefix),
            Frame::Received(messages) => self.taken(client, messages),
            Frame::Stop { fence } => self.stop_received(client, fence),
            Frame::Start(start) => self.start_producer(client, &start),
            Frame::Fin { slot, next } => self.finish_producer(client, slot, next),
            Frame::Missed { producer, listener, below } => {
                self.take_missed(client, producer, listener, below)
            }
            Frame::Ping(0) => {
                self.send(client, &Frame::Pong(0));
                Ok(())
            }
            // Who asks by a number wants to know that it has all that was said before: what is in the store, too.
            Frame::Ping(number) => {
                self.send_to_listener(client, &encoded(&Frame::Pong(number)), Control::Other);
                Ok(())
            }
            Frame::Pong(_) => Ok(()),
            Frame::Bye(_) | Frame::Error(WireError { fatal: true, .. }) => {
                if let Some(listener) = &mut self.clients[client as usize].listener {
                    listener.leaves = matches!(frame, Frame::Bye(_));
                }
                self.leave(client);
                self.close(client);
                Ok(())
            }
            Frame::Error(_) => Ok(()),
            other => {
                let text =
                    format!("{} is no frame that a client sends to a relay", other.kind().name());
                Err(WireError::fatal(ErrorCode::Order, "kind", text))
            }
        }
    }

    fn hello(&mut self, client: u32, hello: Hello) -> Result<(), WireError> {
        if hello.version != VERSION {
            let text = format!("version {} is not spoken here, only {VERSION}", hello.version);
            return Err(WireError::fatal(ErrorCode::Version, "version", text));
        }
        if hello.role != Role::Client {
            let text = format!("{:?} has no business at a relay: only Client has", hello.role);
            return Err(WireError::fatal(ErrorCode::Value, "role", text));
        }
        if !hello.has_key(&self.config.key) {
            let text = if hello.key.is_empty() { "a key is needed" } else { "this is not the key" };
            return Err(WireError::fatal(ErrorCode::Key, "key", text));
        }
        let state = &mut self.clients[client as usize];
        state.phase = Phase::Open;
        state.name = hello.name.into();
        self.send(
            client,
            &Frame::Welcome(Welcome { version: VERSION, heartbeat_ms: HEARTBEAT_MS }),
        );
        Ok(())
    }

    fn check_queue(&self, queue: &str) -> Result<(), WireError> {
        if queue == self.config.queue {
            return Ok(());
        }
        let text = format!("this relay serves {:?}, not {queue:?}", self.config.queue);
        Err(WireError::refusal(ErrorCode::Queue, "queue", text))
    }

    /// A frame for one client.
    pub(crate) fn send(&mut self, client: u32, frame: &Frame) {
        self.send_encoded(client, encoded(frame), Control::Other);
    }

    /// A frame for all listeners, in its place among the messages.
    pub(crate) fn send_to_listeners(&mut self, frame: &Bytes, control: Control) {
        for at in 0..self.listeners.len() {
            self.send_to_listener(self.listeners[at], frame, control);
        }
    }

    /// The same for one listener.
    pub(crate) fn send_to_listener(&mut self, index: u32, frame: &Bytes, control: Control) {
        if let Some(frame) = self.spill_control(index, frame.clone(), control) {
            self.send_encoded(index, frame, control);
        }
    }

    fn send_encoded(&mut self, client: u32, frame: Bytes, control: Control) {
        let state = &mut self.clients[client as usize];
        if state.is_closing() {
            return;
        }
        state.ring.push_control(frame, control);
        if state.ring.control_bytes() > CONTROL_BYTES_MAX {
            self.mark_overfull(client, Overflow::Control);
        }
        self.mark_dirty(client);
    }
}
