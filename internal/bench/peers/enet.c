//go:build enet

// ENet's C core, driven in memory. This program defines the socket and time
// functions that libenet calls; the dynamic linker prefers them to the library's
// own, so no datagram and no clock reading costs a system call.

#include "enet.h"

#include <enet/enet.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE = 64, TICK = 10, MAX_TICKS = 2000, CHANNELS = 1 };

enum { FAIL_SEND = -1, FAIL_SERVICE = -2, FAIL_SIZE = -3, FAIL_CONTENT = -4, FAIL_RANGE = -5, FAIL_TWICE = -6, FAIL_STUCK = -7, FAIL_MEMORY = -8 };

const char *bench_error(int code) {
	switch (code) {
	case FAIL_SEND: return "enet_peer_send failed";
	case FAIL_SERVICE: return "enet_host_service failed";
	case FAIL_SIZE: return "a message of another size";
	case FAIL_CONTENT: return "a message was changed";
	case FAIL_RANGE: return "a message of another run";
	case FAIL_TWICE: return "a message came twice";
	case FAIL_STUCK: return "messages are missing";
	case FAIL_MEMORY: return "out of memory";
	}
	return "unknown";
}

// The pipe. A socket is the index of a port; a datagram sent to a port waits in
// its queue until it is due.

typedef struct {
	enet_uint16 from;
	int due;
	size_t size, room;
	unsigned char *data;
} datagram;

typedef struct {
	datagram *slots;
	size_t head, size, room; // room is a power of two
} queue;

static queue *ports;
static int port_count;
static int now, delay; // ticks

static enet_uint32 time_now = 1000; // ms

enet_uint32 enet_time_get(void) { return time_now; }

ENetSocket enet_socket_create(ENetSocketType type) {
	(void)type;
	queue *grown = realloc(ports, (size_t)(port_count + 1) * sizeof *ports);
	if (grown == NULL)
		return ENET_SOCKET_NULL;
	ports = grown;
	memset(&ports[port_count], 0, sizeof *ports);
	return port_count++;
}

int enet_socket_bind(ENetSocket s, const ENetAddress *address) {
	(void)s, (void)address;
	return 0;
}

int enet_socket_get_address(ENetSocket s, ENetAddress *address) {
	address->host = 0x0100007f;
	address->port = (enet_uint16)(s + 1);
	return 0;
}

int enet_socket_set_option(ENetSocket s, ENetSocketOption option, int value) {
	(void)s, (void)option, (void)value;
	return 0;
}

int enet_socket_wait(ENetSocket s, enet_uint32 *condition, enet_uint32 timeout) {
	(void)s, (void)timeout;
	*condition = ENET_SOCKET_WAIT_NONE;
	return 0;
}

static void drop(queue *q) {
	for (size_t i = 0; i < q->room; i++)
		free(q->slots[i].data);
	free(q->slots);
	memset(q, 0, sizeof *q);
}

void enet_socket_destroy(ENetSocket s) { drop(&ports[s]); }

int enet_socket_send(ENetSocket s, const ENetAddress *address, const ENetBuffer *buffers, size_t count) {
	queue *q = &ports[address->port - 1];
	if (q->size == q->room) {
		size_t room = q->room ? 2 * q->room : 16;
		datagram *grown = calloc(room, sizeof *grown);
		if (grown == NULL)
			return -1;
		for (size_t i = 0; i < q->room; i++)
			grown[i] = q->slots[(q->head + i) & (q->room - 1)];
		free(q->slots);
		q->slots = grown, q->room = room, q->head = 0;
	}
	datagram *d = &q->slots[(q->head + q->size) & (q->room - 1)];
	size_t size = 0;
	for (size_t i = 0; i < count; i++)
		size += buffers[i].dataLength;
	if (size > d->room) {
		free(d->data);
		if ((d->data = malloc(2 * size)) == NULL)
			return -1;
		d->room = 2 * size;
	}
	unsigned char *p = d->data;
	for (size_t i = 0; i < count; i++) {
		memcpy(p, buffers[i].data, buffers[i].dataLength);
		p += buffers[i].dataLength;
	}
	d->size = size, d->due = now + delay, d->from = (enet_uint16)(s + 1);
	q->size++;
	return (int)size;
}

int enet_socket_receive(ENetSocket s, ENetAddress *address, ENetBuffer *buffers, size_t count) {
	(void)count;
	queue *q = &ports[s];
	if (q->size == 0 || q->slots[q->head].due > now)
		return 0;
	datagram *d = &q->slots[q->head];
	q->head = (q->head + 1) & (q->room - 1);
	q->size--;
	if (d->size > buffers[0].dataLength)
		return -1;
	memcpy(buffers[0].data, d->data, d->size);
	address->host = 0x0100007f;
	address->port = d->from;
	return (int)d->size;
}

static void step(void) { now++, time_now += TICK; }

// ENet's memory.

static uint64_t mallocs, live;
static int count_bytes; // off while time is measured

static void *count_malloc(size_t size) {
	void *p = malloc(size);
	mallocs++;
	if (count_bytes)
		live += malloc_usable_size(p);
	return p;
}

static void count_free(void *p) {
	if (count_bytes)
		live -= malloc_usable_size(p);
	free(p);
}

void bench_count(int on) { count_bytes = on; }

uint64_t bench_mallocs(void) { return mallocs; }
uint64_t bench_live(void) { return live; }

int bench_init(void) {
	ENetCallbacks callbacks = {count_malloc, count_free, NULL};
	return enet_initialize_with_callbacks(ENET_VERSION, &callbacks);
}

uint32_t bench_version(void) { return enet_linked_version(); }

// The messages: as message and tally of peers.go.

static uint64_t mix(uint64_t i, uint64_t w) { return i ^ w * 0x9e3779b97f4a7c15u; }

static void message(uint64_t *words, uint64_t i) {
	for (uint64_t w = 0; w < MESSAGE / 8; w++)
		words[w] = mix(i, w);
}

typedef struct {
	uint64_t first, n, got, *seen;
	size_t words;
} tally;

static int expect(tally *t, int n) {
	t->first += t->n;
	t->n = (uint64_t)n, t->got = 0;
	size_t words = (size_t)(n + 63) / 64;
	if (words > t->words) {
		free(t->seen);
		if ((t->seen = malloc(words * 8)) == NULL)
			return FAIL_MEMORY;
		t->words = words;
	}
	memset(t->seen, 0, words * 8);
	return 0;
}

static int add(tally *t, const ENetPacket *packet) {
	uint64_t words[MESSAGE / 8];
	if (packet->dataLength != MESSAGE)
		return FAIL_SIZE;
	memcpy(words, packet->data, MESSAGE);
	for (uint64_t w = 1; w < MESSAGE / 8; w++)
		if (words[w] != mix(words[0], w))
			return FAIL_CONTENT;
	uint64_t k = words[0] - t->first;
	if (k >= t->n)
		return FAIL_RANGE;
	if (t->seen[k / 64] >> k % 64 & 1)
		return FAIL_TWICE;
	t->seen[k / 64] |= (uint64_t)1 << k % 64;
	t->got++;
	return 0;
}

// The driver: as machinePair of machine.go.

struct bench_pair {
	ENetHost *a, *b;
	ENetPeer *to; // A's end
	tally tally;
	uint64_t sent;
	enet_uint32 peak;
};

// Serves a host for one tick: what has arrived, then what is due.
static int service(ENetHost *host, tally *t) {
	ENetEvent event;
	int r = enet_host_service(host, &event, 0);
	for (; r > 0; r = enet_host_check_events(host, &event)) {
		if (event.type == ENET_EVENT_TYPE_RECEIVE) {
			int bad = add(t, event.packet);
			enet_packet_destroy(event.packet);
			if (bad)
				return bad;
		}
	}
	return r < 0 ? FAIL_SERVICE : 0;
}

static int send_one(bench_pair *p) {
	uint64_t words[MESSAGE / 8];
	message(words, p->sent++);
	ENetPacket *packet = enet_packet_create(words, MESSAGE, ENET_PACKET_FLAG_RELIABLE);
	return packet == NULL || enet_peer_send(p->to, 0, packet) < 0 ? FAIL_SEND : 0;
}

static int unacked(const bench_pair *p) {
	return !enet_list_empty(&p->to->sentReliableCommands) || !enet_list_empty(&p->to->outgoingCommands);
}

bench_pair *bench_open(void) {
	delay = 0;
	bench_pair *p = calloc(1, sizeof *p);
	if (p == NULL)
		return NULL;
	ENetAddress address = {.host = ENET_HOST_ANY, .port = 0};
	p->a = enet_host_create(NULL, 1, CHANNELS, 0, 0);
	p->b = enet_host_create(&address, 1, CHANNELS, 0, 0);
	if (p->a == NULL || p->b == NULL)
		goto fail;
	address.host = 0x0100007f;
	address.port = p->b->address.port;
	if ((p->to = enet_host_connect(p->a, &address, CHANNELS, 0)) == NULL)
		goto fail;
	for (int i = 0; i < MAX_TICKS && (p->to->state != ENET_PEER_STATE_CONNECTED || p->b->connectedPeers == 0); i++) {
		step();
		if (service(p->a, &p->tally) || service(p->b, &p->tally))
			goto fail;
	}
	if (p->b->connectedPeers == 1)
		return p;
fail:
	bench_close(p);
	return NULL;
}

void bench_close(bench_pair *p) {
	if (p->a != NULL)
		enet_host_destroy(p->a);
	if (p->b != NULL)
		enet_host_destroy(p->b);
	free(p->tally.seen);
	free(p);
}

int bench_single(bench_pair *p, int n) {
	delay = 0;
	int r = expect(&p->tally, n);
	for (uint64_t i = 1; r == 0 && i <= (uint64_t)n; i++) {
		step();
		r = send_one(p);
		enet_host_flush(p->a);
		for (int tries = 0; r == 0; tries++) {
			if (tries == MAX_TICKS)
				return FAIL_STUCK;
			if (tries > 0)
				step();
			if ((r = service(p->b, &p->tally)) == 0)
				r = service(p->a, &p->tally);
			if (p->tally.got == i && !unacked(p))
				break;
		}
	}
	return r;
}

int bench_stream(bench_pair *p, int n, int batch, int ticks) {
	delay = ticks;
	int r = expect(&p->tally, n), last = now, left = n;
	p->peak = 0;
	while (r == 0 && (left > 0 || p->tally.got < p->tally.n || unacked(p))) {
		step();
		if (left > 0)
			last = now;
		for (int i = 0; r == 0 && i < batch && left > 0; i++, left--)
			r = send_one(p);
		if (r == 0 && (r = service(p->a, &p->tally)) == 0)
			r = service(p->b, &p->tally);
		if (p->to->reliableDataInTransit > p->peak)
			p->peak = p->to->reliableDataInTransit;
		if (now - last > MAX_TICKS)
			return FAIL_STUCK;
	}
	now += delay; // what is still in flight
	delay = 0;
	return r;
}

int bench_peak(const bench_pair *p) { return (int)p->peak; }

// One host that serves n connections: what ENet allocates for its side of them,
// in bytes, or -1.

static int64_t serve(int n, ENetHost **clients, ENetHost **host) {
	tally none = {0};
	uint64_t before = live;
	ENetAddress address = {.host = ENET_HOST_ANY, .port = 0};
	if ((*host = enet_host_create(&address, (size_t)n, CHANNELS, 0, 0)) == NULL)
		return -1;
	uint64_t bytes = live - before;
	address.host = 0x0100007f;
	address.port = (*host)->address.port;
	for (int k = 0; k < n; k++) {
		if ((clients[k] = enet_host_create(NULL, 1, CHANNELS, 0, 0)) == NULL)
			return -1;
		ENetPeer *to = enet_host_connect(clients[k], &address, CHANNELS, 0);
		if (to == NULL)
			return -1;
		for (int i = 0; i < MAX_TICKS && ((*host)->connectedPeers <= (size_t)k || to->state != ENET_PEER_STATE_CONNECTED); i++) {
			step();
			if (service(clients[k], &none))
				return -1;
			before = live;
			if (service(*host, &none))
				return -1;
			bytes += live - before;
		}
		if (to->state != ENET_PEER_STATE_CONNECTED)
			return -1;
	}
	return (int64_t)bytes;
}

int64_t bench_serve(int n) {
	ENetHost *host = NULL, **clients = calloc((size_t)n, sizeof *clients);
	if (clients == NULL)
		return -1;
	delay = 0;
	count_bytes = 1;
	int64_t bytes = serve(n, clients, &host);
	count_bytes = 0;
	if (host != NULL)
		enet_host_destroy(host);
	for (int k = 0; k < n; k++)
		if (clients[k] != NULL)
			enet_host_destroy(clients[k]);
	free(clients);
	return bytes;
}
