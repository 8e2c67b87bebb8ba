/* Answers the requests of the conformance protocol with pleach_reader.h, level 1. */
#include "pleach_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const TYPES[] = {"none", "u32", "u64", "i32", "i64", "f32", "f64"};

static pleach_file file;
static unsigned char *data;
static enum pleach_state state = PLEACH_REFUSED;

/* Reads a whole file; `bytes` becomes its length. Returns NULL if it cannot be read. */
static unsigned char *read_file(const char *path, uint64_t *bytes)
{
    FILE *stream = fopen(path, "rb");
    unsigned char *buffer = NULL;
    size_t size = 0, room = 0, count = 1;
    if (stream == NULL) {
        return NULL;
    }
    while (count > 0) {
        if (size == room) {
            unsigned char *larger = realloc(buffer, room = 2 * room + 65536);
            if (larger == NULL) {
                free(buffer);
                fclose(stream);
                return NULL;
            }
            buffer = larger;
        }
        count = fread(buffer + size, 1, room - size, stream);
        size += count;
    }
    fclose(stream);
    /* A block of the exact size lets a checker of memory see each access behind it. */
    if (size > 0) {
        unsigned char *exact = realloc(buffer, size);
        buffer = exact != NULL ? exact : buffer;
    }
    *bytes = size;
    return buffer;
}

static void open_path(const char *path)
{
    uint64_t bytes = 0;
    free(data);
    state = PLEACH_REFUSED;
    file.reason = "";
    data = read_file(path, &bytes);
    if (data == NULL) {
        printf("error cannot read the file: %s\n", strerror(errno));
        return;
    }
    state = pleach_open(&file, data, bytes);
    if (state == PLEACH_OPEN) {
        printf("ok\n");
    } else if (state == PLEACH_ABOVE) {
        printf("above 2 %s\n", file.reason);
    } else {
        printf("refuse %s\n", file.reason);
    }
}

static int is_signed_type(uint32_t type)
{
    return type == 3 || type == 4;
}

static uint64_t parse_key(const char *word)
{
    if (is_signed_type(file.key_type)) {
        return pleach_encode(&file, strtoll(word, NULL, 10));
    }
    return strtoull(word, NULL, 10);
}

static void print_key(uint64_t rank)
{
    const uint64_t encoding = pleach_key(&file, rank);
    if (is_signed_type(file.key_type)) {
        printf(" %" PRId64, pleach_decode(&file, encoding));
    } else {
        printf(" %" PRIu64, encoding);
    }
}

static void print_value(uint64_t rank)
{
    const uint64_t bits = pleach_value(&file, rank);
    const uint64_t sign = file.value_bytes == 0 ? 0 : UINT64_C(1) << (8 * file.value_bytes - 1);
    if (file.value_type == 0) {
        printf(" -");
    } else if (file.value_type >= 5) {
        printf(" f%0*" PRIx64, (int)file.value_bytes * 2, bits);
    } else if (is_signed_type(file.value_type) && bits >= sign) {
        printf(" -%" PRIu64, sign - (bits - sign));
    } else {
        printf(" %" PRIu64, bits);
    }
}

static void answer_by(const char *structure, const char *key)
{
    static const char *const known[][2] = {{"spine", "SPIN"}, {"grid", "GRID"}, {"fast", "FAST"},
                                           {"harmonia", "HARM"}, {"btree", "BTRE"}, {"trie", "TRIE"}};
    size_t i;
    if (strcmp(structure, "lines") == 0) {
        printf("rank %" PRIu64 "\n", pleach_bound(&file, parse_key(key), 0, 0));
        return;
    }
    for (i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(structure, known[i][0]) != 0) {
            continue;
        }
        if (pleach_find_section(&file, known[i][1]) == NULL) {
            printf("none\n");
        } else if (i > 0) {
            printf("skip\n");
        } else {
            printf("rank %" PRIu64 "\n", pleach_lower(&file, parse_key(key)));
        }
        return;
    }
    printf("error no such structure\n");
}

static void answer_range(const char *first, const char *end)
{
    const uint64_t from = pleach_lower(&file, parse_key(first)), to = pleach_lower(&file, parse_key(end));
    uint64_t rank;
    printf("tuples %" PRIu64, from < to ? to - from : 0);
    for (rank = from; rank < to; rank++) {
        print_key(rank);
        print_value(rank);
    }
    printf("\n");
}

static void answer_check(void)
{
    uint64_t offset;
    const char *code = pleach_check(&file, &offset);
    if (code == NULL) {
        printf("clean\n");
    } else {
        printf("damaged %s\n", code);
    }
}

/* Answers a request of up to three words about the open file. */
static void answer(const char *request, const char *first, const char *second)
{
    uint64_t rank;
    if (strcmp(request, "tuples") == 0) {
        printf("tuples %" PRIu64 "\n", file.tuples);
    } else if (strcmp(request, "types") == 0) {
        printf("types %s %s\n", TYPES[file.key_type], TYPES[file.value_type]);
    } else if (strcmp(request, "at") == 0) {
        rank = strtoull(first, NULL, 10);
        if (rank >= file.tuples) {
            printf("none\n");
            return;
        }
        printf("tuple");
        print_key(rank);
        print_value(rank);
        printf("\n");
    } else if (strcmp(request, "get") == 0) {
        if (!pleach_get(&file, parse_key(first), &rank)) {
            printf("absent\n");
            return;
        }
        printf("tuple %" PRIu64, rank);
        print_value(rank);
        printf("\n");
    } else if (strcmp(request, "lower") == 0) {
        printf("rank %" PRIu64 "\n", pleach_lower(&file, parse_key(first)));
    } else if (strcmp(request, "upper") == 0) {
        printf("rank %" PRIu64 "\n", pleach_upper(&file, parse_key(first)));
    } else if (strcmp(request, "floor") == 0) {
        rank = pleach_upper(&file, parse_key(first));
        if (rank == 0) {
            printf("none\n");
            return;
        }
        printf("tuple %" PRIu64, rank - 1);
        print_key(rank - 1);
        print_value(rank - 1);
        printf("\n");
    } else if (strcmp(request, "range") == 0) {
        answer_range(first, second);
    } else if (strcmp(request, "by") == 0) {
        answer_by(first, second);
    } else if (strcmp(request, "check") == 0) {
        answer_check();
    } else if (strcmp(request, "name") == 0 || strcmp(request, "logical") == 0) {
        printf("above 2 names and logical types\n");
    } else if (strcmp(request, "derive") == 0) {
        printf("above 3 logical types\n");
    } else {
        printf("error no such request\n");
    }
}

int main(void)
{
    static char line[1 << 20];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *words[3] = {line, line + strcspn(line, "\n"), line + strcspn(line, "\n")};
        char *space = line;
        int i;
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "open ", 5) == 0) {
            open_path(line + 5);
            fflush(stdout);
            continue;
        }
        for (i = 1; i < 3 && (space = strchr(space, ' ')) != NULL; i++) {
            *space++ = 0;
            words[i] = space;
        }
        if (state == PLEACH_OPEN) {
            answer(words[0], words[1], words[2]);
        } else {
            printf("error no file is open\n");
        }
        fflush(stdout);
    }
    free(data);
    return 0;
}
