/* A million floors, ceilings, intervals and prefixes, against arrays that have the answer for every key. */
#include <inttypes.h>

#include "check.h"

enum { KEYS = 1 << 21, ROWS = 1 << 18, QUERIES = 1000000 };

static uint32_t queries[QUERIES];
static uint64_t ranks[QUERIES], ends[QUERIES];
/* Number of tuples with smaller keys, and at last of all. */
static uint64_t below[KEYS + 1];

static uint32_t key(size_t row) {
    return (uint32_t)(mix(row) % KEYS);
}

static FILE *table(const char *name, const char *head) {
    FILE *file = fopen(name, "w");
    CHECK(file != NULL);
    fputs(head, file);
    return file;
}

static pleach_keys numbers(void) {
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_U32;
    keys.count = QUERIES;
    keys.data = queries;
    return keys;
}

static void near_keys(void) {
    FILE *file = table("t.csv", "k,v\n");
    for (size_t row = 0; row < ROWS; row++) {
        fprintf(file, "%" PRIu32 ",%zu\n", key(row), row);
    }
    CHECK(fclose(file) == 0);
    build("t.csv", "t.pleach", "u32", "u32");
    pleach_index *index = open_index("t.pleach");
    pleach_keys keys = numbers();
    OK(pleach_near(index, &keys, PLEACH_FLOOR, ranks, QUERIES));
    for (size_t at = 0; at < QUERIES; at++) {
        CHECK(ranks[at] == below[queries[at] + 1] - 1);
    }
    OK(pleach_near(index, &keys, PLEACH_CEILING, ranks, QUERIES));
    for (size_t at = 0; at < QUERIES; at++) {
        CHECK(ranks[at] == (below[queries[at]] < ROWS ? below[queries[at]] : UINT64_MAX));
    }
    pleach_close(index);
}

static void intervals(void) {
    static uint32_t holders[KEYS], values[QUERIES][2];
    static uint8_t found[QUERIES / 8];
    memset(holders, 0xFF, sizeof holders);
    FILE *file = table("i.csv", "s,e,v\n");
    uint32_t count = 0;
    for (uint32_t start = 0; start < KEYS; start++) {
        if (below[start] == below[start + 1]) {
            continue;
        }
        uint32_t next = start + 1;
        while (next < KEYS && below[next] == below[next + 1]) {
            next++;
        }
        const uint32_t rooms[] = {0, next - 1 - start, (next - start) / 2};
        uint32_t end = start + rooms[count % 3];
        fprintf(file, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 "\n", start, end, count);
        for (uint32_t held = start; held <= end; held++) {
            holders[held] = count;
        }
        count++;
    }
    CHECK(fclose(file) == 0);
    const char *name = "i.csv";
    pleach_build_options options = build_options();
    options.key_type = options.value_type = "u32";
    options.interval = "e";
    options.value = "v";
    OK(pleach_build(&name, 1, "i.pleach", &options));
    pleach_index *index = open_index("i.pleach");
    pleach_keys keys = numbers();
    OK(pleach_get(index, &keys, values, sizeof values, found, sizeof found, NULL));
    for (size_t at = 0; at < QUERIES; at++) {
        uint32_t holder = holders[queries[at]];
        CHECK(bit(found, at) == (holder != UINT32_MAX));
        CHECK(holder == UINT32_MAX || (values[at][1] == holder && values[at][0] >= queries[at]));
    }
    pleach_close(index);
}

static void prefixes(void) {
    static char texts[6 * QUERIES + 1];
    static int32_t offsets[QUERIES + 1];
    FILE *file = table("p.csv", "k,v\n");
    for (size_t row = 0; row < ROWS; row++) {
        fprintf(file, "%06" PRIx32 ",%zu\n", key(row), row);
    }
    CHECK(fclose(file) == 0);
    build("p.csv", "p.pleach", "utf8", "u32");
    for (size_t at = 0; at < QUERIES; at++) {
        int digits = 6 - (int)(at % 6);
        char *text = texts + offsets[at];
        offsets[at + 1] = offsets[at] + sprintf(text, "%0*" PRIx32, digits, queries[at] >> (4 * (6 - digits)));
    }
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_UTF8;
    keys.count = QUERIES;
    keys.data = texts;
    keys.data_bytes = (size_t)offsets[QUERIES];
    keys.offsets = offsets;
    keys.offset_bytes = 4;
    pleach_index *index = open_index("p.pleach");
    OK(pleach_prefix(index, &keys, ranks, ends, QUERIES));
    for (size_t at = 0; at < QUERIES; at++) {
        unsigned shift = 4 * (at % 6);
        size_t first = (size_t)(queries[at] >> shift) << shift, end = first + ((size_t)1 << shift);
        CHECK(ranks[at] == below[first] && ends[at] == below[end < KEYS ? end : KEYS]);
    }
    pleach_close(index);
}

int main(void) {
    for (size_t row = 0; row < ROWS; row++) {
        below[key(row) + 1]++;
    }
    for (size_t at = 0; at < KEYS; at++) {
        below[at + 1] += below[at];
    }
    for (size_t at = 0; at < QUERIES; at++) {
        queries[at] = (uint32_t)(mix(at + ((uint64_t)1 << 40)) % KEYS);
    }
    near_keys();
    intervals();
    prefixes();
    return 0;
}
