/* Raw UDP: sendto and recvfrom (of a connected sender: send), a datagram a message.
 *
 * An unpaced sender overruns the receive buffer of the loopback interface, so one-way runs are bounded by a
 * window: the receiver says every few datagrams how far it is. */
#define _GNU_SOURCE
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVE_BUFFER_BYTES = 4 << 20 };
/* What the kernel charges for a small datagram beside its bytes. */
enum { DATAGRAM_OVERHEAD_BYTES = 1024 };
/* More than this gains nothing, and lets the receiver's cache go cold. */
enum { WINDOW_DATAGRAMS_MAX = 512 };
/* The receiver acknowledges four times a window. */
enum { ACKNOWLEDGEMENTS = 4 };

static int socket_descriptor;
static char buffer[DATAGRAM_BYTES_MAX + 1];

static struct addrinfo *resolve(const char *address) {
	char host[64];
	const char *colon = strrchr(address, ':');
	if (colon == NULL || (size_t)(colon - address) >= sizeof host) errno = EINVAL, fail(address);
	int bracketed = address[0] == '[';
	snprintf(host, sizeof host, "%.*s", (int)(colon - address) - 2 * bracketed, address + bracketed);
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *found;
	if (getaddrinfo(host, colon + 1, &hints, &found) != 0) errno = EINVAL, fail(address);
	return found;
}

int udp_bound(const char *address, char *bound, size_t bound_bytes) {
	struct addrinfo *at = resolve(address);
	int descriptor = socket(at->ai_family, SOCK_DGRAM, 0), bytes = RECEIVE_BUFFER_BYTES;
	if (descriptor < 0) fail("socket");
	if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0 &&
	    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) != 0)
		fail("SO_RCVBUF");
	if (bind(descriptor, at->ai_addr, at->ai_addrlen) != 0) fail("bind");
	struct sockaddr_storage name;
	socklen_t length = sizeof name;
	if (getsockname(descriptor, (struct sockaddr *)&name, &length) != 0) fail("getsockname");
	char host[64], port[16];
	if (getnameinfo((struct sockaddr *)&name, length, host, sizeof host, port, sizeof port,
	                NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		fail("getnameinfo");
	snprintf(bound, bound_bytes, at->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	freeaddrinfo(at);
	return descriptor;
}

int udp_connected(const char *address) {
	struct addrinfo *at = resolve(address);
	int descriptor = socket(at->ai_family, SOCK_DGRAM, 0);
	if (descriptor < 0) fail("socket");
	if (connect(descriptor, at->ai_addr, at->ai_addrlen) != 0) fail("connect");
	freeaddrinfo(at);
	return descriptor;
}

int udp_readable(int descriptor, uint64_t ns) {
	struct pollfd wanted = { .fd = descriptor, .events = POLLIN };
	return poll(&wanted, 1, (int)(ns / 1000000ull)) > 0;
}

uint64_t window_datagrams(size_t bytes) {
	uint64_t fit = RECEIVE_BUFFER_BYTES / (bytes + DATAGRAM_OVERHEAD_BYTES);
	return fit < WINDOW_DATAGRAMS_MAX ? fit : WINDOW_DATAGRAMS_MAX;
}

void window_wait(struct window *window, uint64_t next) {
	while (next - window->acknowledged >= window->most) {
		uint64_t taken;
		if (!udp_readable(window->socket, RESEND_NS)) {
			window->acknowledged = next;
		} else if (recv(window->socket, &taken, sizeof taken, 0) == sizeof taken &&
		           taken > window->acknowledged && taken <= next) {
			window->acknowledged = taken;
		}
	}
}

static void open_receiver(const char *address, char *bound, size_t bound_bytes) {
	socket_descriptor = udp_bound(address, bound, bound_bytes);
}

static void open_sender(const char *address) { socket_descriptor = udp_connected(address); }

static void put_number(uint64_t number) {
	uint32_t low = (uint32_t)number;
	memcpy(buffer, &low, sizeof low);
}

/* The number that a message begins with, as an offset in this run. */
static uint64_t offset_of(const char *message, const struct run *run) {
	uint32_t low;
	memcpy(&low, message, sizeof low);
	return (uint32_t)(low - (uint32_t)run->base);
}

/* Forgets acknowledgements and answers of an earlier run; whoever sent them has ended it. */
static void drain(void) {
	while (udp_readable(socket_descriptor, 0))
		if (recv(socket_descriptor, buffer, sizeof buffer, 0) < 0) break;
}

static void send_all(const struct run *run, struct result *result) {
	drain();
	struct window window = { socket_descriptor, window_datagrams(run->size), 0 };
	result->begun_ns = now_ns();
	for (uint64_t i = 0; i < run->messages; i++) {
		window_wait(&window, i);
		put_number(run->base + i);
		if (send(socket_descriptor, buffer, run->size, 0) < 0 && errno != ECONNREFUSED) fail("send");
	}
	result->ended_ns = now_ns();
	result->count = run->messages;
}

static void receive_all(const struct run *run, struct result *result) {
	uint64_t step = window_datagrams(run->size) / ACKNOWLEDGEMENTS, next = step;
	struct sockaddr_storage from;
	while (result->count < run->messages) {
		if (run->idle_ns && !udp_readable(socket_descriptor, run->idle_ns)) break;
		socklen_t length = sizeof from;
		if (recvfrom(socket_descriptor, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &length) < 0)
			fail("recvfrom");
		uint64_t offset = offset_of(buffer, run);
		if (offset >= run->messages) continue; /* of an earlier run */
		if (result->count++ == 0) result->begun_ns = now_ns();
		if (run->idle_ns || result->count == run->messages) result->ended_ns = now_ns();
		if (offset + 1 >= next) {
			uint64_t taken = offset + 1;
			next = taken + step;
			if (sendto(socket_descriptor, &taken, sizeof taken, 0, (struct sockaddr *)&from, length) < 0 &&
			    errno != ECONNREFUSED)
				fail("sendto");
		}
	}
}

static void ping(const struct run *run, struct result *result, uint64_t *round_trips_ns) {
	drain();
	uint64_t before = result->begun_ns = now_ns();
	for (uint64_t i = 0; i < run->messages; i++) {
		put_number(run->base + i);
		if (send(socket_descriptor, buffer, run->size, 0) < 0) fail("send");
		for (;;) {
			/* The plain call where nothing is lost: poll would cost as much again. */
			if (run->idle_ns && !udp_readable(socket_descriptor, RESEND_NS)) {
				put_number(run->base + i);
				result->repeated++;
				if (send(socket_descriptor, buffer, run->size, 0) < 0) fail("send");
				continue;
			}
			ssize_t got = recv(socket_descriptor, buffer, sizeof buffer, 0);
			if (got < 0) fail("recv");
			if ((size_t)got == run->size && offset_of(buffer, run) == i) break;
		}
		uint64_t now = now_ns();
		round_trips_ns[i] = now - before;
		before = now;
	}
	result->ended_ns = before;
	result->count = run->messages;
}

static void echo(const struct run *run, struct result *result) {
	struct sockaddr_storage from;
	uint64_t offset = 0;
	while (offset + 1 < run->messages || result->count == 0) {
		if (run->idle_ns && !udp_readable(socket_descriptor, run->idle_ns)) break;
		socklen_t length = sizeof from;
		ssize_t got = recvfrom(socket_descriptor, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &length);
		if (got < 0) fail("recvfrom");
		if (offset_of(buffer, run) >= run->messages) continue;
		if (result->count++ == 0) result->begun_ns = now_ns();
		offset = offset_of(buffer, run);
		if (sendto(socket_descriptor, buffer, (size_t)got, 0, (struct sockaddr *)&from, length) < 0) fail("sendto");
	}
	result->ended_ns = now_ns();
}

const struct transport udp = { "udp", open_receiver, open_sender, send_all, receive_all, ping, echo };
