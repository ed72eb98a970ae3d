/* A peer of `quelea bench cmq`: one end of one transport, told what to do by lines on standard input.
 * docs/benchmarks/bench.md, "The protocol of the roles", has the lines; main.c speaks them. */
#ifndef PEER_H
#define PEER_H

#include <stddef.h>
#include <stdint.h>

/* What one run does. Messages are numbered through all runs of a process, from `base` on. */
struct run {
	size_t size;       /* bytes of a message */
	uint64_t messages; /* of this run */
	uint64_t base;     /* number of the first one */
	uint64_t idle_ns;  /* a receiver that gets nothing for so long gives up; 0 is never */
};

/* What a run gave. */
struct result {
	uint64_t count;    /* messages sent, received, or answered */
	uint64_t begun_ns; /* sender: before the first; receiver: at the first */
	uint64_t ended_ns; /* sender: after the last; receiver: at the last */
	uint64_t repeated; /* pings sent again because no answer came */
};

struct transport {
	const char *name;
	/* Binds to HOST:PORT (0 is any port) and writes the address that it got. */
	void (*open_receiver)(const char *address, char *bound, size_t bound_bytes);
	void (*open_sender)(const char *address);
	void (*send)(const struct run *, struct result *);
	void (*receive)(const struct run *, struct result *);
	/* Either both or none. `round_trips_ns` has room for one entry a message. */
	void (*ping)(const struct run *, struct result *, uint64_t *round_trips_ns);
	void (*echo)(const struct run *, struct result *);
};

extern const struct transport udp, udp_packed, zeromq_push_pull, zeromq_req_rep;

/* The longest message of a run. */
enum { MESSAGE_BYTES_MAX = 1 << 20 };

/* A datagram at most: 65,535 less the IP and UDP headers. */
enum { DATAGRAM_BYTES_MAX = 65507 };

/* A request that is not answered within so long is sent again, by transports that lose. */
#define RESEND_NS 20000000ull

uint64_t now_ns(void);
/* Ends the program with the reason, after a look at errno. */
_Noreturn void fail(const char *doing);

/* UDP sockets, shared by udp.c and packed.c: both bounded by what the receiver has said it took. */
int udp_bound(const char *address, char *bound, size_t bound_bytes);
int udp_connected(const char *address);
/* Blocks up to `ns` until something can be read. */
int udp_readable(int socket, uint64_t ns);

/* A sender's window: it may be `most` datagrams ahead of what was acknowledged. */
struct window {
	int socket;
	uint64_t most, acknowledged;
};
/* Waits until datagram `next` may leave; takes a receiver that says nothing for a while as one that lost. */
void window_wait(struct window *, uint64_t next);
/* Datagrams of `bytes` that may be under way without overrunning the receive buffer. */
uint64_t window_datagrams(size_t bytes);

#endif
