/* A driver of the conformance kit over the C interface: spec/PROTOCOL.md.

   pleach-conformance run --level 3 --binding -- ./conform

   The interface does not tell which rule a file breaks, nor the text of logical types, takes no plain keys where these
   have a logical type, and has no search by lines or by the trie alone. */
#include <inttypes.h>

#include "check.h"

enum { LINE_MAX_BYTES = 1 << 20 };

static pleach_index *index_now;
static char path_now[LINE_MAX_BYTES];
static char line[LINE_MAX_BYTES];
static unsigned char keys_bytes[2][LINE_MAX_BYTES / 2];
static unsigned char data[LINE_MAX_BYTES];

static void fail(const char *what) {
    printf("error %s: %s\n", what, pleach_last_error_text());
}

#define FAIL(what)                                                                                                     \
    do {                                                                                                               \
        fail(what);                                                                                                    \
        return;                                                                                                        \
    } while (0)

/* Reads hexadecimal digits, and returns the number of bytes. */
static size_t unhex(const char *word, unsigned char *bytes) {
    size_t count = 0;
    for (; word[0] && word[1]; word += 2) {
        const char digits[3] = {word[0], word[1], 0};
        bytes[count++] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return count;
}

/* Reads decimal digits of up to 128 bits as a little-endian number. */
static void wide(const char *word, unsigned char *bytes) {
    memset(bytes, 0, 16);
    for (; *word; word++) {
        unsigned carry = (unsigned)(*word - '0');
        for (size_t at = 0; at < 16; at++) {
            carry += 10u * bytes[at];
            bytes[at] = (unsigned char)carry;
            carry >>= 8;
        }
    }
}

/* Makes an array of the one key of a word. */
static pleach_keys one(const pleach_info *info, const char *word, unsigned char *bytes, int32_t *offsets) {
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = info->key_type;
    keys.count = 1;
    keys.data = bytes;
    switch (info->key_type) {
    case PLEACH_FIXED:
    case PLEACH_BYTES:
    case PLEACH_UTF8:
        keys.key_type = info->key_type == PLEACH_UTF8 ? PLEACH_UTF8 : PLEACH_BYTES;
        keys.data_bytes = unhex(word + 1, bytes);
        offsets[0] = 0;
        offsets[1] = (int32_t)keys.data_bytes;
        keys.offsets = offsets;
        keys.offset_bytes = 4;
        break;
    case PLEACH_F64: {
        const uint64_t bits = strtoull(word + 1, NULL, 16);
        memcpy(bytes, &bits, 8);
        break;
    }
    case PLEACH_I32:
    case PLEACH_I64: {
        const int64_t number = strtoll(word, NULL, 10);
        memcpy(bytes, &number, 8);
        break;
    }
    default: wide(word, bytes); break;
    }
    return keys;
}

/* Writes the word of a key or a value. */
static void put(pleach_type type, const unsigned char *bytes, size_t count) {
    uint64_t word = 0;
    memcpy(&word, bytes, count < 8 ? count : 8);
    switch (type) {
    case PLEACH_NONE: printf(" -"); break;
    case PLEACH_U32: printf(" %" PRIu32, (uint32_t)word); break;
    case PLEACH_U64: printf(" %" PRIu64, word); break;
    case PLEACH_I32: printf(" %" PRId32, (int32_t)word); break;
    case PLEACH_I64: printf(" %" PRId64, (int64_t)word); break;
    case PLEACH_F32: printf(" f%08" PRIx32, (uint32_t)word); break;
    case PLEACH_F64: printf(" f%016" PRIx64, word); break;
    case PLEACH_U128: {
        /* Most significant byte first: divided by ten again and again. */
        unsigned char number[16], digits[40];
        size_t length = 0;
        memcpy(number, bytes, 16);
        do {
            unsigned rest = 0;
            for (size_t at = 0; at < 16; at++) {
                rest = rest << 8 | number[at];
                number[at] = (unsigned char)(rest / 10);
                rest %= 10;
            }
            digits[length++] = (unsigned char)('0' + rest);
            for (rest = 0, word = 0; word < 16; word++) rest |= number[word];
            if (rest == 0) break;
        } while (length < sizeof digits);
        putchar(' ');
        while (length > 0) putchar(digits[--length]);
        break;
    }
    default:
        printf(" x");
        for (size_t at = 0; at < count; at++) printf("%02x", bytes[at]);
    }
}

/* Writes the key or the value of a tuple. */
static int put_at(uint64_t rank, pleach_type type, int is_key) {
    uint64_t offsets[2] = {0, 0}, needed = 0;
    if (type == PLEACH_NONE) {
        put(type, data, 0);
        return 1;
    }
    const int is_string = type == PLEACH_FIXED || type == PLEACH_BYTES || type == PLEACH_UTF8;
    uint64_t *to = is_string ? offsets : NULL;
    const pleach_status status = is_key ? pleach_keys_at(index_now, &rank, 1, data, sizeof data, to, &needed)
                                        : pleach_values_at(index_now, &rank, 1, data, sizeof data, to, &needed);
    if (status != PLEACH_OK) return 0;
    put(type, data, (size_t)needed);
    return 1;
}

static void put_text(const char *text) {
    if (text == NULL || text[0] == 0) {
        printf("none\n");
        return;
    }
    printf("text x");
    for (; *text; text++) printf("%02x", (unsigned char)*text);
    putchar('\n');
}

static void put_type(pleach_type type, uint32_t bytes) {
    static const char *const names[] = {"none", "u8",  "u16", "u32", "u64", "u128", "i8",   "i16",
                                        "i32",  "i64", "f32", "f64", "bytes", "bytes", "utf8"};
    printf(" %s", names[type]);
    if (type == PLEACH_FIXED) printf("%" PRIu32, bytes);
}

static void open_file(const char *path) {
    pleach_close(index_now);
    index_now = NULL;
    snprintf(path_now, sizeof path_now, "%s", path);
    switch (pleach_open(path, NULL, &index_now)) {
    case PLEACH_OK: {
        pleach_info info;
        const int has_plain_keys = pleach_describe(index_now, &info) == PLEACH_OK && info.key_meaning[0] == 0;
        printf(has_plain_keys ? "ok\n" : "skip\n");
        break;
    }
    case PLEACH_DAMAGED: printf("refuse -\n"); break;
    default: fail("open");
    }
}

static void check(void) {
    pleach_report *report = NULL;
    if (pleach_fsck(path_now, 0, &report) != PLEACH_OK) {
        fail("check");
    } else if (pleach_report_findings(report) == 0) {
        printf("clean\n");
    } else {
        /* A finding begins with its code. */
        const char *finding = pleach_report_finding(report, 0);
        printf("damaged %.*s\n", (int)strcspn(finding, ":"), finding);
    }
    pleach_report_free(report);
}

static void search_by(const char *name, const pleach_info *info, const char *word) {
    static const char *const names[] = {"auto", "spine", "grid", "fast", "harmonia", "btree"};
    pleach_open_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    for (options.structure = 1; options.structure < 6; options.structure++) {
        if (strcmp(names[options.structure], name) == 0) break;
    }
    if (options.structure == 6) {
        printf("skip\n");
        return;
    }
    pleach_index *by = NULL;
    const pleach_status status = pleach_open(path_now, &options, &by);
    int32_t offsets[2];
    uint64_t rank = 0;
    const pleach_keys keys = one(info, word, keys_bytes[0], offsets);
    if (status == PLEACH_INPUT) {
        printf("none\n");
    } else if (status != PLEACH_OK || pleach_lower_bound(by, &keys, &rank, 1) != PLEACH_OK) {
        fail("by");
    } else {
        printf("rank %" PRIu64 "\n", rank);
    }
    pleach_close(by);
}

/* Writes `tuple`, the rank if it is wanted, the key if it is wanted, and the value. */
static void put_tuple(const pleach_info *info, uint64_t rank, int with_rank, int with_key) {
    printf("tuple");
    if (with_rank) printf(" %" PRIu64, rank);
    if (with_key && !put_at(rank, info->key_type, 1)) printf(" error");
    if (!put_at(rank, info->value_type, 0)) printf(" error");
    putchar('\n');
}

static void search(const char *request, const pleach_info *info, const char *word, const char *second) {
    int32_t offsets[2], other[2];
    const pleach_keys keys = one(info, word, keys_bytes[0], offsets);
    uint64_t rank = 0, hits = 0, end = 0;
    uint8_t found[1] = {0};
    if (strcmp(request, "get") == 0) {
        uint64_t lower = 0;
        if (pleach_rank(index_now, &keys, &rank, 1, found, 1, &hits) != PLEACH_OK) FAIL("get");
        if (pleach_lower_bound(index_now, &keys, &lower, 1) != PLEACH_OK) FAIL("get");
        if (pleach_upper_bound(index_now, &keys, &end, 1) != PLEACH_OK) FAIL("get");
        /* In a file of intervals, whose values are records, a key inside one is found by the tuple before it. */
        const int is_inside = hits == 1 && end == lower && rank + 1 == lower && info->fields > 0;
        if (hits == 0 || is_inside) {
            printf("absent\n");
        } else {
            put_tuple(info, rank, 1, 0);
        }
    } else if (strcmp(request, "lower") == 0 || strcmp(request, "upper") == 0) {
        const int is_lower = request[0] == 'l';
        const pleach_status status = is_lower ? pleach_lower_bound(index_now, &keys, &rank, 1)
                                              : pleach_upper_bound(index_now, &keys, &rank, 1);
        if (status != PLEACH_OK) FAIL(request);
        printf("rank %" PRIu64 "\n", rank);
    } else if (strcmp(request, "floor") == 0) {
        if (pleach_near(index_now, &keys, PLEACH_FLOOR, &rank, 1) != PLEACH_OK) FAIL("floor");
        if (rank == UINT64_MAX) {
            printf("none\n");
        } else {
            put_tuple(info, rank, 1, 1);
        }
    } else {
        const pleach_keys high = one(info, second, keys_bytes[1], other);
        if (pleach_lower_bound(index_now, &keys, &rank, 1) != PLEACH_OK) FAIL("range");
        if (pleach_count(index_now, &keys, &high, &end, 1) != PLEACH_OK) FAIL("range");
        printf("tuples %" PRIu64, end);
        for (end += rank; rank < end; rank++) {
            if (!put_at(rank, info->key_type, 1) || !put_at(rank, info->value_type, 0)) printf(" error");
        }
        putchar('\n');
    }
}

static void answer(char *request) {
    if (strncmp(request, "open ", 5) == 0) {
        open_file(request + 5);
        return;
    }
    pleach_info info;
    if (index_now == NULL || pleach_describe(index_now, &info) != PLEACH_OK) FAIL("no file");
    char *words[3] = {strtok(request, " "), NULL, NULL};
    words[1] = strtok(NULL, " ");
    words[2] = strtok(NULL, " ");
    if (strcmp(words[0], "tuples") == 0) {
        printf("tuples %" PRIu64 "\n", pleach_len(index_now));
    } else if (strcmp(words[0], "types") == 0) {
        printf("types");
        put_type(info.key_type, info.key_bytes);
        put_type(info.value_type, info.value_bytes);
        putchar('\n');
    } else if (strcmp(words[0], "check") == 0) {
        check();
    } else if (words[1] == NULL) {
        fail("unknown request");
    } else if (strcmp(words[0], "at") == 0) {
        const uint64_t rank = strtoull(words[1], NULL, 10);
        if (rank >= info.tuples) {
            printf("none\n");
        } else {
            put_tuple(&info, rank, 0, 1);
        }
    } else if (strcmp(words[0], "name") == 0) {
        put_text(words[1][0] == 'k' ? info.key_name : info.value_name);
    } else if (strcmp(words[0], "logical") == 0 || strcmp(words[0], "derive") == 0) {
        printf("skip\n");
    } else if (strcmp(words[0], "by") == 0) {
        search_by(words[1], &info, words[2]);
    } else {
        search(words[0], &info, words[1], words[2]);
    }
}

int main(void) {
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = 0;
        answer(line);
        fflush(stdout);
    }
    pleach_close(index_now);
    return 0;
}
