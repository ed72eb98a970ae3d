// Package sqs_test runs the daily operations of SQS through the AWS SDK for Go v2, which checks the
// checksums of what it sends and receives, against the endpoint in SQS_ENDPOINT.
package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// A poll that came back before this did not sit out its 20 seconds.
const woken = 15 * time.Second

func client() *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint: aws.String(os.Getenv("SQS_ENDPOINT")),
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		Retryer:      aws.NopRetryer{},
	})
}

// queue makes a queue of this test's own, which is deleted at the end.
func queue(t *testing.T, c *sqs.Client, attributes map[string]string) *string {
	t.Helper()
	name := fmt.Sprintf("go-%s-%d", t.Name(), time.Now().UnixNano())
	if attributes["FifoQueue"] == "true" {
		name += ".fifo"
	}
	made, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	must(t, err)
	t.Cleanup(func() {
		_, _ = c.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl})
	})
	return made.QueueUrl
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Fatalf("got %v, not %v", got, wanted)
	}
}

func send(t *testing.T, c *sqs.Client, url *string, body string) *sqs.SendMessageOutput {
	t.Helper()
	sent, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageBody: &body})
	must(t, err)
	return sent
}

// receive gets exactly so many messages, by as many long polls as it takes.
func receive(t *testing.T, c *sqs.Client, url *string, count int) []types.Message {
	t.Helper()
	var got []types.Message
	for deadline := time.Now().Add(60 * time.Second); len(got) < count; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d messages came", len(got), count)
		}
		answer, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: url, MaxNumberOfMessages: int32(min(10, count-len(got))), WaitTimeSeconds: 5,
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		must(t, err)
		got = append(got, answer.Messages...)
	}
	return got
}

func remove(t *testing.T, c *sqs.Client, url *string, messages ...types.Message) {
	t.Helper()
	for _, message := range messages {
		_, err := c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: message.ReceiptHandle})
		must(t, err)
	}
}

func attribute(t *testing.T, c *sqs.Client, url *string, name types.QueueAttributeName) string {
	t.Helper()
	got, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: url, AttributeNames: []types.QueueAttributeName{name},
	})
	must(t, err)
	return got.Attributes[string(name)]
}

func bodies(messages []types.Message) []string {
	var got []string
	for _, message := range messages {
		got = append(got, *message.Body)
	}
	return got
}

func TestAMessageGoesThroughWithItsAttributes(t *testing.T) {
	c := client()
	url := queue(t, c, nil)
	attributes := map[string]types.MessageAttributeValue{
		"text":   {DataType: aws.String("String"), StringValue: aws.String("grüße")},
		"number": {DataType: aws.String("Number.int"), StringValue: aws.String("42")},
		"binary": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}},
	}
	// The SDK compares the checksums of the answer with those of what it sent.
	sent, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: url, MessageBody: aws.String("a\t<b>&"), MessageAttributes: attributes,
	})
	must(t, err)
	message := receive(t, c, url, 1)[0]
	equal(t, *message.Body, "a\t<b>&")
	equal(t, *message.MessageId, *sent.MessageId)
	equal(t, *message.MD5OfMessageAttributes, *sent.MD5OfMessageAttributes)
	equal(t, len(message.MessageAttributes), 3)
	equal(t, *message.MessageAttributes["text"].StringValue, "grüße")
	equal(t, string(message.MessageAttributes["binary"].BinaryValue), "\x00\x01\xff")
	equal(t, message.Attributes["ApproximateReceiveCount"], "1")
	remove(t, c, url, message)
	equal(t, attribute(t, c, url, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible), "0")
}

func TestQueuesAreMadeFoundListedAndDeleted(t *testing.T) {
	c := client()
	prefix := fmt.Sprintf("go-list-%d-", time.Now().UnixNano())
	var urls []string
	for number := range 7 {
		made, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(prefix + strconv.Itoa(number))})
		must(t, err)
		urls = append(urls, *made.QueueUrl)
	}
	found, err := c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String(prefix + "0")})
	must(t, err)
	equal(t, *found.QueueUrl, urls[0])
	var listed []string
	pages := sqs.NewListQueuesPaginator(c, &sqs.ListQueuesInput{QueueNamePrefix: &prefix, MaxResults: aws.Int32(3)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		must(t, err)
		listed = append(listed, page.QueueUrls...)
	}
	slices.Sort(listed)
	if !slices.Equal(listed, urls) {
		t.Fatalf("listed %v", listed)
	}
	for _, url := range urls {
		_, err := c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url})
		must(t, err)
	}
	_, err = c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String(prefix + "0")})
	if missing := new(types.QueueDoesNotExist); !errors.As(err, &missing) {
		t.Fatalf("not QueueDoesNotExist: %v", err)
	}
}

func TestAttributesAndTags(t *testing.T) {
	c := client()
	url := queue(t, c, map[string]string{"DelaySeconds": "3"})
	equal(t, attribute(t, c, url, types.QueueAttributeNameDelaySeconds), "3")
	_, err := c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: url, Attributes: map[string]string{"DelaySeconds": "0", "VisibilityTimeout": "7"},
	})
	must(t, err)
	equal(t, attribute(t, c, url, types.QueueAttributeNameVisibilityTimeout), "7")
	_, err = c.TagQueue(t.Context(), &sqs.TagQueueInput{QueueUrl: url, Tags: map[string]string{"a": "1", "b": "2"}})
	must(t, err)
	_, err = c.UntagQueue(t.Context(), &sqs.UntagQueueInput{QueueUrl: url, TagKeys: []string{"a"}})
	must(t, err)
	tags, err := c.ListQueueTags(t.Context(), &sqs.ListQueueTagsInput{QueueUrl: url})
	must(t, err)
	equal(t, fmt.Sprint(tags.Tags), "map[b:2]")
}

func TestBatchesFailEachEntryByItsOwn(t *testing.T) {
	c := client()
	url := queue(t, c, nil)
	entry := func(id string, delay int32) types.SendMessageBatchRequestEntry {
		return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: aws.String("m" + id), DelaySeconds: delay}
	}
	sent, err := c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
		QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{entry("a", 0), entry("b", 901), entry("c", 0)},
	})
	must(t, err)
	equal(t, len(sent.Successful), 2)
	equal(t, len(sent.Failed), 1)
	equal(t, *sent.Failed[0].Id+*sent.Failed[0].Code, "bInvalidParameterValue")
	equal(t, sent.Failed[0].SenderFault, true)
	messages := receive(t, c, url, 2)
	deleted, err := c.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{
		QueueUrl: url, Entries: []types.DeleteMessageBatchRequestEntry{
			{Id: aws.String("a"), ReceiptHandle: messages[0].ReceiptHandle},
			{Id: aws.String("rubbish"), ReceiptHandle: aws.String("rubbish")},
		},
	})
	must(t, err)
	equal(t, len(deleted.Successful), 1)
	equal(t, *deleted.Failed[0].Code, "ReceiptHandleIsInvalid")
}

func TestVisibility(t *testing.T) {
	c := client()
	url := queue(t, c, nil)
	send(t, c, url, "m")
	message := receive(t, c, url, 1)[0]
	_, err := c.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: url, ReceiptHandle: message.ReceiptHandle, VisibilityTimeout: 1,
	})
	must(t, err)
	equal(t, receive(t, c, url, 1)[0].Attributes["ApproximateReceiveCount"], "2")
}

func TestALongPollWakes(t *testing.T) {
	c := client()
	url := queue(t, c, nil)
	type outcome struct {
		answer *sqs.ReceiveMessageOutput
		err    error
		took   time.Duration
	}
	done := make(chan outcome)
	go func() {
		started := time.Now()
		answer, err := c.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 20})
		done <- outcome{answer, err, time.Since(started)}
	}()
	send(t, c, url, "m")
	got := <-done
	must(t, got.err)
	equal(t, fmt.Sprint(bodies(got.answer.Messages)), "[m]")
	if got.took > woken {
		t.Fatalf("the poll slept for %v", got.took)
	}
}

func TestACancelledPollTakesNothing(t *testing.T) {
	c := client()
	url := queue(t, c, map[string]string{"VisibilityTimeout": "900"})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 20}); err == nil {
		t.Fatal("the poll was to be cancelled")
	}
	// Whether the server has seen the end of the poll, or gives to it and takes back: the next one has the message.
	_, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 1})
	must(t, err)
	send(t, c, url, "m")
	receive(t, c, url, 1)
}

func TestFifoKeepsOrderAndDeduplicates(t *testing.T) {
	c := client()
	url := queue(t, c, map[string]string{"FifoQueue": "true"})
	put := func(body, group, id string) string {
		sent, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: url, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &id,
		})
		must(t, err)
		return *sent.SequenceNumber
	}
	last := ""
	for number := range 5 {
		sequence := put(strconv.Itoa(number), "g", strconv.Itoa(number))
		if len(sequence) < len(last) || len(sequence) == len(last) && sequence <= last {
			t.Fatalf("%s does not follow %s", sequence, last)
		}
		last = sequence
	}
	put("again", "g", "4")
	messages := receive(t, c, url, 5)
	equal(t, strings.Join(bodies(messages), ""), "01234")
	equal(t, messages[0].Attributes["MessageGroupId"], "g")
	remove(t, c, url, messages...)
	put("end", "g", "end")
	equal(t, *receive(t, c, url, 1)[0].Body, "end")
}

func TestDeadLettersAndMoveTasks(t *testing.T) {
	c := client()
	dead := queue(t, c, nil)
	arn := attribute(t, c, dead, types.QueueAttributeNameQueueArn)
	policy, err := json.Marshal(map[string]any{"deadLetterTargetArn": arn, "maxReceiveCount": 1})
	must(t, err)
	live := queue(t, c, map[string]string{"RedrivePolicy": string(policy), "VisibilityTimeout": "0"})
	send(t, c, live, "poison")
	receive(t, c, live, 1)
	_, err = c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: live})
	must(t, err)
	equal(t, attribute(t, c, dead, types.QueueAttributeNameApproximateNumberOfMessages), "1")
	sources, err := c.ListDeadLetterSourceQueues(t.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: dead})
	must(t, err)
	equal(t, fmt.Sprint(sources.QueueUrls), "["+*live+"]")
	_, err = c.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: &arn})
	must(t, err)
	equal(t, *receive(t, c, live, 1)[0].Body, "poison")
	tasks, err := c.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: &arn})
	must(t, err)
	equal(t, len(tasks.Results), 1)
}

func TestPermissionsArePutAndTaken(t *testing.T) {
	c := client()
	url := queue(t, c, nil)
	_, err := c.AddPermission(t.Context(), &sqs.AddPermissionInput{
		QueueUrl: url, Label: aws.String("l"), AWSAccountIds: []string{"111111111111"}, Actions: []string{"SendMessage"},
	})
	must(t, err)
	if !strings.Contains(attribute(t, c, url, types.QueueAttributeNamePolicy), "111111111111") {
		t.Fatal("the policy does not name the account")
	}
	_, err = c.RemovePermission(t.Context(), &sqs.RemovePermissionInput{QueueUrl: url, Label: aws.String("l")})
	must(t, err)
	equal(t, attribute(t, c, url, types.QueueAttributeNamePolicy), "")
}

func TestPurge(t *testing.T) {
	c := client()
	url := queue(t, c, nil)
	send(t, c, url, "m")
	_, err := c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: url})
	must(t, err)
	_, err = c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: url})
	if busy := new(types.PurgeQueueInProgress); !errors.As(err, &busy) {
		t.Fatalf("not PurgeQueueInProgress: %v", err)
	}
}

func TestErrorsHaveTheirTypes(t *testing.T) {
	c := client()
	url := queue(t, c, nil)
	as := func(err error, target any, what string) {
		t.Helper()
		if !errors.As(err, target) {
			t.Errorf("not %s: %v", what, err)
		}
	}
	_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(*url + "-nobody"), MessageBody: aws.String("m")})
	as(err, new(*types.QueueDoesNotExist), "QueueDoesNotExist")
	_, err = c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: aws.String("rubbish")})
	as(err, new(*types.ReceiptHandleIsInvalid), "ReceiptHandleIsInvalid")
	_, err = c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{}})
	as(err, new(*types.EmptyBatchRequest), "EmptyBatchRequest")
	same := types.SendMessageBatchRequestEntry{Id: aws.String("a"), MessageBody: aws.String("m")}
	_, err = c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{same, same}})
	as(err, new(*types.BatchEntryIdsNotDistinct), "BatchEntryIdsNotDistinct")
	_, err = c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("\x01")})
	as(err, new(*types.InvalidMessageContents), "InvalidMessageContents")
	_, err = c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"Nonsense": "1"}})
	as(err, new(*types.InvalidAttributeName), "InvalidAttributeName")
	_, err = c.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String("arn:aws:sqs:us-east-1:000000000000:nobody")})
	as(err, new(*types.ResourceNotFoundException), "ResourceNotFoundException")
	_, err = c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 11})
	var api smithy.APIError
	as(err, &api, "an error of the API")
	equal(t, api.ErrorCode(), "InvalidParameterValue")
}
