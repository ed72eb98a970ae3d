"""The datagram queue: suites, bindings, and its commands as pipes."""
