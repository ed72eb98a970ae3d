//! `quelea bench declares`: how fast durable queues are declared, and deleted, by a client that does not wait
//! for each answer.

use quelea_amqp_codec::method::{Method, queue};
use serde::Serialize;

use crate::args::{DEFAULT_QUEUE, DeclaresArgs};
use crate::client::{Client, short, unexpected};
use crate::clock::{now_ns, seconds_between};
use crate::error::BenchError;
use crate::report::publish;
use crate::setup::CHANNEL;
use crate::units::thousands;

/// Queues that a broker may be asked to hold.
const QUEUES_MAX: u32 = 100_000;

/// What was declared and deleted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DeclaresReport {
    /// Product and version, as the broker says.
    pub broker: String,
    /// Queues.
    pub queues: u32,
    /// Methods on their way at most.
    pub window: u32,
    /// Declarations of durable queues answered a second.
    pub declares_per_s: f64,
    /// Deletions of them answered a second.
    pub deletes_per_s: f64,
}

pub(crate) fn run(args: &DeclaresArgs) -> Result<(), BenchError> {
    if args.queues == 0 || args.queues > QUEUES_MAX || args.window == 0 {
        let words = "--queues takes 1 to 100,000, --window at least 1".to_owned();
        return Err(BenchError::Arguments(words));
    }
    let uri = args.broker.parsed_uri()?;
    let mut client = Client::connect_patiently(&uri, args.broker.connect_timeout_s)?;
    client.open_channel(CHANNEL)?;
    let declare = |number| {
        let queue = queue_name(number)?;
        Ok(queue::Declare { queue, durable: true, ..Default::default() }.into())
    };
    let delete = |number| {
        let queue = queue_name(number)?;
        Ok(queue::Delete { queue, ..Default::default() }.into())
    };
    // What a run that was broken off has left would be declared in no time.
    pipeline(&mut client, args, delete)?;
    let declares_per_s = pipeline(&mut client, args, declare)?;
    let deletes_per_s = pipeline(&mut client, args, delete)?;
    let report = DeclaresReport {
        broker: client.product().to_owned(),
        queues: args.queues,
        window: args.window,
        declares_per_s,
        deletes_per_s,
    };
    publish(&to_text(&report), &report, args.broker.json.as_deref())?;
    client.close()
}

fn queue_name(number: u32) -> Result<quelea_amqp_codec::ShortStr, BenchError> {
    short(&format!("{DEFAULT_QUEUE}-declared-{number}"), "queue")
}

/// Sends a method for each queue, with a window of them on their way. Returns the answers a second.
fn pipeline(
    client: &mut Client,
    args: &DeclaresArgs,
    method: impl Fn(u32) -> Result<Method, BenchError>,
) -> Result<f64, BenchError> {
    let start = now_ns();
    let (mut sent, mut answered) = (0, 0);
    while answered < args.queues {
        // Half a window at a time, so that one half is sent while the other is answered.
        if sent < args.queues && sent - answered <= args.window / 2 {
            let count = (args.window - (sent - answered)).min(args.queues - sent);
            let methods = (sent..sent + count).map(&method).collect::<Result<Vec<_>, _>>()?;
            client.send_all(CHANNEL, &methods)?;
            sent += count;
        }
        match client.answer("queue.declare or queue.delete")? {
            Method::QueueDeclareOk(_) | Method::QueueDeleteOk(_) => answered += 1,
            _ => return Err(unexpected("queue.declare or queue.delete")),
        }
    }
    Ok(f64::from(answered) / seconds_between(start, now_ns()).max(1e-9))
}

fn to_text(report: &DeclaresReport) -> String {
    format!(
        "{}: {} durable queues on one channel, {} on their way\n  \
         declared   {}/s\n  deleted    {}/s\n",
        report.broker,
        thousands(f64::from(report.queues)),
        thousands(f64::from(report.window)),
        thousands(report.declares_per_s),
        thousands(report.deletes_per_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_window_and_rates() {
        let report = DeclaresReport {
            broker: "x".to_owned(),
            queues: 2_000,
            window: 500,
            declares_per_s: 12_345.0,
            deletes_per_s: 9_000.0,
        };
        let text = to_text(&report);
        assert!(text.contains("2,000 durable queues on one channel, 500 on"), "{text}");
        assert!(text.contains("declared   12,345/s"), "{text}");
    }
}
