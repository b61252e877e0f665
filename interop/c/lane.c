#include "lane.h"

#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)

/* Sums of times do not wrap around (P-1.1.3). */
static int64_t after(int64_t t, int64_t d) { return d > INT64_MAX - t ? INT64_MAX : t + d; }

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

typedef struct lane_event {
    uint8_t *data;
    size_t size;
    int64_t queued_at, sent_at;
    bool overtaken; /* an older one was sent again after it was last sent (P-12.2.2) */
} lane_event;

struct ab_lane {
    ab_lane_config config;
    int64_t now;
    ab_error ended;
    uint32_t ack;               /* the receiver's */
    uint32_t acked, sent, last; /* the sender's: acked <= sent <= last */
    lane_event *queue;          /* by id */
    uint32_t queue_size;        /* a power of two */
    int64_t moved_at;           /* of P-12.2.6 */
    int64_t slot_at;            /* when the slot of the last retransmission began */
    size_t slot_used;           /* how many there were in it */
};

ab_lane_config ab_default_lane_config(void) {
    ab_lane_config c = {250 * MS, 100 * MS, 15000 * MS, 32, 256, 512};
    return c;
}

ab_lane *ab_lane_new(const ab_lane_config *c) {
    if (c->resend <= 0 || c->slot <= 0 || c->stall <= 0 || c->budget == 0 || c->soft == 0 || c->hard < 2 || c->hard > 65536)
        return NULL;
    ab_lane *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->config = *c;
    for (l->queue_size = 1; l->queue_size < c->hard;)
        l->queue_size *= 2;
    l->queue = calloc(l->queue_size, sizeof *l->queue);
    if (!l->queue) {
        free(l);
        return NULL;
    }
    return l;
}

void ab_lane_free(ab_lane *l) {
    for (uint32_t i = 0; l && i < l->queue_size; i++)
        free(l->queue[i].data);
    if (l)
        free(l->queue);
    free(l);
}

static lane_event *on_lane(const ab_lane *l, uint32_t id) { return &l->queue[id & (l->queue_size - 1)]; }

/* Judges in the order of P-12.2.1. */
ab_error ab_lane_send(ab_lane *l, int64_t now, const uint8_t *data, size_t size, bool droppable, uint32_t *id) {
    l->now = later(l->now, now);
    if (l->ended)
        return l->ended;
    if (l->last == UINT32_MAX)
        return AB_LANE_OVERFLOW;
    size_t n = l->last - l->acked;
    if (droppable && (n >= l->config.soft || n >= l->config.hard - 1))
        return AB_LANE_FULL;
    if (n >= l->config.hard - 1) {
        l->ended = AB_LANE_OVERFLOW;
        return l->ended;
    }
    uint8_t *copy = malloc(size + 1); /* never null for an empty one */
    if (!copy)
        return AB_NO_MEMORY;
    if (size > 0)
        memcpy(copy, data, size);
    if (n == 0)
        l->moved_at = l->now;
    lane_event e = {copy, size, l->now, 0, false};
    *id = ++l->last;
    *on_lane(l, *id) = e;
    return AB_OK;
}

static int64_t lane_due_at(const ab_lane *l, const lane_event *e) { return e->overtaken ? 0 : after(e->sent_at, l->config.resend); }

/* From when on another retransmission may go, by the budget (P-12.2.4). */
static int64_t budget_at(const ab_lane *l) {
    return l->slot_used < l->config.budget ? 0 : after(l->slot_at, l->config.slot);
}

/* 0: none (P-12.2.3) */
static uint32_t next_to_send(const ab_lane *l) {
    if (l->now >= budget_at(l))
        for (uint32_t id = l->acked; id != l->sent;)
            if (l->now >= lane_due_at(l, on_lane(l, ++id)))
                return id;
    return l->sent == l->last ? 0 : l->sent + 1;
}

static void note_again(ab_lane *l, uint32_t id) {
    int64_t slot_at = l->now - l->now % l->config.slot;
    if (slot_at != l->slot_at)
        l->slot_used = 0;
    l->slot_at = slot_at;
    l->slot_used++;
    for (uint32_t newer_id = id; newer_id != l->sent;)
        on_lane(l, ++newer_id)->overtaken = true;
}

bool ab_lane_next(ab_lane *l, int64_t now, size_t max, uint32_t *id, const uint8_t **data, size_t *size) {
    l->now = later(l->now, now);
    if (l->ended || l->acked == l->last)
        return false;
    if (l->now >= after(l->moved_at, l->config.stall)) {
        l->ended = AB_STALLED;
        return false;
    }
    uint32_t next = next_to_send(l);
    if (next == 0 || on_lane(l, next)->size > max)
        return false;
    lane_event *e = on_lane(l, next);
    if (next > l->sent)
        l->sent = next;
    else
        note_again(l, next);
    e->sent_at = l->now;
    e->overtaken = false;
    *id = next;
    *data = e->data;
    *size = e->size;
    return true;
}

/* Delivers what comes next and nothing else (P-12.1.2). */
bool ab_lane_receive(ab_lane *l, uint32_t id, uint32_t *ack) {
    bool deliver = !l->ended && id != 0 && id == l->ack + 1;
    if (deliver)
        l->ack = id;
    *ack = l->ack;
    return deliver;
}

/* An old acknowledgement changes nothing (P-12.2.5). */
ab_error ab_lane_ack(ab_lane *l, int64_t now, uint32_t ack) {
    l->now = later(l->now, now);
    if (l->ended)
        return l->ended;
    if (ack > l->sent)
        return AB_ACK;
    if (ack > l->acked)
        l->moved_at = l->now;
    while (l->acked < ack) {
        lane_event *e = on_lane(l, ++l->acked);
        free(e->data);
        e->data = NULL;
    }
    return AB_OK;
}

/* The earliest of what P-12.2.7 lists. */
int64_t ab_lane_deadline(const ab_lane *l) {
    if (l->ended || l->acked == l->last)
        return -1;
    int64_t at = after(l->moved_at, l->config.stall);
    if (l->sent != l->last)
        at = earlier(at, on_lane(l, l->sent + 1)->queued_at);
    for (uint32_t id = l->acked; id != l->sent;)
        at = earlier(at, later(lane_due_at(l, on_lane(l, ++id)), budget_at(l)));
    return later(at, l->now);
}

ab_lane_state ab_lane_state_of(const ab_lane *l) {
    ab_lane_state state = {l->last - l->acked, l->ack, l->ended};
    return state;
}
