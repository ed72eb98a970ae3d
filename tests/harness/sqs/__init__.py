"""SQS's clients: suites, and boto3 in our words."""
