#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading at;

/* ---- Reading ---- */

/* What follows the key; null: there is no such key. */
static const char *look(const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *p = strstr(at.text, quoted);
    return p ? p + strlen(quoted) : NULL;
}

bool has_key(const char *key) { return look(key) != NULL; }

static const char *find(const char *key) {
    const char *p = look(key);
    if (!p) {
        fprintf(stderr, "%s:%d: no %s\n", at.file, at.line, key);
        exit(2);
    }
    return p + strspn(p, " ");
}

int64_t number_of(const char *key) {
    const char *p = find(key);
    return strncmp(p, "true", 4) == 0 ? 1 : strncmp(p, "false", 5) == 0 ? 0 : strtoll(p, NULL, 10);
}

const char *string_of(const char *key) {
    static char texts[4][LINE];
    static int next;
    char *text = texts[next++ % 4];
    const char *p = find(key) + 1;
    size_t size = strcspn(p, "\"");
    memcpy(text, p, size);
    text[size] = 0;
    return text;
}

size_t bytes_of(const char *key, uint8_t bytes[LINE / 2]) {
    const char *text = string_of(key);
    size_t size = strlen(text) / 2;
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        sscanf(text + 2 * i, "%2x", &byte);
        bytes[i] = (uint8_t)byte;
    }
    return size;
}

/* ---- Comparing ---- */

void compare(const char *key, const char *got) {
    const char *want = string_of(key);
    at.compared++;
    if (strcmp(want, got) == 0)
        return;
    if (at.differ++ < 20)
        printf("%s:%d: %s is \"%s\", want \"%s\"\n", at.file, at.line, key, got, want);
}

void compare_number(const char *key, int64_t got) {
    at.compared++;
    if (number_of(key) == got)
        return;
    if (at.differ++ < 20)
        printf("%s:%d: %s is %" PRId64 ", want %" PRId64 "\n", at.file, at.line, key, got, number_of(key));
}

char *hex(char *text, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
    text[2 * size] = 0;
    return text + 2 * size;
}

void compare_bytes(const char *key, const uint8_t *bytes, size_t size) {
    char text[LINE];
    hex(text, bytes, size);
    compare(key, text);
}
