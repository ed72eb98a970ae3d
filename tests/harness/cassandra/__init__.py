"""Apache Cassandra: nodes and clusters for tests and for development."""
