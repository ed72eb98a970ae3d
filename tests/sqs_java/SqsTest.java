// The AWS SDK for Java v2, synchronous, asynchronous and batching, against SQS_ENDPOINT. The SDK checks the
// checksums of what it sends and receives.

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigInteger;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.retry.AwsRetryStrategy;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.core.client.config.ClientOverrideConfiguration;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.batchmanager.SqsAsyncBatchManager;
import software.amazon.awssdk.services.sqs.model.*;

class SqsTest {
    // A poll that came back before this did not sit out its 20 seconds.
    private static final Duration WOKEN = Duration.ofSeconds(15);
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final URI ENDPOINT = URI.create(System.getenv("SQS_ENDPOINT"));
    private static final StaticCredentialsProvider CREDENTIALS =
            StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test"));
    // Nothing is tried again behind a test's back.
    private static final ClientOverrideConfiguration ONCE =
            ClientOverrideConfiguration.builder().retryStrategy(AwsRetryStrategy.doNotRetry()).build();
    private static final List<String> MADE = new ArrayList<>();
    private static SqsClient client;
    private static SqsAsyncClient async;

    @BeforeAll
    static void connect() {
        client = SqsClient.builder().endpointOverride(ENDPOINT).region(Region.US_EAST_1)
                .credentialsProvider(CREDENTIALS).overrideConfiguration(ONCE).build();
        async = SqsAsyncClient.builder().endpointOverride(ENDPOINT).region(Region.US_EAST_1)
                .credentialsProvider(CREDENTIALS).overrideConfiguration(ONCE).build();
    }

    @AfterAll
    static void leave() {
        MADE.forEach(url -> client.deleteQueue(r -> r.queueUrl(url)));
        async.close();
        client.close();
    }

    private static String queue(Map<String, String> attributes) {
        String name = "java-" + UUID.randomUUID() + (attributes.containsKey("FifoQueue") ? ".fifo" : "");
        String url = client.createQueue(r -> r.queueName(name).attributesWithStrings(attributes)).queueUrl();
        MADE.add(url);
        return url;
    }

    private static String queue() {
        return queue(Map.of());
    }

    private static SendMessageResponse send(String url, String body) {
        return client.sendMessage(r -> r.queueUrl(url).messageBody(body));
    }

    private static String attribute(String url, String name) {
        return client.getQueueAttributes(r -> r.queueUrl(url).attributeNamesWithStrings(name))
                .attributesAsStrings().get(name);
    }

    /** Exactly so many messages, by as many long polls as it takes. */
    private static List<Message> receive(String url, int count) {
        List<Message> got = new ArrayList<>();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (got.size() < count) {
            assertTrue(System.nanoTime() < deadline, got.size() + " of " + count + " messages came");
            int missing = Math.min(10, count - got.size());
            got.addAll(client.receiveMessage(r -> r.queueUrl(url).maxNumberOfMessages(missing).waitTimeSeconds(5)
                    .messageAttributeNames("All").messageSystemAttributeNamesWithStrings("All")).messages());
        }
        return got;
    }

    private static Message receive(String url) {
        return receive(url, 1).get(0);
    }

    private static List<String> bodies(List<Message> messages) {
        return messages.stream().map(Message::body).toList();
    }

    @Test
    void aMessageGoesThroughWithItsAttributes() {
        String url = queue();
        byte[] bytes = {0, 1, -1};
        Map<String, MessageAttributeValue> attributes = Map.of(
                "text", MessageAttributeValue.builder().dataType("String").stringValue("grüße").build(),
                "number", MessageAttributeValue.builder().dataType("Number.int").stringValue("42").build(),
                "binary", MessageAttributeValue.builder().dataType("Binary")
                        .binaryValue(SdkBytes.fromByteArray(bytes)).build());
        SendMessageResponse sent =
                client.sendMessage(r -> r.queueUrl(url).messageBody("a\t<b>&").messageAttributes(attributes));
        Message message = receive(url);
        assertEquals("a\t<b>&", message.body());
        assertEquals(sent.messageId(), message.messageId());
        assertEquals(sent.md5OfMessageAttributes(), message.md5OfMessageAttributes());
        assertEquals("grüße", message.messageAttributes().get("text").stringValue());
        assertArrayEquals(bytes, message.messageAttributes().get("binary").binaryValue().asByteArray());
        assertEquals("1", message.attributesAsStrings().get("ApproximateReceiveCount"));
        client.deleteMessage(r -> r.queueUrl(url).receiptHandle(message.receiptHandle()));
        assertEquals("0", attribute(url, "ApproximateNumberOfMessagesNotVisible"));
    }

    @Test
    void queuesAreMadeFoundPagedAndDeleted() {
        String prefix = "java-list-" + UUID.randomUUID() + "-";
        List<String> urls = IntStream.range(0, 7)
                .mapToObj(number -> client.createQueue(r -> r.queueName(prefix + number)).queueUrl()).toList();
        assertEquals(urls.get(0), client.getQueueUrl(r -> r.queueName(prefix + 0)).queueUrl());
        List<String> listed = client.listQueuesPaginator(r -> r.queueNamePrefix(prefix).maxResults(3))
                .queueUrls().stream().sorted().toList();
        assertEquals(urls, listed);
        urls.forEach(url -> client.deleteQueue(r -> r.queueUrl(url)));
        assertThrows(QueueDoesNotExistException.class, () -> client.getQueueUrl(r -> r.queueName(prefix + 0)));
    }

    @Test
    void attributesAndTagsComeBack() {
        String url = queue(Map.of("DelaySeconds", "3"));
        assertEquals("3", attribute(url, "DelaySeconds"));
        client.setQueueAttributes(r -> r.queueUrl(url).attributesWithStrings(Map.of("VisibilityTimeout", "7")));
        assertEquals("7", attribute(url, "VisibilityTimeout"));
        client.tagQueue(r -> r.queueUrl(url).tags(Map.of("a", "1", "b", "2")));
        client.untagQueue(r -> r.queueUrl(url).tagKeys("a"));
        assertEquals(Map.of("b", "2"), client.listQueueTags(r -> r.queueUrl(url)).tags());
    }

    @Test
    void aBatchFailsEachEntryByItsOwn() {
        String url = queue();
        SendMessageBatchResponse sent = client.sendMessageBatch(r -> r.queueUrl(url).entries(
                e -> e.id("a").messageBody("a"), e -> e.id("b").messageBody("b").delaySeconds(901),
                e -> e.id("c").messageBody("c")));
        assertEquals(List.of("a", "c"), sent.successful().stream().map(SendMessageBatchResultEntry::id).sorted().toList());
        assertEquals("b InvalidParameterValue", sent.failed().get(0).id() + " " + sent.failed().get(0).code());
        assertTrue(sent.failed().get(0).senderFault());
        List<Message> messages = receive(url, 2);
        DeleteMessageBatchResponse deleted = client.deleteMessageBatch(r -> r.queueUrl(url).entries(
                e -> e.id("good").receiptHandle(messages.get(0).receiptHandle()),
                e -> e.id("rubbish").receiptHandle("rubbish")));
        assertEquals("good", deleted.successful().get(0).id());
        assertEquals("ReceiptHandleIsInvalid", deleted.failed().get(0).code());
    }

    @Test
    void aVisibilityTimeoutIsChanged() {
        String url = queue();
        send(url, "m");
        Message message = receive(url);
        client.changeMessageVisibility(r -> r.queueUrl(url).receiptHandle(message.receiptHandle()).visibilityTimeout(1));
        assertEquals("2", receive(url).attributesAsStrings().get("ApproximateReceiveCount"));
    }

    @Test
    void aLongPollWakes() throws Exception {
        String url = queue();
        long started = System.nanoTime();
        CompletableFuture<ReceiveMessageResponse> waiting =
                async.receiveMessage(r -> r.queueUrl(url).waitTimeSeconds(20));
        send(url, "m");
        assertEquals(List.of("m"), bodies(waiting.get(60, TimeUnit.SECONDS).messages()));
        assertTrue(System.nanoTime() - started < WOKEN.toNanos(), "the poll slept until its end");
    }

    @Test
    void aFifoQueueKeepsOrderAndDeduplicates() {
        String url = queue(Map.of("FifoQueue", "true", "ContentBasedDeduplication", "true"));
        List<BigInteger> sequence = new ArrayList<>();
        for (String body : List.of("0", "1", "2", "2", "3")) {
            sequence.add(new BigInteger(client.sendMessage(
                    r -> r.queueUrl(url).messageBody(body).messageGroupId("g")).sequenceNumber()));
        }
        assertEquals(sequence.get(2), sequence.get(3));
        assertTrue(sequence.get(0).compareTo(sequence.get(1)) < 0 && sequence.get(3).compareTo(sequence.get(4)) < 0);
        List<Message> messages = receive(url, 4);
        assertEquals(List.of("0", "1", "2", "3"), bodies(messages));
        assertEquals("g", messages.get(0).attributesAsStrings().get("MessageGroupId"));
    }

    @Test
    void poisonGoesToTheDeadLetterQueueAndBack() {
        String dead = queue();
        String arn = attribute(dead, "QueueArn");
        String policy = "{\"deadLetterTargetArn\":\"" + arn + "\",\"maxReceiveCount\":1}";
        String live = queue(Map.of("RedrivePolicy", policy, "VisibilityTimeout", "0"));
        send(live, "poison");
        receive(live);
        assertFalse(client.receiveMessage(r -> r.queueUrl(live)).hasMessages());
        assertEquals(List.of(live), client.listDeadLetterSourceQueues(r -> r.queueUrl(dead)).queueUrls());
        client.startMessageMoveTask(r -> r.sourceArn(arn));
        assertEquals("poison", receive(live).body());
        assertEquals(1, client.listMessageMoveTasks(r -> r.sourceArn(arn)).results().size());
    }

    @Test
    void permissionsAreAddedAndRemoved() {
        String url = queue();
        client.addPermission(r -> r.queueUrl(url).label("l").awsAccountIds("111111111111").actions("SendMessage"));
        assertTrue(attribute(url, "Policy").contains("111111111111"));
        client.removePermission(r -> r.queueUrl(url).label("l"));
        assertEquals(null, attribute(url, "Policy"));
    }

    @Test
    void errorsHaveTheirTypes() {
        String url = queue();
        assertThrows(QueueDoesNotExistException.class, () -> send(url + "-nobody", "m"));
        assertThrows(ReceiptHandleIsInvalidException.class,
                () -> client.deleteMessage(r -> r.queueUrl(url).receiptHandle("rubbish")));
        assertThrows(EmptyBatchRequestException.class,
                () -> client.sendMessageBatch(r -> r.queueUrl(url).entries(List.of())));
        assertThrows(BatchEntryIdsNotDistinctException.class, () -> client.sendMessageBatch(r -> r.queueUrl(url)
                .entries(e -> e.id("a").messageBody("m"), e -> e.id("a").messageBody("m"))));
        assertThrows(InvalidMessageContentsException.class, () -> send(url, "\u0001"));
        assertThrows(InvalidAttributeNameException.class,
                () -> client.setQueueAttributes(r -> r.queueUrl(url).attributesWithStrings(Map.of("Nonsense", "1"))));
        assertThrows(ResourceNotFoundException.class, () -> client.listMessageMoveTasks(
                r -> r.sourceArn("arn:aws:sqs:us-east-1:000000000000:nobody")));
        SqsException refused = assertThrows(SqsException.class,
                () -> client.receiveMessage(r -> r.queueUrl(url).maxNumberOfMessages(11)));
        assertEquals("InvalidParameterValue", refused.awsErrorDetails().errorCode());
        assertEquals(400, refused.statusCode());
        assertNotNull(refused.requestId());
        client.purgeQueue(r -> r.queueUrl(url));
        assertThrows(PurgeQueueInProgressException.class, () -> client.purgeQueue(r -> r.queueUrl(url)));
        CompletionException late = assertThrows(CompletionException.class,
                () -> async.getQueueUrl(r -> r.queueName("nobody")).join());
        assertInstanceOf(QueueDoesNotExistException.class, late.getCause());
    }

    @Test
    void theBatchManagerSendsReceivesAndDeletes() throws Exception {
        String url = queue();
        int count = 500;
        try (SqsAsyncBatchManager manager = async.batchManager()) {
            List<CompletableFuture<SendMessageResponse>> sending = IntStream.range(0, count)
                    .mapToObj(number -> manager.sendMessage(r -> r.queueUrl(url).messageBody(Integer.toString(number))))
                    .toList();
            Set<String> ids = sending.stream().map(one -> one.join().messageId()).collect(Collectors.toSet());
            assertEquals(count, ids.size());
            List<String> got = new ArrayList<>();
            List<CompletableFuture<DeleteMessageResponse>> deleting = new ArrayList<>();
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (got.size() < count) {
                assertTrue(System.nanoTime() < deadline, got.size() + " of " + count + " messages came");
                for (Message message : manager.receiveMessage(r -> r.queueUrl(url)).get(60, TimeUnit.SECONDS).messages()) {
                    got.add(message.body());
                    deleting.add(manager.deleteMessage(r -> r.queueUrl(url).receiptHandle(message.receiptHandle())));
                }
            }
            deleting.forEach(CompletableFuture::join);
            assertEquals(count, Set.copyOf(got).size());
        }
        assertEquals("0", attribute(url, "ApproximateNumberOfMessages"));
        assertEquals("0", attribute(url, "ApproximateNumberOfMessagesNotVisible"));
    }

    @Test
    void theBatchManagerFailsEachRequestByItsOwn() {
        String url = queue();
        try (SqsAsyncBatchManager manager = async.batchManager()) {
            CompletableFuture<SendMessageResponse> good = manager.sendMessage(r -> r.queueUrl(url).messageBody("good"));
            CompletableFuture<SendMessageResponse> late =
                    manager.sendMessage(r -> r.queueUrl(url).messageBody("late").delaySeconds(901));
            assertNotNull(good.join().messageId());
            assertThrows(CompletionException.class, late::join);
        }
        assertEquals("good", receive(url).body());
    }
}
