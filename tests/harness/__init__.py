"""What the suites share: a broker to start and stop, a cache for installed clients, and a package for each family."""
