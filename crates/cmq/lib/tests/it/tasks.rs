//! The asynchronous interface, on an executor that does the least that one can.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use quelea_cmq::responder::ResponderOptions;
use quelea_cmq::{Caller, Cmq, DestinationOptions, Endpoint, Key, Mode, OnLoss, Queue, Responder};

use crate::ends::*;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park_timeout(LONG),
        }
    }
}

#[test]
fn a_task_that_waits_for_a_message_is_woken_by_it() {
    let (a, b) = (endpoint(), endpoint());
    let queue = queue(&b, 0);
    let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
    thread::scope(|scope| {
        let popping = scope.spawn(|| {
            block_on(async {
                for number in 0..200_u32 {
                    let message = queue.pop_async().await.unwrap();
                    assert_eq!(message.bytes[..], number.to_le_bytes());
                }
            });
        });
        block_on(async {
            for number in 0..200_u32 {
                dest.push_async(&number.to_le_bytes()).await.unwrap();
                if number % 3 == 0 {
                    assert!(dest.wait_acknowledged_async().await.is_acknowledged());
                }
            }
            assert!(dest.wait_acknowledged_async().await.is_acknowledged());
        });
        popping.join().unwrap();
    });
}

/// Returns a queue with a message that was pushed behind all that `a` pushed to `b` before.
fn queue_of_marker(a: &Endpoint, b: &Endpoint) -> Queue {
    let queue = queue(b, 1);
    let dest = dest(a, b, 1, Mode::ReliableOrdered);
    dest.push(b"marker").unwrap();
    a.flush();
    queue
}

#[test]
fn a_dropped_task_leaves_its_message_to_the_next() {
    let (a, b) = (endpoint(), endpoint());
    let queue = queue(&b, 0);
    let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
    let unmoved = Waker::noop();
    let mut first = Box::pin(queue.pop_async());
    assert!(first.as_mut().poll(&mut Context::from_waker(unmoved)).is_pending());
    thread::scope(|scope| {
        let second = scope.spawn(|| block_on(queue.pop_async()));
        dest.push(b"for whoever comes").unwrap();
        // What was pushed later came later: the message is there, and the first one was called.
        let marker = queue_of_marker(&a, &b);
        assert!(marker.pop_timeout(LONG).is_some());
        drop(first);
        assert_eq!(&second.join().unwrap().unwrap().bytes[..], b"for whoever comes");
    });
}

#[test]
fn a_task_that_waits_ends_with_the_queue() {
    let b = endpoint();
    let queue = queue(&b, 0);
    thread::scope(|scope| {
        let popping = scope.spawn(|| block_on(queue.pop_async()));
        b.clone().close(LONG).unwrap();
        assert!(popping.join().unwrap().is_none());
    });
}

#[test]
fn an_answer_can_be_awaited_and_its_absence_too() {
    let (a, b) = (endpoint(), endpoint());
    let responder = Responder::new(queue(&b, 0), ResponderOptions::default());
    let server = Key::new(b.local_addr(), 0);
    let caller = Caller::new(&a, server, DestinationOptions::default()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let request = responder.next().unwrap();
            responder.answer(&request, b"yes").unwrap();
            responder.queue().endpoint().flush();
        });
        let again = OnLoss::Resend { times: 100 };
        let asked = caller.request(b"well?", Duration::from_millis(50), again).unwrap();
        assert_eq!(block_on(asked.into_future()).unwrap()[..], *b"yes");
        // Nobody answers the second one.
        let asked = caller.request(b"really?", Duration::from_millis(10), OnLoss::Fail).unwrap();
        assert_eq!(block_on(asked.into_future()).unwrap_err().asked, 1);
        assert_eq!(caller.outstanding(), 0);
    });
}

#[test]
fn the_papers_interface_carries_values() {
    let open = || {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        Cmq::<(u32, String)>::new_rq(socket, 0, 512, Duration::from_millis(1)).unwrap()
    };
    let (one, other) = (open(), open());
    assert_eq!(other.cw_pop(), None);
    let key = Key::new(other.endpoint().local_addr(), 0);
    let value = (7, "sieben".to_owned());
    // What is not a value is passed over.
    one.endpoint().push(key, &[0xFF]).unwrap();
    one.cw_push(key, &value).unwrap();
    assert_eq!(other.cw_pop_timeout(LONG), Some(value));
    assert_eq!(other.undecodable(), 1);
}

#[test]
fn the_papers_interface_opens_the_mailbox_of_its_key() {
    let open = |mailbox| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        Cmq::<u32>::new_rq(socket, mailbox, 512, Duration::from_millis(1)).unwrap()
    };
    let process = 4_194_303;
    let (one, other) = (open(0), open(process));
    let address = other.endpoint().local_addr();
    // To nobody: that mailbox is not open there.
    one.cw_push(Key::new(address, 0), &1).unwrap();
    one.cw_push(Key::new(address, process), &2).unwrap();
    assert_eq!(other.cw_pop_timeout(LONG), Some(2));
    assert_eq!(other.cw_pop(), None);
}
