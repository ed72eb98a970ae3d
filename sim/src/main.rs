//! The elastic queue in virtual time.

fn main() {}
