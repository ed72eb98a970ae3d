//! All programs as processes of their own, over a broker that runs or one that is started for them.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use quelea_bench::shared::Interrupt;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::answers::Tally;
use crate::book::Rule;
use crate::broker::{Broker, cpu_s};
use crate::error::Error;
use crate::feed::{FeedArgs, Way, check_ways};
use crate::orders::expected;
use crate::packets::Packets;
use crate::program::{Outcome, ProgramArgs, READY, SAMPLE_ORDERS};

/// Options of a whole run.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// Options of all programs
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Orders a second; without it as fast as they are answered
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub rate: Option<u32>,
    /// Of the random orders
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Which orders trade
    #[arg(long, value_enum, default_value_t = Rule::Exact)]
    pub rule: Rule,
    /// Draws the book in the terminal while it trades
    #[arg(long)]
    pub view: bool,
    /// Where the measurements go, as CSV
    #[arg(long, default_value = "stock-exchange.csv", value_name = "FILE")]
    pub csv: PathBuf,
    /// Starts this `quelea` for the run, on a free port and a data directory of its own, instead of using --uri
    #[arg(long, value_name = "FILE", conflicts_with_all = ["uri", "directory"])]
    pub quelea: Option<PathBuf>,
    /// Kills that broker by signal 9 when half of the orders are sent, and starts it again
    #[arg(long, requires = "quelea", requires = "durable")]
    pub kill: bool,
    /// The broker's process, whose CPU time is measured
    #[arg(long, conflicts_with = "quelea", value_name = "PID")]
    pub broker_pid: Option<u32>,
    /// The interface whose packets are counted
    #[arg(long, default_value = "lo", value_name = "NAME")]
    pub interface: String,
    /// Prints one object of JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// By which ways quotes leave, too; somebody looks at each, and measures how late they are
    #[arg(
        long = "feed",
        group = "feeds",
        value_enum,
        value_delimiter = ',',
        value_name = "WAY",
        conflicts_with = "kill"
    )]
    pub ways: Vec<Way>,
    /// Where the ways lead; of a broker that is started for the run, its own directory
    #[command(flatten)]
    pub feed: FeedArgs,
}

/// Says to a program that it was started by a run.
const CHILD: &str = "STOCK_EXCHANGE_CHILD";

/// How often a run looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Programs by their places: behind these are the tickers, one for each way of the feed.
const PROGRAMS: [&str; 3] = ["gateway", "engine", "reporter"];
const GATEWAY: usize = 0;
const ENGINE: usize = 1;
const REPORTER: usize = 2;

/// How long a program may take until it says that it is ready.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// The gateway says how many orders are sent with each sample, and the broker is killed with half of them on their way.
const KILL_ORDERS_MIN: u32 = 2 * SAMPLE_ORDERS;

/// What a program has said.
enum Said {
    /// It misses nothing that is sent from now on.
    Ready(usize),
    /// So many orders are sent.
    Sent(u32),
    /// It has ended: what it found, or its last words.
    Ended(usize, Result<Outcome, String>),
}

/// Carries out a run; prints what was measured.
///
/// # Errors
/// Which program has failed, and why; or that book or answers are not those that the orders lead to.
pub fn run(args: &RunArgs) -> Result<(), Error> {
    check(args)?;
    if args.quelea.is_none() {
        // Orders that a killed run has left would be taken for this one's. Nothing is started yet: a signal ends it at once.
        args.program.venue().clear(f64::from(args.program.patience_s))?;
    }
    // What was started ends with the values that hold it, which a signal must not skip.
    let interrupt = Interrupt::install();
    let mut broker = args.quelea.as_deref().map(Broker::start).transpose()?;
    let mut args = args.clone();
    if let Some(broker) = &broker {
        args.program.uri = broker.uri();
        if args.ways.contains(&Way::Elastic) {
            args.feed.directory = broker.directory(&args.program.prefix)?;
        }
    }
    let args = &args;
    let cpu_before_s = broker_cpu_s(args, broker.as_ref());
    let packets_before = Packets::of(&args.interface)?;
    let outcomes = trade(args, &mut broker, &interrupt);
    let packets = Packets::of(&args.interface)?.since(&packets_before);
    // Also what was interrupted.
    let cleared = args.program.venue().clear(0.0);
    let mut outcomes = outcomes?.into_iter();
    let mut next = || outcomes.next().unwrap_or_default();
    let [gateway, engine, reporter] = [next(), next(), next()];
    let feeds: Vec<_> = outcomes.filter_map(|outcome| outcome.ticks).collect();
    cleared?;
    let cpu_after_s = broker_cpu_s(args, broker.as_ref());
    let broker_cpu_s = cpu_before_s.zip(cpu_after_s).map(|(before_s, after_s)| after_s - before_s);
    compare(args, &gateway, &engine)?;
    let report = crate::report::Report { gateway, engine, reporter, broker_cpu_s, packets, feeds };
    if args.json {
        report.print_json()
    } else {
        report.print()
    }
    Ok(())
}

/// Checks the options for what clap cannot say of them: that they contradict one another.
fn check(args: &RunArgs) -> Result<(), Error> {
    check_ways(&args.ways)?;
    let orders = args.program.orders;
    if args.kill && orders < KILL_ORDERS_MIN {
        let words = format!("--kill takes {KILL_ORDERS_MIN} --orders or more, and not {orders}");
        return Err(Error::Arguments(words));
    }
    Packets::of(&args.interface).map(drop)
}

/// Starts all programs, and waits until they have ended. None is left when it returns.
fn trade(
    args: &RunArgs,
    broker: &mut Option<Broker>,
    interrupt: &Interrupt,
) -> Result<Vec<Outcome>, Error> {
    let (tell, said) = channel();
    // Those that are left after a failure are owed nothing.
    let mut children = Children(Vec::new());
    // The gateway last: nothing is published before somebody takes it.
    let tickers = PROGRAMS.len()..PROGRAMS.len() + args.ways.len();
    for at in tickers.chain([REPORTER, ENGINE]) {
        children.0.push(start(args, at, tell.clone())?);
        if at != REPORTER && !args.ways.is_empty() {
            wait_for(at, args, &said, interrupt)?;
        }
    }
    children.0.push(start(args, GATEWAY, tell)?);
    follow(args, broker, &said, interrupt)
}

/// Compares what the programs have found with what the orders lead to.
fn compare(args: &RunArgs, gateway: &Outcome, engine: &Outcome) -> Result<(), Error> {
    let orders = args.program.orders;
    let expected = expected(args.seed, orders, args.rule);
    let wrong = |program, reason| Err(Error::Program { program, reason });
    if engine.fingerprint != Some(expected.fingerprint) {
        let reason = format!("its book is not the one that {orders} orders lead to");
        return wrong(PROGRAMS[ENGINE], reason);
    }
    let Tally { count, digest } = expected.answers;
    for (program, outcome) in [(PROGRAMS[ENGINE], engine), (PROGRAMS[GATEWAY], gateway)] {
        let answers = outcome.answers;
        if (answers, outcome.digest) != (count.into(), Some(digest)) {
            let reason =
                format!("its {answers} answers are not the {count} that {orders} orders lead to");
            return wrong(program, reason);
        }
    }
    Ok(())
}

/// Returns the seconds of CPU time that the broker has used; `None` where its process is not known.
fn broker_cpu_s(args: &RunArgs, broker: Option<&Broker>) -> Option<f64> {
    match broker {
        Some(broker) => broker.cpu_s(),
        None => args.broker_pid.and_then(cpu_s),
    }
}

/// Children that end with this value, also when it is dropped early.
struct Children(Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns what a program is called.
fn name(at: usize) -> &'static str {
    PROGRAMS.get(at).copied().unwrap_or("ticker")
}

/// Waits until a program that was started says that it is ready. What it says else, it says in vain.
fn wait_for(
    at: usize,
    args: &RunArgs,
    said: &Receiver<Said>,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let within = READY_WITHIN + Duration::from_secs(args.program.patience_s.into());
    let began = Instant::now();
    while began.elapsed() < within {
        if interrupt.is_set() {
            return Err(Error::Interrupted);
        }
        match said.recv_timeout(LOOK) {
            Ok(Said::Ready(ready)) if ready == at => return Ok(()),
            Ok(Said::Ended(ended, Err(reason))) => {
                return Err(Error::Program { program: name(ended), reason });
            }
            _ => {}
        }
    }
    let reason = format!("it is not ready after {} s", within.as_secs());
    Err(Error::Program { program: name(at), reason })
}

fn start(args: &RunArgs, at: usize, tell: Sender<Said>) -> Result<Child, Error> {
    let program = &args.program;
    let system = |source| Error::System { what: format!("start the {}", name(at)), source };
    let mut command = Command::new(std::env::current_exe().map_err(system)?);
    command.arg(name(at));
    command.args(["--uri", &program.uri.with_password(), "--prefix", &program.prefix]);
    command.args(["--orders", &program.orders.to_string()]);
    command.args(["--patience-s", &program.patience_s.to_string()]);
    if program.durable {
        command.arg("--durable");
    }
    if program.no_expires {
        command.arg("--no-expires");
    }
    match at {
        GATEWAY => {
            command.args(["--seed", &args.seed.to_string()]);
            if let Some(rate) = args.rate {
                command.args(["--rate", &rate.to_string()]);
            }
        }
        ENGINE => {
            let rule = if args.rule == Rule::Exact { "exact" } else { "price-time" };
            command.args(["--rule", rule]);
            if args.view {
                command.arg("--view");
            }
            for way in &args.ways {
                command.args(["--feed", way.name()]);
            }
            if !args.ways.is_empty() {
                command.args(args.feed.to_words());
            }
        }
        REPORTER => {
            command.arg("--csv").arg(&args.csv);
        }
        ticker => {
            command.args(["--way", args.ways[ticker - PROGRAMS.len()].name()]);
            command.args(args.feed.to_words());
        }
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // Only the book is drawn there; words about a failure come by the pipe.
    if at != ENGINE {
        command.stderr(Stdio::null());
    }
    // Ctrl-C is for the run, which ends them.
    command.env(CHILD, "1").process_group(0);
    let mut child = command.spawn().map_err(system)?;
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || listen(at, BufReader::new(stdout), &tell));
    }
    Ok(child)
}

/// In a program that [`run`] has started: it ends when that does, however that ends.
pub fn end_with_parent() {
    if std::env::var_os(CHILD).is_some() {
        // Without it, a program whose parent was killed ends by its silence.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
}

fn listen(at: usize, lines: BufReader<std::process::ChildStdout>, tell: &Sender<Said>) {
    let mut last = String::from("it has ended without a word");
    for line in lines.lines().map_while(Result::ok) {
        if let Some(sent) = line.strip_prefix("sent ").and_then(|count| count.parse().ok()) {
            let _ = tell.send(Said::Sent(sent));
        } else if line == READY {
            let _ = tell.send(Said::Ready(at));
        } else {
            last = line;
        }
    }
    let outcome = serde_json::from_str(&last).map_err(|_| last);
    let _ = tell.send(Said::Ended(at, outcome));
}

/// Waits for all of them; kills the broker half-way if that is asked for.
fn follow(
    args: &RunArgs,
    broker: &mut Option<Broker>,
    said: &Receiver<Said>,
    interrupt: &Interrupt,
) -> Result<Vec<Outcome>, Error> {
    let mut outcomes = vec![None; PROGRAMS.len() + args.ways.len()];
    let mut kills = args.kill;
    while outcomes.iter().any(Option::is_none) {
        let heard = said.recv_timeout(LOOK);
        if interrupt.is_set() {
            return Err(Error::Interrupted);
        }
        match heard {
            Ok(Said::Sent(sent)) if kills && sent >= args.program.orders / 2 => {
                kills = false;
                if let Some(broker) = broker {
                    broker.kill_and_restart()?;
                }
            }
            Ok(Said::Sent(_) | Said::Ready(_)) => {}
            Ok(Said::Ended(at, Ok(outcome))) => outcomes[at] = Some(outcome),
            Ok(Said::Ended(at, Err(reason))) => {
                return Err(Error::Program { program: name(at), reason });
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if kills {
        let reason = "it had sent all orders before the broker could be killed".to_owned();
        return Err(Error::Program { program: PROGRAMS[GATEWAY], reason });
    }
    Ok(outcomes.into_iter().map(Option::unwrap_or_default).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_that_is_not_what_the_orders_lead_to_is_named() {
        #[derive(clap::Parser)]
        struct Words {
            #[command(flatten)]
            run: RunArgs,
        }
        let args = <Words as clap::Parser>::parse_from(["run", "--orders", "100"]).run;
        let expected = expected(args.seed, 100, args.rule);
        let right = Outcome {
            answers: expected.answers.count.into(),
            digest: Some(expected.answers.digest),
            fingerprint: Some(expected.fingerprint),
            ..Outcome::default()
        };
        assert!(compare(&args, &right, &right).is_ok());
        let fewer = Outcome { answers: right.answers - 1, ..right.clone() };
        let reordered = Outcome { digest: Some(1), ..right.clone() };
        let other_book = Outcome { fingerprint: Some(1), ..right.clone() };
        for (gateway, engine, said) in [
            (&fewer, &right, "gateway: its 117 answers are not the 118"),
            (&reordered, &right, "gateway: its 118 answers"),
            (&right, &fewer, "engine: its 117 answers"),
            (&right, &other_book, "engine: its book"),
        ] {
            let error = compare(&args, gateway, engine).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
