//! A producer's or a listener's process: its session, with its connections to a directory and to relays
//! as `quelea_sqs_client`'s elastic driver keeps them.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::session::{Link, Output, Session};
use quelea_elastic_proto::{DirectorySearch, Fence, Frame, Time};
use quelea_testkit::stream_network::ConnId;

use crate::packets::client_connection::{ClientConnection, Received};
use crate::packets::context::Context;

/// A session with the connections that it wants.
pub(super) struct Client<S> {
    pub(super) session: S,
    search: DirectorySearch,
    directory: Option<ClientConnection>,
    greeted: bool,
    served: bool,
    connect_at: Time,
    links: BTreeMap<Link, ClientConnection>,
    /// The highest fence that a directory has shown, for the check that no lower one takes effect.
    fence: Fence,
}

impl<S: Session> Client<S> {
    pub(super) fn new(session: S, directories: &[String], jitter: u64, now: Time) -> Self {
        Self {
            session,
            search: DirectorySearch::anywhere(directories, jitter),
            directory: None,
            greeted: false,
            served: false,
            connect_at: now,
            links: BTreeMap::new(),
            fence: Fence(0),
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        let directory = self.directory.as_ref().map_or(self.connect_at, ClientConnection::deadline);
        let links = self.links.values().map(ClientConnection::deadline);
        links.chain(self.session.next_deadline()).chain([directory]).min()
    }

    pub(super) fn connected(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        if let Some(line) = self.directory.as_mut().filter(|line| line.conn == conn) {
            line.connected(cx);
        } else if let Some((link, line)) = self.links.iter_mut().find(|(_, line)| line.conn == conn)
        {
            let link = *link;
            line.connected(cx);
            self.session.handle_connected(link, cx.now);
        }
    }

    pub(super) fn closed(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        if self.directory.as_ref().is_some_and(|line| line.conn == conn) {
            self.lose_directory(cx, None);
        } else if let Some(link) = self.link_of(conn) {
            self.lose(cx, link, "closed by the peer");
        }
    }

    pub(super) fn read(&mut self, cx: &mut Context<'_>, conn: ConnId, bytes: &Bytes) {
        if let Some(line) = self.directory.as_mut().filter(|line| line.conn == conn) {
            match line.read(cx, bytes) {
                Received::Nothing => {}
                Received::Greeted(frames) => {
                    self.greeted = true;
                    self.session.handle_directory_connected(cx.now);
                    self.handle_directory_frames(cx, frames);
                }
                Received::Frames(frames) => self.handle_directory_frames(cx, frames),
                Received::Lost(_) => self.lose_directory(cx, None),
            }
        } else if let Some(link) = self.link_of(conn) {
            let Some(line) = self.links.get_mut(&link) else { return };
            match line.read(cx, bytes) {
                Received::Nothing => {}
                Received::Greeted(frames) | Received::Frames(frames) => {
                    if let Err(error) = self.session.handle_frames(link, frames, cx.now) {
                        cx.check
                            .wrong(format!("{}: a relay sent no frame: {error}", cx.participant));
                    }
                }
                Received::Lost(cause) => self.lose(cx, link, &cause),
            }
        }
    }

    /// Does what is due and what the session wants.
    pub(super) fn turn(&mut self, cx: &mut Context<'_>) {
        if self.directory.is_none() && self.connect_at <= cx.now {
            self.directory = Some(ClientConnection::open(cx, self.search.address()));
        }
        if self.directory.as_mut().and_then(|line| line.heartbeat(cx)).is_some() {
            self.lose_directory(cx, None);
        }
        let mut silent = Vec::new();
        for (link, line) in &mut self.links {
            if !self.session.wants_more_of(*link) {
                line.unread(cx.now);
            }
            if let Some(cause) = line.heartbeat(cx) {
                silent.push((*link, cause));
            }
        }
        for (link, cause) in silent {
            self.lose(cx, link, cause);
        }
        if self.session.next_deadline().is_some_and(|at| at <= cx.now) {
            self.session.handle_timeout(cx.now);
        }
        self.flush(cx);
    }

    /// Does what the session wants.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Connect { link, relay } => {
                    let line = ClientConnection::open(cx, &relay.address);
                    self.links.insert(link, line);
                }
                Output::Send { link, bytes } => {
                    if let Some(line) = self.links.get_mut(&link) {
                        line.send(cx, bytes);
                    }
                }
                Output::Close { link } => {
                    if let Some(line) = self.links.remove(&link) {
                        cx.close(line.conn);
                    }
                }
                Output::Directory(frame) => {
                    if let Some(line) = &mut self.directory {
                        let mut bytes = BytesMut::new();
                        if frame.encode(&mut bytes).is_ok() {
                            line.send(cx, bytes.freeze());
                        }
                    }
                }
            }
        }
        for (link, line) in &self.links {
            let reads = self.session.wants_more_of(*link);
            cx.net.set_reads(cx.agenda, line.conn, cx.incarnation.node, reads);
        }
    }

    fn link_of(&self, conn: ConnId) -> Option<Link> {
        self.links.iter().find(|(_, line)| line.conn == conn).map(|(link, _)| *link)
    }

    fn handle_directory_frames(&mut self, cx: &mut Context<'_>, mut frames: Bytes) {
        while self.directory.is_some() {
            match Frame::decode(&mut frames) {
                Ok(Some(Frame::Ping(number))) => {
                    if let Some(line) = &self.directory {
                        cx.send(line.conn, &Frame::Pong(number));
                    }
                }
                Ok(Some(Frame::Redirect { address, retry_after_ms, .. })) => {
                    self.lose_directory(cx, Some((address, u64::from(retry_after_ms))));
                }
                Ok(Some(Frame::Directories(directories))) => self.search.learn(&directories),
                Ok(Some(frame)) => {
                    self.served |= !matches!(frame, Frame::Error(_));
                    self.take(cx, frame);
                }
                Ok(None) => return,
                Err(error) => {
                    cx.check
                        .wrong(format!("{}: a directory sent no frame: {error}", cx.participant));
                    return;
                }
            }
        }
    }

    fn take(&mut self, cx: &mut Context<'_>, frame: Frame) {
        let fence = match &frame {
            Frame::ProduceAt { fence, .. } | Frame::ListenAt { fence, .. } => Some(*fence),
            _ => None,
        };
        self.flush(cx);
        self.session.handle_directory_frame(frame, cx.now);
        let Some(fence) = fence else { return };
        if fence < self.fence {
            // All that it may do is to say why it does not do it.
            while let Some(output) = self.session.poll() {
                if !matches!(output, Output::Directory(Frame::Error(_))) {
                    cx.check.wrong(format!(
                        "{}: a command with fence {} took effect after fence {}: {output:?}",
                        cx.participant, fence.0, self.fence.0
                    ));
                }
            }
        }
        self.fence = self.fence.max(fence);
    }

    fn lose_directory(&mut self, cx: &mut Context<'_>, redirection: Option<(String, u64)>) {
        let Some(line) = self.directory.take() else { return };
        cx.close(line.conn);
        let served = std::mem::take(&mut self.served);
        self.connect_at = cx.now.plus_ms(self.search.lost(served, redirection));
        if std::mem::take(&mut self.greeted) {
            self.session.handle_directory_lost();
        }
    }

    fn lose(&mut self, cx: &mut Context<'_>, link: Link, cause: &str) {
        if let Some(line) = self.links.remove(&link) {
            cx.close(line.conn);
        }
        self.session.handle_lost(link, cause, cx.now);
    }
}
