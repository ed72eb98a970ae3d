"""What the suites share: a broker to start and stop, a cache for installed clients, a bare AMQP client."""
