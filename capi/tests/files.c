/* Opening, building, changing, checking and exporting files; and what is wrong with them. */
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static int stopped_after, told;

static int progress(void *context, const char *phase, uint64_t done, uint64_t total) {
    CHECK(context == &told && phase[0] != 0 && (total == 0 || done <= total));
    told++;
    return stopped_after > 0 && told >= stopped_after;
}

static void opening(void) {
    write_file("o.csv", "k,v\n1,10\n2,20\n");
    build("o.csv", "o.pleach", "u64", "u64");
    pleach_index *index = NULL;
    FAILS(PLEACH_INPUT, pleach_open(NULL, NULL, &index));
    FAILS(PLEACH_INPUT, pleach_open("o.pleach", NULL, NULL));
    FAILS(PLEACH_NOT_FOUND, pleach_open("none.pleach", NULL, &index));
    CHECK(index == NULL && strstr(pleach_last_error_text(), "none.pleach") != NULL);
    FAILS(PLEACH_DAMAGED, pleach_open("o.csv", NULL, &index));
    pleach_open_options options;
    memset(&options, 0, sizeof options);
    FAILS(PLEACH_INPUT, pleach_open("o.pleach", &options, &index));
    options.size = sizeof options;
    options.verify = 7;
    FAILS(PLEACH_INPUT, pleach_open("o.pleach", &options, &index));
    /* A caller of an earlier version has fewer options. */
    options.size = offsetof(pleach_open_options, verify);
    OK(pleach_open("o.pleach", &options, &index));
    CHECK(pleach_last_error_code() == PLEACH_OK && pleach_last_error_text()[0] == 0);
    pleach_close(index);
    for (uint32_t verify = 0; verify <= PLEACH_VERIFY_FULL; verify++) {
        options.size = sizeof options;
        options.verify = verify;
        options.resident = verify % 2;
        options.threads = 2;
        OK(pleach_open("o.pleach", &options, &index));
        pleach_info info;
        OK(pleach_describe(index, &info));
        CHECK(info.tuples == 2 && info.generation == 1 && strcmp(info.path, "o.pleach") == 0);
        CHECK(info.file_bytes > 0 && info.description[0] != 0 && !info.is_unique && info.key_meaning[0] == 0);
        CHECK(strcmp(info.value_name, "v") == 0 && info.value_meaning[0] == 0);
        pleach_close(index);
    }
    CHECK(strchr(pleach_version(), '.') != NULL);
    /* By any structure of the file; not by one that it does not have, and not by one that is none. */
    options.verify = 0;
    for (uint32_t structure = 0; structure <= PLEACH_STRUCTURE_BTREE + 1; structure++) {
        options.structure = structure;
        if (structure <= PLEACH_STRUCTURE_SPINE) {
            OK(pleach_open("o.pleach", &options, &index));
            pleach_close(index);
        } else {
            FAILS(PLEACH_INPUT, pleach_open("o.pleach", &options, &index));
        }
    }
}

static void generations(void) {
    pleach_index *index = open_index("o.pleach"), *next = index;
    OK(pleach_next(index, &next));
    CHECK(next == NULL);
    write_file("c.csv", "op,k,v\nput,2,22\nadd,3,30\ndel,1,\n");
    pleach_build_options options = build_options();
    options.has_keep = 1;
    options.keep = 1;
    options.method = "merge";
    options.progress = progress;
    options.context = &told;
    told = stopped_after = 0;
    OK(pleach_rebuild("o.pleach", "c.csv", &options));
    CHECK(told > 0);
    OK(pleach_next(index, &next));
    CHECK(next != NULL && pleach_len(index) == 2 && pleach_len(next) == 2);
    pleach_info info;
    OK(pleach_describe(next, &info));
    CHECK(info.generation == 2);
    pleach_close(index);
    pleach_close(next);
    FAILS(PLEACH_INPUT, pleach_next(NULL, &next));
    FAILS(PLEACH_INPUT, pleach_rebuild(NULL, "c.csv", NULL));
    FAILS(PLEACH_INPUT, pleach_rebuild("o.pleach", NULL, NULL));
    options.method = "magic";
    FAILS(PLEACH_INPUT, pleach_rebuild("o.pleach", "c.csv", &options));
    write_file("c.csv", "op,k,v\nmove,2,22\n");
    FAILS(PLEACH_INPUT, pleach_rebuild("o.pleach", "c.csv", NULL));
    /* A file of another type under the same name is no generation of this one. */
    index = open_index("o.pleach");
    write_file("x.csv", "k,v\nabc,1\n");
    build("x.csv", "o.pleach", "utf8", "u32");
    FAILS(PLEACH_TYPES, pleach_next(index, &next));
    CHECK(next == NULL);
    next = open_index("o.pleach");
    OK(pleach_describe(next, &info));
    CHECK(info.key_type == PLEACH_UTF8 && info.key_bytes == 0);
    uint64_t number = 2, value = 0;
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_U64;
    keys.count = 1;
    keys.data = &number;
    OK(pleach_get(index, &keys, &value, sizeof value, NULL, 0, NULL));
    CHECK(value == 22);
    FAILS(PLEACH_TYPES, pleach_get(next, &keys, &value, sizeof value, NULL, 0, NULL));
    pleach_close(index);
    pleach_close(next);
}

static void building(void) {
    const char *inputs[] = {"o.csv", "none.csv"};
    pleach_build_options options = build_options();
    FAILS(PLEACH_INPUT, pleach_build(inputs, 2, "b.pleach", NULL));
    FAILS(PLEACH_INPUT, pleach_build(NULL, 1, "b.pleach", NULL));
    FAILS(PLEACH_INPUT, pleach_build(inputs, 1, NULL, NULL));
    FAILS(PLEACH_INPUT, pleach_build(inputs, 0, "b.pleach", NULL));
    options.key_type = "u7";
    FAILS(PLEACH_INPUT, pleach_build(inputs, 1, "b.pleach", &options));
    options = build_options();
    options.unique = "some";
    FAILS(PLEACH_INPUT, pleach_build(inputs, 1, "b.pleach", &options));
    options = build_options();
    options.layout = "round";
    FAILS(PLEACH_INPUT, pleach_build(inputs, 1, "b.pleach", &options));
    options = build_options();
    options.key = "\xff";
    FAILS(PLEACH_INPUT, pleach_build(inputs, 1, "b.pleach", &options));
    FAILS(PLEACH_BUILD, pleach_build(inputs, 1, "o.csv", NULL));
    options = build_options();
    options.progress = progress;
    options.context = &told;
    told = 0;
    stopped_after = 1;
    FAILS(PLEACH_INTERRUPTED, pleach_build(inputs, 1, "stopped.pleach", &options));
    CHECK(access("stopped.pleach", F_OK) != 0);
    stopped_after = 0;
    write_file("d.csv", "k,v\n1,1\n1,2\n3,3\n");
    inputs[0] = "d.csv";
    options.unique = "error";
    FAILS(PLEACH_INPUT, pleach_build(inputs, 1, "d.pleach", &options));
    options.unique = "last";
    options.key = "k";
    options.value = "v";
    options.sorted = 1;
    options.force = 1;
    options.threads = 2;
    options.memory_bytes = 64 << 20;
    options.temp_dir = ".";
    OK(pleach_build(inputs, 1, "d.pleach", &options));
    write_file("e.csv", "k,v\n0,0\n3,30\n");
    build("e.csv", "e.pleach", "u64", "u64");
    const char *files[] = {"d.pleach", "e.pleach", "o.pleach"};
    OK(pleach_compact(files, 2, "all.pleach", NULL));
    pleach_index *index = open_index("all.pleach");
    CHECK(pleach_len(index) == 4);
    pleach_close(index);
    FAILS(PLEACH_TYPES, pleach_compact(files, 3, "all.pleach", NULL));
    FAILS(PLEACH_INPUT, pleach_compact(files, 0, "all.pleach", NULL));
    FAILS(PLEACH_INPUT, pleach_compact(files, 2, NULL, NULL));
}

static void care(void) {
    pleach_report *report = NULL;
    OK(pleach_fsck("all.pleach", 0, &report));
    CHECK(pleach_report_is_clean(report) && pleach_report_findings(report) == 0);
    CHECK(pleach_report_finding(report, 0) == NULL);
    pleach_report_free(report);
    FAILS(PLEACH_NOT_FOUND, pleach_fsck("none.pleach", 1, &report));
    CHECK(report == NULL);
    FAILS(PLEACH_INPUT, pleach_fsck(NULL, 1, &report));
    FAILS(PLEACH_INPUT, pleach_fsck("all.pleach", 1, NULL));
    pleach_report_free(NULL);
    CHECK(!pleach_report_is_clean(NULL) && pleach_report_findings(NULL) == 0 && !pleach_report_finding(NULL, 0));
    OK(pleach_export("all.pleach", "all.tsv", NULL));
    OK(pleach_export("all.pleach", "all.table", "csv"));
    FAILS(PLEACH_INPUT, pleach_export("all.pleach", "all.table", NULL));
    FAILS(PLEACH_NOT_FOUND, pleach_export("none.pleach", "all.tsv", NULL));
    FAILS(PLEACH_INPUT, pleach_export(NULL, "all.tsv", NULL));
    char line[16] = "";
    FILE *table = fopen("all.tsv", "r");
    CHECK(table && fgets(line, sizeof line, table) && fclose(table) == 0 && strcmp(line, "k\tv\n") == 0);

    FILE *file = fopen("all.pleach", "r+b");
    CHECK(file && fseek(file, 4096 + 700, SEEK_SET) == 0 && fputc(0x5A, file) == 0x5A && fclose(file) == 0);
    OK(pleach_fsck("all.pleach", 2, &report));
    CHECK(!pleach_report_is_clean(report) && pleach_report_findings(report) > 0);
    CHECK(strstr(pleach_report_finding(report, 0), "all.pleach") != NULL || pleach_report_finding(report, 0)[0] != 0);
    pleach_report_free(report);
    pleach_open_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.verify = PLEACH_VERIFY_FULL;
    pleach_index *index = NULL;
    FAILS(PLEACH_DAMAGED, pleach_open("all.pleach", &options, &index));
    FAILS(PLEACH_DAMAGED, pleach_export("all.pleach", "no.csv", NULL));
    CHECK(access("no.csv", F_OK) != 0);
    const char *files[] = {"all.pleach"};
    FAILS(PLEACH_DAMAGED, pleach_compact(files, 1, "no.pleach", NULL));
}

static void truncation(void) {
    pleach_contain_sigbus();
    FILE *file = fopen("big.csv", "w");
    CHECK(file != NULL);
    fputs("k,v\n", file);
    for (int i = 0; i < 200000; i++) {
        fprintf(file, "%d,%d\n", i, i);
    }
    CHECK(fclose(file) == 0);
    build("big.csv", "big.pleach", "u64", "u64");
    pleach_index *index = open_index("big.pleach");
    CHECK(truncate("big.pleach", 8192) == 0);
    uint64_t number = 150000, value = 0;
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_U64;
    keys.count = 1;
    keys.data = &number;
    FAILS(PLEACH_DAMAGED, pleach_get(index, &keys, &value, sizeof value, NULL, 0, NULL));
    pleach_close(index);
}

static void command(void) {
    const char *words[] = {"get", "d.pleach", "3"};
    int code = -1;
    fflush(stdout);
    OK(pleach_command(words, 3, &code));
    CHECK(code == 0);
    words[1] = NULL;
    FAILS(PLEACH_INPUT, pleach_command(words, 3, &code));
    FAILS(PLEACH_INPUT, pleach_command(NULL, 1, &code));
    FAILS(PLEACH_INPUT, pleach_command(words, 1, NULL));
}

int main(void) {
    opening();
    generations();
    building();
    care();
    truncation();
    command();
    return 0;
}
