//! From the protocol header to `connection.open-ok` (AMQP 0-9-1 §2.2.4).

use bytes::Bytes;
use quelea_model::limits::FRAME_BYTES_MIN;

use super::refusal::Refusal;
use super::{Phase, ServerConnection};
use crate::event::{CloseCause, Event};
use crate::frame::{PROTOCOL_HEADER, PROTOCOL_HEADER_0_9};
use crate::method::{Method, connection};
use crate::reply_code::ReplyCode;
use crate::sasl::{MECHANISMS, Mechanism};

/// Largest frame before the negotiation: what strangers can make us hold. The specification's 4,096
/// is too little for clients with long tokens; RabbitMQ allows as much as this.
pub(super) const FRAME_BYTES_MAX: u32 = 8_192;

/// A login that failed. It says no more, so that nobody learns which users exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthFailure;

impl ServerConnection {
    /// Answers the protocol header: `connection.start`, or the header that we understand. `None`
    /// until it is there.
    pub(super) fn read_protocol_header(&mut self) -> Option<()> {
        let header = self.reader.take_raw::<8>()?;
        if header != *PROTOCOL_HEADER && header != *PROTOCOL_HEADER_0_9 {
            self.output.put_slice(PROTOCOL_HEADER);
            self.end(CloseCause::WrongProtocol { header });
            return Some(());
        }
        let start = connection::Start {
            version_major: 0,
            version_minor: 9,
            server_properties: self.config.server_properties.clone(),
            mechanisms: Bytes::from_static(MECHANISMS.as_bytes()),
            locales: Bytes::from_static(b"en_US"),
        };
        self.output.method(0, &start.into());
        self.phase = Phase::StartOk;
        Some(())
    }

    /// Carries out a method that comes before the connection is open.
    pub(super) fn handshake_method(
        &mut self,
        method: Method,
    ) -> Result<Option<Event>, Box<Refusal>> {
        match (self.phase, method) {
            (_, Method::ConnectionClose(close)) => Ok(Some(self.closed_by_client(close))),
            (Phase::StartOk, Method::ConnectionStartOk(start_ok)) => {
                self.start_ok(start_ok).map(Some)
            }
            (Phase::TuneOk, Method::ConnectionTuneOk(tune_ok)) => {
                self.tune_ok(&tune_ok)?;
                Ok(None)
            }
            (Phase::Open, Method::ConnectionOpen(open)) => {
                self.phase = Phase::Opening;
                Ok(Some(Event::Open { vhost: open.virtual_host }))
            }
            (_, method) => {
                let text = format!("unexpected {} during the handshake", method.name());
                Err(Refusal::of_method(ReplyCode::CommandInvalid, text, &method))
            }
        }
    }

    fn start_ok(&mut self, start_ok: connection::StartOk) -> Result<Event, Box<Refusal>> {
        self.client_properties = start_ok.client_properties;
        let refuse =
            |code, text: String| Box::new(Refusal { code, text, class_id: 10, method_id: 11 });
        let name = start_ok.mechanism;
        let mechanism = Mechanism::from_name(&name).ok_or_else(|| {
            let text = format!("unknown authentication mechanism '{name}'");
            refuse(ReplyCode::CommandInvalid, text)
        })?;
        let (user, password) = mechanism
            .credentials(&start_ok.response)
            .ok_or_else(|| refuse(ReplyCode::SyntaxError, format!("malformed {name} response")))?;
        self.mechanism = Some(mechanism);
        self.phase = Phase::Authenticating;
        Ok(Event::Authenticate { mechanism, user, password })
    }

    /// Answers [`Event::Authenticate`]: goes on with `connection.tune`, or refuses the login. Who
    /// knows the capability `authentication_failure_close` gets a reason, others a closed socket, as
    /// the specification asks.
    pub fn authenticated(&mut self, outcome: Result<(), AuthFailure>) {
        if self.phase != Phase::Authenticating {
            return;
        }
        if outcome.is_ok() {
            let tune = connection::Tune {
                channel_max: self.config.channel_max,
                frame_max: self.config.frame_max,
                heartbeat: self.config.heartbeat_s,
            };
            self.output.method(0, &tune.into());
            self.phase = Phase::TuneOk;
            return;
        }
        if self.capability("authentication_failure_close") {
            let mechanism = self.mechanism.map_or("", Mechanism::name);
            let text = format!(
                "Login was refused using authentication mechanism {mechanism}. For details see the \
                 broker logfile."
            );
            self.close(ReplyCode::AccessRefused, &text, 0, 0);
            self.close_cause = Some(Box::new(CloseCause::LoginRefused));
        } else {
            self.end(CloseCause::LoginRefused);
        }
    }

    fn tune_ok(&mut self, tune_ok: &connection::TuneOk) -> Result<(), Box<Refusal>> {
        let (frame_max, channel_max) = (tune_ok.frame_max, tune_ok.channel_max);
        negotiated("frame_max", frame_max, FRAME_BYTES_MIN, self.config.frame_max)?;
        negotiated("channel_max", channel_max.into(), 1, self.config.channel_max.into())?;
        self.frame_max = frame_max;
        self.channel_max = channel_max;
        self.heartbeat_s = tune_ok.heartbeat;
        self.reader.set_frame_max(frame_max);
        self.heartbeat.start(tune_ok.heartbeat, self.now);
        self.phase = Phase::Open;
        Ok(())
    }

    /// Answers [`Event::Open`]: goes on with `connection.open-ok`, or closes with that code and text.
    pub fn opened(&mut self, outcome: Result<(), (ReplyCode, String)>) {
        if self.phase != Phase::Opening {
            return;
        }
        match outcome {
            Ok(()) => {
                self.phase = Phase::Running;
                self.output.method(0, &connection::OpenOk {}.into());
            }
            Err((code, text)) => self.close(code, &text, 10, 40),
        }
    }
}

/// Checks a client's choice against our offer: we have no "no limit", so 0 is above every offer.
fn negotiated(field: &str, value: u32, min: u32, offer: u32) -> Result<(), Box<Refusal>> {
    let text = if value != 0 && value < min {
        format!("negotiated {field} = {value} is lower than the minimum allowed value ({min})")
    } else if value == 0 || value > offer {
        format!("negotiated {field} = {value} is higher than the maximum allowed value ({offer})")
    } else {
        return Ok(());
    };
    Err(Box::new(Refusal { code: ReplyCode::NotAllowed, text, class_id: 10, method_id: 31 }))
}
