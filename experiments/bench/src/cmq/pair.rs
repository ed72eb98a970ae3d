//! Both ends of a measurement: processes of their own, or threads of this one.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::cmq::args::{CmqArgs, CmqRole};
use crate::cmq::error::CmqError;
use crate::cmq::order::{Outcome, Run};
use crate::cmq::receiver::Receiver;
use crate::cmq::role;
use crate::cmq::sender::Sender;
use crate::meter::{self, Scope};

/// A receiver and a sender that know each other.
pub(crate) struct Pair {
    // The sender ends first: what it still has to say needs the receiver.
    sender: Line,
    receiver: Line,
    in_threads: bool,
}

/// What a run of both gave.
#[derive(Debug, Clone)]
pub(crate) struct PairOutcome {
    pub sent: Outcome,
    pub received: Outcome,
    /// CPU time of each end, and of what belongs to neither (the library's threads, where both ends
    /// are in one process), nanoseconds.
    pub cpu_send_ns: u64,
    pub cpu_receive_ns: u64,
    pub cpu_other_ns: u64,
}

#[derive(Deserialize)]
struct Ready {
    ready: String,
}

#[derive(Deserialize)]
struct Armed {
    #[serde(rename = "armed")]
    _armed: bool,
}

#[derive(Deserialize)]
struct Cost {
    cpu_ns: u64,
}

impl Pair {
    pub(crate) fn start(args: &CmqArgs) -> Result<Self, CmqError> {
        let open = if args.threads { Line::thread } else { Line::process };
        let mut receiver = open(args, CmqRole::Receive)?;
        let address = receiver.receive::<Ready>()?.ready;
        let address = address.parse().map_err(|_| CmqError::Order(address))?;
        let mut sender = open(&CmqArgs { address, ..args.clone() }, CmqRole::Send)?;
        sender.receive::<Ready>()?;
        Ok(Self { sender, receiver, in_threads: args.threads })
    }

    /// Lets both do the same run. `run.base` is theirs to count.
    pub(crate) fn run(&mut self, run: &Run) -> Result<PairOutcome, CmqError> {
        self.receiver.send(&run.line())?;
        self.receiver.receive::<Armed>()?;
        let begun = meter::now(Scope::Process);
        self.sender.send(&run.line())?;
        let sent = self.sender.receive()?;
        let received = self.receiver.receive()?;
        let all = meter::now(Scope::Process) - begun;
        let cpu_send_ns = self.sender.cost()?;
        let cpu_receive_ns = self.receiver.cost()?;
        let cpu_other_ns =
            if self.in_threads { all.saturating_sub(cpu_send_ns + cpu_receive_ns) } else { 0 };
        Ok(PairOutcome { sent, received, cpu_send_ns, cpu_receive_ns, cpu_other_ns })
    }
}

/// The lines to one end and back.
struct Line {
    name: &'static str,
    // Dropped first: the end of its input ends the end.
    input: Option<Box<dyn Write>>,
    output: Box<dyn BufRead>,
    runs: Runs,
}

enum Runs {
    Process(Child),
    Thread(Option<JoinHandle<Result<(), CmqError>>>),
}

impl Line {
    fn process(args: &CmqArgs, role: CmqRole) -> Result<Self, CmqError> {
        // `quelea bench`, or whatever leads to this command in another binary.
        let leading: Vec<OsString> =
            env::args_os().skip(1).take_while(|word| word != "cmq").collect();
        let mut child = Command::new(env::current_exe().map_err(CmqError::Start)?)
            .args(leading)
            .args(["cmq", "--role", name(role).0, "--address", &args.address.to_string()])
            .args(args.wire.words())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(CmqError::Start)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.expect("both were asked for when it was started");
        Ok(Self {
            name: name(role).1,
            input: Some(Box::new(input)),
            output: Box::new(BufReader::new(output)),
            runs: Runs::Process(child),
        })
    }

    fn thread(args: &CmqArgs, role: CmqRole) -> Result<Self, CmqError> {
        let (here, there) = UnixStream::pair().map_err(CmqError::Start)?;
        let (address, wire) = (args.address, args.wire.clone());
        let own = here.try_clone().map_err(CmqError::Start)?;
        let its = BufReader::new(there.try_clone().map_err(CmqError::Start)?);
        let serve = move || match role {
            CmqRole::Send => role::serve(Sender::new(address, &wire)?, Scope::Thread, its, there),
            CmqRole::Receive => {
                role::serve(Receiver::new(address, &wire, None)?, Scope::Thread, its, there)
            }
        };
        let named = std::thread::Builder::new().name(format!("bench-{}", name(role).1));
        let thread = named.spawn(serve).map_err(CmqError::Start)?;
        Ok(Self {
            name: name(role).1,
            input: Some(Box::new(own)),
            output: Box::new(BufReader::new(here)),
            runs: Runs::Thread(Some(thread)),
        })
    }

    fn send(&mut self, line: &str) -> Result<(), CmqError> {
        let input = self.input.as_mut().ok_or(CmqError::Ended(self.name))?;
        input.write_all(line.as_bytes()).and_then(|()| input.flush()).map_err(CmqError::Line)
    }

    fn receive<T: DeserializeOwned>(&mut self) -> Result<T, CmqError> {
        let mut line = String::new();
        if self.output.read_line(&mut line).map_err(CmqError::Line)? == 0 {
            return Err(self.reason());
        }
        serde_json::from_str(&line).map_err(|_| CmqError::Order(line))
    }

    fn cost(&mut self) -> Result<u64, CmqError> {
        self.send("cost\n")?;
        Ok(self.receive::<Cost>()?.cpu_ns)
    }

    /// Returns why it ended: a thread gives its error, a process has printed it.
    fn reason(&mut self) -> CmqError {
        let joined = match &mut self.runs {
            Runs::Thread(thread) => thread.take().and_then(|thread| thread.join().ok()),
            Runs::Process(_) => None,
        };
        joined.and_then(Result::err).unwrap_or(CmqError::Ended(self.name))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.input = None;
        if let Runs::Process(child) = &mut self.runs {
            // It ends because its input did; there is nobody to tell if it does not.
            let _ = child.wait();
        }
    }
}

/// Returns a role's name on the command line, and in words.
const fn name(role: CmqRole) -> (&'static str, &'static str) {
    match role {
        CmqRole::Send => ("send", "sender"),
        CmqRole::Receive => ("receive", "receiver"),
    }
}
