//go:build enet

#ifndef ACKBITS_BENCH_ENET_H
#define ACKBITS_BENCH_ENET_H

#include <stddef.h>
#include <stdint.h>

// A pair of ENet hosts with one connection between them.
typedef struct bench_pair bench_pair;

int bench_init(void);
uint32_t bench_version(void);
bench_pair *bench_open(void);
void bench_close(bench_pair *p);

// Both return 0, or a negative number: see bench_error.
int bench_single(bench_pair *p, int n);
int bench_stream(bench_pair *p, int n, int batch, int delay);
const char *bench_error(int code);

// The bytes that ENet holds for a host that serves n connections, or -1.
int64_t bench_serve(int n);

int bench_peak(const bench_pair *p); // bytes of reliable data in flight at most
uint64_t bench_mallocs(void);        // allocations by ENet ever made
uint64_t bench_live(void);           // by how many bytes its memory grew while they were counted
void bench_count(int on);

#endif
