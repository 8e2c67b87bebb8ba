/* Batches of numbers of every type, against a search in a plain array. */
#include <inttypes.h>
#include <stdbool.h>

#include "check.h"

enum { COUNT = 500 };

/* The keys of the file: even numbers, some twice. Value i belongs to tuple i. */
static int64_t held[COUNT];

static void make(const char *key_type, const char *value_type) {
    FILE *file = fopen("n.csv", "w");
    CHECK(file != NULL);
    fputs("k,v\n", file);
    for (int i = 0; i < COUNT; i++) {
        held[i] = i < 2 ? 0 : i - i % 2;
        fprintf(file, "%" PRId64 ",%d\n", held[i], i + 7);
    }
    CHECK(fclose(file) == 0);
    build("n.csv", "n.pleach", key_type, value_type);
}

static size_t lower(double key) {
    size_t at = 0;
    while (at < COUNT && (double)held[at] < key) {
        at++;
    }
    return at;
}

static size_t upper(double key) {
    size_t at = 0;
    while (at < COUNT && (double)held[at] <= key) {
        at++;
    }
    return at;
}

/* Number `at` of a batch, in memory of this type. */
static double number(pleach_type type, size_t at, void *to) {
    int64_t plain = (int64_t)(mix(at) % 600) - 50;
    switch (type) {
#define CASE(name, ctype)                                                                                              \
    case name: {                                                                                                       \
        ctype value = (ctype)plain;                                                                                    \
        memcpy(to, &value, sizeof value);                                                                              \
        return (double)value;                                                                                          \
    }
        CASE(PLEACH_U8, uint8_t)
        CASE(PLEACH_U16, uint16_t)
        CASE(PLEACH_U32, uint32_t)
        CASE(PLEACH_U64, uint64_t)
        CASE(PLEACH_I8, int8_t)
        CASE(PLEACH_I16, int16_t)
        CASE(PLEACH_I32, int32_t)
        CASE(PLEACH_I64, int64_t)
        CASE(PLEACH_F32, float)
        CASE(PLEACH_F64, double)
    default:
        abort();
    }
}

static size_t width(pleach_type type) {
    switch (type) {
    case PLEACH_U8:
    case PLEACH_I8:
        return 1;
    case PLEACH_U16:
    case PLEACH_I16:
        return 2;
    case PLEACH_U32:
    case PLEACH_I32:
    case PLEACH_F32:
        return 4;
    default:
        return 8;
    }
}

static void swap(uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        uint8_t byte = bytes[i];
        bytes[i] = bytes[count - 1 - i];
        bytes[count - 1 - i] = byte;
    }
}

static double value_at(pleach_type type, const void *values, size_t at) {
    switch (type) {
    case PLEACH_U32:
        return ((const uint32_t *)values)[at];
    case PLEACH_U64:
        return (double)((const uint64_t *)values)[at];
    case PLEACH_I32:
        return ((const int32_t *)values)[at];
    case PLEACH_I64:
        return (double)((const int64_t *)values)[at];
    case PLEACH_F32:
        return ((const float *)values)[at];
    default:
        return ((const double *)values)[at];
    }
}

/* One batch, whose numbers lie `stride` bytes apart, perhaps swapped, perhaps with every fifth a null. */
static void batch(const pleach_index *index, pleach_type type, size_t count, ptrdiff_t stride, bool swapped, bool nulls) {
    pleach_info info;
    OK(pleach_describe(index, &info));
    size_t bytes = width(type), step = (size_t)(stride < 0 ? -stride : stride);
    uint8_t *memory = calloc(count + 1, step);
    double *asked = calloc(count + 1, sizeof *asked);
    uint8_t *validity = calloc((count + 3) / 8 + 1, 1), *found = calloc(count / 8 + 1, 1);
    uint8_t *values = calloc(count + 1, 8);
    uint64_t *ranks = calloc(count + 1, 8), *others = calloc(count + 1, 8), hits = 0, expected_hits = 0;
    CHECK(memory && asked && validity && found && values && ranks && others);
    for (size_t i = 0; i < count; i++) {
        uint8_t *to = memory + (stride < 0 ? count - 1 - i : i) * step;
        asked[i] = number(type, i, to);
        if (swapped) {
            swap(to, bytes);
        }
        if (!nulls || i % 5 != 0) {
            validity[(i + 3) / 8] |= (uint8_t)(1 << (i + 3) % 8);
        }
    }
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = type;
    keys.count = count;
    keys.data = memory + (stride < 0 && count > 0 ? (count - 1) * step : 0);
    keys.stride = step == bytes && stride > 0 ? 0 : stride;
    keys.is_swapped = swapped;
    keys.validity = nulls ? validity : NULL;
    keys.validity_offset = nulls ? 3 : 0;
    OK(pleach_get(index, &keys, values, count * info.value_bytes, found, (count + 7) / 8, &hits));
    for (size_t i = 0; i < count; i++) {
        bool is_null = nulls && i % 5 == 0;
        size_t at = lower(asked[i]);
        bool is_there = !is_null && at < upper(asked[i]);
        expected_hits += is_there;
        CHECK(bit(found, i) == is_there);
        CHECK(value_at(info.value_type, values, i) == (is_there ? (double)at + 7 : 0));
    }
    CHECK(hits == expected_hits);
    memset(found, 0, count / 8 + 1);
    OK(pleach_contains(index, &keys, found, (count + 7) / 8, &hits));
    OK(pleach_rank(index, &keys, ranks, count, found, (count + 7) / 8, &hits));
    CHECK(hits == expected_hits);
    OK(pleach_lower_bound(index, &keys, others, count));
    for (size_t i = 0; i < count; i++) {
        bool is_null = nulls && i % 5 == 0;
        CHECK(ranks[i] == (is_null ? 0 : lower(asked[i])) && ranks[i] == others[i]);
    }
    OK(pleach_upper_bound(index, &keys, others, count));
    for (size_t i = 0; i < count; i++) {
        CHECK(others[i] == (nulls && i % 5 == 0 ? 0 : upper(asked[i])));
    }
    OK(pleach_near(index, &keys, PLEACH_FLOOR, others, count));
    for (size_t i = 0; i < count; i++) {
        bool is_none = (nulls && i % 5 == 0) || upper(asked[i]) == 0;
        CHECK(others[i] == (is_none ? UINT64_MAX : upper(asked[i]) - 1));
    }
    OK(pleach_near(index, &keys, PLEACH_CEILING, others, count));
    for (size_t i = 0; i < count; i++) {
        bool is_none = (nulls && i % 5 == 0) || lower(asked[i]) == pleach_len(index);
        CHECK(others[i] == (is_none ? UINT64_MAX : lower(asked[i])));
    }
    OK(pleach_near(index, &keys, PLEACH_NEAREST, others, count));
    for (size_t i = 0; i < count; i++) {
        uint64_t low = upper(asked[i]), high = lower(asked[i]);
        bool is_none = (nulls && i % 5 == 0) || pleach_len(index) == 0;
        CHECK(others[i] == UINT64_MAX ? is_none : !is_none && (others[i] + 1 == low || others[i] == high));
    }
    FAILS(PLEACH_INPUT, pleach_near(index, &keys, 3, others, count));
    OK(pleach_count(index, &keys, &keys, others, count));
    for (size_t i = 0; i < count; i++) {
        CHECK(others[i] == 0);
    }
    free(memory);
    free(asked);
    free(validity);
    free(found);
    free(values);
    free(ranks);
    free(others);
}

static void every_batch(const char *key_type, const char *value_type) {
    static const size_t counts[] = {0, 1, 7, 8, 9, 64, 1000, 3001};
    make(key_type, value_type);
    pleach_index *index = open_index("n.pleach");
    CHECK(pleach_len(index) == COUNT);
    for (int type = PLEACH_U8; type <= PLEACH_F64; type++) {
        bool is_float = type == PLEACH_F32 || type == PLEACH_F64;
        if (type == PLEACH_U128) {
            continue;
        }
        if (is_float && strcmp(key_type, "f64") != 0) {
            pleach_keys keys;
            memset(&keys, 0, sizeof keys);
            keys.key_type = (pleach_type)type;
            FAILS(PLEACH_TYPES, pleach_get(index, &keys, NULL, 0, NULL, 0, NULL));
            continue;
        }
        ptrdiff_t bytes = (ptrdiff_t)width((pleach_type)type);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            batch(index, (pleach_type)type, counts[i], bytes, false, false);
            batch(index, (pleach_type)type, counts[i], 3 * bytes + 1, true, true);
            batch(index, (pleach_type)type, counts[i], -bytes, false, true);
        }
    }
    pleach_close(index);
}

static void wide_keys(void) {
    write_file("w.csv", "k,v\n5,1\n340282366920938463463374607431768211455,2\n");
    build("w.csv", "w.pleach", "u128", "u32");
    pleach_index *index = open_index("w.pleach");
    uint64_t raw[3][2] = {{5, 0}, {UINT64_MAX, UINT64_MAX}, {5, 1}};
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_U128;
    keys.count = 3;
    keys.data = raw;
    uint32_t values[3];
    uint8_t found = 0;
    OK(pleach_get(index, &keys, values, sizeof values, &found, 1, NULL));
    CHECK(found == 3 && values[0] == 1 && values[1] == 2 && values[2] == 0);
    uint64_t rank = 1;
    uint8_t key[16];
    OK(pleach_keys_at(index, &rank, 1, key, sizeof key, NULL, NULL));
    for (int i = 0; i < 16; i++) {
        CHECK(key[i] == 255);
    }
    pleach_close(index);
}

static void tuples(void) {
    make("i64", "f32");
    pleach_index *index = open_index("n.pleach");
    uint64_t ranks[4] = {0, 3, COUNT - 1, COUNT}, needed = 0;
    int64_t keys[4];
    float values[4];
    OK(pleach_keys_at(index, ranks, 4, keys, sizeof keys, NULL, &needed));
    CHECK(needed == sizeof keys && keys[1] == held[3] && keys[2] == held[COUNT - 1] && keys[3] == 0);
    OK(pleach_values_at(index, ranks, 4, values, sizeof values, NULL, &needed));
    CHECK(values[0] == 7 && values[2] == COUNT + 6 && values[3] == 0);
    FAILS(PLEACH_TOO_SHORT, pleach_values_at(index, ranks, 4, values, sizeof values - 1, NULL, &needed));
    CHECK(needed == sizeof values);
    OK(pleach_keys_at(index, NULL, 0, NULL, 0, NULL, &needed));
    CHECK(needed == 0);
    pleach_close(index);
}

static void wrong_uses(void) {
    make("u64", "u64");
    pleach_index *index = open_index("n.pleach");
    uint64_t numbers[4] = {0, 2, 4, 5}, values[4];
    uint8_t found[1];
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_U64;
    keys.count = 4;
    keys.data = numbers;
    OK(pleach_get(index, &keys, values, sizeof values, found, 1, NULL));
    FAILS(PLEACH_INPUT, pleach_get(NULL, &keys, values, sizeof values, found, 1, NULL));
    FAILS(PLEACH_INPUT, pleach_get(index, NULL, values, sizeof values, found, 1, NULL));
    FAILS(PLEACH_TOO_SHORT, pleach_get(index, &keys, values, sizeof values - 8, found, 1, NULL));
    FAILS(PLEACH_TOO_SHORT, pleach_get(index, &keys, values, sizeof values, found, 0, NULL));
    FAILS(PLEACH_TYPES, pleach_get(index, &keys, (uint8_t *)values + 1, 24, found, 1, NULL));
    FAILS(PLEACH_TYPES, pleach_get_strings(index, &keys, values, sizeof values, numbers, NULL, 0, NULL, NULL));
    FAILS(PLEACH_INPUT, pleach_get_strings(index, &keys, values, sizeof values, NULL, NULL, 0, NULL, NULL));
    FAILS(PLEACH_TOO_SHORT, pleach_rank(index, &keys, values, 3, NULL, 0, NULL));
    FAILS(PLEACH_TOO_SHORT, pleach_lower_bound(index, &keys, values, 0));
    FAILS(PLEACH_INPUT, pleach_upper_bound(index, &keys, NULL, 4));
    pleach_keys fewer = keys;
    fewer.count = 2;
    FAILS(PLEACH_INPUT, pleach_count(index, &keys, &fewer, values, 4));
    FAILS(PLEACH_INPUT, pleach_keys_at(NULL, numbers, 4, values, sizeof values, NULL, NULL));
    FAILS(PLEACH_INPUT, pleach_keys_at(index, NULL, 4, values, sizeof values, NULL, NULL));
    FAILS(PLEACH_INPUT, pleach_values_at(index, numbers, 4, NULL, sizeof values, NULL, NULL));
    pleach_keys bad = keys;
    bad.data = NULL;
    FAILS(PLEACH_INPUT, pleach_get(index, &bad, values, sizeof values, found, 1, NULL));
    unsigned number = 99;
    memcpy(&bad, &number, sizeof number);
    FAILS(PLEACH_INPUT, pleach_get(index, &bad, values, sizeof values, found, 1, NULL));
    bad = keys;
    bad.key_type = PLEACH_FIXED;
    FAILS(PLEACH_TYPES, pleach_get(index, &bad, values, sizeof values, found, 1, NULL));
    bad.key_type = PLEACH_UTF8;
    bad.count = 0;
    bad.offset_bytes = 8;
    bad.offsets = numbers;
    FAILS(PLEACH_TYPES, pleach_contains(index, &bad, found, 1, NULL));
    pleach_close(index);
    pleach_close(NULL);
    CHECK(pleach_len(NULL) == 0);
}

int main(void) {
    static const char *const keys[] = {"u32", "u64", "i32", "i64", "f64"};
    static const char *const values[] = {"u32", "u64", "i32", "i64", "f32", "f64"};
    for (size_t i = 0; i < 6; i++) {
        every_batch(keys[i % 5], values[i]);
    }
    wide_keys();
    tuples();
    wrong_uses();
    return 0;
}
