/* What the test programs share: checks, files, random numbers. */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pleach.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, pleach_last_error_text());             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define OK(call) CHECK((call) == PLEACH_OK)
/* The call fails with this status and a sentence. */
#define FAILS(status, call)                                                                                            \
    do {                                                                                                               \
        CHECK((call) == (status));                                                                                     \
        CHECK(pleach_last_error_code() == (status));                                                                   \
        CHECK(pleach_last_error_text()[0] != 0);                                                                       \
    } while (0)

static inline uint64_t mix(uint64_t x) {
    x = (x + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    return x ^ x >> 31;
}

static inline void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static inline pleach_build_options build_options(void) {
    pleach_build_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    return options;
}

static inline void build(const char *table, const char *file, const char *key_type, const char *value_type) {
    pleach_build_options options = build_options();
    options.key_type = key_type;
    options.value_type = value_type;
    OK(pleach_build(&table, 1, file, &options));
}

static inline pleach_index *open_index(const char *file) {
    pleach_index *index = NULL;
    OK(pleach_open(file, NULL, &index));
    CHECK(index != NULL);
    return index;
}

static inline int bit(const uint8_t *bits, size_t at) {
    return bits[at / 8] >> (at % 8) & 1;
}

#endif
