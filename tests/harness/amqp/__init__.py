"""AMQP's clients: suites, pika in our words, and bare frames."""
