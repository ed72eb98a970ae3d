//! Links of a given rate between this host, where the broker is, and namespaces for publisher and consumer.

use std::process::Command;

use super::args::{Network, Role};
use super::error::SuiteError;

/// Delay of a link, each way, where the kernel has netem.
const DELAY_US: u32 = 50;
/// What a token bucket lets through at once: enough for a timer tick at the rate.
const BURST_BYTES_PER_MBIT: u32 = 500;

/// Two namespaces, each with a pair of interfaces to this one. They are removed with the value.
pub(crate) struct Links {
    publisher: Link,
    consumer: Link,
    /// How they are limited, in words.
    pub shaped_by: &'static str,
}

struct Link {
    namespace: String,
    /// Of this end.
    address: String,
}

impl Links {
    /// None where publisher and consumer are on the broker's host.
    pub(crate) fn make(network: Network) -> Result<Option<Self>, SuiteError> {
        let mbit = match network {
            Network::Loopback => return Ok(None),
            Network::Gigabit => 1_000,
            Network::TenGigabit => 10_000,
        };
        let (publisher, consumer) = (Link::new("p", 0), Link::new("c", 4));
        let mut links = Self { publisher, consumer, shaped_by: "netem" };
        for link in [&links.publisher, &links.consumer] {
            link.set_up()?;
        }
        if links.shape(mbit, true).is_err() {
            links.shape(mbit, false)?;
            links.shaped_by = "a token bucket, without delay: this kernel has no netem";
        }
        Ok(Some(links))
    }

    pub(crate) fn namespace(&self, role: Role) -> Option<&str> {
        self.link(role).map(|link| link.namespace.as_str())
    }

    /// This host's address, as the other end of the link reaches it.
    pub(crate) fn address_for(&self, role: Role) -> Option<&str> {
        self.link(role).map(|link| link.address.as_str())
    }

    fn link(&self, role: Role) -> Option<&Link> {
        match role {
            Role::Publisher => Some(&self.publisher),
            Role::Consumer => Some(&self.consumer),
            Role::Coordinator | Role::Relay => None,
        }
    }

    fn shape(&self, mbit: u32, delayed: bool) -> Result<(), SuiteError> {
        let limit = if delayed {
            format!("netem rate {mbit}mbit delay {DELAY_US}us limit 100000")
        } else {
            let burst = mbit * BURST_BYTES_PER_MBIT;
            format!("tbf rate {mbit}mbit burst {burst} latency 50ms")
        };
        for link in [&self.publisher, &self.consumer] {
            let (outer, inner) = link.interfaces();
            run(&format!("tc qdisc replace dev {outer} root {limit}"))?;
            run(&format!(
                "ip netns exec {} tc qdisc replace dev {inner} root {limit}",
                link.namespace
            ))?;
        }
        Ok(())
    }
}

impl Link {
    fn new(end: &str, offset: u32) -> Self {
        let process = std::process::id();
        let namespace = format!("quelea-suite-{process}-{end}");
        let address = format!("10.253.{}.{}", process % 250, offset + 1);
        Self { namespace, address }
    }

    /// The names of this end and of the other.
    fn interfaces(&self) -> (String, String) {
        let name = self.namespace.trim_start_matches("quelea-suite-").replace('-', "");
        (format!("qs{name}o"), format!("qs{name}i"))
    }

    fn set_up(&self) -> Result<(), SuiteError> {
        let (namespace, (outer, inner)) = (&self.namespace, self.interfaces());
        let inside = format!("ip -n {namespace}");
        let (head, last) = self.address.rsplit_once('.').unwrap_or_default();
        let peer = format!("{head}.{}", last.parse::<u32>().unwrap_or_default() + 1);
        for command in [
            format!("ip netns add {namespace}"),
            format!("ip link add {outer} type veth peer name {inner} netns {namespace}"),
            format!("ip addr add {}/30 dev {outer}", self.address),
            format!("ip link set {outer} up"),
            format!("{inside} addr add {peer}/30 dev {inner}"),
            format!("{inside} link set {inner} up"),
            format!("{inside} link set lo up"),
        ] {
            run(&command)?;
        }
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // With the namespace goes its end of the link, and with that the other one.
        let _ = run(&format!("ip link delete {}", self.interfaces().0));
        let _ = run(&format!("ip netns delete {}", self.namespace));
    }
}

/// Words without blanks in them.
fn run(command: &str) -> Result<(), SuiteError> {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let failed = |why: String| SuiteError::Network(format!("{command}: {why}"));
    let done =
        Command::new(program).args(words).output().map_err(|error| failed(error.to_string()))?;
    if done.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
}
