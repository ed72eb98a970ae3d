//! Move tasks: those that go at a rate, and those of a queue that others receive from.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quelea_sqs_protocol::{MoveTask, MoveTaskState, NewMessage, NewMoveTask, QueueFacts, Receive};
use tokio::time::{Instant, sleep};

use super::chaos::Chaos;
use super::cluster::Mishap;
use super::front_end::FrontEnd;
use super::process::lock;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use super::unreadable::{move_task, send};
use crate::standard::move_rate::MoveRate;
use crate::standard::move_step::Step;

const MESSAGES: usize = 1_500;

/// Returns the messages that a task at that rate has moved, with the time of each step since it
/// began.
async fn steps_at(per_s: u32) -> Vec<(Duration, usize)> {
    let simulation = StandardSimulation::new(Chaos { front_ends: 1, ..Chaos::NONE }).await;
    let standard = simulation.any_front_end().standard.clone();
    for _ in 0..MESSAGES / 100 {
        let new = || NewMessage { body: "body".into(), ..NewMessage::default() };
        let messages = (0..100).map(|_| new()).collect();
        standard.send(&simulation.dead_letters, messages).await.unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    let destination = Some(simulation.queue.queue.clone());
    let task = MoveTask {
        handle: None,
        state: MoveTaskState::Running,
        source: simulation.dead_letters.queue.clone(),
        task: NewMoveTask { destination, messages_per_second_max: Some(per_s) },
        moved: 0,
        to_move: MESSAGES as u64,
        failure_reason: None,
        started_at_ms: standard.clock.now_ms(),
    };
    let (rate, first, mut steps) = (MoveRate(Some(per_s)), Instant::now(), Vec::new());
    loop {
        let began = Instant::now();
        let step = standard.move_step(&task, rate.step_rows_max()).await.unwrap();
        let Step::Moved(moved) = step else {
            assert_eq!(step, Step::Done);
            steps.push((first.elapsed(), 0));
            return steps;
        };
        steps.push((began - first, moved));
        rate.after(began, moved as u64).await;
    }
}

#[test]
fn a_task_moves_as_many_messages_a_second_as_were_asked_for() {
    for per_s in [20, 100, 150, 500] {
        in_virtual_time(async {
            let steps = steps_at(per_s).await;
            assert_eq!(steps.iter().map(|(_, moved)| moved).sum::<usize>(), MESSAGES);
            let took = steps.last().map(|(at, _)| at.as_secs_f64()).unwrap();
            let wanted = MESSAGES as f64 / f64::from(per_s);
            assert!((wanted..wanted * 1.05).contains(&took), "{took} s at {per_s}");
            for (from, _) in &steps {
                let second = *from..*from + Duration::from_secs(1);
                let within = steps.iter().filter(|(at, _)| second.contains(at));
                let moved = within.map(|(_, moved)| moved).sum::<usize>();
                // A step that has begun in a second is counted as one of it.
                assert!(moved <= per_s as usize + 99, "{moved} in a second at {per_s}");
            }
        });
    }
}

/// Receives for as long as nobody else ends it; what it gets stays hidden.
async fn consume(
    front_end: Arc<FrontEnd>,
    facts: Arc<QueueFacts>,
    received: Arc<Mutex<Vec<String>>>,
) {
    let receive =
        Receive { max: 10, visibility_timeout_ms: 3_600_000, wait_ms: 1_000, attempt_id: None };
    loop {
        let some = front_end.standard.receive(&facts, receive.clone()).await.unwrap();
        lock(&received).extend(some.into_iter().map(|one| one.message_id));
    }
}

#[test]
fn consumers_get_no_message_that_a_task_moves() {
    in_virtual_time(async {
        let chaos = Chaos { front_ends: 3, ..Chaos::NONE };
        let simulation = Arc::new(StandardSimulation::new(chaos).await);
        tokio::spawn(simulation.clone().keep_hearts_beating());
        let front_ends = simulation.front_ends();
        let (standard, from) = (front_ends[0].standard.clone(), &simulation.dead_letters);
        for _ in 0..MESSAGES {
            send(&standard, from, "letter").await;
        }
        let received = Arc::<Mutex<Vec<String>>>::default();
        // One of them at the front-end that carries out the task.
        for front_end in &front_ends {
            tokio::spawn(consume(front_end.clone(), from.clone(), received.clone()));
        }
        let (task, mut moved) = (move_task(&standard, from, &simulation.queue), 0);
        loop {
            match standard.move_step(&task, 20).await.unwrap() {
                Step::Moved(more) => moved += more,
                Step::Waits => sleep(Duration::from_secs(1)).await,
                other => {
                    assert_eq!(other, Step::Done);
                    break;
                }
            }
        }
        let received = lock(&received);
        assert!(moved > 0 && !received.is_empty(), "both take some");
        assert_eq!(received.iter().collect::<BTreeSet<_>>().len(), received.len());
        assert_eq!(moved + received.len(), MESSAGES);
    });
}

/// What a step could not move is nobody's.
#[test]
fn what_a_step_could_not_move_is_received_elsewhere_at_once() {
    in_virtual_time(async {
        let chaos = Chaos { front_ends: 2, ..Chaos::NONE };
        let simulation = StandardSimulation::new(chaos).await;
        let [front_end, other] = &simulation.front_ends()[..] else { panic!("two") };
        let from = &simulation.dead_letters;
        for _ in 0..10 {
            send(&front_end.standard, from, "letter").await;
        }
        let receive =
            Receive { max: 10, visibility_timeout_ms: 60_000, wait_ms: 1_000, attempt_id: None };
        other.standard.peers.polls(other.standard.queue(from).await.unwrap().generation);
        sleep(Duration::from_millis(10)).await;
        let task = move_task(&front_end.standard, from, &simulation.queue);
        simulation.common.cluster.have([Mishap::Fails]);
        assert!(front_end.standard.move_step(&task, 10).await.is_err());
        let received = other.standard.receive(from, receive).await.unwrap();
        assert_eq!(received.len(), 10);
    });
}
