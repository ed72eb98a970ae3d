"""Tests of moto that check what moto does where SQS does something else, each with its evidence.

A test stands here only if SQS itself would fail it. What we lack is a failure, not a difference.
"""

RECORDED = "as LocalStack's snapshots of AWS have it, "
SPACE = "it sets the attribute 'VisibilityTimeout ', with a space at its end: SQS answers Unknown Attribute"
HANDLE = "it wants a text without the handle; AWS's page on troubleshooting DeleteMessage, and LocalStack, name it"
NOT_FIFO = "SQS takes FifoQueue on creation if it is true, and else answers Unknown Attribute FifoQueue"

DIFFERENCES = {
    "test_create_queue_with_different_attributes_fail": f"it makes a queue with FifoQueue=tru; {NOT_FIFO}",
    "test_create_fifo_queue_with_dlq": f"it makes a queue with FifoQueue=false; {NOT_FIFO}",
    "test_get_queue_url_error_not_exists": "it asks for the attributes of a URL without account and name; SQS answers"
    " InvalidAddress with 404 (API reference, GetQueueAttributes)",
    "test_get_queue_attributes": "it wants the redrive policy with Python's spaces; SQS writes it without"
    " (examples in its developer guide)",
    "test_message_retention_period": "it sets a retention of 3 seconds; the least is 60 (API reference, SetQueueAttributes)",
    "test_message_with_attributes_invalid_datatype": "the text is moto's own; SQS: The type of message (user) attribute … is invalid",
    "test_create_queues_in_multiple_region": "one endpoint for two regions; an endpoint of SQS is in one region",
    "test_message_becomes_inflight_when_received": SPACE,
    "test_receive_message_with_explicit_visibility_timeout": SPACE,
    "test_change_message_visibility": SPACE,
    "test_queue_length": SPACE,
    "test_delete_batch_operation": SPACE,
    "test_delete_message_after_visibility_timeout": SPACE,
    "test_delete_message_using_old_receipt_handle": "it deletes with an old handle; the API reference of DeleteMessage:"
    " with another handle than the latest, the request succeeds, but the message might not be deleted",
    "test_permissions": f"{RECORDED}the version of such a policy is 2008-10-17",
    "test_remove_permission_errors": f"{RECORDED}the text is can't find label.",
    "test_send_messages_to_fifo_without_message_group_id": f"{RECORDED}a batch answers InvalidParameterValue",
    "test_message_delay_is_more_than_15_minutes": "it sends a MessageDeduplicationId to a standard queue, which SQS"
    " refuses (The request include parameter that is not valid for this queue type)",
    "test_change_message_visibility_on_unknown_receipt_handle": HANDLE,
    "test_delete_message_errors": HANDLE,
    "test_message_with_invalid_attributes": "it wants ö refused in the name of an attribute; LocalStack found that AWS"
    " takes the letters À to ſ (its constants for SQS), whatever the text of the refusal says",
    "TestStsAssumeRole::test_list_queues_in_different_account": "it makes the account by assuming a role in STS,"
    " another service; ours are made by quelea admin account",
}
