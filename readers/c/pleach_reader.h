/* Reads Pleach files of format 1.n at level 1: keys that are integers of 4 or 8 bytes, values that
 * are numbers or none, through the tuple lines and the spine.
 *
 * C99, without other dependencies than the headers below. The caller maps or reads the whole file
 * and keeps its bytes unchanged while it is open; nothing is allocated and nothing is written. Any
 * bytes are safe: an answer about a damaged file may be wrong, and no access leaves the bytes.
 * Numbers are made of single bytes, so the byte order of the machine does not matter.
 *
 * The parts have the order and the names of the format document.
 */
#ifndef PLEACH_READER_H
#define PLEACH_READER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum pleach_state {
    PLEACH_OPEN,
    PLEACH_REFUSED, /* `reason` is the name of the broken rule */
    PLEACH_ABOVE    /* the file needs a reader of a higher level; `reason` says why */
};

/* An entry of the section table. The extent ends where the next section begins. */
typedef struct {
    const unsigned char *entry;
    uint64_t offset, length, elements, sums_offset, sums, end;
    uint32_t flags, sums_crc;
} pleach_section;

typedef struct {
    uint64_t offset, children;
    uint32_t encoding, code_bytes, slots;
} pleach_level;

typedef struct {
    const unsigned char *data;
    uint64_t bytes, tuples;
    const char *reason;
    uint32_t key_type, value_type, key_bytes, value_bytes;
    uint32_t section_count, word_bytes, line_tuples, level_count, run_count, child_lines;
    pleach_section sections[31];
    const pleach_section *line, *spin;
    uint64_t lines, base, kept; /* of short words: the base, and the bits that words keep */
    unsigned run_from[4], run_bits[4];
    pleach_level levels[24];
} pleach_file;

static inline uint64_t pleach_number(const unsigned char *at, uint32_t size)
{
    uint64_t number = 0;
    while (size > 0) {
        number = number << 8 | at[--size];
    }
    return number;
}

static inline uint32_t pleach_u32(const unsigned char *at)
{
    return (uint32_t)pleach_number(at, 4);
}

/* Continues a CRC32; the first one is 0. */
static inline uint32_t pleach_crc(uint32_t crc, const unsigned char *data, uint64_t size)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
        0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
        0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
    uint64_t i;
    crc = ~crc;
    for (i = 0; i < size; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static inline int pleach_is_zero(const unsigned char *at, uint32_t size)
{
    while (size > 0) {
        if (at[--size] != 0) {
            return 0;
        }
    }
    return 1;
}

static inline uint64_t pleach_ceil(uint64_t count, uint64_t unit)
{
    return count / unit + (count % unit != 0);
}

/* Bytes of an even number of lines. */
static inline uint64_t pleach_even_bytes(uint64_t lines)
{
    return 64 * (lines + lines % 2);
}

static inline const pleach_section *pleach_find_section(const pleach_file *file, const char *tag)
{
    uint32_t i;
    for (i = 0; i < file->section_count; i++) {
        if (memcmp(file->sections[i].entry, tag, 4) == 0) {
            return &file->sections[i];
        }
    }
    return NULL;
}

/* Every check of opening is this macro: a broken rule ends the function with the rule's name. */
#define PLEACH_REFUSE(is_broken, rule) \
    do {                               \
        if (is_broken) {               \
            return (rule);             \
        }                              \
    } while (0)

/* Section 5: the superblock. Rules 1 to 13. */
static inline const char *pleach_read_superblock(pleach_file *file)
{
    static const unsigned char magic[16] = {0x89, 'P', 'L', 'E', 'A', 'C', 'H', '\r', '\n', 0x1A, '\n'};
    static const unsigned char key_bytes[10] = {0, 4, 8, 4, 8, 16, 8, 0, 0, 0};
    static const unsigned char value_bytes[10] = {0, 4, 8, 4, 8, 4, 8, 0, 0, 0};
    const unsigned char *block = file->data;
    PLEACH_REFUSE(file->bytes == 0, "truncated");
    PLEACH_REFUSE(memcmp(block, magic, file->bytes < 16 ? (size_t)file->bytes : 16) != 0, "magic");
    PLEACH_REFUSE(file->bytes < 4096, "truncated");
    PLEACH_REFUSE(pleach_crc(0, block, 4092) != pleach_u32(block + 4092), "superblock-sum");
    PLEACH_REFUSE(pleach_number(block + 16, 2) != 1, "version");
    PLEACH_REFUSE(pleach_number(block + 24, 8) > 1, "feature");
    PLEACH_REFUSE(file->bytes < pleach_number(block + 72, 8), "truncated");
    PLEACH_REFUSE(file->bytes > pleach_number(block + 72, 8), "extended");
    PLEACH_REFUSE(file->bytes < 16384 || file->bytes % 4096 != 0, "pages");
    file->tuples = pleach_number(block + 80, 8);
    file->key_type = (uint32_t)pleach_number(block + 88, 2);
    file->value_type = (uint32_t)pleach_number(block + 90, 2);
    file->key_bytes = pleach_u32(block + 92);
    file->value_bytes = pleach_u32(block + 96);
    PLEACH_REFUSE(file->key_type == 0 || file->key_type > 9, "key-type");
    PLEACH_REFUSE(file->key_type != 7 && file->key_bytes != key_bytes[file->key_type], "key-type");
    PLEACH_REFUSE(file->key_type == 7 && (file->key_bytes == 0 || file->key_bytes > 65535), "key-type");
    PLEACH_REFUSE(file->value_type > 9, "value-type");
    PLEACH_REFUSE(file->value_type != 7 && file->value_bytes != value_bytes[file->value_type],
                  "value-type");
    PLEACH_REFUSE(file->value_type == 7 && (file->value_bytes == 0 || file->value_bytes > 65535),
                  "value-type");
    PLEACH_REFUSE(pleach_u32(block + 100) > 1, "unique");
    PLEACH_REFUSE(pleach_number(block + 104, 8) != 4096, "table-place");
    PLEACH_REFUSE(pleach_number(block + 112, 8) != 4096, "table-place");
    file->section_count = pleach_u32(block + 120);
    PLEACH_REFUSE(file->section_count > 31, "table-entries");
    PLEACH_REFUSE(pleach_crc(0, block + 4096, 4096) != pleach_u32(block + 124), "table-sum");
    return NULL;
}

static inline int pleach_is_known(const unsigned char *tag)
{
    static const char tags[] = "METALINESPINGRIDMASKTAILKEYSTEXTTRIEVALSCODEPACKFASTHARMBTRESUMSSUM2";
    size_t i;
    for (i = 0; i + 4 < sizeof tags; i += 4) {
        if (memcmp(tag, tags + i, 4) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Notes a broken rule by its place in the list, of which the lowest counts. */
#define PLEACH_NOTE(is_broken, number)           \
    do {                                         \
        if ((is_broken) && (number) < lowest) { \
            lowest = (number);                   \
        }                                        \
    } while (0)

/* Section 6: the section table. Rules 14 to 23. */
static inline const char *pleach_read_table(pleach_file *file)
{
    static const char *const rules[] = {"first-section", "alignment", "section-order",
                                        "section-end", "section-gap", "section-large", "flags",
                                        "required-section", "section-twice", "reserved", NULL};
    const uint64_t closing = file->bytes - 8192;
    unsigned lowest = 24;
    uint32_t i, j;
    for (i = 0; i < file->section_count; i++) {
        const unsigned char *entry = file->data + 4096 + (size_t)i * 128;
        pleach_section *section = &file->sections[i];
        const int is_meta = memcmp(entry, "META", 4) == 0;
        const int is_mask = memcmp(entry, "MASK", 4) == 0;
        uint64_t room;
        section->entry = entry;
        section->flags = pleach_u32(entry + 4);
        section->offset = pleach_number(entry + 8, 8);
        section->length = pleach_number(entry + 16, 8);
        section->elements = pleach_number(entry + 24, 8);
        section->sums_offset = pleach_number(entry + 32, 8);
        section->sums = pleach_number(entry + 40, 8);
        section->sums_crc = pleach_u32(entry + 48);
        section->end = i + 1 < file->section_count ? pleach_number(entry + 128 + 8, 8) : closing;
        room = section->end - section->offset;
        PLEACH_NOTE(i == 0 && section->offset != 8192, 14);
        PLEACH_NOTE(section->offset % 4096 != 0, 15);
        PLEACH_NOTE(section->end < section->offset || section->end > closing, 16);
        /* All places are multiples of 4096, so the next multiple of 128 is not beyond them either. */
        PLEACH_NOTE(section->length > room, 17);
        PLEACH_NOTE(room - section->length >= 2097152, 18);
        PLEACH_NOTE(is_meta && section->length > 1048576, 19);
        PLEACH_NOTE(is_mask && section->length > 131102, 19);
        PLEACH_NOTE(section->flags > 1, 20);
        PLEACH_NOTE((section->flags & 1) != 0 && !pleach_is_known(entry), 21);
        for (j = 0; j < i; j++) {
            PLEACH_NOTE(memcmp(entry, file->sections[j].entry, 4) == 0, 22);
        }
        PLEACH_NOTE(!pleach_is_zero(entry + 52, 4) || !pleach_is_zero(entry + 120, 8), 23);
    }
    return rules[lowest - 14];
}

/* Section 10: the places of the sums. Rules 24 to 28. */
static inline const char *pleach_read_sums(const pleach_file *file)
{
    const pleach_section *sums = pleach_find_section(file, "SUMS");
    const pleach_section *sum2 = pleach_find_section(file, "SUM2");
    unsigned lowest = 29;
    uint32_t i;
    PLEACH_REFUSE(sums == NULL || sum2 == NULL, "sums-missing");
    PLEACH_REFUSE(sum2->sums_offset != 0 || sum2->sums != 0, "sum2-list");
    PLEACH_REFUSE(sum2->length % 4 != 0 || sum2->length / 4 != sums->sums, "sum2-length");
    for (i = 0; i < file->section_count; i++) {
        const pleach_section *section = &file->sections[i];
        const pleach_section *home = section == sums ? sum2 : sums;
        const uint64_t at = section->sums_offset, before = at - home->offset;
        if (section == sum2) {
            continue;
        }
        PLEACH_NOTE(section->sums != pleach_ceil(section->end - section->offset, 8192), 27);
        PLEACH_NOTE(at % 4 != 0 || at < home->offset || before > home->length, 28);
        PLEACH_NOTE(home->length - before < 4 * section->sums, 28);
    }
    PLEACH_REFUSE(lowest == 27, "sums-count");
    PLEACH_REFUSE(lowest == 28, "sums-place");
    return NULL;
}

/* Section 7: short words, which keep up to four runs of the bits of a distance. Rule 31. */
static inline const char *pleach_read_runs(pleach_file *file, const unsigned char *parameters)
{
    unsigned bits = 0, i, end = 0;
    file->base = pleach_number(parameters + 16, 8);
    for (i = 0; i < 4 && parameters[33 + 2 * i] > 0; i++) {
        const unsigned from = parameters[32 + 2 * i], count = parameters[33 + 2 * i];
        PLEACH_REFUSE(i > 0 && from <= end, "short-words");
        end = from + count;
        PLEACH_REFUSE(end > 8 * file->key_bytes, "short-words");
        file->run_from[i] = from;
        file->run_bits[i] = count;
        bits += count;
    }
    file->run_count = i;
    PLEACH_REFUSE(i == 0 || bits > 8 * file->word_bytes, "short-words");
    PLEACH_REFUSE(!pleach_is_zero(parameters + 32 + 2 * i, 8 - 2 * i), "short-words");
    PLEACH_REFUSE(!pleach_is_zero(parameters + 24, 8), "short-words");
    for (i = 0; i < file->run_count; i++) {
        file->kept |= ((UINT64_C(1) << file->run_bits[i]) - 1) << file->run_from[i];
    }
    return NULL;
}

/* Section 8: the tuple lines. Rules 29 to 33. */
static inline const char *pleach_read_lines(pleach_file *file)
{
    const pleach_section *line = pleach_find_section(file, "LINE");
    const unsigned char *parameters;
    const char *rule;
    PLEACH_REFUSE(line == NULL, "line-missing");
    parameters = line->entry + 56;
    file->line = line;
    file->word_bytes = pleach_u32(parameters + 4);
    PLEACH_REFUSE(file->word_bytes != 4 && file->word_bytes != 8, "word-bytes");
    PLEACH_REFUSE(file->word_bytes > file->key_bytes, "word-bytes");
    if (file->word_bytes < file->key_bytes) {
        rule = pleach_read_runs(file, parameters);
        PLEACH_REFUSE(rule != NULL, rule);
    }
    file->line_tuples = 64 / (file->word_bytes + file->value_bytes);
    file->lines = pleach_ceil(file->tuples, file->line_tuples);
    PLEACH_REFUSE(line->length % 128 != 0, "line-length");
    PLEACH_REFUSE(line->length / 64 != file->lines + file->lines % 2, "line-length");
    PLEACH_REFUSE(line->elements != file->tuples, "line-length");
    PLEACH_REFUSE(pleach_u32(parameters) != 64, "line-parameters");
    PLEACH_REFUSE(pleach_u32(parameters + 8) != file->value_bytes, "line-parameters");
    PLEACH_REFUSE(pleach_u32(parameters + 12) != file->line_tuples, "line-parameters");
    PLEACH_REFUSE(file->run_count == 0 && !pleach_is_zero(parameters + 16, 24), "line-parameters");
    PLEACH_REFUSE(!pleach_is_zero(parameters + 40, 24), "line-parameters");
    return NULL;
}

/* Section 9: the spine. Rule 34. */
static inline const char *pleach_read_spine(pleach_file *file)
{
    const pleach_section *spin = pleach_find_section(file, "SPIN");
    const unsigned char *parameters;
    uint64_t children, total = 0, bytes = 0;
    uint32_t i, levels;
    if (spin == NULL) {
        return NULL;
    }
    parameters = spin->entry + 56;
    levels = pleach_u32(parameters + 8);
    file->spin = spin;
    file->child_lines = pleach_u32(parameters + 12);
    PLEACH_REFUSE(pleach_u32(parameters) != 64, "spine");
    PLEACH_REFUSE(pleach_u32(parameters + 4) != file->word_bytes, "spine");
    PLEACH_REFUSE(levels > 24, "spine");
    PLEACH_REFUSE(file->child_lines == 0 || file->child_lines > 128, "spine");
    PLEACH_REFUSE((file->child_lines & (file->child_lines - 1)) != 0, "spine");
    PLEACH_REFUSE(!pleach_is_zero(parameters + 24 + levels, 40 - levels), "spine");
    children = pleach_ceil(file->lines, file->child_lines);
    for (i = 0; i < levels; i++) {
        pleach_level *level = &file->levels[i];
        level->encoding = parameters[24 + i];
        level->children = children;
        PLEACH_REFUSE(children < 2 || level->encoding > 3, "spine");
        level->code_bytes = level->encoding == 0   ? file->word_bytes
                            : level->encoding == 1 ? 2
                            : level->encoding == 2 ? 4
                                                   : 1;
        level->slots = (level->encoding == 0 ? 64 : 62 - file->word_bytes) / level->code_bytes;
        children = pleach_ceil(children, level->slots + 1);
        total += children;
        bytes += pleach_even_bytes(children);
        /* The bottom level comes last in the section. The offset is used if all levels fit. */
        level->offset = spin->offset + spin->length - bytes;
    }
    PLEACH_REFUSE(children > 1 || bytes != spin->length || spin->elements != total, "spine");
    file->level_count = levels;
    return NULL;
}

/* Opens a file of this many bytes. */
static inline enum pleach_state pleach_open(pleach_file *file, const unsigned char *data, uint64_t bytes)
{
    memset(file, 0, sizeof *file);
    file->data = data;
    file->bytes = bytes;
    file->reason = pleach_read_superblock(file);
    if (file->reason == NULL) {
        file->reason = pleach_read_table(file);
    }
    if (file->reason == NULL) {
        file->reason = pleach_read_sums(file);
    }
    if (file->reason != NULL) {
        return PLEACH_REFUSED;
    }
    if (file->key_type > 4) {
        file->reason = "keys of this type";
        return PLEACH_ABOVE;
    }
    if (file->value_type > 6) {
        file->reason = "values of this type";
        return PLEACH_ABOVE;
    }
    file->reason = pleach_read_lines(file);
    if (file->reason == NULL) {
        file->reason = pleach_read_spine(file);
    }
    if (file->reason != NULL) {
        return PLEACH_REFUSED;
    }
    if (pleach_number(data + 24, 8) != 0) {
        file->reason = "approximate keys";
        return PLEACH_ABOVE;
    }
    return PLEACH_OPEN;
}

/* The encoding of a key keeps the order of keys: that of a signed key has its sign bit flipped. */
static inline uint64_t pleach_encode(const pleach_file *file, int64_t key)
{
    const uint64_t sign = UINT64_C(1) << (8 * file->key_bytes - 1);
    return ((uint64_t)key & (sign - 1 + sign)) ^ sign;
}

static inline int64_t pleach_decode(const pleach_file *file, uint64_t encoding)
{
    const uint64_t bits = encoding - (UINT64_C(1) << (8 * file->key_bytes - 1));
    int64_t key;
    memcpy(&key, &bits, sizeof key);
    return key;
}

static inline const unsigned char *pleach_line(const pleach_file *file, uint64_t line)
{
    return file->data + (size_t)(file->line->offset + 64 * line);
}

/* Returns the word of a tuple. `rank` is below `tuples`. */
static inline uint64_t pleach_word(const pleach_file *file, uint64_t rank)
{
    const size_t slot = (size_t)(rank % file->line_tuples);
    return pleach_number(pleach_line(file, rank / file->line_tuples) + slot * file->word_bytes,
                         file->word_bytes);
}

/* Returns the encoding of the key of a tuple. */
static inline uint64_t pleach_key(const pleach_file *file, uint64_t rank)
{
    uint64_t word = pleach_word(file, rank), spread = 0;
    uint32_t i;
    if (file->run_count == 0) {
        return word;
    }
    for (i = 0; i < file->run_count; i++) {
        const uint64_t ones = (UINT64_C(1) << file->run_bits[i]) - 1;
        spread |= (word & ones) << file->run_from[i];
        word >>= file->run_bits[i];
    }
    return file->base + spread;
}

/* Returns the bits of the value of a tuple. The last value of a line ends where the line does. */
static inline uint64_t pleach_value(const pleach_file *file, uint64_t rank)
{
    const size_t behind = file->line_tuples - (size_t)(rank % file->line_tuples);
    return pleach_number(pleach_line(file, rank / file->line_tuples) + 64 - behind * file->value_bytes,
                         file->value_bytes);
}

static inline uint64_t pleach_last_word(const pleach_file *file, uint64_t line)
{
    const uint64_t end = (line + 1) * file->line_tuples;
    return pleach_word(file, (end < file->tuples ? end : file->tuples) - 1);
}

/* Returns the first of some lines whose last word is not below a word, or the end. */
static inline uint64_t pleach_bisect(const pleach_file *file, uint64_t from, uint64_t to, uint64_t word)
{
    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        if (pleach_last_word(file, middle) < word) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

/* Returns the child of a spine line to which a word belongs. */
static inline uint32_t pleach_child(const pleach_file *file, const pleach_level *level,
                                    const unsigned char *line, uint64_t word)
{
    uint32_t slot, child = 0;
    if (level->encoding != 0) {
        const uint64_t base = pleach_number(line + 62 - file->word_bytes, file->word_bytes);
        const uint64_t most = (UINT64_C(1) << 8 * level->code_bytes) - 1;
        const unsigned shift = line[62];
        word = word < base || shift > 63 ? 0 : (word - base) >> shift;
        word = word < most ? word : most;
    }
    for (slot = 0; slot < level->slots; slot++) {
        child += pleach_number(line + (size_t)slot * level->code_bytes, level->code_bytes) < word;
    }
    return child;
}

/* Returns the number of tuples whose words are below this one. */
static inline uint64_t pleach_below(const pleach_file *file, uint64_t word, int with_spine)
{
    uint64_t group = 0, from = 0, to = file->lines, rank, end;
    uint32_t i;
    int is_exact = 1;
    if (with_spine && file->spin != NULL) {
        for (i = file->level_count; i > 0; i--) {
            const pleach_level *level = &file->levels[i - 1];
            const unsigned char *line = file->data + (size_t)(level->offset + 64 * group);
            group = group * (level->slots + 1) + pleach_child(file, level, line, word);
            if (group >= level->children) {
                group = level->children - 1;
            }
            if (level->encoding != 0 && (line[63] & 1) != 0) {
                is_exact = 0;
            }
        }
        from = group * file->child_lines;
        if (to - from > file->child_lines) {
            to = from + file->child_lines;
        }
    }
    from = pleach_bisect(file, from, to, word);
    if (from == to && !is_exact) { /* behind a line that is INEXACT, the place may be later */
        from = pleach_bisect(file, from, file->lines, word);
    }
    rank = from * file->line_tuples;
    end = rank + file->line_tuples < file->tuples ? rank + file->line_tuples : file->tuples;
    while (rank < end && pleach_word(file, rank) < word) {
        rank++;
    }
    return rank < end ? rank : end;
}

/* Returns the number of tuples whose keys are below a key, or, with `or_equal`, at most the key. */
static inline uint64_t pleach_bound(const pleach_file *file, uint64_t encoding, int or_equal, int with_spine)
{
    uint64_t word = encoding, lost, distance, highest;
    uint32_t i;
    if (file->run_count > 0) {
        if (encoding < file->base) {
            return 0;
        }
        distance = encoding - file->base;
        lost = distance & ~file->kept;
        for (highest = lost; (highest & (highest - 1)) != 0;) {
            highest &= highest - 1;
        }
        if (lost != 0) {
            distance |= highest - 1;
        }
        word = 0;
        for (i = file->run_count; i > 0; i--) {
            const uint64_t ones = (UINT64_C(1) << file->run_bits[i - 1]) - 1;
            word = word << file->run_bits[i - 1] | (distance >> file->run_from[i - 1] & ones);
        }
        if (lost != 0) { /* no key: it has the place of the first word above this one */
            word++;
            or_equal = 0;
        }
    }
    if (or_equal && word == UINT64_MAX) {
        return file->tuples;
    }
    return pleach_below(file, or_equal ? word + 1 : word, with_spine);
}

static inline uint64_t pleach_lower(const pleach_file *file, uint64_t encoding)
{
    return pleach_bound(file, encoding, 0, 1);
}

static inline uint64_t pleach_upper(const pleach_file *file, uint64_t encoding)
{
    return pleach_bound(file, encoding, 1, 1);
}

/* Returns whether a key is there; `rank` becomes that of its first tuple. */
static inline int pleach_get(const pleach_file *file, uint64_t encoding, uint64_t *rank)
{
    *rank = pleach_lower(file, encoding);
    return *rank < file->tuples && pleach_key(file, *rank) == encoding;
}

/* Section 10: verifies all sums. Returns NULL, or the code of the first fault, which is at `offset`. */
static inline const char *pleach_check(const pleach_file *file, uint64_t *offset)
{
    const char *code = NULL;
    uint32_t i;
    *offset = UINT64_MAX;
    for (i = 0; i < file->section_count; i++) {
        const pleach_section *section = &file->sections[i];
        const int is_sum2 = memcmp(section->entry, "SUM2", 4) == 0;
        const uint64_t list = is_sum2 ? section->offset : section->sums_offset;
        const uint64_t list_bytes = is_sum2 ? section->end - section->offset : 4 * section->sums;
        const unsigned char *sums = file->data + (size_t)list;
        uint64_t block;
        if (pleach_crc(0, sums, list_bytes) != section->sums_crc && list < *offset) {
            *offset = list;
            code = "sums";
        }
        for (block = 0; block < section->sums; block++) {
            const uint64_t at = section->offset + 8192 * block;
            const uint64_t size = section->end - at < 8192 ? section->end - at : 8192;
            unsigned char number[8];
            uint32_t sum, byte;
            for (byte = 0; byte < 8; byte++) {
                number[byte] = (unsigned char)(block >> 8 * byte & 255);
            }
            sum = pleach_crc(0, file->data + 48, 16);
            sum = pleach_crc(sum, section->entry, 4);
            sum = pleach_crc(sum, number, 8);
            sum ^= pleach_crc(0, file->data + (size_t)at, size);
            if (sum != pleach_u32(sums + (size_t)(4 * block)) && at < *offset) {
                *offset = at;
                code = "block";
            }
        }
    }
    return code;
}

#endif
