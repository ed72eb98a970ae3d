//! Linux: trains by UDP_SEGMENT and UDP_GRO, many small datagrams by sendmmsg and recvmmsg, the
//! kernel's own drops by SO_RXQ_OVFL.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage,
    recvmmsg, recvmsg, sendmmsg, sendmsg, setsockopt, sockopt,
};
use quelea_cmq_proto::Transmit;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::sockopt::{set_ip_mtu_discover, set_ipv6_mtu_discover};
use smallvec::SmallVec;

use super::path::{Paths, query_kernel};
use super::pool::BUFFER_BYTES;
use super::{
    Amount, Net, NetCounters, Pool, RECEIVE_BATCH, RECEIVE_BUFFER_BYTES, Reader, Received,
    SEND_BUFFER_BYTES, SEND_RETRIES, SEND_RETRY, SendError, canonical, for_socket,
};

/// Datagrams that one sendmmsg takes: as many as a train has.
const SEND_BATCH: usize = 64;

/// Small datagrams in a row after which the next are asked for together: nix makes recvmmsg's headers
/// anew each time (it does not reset their lengths), which pays from the third on.
const SINGLES_BEFORE_BATCH: usize = 2;

/// Shorter waits are left to ppoll, which is exact; a socket's limit is in the kernel's ticks.
const LIMIT_MIN: Duration = Duration::from_millis(20);

/// Returns room for what the kernel says beside a datagram: the size of a train's segments, and its
/// drops.
fn ancillary_space() -> Vec<u8> {
    nix::cmsg_space!(i32, u32)
}

/// A UDP socket of Linux.
#[derive(Debug)]
pub(crate) struct Linux {
    socket: socket2::Socket,
    is_ipv6: bool,
    /// One for each [`Reader`].
    interrupts: [OwnedFd; 2],
    /// Where a datagram to itself goes, if it is sure to come here: then a caller waits in recvmsg
    /// itself, which saves a call for each round trip, and is interrupted by an empty datagram.
    own: Option<SocketAddr>,
    /// The leader is interrupted; set before the datagram is sent, which another one may take.
    interrupted: AtomicBool,
    /// Microseconds for which recvmsg waits, as the socket was set; 0 for ever.
    receive_limit_us: AtomicU64,
    paths: Paths,
    /// The kernel or the device does not cut trains; then each datagram is given by itself.
    trains_refused: AtomicBool,
    counters: NetCounters,
}

impl Linux {
    pub(crate) fn new(socket: socket2::Socket) -> io::Result<Self> {
        let is_ipv6 = socket.local_addr()?.is_ipv6();
        set_up(&socket);
        // Calls that are not to wait say so themselves.
        socket.set_nonblocking(false)?;
        let own = own_address(&socket, |ip| query_kernel(ip).is_some());
        if own.is_some() {
            socket.set_read_timeout(None)?;
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let linux = Self {
            socket,
            is_ipv6,
            interrupts: [eventfd(0, flags)?, eventfd(0, flags)?],
            own,
            interrupted: AtomicBool::new(false),
            receive_limit_us: AtomicU64::new(0),
            paths: Paths::default(),
            trains_refused: AtomicBool::new(false),
            counters: NetCounters::default(),
        };
        // Routers and the kernel never cut a datagram: one lost piece would lose it whole.
        linux.allow_fragments(false);
        Ok(linux)
    }

    /// Returns the same, as if the kernel had refused a train.
    #[cfg(test)]
    pub(crate) fn without_trains(self) -> Self {
        self.trains_refused.store(true, Relaxed);
        self
    }

    const fn interrupt_of(&self, reader: Reader) -> &OwnedFd {
        match reader {
            Reader::Leader => &self.interrupts[0],
            Reader::Background => &self.interrupts[1],
        }
    }

    fn send_one(
        &self,
        to: SocketAddr,
        bytes: &[u8],
        segment_bytes: Option<u16>,
    ) -> Result<(), Errno> {
        let address = SockaddrStorage::from(for_socket(self.is_ipv6, to));
        let parts = [IoSlice::new(bytes)];
        let segments = segment_bytes.as_ref().map(ControlMessage::UdpGsoSegments);
        let mut tries = 0;
        loop {
            self.counters.send_calls.fetch_add(1, Relaxed);
            let sent = sendmsg(
                self.socket.as_raw_fd(),
                &parts,
                segments.as_slice(),
                MsgFlags::MSG_DONTWAIT,
                Some(&address),
            );
            match sent {
                Ok(_) => return Ok(()),
                Err(error) => self.may_try_again(error, &mut tries)?,
            }
        }
    }

    /// Waits a little if the kernel had no room. An error that is about an earlier datagram
    /// (ECONNREFUSED) is gone once it was returned, so that is tried again too.
    fn may_try_again(&self, error: Errno, tries: &mut u32) -> Result<(), Errno> {
        *tries += 1;
        if *tries > SEND_RETRIES {
            return Err(error);
        }
        match error {
            Errno::EINTR => Ok(()),
            Errno::ECONNREFUSED if *tries == 1 => Ok(()),
            Errno::EAGAIN => {
                wait_for(&mut [PollFd::new(&self.socket, PollFlags::OUT)], Some(SEND_RETRY));
                Ok(())
            }
            // The device's queue is full, which no socket becomes ready for.
            Errno::ENOBUFS | Errno::ENOMEM => {
                wait_for(&mut [], Some(SEND_RETRY));
                Ok(())
            }
            _ => Err(error),
        }
    }

    fn send_train(&self, train: &Transmit, segment_bytes: usize) -> Result<(), Errno> {
        let segment = u16::try_from(segment_bytes).map_err(|_| Errno::EMSGSIZE)?;
        if self.trains_refused.load(Relaxed) {
            return self.send_segments(train, segment_bytes);
        }
        match self.send_one(train.to, &train.bytes, Some(segment)) {
            // The device can't (EIO), or the kernel can't, or a segment is larger than the path.
            Err(error @ (Errno::EIO | Errno::EINVAL)) => {
                if self.paths.query(train.to.ip()).is_some_and(|path| path < segment_bytes) {
                    return Err(Errno::EMSGSIZE);
                }
                self.counters.train_fallbacks.fetch_add(1, Relaxed);
                // Only if the segments are taken one by one was it the train that was refused.
                self.send_segments(train, segment_bytes).map_err(|_| error)?;
                self.trains_refused.store(true, Relaxed);
                Ok(())
            }
            done => done,
        }
    }

    /// Lets the kernel fragment it, and only it: the path has become too short for what may not be
    /// changed any more. All sends are under one lock, so no other one falls in between.
    fn send_in_fragments(&self, transmit: &Transmit) -> Result<(), Errno> {
        self.allow_fragments(true);
        let segment_bytes = transmit.segment_bytes.unwrap_or(transmit.bytes.len()).max(1);
        let sent = self.send_segments(transmit, segment_bytes);
        self.allow_fragments(false);
        sent
    }

    fn allow_fragments(&self, allow: bool) {
        let (v4, v6) = if allow {
            (Ipv4PathMtuDiscovery::DONT, Ipv6PathMtuDiscovery::DONT)
        } else {
            (Ipv4PathMtuDiscovery::DO, Ipv6PathMtuDiscovery::DO)
        };
        // What can't be set is done without.
        let _ = set_ip_mtu_discover(&self.socket, v4);
        if self.is_ipv6 {
            let _ = set_ipv6_mtu_discover(&self.socket, v6);
        }
    }

    /// Sends the train's datagrams, each by itself.
    fn send_segments(&self, train: &Transmit, segment_bytes: usize) -> Result<(), Errno> {
        let to = for_socket(self.is_ipv6, train.to);
        let mut segments: SmallVec<[(SocketAddr, &[u8]); SEND_BATCH]> = SmallVec::new();
        segments.extend(train.bytes.chunks(segment_bytes).map(|segment| (to, segment)));
        let mut result = Ok(());
        self.send_many(&segments, &mut |_, error| result = Err(error));
        result
    }

    /// Datagrams to any addresses, in as few calls as do.
    fn send_many(&self, datagrams: &[(SocketAddr, &[u8])], failed: &mut dyn FnMut(usize, Errno)) {
        let mut headers = MultiHeaders::preallocate(SEND_BATCH.min(datagrams.len()), None);
        let (mut at, mut tries) = (0, 0);
        while at < datagrams.len() {
            let end = datagrams.len().min(at + SEND_BATCH);
            match self.send_batch(&mut headers, &datagrams[at..end]) {
                Ok(sent) => {
                    at += sent;
                    tries = 0;
                }
                Err(error) => {
                    if let Err(error) = self.may_try_again(error, &mut tries) {
                        failed(at, error);
                        at += 1;
                        tries = 0;
                    }
                }
            }
        }
    }

    fn send_batch(
        &self,
        headers: &mut MultiHeaders<SockaddrStorage>,
        datagrams: &[(SocketAddr, &[u8])],
    ) -> Result<usize, Errno> {
        let slices: SmallVec<[[IoSlice<'_>; 1]; SEND_BATCH]> =
            datagrams.iter().map(|(_, bytes)| [IoSlice::new(bytes)]).collect();
        let addresses: SmallVec<[Option<SockaddrStorage>; SEND_BATCH]> =
            datagrams.iter().map(|(to, _)| Some(SockaddrStorage::from(*to))).collect();
        self.counters.send_calls.fetch_add(1, Relaxed);
        let sent = sendmmsg(
            self.socket.as_raw_fd(),
            headers,
            slices.iter(),
            &addresses,
            [],
            MsgFlags::MSG_DONTWAIT,
        )?;
        Ok(sent.count())
    }

    fn count_sent(&self, datagrams: usize, bytes: usize) {
        self.counters.sent_datagrams.fetch_add(datagrams as u64, Relaxed);
        self.counters.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn receive_singly(
        &self,
        amount: Amount,
        pool: &mut Pool,
        received: &mut Vec<Received>,
        ancillary: &mut [u8],
    ) -> bool {
        let mut small = 0;
        for _ in 0..RECEIVE_BATCH {
            if small == SINGLES_BEFORE_BATCH {
                return self.receive_many(pool, received).is_ok_and(|found| found == RECEIVE_BATCH);
            }
            match self.receive_buffer(MsgFlags::MSG_DONTWAIT, pool, received, ancillary) {
                Ok(0) if amount == Amount::One => return false,
                Ok(0) => small += 1,
                Ok(_) => {}
                Err(Errno::EAGAIN) => return false,
                // About an earlier datagram (ECONNREFUSED), or interrupted: the next may be good.
                Err(_) => {
                    self.counters.receive_errors.fetch_add(1, Relaxed);
                }
            }
        }
        true
    }

    /// Receives by one call; returns the length of a train, or 0 for a single datagram.
    fn receive_buffer(
        &self,
        flags: MsgFlags,
        pool: &mut Pool,
        received: &mut Vec<Received>,
        ancillary: &mut [u8],
    ) -> Result<usize, Errno> {
        let mut buffer = pool.take();
        self.counters.receive_calls.fetch_add(1, Relaxed);
        let found = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut [IoSliceMut::new(&mut buffer)],
            Some(ancillary),
            flags,
        )
        .map(|message| (message.bytes, self.sender_and_segment(&message)));
        match found {
            Ok((length, (Some(from), segment_bytes))) if !self.is_interrupt(length, from) => {
                self.count_received(length);
                let bytes = pool.cut(buffer, length);
                received.push(Received { from, bytes, segment_bytes });
                Ok(if length > segment_bytes { length } else { 0 })
            }
            Ok(_) => {
                pool.put_back(buffer);
                Ok(0)
            }
            Err(error) => {
                pool.put_back(buffer);
                Err(error)
            }
        }
    }

    /// Returns whether a datagram is that of [`Net::interrupt`], and nobody's. Whoever takes it,
    /// `interrupted` stays set until the leader has seen it.
    fn is_interrupt(&self, length: usize, from: SocketAddr) -> bool {
        length == 0 && self.own.is_some_and(|own| own.port() == from.port())
    }

    /// Sets that recvmsg waits no longer than `within`: half of it at least, as a power of two, so
    /// that the socket need not be set anew for each call. Returns false if it can't be set.
    fn limit_receive(&self, within: Option<Duration>) -> bool {
        let us = within.map_or(0, |within| {
            let us = u64::try_from(within.as_micros()).unwrap_or(u64::MAX);
            1 << us.max(1).ilog2().min(40)
        });
        if self.receive_limit_us.load(Relaxed) == us {
            return true;
        }
        let limit = (us > 0).then(|| Duration::from_micros(us));
        let is_set = self.socket.set_read_timeout(limit).is_ok();
        if is_set {
            self.receive_limit_us.store(us, Relaxed);
        }
        is_set
    }

    /// Receives many small datagrams in one call. They are copied out of one block whose pages the
    /// kernel touches only as far as there are datagrams.
    fn receive_many(&self, pool: &mut Pool, received: &mut Vec<Received>) -> Result<usize, Errno> {
        let mut block = vec![0; RECEIVE_BATCH * BUFFER_BYTES];
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            block.chunks_mut(BUFFER_BYTES).map(|part| [IoSliceMut::new(part)]).collect();
        let mut headers =
            MultiHeaders::<SockaddrStorage>::preallocate(RECEIVE_BATCH, Some(ancillary_space()));
        self.counters.receive_calls.fetch_add(1, Relaxed);
        let messages = recvmmsg(
            self.socket.as_raw_fd(),
            &mut headers,
            slices.iter_mut(),
            MsgFlags::MSG_DONTWAIT,
            None,
        )?;
        let found: SmallVec<[_; RECEIVE_BATCH]> =
            messages.map(|message| (message.bytes, self.sender_and_segment(&message))).collect();
        for ((bytes, (from, segment_bytes)), part) in found.iter().zip(block.chunks(BUFFER_BYTES)) {
            if let Some(from) = *from
                && !self.is_interrupt(*bytes, from)
            {
                self.count_received(*bytes);
                let bytes = pool.copy(&part[..*bytes]).into();
                received.push(Received { from, bytes, segment_bytes: *segment_bytes });
            }
        }
        Ok(found.len())
    }

    /// Reads the sender, and the size of the segments; takes down the drops.
    fn sender_and_segment(
        &self,
        message: &RecvMsg<'_, '_, SockaddrStorage>,
    ) -> (Option<SocketAddr>, usize) {
        let mut segment_bytes = message.bytes;
        // There is room for all that is asked for; without, this datagram's segments are unknown and
        // the state machine counts it as malformed.
        for said in message.cmsgs().into_iter().flatten() {
            match said {
                ControlMessageOwned::UdpGroSegments(bytes) => {
                    segment_bytes = usize::try_from(bytes).unwrap_or(message.bytes);
                }
                ControlMessageOwned::RxqOvfl(drops) => self.note_drops(drops),
                _ => {}
            }
        }
        (message.address.as_ref().and_then(std_address), segment_bytes.max(1))
    }

    /// The kernel's count has 32 bits and starts anew; ours goes on.
    fn note_drops(&self, drops: u32) {
        let before = self.counters.kernel_drops.load(Relaxed);
        let more = drops.wrapping_sub(before as u32);
        // Two threads never receive at once; a look at an older count must not count backwards.
        if more < u32::MAX / 2 {
            self.counters.kernel_drops.store(before + u64::from(more), Relaxed);
        }
    }

    fn count_received(&self, bytes: usize) {
        self.counters.received_buffers.fetch_add(1, Relaxed);
        self.counters.received_bytes.fetch_add(bytes as u64, Relaxed);
    }
}

impl Net for Linux {
    fn send(&self, transmits: &[Transmit], failed: &mut dyn FnMut(&Transmit, SendError)) {
        let mut rest = transmits;
        while let Some(first) = rest.first() {
            let singles = rest
                .iter()
                .take_while(|one| segment_of(one).is_none() && !one.may_fragment)
                .count();
            if singles > 1 {
                let (run, after) = rest.split_at(singles);
                rest = after;
                let mut datagrams: SmallVec<[(SocketAddr, &[u8]); SEND_BATCH]> = SmallVec::new();
                datagrams.extend(
                    run.iter().map(|one| (for_socket(self.is_ipv6, one.to), &one.bytes[..])),
                );
                self.count_sent(run.len(), run.iter().map(|one| one.bytes.len()).sum());
                self.send_many(&datagrams, &mut |at, error| failed(&run[at], why(error)));
                continue;
            }
            rest = &rest[1..];
            let (sent, datagrams) = match segment_of(first) {
                _ if first.may_fragment => (self.send_in_fragments(first), 1),
                Some(segment_bytes) => (
                    self.send_train(first, segment_bytes),
                    first.bytes.len().div_ceil(segment_bytes),
                ),
                None => (self.send_one(first.to, &first.bytes, None), 1),
            };
            self.count_sent(datagrams, first.bytes.len());
            if let Err(error) = sent {
                failed(first, why(error));
            }
        }
    }

    fn recv(&self, amount: Amount, pool: &mut Pool, received: &mut Vec<Received>) -> bool {
        let mut ancillary = mem::take(&mut pool.ancillary);
        if ancillary.is_empty() {
            ancillary = ancillary_space();
        }
        let more = self.receive_singly(amount, pool, received, &mut ancillary);
        pool.ancillary = ancillary;
        more
    }

    fn recv_within(&self, within: Option<Duration>, pool: &mut Pool, received: &mut Vec<Received>) {
        if self.own.is_none() || within.is_some_and(|within| within < LIMIT_MIN) {
            self.wait(Reader::Leader, within);
            self.recv(Amount::One, pool, received);
            return;
        }
        if self.interrupted.swap(false, SeqCst) || !self.limit_receive(within) {
            return;
        }
        let mut ancillary = mem::take(&mut pool.ancillary);
        if ancillary.is_empty() {
            ancillary = ancillary_space();
        }
        let first = self.receive_buffer(MsgFlags::empty(), pool, received, &mut ancillary);
        // Whoever interrupted did so after changing what the leader will look at now.
        self.interrupted.store(false, SeqCst);
        // An error is as good as nothing. Behind a train there may be more.
        if first.is_ok_and(|length| length > 0) {
            self.receive_singly(Amount::One, pool, received, &mut ancillary);
        }
        pool.ancillary = ancillary;
    }

    fn wait(&self, reader: Reader, within: Option<Duration>) {
        let interrupt = self.interrupt_of(reader);
        let mut fds =
            [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(interrupt, PollFlags::IN)];
        wait_for(&mut fds, within);
        if !fds[1].revents().is_empty() {
            // Its count says nothing more; an error means that it was taken already.
            let _ = rustix::io::read(interrupt, &mut [0_u8; 8]);
        }
    }

    fn interrupt(&self, reader: Reader) {
        if reader == Reader::Leader
            && let Some(own) = self.own
        {
            self.interrupted.store(true, SeqCst);
            // If there is no room for it, the socket has something to receive anyway.
            let _ = self.send_one(own, &[], None);
        }
        // It can fail only when the count is full, and then the reader is interrupted already.
        let _ = rustix::io::write(self.interrupt_of(reader), &1_u64.to_ne_bytes());
    }

    fn path_bytes(&self, address: IpAddr) -> Option<usize> {
        self.paths.bytes(address)
    }

    fn query_path_bytes(&self, address: IpAddr) -> Option<usize> {
        self.paths.query(address)
    }

    fn socket(&self) -> &socket2::Socket {
        &self.socket
    }

    fn counters(&self) -> &NetCounters {
        &self.counters
    }
}

/// Returns the address at which a socket reaches itself and no other one: not if it shares its
/// port, not if it takes datagrams of one peer only, and not if there is no way to it.
pub(super) fn own_address(
    socket: &socket2::Socket,
    reaches: impl Fn(IpAddr) -> bool,
) -> Option<SocketAddr> {
    if socket.peer_addr().is_ok() || socket.reuse_address().ok()? || socket.reuse_port().ok()? {
        return None;
    }
    let local = socket.local_addr().ok()?.as_socket()?;
    let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let (first, other) = match local.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (v4, None),
        IpAddr::V6(ip) if ip.is_unspecified() => (v6, (!socket.only_v6().ok()?).then_some(v4)),
        ip if ip.is_loopback() => (ip, None),
        // By way of a device something may be in between.
        _ => return None,
    };
    let ip = [Some(first), other].into_iter().flatten().find(|ip| reaches(*ip))?;
    Some(SocketAddr::new(ip, local.port()))
}

/// What can't be set is done without: an older kernel still sends and receives.
fn set_up(socket: &socket2::Socket) {
    if setsockopt(socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
    }
    if setsockopt(socket, sockopt::SndBufForce, &SEND_BUFFER_BYTES).is_err() {
        let _ = socket.set_send_buffer_size(SEND_BUFFER_BYTES);
    }
    let _ = setsockopt(socket, sockopt::UdpGroSegment, &true);
    let _ = setsockopt(socket, sockopt::RxqOvfl, &1);
}

/// Returns the size of a train's segments; none if it is one datagram.
fn segment_of(transmit: &Transmit) -> Option<usize> {
    transmit.segment_bytes.filter(|&segment| segment < transmit.bytes.len())
}

fn why(error: Errno) -> SendError {
    match error {
        Errno::EMSGSIZE => SendError::TooLong,
        Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM => SendError::NoRoom,
        Errno::ECONNREFUSED
        | Errno::EHOSTUNREACH
        | Errno::ENETUNREACH
        | Errno::ENETDOWN
        | Errno::EHOSTDOWN
        | Errno::EADDRNOTAVAIL
        | Errno::EPERM => SendError::Unreachable,
        _ => SendError::Other,
    }
}

fn std_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into()))).map(canonical)
}

fn wait_for(fds: &mut [PollFd<'_>], within: Option<Duration>) {
    let limit = within.map(|within| Timespec {
        tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(within.subsec_nanos()),
    });
    // Interrupted by a signal is as good as woken: the caller looks again.
    let _ = poll(fds, limit.as_ref());
}
