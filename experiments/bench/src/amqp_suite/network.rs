//! Links of a given rate between this host, where the broker is, and namespaces for publisher and consumer.

use std::process::Command;

use super::args::{Network, Role};
use super::error::SuiteError;

/// Delay of a link, each way, where the kernel has netem.
const DELAY_US: u32 = 50;
/// What a token bucket lets through at once: enough for a timer tick at the rate.
const BURST_BYTES_PER_MBIT: u32 = 500;
/// Links have addresses in 10.253.0.0 to 10.253.249.255, those of a run with the same third byte.
const NETWORKS: u32 = 250;
/// Names of namespaces and of this end of a link, around the number of the process that made them.
const NAMESPACE_HEAD: &str = "quelea-suite-";
const INTERFACE_HEAD: &str = "qs";
const PUBLISHER: &str = "p";
const CONSUMER: &str = "c";

/// Two namespaces, each with a pair of interfaces to this one. They are removed with the value, or, if this process is killed,
/// by the next one that makes some.
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
    /// Makes the links. Returns `None` where publisher and consumer are on the broker's host.
    pub(crate) fn make(network: Network) -> Result<Option<Self>, SuiteError> {
        let mbit = match network {
            Network::Loopback => return Ok(None),
            Network::Gigabit => 1_000,
            Network::TenGigabit => 10_000,
        };
        remove_stale()?;
        let network = free_network()?;
        let (publisher, consumer) =
            (Link::new(PUBLISHER, network, 1), Link::new(CONSUMER, network, 5));
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

    /// Returns this host's address, as the other end of the link reaches it.
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
    fn new(end: &str, network: u32, host: u32) -> Self {
        let namespace = format!("{NAMESPACE_HEAD}{}-{end}", std::process::id());
        Self { namespace, address: format!("10.253.{network}.{host}") }
    }

    /// Returns the names of this end and of the other.
    fn interfaces(&self) -> (String, String) {
        let name = self.namespace.trim_start_matches(NAMESPACE_HEAD).replace('-', "");
        (format!("{INTERFACE_HEAD}{name}o"), format!("{INTERFACE_HEAD}{name}i"))
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

/// Removes what runs that were killed have left.
fn remove_stale() -> Result<(), SuiteError> {
    // Another run may remove the same at this moment.
    for link in run("ip -o link show")?.lines().filter_map(interface_of) {
        if maker_of_interface(link).is_some_and(|process| !is_a_suite(process)) {
            let _ = run(&format!("ip link delete {link}"));
        }
    }
    for namespace in run("ip netns list")?.lines().filter_map(|line| line.split(' ').next()) {
        if maker_of_namespace(namespace).is_some_and(|process| !is_a_suite(process)) {
            let _ = run(&format!("ip netns delete {namespace}"));
        }
    }
    Ok(())
}

/// Returns the interface in a line such as `7: qs123po@if2: <BROADCAST,…`.
fn interface_of(line: &str) -> Option<&str> {
    line.split(' ').nth(1)?.split(['@', ':']).next()
}

fn maker_of_namespace(name: &str) -> Option<u32> {
    let (process, end) = name.strip_prefix(NAMESPACE_HEAD)?.split_once('-')?;
    if [PUBLISHER, CONSUMER].contains(&end) { process.parse().ok() } else { None }
}

fn maker_of_interface(name: &str) -> Option<u32> {
    let name = name.strip_prefix(INTERFACE_HEAD)?.strip_suffix('o')?;
    [PUBLISHER, CONSUMER].into_iter().find_map(|end| name.strip_suffix(end)?.parse().ok())
}

/// Returns whether that process lives and is one of this program in this role: its number may be
/// another's by now.
fn is_a_suite(process: u32) -> bool {
    let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|word| word == b"amqp-suite")
}

/// Returns the third byte of addresses of which no interface here has one.
fn free_network() -> Result<u32, SuiteError> {
    let addresses = run("ip -o -4 addr show")?;
    let first = std::process::id() % NETWORKS;
    (0..NETWORKS)
        .map(|step| (first + step) % NETWORKS)
        .find(|network| !addresses.contains(&format!(" 10.253.{network}.")))
        .ok_or_else(|| {
            SuiteError::Network(format!(
                "all of its {NETWORKS} networks in 10.253.0.0/16 are in use"
            ))
        })
}

/// Runs a command, whose words have no blanks in them. Returns what it printed.
fn run(command: &str) -> Result<String, SuiteError> {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let failed = |why: String| SuiteError::Network(format!("{command}: {why}"));
    let done =
        Command::new(program).args(words).output().map_err(|error| failed(error.to_string()))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(failed(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_which_process_made_them_and_others_are_left_alone() {
        let link = Link::new(CONSUMER, 7, 5);
        let line = format!("12: {}@if2: <BROADCAST,UP> mtu 1500", link.interfaces().0);
        let own = Some(std::process::id());
        assert_eq!(interface_of(&line).and_then(maker_of_interface), own);
        assert_eq!(maker_of_namespace(&link.namespace), own);
        for name in ["quelea123n1s", "quelea-suite-12-x", "quelea-suite-p", "quelea-suite-1x-p"] {
            assert_eq!(maker_of_namespace(name), None, "{name}");
        }
        for name in ["lo", "qs12o", "qs12pi", "qspo", "eth0"] {
            assert_eq!(maker_of_interface(name), None, "{name}");
        }
        assert!(!is_a_suite(std::process::id()), "no test is a suite");
    }
}
