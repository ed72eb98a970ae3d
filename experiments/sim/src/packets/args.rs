//! The command: families of seeds, every handshake, or one run again.

use std::str::FromStr;

use quelea_elastic_proto::Named as _;
use quelea_elastic_proto::frame::Acknowledge;

use crate::Seed;
use crate::packets::exhaustive::{Handshake, play_all};
use crate::packets::plan::{Command, Family, Plan};
use crate::packets::run::{Outcome, play};
use crate::packets::shrink::shrink;

/// Plays nodes with faults, frame by frame.
#[derive(Clone, Debug, clap::Args)]
pub struct PacketsArgs {
    /// The first seed.
    #[arg(long, default_value = "1")]
    seed: Seed,
    /// Seeds of each family, from the first on.
    #[arg(long, default_value = "1")]
    seeds: u64,
    /// One family; all if it is not given.
    #[arg(long)]
    family: Option<Family>,
    /// Instead of seeds: every handshake, with every fault of every participant at every step.
    #[arg(long)]
    exhaustive: bool,
    /// Of these runs, every n-th.
    #[arg(long, default_value = "1")]
    stride: usize,
    /// One handshake's run with these faults (`first-use`, `relocation-prompt`, ...).
    #[arg(long)]
    handshake: Option<String>,
    /// When a message is done, for handshakes: `relayed`, `delivered`, `stored`.
    #[arg(long, default_value = "delivered", value_parser = Acknowledge::parse)]
    level: Acknowledge,
    /// Faults instead of the drawn ones: `1500ms kill r0 0; #77 pause d0 2500`.
    #[arg(long)]
    faults: Option<String>,
    /// Operators' commands instead of the drawn ones: `2600ms move; 3000ms drain`.
    #[arg(long, alias = "wishes")]
    commands: Option<String>,
    /// Prints what happens to standard error.
    #[arg(long)]
    log: bool,
}

impl PacketsArgs {
    /// Plays what was asked for, and prints what comes of each part at once.
    ///
    /// # Errors
    /// If something was wrong, or an argument cannot be read.
    pub fn run(&self) -> Result<String, String> {
        match self.play() {
            Ok(true) => Ok(String::new()),
            Ok(false) => Err("not all was well\n".to_owned()),
            Err(wrong) => Err(format!("{wrong}\n")),
        }
    }

    fn play(&self) -> Result<bool, String> {
        if !self.log {
            // A panic is reported as what is wrong with a run.
            std::panic::set_hook(Box::new(|_| {}));
        }
        if self.exhaustive {
            return self.run_exhaustive();
        }
        if let Some(name) = &self.handshake {
            let plan = find_handshake(name)?.plan(self.level).0;
            return Ok(self.one(self.with_given(plan)?));
        }
        if self.faults.is_some() || self.commands.is_some() || (self.seeds == 1 && self.log) {
            let family =
                self.family.ok_or("--family is needed with --faults, --commands, --log")?;
            let plan = self.with_given(Plan::draw(family, self.seed))?;
            return Ok(self.one(plan));
        }
        let families = self.family.map_or_else(|| Family::ALL.to_vec(), |family| vec![family]);
        let mut well = true;
        for family in families {
            well &= self.family(family);
        }
        Ok(well)
    }

    fn with_given(&self, mut plan: Plan) -> Result<Plan, String> {
        if let Some(faults) = &self.faults {
            plan.faults = listed(faults)?;
        }
        if let Some(commands) = &self.commands {
            plan.commands = listed::<TimedCommand>(commands)?
                .into_iter()
                .map(|TimedCommand(at, of)| (at, of))
                .collect();
        }
        Ok(plan)
    }

    fn one(&self, plan: Plan) -> bool {
        if self.log {
            eprintln!("{plan:#?}");
        }
        let outcome = play(&plan, self.log);
        println!("{outcome:#?}");
        outcome.wrong.is_none()
    }

    fn family(&self, family: Family) -> bool {
        let mut sum = Outcome::default();
        let mut failed = 0;
        let mut nodes = 0;
        for number in 0..self.seeds {
            let seed = Seed(self.seed.0.saturating_add(number));
            let plan = Plan::draw(family, seed);
            nodes = nodes.max(plan.nodes());
            let outcome = play(&plan, false);
            sum.add(&outcome);
            if let Some(wrong) = &outcome.wrong {
                failed += 1;
                println!("{family} seed {seed}: {wrong}");
                print!("{}", replay(&plan, &format!("--family {family} --seed {seed}")));
            }
        }
        println!(
            "{family}: {} seeds to {nodes} nodes, {failed} failed; {} steps, {} messages, \
             {} deliveries, {} announced as missing, at rest after {} ms at most",
            self.seeds, sum.steps, sum.messages, sum.deliveries, sum.missing, sum.rest_ms
        );
        println!("{family}: {:?}", sum.events);
        failed == 0
    }

    fn run_exhaustive(&self) -> Result<bool, String> {
        let acknowledge = self.level;
        let handshakes = match &self.handshake {
            Some(name) => vec![find_handshake(name)?],
            None => Handshake::ALL.to_vec(),
        };
        let mut well = true;
        for handshake in handshakes {
            let runs = handshake.runs(acknowledge);
            let (played, failed) = play_all(&runs, self.stride);
            println!("{handshake} at {}: {played} of {} runs", self.level, runs.len());
            if let Some((plan, outcome)) = failed {
                well = false;
                println!("{handshake}: {}", outcome.wrong.unwrap_or_default());
                let how = format!("--handshake {handshake} --level {}", self.level);
                print!("{}", replay(&plan, &how));
            }
        }
        Ok(well)
    }
}

/// Shrinks a plan that failed. Returns how to play it again, with as few faults as needed.
#[must_use]
pub fn replay(plan: &Plan, how: &str) -> String {
    let small = shrink(plan);
    let faults: Vec<String> = small.faults.iter().map(ToString::to_string).collect();
    let commands: Vec<String> =
        small.commands.iter().map(|(at, of)| format!("{at}ms {of}")).collect();
    let wrong = play(&small, false).wrong.unwrap_or_default();
    format!(
        "  shrunken: {wrong}\n  replay: cargo run -p quelea-sim -- packets {how} --log \\\n    \
         --faults '{}' --commands '{}'\n",
        faults.join("; "),
        commands.join("; ")
    )
}

impl Outcome {
    fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.messages += other.messages;
        self.deliveries += other.deliveries;
        self.missing += other.missing;
        self.rest_ms = self.rest_ms.max(other.rest_ms);
        for (kind, count) in &other.events {
            *self.events.entry(kind).or_default() += count;
        }
    }
}

fn find_handshake(name: &str) -> Result<Handshake, String> {
    let found = Handshake::ALL.into_iter().find(|handshake| handshake.to_string() == name);
    found.ok_or_else(|| {
        format!("{name:?} is none of {}", Handshake::ALL.map(|one| one.to_string()).join(", "))
    })
}

struct TimedCommand(u64, Command);

impl FromStr for TimedCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (at, command) =
            text.split_once(' ').ok_or_else(|| format!("{text:?} is no command"))?;
        let at = at.strip_suffix("ms").and_then(|ms| ms.parse().ok());
        Ok(Self(at.ok_or_else(|| format!("{text:?} has no time"))?, command.trim().parse()?))
    }
}

fn listed<T: FromStr<Err = String>>(text: &str) -> Result<Vec<T>, String> {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::parse).collect()
}
