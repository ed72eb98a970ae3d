//! Resolution L3: queues of rates, a million relays.
