"""Tests of moto that check what moto does where SQS does something else, each with its evidence.

A test stands here only if SQS itself would fail it. What we lack is a failure, not a difference.
"""

DIFFERENCES = {}
