"""Plays the same random scenario on two brokers, and says where what their clients see differs."""
