//! Proofs of an address, without state.

use core::net::{IpAddr, SocketAddr};

use ring::hmac;

use crate::Time;
use crate::wire::handshake::COOKIE_BYTES;

/// How long a cookie is new. It is good for that long and once more.
const PERIOD_US: u64 = 60_000_000;

/// Makes cookies and knows them again. A cookie is a keyed hash of whom it was sent to and when, so
/// nothing is kept for peers that never give it back.
pub struct Cookies {
    key: hmac::Key,
}

impl Cookies {
    /// Creates the maker of cookies. `seed` must be random.
    #[must_use]
    pub fn new(seed: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, seed) }
    }

    /// Returns the cookie that the flow's sender at `from` has to return.
    #[must_use]
    pub fn cookie(
        &self,
        from: SocketAddr,
        session: u64,
        flow: u32,
        now: Time,
    ) -> [u8; COOKIE_BYTES] {
        self.of_period(from, session, flow, now.as_micros() / PERIOD_US).to_le_bytes()
    }

    /// Returns whether a cookie was made here for the flow of `from`, at most two minutes ago.
    #[must_use]
    pub fn is_good(
        &self,
        cookie: [u8; COOKIE_BYTES],
        from: SocketAddr,
        session: u64,
        flow: u32,
        now: Time,
    ) -> bool {
        // One comparison of 64 bits takes the same time whatever differs.
        let cookie = u64::from_le_bytes(cookie);
        let period = now.as_micros() / PERIOD_US;
        cookie == self.of_period(from, session, flow, period)
            || period > 0 && cookie == self.of_period(from, session, flow, period - 1)
    }

    fn of_period(&self, from: SocketAddr, session: u64, flow: u32, period: u64) -> u64 {
        let address = match from.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        let mut of = [0; 38];
        of[..16].copy_from_slice(&address.octets());
        of[16..18].copy_from_slice(&from.port().to_le_bytes());
        of[18..26].copy_from_slice(&session.to_le_bytes());
        of[26..30].copy_from_slice(&flow.to_le_bytes());
        of[30..].copy_from_slice(&period.to_le_bytes());
        let hash = hmac::sign(&self.key, &of);
        let mut cookie = [0; COOKIE_BYTES];
        cookie.copy_from_slice(&hash.as_ref()[..COOKIE_BYTES]);
        u64::from_le_bytes(cookie)
    }
}

impl core::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Cookies(..)")
    }
}
