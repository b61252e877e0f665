/* The ordered lane (chapter 12 of docs/protocol.md), a protocol of its own: one end of
 * it, without packets of its own. Time is nanoseconds since the lane began. */
#ifndef ACKBITS_LANE_H
#define ACKBITS_LANE_H

#include "ackbits.h" /* ab_error */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ab_lane_config {
    int64_t resend, slot, stall;
    size_t budget; /* retransmissions in each slot */
    size_t soft, hard;
} ab_lane_config;

ab_lane_config ab_default_lane_config(void);

typedef struct ab_lane ab_lane;

ab_lane *ab_lane_new(const ab_lane_config *config);
void ab_lane_free(ab_lane *l);

/* Queues a copy of an event. */
ab_error ab_lane_send(ab_lane *l, int64_t now, const uint8_t *event, size_t size, bool droppable, uint32_t *id);
/* The next event to put on the wire; false also when it has more than max bytes. data
 * is valid until the next call of the lane. */
bool ab_lane_next(ab_lane *l, int64_t now, size_t max, uint32_t *id, const uint8_t **data, size_t *size);
/* Whether to deliver the event of this id. Answer with *ack in any case. */
bool ab_lane_receive(ab_lane *l, uint32_t id, uint32_t *ack);
ab_error ab_lane_ack(ab_lane *l, int64_t now, uint32_t ack);
int64_t ab_lane_deadline(const ab_lane *l);

typedef struct ab_lane_state {
    size_t in_flight;
    uint32_t ack; /* the highest id delivered */
    ab_error ended;
} ab_lane_state;

ab_lane_state ab_lane_state_of(const ab_lane *l);

#ifdef __cplusplus
}
#endif

#endif
