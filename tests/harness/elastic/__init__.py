"""Elastic queues: suites, brokers that serve them, and the native protocol in plain Python."""
