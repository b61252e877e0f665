/* The tests of endpoint.c, a part of test.c. */
#ifndef ENDPOINT_TEST_H
#define ENDPOINT_TEST_H

#include <stdbool.h>

/* Replays the handshakes of 19.5, and keeps them for try_client. */
void replay_handshakes(const char *file);

/* What the document asks of a client beyond them. Says what fails. */
bool try_client(void);

#endif
