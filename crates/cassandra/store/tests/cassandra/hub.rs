//! A network of datagrams between the front-ends of a test, in memory: everything arrives, or nothing does.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use quelea_cassandra_store::{CassandraQueues, PeerSocket, Receiving};
use tokio::sync::Notify;

/// The network.
#[derive(Default)]
pub(crate) struct Hub {
    ends: Mutex<HashMap<SocketAddr, Arc<Mailbox>>>,
    is_cut: AtomicBool,
}

/// What has arrived at a front-end.
#[derive(Default)]
struct Mailbox {
    arrived: Mutex<VecDeque<Vec<u8>>>,
    is_new: Notify,
}

impl Mailbox {
    fn put(&self, datagram: &[u8]) {
        self.arrived.lock().unwrap().push_back(datagram.to_vec());
        self.is_new.notify_one();
    }
}

impl Hub {
    /// Has a front-end speak with those that joined before.
    pub(crate) async fn join(self: &Arc<Self>, queues: &CassandraQueues) {
        let mailbox = Arc::<Mailbox>::default();
        let address = {
            let mut ends = self.ends.lock().unwrap();
            let address = SocketAddr::from(([127, 0, 0, 1], 1_000 + ends.len() as u16));
            ends.insert(address, mailbox.clone());
            address
        };
        let end = End { hub: self.clone(), address, mailbox };
        queues.join(Arc::new(end)).await;
    }

    /// Loses everything, or nothing any more.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// Has every front-end get these bytes.
    pub(crate) fn inject(&self, bytes: &[u8]) {
        for end in self.ends.lock().unwrap().values() {
            end.put(bytes);
        }
    }
}

struct End {
    hub: Arc<Hub>,
    address: SocketAddr,
    mailbox: Arc<Mailbox>,
}

impl PeerSocket for End {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn send(&self, to: SocketAddr, datagram: &[u8]) {
        if self.hub.is_cut.load(Ordering::SeqCst) {
            return;
        }
        if let Some(end) = self.hub.ends.lock().unwrap().get(&to) {
            end.put(datagram);
        }
    }

    fn try_receive(&self) -> Option<Vec<u8>> {
        self.mailbox.arrived.lock().unwrap().pop_front()
    }

    fn receive(&self) -> Receiving<'_> {
        Box::pin(async {
            loop {
                if let Some(datagram) = self.try_receive() {
                    return Some(datagram);
                }
                self.mailbox.is_new.notified().await;
            }
        })
    }
}
