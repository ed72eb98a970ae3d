//! What must hold in whatever order the threads run.

use std::sync::Arc;
use std::time::Duration;

use quelea_cmq_proto::{Config, DestinationOptions, Key, MailboxOptions};
use shuttle::{future, thread};

use crate::{Dest, Endpoint, Queue};

/// Orders that each test tries, of two kinds: any thread at any time, and few changes of threads at
/// the worst moments.
const RANDOM_ORDERS: usize = 500;
const PCT_ORDERS: usize = 500;
const PCT_CHANGES: usize = 3;

fn check(test: fn()) {
    shuttle::check_random(test, RANDOM_ORDERS);
    shuttle::check_pct(test, PCT_ORDERS, PCT_CHANGES);
}

/// Returns two endpoints, and the second one's queues of its mailboxes 0, 1, …, each with the first
/// one's handle to it.
fn endpoints(mailboxes: u64) -> ([Endpoint; 2], Vec<(Arc<Queue>, Dest)>) {
    let bind = || Endpoint::bind("127.0.0.1:0", Config::default()).unwrap();
    let [sender, receiver] = [bind(), bind()];
    let open = |mailbox| {
        let queue = receiver.queue(mailbox, MailboxOptions::default()).unwrap();
        let options = DestinationOptions { credit: false, ..DestinationOptions::default() };
        let dest = sender.dest(Key::new(receiver.local_addr(), mailbox), options).unwrap();
        (Arc::new(queue), dest)
    };
    let queues = (0..mailboxes).map(open).collect();
    ([sender, receiver], queues)
}

fn push(dest: &Dest, message: u8) {
    dest.push(&[message]).unwrap();
    dest.flush();
}

fn pop(queue: &Arc<Queue>) -> thread::JoinHandle<u8> {
    let queue = Arc::clone(queue);
    thread::spawn(move || queue.pop().unwrap().bytes[0])
}

fn close(endpoints: [Endpoint; 2], queues: Vec<(Arc<Queue>, Dest)>) {
    drop(queues);
    for endpoint in endpoints {
        endpoint.close(Duration::ZERO).unwrap();
    }
}

#[test]
fn whoever_waits_gets_a_message_that_came() {
    check(|| {
        let (endpoints, queues) = endpoints(1);
        let pops: Vec<_> = (0..3).map(|_| pop(&queues[0].0)).collect();
        let pushes: Vec<_> = (0..3)
            .map(|message| {
                let dest = queues[0].1.clone();
                thread::spawn(move || push(&dest, message))
            })
            .collect();
        for push in pushes {
            push.join().unwrap();
        }
        let mut popped: Vec<_> = pops.into_iter().map(|pop| pop.join().unwrap()).collect();
        popped.sort_unstable();
        assert_eq!(popped, [0, 1, 2]);
        close(endpoints, queues);
    });
}

#[test]
fn messages_of_one_datagram_reach_all_who_wait() {
    check(|| {
        let (endpoints, queues) = endpoints(2);
        // It may lead all the time.
        let other = pop(&queues[1].0);
        let pops: Vec<_> = (0..3).map(|_| pop(&queues[0].0)).collect();
        let dest = &queues[0].1;
        assert_eq!(dest.push_batch([[1], [2], [3]]), Ok(3));
        dest.flush();
        let sum: u8 = pops.into_iter().map(|pop| pop.join().unwrap()).sum();
        assert_eq!(sum, 6);
        push(&queues[1].1, 4);
        assert_eq!(other.join().unwrap(), 4);
        close(endpoints, queues);
    });
}

#[test]
fn a_leader_that_leaves_hands_over_to_a_follower() {
    check(|| {
        let (endpoints, queues) = endpoints(3);
        let pops: Vec<_> = queues.iter().map(|(queue, _)| pop(queue)).collect();
        // Each message only comes once the one who may have led before is gone.
        for (mailbox, (pop, (_, dest))) in pops.into_iter().zip(&queues).enumerate() {
            push(dest, mailbox as u8);
            assert_eq!(pop.join().unwrap(), mailbox as u8);
        }
        close(endpoints, queues);
    });
}

#[test]
fn a_message_without_a_caller_wakes_the_task_that_awaits_it() {
    check(|| {
        let (endpoints, queues) = endpoints(2);
        let thread_pops = pop(&queues[0].0);
        let queue = Arc::clone(&queues[1].0);
        let task = thread::spawn(move || {
            future::block_on(async { queue.pop_async().await.unwrap().bytes[0] })
        });
        push(&queues[0].1, 7);
        assert_eq!(thread_pops.join().unwrap(), 7);
        push(&queues[1].1, 8);
        assert_eq!(task.join().unwrap(), 8);
        close(endpoints, queues);
    });
}

#[test]
fn messages_of_one_thread_arrive_in_the_order_of_its_pushes() {
    check(|| {
        let (endpoints, queues) = endpoints(1);
        let pushes: Vec<_> = [0, 10]
            .map(|first| {
                let dest = queues[0].1.clone();
                thread::spawn(move || (first..first + 3).for_each(|message| push(&dest, message)))
            })
            .into();
        let popped: Vec<_> = (0..6).map(|_| queues[0].0.pop().unwrap().bytes[0]).collect();
        let of = |from: u8| popped.iter().copied().filter(move |one| one / 10 == from / 10);
        assert!(of(0).eq([0, 1, 2]) && of(10).eq([10, 11, 12]), "{popped:?}");
        assert_eq!(endpoints[1].stats().proto.received.reordered, 0);
        for push in pushes {
            push.join().unwrap();
        }
        close(endpoints, queues);
    });
}

#[test]
fn closing_the_endpoint_wakes_everyone() {
    check(|| {
        let (endpoints, queues) = endpoints(2);
        let waits = |at: usize| {
            let queue = Arc::clone(&queues[at].0);
            thread::spawn(move || queue.pop().is_none())
        };
        let mut threads = vec![waits(0), waits(0), waits(1)];
        let queue = Arc::clone(&queues[1].0);
        threads.push(thread::spawn(move || {
            future::block_on(async { queue.pop_async().await.is_none() })
        }));
        let [_, receiver] = endpoints;
        receiver.close(Duration::ZERO).unwrap();
        for thread in threads {
            assert!(thread.join().unwrap());
        }
    });
}
