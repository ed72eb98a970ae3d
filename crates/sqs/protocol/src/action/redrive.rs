//! ListDeadLetterSourceQueues, and the tasks that move messages out of dead-letter queues:
//! StartMessageMoveTask, CancelMessageMoveTask and ListMessageMoveTasks.

use crate::shape::shapes;

shapes! {
    /// Asks which queues have this one as their dead-letter queue.
    ListDeadLetterSourceQueuesRequest {
        /// The dead-letter queue.
        queue_url: Option<String> = "QueueUrl",
        /// Where the last list ended.
        next_token: Option<String> = "NextToken",
        /// At most so many, 1 to 1000.
        max_results: Option<i64> = "MaxResults",
    }

    /// Queues.
    ListDeadLetterSourceQueuesResult {
        /// Their URLs. Their name in JSON begins with a small letter.
        queue_urls: Vec<String> = always "queueUrls" / "QueueUrl",
        /// To go on with, if there are more.
        next_token: Option<String> = "NextToken",
    }

    /// Moves the messages of a dead-letter queue.
    StartMessageMoveTaskRequest {
        /// The dead-letter queue.
        source_arn: Option<String> = "SourceArn",
        /// Where to; if it is left out, each goes where it came from.
        destination_arn: Option<String> = "DestinationArn",
        /// How fast, 1 to 500.
        max_number_of_messages_per_second: Option<i64> = "MaxNumberOfMessagesPerSecond",
    }

    /// The task.
    StartMessageMoveTaskResult {
        /// What cancels it.
        task_handle: Option<String> = "TaskHandle",
    }

    /// Stops a task.
    CancelMessageMoveTaskRequest {
        /// Which one.
        task_handle: Option<String> = "TaskHandle",
    }

    /// How far the task came.
    CancelMessageMoveTaskResult {
        /// How many messages it moved.
        approximate_number_of_messages_moved: Option<i64> = "ApproximateNumberOfMessagesMoved",
    }

    /// Asks for the latest tasks of a dead-letter queue.
    ListMessageMoveTasksRequest {
        /// The dead-letter queue.
        source_arn: Option<String> = "SourceArn",
        /// At most so many, 1 to 10.
        max_results: Option<i64> = "MaxResults",
    }

    /// Tasks, the latest first.
    ListMessageMoveTasksResult {
        /// The tasks.
        results: Vec<ListMessageMoveTasksResultEntry> =
            "Results" / "ListMessageMoveTasksResultEntry",
    }

    /// A task.
    ListMessageMoveTasksResultEntry {
        /// What cancels it, while it runs.
        task_handle: Option<String> = "TaskHandle",
        /// `RUNNING`, `COMPLETED`, `CANCELLING`, `CANCELLED` or `FAILED`.
        status: Option<String> = "Status",
        /// The dead-letter queue.
        source_arn: Option<String> = "SourceArn",
        /// Where its messages go, if that was said.
        destination_arn: Option<String> = "DestinationArn",
        /// How fast, if that was said.
        max_number_of_messages_per_second: Option<i64> = "MaxNumberOfMessagesPerSecond",
        /// How many messages it has moved.
        approximate_number_of_messages_moved: Option<i64> = "ApproximateNumberOfMessagesMoved",
        /// How many there were when it began.
        approximate_number_of_messages_to_move: Option<i64> = "ApproximateNumberOfMessagesToMove",
        /// Why it failed.
        failure_reason: Option<String> = "FailureReason",
        /// When it began, in ms since 1970.
        started_timestamp: Option<i64> = "StartedTimestamp",
    }
}
