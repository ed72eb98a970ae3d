//! The connection by which a measurement manages its queues, and the view of the broker from outside.

use crate::args::BrokerArgs;
use crate::client::Client;
use crate::error::BenchError;
use crate::observer::Observer;
use crate::setup::Admin;

/// Connects, and finds the broker's process and device.
pub(crate) fn open(args: &BrokerArgs) -> Result<(Admin, Observer), BenchError> {
    let client = Client::connect_patiently(&args.parsed_uri()?, args.connect_timeout_s)?;
    let observer = Observer::new(args, &client)?;
    if let Some(reason) = observer.hidden_because.as_ref().filter(|_| !args.quiet) {
        eprintln!("no CPU time or memory of the broker: {reason}");
    }
    Ok((Admin::new(client)?, observer))
}
