/* Arrow's C data interface: arrays and streams made by hand, in and out. */
#include "check.h"

/* An array of two buffers that the caller owns: nothing is freed. */
static int released;

static void release_array(struct ArrowArray *array) {
    released++;
    free(array->private_data);
    array->release = NULL;
}

static void release_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
}

static struct ArrowSchema schema_of(const char *format, const char *name) {
    struct ArrowSchema schema;
    memset(&schema, 0, sizeof schema);
    schema.format = format;
    schema.name = name;
    schema.flags = ARROW_FLAG_NULLABLE;
    schema.release = release_schema;
    return schema;
}

static struct ArrowArray array_of(int64_t length, const void *validity, const void *first, const void *second) {
    struct ArrowArray array;
    memset(&array, 0, sizeof array);
    array.length = length;
    array.null_count = validity != NULL ? -1 : 0;
    array.n_buffers = second != NULL ? 3 : 2;
    array.buffers = malloc(3 * sizeof *array.buffers);
    CHECK(array.buffers != NULL);
    array.buffers[0] = validity;
    array.buffers[1] = first;
    array.buffers[2] = second;
    array.private_data = (void *)array.buffers;
    array.release = release_array;
    return array;
}

static void look_up(void) {
    write_file("a.csv", "k,v\n10,1.5\n20,2.5\n30,3.5\n");
    build("a.csv", "a.pleach", "i64", "f64");
    pleach_index *index = open_index("a.pleach");
    const int64_t keys_of[] = {99, 20, 10, 25};
    const uint8_t validity[] = {0xF7};
    struct ArrowSchema type = schema_of("l", "k"), values_type;
    struct ArrowArray keys = array_of(4, validity, keys_of, NULL), values;
    released = 0;
    OK(pleach_get_arrow(index, &type, &keys, &values_type, &values));
    CHECK(keys.release == NULL && released == 1);
    CHECK(strcmp(values_type.format, "g") == 0 && values.length == 4 && values.null_count == 2);
    const double *numbers = values.buffers[1];
    CHECK(numbers[1] == 2.5 && numbers[2] == 1.5 && ((const uint8_t *)values.buffers[0])[0] == 6);
    values.release(&values);
    values_type.release(&values_type);

    /* An array of strings is no key of this file; what was taken is released. */
    const int32_t offsets[] = {0, 2};
    struct ArrowSchema texts = schema_of("u", "k");
    keys = array_of(1, NULL, offsets, "ab");
    FAILS(PLEACH_TYPES, pleach_get_arrow(index, &texts, &keys, &values_type, &values));
    CHECK(released == 2);
    keys = array_of(4, NULL, keys_of, NULL);
    FAILS(PLEACH_INPUT, pleach_get_arrow(index, &type, &keys, NULL, &values));
    FAILS(PLEACH_INPUT, pleach_get_arrow(index, &type, NULL, &values_type, &values));
    keys = array_of(4, NULL, keys_of, NULL);
    FAILS(PLEACH_INPUT, pleach_get_arrow(NULL, &type, &keys, &values_type, &values));
    CHECK(released == 4);
    pleach_close(index);
}

/* Booleans, and structs with texts and booleans. */
static void texts_and_booleans(void) {
    write_file("t.csv", "k,name,flag\n10,one,true\n20,,0\n");
    const char *table = "t.csv";
    pleach_build_options options = build_options();
    options.key_type = "i64";
    options.value = "name,flag";
    options.value_type = "utf8,bool";
    OK(pleach_build(&table, 1, "t.pleach", &options));
    write_file("f.csv", "k,flag\n10,true\n20,0\n");
    build("f.csv", "f.pleach", "i64", "bool");
    const int64_t keys_of[] = {20, 10, 99};
    struct ArrowSchema type = schema_of("l", "k"), values_type;
    struct ArrowArray keys = array_of(3, NULL, keys_of, NULL), values;
    pleach_index *index = open_index("t.pleach");
    OK(pleach_get_arrow(index, &type, &keys, &values_type, &values));
    CHECK(strcmp(values_type.format, "+s") == 0 && values_type.n_children == 2 && values.null_count == 1);
    CHECK(strcmp(values_type.children[0]->format, "U") == 0 && strcmp(values_type.children[1]->format, "b") == 0);
    const int64_t *offsets = values.children[0]->buffers[1];
    CHECK(offsets[0] == 0 && offsets[1] == 0 && offsets[2] == 3 && offsets[3] == 3);
    CHECK(memcmp(values.children[0]->buffers[2], "one", 3) == 0);
    CHECK((((const uint8_t *)values.children[1]->buffers[1])[0] & 3) == 2);
    values.release(&values);
    values_type.release(&values_type);
    pleach_close(index);
    index = open_index("f.pleach");
    keys = array_of(3, NULL, keys_of, NULL);
    OK(pleach_get_arrow(index, &type, &keys, &values_type, &values));
    CHECK(strcmp(values_type.format, "b") == 0 && values.null_count == 1);
    CHECK((((const uint8_t *)values.buffers[1])[0] & 3) == 2);
    values.release(&values);
    values_type.release(&values_type);
    pleach_close(index);
}

/* Reads a stream to its end, and returns the number of rows and the sum of an int64 column. */
static int64_t read_all(struct ArrowArrayStream *stream, int column, int64_t *sum) {
    int64_t rows = 0;
    *sum = 0;
    for (;;) {
        struct ArrowArray batch;
        CHECK(stream->get_next(stream, &batch) == 0);
        if (batch.release == NULL) {
            return rows;
        }
        rows += batch.length;
        const struct ArrowArray *numbers = batch.children[column];
        for (int64_t i = 0; i < batch.length; i++) {
            *sum += ((const int64_t *)numbers->buffers[1])[numbers->offset + i];
        }
        batch.release(&batch);
    }
}

/* A stream of one batch of two columns of int64. */
struct source {
    const int64_t *columns[2];
    int64_t rows;
    int batches;
    const char *const *operations;
};

static void release_children(struct ArrowArray *batch) {
    for (int64_t i = 0; i < batch->n_children; i++) {
        if (batch->children[i]->release != NULL) {
            batch->children[i]->release(batch->children[i]);
        }
        free(batch->children[i]);
    }
    free((void *)batch->children);
    free((void *)batch->buffers);
    batch->release = NULL;
}

static void release_fields(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release != NULL) {
            schema->children[i]->release(schema->children[i]);
        }
        free(schema->children[i]);
    }
    free((void *)schema->children);
    schema->release = NULL;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    const struct source *source = stream->private_data;
    int first = source->operations != NULL;
    *out = schema_of("+s", "");
    out->n_children = 2 + first;
    out->children = malloc(3 * sizeof *out->children);
    out->release = release_fields;
    static const char *const names[] = {"k", "v"};
    for (int i = 0; i < out->n_children; i++) {
        out->children[i] = malloc(sizeof **out->children);
        *out->children[i] = first && i == 0 ? schema_of("u", "op") : schema_of("l", names[i - first]);
    }
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    struct source *source = stream->private_data;
    memset(out, 0, sizeof *out);
    if (source->batches == 0) {
        return 0;
    }
    source->batches--;
    int first = source->operations != NULL;
    out->length = source->rows;
    out->n_buffers = 1;
    out->buffers = calloc(1, sizeof *out->buffers);
    out->n_children = 2 + first;
    out->children = malloc(3 * sizeof *out->children);
    out->release = release_children;
    static const int32_t offsets[] = {0, 3, 6};
    for (int i = 0; i < out->n_children; i++) {
        out->children[i] = malloc(sizeof **out->children);
        *out->children[i] = first && i == 0 ? array_of(source->rows, NULL, offsets, "putdel")
                                            : array_of(source->rows, NULL, source->columns[i - first], NULL);
    }
    return 0;
}

static const char *last_error(struct ArrowArrayStream *stream) {
    (void)stream;
    return NULL;
}

static void release_stream(struct ArrowArrayStream *stream) {
    stream->release = NULL;
}

static struct ArrowArrayStream stream_of(struct source *source) {
    struct ArrowArrayStream stream = {get_schema, get_next, last_error, release_stream, source};
    return stream;
}

static void streams(void) {
    static const int64_t keys[] = {3, 1, 2}, values[] = {30, 10, 20};
    struct source source = {{keys, values}, 3, 1, NULL};
    struct ArrowArrayStream stream = stream_of(&source), out;
    OK(pleach_build_arrow(&stream, "s.pleach", NULL));
    CHECK(stream.release == NULL);
    pleach_index *index = open_index("s.pleach");
    CHECK(pleach_len(index) == 3);
    int64_t sum = 0;
    OK(pleach_range_arrow(index, 0, UINT64_MAX, 2, &out));
    struct ArrowSchema schema;
    CHECK(out.get_schema(&out, &schema) == 0 && schema.n_children == 2);
    CHECK(strcmp(schema.children[1]->name, "v") == 0);
    schema.release(&schema);
    CHECK(read_all(&out, 1, &sum) == 3 && sum == 60);
    out.release(&out);
    OK(pleach_range_arrow(index, 1, 2, 0, &out));
    /* A stream keeps the file open. */
    pleach_close(index);
    CHECK(read_all(&out, 0, &sum) == 1 && sum == 2);
    out.release(&out);

    static const char *const operations[] = {"put", "del"};
    static const int64_t changed[] = {9, 1}, new_values[] = {90, 0};
    struct source changes = {{changed, new_values}, 2, 1, operations};
    stream = stream_of(&changes);
    OK(pleach_rebuild_arrow("s.pleach", &stream, NULL));
    index = open_index("s.pleach");
    OK(pleach_range_arrow(index, 0, 99, 0, &out));
    CHECK(read_all(&out, 0, &sum) == 3 && sum == 2 + 3 + 9);
    out.release(&out);
    FAILS(PLEACH_INPUT, pleach_range_arrow(NULL, 0, 1, 0, &out));
    FAILS(PLEACH_INPUT, pleach_range_arrow(index, 0, 1, 0, NULL));
    FAILS(PLEACH_INPUT, pleach_build_arrow(NULL, "s.pleach", NULL));
    source.batches = 1;
    stream = stream_of(&source);
    FAILS(PLEACH_INPUT, pleach_build_arrow(&stream, NULL, NULL));
    CHECK(stream.release == NULL);
    FAILS(PLEACH_INPUT, pleach_build_arrow(&stream, "s.pleach", NULL));
    FAILS(PLEACH_INPUT, pleach_rebuild_arrow("s.pleach", NULL, NULL));
    pleach_close(index);
}

static void relations(void) {
    write_file("l.csv", "k,v\n1,10\n2,20\n3,30\n");
    write_file("m.csv", "k,v\n2,200\n3,300\n4,400\n");
    build("l.csv", "l.pleach", "i64", "i64");
    build("m.csv", "m.pleach", "i64", "i64");
    pleach_index *left = open_index("l.pleach"), *right = open_index("m.pleach");
    const pleach_index *both[] = {left, right, left};
    struct ArrowArrayStream out;
    int64_t sum;
    static const struct {
        const char *name, *argument;
        size_t inputs;
        int64_t rows, keys;
    } cases[] = {
        {"join", NULL, 2, 2, 5},      {"join", "full", 2, 4, 10}, {"join", "anti", 2, 1, 1},
        {"join", "asof=backward", 2, 2, 5},
        {"join", "left asof=nearest tolerance=1", 2, 3, 6},
        {"join", "within=1", 2, 6, 14},
        {"join", "anti within=0", 2, 1, 1},
        {"union", NULL, 3, 4, 10},    {"intersect", "set", 3, 2, 5}, {"difference", "multiset", 2, 1, 1},
        {"select", "v >= 20", 1, 2, 5}, {"reduce", "sum", 1, 3, 6}, {"project", "v, k", 1, 3, 60},
        {"product", "left", 2, 9, 18},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OK(pleach_relate(cases[i].name, cases[i].argument, both, cases[i].inputs, &out));
        CHECK(read_all(&out, 0, &sum) == cases[i].rows && sum == cases[i].keys);
        out.release(&out);
    }
    OK(pleach_relate_to_file("join", "left", both, 2, "j.pleach", NULL));
    pleach_index *joined = open_index("j.pleach");
    CHECK(pleach_len(joined) == 3);
    pleach_close(joined);
    /* A stream that nobody reads. */
    OK(pleach_relate("product", NULL, both, 2, &out));
    out.release(&out);
    FAILS(PLEACH_INPUT, pleach_relate("join", "sideways", both, 2, &out));
    FAILS(PLEACH_INPUT, pleach_relate("join", "asof=sideways", both, 2, &out));
    FAILS(PLEACH_INPUT, pleach_relate("join", "tolerance=5", both, 2, &out));
    FAILS(PLEACH_INPUT, pleach_relate("join", "within=1 within=2", both, 2, &out));
    FAILS(PLEACH_INPUT, pleach_relate("sort", NULL, both, 2, &out));
    FAILS(PLEACH_INPUT, pleach_relate("join", NULL, both, 1, &out));
    FAILS(PLEACH_INPUT, pleach_relate(NULL, NULL, both, 2, &out));
    FAILS(PLEACH_INPUT, pleach_relate("join", NULL, NULL, 2, &out));
    FAILS(PLEACH_INPUT, pleach_relate("select", "v >=", both, 1, &out));
    FAILS(PLEACH_INPUT, pleach_relate("join", NULL, both, 2, NULL));
    both[1] = NULL;
    FAILS(PLEACH_INPUT, pleach_relate_to_file("join", NULL, both, 2, "j.pleach", NULL));
    both[1] = right;
    FAILS(PLEACH_INPUT, pleach_relate_to_file("join", NULL, both, 2, NULL, NULL));
    FAILS(PLEACH_BUILD, pleach_relate_to_file("join", NULL, both, 2, "l.pleach", NULL));
    pleach_close(left);
    pleach_close(right);
}

/* Operators that need exact keys take hashes if they are told so. */
static void approximate(void) {
    write_file("h.csv", "k,v\none,1\ntwo,2\n");
    build("h.csv", "h.pleach", "hash64", "u32");
    pleach_index *index = open_index("h.pleach");
    const pleach_index *both[] = {index, index};
    struct ArrowArrayStream stream;
    const char *const rules[] = {"inner approximate", "approximate", " approximate "};
    for (int at = 0; at < 3; at++) {
        FAILS(PLEACH_TYPES, pleach_relate("join", at == 0 ? "inner" : NULL, both, 2, &stream));
        OK(pleach_relate("join", rules[at], both, 2, &stream));
        stream.release(&stream);
    }
    OK(pleach_relate("union", "multiset approximate", both, 2, &stream));
    stream.release(&stream);
    OK(pleach_relate("reduce", "sum approximate", both, 1, &stream));
    stream.release(&stream);
    FAILS(PLEACH_INPUT, pleach_relate("join", "innerapproximate", both, 2, &stream));
    FAILS(PLEACH_INPUT, pleach_relate("select", "key > 1 approximate", both, 1, &stream));
    pleach_close(index);
}

int main(void) {
    look_up();
    texts_and_booleans();
    streams();
    relations();
    approximate();
    return 0;
}
