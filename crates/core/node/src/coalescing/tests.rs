use super::*;

/// Sends a message of 60 bytes whenever `gap_us` have passed and fewer than `window` are unanswered.
#[derive(Clone, Copy)]
struct Client {
    gap_us: f64,
    window: u64,
}

const UNLIMITED: u64 = 100_000;

/// Messages a second of each client, and pauses a second, of the last half of a play.
struct Played {
    rates: Vec<f64>,
    pauses: f64,
}

/// Plays a core in virtual time: a read and a turn take 4 µs together, a tenth of a microsecond a
/// message more, and a pause 100.
fn play(clients: &[Client], ms: u64, coalescing: &mut InputCoalescing, start: Instant) -> Played {
    let (mut now_us, mut worked_us, end_us) = (0.0, 0.0, ms as f64 * 1e3);
    let (mut waits, mut has_waited) = (0, false);
    let mut next_us = vec![0.0_f64; clients.len()];
    let (mut rates, mut pauses) = (vec![0.0; clients.len()], 0.0);
    let per_s = 2e6 / end_us;
    while now_us < end_us {
        let began_us = now_us;
        for (at, client) in clients.iter().enumerate() {
            let due = ((now_us - next_us[at]) / client.gap_us).max(-1.0) as i64 + 1;
            let found = (due.max(0) as u64).min(client.window);
            if found == 0 {
                continue;
            }
            coalescing.count_read(at, found as usize * 60);
            now_us += 4.0 + 0.1 * found as f64;
            next_us[at] = match found == client.window {
                // Answered now, and the next takes its time.
                true => now_us + client.gap_us,
                false => next_us[at] + found as f64 * client.gap_us,
            };
            if now_us > end_us / 2.0 {
                rates[at] += found as f64 * per_s;
            }
        }
        if now_us == began_us {
            waits += u64::from(!std::mem::replace(&mut has_waited, true));
            now_us += 0.2;
            continue;
        }
        worked_us += now_us - began_us;
        has_waited = false;
        let now = start + us(now_us);
        if coalescing.end_turn(now, || Some(ThreadUsage { waits, cpu_time: us(worked_us) })) {
            now_us += 100.0;
            coalescing.count_pause(us(100.0));
            pauses += if now_us > end_us / 2.0 { per_s } else { 0.0 };
        }
    }
    Played { rates, pauses }
}

fn us(us: f64) -> Duration {
    Duration::from_nanos((us * 1e3) as u64)
}

fn play_new(clients: &[Client]) -> Played {
    let start = Instant::now();
    play(clients, 4_000, &mut InputCoalescing::new(start), start)
}

const WRITER: Client = Client { gap_us: 2.0, window: UNLIMITED };

#[test]
fn a_client_that_sends_on_and_on_is_read_in_batches() {
    let played = play_new(&[WRITER]);
    assert!(played.pauses > 5_000.0, "{}", played.pauses);
}

#[test]
fn a_core_that_has_time_does_not_pause() {
    for gap_us in [20.0, 100.0] {
        let played = play_new(&[Client { gap_us, window: UNLIMITED }]);
        assert_eq!(played.pauses, 0.0, "{gap_us}");
    }
}

#[test]
fn clients_that_wait_for_each_answer_lose_next_to_nothing() {
    let played = play_new(&[Client { gap_us: 2.0, window: 1 }; 30]);
    // Each attempt costs a window, and they become rare.
    assert!(played.pauses < 100.0, "{}", played.pauses);
    assert!(played.rates.iter().sum::<f64>() > 200_000.0, "{:?}", played.rates);
}

#[test]
fn a_small_window_is_not_slowed() {
    for (gap_us, window) in [(1.0, 8), (4.0, 20)] {
        let start = Instant::now();
        let mut never = InputCoalescing::new(start);
        never.state = State::Watching { until: start + Duration::from_secs(60) };
        let clients = [Client { gap_us, window }];
        let without = play(&clients, 4_000, &mut never, start).rates[0];
        let with = play_new(&clients).rates[0];
        assert!(with > without * 0.93, "{window}: {with} of {without}");
    }
}

#[test]
fn who_waits_for_each_answer_is_not_slowed_beside_a_writer_at_full_speed() {
    let waiting = Client { gap_us: 3.0, window: 1 };
    let played = play_new(&[Client { gap_us: 3.0, window: UNLIMITED }, waiting]);
    assert!(played.rates[1] > 70_000.0, "{:?}", played.rates);
    let consumer = Client { gap_us: 30.0, window: 1 };
    let beside = [Client { gap_us: 3.0, window: UNLIMITED }, consumer, consumer, consumer];
    let played = play_new(&beside);
    assert!(played.rates[1..].iter().all(|rate| *rate > 15_000.0), "{:?}", played.rates);
}

#[test]
fn pauses_end_with_the_load() {
    let start = Instant::now();
    let mut coalescing = InputCoalescing::new(start);
    assert!(play(&[WRITER], 1_000, &mut coalescing, start).pauses > 0.0);
    let slow = Client { gap_us: 20.0, window: UNLIMITED };
    let later = start + Duration::from_secs(1);
    assert_eq!(play(&[slow], 1_000, &mut coalescing, later).pauses, 0.0);
}

/// Ends windows, and says after each whether the core pauses.
struct Windows {
    coalescing: InputCoalescing,
    now: Instant,
    usage: Option<ThreadUsage>,
    /// Bytes that come in the turn that ends the window.
    turn_bytes: usize,
}

/// What a window of a tenth of a second has, or as much a second of a shorter one.
#[derive(Clone, Copy)]
struct Window {
    clients: usize,
    reads: u64,
    read_bytes: usize,
    body_bytes: usize,
    waits: u64,
    busy: f64,
    pause_us: f64,
}

const BUSY: Window = Window {
    clients: 1,
    reads: 20_000,
    read_bytes: 60,
    body_bytes: 0,
    waits: 100,
    busy: 0.95,
    pause_us: 100.0,
};

/// The same with pauses that pay.
const BATCHED: Window = Window { reads: 1_000, read_bytes: 1_200, ..BUSY };

impl Windows {
    fn new() -> Self {
        let now = Instant::now();
        let coalescing = InputCoalescing::new(now);
        let usage = Some(ThreadUsage::default());
        let mut windows = Self { coalescing, now, usage, turn_bytes: 60 };
        // From now on it knows what was used before.
        windows.end(Window { reads: 0, ..BUSY });
        windows
    }

    fn end(&mut self, window: Window) -> bool {
        let elapsed = match self.coalescing.state {
            State::Watching { .. } => WATCHING_WINDOW,
            State::Pausing(_) => PAUSING_WINDOW,
        };
        let part = elapsed.as_secs_f64() / WATCHING_WINDOW.as_secs_f64();
        for at in 0..(window.reads as f64 * part) as usize {
            self.coalescing.count_read(at % window.clients, window.read_bytes);
        }
        self.coalescing.count_body(0, (window.body_bytes as f64 * part) as usize);
        self.coalescing.count_pause(us(window.pause_us));
        if let Some(usage) = &mut self.usage {
            usage.waits += (window.waits as f64 * part) as u64;
            usage.cpu_time += elapsed.mul_f64(window.busy);
        }
        self.now += elapsed;
        // The turn that ends it has little of it.
        self.coalescing.turn_bytes = 0;
        self.coalescing.count_body(0, self.turn_bytes);
        let usage = self.usage;
        self.coalescing.end_turn(self.now, || usage)
    }
}

#[test]
fn pauses_begin_only_with_many_small_reads_of_a_core_at_its_limit() {
    assert!(Windows::new().end(BUSY));
    for (what, window) in [
        ("waits", Window { waits: 300, ..BUSY }),
        ("idle between bursts", Window { busy: 0.5, ..BUSY }),
        ("few reads", Window { reads: 900, ..BUSY }),
        ("large reads", Window { read_bytes: 1_100, ..BUSY }),
        ("clients", Window { clients: 1_001, ..BUSY }),
    ] {
        assert!(!Windows::new().end(window), "{what}");
    }
    let mut unknown = Windows::new();
    unknown.usage = None;
    assert!(!unknown.end(BUSY) && !unknown.end(BUSY));
}

#[test]
fn a_turn_with_much_input_or_none_is_not_followed_by_a_pause() {
    for (turn_bytes, pauses) in [(60, true), (7 * 1024, true), (8 * 1024, false), (0, false)] {
        let mut windows = Windows { turn_bytes, ..Windows::new() };
        assert_eq!(windows.end(BUSY), pauses, "{turn_bytes}");
    }
}

#[test]
fn pauses_go_on_only_while_they_pay() {
    let slowed = Window { clients: 10, reads: 2_000, read_bytes: 600, ..BUSY };
    for (what, before, after, windows) in [
        ("reads do not grow", BUSY, Window { read_bytes: 170, reads: 7_100, ..BUSY }, 1),
        ("far less comes", BUSY, Window { reads: 700, ..BATCHED }, 1),
        ("less comes", BUSY, Window { reads: 900, ..BATCHED }, 5),
        ("bodies stop", Window { body_bytes: 6_000_000, ..BUSY }, BATCHED, 1),
        ("pauses are long", BUSY, Window { pause_us: 600.0, ..BATCHED }, 1),
        ("clients stop", Window { clients: 20, ..BUSY }, slowed, 3),
    ] {
        let mut played = Windows::new();
        assert!(played.end(before), "{what}");
        let pausing = (1..).take_while(|_| played.end(after)).take(50).count();
        assert_eq!(pausing + 1, windows, "{what}");
        let attempts =
            (0..200).filter(|_| played.end(before) && !(0..9).all(|_| played.end(after)));
        assert!(attempts.count() < 20, "{what}: attempts become rare");
    }
}

#[test]
fn it_is_measured_again_what_comes_without_pauses() {
    let mut windows = Windows::new();
    assert!(windows.end(BUSY));
    let pausing = (1..).take_while(|_| windows.end(BATCHED)).take(500).count();
    assert_eq!(pausing as u32, PAUSING_WINDOWS_MAX);
    assert!(windows.end(BUSY), "and it goes on");
}
