/* The physical limit: messages packed into segments, segments into trains that cross the kernel in one call (GSO,
 * GRO). No header but a length a message, no loss detection, nothing but a window. */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* One Ethernet frame less the headers; messages that do not fit go in the largest datagrams instead. */
enum { SEGMENT_BYTES = 1472, TRAIN_SEGMENTS_MAX = 44, LENGTH_BYTES = 2 };
/* Trains between two acknowledgements. */
enum { TRAINS_AN_ACKNOWLEDGEMENT = 4 };

static int socket_descriptor;
static char train[DATAGRAM_BYTES_MAX + 1], message[DATAGRAM_BYTES_MAX];

static size_t segment_bytes(size_t size) {
	return size + LENGTH_BYTES <= SEGMENT_BYTES ? SEGMENT_BYTES : DATAGRAM_BYTES_MAX;
}

static void open_receiver(const char *address, char *bound, size_t bound_bytes) {
	int on = 1;
	socket_descriptor = udp_bound(address, bound, bound_bytes);
	if (setsockopt(socket_descriptor, IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0) fail("UDP_GRO");
}

static void open_sender(const char *address) { socket_descriptor = udp_connected(address); }

static void send_train(size_t bytes, size_t segment) {
	char control[CMSG_SPACE(sizeof(uint16_t))] = { 0 };
	struct iovec data = { train, bytes };
	struct msghdr header = { .msg_iov = &data, .msg_iovlen = 1 };
	if (bytes > segment) {
		uint16_t each = (uint16_t)segment;
		header.msg_control = control;
		header.msg_controllen = sizeof control;
		struct cmsghdr *option = CMSG_FIRSTHDR(&header);
		option->cmsg_level = IPPROTO_UDP;
		option->cmsg_type = UDP_SEGMENT;
		option->cmsg_len = CMSG_LEN(sizeof each);
		memcpy(CMSG_DATA(option), &each, sizeof each);
	}
	if (sendmsg(socket_descriptor, &header, 0) < 0 && errno != ECONNREFUSED) fail("sendmsg");
}

static void send_all(const struct run *run, struct result *result) {
	size_t segment = segment_bytes(run->size), framed = run->size + LENGTH_BYTES;
	size_t in_segment = segment / framed, used = 0, in_this = 0, segments = 0;
	size_t most = segment == SEGMENT_BYTES ? TRAIN_SEGMENTS_MAX : 1;
	struct window window = { socket_descriptor, window_datagrams(DATAGRAM_BYTES_MAX) / 2, 0 };
	uint64_t trains = 0, stale;
	uint16_t length = (uint16_t)run->size;
	while (udp_readable(socket_descriptor, 0)) /* acknowledgements of an earlier run */
		if (recv(socket_descriptor, &stale, sizeof stale, 0) < 0) break;
	result->begun_ns = now_ns();
	for (uint64_t i = 0; i < run->messages; i++) {
		memcpy(train + used, &length, LENGTH_BYTES);
		memcpy(train + used + LENGTH_BYTES, message, run->size);
		used += framed;
		int last = i + 1 == run->messages;
		if (++in_this < in_segment && !last) continue;
		in_this = 0;
		segments++;
		if (segments < most && !last) { /* pad: segments of a train are equal */
			memset(train + used, 0, segments * segment - used);
			used = segments * segment;
			continue;
		}
		window_wait(&window, trains++);
		send_train(used, segment);
		segments = used = 0;
	}
	result->ended_ns = now_ns();
	result->count = run->messages;
}

/* Messages in the datagram; each is touched. */
static uint64_t unpack(const char *datagram, size_t bytes) {
	uint64_t count = 0;
	for (size_t at = 0; at + LENGTH_BYTES <= bytes; count++) {
		uint16_t length;
		memcpy(&length, datagram + at, LENGTH_BYTES);
		if (length == 0 || at + LENGTH_BYTES + length > bytes) break;
		memcpy(message, datagram + at + LENGTH_BYTES, sizeof(uint32_t));
		at += LENGTH_BYTES + length;
	}
	return count;
}

static size_t segment_of(struct msghdr *header, size_t bytes) {
	for (struct cmsghdr *option = CMSG_FIRSTHDR(header); option != NULL; option = CMSG_NXTHDR(header, option)) {
		if (option->cmsg_level == IPPROTO_UDP && option->cmsg_type == UDP_GRO) {
			int each;
			memcpy(&each, CMSG_DATA(option), sizeof each);
			return (size_t)each;
		}
	}
	return bytes;
}

static void receive_all(const struct run *run, struct result *result) {
	struct sockaddr_storage from;
	char control[CMSG_SPACE(sizeof(int))];
	uint64_t trains = 0;
	while (result->count < run->messages) {
		if (run->idle_ns && !udp_readable(socket_descriptor, run->idle_ns)) break;
		struct iovec data = { train, sizeof train };
		struct msghdr header = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &data, .msg_iovlen = 1,
			                     .msg_control = control, .msg_controllen = sizeof control };
		ssize_t got = recvmsg(socket_descriptor, &header, 0);
		if (got < 0) fail("recvmsg");
		if (result->count == 0) result->begun_ns = now_ns();
		size_t bytes = (size_t)got, segment = segment_of(&header, bytes);
		for (size_t at = 0; at < bytes; at += segment)
			result->count += unpack(train + at, bytes - at < segment ? bytes - at : segment);
		result->ended_ns = now_ns();
		if (++trains % TRAINS_AN_ACKNOWLEDGEMENT == 0 &&
		    sendto(socket_descriptor, &trains, sizeof trains, 0, (struct sockaddr *)&from, header.msg_namelen) < 0 &&
		    errno != ECONNREFUSED)
			fail("sendto");
	}
}

const struct transport udp_packed = { "udp-packed", open_receiver, open_sender, send_all, receive_all, NULL, NULL };
