//! Peers that have not proved what they should have.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use quelea_elastic_core::directory::Address;
use quelea_elastic_proto::frame::{ErrorCode, WireError};
use quelea_net::{Front, SignInFailures, network_of};

/// Returns the address of a peer, as the directory's core has it.
pub(crate) fn number_of(peer: SocketAddr) -> Address {
    let network = match network_of(peer.ip()) {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(network) => network,
    };
    Address(network.to_bits())
}

/// Counts a refusal for want of `proof` (a key, a token), and logs it when their number has doubled; does nothing with
/// others. What is asked for here cannot be guessed, so no answer is late.
pub(crate) fn count_refusal(
    failures: &SignInFailures,
    address: Address,
    proof: &'static str,
    refusal: &WireError,
) {
    if refusal.code != ErrorCode::Key {
        return;
    }
    let peer = Ipv6Addr::from_bits(address.0).to_canonical();
    let failed = failures.add(Front::Elastic, peer, proof);
    if failed.is_logged() {
        let (in_row, text) = (failed.in_row, refusal.text.as_str());
        tracing::warn!(%peer, in_row, text, "a {proof} is refused by the directory of elastic queues");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_not_proved_what_it_is_is_counted() {
        let failures = SignInFailures::default();
        let address = number_of("10.1.2.3:4".parse().unwrap());
        for code in [ErrorCode::Key, ErrorCode::Unavailable, ErrorCode::Version, ErrorCode::Key] {
            count_refusal(&failures, address, "key", &WireError::fatal(code, "key", "no"));
        }
        assert_eq!(failures.count(Front::Elastic), 2);
        let peer = IpAddr::from([10, 1, 2, 3]);
        assert_eq!(failures.add(Front::Elastic, peer, "key").in_row, 3);
    }
}
