//! ZMTP 3.0 and 3.1, ZeroMQ's wire protocol (rfc.zeromq.org/spec/37): greeting, the mechanisms NULL,
//! PLAIN and CURVE, frames, commands, heartbeats and subscriptions, as a state machine.
//! This crate must never do I/O or read a clock; bytes, time and randomness come in as arguments.
