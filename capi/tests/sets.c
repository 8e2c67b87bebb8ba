/* Sets: equal to one file of the same rows; generations; files that are missing; partial answers. */
#include <dirent.h>
#include <unistd.h>

#include "check.h"

enum { ROWS = 5000, ASKED = 4000 };

static void build_set(const char *table, const char *folder, const char *key_type, const char *value_type,
                      uint64_t partition_tuples) {
    pleach_build_options options = build_options();
    options.key_type = key_type;
    options.value_type = value_type;
    OK(pleach_set_build(&table, 1, folder, partition_tuples, &options));
}

static pleach_keys numbers(pleach_type type, const void *data, size_t count) {
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = type;
    keys.data = data;
    keys.count = count;
    return keys;
}

/* The same questions to a set and to a file of the same rows. */
static void equal(const pleach_index *set, const pleach_index *file, const pleach_keys *keys, const pleach_keys *high) {
    static uint64_t ranks[2][ASKED], values[2][ASKED], ends[2][ASKED];
    static uint8_t found[2][(ASKED + 7) / 8];
    const pleach_index *both[2] = {set, file};
    uint64_t hits[2];
    size_t count = keys->count;
    for (int at = 0; at < 2; at++) {
        memset(found[at], 0, sizeof found[at]);
        OK(pleach_get(both[at], keys, values[at], sizeof values[at], found[at], sizeof found[at], &hits[at]));
    }
    CHECK(hits[0] == hits[1] && hits[0] > 0 && hits[0] < count);
    CHECK(memcmp(values[0], values[1], count * 8) == 0 && memcmp(found[0], found[1], (count + 7) / 8) == 0);
    for (int at = 0; at < 2; at++) {
        OK(pleach_rank(both[at], keys, ranks[at], ASKED, found[at], sizeof found[at], &hits[at]));
    }
    CHECK(hits[0] == hits[1] && memcmp(ranks[0], ranks[1], count * 8) == 0);
    CHECK(memcmp(found[0], found[1], (count + 7) / 8) == 0);
    for (int at = 0; at < 2; at++) {
        OK(pleach_contains(both[at], keys, found[at], sizeof found[at], &hits[at]));
        OK(pleach_lower_bound(both[at], keys, ranks[at], ASKED));
        OK(pleach_upper_bound(both[at], keys, ends[at], ASKED));
    }
    CHECK(hits[0] == hits[1] && memcmp(ranks[0], ranks[1], count * 8) == 0 && memcmp(ends[0], ends[1], count * 8) == 0);
    for (uint32_t near = PLEACH_FLOOR; near <= PLEACH_NEAREST; near++) {
        for (int at = 0; at < 2; at++) {
            OK(pleach_near(both[at], keys, near, ranks[at], ASKED));
        }
        CHECK(memcmp(ranks[0], ranks[1], count * 8) == 0);
    }
    for (int at = 0; at < 2; at++) {
        OK(pleach_count(both[at], keys, high, ends[at], ASKED));
        OK(pleach_keys_at(both[at], ranks[at], count, values[at], sizeof values[at], NULL, NULL));
    }
    CHECK(memcmp(ends[0], ends[1], count * 8) == 0 && memcmp(values[0], values[1], count * 8) == 0);
}

static void of_numbers(void) {
    FILE *table = fopen("set.csv", "w");
    CHECK(table != NULL);
    fprintf(table, "k,v\n");
    for (uint64_t row = 0; row < ROWS; row++) {
        fprintf(table, "%d,%d\n", (int)(mix(row) % 3000) - 1000, (int)row);
    }
    CHECK(fclose(table) == 0);
    build("set.csv", "set.pleach", "i64", "u64");
    build_set("set.csv", "set", "i64", "u64", 170);
    pleach_report *report = NULL;
    OK(pleach_fsck("set", 0, &report));
    CHECK(pleach_report_is_clean(report) && pleach_report_findings(report) == 0);
    pleach_report_free(report);
    pleach_index *set = open_index("set"), *file = open_index("set.pleach");
    pleach_info info;
    OK(pleach_describe(set, &info));
    CHECK(info.tuples == ROWS && info.generation == 1 && info.key_type == PLEACH_I64 && info.value_type == PLEACH_U64);
    CHECK(strcmp(info.path, "set") == 0 && strstr(info.description, "set of") != NULL && info.file_bytes > 0);
    CHECK(pleach_len(set) == ROWS && pleach_set_files(set) > 20 && pleach_set_files(file) == 0);
    CHECK(pleach_set_files(NULL) == 0 && pleach_set_left_out(NULL) == 0);
    static int64_t keys[ASKED], high[ASKED];
    for (int at = 0; at < ASKED; at++) {
        keys[at] = (int64_t)(mix(at + 99) % 4000) - 1500;
        high[at] = keys[at] + (int64_t)(mix(at) % 500);
    }
    pleach_keys low_keys = numbers(PLEACH_I64, keys, ASKED), high_keys = numbers(PLEACH_I64, high, ASKED);
    equal(set, file, &low_keys, &high_keys);
    struct ArrowArrayStream stream;
    const pleach_index *inputs[1] = {set};
    OK(pleach_relate_to_file("select", "key >= 0", inputs, 1, "selected.pleach", NULL));
    pleach_index *selected = open_index("selected.pleach");
    int64_t zero = 0;
    uint64_t below = 0;
    pleach_keys zeros = numbers(PLEACH_I64, &zero, 1);
    OK(pleach_lower_bound(set, &zeros, &below, 1));
    CHECK(pleach_len(selected) == ROWS - below && below > 0);
    pleach_close(selected);
    /* All tuples, in order, as a stream: a batch for each file. */
    OK(pleach_range_arrow(set, 0, UINT64_MAX, 0, &stream));
    int64_t rows = 0;
    for (;;) {
        struct ArrowArray batch;
        CHECK(stream.get_next(&stream, &batch) == 0);
        if (batch.release == NULL) {
            break;
        }
        rows += batch.length;
        batch.release(&batch);
    }
    stream.release(&stream);
    CHECK(rows == ROWS);
    pleach_close(set);
    pleach_close(file);
}

static void of_strings(void) {
    FILE *table = fopen("names.csv", "w");
    CHECK(table != NULL);
    fprintf(table, "k,v\n");
    for (int row = 0; row < 1000; row++) {
        fprintf(table, "name %03d,value of %d\n", row, row);
    }
    CHECK(fclose(table) == 0);
    build_set("names.csv", "names", "utf8", "utf8", 64);
    pleach_index *set = open_index("names");
    const char data[] = "name 063name 064name 0645name 999zzz";
    const int32_t offsets[] = {0, 8, 16, 25, 33, 36};
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_UTF8;
    keys.count = 5;
    keys.data = data;
    keys.data_bytes = sizeof data - 1;
    keys.offsets = offsets;
    keys.offset_bytes = 4;
    char values[100];
    uint64_t ends[6], hits, needed, ranks[5], first, end;
    uint8_t found[1];
    OK(pleach_get_strings(set, &keys, values, sizeof values, ends, found, 1, &needed, &hits));
    CHECK(hits == 3 && found[0] == 0x0B && needed == ends[5] && memcmp(values, "value of 63value of 64value of 999", 34) == 0);
    OK(pleach_lower_bound(set, &keys, ranks, 5));
    CHECK(ranks[0] == 63 && ranks[1] == 64 && ranks[2] == 65 && ranks[3] == 999 && ranks[4] == 1000);
    keys.count = 1;
    keys.data = "name 06";
    keys.data_bytes = 7;
    const int32_t whole[] = {0, 7};
    keys.offsets = whole;
    OK(pleach_prefix(set, &keys, &first, &end, 1));
    CHECK(first == 60 && end == 70);
    pleach_close(set);
}

/* Removes the file of a set whose smallest key is the second one, and returns its name. */
static void remove_second(const char *folder, char *name, size_t name_bytes) {
    char path[600];
    DIR *files;
    struct dirent *entry;
    snprintf(path, sizeof path, "%s/files", folder);
    CHECK((files = opendir(path)) != NULL);
    while ((entry = readdir(files)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof path, "%s/files/%s", folder, entry->d_name);
        pleach_index *file = open_index(path);
        const uint64_t rank = 0;
        uint64_t key = 0;
        OK(pleach_keys_at(file, &rank, 1, &key, sizeof key, NULL, NULL));
        pleach_close(file);
        if (key == 10) {
            CHECK(unlink(path) == 0);
            snprintf(name, name_bytes, "%s", entry->d_name);
        }
    }
    closedir(files);
}

static void generations(void) {
    write_file("g.csv", "k,v\n1,10\n2,20\n3,30\n4,40\n5,50\n");
    build_set("g.csv", "g", "u64", "u64", 2);
    pleach_index *first = open_index("g"), *next = NULL, *old = NULL;
    OK(pleach_next(first, &next));
    CHECK(next == NULL && pleach_set_files(first) == 3);
    write_file("changes.csv", "op,k,v\nput,3,33\ndel,4,\n");
    OK(pleach_rebuild("g", "changes.csv", NULL));
    OK(pleach_next(first, &next));
    CHECK(next != NULL && pleach_len(first) == 5 && pleach_len(next) == 4);
    const uint64_t key = 3;
    uint64_t value = 0, published = 0, files = 0;
    pleach_keys keys = numbers(PLEACH_U64, &key, 1);
    OK(pleach_get(next, &keys, &value, sizeof value, NULL, 0, NULL));
    CHECK(value == 33);
    OK(pleach_set_open("g", 1, NULL, &old));
    OK(pleach_get(old, &keys, &value, sizeof value, NULL, 0, NULL));
    CHECK(value == 30);
    pleach_close(old);
    FAILS(PLEACH_NOT_FOUND, pleach_set_open("g", 9, NULL, &old));
    FAILS(PLEACH_NOT_FOUND, pleach_set_open("none", 0, NULL, &old));
    CHECK(old == NULL);
    OK(pleach_set_rollback("g", 0, &published));
    CHECK(published == 3);
    FAILS(PLEACH_INPUT, pleach_set_sweep("g", 0, 0, NULL));
    OK(pleach_set_sweep("g", 1, 3600, &files));
    CHECK(files == 0);
    FAILS(PLEACH_INPUT, pleach_set_build(NULL, 1, "h", 0, NULL));
    const char *own = "g/files/x.csv";
    FAILS(PLEACH_INPUT, pleach_set_build(&own, 1, "g", 0, NULL));
    pleach_close(first);
    pleach_close(next);
}

static void missing(void) {
    FILE *table = fopen("m.csv", "w");
    CHECK(table != NULL);
    fprintf(table, "k,v\n");
    for (int row = 0; row < 50; row++) {
        fprintf(table, "%d,%d\n", row, row);
    }
    CHECK(fclose(table) == 0);
    build_set("m.csv", "m", "u64", "u64", 10);
    char name[300] = "";
    remove_second("m", name, sizeof name);
    CHECK(name[0] != 0);
    const uint64_t asked[] = {5, 12, 25};
    uint64_t values[3], ranks[3], hits = 0, tuples = 0;
    pleach_keys keys = numbers(PLEACH_U64, asked, 3);
    pleach_report *report = NULL;
    OK(pleach_fsck("m", 2, &report));
    CHECK(!pleach_report_is_clean(report) && pleach_report_findings(report) == 1);
    CHECK(strstr(pleach_report_finding(report, 0), name) != NULL);
    pleach_report_free(report);
    pleach_index *set = open_index("m");
    FAILS(PLEACH_NOT_FOUND, pleach_get(set, &keys, values, sizeof values, NULL, 0, NULL));
    CHECK(strstr(pleach_last_error_text(), name) != NULL);
    pleach_close(set);
    pleach_open_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.partial = 1;
    OK(pleach_open("m", &options, &set));
    OK(pleach_get(set, &keys, values, sizeof values, NULL, 0, &hits));
    CHECK(hits == 2 && values[0] == 5 && values[1] == 0 && values[2] == 25 && pleach_set_left_out(set) == 1);
    const char *own = NULL, *reason = NULL;
    OK(pleach_set_left_out_file(set, 0, &own, &tuples, &reason));
    CHECK(strstr(own, name) != NULL && tuples == 10 && strstr(reason, name) != NULL);
    FAILS(PLEACH_INPUT, pleach_set_left_out_file(set, 1, NULL, NULL, NULL));
    FAILS(PLEACH_NOT_FOUND, pleach_rank(set, &keys, ranks, 3, NULL, 0, NULL));
    pleach_close(set);
    build("m.csv", "m.pleach", "u64", "u64");
    FAILS(PLEACH_INPUT, pleach_open("m.pleach", &options, &set));
}

static void from_arrow(void) {
    write_file("a.csv", "k,v\n1,10\n2,20\n3,30\n");
    build("a.csv", "a.pleach", "u64", "u64");
    pleach_index *file = open_index("a.pleach");
    struct ArrowArrayStream stream;
    OK(pleach_range_arrow(file, 0, UINT64_MAX, 0, &stream));
    OK(pleach_set_build_arrow(&stream, "a", 1, NULL));
    CHECK(stream.release == NULL);
    pleach_index *set = open_index("a");
    CHECK(pleach_set_files(set) == 3 && pleach_len(set) == 3);
    pleach_close(set);
    pleach_close(file);
}

int main(void) {
    of_numbers();
    of_strings();
    generations();
    missing();
    from_arrow();
    return 0;
}
