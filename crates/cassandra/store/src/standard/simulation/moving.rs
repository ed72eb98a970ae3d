//! Move tasks that go at a rate.

use std::time::Duration;

use quelea_sqs_protocol::{MoveTask, MoveTaskState, NewMessage, NewMoveTask};
use tokio::time::{Instant, sleep};

use super::chaos::Chaos;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use crate::standard::move_rate::MoveRate;
use crate::standard::move_step::Step;

const MESSAGES: usize = 1_500;

/// The messages that a task at that rate has moved, with the time of each step since it began.
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
