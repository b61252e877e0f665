/* Reads vectors, flat JSON objects, and compares with what they say. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINE = 16384 };

extern struct reading {
    const char *file;
    int line;
    char text[LINE]; /* the object */
    int compared, differ;
} at;

bool has_key(const char *key);
/* Each of these ends the program where there is no such key. */
int64_t number_of(const char *key);      /* of a bool: 0 or 1 */
const char *string_of(const char *key);  /* valid until the fourth next call */
size_t bytes_of(const char *key, uint8_t bytes[LINE / 2]);

void compare(const char *key, const char *got);
void compare_number(const char *key, int64_t got);
void compare_bytes(const char *key, const uint8_t *bytes, size_t size);

/* Puts size bytes as digits and a 0 into text, and returns where the 0 is. */
char *hex(char *text, const uint8_t *bytes, size_t size);

#endif
