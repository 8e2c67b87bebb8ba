/* Keys and values that are texts, byte strings and records. */
#include "check.h"

static pleach_keys texts(const char *bytes, const int32_t *offsets, size_t count) {
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_UTF8;
    keys.count = count;
    keys.data = bytes;
    keys.data_bytes = strlen(bytes);
    keys.offsets = offsets;
    keys.offset_bytes = 4;
    return keys;
}

/* `layout` may ask for values that are stored once. */
static void text_keys(const char *layout) {
    write_file("t.csv", "k,v\nab,one\nabc,three\n\"\",none\nzebra,last\n");
    const char *table = "t.csv";
    pleach_build_options options = build_options();
    options.key_type = options.value_type = "utf8";
    options.layout = layout;
    OK(pleach_build(&table, 1, "t.pleach", &options));
    pleach_index *index = open_index("t.pleach");
    const int32_t offsets[] = {0, 2, 2, 5, 8, 8};
    pleach_keys keys = texts("ababcxyz", offsets, 5);
    uint8_t found[1], validity[1] = {0x0F};
    char data[64];
    uint64_t starts[6], needed = 0, hits = 0;
    keys.validity = validity;
    OK(pleach_get_strings(index, &keys, data, sizeof data, starts, found, 1, &needed, &hits));
    /* "ab", "", "abc", "xyz", null */
    CHECK(found[0] == 7 && hits == 3 && needed == 12 && memcmp(data, "onenonethree", 12) == 0);
    const uint64_t expected[] = {0, 3, 7, 12, 12, 12};
    CHECK(memcmp(starts, expected, sizeof expected) == 0);
    FAILS(PLEACH_TOO_SHORT, pleach_get_strings(index, &keys, data, 11, starts, found, 1, &needed, NULL));
    CHECK(needed == 12);
    FAILS(PLEACH_TOO_SHORT, pleach_get_strings(index, &keys, data, 64, starts, found, 0, &needed, NULL));
    FAILS(PLEACH_TYPES, pleach_get(index, &keys, data, sizeof data, found, 1, NULL));
    OK(pleach_contains(index, &keys, found, 1, &hits));
    CHECK(found[0] == 7 && hits == 3);
    uint64_t ranks[5];
    OK(pleach_rank(index, &keys, ranks, 5, found, 1, NULL));
    CHECK(ranks[0] == 1 && ranks[1] == 0 && ranks[2] == 2 && ranks[3] == 3 && ranks[4] == 0);
    OK(pleach_upper_bound(index, &keys, ranks, 5));
    CHECK(ranks[0] == 2 && ranks[1] == 1 && ranks[2] == 3 && ranks[3] == 3);
    const uint64_t at[] = {3, 0, 9};
    OK(pleach_keys_at(index, at, 3, data, sizeof data, starts, &needed));
    CHECK(needed == 5 && memcmp(data, "zebra", 5) == 0 && starts[1] == 5 && starts[2] == 5 && starts[3] == 5);
    OK(pleach_values_at(index, at, 3, data, sizeof data, starts, &needed));
    CHECK(needed == 8 && memcmp(data, "lastnone", 8) == 0);

    const int64_t wide[] = {0, 5};
    keys = texts("zebra", NULL, 1);
    keys.offsets = wide;
    keys.offset_bytes = 8;
    OK(pleach_contains(index, &keys, found, 1, &hits));
    CHECK(hits == 1);
    static const int32_t wrong[][2] = {{0, 9}, {-1, 5}, {5, 2}};
    for (size_t i = 0; i < 3; i++) {
        keys = texts("zebra", wrong[i], 1);
        FAILS(PLEACH_INPUT, pleach_contains(index, &keys, found, 1, &hits));
    }
    keys = texts("zebra", wrong[0], 1);
    keys.offset_bytes = 3;
    FAILS(PLEACH_INPUT, pleach_contains(index, &keys, found, 1, &hits));
    keys.offset_bytes = 8;
    keys.offsets = NULL;
    FAILS(PLEACH_INPUT, pleach_contains(index, &keys, found, 1, &hits));
    keys.key_type = PLEACH_U64;
    keys.data = wide;
    FAILS(PLEACH_TYPES, pleach_contains(index, &keys, found, 1, &hits));
    pleach_close(index);
}

static void records(void) {
    write_file("r.csv", "id,a,b\n1,2,3\n4,5,6\n");
    const char *table = "r.csv";
    pleach_build_options options = build_options();
    options.value = "a,b";
    options.value_type = "u32";
    OK(pleach_build(&table, 1, "r.pleach", &options));
    pleach_index *index = open_index("r.pleach");
    pleach_info info;
    OK(pleach_describe(index, &info));
    CHECK(info.fields == 2 && info.tuples == 2 && strcmp(info.key_name, "id") == 0);
    const char *name = NULL, *type = NULL;
    OK(pleach_field(index, 1, &name, &type));
    CHECK(strcmp(name, "b") == 0 && strcmp(type, "u32") == 0);
    OK(pleach_field(index, 0, &name, NULL));
    CHECK(strcmp(name, "a") == 0);
    FAILS(PLEACH_INPUT, pleach_field(index, 2, &name, &type));
    FAILS(PLEACH_INPUT, pleach_field(NULL, 0, &name, &type));
    FAILS(PLEACH_INPUT, pleach_describe(index, NULL));
    FAILS(PLEACH_INPUT, pleach_describe(NULL, &info));
    const uint64_t rank = 1;
    uint32_t fields[2];
    OK(pleach_values_at(index, &rank, 1, fields, sizeof fields, NULL, NULL));
    CHECK(fields[0] == 5 && fields[1] == 6);
    pleach_close(index);
}

/* Records with texts: their values are strings, in which the library finds the fields. */
static void records_of_texts(void) {
    write_file("x.csv", "id,n,name,flag,blob\n1,7,one,true,\\x00ff\n4,8,,0,\n");
    const char *table = "x.csv";
    pleach_build_options options = build_options();
    options.value = "n,name,flag,blob";
    options.value_type = "u16,utf8,bool,bytes";
    OK(pleach_build(&table, 1, "x.pleach", &options));
    pleach_index *index = open_index("x.pleach");
    const char *name = NULL, *type = NULL;
    OK(pleach_field(index, 1, &name, &type));
    CHECK(strcmp(name, "name") == 0 && strcmp(type, "utf8") == 0);
    const uint64_t ranks[] = {0, 1};
    char data[64];
    uint64_t starts[3], needed = 0;
    OK(pleach_values_at(index, ranks, 2, data, sizeof data, starts, &needed));
    CHECK(needed == starts[2]);
    const void *field = NULL;
    size_t bytes = 0;
    const char *first = data + starts[0], *second = data + starts[1];
    const size_t first_bytes = (size_t)(starts[1] - starts[0]), second_bytes = (size_t)(starts[2] - starts[1]);
    OK(pleach_field_bytes(index, 0, first, first_bytes, &field, &bytes));
    CHECK(bytes == 2 && memcmp(field, "\x07\0", 2) == 0);
    OK(pleach_field_bytes(index, 1, first, first_bytes, &field, &bytes));
    CHECK(bytes == 3 && memcmp(field, "one", 3) == 0);
    OK(pleach_field_bytes(index, 2, first, first_bytes, &field, &bytes));
    CHECK(bytes == 1 && *(const char *)field == 1);
    OK(pleach_field_bytes(index, 3, first, first_bytes, &field, NULL));
    OK(pleach_field_bytes(index, 3, first, first_bytes, NULL, &bytes));
    CHECK(bytes == 2 && memcmp(field, "\0\xff", 2) == 0);
    OK(pleach_field_bytes(index, 1, second, second_bytes, &field, &bytes));
    CHECK(bytes == 0);
    FAILS(PLEACH_INPUT, pleach_field_bytes(index, 4, first, first_bytes, &field, &bytes));
    FAILS(PLEACH_INPUT, pleach_field_bytes(index, 0, NULL, first_bytes, &field, &bytes));
    FAILS(PLEACH_INPUT, pleach_field_bytes(NULL, 0, first, first_bytes, &field, &bytes));
    FAILS(PLEACH_DAMAGED, pleach_field_bytes(index, 0, first, first_bytes - 1, &field, &bytes));
    FAILS(PLEACH_DAMAGED, pleach_field_bytes(index, 0, NULL, 0, &field, &bytes));
    pleach_close(index);
}

/* Booleans are numbers, which their meaning says. */
static void booleans(void) {
    write_file("b.csv", "id,v\n1,true\n4,False\n");
    build("b.csv", "b.pleach", "u32", "bool");
    pleach_index *index = open_index("b.pleach");
    pleach_info info;
    OK(pleach_describe(index, &info));
    CHECK(info.value_type == PLEACH_U32 && strcmp(info.value_meaning, "bool") == 0);
    const uint32_t numbers[] = {4, 1, 7};
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_U32;
    keys.count = 3;
    keys.data = numbers;
    uint32_t values[3];
    uint8_t found[1];
    OK(pleach_get(index, &keys, values, sizeof values, found, 1, NULL));
    CHECK(values[0] == 0 && values[1] == 1 && found[0] == 3);
    pleach_close(index);
}

static void fixed_values(void) {
    write_file("f.csv", "k,v\n7,abcd\n8,efgh\n");
    build("f.csv", "f.pleach", "u32", "bytes4");
    pleach_index *index = open_index("f.pleach");
    const uint32_t numbers[] = {8, 9, 7};
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_U32;
    keys.count = 3;
    keys.data = numbers;
    char data[12];
    uint64_t starts[4], needed;
    OK(pleach_get_strings(index, &keys, data, sizeof data, starts, NULL, 0, &needed, NULL));
    CHECK(needed == 8 && memcmp(data, "efghabcd", 8) == 0 && starts[1] == 4 && starts[2] == 4 && starts[3] == 8);
    pleach_close(index);
}

static void keys_alone(void) {
    write_file("k.csv", "k\n3\n9\n");
    build("k.csv", "k.pleach", "u64", NULL);
    pleach_index *index = open_index("k.pleach");
    pleach_info info;
    OK(pleach_describe(index, &info));
    CHECK(info.value_type == PLEACH_NONE && info.value_bytes == 0 && info.key_bytes == 8);
    const uint8_t small[] = {9, 8};
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_U8;
    keys.count = 2;
    keys.data = small;
    uint8_t found[1];
    OK(pleach_contains(index, &keys, found, 1, NULL));
    CHECK(found[0] == 1);
    FAILS(PLEACH_TYPES, pleach_get(index, &keys, found, 1, NULL, 0, NULL));
    pleach_close(index);
}

/* Texts are keys of files whose keys are addresses; rows with nulls are left out and counted. */
static void addresses(void) {
    write_file("a.csv", "ip,v\n10.0.0.0,1\n,7\n::1,2\n");
    const char *table = "a.csv";
    uint64_t skipped = 9, filled = 9;
    pleach_build_options options = build_options();
    options.key_type = "ip";
    options.value_type = "u32";
    FAILS(PLEACH_INPUT, pleach_build(&table, 1, "a.pleach", &options));
    options.nulls = "drop";
    FAILS(PLEACH_INPUT, pleach_build(&table, 1, "a.pleach", &options));
    options.nulls = "skip";
    options.skipped_rows = &skipped;
    options.filled_values = &filled;
    OK(pleach_build(&table, 1, "a.pleach", &options));
    CHECK(skipped == 1 && filled == 0);
    pleach_index *index = open_index("a.pleach");
    pleach_info info;
    OK(pleach_describe(index, &info));
    CHECK(info.key_type == PLEACH_U128 && strcmp(info.key_meaning, "ip") == 0);
    const char text[] = "::110.9.9.99.9.9.9::ffff:10.0.0.0";
    const int32_t offsets[] = {0, 3, 11, 18, 33};
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_UTF8;
    keys.count = 4;
    keys.data = text;
    keys.data_bytes = sizeof text - 1;
    keys.offsets = offsets;
    keys.offset_bytes = 4;
    uint32_t values[4];
    uint64_t ranks[4];
    OK(pleach_get(index, &keys, values, sizeof values, NULL, 0, NULL));
    CHECK(values[0] == 2 && values[1] == 0 && values[2] == 0 && values[3] == 1);
    OK(pleach_near(index, &keys, PLEACH_FLOOR, ranks, 4));
    CHECK(ranks[0] == 1 && ranks[1] == 0 && ranks[2] == UINT64_MAX && ranks[3] == 0);
    keys.data = "::110.9.9.x";
    keys.data_bytes = 11;
    keys.count = 2;
    FAILS(PLEACH_TYPES, pleach_get(index, &keys, values, sizeof values, NULL, 0, NULL));
    pleach_close(index);
}

/* Networks are intervals: a look-up answers by the one that holds the key, and values begin with its last key. */
static void networks(void) {
    write_file("n.csv", "net,v\n10.0.0.0/8,1\n10.1.0.0/16,2\n");
    const char *table = "n.csv";
    pleach_build_options options = build_options();
    options.key_type = "cidr";
    FAILS(PLEACH_INPUT, pleach_build(&table, 1, "n.pleach", &options));
    options.overlap = "first";
    FAILS(PLEACH_INPUT, pleach_build(&table, 1, "n.pleach", &options));
    options.overlap = "last";
    OK(pleach_build(&table, 1, "n.pleach", &options));
    write_file("i.csv", "a,b,v\n1,5,7\n5,9,8\n");
    table = "i.csv";
    options = build_options();
    options.interval = "b";
    FAILS(PLEACH_INPUT, pleach_build(&table, 1, "i.pleach", &options));
    options.interval_end = "exclusive";
    OK(pleach_build(&table, 1, "i.pleach", &options));
    pleach_index *index = open_index("i.pleach");
    const uint32_t numbers[] = {0, 1, 4, 5, 8, 9};
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_U32;
    keys.count = 6;
    keys.data = numbers;
    uint8_t found[1];
    uint64_t ranks[6];
    OK(pleach_contains(index, &keys, found, 1, NULL));
    CHECK(found[0] == 0x1e);
    OK(pleach_rank(index, &keys, ranks, 6, found, 1, NULL));
    CHECK(ranks[0] == UINT64_MAX && ranks[1] == 0 && ranks[2] == 0 && ranks[3] == 1 && ranks[4] == 1);
    pleach_close(index);
}

/* Several columns are one key. Texts of a key have commas between its parts, and a prefix has the first of them. */
static void composites(void) {
    write_file("c.csv", "chrom,pos,v\nchr2,100,1\nchr1,200,2\n\"chr,1\",5,3\nchr1,100,4\n");
    const char *table = "c.csv";
    pleach_build_options options = build_options();
    options.key = "chrom,pos";
    options.key_type = "utf8,u32";
    options.value_type = "u32";
    OK(pleach_build(&table, 1, "c.pleach", &options));
    options.key = "pos";
    FAILS(PLEACH_INPUT, pleach_build(&table, 1, "x.pleach", &options));
    options.key_type = "u8";
    FAILS(PLEACH_INPUT, pleach_build(&table, 1, "x.pleach", &options));
    pleach_index *index = open_index("c.pleach");
    pleach_info info;
    OK(pleach_describe(index, &info));
    CHECK(info.key_type == PLEACH_BYTES && strcmp(info.key_meaning, "(utf8, u32)") == 0);
    const char text[] = "chr1,100chr1,101\"chr,1\",5";
    const int32_t offsets[] = {0, 8, 16, 25};
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_UTF8;
    keys.count = 3;
    keys.data = text;
    keys.data_bytes = sizeof text - 1;
    keys.offsets = offsets;
    keys.offset_bytes = 4;
    uint32_t values[3];
    OK(pleach_get(index, &keys, values, sizeof values, NULL, 0, NULL));
    CHECK(values[0] == 4 && values[1] == 0 && values[2] == 3);
    const int32_t first_parts[] = {0, 4, 4, 4};
    uint64_t first[3], end[3];
    keys.offsets = first_parts;
    OK(pleach_prefix(index, &keys, first, end, 3));
    CHECK(first[0] == 1 && end[0] == 3 && first[1] == 0 && end[1] == 0);
    FAILS(PLEACH_TOO_SHORT, pleach_prefix(index, &keys, first, end, 2));
    keys.key_type = PLEACH_U32;
    FAILS(PLEACH_TYPES, pleach_prefix(index, &keys, first, end, 3));
    pleach_close(index);
}

/* Hashes of texts are keys; what must be exact is refused unless it is permitted. */
static void hashes(void) {
    write_file("h.csv", "k,v\none,1\ntwo,2\n");
    const char *table = "h.csv";
    pleach_build_options options = build_options();
    options.key_type = "hash64";
    options.value_type = "u32";
    OK(pleach_build(&table, 1, "h.pleach", &options));
    write_file("d.csv", "op,k,v\nput,two,3\n");
    options = build_options();
    FAILS(PLEACH_INPUT, pleach_rebuild("h.pleach", "d.csv", &options));
    options.approximate = 1;
    OK(pleach_rebuild("h.pleach", "d.csv", &options));
    pleach_index *index = open_index("h.pleach");
    const int32_t offsets[] = {0, 3, 6};
    pleach_keys keys;
    memset(&keys, 0, sizeof keys);
    keys.key_type = PLEACH_UTF8;
    keys.count = 2;
    keys.data = "onetwo";
    keys.data_bytes = 6;
    keys.offsets = offsets;
    keys.offset_bytes = 4;
    uint32_t values[2];
    OK(pleach_get(index, &keys, values, sizeof values, NULL, 0, NULL));
    CHECK(values[0] == 1 && values[1] == 3);
    pleach_info info;
    OK(pleach_describe(index, &info));
    CHECK(info.is_approximate == 1 && info.approximate_rate == 0x1p-63);
    pleach_close(index);
}

int main(void) {
    addresses();
    networks();
    composites();
    hashes();
    text_keys(NULL);
    text_keys("lines,spine,dictionary");
    records();
    records_of_texts();
    booleans();
    fixed_values();
    keys_alone();
    return 0;
}
