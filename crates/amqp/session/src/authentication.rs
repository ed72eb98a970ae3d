//! From the login to the open connection. Passwords are verified by the shell, off the thread that
//! serves messages, because a good hash takes milliseconds.

use bytes::Bytes;
use quelea_amqp_codec::{AuthFailure, Mechanism, ShortStr};
use quelea_broker::{Broker, ConnectionInfo};
use quelea_model::{Timestamp, Value};

use crate::errors::open_refused;
use crate::login::{AuthOutcome, AuthRequest};
use crate::notice::Notice;
use crate::session::{Phase, Session};

impl Session {
    /// Returns the login to verify, once a connection. Answer with [`Session::authenticated`].
    pub fn poll_auth(&mut self) -> Option<AuthRequest> {
        self.auth.take()
    }

    /// Takes back what came behind the login and waits for the verdict: it is a part of what was read with it. To go on,
    /// [`Session::receive`] it after that.
    pub fn take_early_input(&mut self) -> Bytes {
        self.wire.take_input()
    }

    /// Takes the verdict on the login. Does nothing if the connection ended in the meantime.
    ///
    /// Returns whether more input waits, as [`Session::process`].
    pub fn authenticated(
        &mut self,
        broker: &mut Broker,
        outcome: AuthOutcome,
        now: Timestamp,
    ) -> bool {
        if self.phase != Phase::Authenticating {
            return false;
        }
        self.phase = Phase::Opening;
        match outcome {
            // RabbitMQ too sends the client the same text as for a wrong password.
            _ if self.is_elsewhere() => {
                self.refuse_login("this user can only connect via localhost")
            }
            AuthOutcome::Accepted => self.wire.authenticated(Ok(())),
            AuthOutcome::Refused => self.refuse_login("wrong user or password"),
        }
        self.process(broker, now)
    }

    pub(crate) fn login(&mut self, mechanism: Mechanism, user: String, password: Bytes) {
        self.user = user;
        self.phase = Phase::Authenticating;
        let (user, is_elsewhere) = (self.user.clone(), self.is_elsewhere());
        self.auth = Some(AuthRequest { user, password, mechanism, is_elsewhere });
    }

    /// Returns whether the user may come from this machine only, and does not.
    fn is_elsewhere(&self) -> bool {
        !self.peer.loopback && self.config.loopback_users.contains(&self.user)
    }

    fn refuse_login(&mut self, reason: &'static str) {
        self.notices.push(Notice::LoginRefused { user: self.user.clone(), reason });
        self.wire.authenticated(Err(AuthFailure));
    }

    /// Returns who has signed in, or tried to; empty before.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the virtual host that is open; empty before.
    #[must_use]
    pub fn vhost(&self) -> &str {
        &self.vhost
    }

    /// Returns what the client says that it is, product and version; empty before.
    #[must_use]
    pub fn product(&self) -> String {
        let properties = self.wire.client_properties();
        let texts =
            ["product", "version"].map(|name| properties.get(name).and_then(Value::as_text));
        texts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// connection.open.
    pub(crate) fn open(&mut self, broker: &mut Broker, vhost: &ShortStr, now: Timestamp) {
        let info = ConnectionInfo {
            user: self.user.clone(),
            vhost: vhost.to_string(),
            peer: self.peer.address.clone(),
            local: self.peer.local.clone(),
            loopback: self.peer.loopback,
            is_audited: false,
            name: self.peer.connection_name(),
            protocol: crate::PROTOCOL,
            mechanism: self.wire.mechanism().map_or("", Mechanism::name).to_string(),
            client_properties: self.wire.client_properties().clone(),
            channel_max: self.wire.channel_max(),
            frame_max: self.wire.frame_max(),
            heartbeat_s: self.wire.heartbeat_s(),
        };
        match broker.open_connection(now, info) {
            Ok(connection) => {
                self.phase = Phase::Open;
                self.connection = Some(connection);
                self.vhost = vhost.to_string();
                let (user, product) = (self.user.clone(), self.product());
                self.notices.push(Notice::Opened { user, vhost: self.vhost.clone(), product });
                self.wire.opened(Ok(()));
            }
            Err(error) => {
                self.wire.opened(Err(open_refused(&error)));
            }
        }
    }
}
