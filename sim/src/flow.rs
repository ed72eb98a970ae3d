//! Resolution L2: many clients, every message.
