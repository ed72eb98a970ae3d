//! `quelea bench socket`: one thread that sends small writes over loopback TCP and another that reads and discards them:
//! what the system gives a client that makes one system call a message, beside a reader that does nothing else.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::args::SocketArgs;
use crate::clock::{now_ns, seconds_between, seconds_to_ns};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::meter::{self, Scope};
use crate::report::publish;
use crate::units::thousands;

const WRITE_BYTES_MAX: usize = 1 << 20;
const PAUSE_US_MAX: u64 = 1_000_000;
const READ_BYTES: usize = 64 * 1024;

/// What passed through the socket.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SocketReport {
    /// Bytes of each write.
    pub write_bytes: usize,
    /// The reader's pause after each read, µs.
    pub pause_us: u64,
    /// Seconds measured.
    pub seconds: f64,
    /// Writes made, a second.
    pub sent_per_s: f64,
    /// Bytes that were read, in writes a second.
    pub writes_per_s: f64,
    /// Mean bytes of a read.
    pub read_bytes: f64,
    /// The sender's CPU time a write, µs.
    pub sender_cpu_us: f64,
    /// The reader's CPU time a write, µs.
    pub reader_cpu_us: f64,
}

pub(crate) fn run(args: &SocketArgs) -> Result<(), BenchError> {
    check(args)?;
    let report = measure(args, &Interrupt::install()).map_err(BenchError::Socket)?;
    publish(&to_text(&report), &report, args.json.as_deref())
}

fn check(args: &SocketArgs) -> Result<(), BenchError> {
    let refuse = |words: &str| Err(BenchError::Arguments(words.to_owned()));
    if !(1..=WRITE_BYTES_MAX).contains(&args.write_bytes) {
        return refuse("--write-bytes takes 1 byte to 1 MiB");
    }
    if args.pause_us > PAUSE_US_MAX {
        return refuse("--pause-us takes at most 1,000,000");
    }
    Ok(())
}

fn measure(args: &SocketArgs, interrupt: &Interrupt) -> io::Result<SocketReport> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = TcpStream::connect(listener.local_addr()?)?;
    sender.set_nodelay(true)?;
    let (mut reader, _) = listener.accept()?;
    let writes = vec![0; args.write_bytes];
    let sending = thread::spawn(move || send(sender, &writes));

    let pause = Duration::from_micros(args.pause_us);
    let mut buffer = vec![0; READ_BYTES];
    let (cpu_before, start) = (thread_cpu_us(), now_ns());
    let end = start + seconds_to_ns(args.duration_s);
    let (mut reads, mut bytes, mut now) = (0_u64, 0_u64, start);
    while now < end && !interrupt.is_set() {
        let read = reader.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        reads += 1;
        bytes += read as u64;
        if !pause.is_zero() && read < buffer.len() {
            thread::sleep(pause);
        }
        now = now_ns();
    }
    let reader_cpu_us = thread_cpu_us() - cpu_before;
    drop(reader);
    let (sent, sender_cpu_us) =
        sending.join().map_err(|_| io::Error::other("the sender panicked"))?;

    let seconds = seconds_between(start, now).max(1e-9);
    let writes = bytes as f64 / args.write_bytes as f64;
    Ok(SocketReport {
        write_bytes: args.write_bytes,
        pause_us: args.pause_us,
        seconds,
        sent_per_s: sent as f64 / seconds,
        writes_per_s: writes / seconds,
        read_bytes: bytes as f64 / reads.max(1) as f64,
        sender_cpu_us: sender_cpu_us / (sent as f64).max(1.0),
        reader_cpu_us: reader_cpu_us / writes.max(1.0),
    })
}

/// Writes until the reader is gone. Returns how often, and the thread's CPU time, µs.
fn send(mut socket: TcpStream, write: &[u8]) -> (u64, f64) {
    let before = thread_cpu_us();
    let mut sent = 0;
    while socket.write_all(write).is_ok() {
        sent += 1;
    }
    (sent, thread_cpu_us() - before)
}

fn thread_cpu_us() -> f64 {
    meter::now(Scope::Thread) as f64 / 1e3
}

fn to_text(report: &SocketReport) -> String {
    format!(
        "{} B a write over loopback, read and discarded, {} µs of pause after a read that was not full\n  \
         {} writes/s in {:.1} s, {} B a read\n  \
         CPU a write: sender {:.2} µs, reader {:.2} µs\n",
        thousands(report.write_bytes as f64),
        report.pause_us,
        thousands(report.writes_per_s),
        report.seconds,
        thousands(report.read_bytes),
        report.sender_cpu_us,
        report.reader_cpu_us
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_was_sent_and_both_threads_end() {
        let args = SocketArgs { write_bytes: 60, pause_us: 100, duration_s: 0.05, json: None };
        let report = measure(&args, &Interrupt::install()).unwrap();
        let (sent, read) = (report.sent_per_s, report.writes_per_s);
        assert!(0.0 < read && read <= sent, "{report:?}");
        assert!(report.sender_cpu_us > 0.0 && report.reader_cpu_us > 0.0, "{report:?}");
    }
}
