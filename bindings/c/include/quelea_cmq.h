/* CMQ, a message queue without a broker: the C interface of quelea-cmq.
 *
 * Written by cbindgen from bindings/c/src: change it there, then run
 * `QUELEA_BLESS=1 cargo test --manifest-path bindings/c/Cargo.toml`.
 * The manual is docs/cmq/c.md.
 */

#ifndef QUELEA_CMQ_H
#define QUELEA_CMQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The port where none is named, as on the command line.
#define QUELEA_CMQ_PORT 4711

// Bytes of the longest address or key as a text, with its zero at the end: an IPv6 address with zone,
// port and mailbox.
#define QUELEA_CMQ_KEY_TEXT_BYTES 96

// Words that a message keeps for the library: what it has now, and some to grow.
#define QUELEA_CMQ_MESSAGE_KEPT 14

// Bytes of a pre-shared key.
#define QUELEA_CMQ_SECRET_BYTES 32

// How a call ended. Numbers are never given away twice.
typedef enum quelea_cmq_code {
  // Done.
  QUELEA_CMQ_CODE_OK = 0,
  // The time was over before there was something to do, or before it was done.
  QUELEA_CMQ_CODE_TIMEOUT = 1,
  // The endpoint, the queue or the destination was closed.
  QUELEA_CMQ_CODE_CLOSED = 2,
  // There is no room for the message now, and the destination does not wait.
  QUELEA_CMQ_CODE_WOULD_BLOCK = 3,
  // The message can never be sent; the text has its size and the limit.
  QUELEA_CMQ_CODE_TOO_LARGE = 4,
  // The message is not UTF-8, and the wire carries strings only.
  QUELEA_CMQ_CODE_NOT_TEXT = 5,
  // An argument is not one that the function takes; the text says which.
  QUELEA_CMQ_CODE_INVALID = 6,
  // The mailbox is open already.
  QUELEA_CMQ_CODE_IN_USE = 7,
  // The endpoint has as many destinations or mailboxes as it may have.
  QUELEA_CMQ_CODE_TOO_MANY = 8,
  // The destination exists with other options.
  QUELEA_CMQ_CODE_CONFLICT = 9,
  // The operating system refused; `quelea_cmq_last_errno` has its number.
  QUELEA_CMQ_CODE_IO = 10,
  // A defect of the library, reported instead of ending the process. Free the handles.
  QUELEA_CMQ_CODE_PANIC = 11,
  // Messages were given up: their peer is gone, or their deadline has passed.
  QUELEA_CMQ_CODE_ABANDONED = 12,
} quelea_cmq_code;

// What happened.
typedef enum quelea_cmq_event_kind {
  // `messages` from the peer will not come.
  QUELEA_CMQ_EVENT_KIND_LOST = 0,
  // The peer was started anew: what it sent before and is missing will not come.
  QUELEA_CMQ_EVENT_KIND_RESTARTED = 1,
  // The peer closed its destination, and everything that it pushed there is here.
  QUELEA_CMQ_EVENT_KIND_ENDED = 2,
  // `messages` pushed to the peer were given up: their deadline passed, or it is gone.
  QUELEA_CMQ_EVENT_KIND_ABANDONED = 3,
} quelea_cmq_event_kind;

// What sender and receiver do for the messages of one destination.
typedef enum quelea_cmq_mode {
  // As UDP: delivered as it arrives, duplicates dropped, losses counted.
  QUELEA_CMQ_MODE_LOSSY = 0,
  // Only what is newer than everything delivered before.
  QUELEA_CMQ_MODE_LATEST_ONLY = 1,
  // Each message once, as it arrives.
  QUELEA_CMQ_MODE_RELIABLE_UNORDERED = 2,
  // Each message once, in the order in which it was pushed.
  QUELEA_CMQ_MODE_RELIABLE_ORDERED = 3,
  // As ReliableOrdered until a message is older than `deadline_us`.
  QUELEA_CMQ_MODE_RELIABLE_UNTIL = 4,
} quelea_cmq_mode;

// What a push does when there is no room for it.
typedef enum quelea_cmq_when_full {
  // Waits as long as configured.
  QUELEA_CMQ_WHEN_FULL_BLOCK = 0,
  // Answers QUELEA_CMQ_CODE_WOULD_BLOCK.
  QUELEA_CMQ_WHEN_FULL_REFUSE = 1,
  // Drops the message and counts it.
  QUELEA_CMQ_WHEN_FULL_DROP_NEW = 2,
  // Drops the oldest waiting batch of the same destination and counts its messages.
  QUELEA_CMQ_WHEN_FULL_DROP_OLDEST = 3,
} quelea_cmq_when_full;

// Whose datagrams an endpoint speaks.
typedef enum quelea_cmq_wire {
  // Quelea's own.
  QUELEA_CMQ_WIRE_QUELEA = 0,
  // Those of the original library for a queue of String: 512 bytes and 200 ms unless set.
  QUELEA_CMQ_WIRE_CLASSIC_STRING = 1,
  // Those of the original library for a queue of ByteString.
  QUELEA_CMQ_WIRE_CLASSIC_BYTES = 2,
} quelea_cmq_wire;

// A destination: one mailbox at one address.
typedef struct quelea_cmq_dest quelea_cmq_dest;

// One UDP socket with its destinations and mailboxes.
typedef struct quelea_cmq_endpoint quelea_cmq_endpoint;

// An open mailbox.
typedef struct quelea_cmq_queue quelea_cmq_queue;

// A UDP socket's address. Equal addresses are equal byte for byte.
typedef struct quelea_cmq_address {
  // 4 or 6.
  uint32_t version;
  // An IPv6 address's zone, or zero.
  uint32_t scope;
  // The port, in the host's byte order.
  uint32_t port;
  // The address as it is on the wire; IPv4's is in the first four bytes, the others are zero.
  uint8_t ip[16];
} quelea_cmq_address;

// The paper's key: an address, and who there.
typedef struct quelea_cmq_key {
  // The receiving socket, or a multicast group.
  struct quelea_cmq_address address;
  // Who there.
  uint64_t mailbox;
} quelea_cmq_key;

// Bytes that are lent for a call.
typedef struct quelea_cmq_slice {
  // The bytes; may be NULL if there are none.
  const uint8_t *data;
  // How many.
  size_t size;
} quelea_cmq_slice;

// An endpoint's settings. Begin with `{ .size = sizeof(quelea_cmq_config) }`: what is zero has the
// library's default.
typedef struct quelea_cmq_config {
  // Bytes of this structure, as the caller knows it.
  size_t size;
  // A quelea_cmq_wire.
  uint32_t wire;
  // Bytes of a batch: it leaves before the message that would make it larger.
  size_t qthresh;
  // The longest that a message waits in a batch, in microseconds.
  uint64_t timeout_us;
  // QUELEA_CMQ_SECRET_BYTES secret bytes that both ends share, or NULL; copied.
  const uint8_t *pre_shared_key;
  // Bytes of one datagram at most.
  size_t segment_bytes_max;
  // Bytes of a message at most.
  size_t message_bytes_max;
  // Bytes that wait to be sent or acknowledged, over all destinations.
  size_t outbox_bytes_max;
  // Destinations at most.
  size_t destinations_max;
  // Peers' flows that are remembered.
  size_t flows_max;
  // Bytes that wait for what is missing before them, over all flows.
  size_t reassembly_bytes_max;
  // Those flows that come from one address, or from one network of 64 bits of IPv6.
  size_t flows_per_address_max;
} quelea_cmq_config;

// How a mailbox takes messages. Begin with `{ .size = sizeof(quelea_cmq_queue_options) }`.
typedef struct quelea_cmq_queue_options {
  // Bytes of this structure, as the caller knows it.
  size_t size;
  // Bytes delivered and not yet popped; the senders' credit ends before. Zero is the default.
  size_t bytes_max;
  // Whether reliable messages count as arrived only when quelea_cmq_queue_acknowledge says so.
  bool acknowledged_by_application;
} quelea_cmq_queue_options;

// How messages go to one destination. Begin with `{ .size = sizeof(quelea_cmq_dest_options) }`.
typedef struct quelea_cmq_dest_options {
  // Bytes of this structure, as the caller knows it.
  size_t size;
  // A quelea_cmq_mode.
  uint32_t mode;
  // A quelea_cmq_when_full.
  uint32_t when_full;
  // For ReliableUntil: the age at which a message is given up, in microseconds.
  uint64_t deadline_us;
  // Another age of batches than the endpoint's, in microseconds; zero is the endpoint's.
  uint64_t timeout_us;
  // Datagrams of a repair group; zero sends no parity.
  uint32_t repair_data;
  // Parity datagrams of a group (Reed-Solomon); zero is one by XOR.
  uint32_t repair_parity;
  // Whether the receiver's credit does not bound what is under way; for Lossy and LatestOnly only.
  bool without_credit;
} quelea_cmq_dest_options;

// One event.
typedef struct quelea_cmq_event {
  // What happened.
  enum quelea_cmq_event_kind kind;
  // The peer, and the mailbox: of this endpoint, for Abandoned that of the peer.
  struct quelea_cmq_key peer;
  // How many messages; zero for Restarted and Ended.
  uint64_t messages;
  // The session that ended; zero for the others.
  uint64_t session;
} quelea_cmq_event;

// A message. It may be moved as bytes, but is released once.
typedef struct quelea_cmq_message {
  // The message's bytes, until it is released.
  const uint8_t *data;
  // How many.
  size_t size;
  // The sending socket: push there to reply.
  struct quelea_cmq_address from;
  // The mailbox that it was pushed to.
  uint64_t mailbox;
  // The sender's session: another after its restart.
  uint64_t session;
  // The library's. All zero in a message that was released.
  uint64_t kept[QUELEA_CMQ_MESSAGE_KEPT];
} quelea_cmq_message;

// What quelea_cmq_pop_each calls for each message; its bytes are valid during the call only.
typedef void (*quelea_cmq_each)(void *context, struct quelea_cmq_slice message);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Reads a key of the form "host:port/mailbox". Without a port it is QUELEA_CMQ_PORT, without a
// mailbox zero. A name is looked up, which may take a while. Thread-safe.
//
// # Safety
// `text` ends with a zero; `key` can be written.
enum quelea_cmq_code quelea_cmq_key_parse(const char *text, struct quelea_cmq_key *key);

// Writes "host:port/mailbox" with a zero at the end; a buffer of QUELEA_CMQ_KEY_TEXT_BYTES is always
// large enough. Thread-safe.
//
// # Safety
// `key` can be read; `text` has room for `bytes` bytes.
enum quelea_cmq_code quelea_cmq_key_format(const struct quelea_cmq_key *key,
                                           char *text,
                                           size_t bytes);

// Returns what the last call of this thread that did not answer QUELEA_CMQ_CODE_OK had to say:
// empty if there was none. Valid until the thread's next such call. Thread-safe.
const char *quelea_cmq_last_error(void);

// Returns the operating system's number for the last error of this thread; zero if it was not one
// of its. Thread-safe.
int quelea_cmq_last_errno(void);

// Returns the library's version, as "0.1.0". Thread-safe.
const char *quelea_cmq_version(void);

// Writes the key that it pushes to into `key`. Thread-safe.
//
// # Safety
// `dest` is not freed; `key` can be written.
enum quelea_cmq_code quelea_cmq_dest_key(const struct quelea_cmq_dest *dest,
                                         struct quelea_cmq_key *key);

// Puts a copy of `size` bytes into the destination's batch, which leaves when it is full or old
// enough. Waits for room at most `timeout_us` microseconds (for ever if negative) and then answers
// QUELEA_CMQ_CODE_WOULD_BLOCK; a destination that does not wait answers at once. Thread-safe.
//
// # Safety
// `dest` is not freed; `size` bytes can be read from `data`.
enum quelea_cmq_code quelea_cmq_push(const struct quelea_cmq_dest *dest,
                                     const uint8_t *data,
                                     size_t size,
                                     int64_t timeout_us);

// Pushes `count` messages, as quelea_cmq_push does, waiting at most `timeout_us` microseconds for all
// of them. `pushed` (which may be NULL) becomes how many were taken, also if a later one was not.
// Thread-safe.
//
// # Safety
// `dest` is not freed; `count` slices can be read from `messages`, and each can be read; `pushed` is
// NULL or can be written.
enum quelea_cmq_code quelea_cmq_push_batch(const struct quelea_cmq_dest *dest,
                                           const struct quelea_cmq_slice *messages,
                                           size_t count,
                                           int64_t timeout_us,
                                           size_t *pushed);

// Sends what is pending now. Thread-safe.
//
// # Safety
// `dest` is not freed.
enum quelea_cmq_code quelea_cmq_flush(const struct quelea_cmq_dest *dest);

// Flushes and waits at most `timeout_us` microseconds (for ever if negative) until everything has left
// and, in reliable modes, is acknowledged. QUELEA_CMQ_CODE_ABANDONED if messages were given up. Thread-safe.
//
// # Safety
// `dest` is not freed.
enum quelea_cmq_code quelea_cmq_wait_acknowledged(const struct quelea_cmq_dest *dest,
                                                  int64_t timeout_us);

// Flushes, and has the endpoint forget the destination once everything is sent (and acknowledged,
// where it is reliable). Later pushes by any handle answer QUELEA_CMQ_CODE_CLOSED. Thread-safe.
//
// # Safety
// `dest` is not freed.
enum quelea_cmq_code quelea_cmq_dest_close(const struct quelea_cmq_dest *dest);

// Frees the handle; the destination goes on. NULL is ignored. No other thread may use the handle any
// more.
//
// # Safety
// `dest` is NULL, or was made by this library and is not freed.
void quelea_cmq_dest_free(struct quelea_cmq_dest *dest);

// Binds a socket to "host:port"; port 0 has the system choose one. `config` may be NULL. Thread-safe.
//
// # Safety
// `address` ends with a zero; `config` is as its type says; `endpoint` can be written.
enum quelea_cmq_code quelea_cmq_endpoint_bind(const char *address,
                                              const struct quelea_cmq_config *config,
                                              struct quelea_cmq_endpoint **endpoint);

// Shares a bound UDP socket; the caller's descriptor remains the caller's to close. Thread-safe.
//
// # Safety
// `descriptor` is open; `config` is as its type says; `endpoint` can be written.
enum quelea_cmq_code quelea_cmq_endpoint_from_socket(int descriptor,
                                                     const struct quelea_cmq_config *config,
                                                     struct quelea_cmq_endpoint **endpoint);

// Writes the socket's address to `address`. Thread-safe.
//
// # Safety
// `endpoint` is not freed; `address` can be written.
enum quelea_cmq_code quelea_cmq_endpoint_address(const struct quelea_cmq_endpoint *endpoint,
                                                 struct quelea_cmq_address *address);

// Opens a mailbox: what peers push to (this address, `mailbox`) comes out there. `options` may be
// NULL. Thread-safe.
//
// # Safety
// `endpoint` is not freed; `options` is as its type says; `queue` can be written.
enum quelea_cmq_code quelea_cmq_endpoint_queue(const struct quelea_cmq_endpoint *endpoint,
                                               uint64_t mailbox,
                                               const struct quelea_cmq_queue_options *options,
                                               struct quelea_cmq_queue **queue);

// Opens all mailboxes that are not opened by themselves, as one queue; each message says which one it
// was pushed to. `options` may be NULL. Thread-safe.
//
// # Safety
// `endpoint` is not freed; `options` is as its type says; `queue` can be written.
enum quelea_cmq_code quelea_cmq_endpoint_queue_of_others(const struct quelea_cmq_endpoint *endpoint,
                                                         const struct quelea_cmq_queue_options *options,
                                                         struct quelea_cmq_queue **queue);

// Writes a handle to a destination, which is made anew or found, to `dest`; each handle is freed
// by itself. `options` may be NULL. Thread-safe.
//
// # Safety
// `endpoint` is not freed; `key` can be read; `options` is as its type says; `dest` can be written.
enum quelea_cmq_code quelea_cmq_endpoint_dest(const struct quelea_cmq_endpoint *endpoint,
                                              const struct quelea_cmq_key *key,
                                              const struct quelea_cmq_dest_options *options,
                                              struct quelea_cmq_dest **dest);

// Sends what is pending to all destinations now. Thread-safe.
//
// # Safety
// `endpoint` is not freed.
enum quelea_cmq_code quelea_cmq_endpoint_flush(const struct quelea_cmq_endpoint *endpoint);

// Gives `each` every counter with its name, which is valid during that call only. Thread-safe.
//
// # Safety
// `endpoint` is not freed; `each` can be called with `context`, and does not unwind.
enum quelea_cmq_code quelea_cmq_endpoint_stats(const struct quelea_cmq_endpoint *endpoint,
                                               void (*each)(void *context,
                                                            const char *name,
                                                            uint64_t count),
                                               void *context);

// Writes the value of the counter of that name to `count`. Thread-safe.
//
// # Safety
// `endpoint` is not freed; `name` ends with a zero; `count` can be written.
enum quelea_cmq_code quelea_cmq_endpoint_counter(const struct quelea_cmq_endpoint *endpoint,
                                                 const char *name,
                                                 uint64_t *count);

// Waits for the next event at most `timeout_us` microseconds, for ever if negative, and writes it
// to `event`. Thread-safe.
//
// # Safety
// `endpoint` is not freed; `event` can be written.
enum quelea_cmq_code quelea_cmq_endpoint_next_event(const struct quelea_cmq_endpoint *endpoint,
                                                    int64_t timeout_us,
                                                    struct quelea_cmq_event *event);

// Flushes, waits at most `timeout_us` microseconds until everything is sent and, in reliable modes,
// acknowledged, and closes: waiting pops of all threads end, later pushes answer QUELEA_CMQ_CODE_CLOSED.
// QUELEA_CMQ_CODE_TIMEOUT if it took longer, QUELEA_CMQ_CODE_ABANDONED if messages were given up; it is
// closed then too. Thread-safe.
//
// # Safety
// `endpoint` is not freed.
enum quelea_cmq_code quelea_cmq_endpoint_close(const struct quelea_cmq_endpoint *endpoint,
                                               int64_t timeout_us);

// Frees the handle. The socket is closed when the endpoint's queues and destinations are freed too.
// NULL is ignored. No other thread may use the handle any more.
//
// # Safety
// `endpoint` is NULL, or was made by this library and is not freed.
void quelea_cmq_endpoint_free(struct quelea_cmq_endpoint *endpoint);

// Pops one message; waits for it at most `timeout_us` microseconds, for ever if negative.
// QUELEA_CMQ_CODE_TIMEOUT if there was none, QUELEA_CMQ_CODE_CLOSED if there will be none. Release the message.
// Thread-safe: each message goes to one thread.
//
// # Safety
// `queue` is not freed; `message` can be written, and holds none that was not released.
enum quelea_cmq_code quelea_cmq_pop(const struct quelea_cmq_queue *queue,
                                    int64_t timeout_us,
                                    struct quelea_cmq_message *message);

// Pops up to `max` messages into an array: waits for the first as quelea_cmq_pop does, and takes those
// behind it that are here. `count` becomes how many. Release each. Thread-safe.
//
// # Safety
// `queue` is not freed; `messages` has room for `max`, and holds none that was not released; `count`
// can be written.
enum quelea_cmq_code quelea_cmq_pop_batch(const struct quelea_cmq_queue *queue,
                                          int64_t timeout_us,
                                          struct quelea_cmq_message *messages,
                                          size_t max,
                                          size_t *count);

// Waits for the first message as quelea_cmq_pop does, and gives it and those behind it that are here,
// at most `max`, to `each`. The quickest way: nothing is copied or counted per message, nothing has to
// be released. `count` becomes how many. Thread-safe.
//
// # Safety
// `queue` is not freed; `each` can be called with `context`, and does not unwind; `count` can be
// written.
enum quelea_cmq_code quelea_cmq_pop_each(const struct quelea_cmq_queue *queue,
                                         int64_t timeout_us,
                                         size_t max,
                                         quelea_cmq_each each,
                                         void *context,
                                         size_t *count);

// Acknowledges a message, for queues with `acknowledged_by_application`: it, and all before it of
// the same sender, are safe; the sender may forget them. Thread-safe.
//
// # Safety
// `queue` is not freed; `message` was filled by a pop of it.
enum quelea_cmq_code quelea_cmq_queue_acknowledge(const struct quelea_cmq_queue *queue,
                                                  const struct quelea_cmq_message *message);

// Gives a message's memory back. One that is all zero is ignored. A message belongs to one thread at
// a time.
//
// # Safety
// `message` is NULL, zero, or was filled by a pop; no copy of it was released.
void quelea_cmq_message_release(struct quelea_cmq_message *message);

// Closes the mailbox: waiting pops of all threads end. Thread-safe.
//
// # Safety
// `queue` is not freed.
enum quelea_cmq_code quelea_cmq_queue_close(const struct quelea_cmq_queue *queue);

// Closes the mailbox and frees the handle. NULL is ignored. No other thread may use the handle any
// more.
//
// # Safety
// `queue` is NULL, or was made by this library and is not freed.
void quelea_cmq_queue_free(struct quelea_cmq_queue *queue);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* QUELEA_CMQ_H */
