// Pleach for C++17: pleach.h with owners, exceptions and vectors. docs/C.md is the guide.
#ifndef PLEACH_HPP
#define PLEACH_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleach.h"

namespace pleach {

// What a call failed for: its status, and its sentence as what().
class Error : public std::runtime_error {
  public:
    Error(pleach_status status, const char *text) : std::runtime_error(text), status_(status) {}
    pleach_status status() const noexcept { return status_; }

  private:
    pleach_status status_;
};

// Throws if a call of pleach.h was not done.
inline void check(pleach_status status) {
    if (status != PLEACH_OK) {
        throw Error(status, pleach_last_error_text());
    }
}

// The type of an array of numbers.
template <typename T> constexpr pleach_type type_of() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, "keys and values are numbers");
    if constexpr (std::is_floating_point_v<T>) {
        return sizeof(T) == 4 ? PLEACH_F32 : PLEACH_F64;
    } else if constexpr (std::is_signed_v<T>) {
        return sizeof(T) == 1 ? PLEACH_I8 : sizeof(T) == 2 ? PLEACH_I16 : sizeof(T) == 4 ? PLEACH_I32 : PLEACH_I64;
    } else {
        return sizeof(T) == 1 ? PLEACH_U8 : sizeof(T) == 2 ? PLEACH_U16 : sizeof(T) == 4 ? PLEACH_U32 : PLEACH_U64;
    }
}

// A batch of keys. It refers to the caller's numbers, and owns the bytes of strings.
class Keys {
  public:
    template <typename T> Keys(const T *numbers, std::size_t count) {
        keys_.key_type = type_of<T>();
        keys_.data = numbers;
        keys_.count = count;
    }
    template <typename T> Keys(const std::vector<T> &numbers) : Keys(numbers.data(), numbers.size()) {}
    Keys(const std::vector<std::string_view> &strings) {
        offsets_.push_back(0);
        for (std::string_view string : strings) {
            bytes_.append(string);
            offsets_.push_back(static_cast<std::int64_t>(bytes_.size()));
        }
        keys_.key_type = PLEACH_BYTES;
        keys_.count = strings.size();
        keys_.offset_bytes = 8;
    }
    // A bit for each key, least significant first; 0 is a null.
    Keys &with_validity(const std::uint8_t *bits, std::size_t offset = 0) {
        keys_.validity = bits;
        keys_.validity_offset = offset;
        return *this;
    }
    std::size_t size() const noexcept { return keys_.count; }
    pleach_keys raw() const noexcept {
        pleach_keys keys = keys_;
        if (keys.offset_bytes != 0) {
            keys.data = bytes_.data();
            keys.data_bytes = bytes_.size();
            keys.offsets = offsets_.data();
        }
        return keys;
    }

  private:
    pleach_keys keys_{};
    std::string bytes_;
    std::vector<std::int64_t> offsets_;
};

// Which keys of a batch were found.
class Found {
  public:
    explicit Found(std::size_t count) : bits_((count + 7) / 8), count_(count) {}
    bool operator[](std::size_t at) const { return (bits_[at / 8] >> (at % 8) & 1) != 0; }
    std::size_t size() const noexcept { return count_; }
    std::uint8_t *data() noexcept { return bits_.data(); }
    std::size_t bytes() const noexcept { return bits_.size(); }
    std::uint64_t hits = 0;

  private:
    std::vector<std::uint8_t> bits_;
    std::size_t count_;
};

// Values of a batch of numbers, and which keys were found.
template <typename V> struct Values {
    std::vector<V> values;
    Found found;
};

// Strings one after the other.
struct Strings {
    std::vector<std::uint64_t> offsets;
    std::string bytes;
    std::size_t size() const noexcept { return offsets.empty() ? 0 : offsets.size() - 1; }
    std::string_view operator[](std::size_t at) const {
        return std::string_view(bytes).substr(offsets[at], offsets[at + 1] - offsets[at]);
    }
};

// Options of builds; a text that is empty was not given.
struct BuildOptions {
    std::string key, value, key_type, value_type, op, unique, layout, method, temp_dir;
    std::uint64_t memory_bytes = 0;
    std::uint32_t threads = 0;
    bool sorted = false, no_header = false, force = false, salvage = false;
    std::optional<std::uint32_t> keep;

    pleach_build_options raw() const {
        auto text = [](const std::string &given) { return given.empty() ? nullptr : given.c_str(); };
        pleach_build_options options{};
        options.size = sizeof options;
        options.key = text(key);
        options.value = text(value);
        options.key_type = text(key_type);
        options.value_type = text(value_type);
        options.op = text(op);
        options.unique = text(unique);
        options.layout = text(layout);
        options.method = text(method);
        options.temp_dir = text(temp_dir);
        options.memory_bytes = memory_bytes;
        options.threads = threads;
        options.sorted = sorted;
        options.no_header = no_header;
        options.force = force;
        options.salvage = salvage;
        options.has_keep = keep.has_value();
        options.keep = keep.value_or(0);
        return options;
    }
};

// A file of a set that cannot be opened, and that answers were made without.
struct LeftOut {
    std::string name;
    std::uint64_t tuples;
    std::string reason;
};

// An open file, or an open set, which answers as one file of its tuples would. Any thread may use it.
class Index {
  public:
    explicit Index(const std::string &path, pleach_verify verify = PLEACH_VERIFY_HEADER, bool resident = false,
                   std::uint32_t threads = 0, pleach_structure structure = PLEACH_STRUCTURE_AUTO) {
        pleach_open_options options{};
        options.size = sizeof options;
        options.verify = verify;
        options.resident = resident;
        options.threads = threads;
        options.structure = structure;
        pleach_index *opened = nullptr;
        check(pleach_open(path.c_str(), &options, &opened));
        index_.reset(opened);
    }

    // Opens a generation of a set; 0 is the current one. With `partial` it answers without files that cannot be opened.
    static Index open_set(const std::string &folder, std::uint64_t generation = 0, bool partial = false,
                          std::uint32_t threads = 0) {
        pleach_open_options options{};
        options.size = sizeof options;
        options.threads = threads;
        options.partial = partial;
        pleach_index *opened = nullptr;
        check(pleach_set_open(folder.c_str(), generation, &options, &opened));
        return Index(opened);
    }

    const pleach_index *raw() const noexcept { return index_.get(); }
    // The number of files of a set; 0 for a file.
    std::uint64_t files() const noexcept { return pleach_set_files(index_.get()); }
    // The files that a set answered without so far.
    std::vector<LeftOut> left_out() const {
        std::vector<LeftOut> all;
        for (std::uint64_t number = 0; number < pleach_set_left_out(index_.get()); number++) {
            const char *name = nullptr, *reason = nullptr;
            std::uint64_t tuples = 0;
            check(pleach_set_left_out_file(index_.get(), number, &name, &tuples, &reason));
            all.push_back({name, tuples, reason});
        }
        return all;
    }
    std::uint64_t size() const noexcept { return pleach_len(index_.get()); }
    pleach_info describe() const {
        pleach_info info{};
        check(pleach_describe(index_.get(), &info));
        return info;
    }
    // Switches to the file that is now under this one's name. Returns whether there was another one.
    bool refresh() {
        pleach_index *next = nullptr;
        check(pleach_next(index_.get(), &next));
        if (next != nullptr) {
            index_.reset(next);
        }
        return next != nullptr;
    }

    template <typename V> Values<V> get(const Keys &keys) const {
        if (describe().value_type != type_of<V>()) {
            throw Error(PLEACH_TYPES, "types differ: the values of the file have another type: see describe()");
        }
        pleach_keys raw = keys.raw();
        Values<V> answer{std::vector<V>(keys.size()), Found(keys.size())};
        check(pleach_get(index_.get(), &raw, answer.values.data(), answer.values.size() * sizeof(V), answer.found.data(),
                         answer.found.bytes(), &answer.found.hits));
        return answer;
    }
    std::pair<Strings, Found> get_strings(const Keys &keys) const {
        pleach_keys raw = keys.raw();
        std::pair<Strings, Found> answer{Strings{}, Found(keys.size())};
        auto &[strings, found] = answer;
        strings.offsets.resize(keys.size() + 1);
        std::uint64_t needed = 0;
        pleach_status status;
        do {
            strings.bytes.resize(needed);
            status = pleach_get_strings(index_.get(), &raw, strings.bytes.data(), strings.bytes.size(),
                                        strings.offsets.data(), found.data(), found.bytes(), &needed, &found.hits);
        } while (status == PLEACH_TOO_SHORT && needed > strings.bytes.size());
        check(status);
        return answer;
    }
    Found contains(const Keys &keys) const {
        pleach_keys raw = keys.raw();
        Found found(keys.size());
        check(pleach_contains(index_.get(), &raw, found.data(), found.bytes(), &found.hits));
        return found;
    }
    std::pair<std::vector<std::uint64_t>, Found> rank(const Keys &keys) const {
        pleach_keys raw = keys.raw();
        std::vector<std::uint64_t> ranks(keys.size());
        Found found(keys.size());
        check(pleach_rank(index_.get(), &raw, ranks.data(), ranks.size(), found.data(), found.bytes(), &found.hits));
        return {std::move(ranks), std::move(found)};
    }
    std::vector<std::uint64_t> near(const Keys &keys, std::uint32_t near) const {
        const auto raw = keys.raw();
        std::vector<std::uint64_t> ranks(raw.count);
        check(pleach_near(index_.get(), &raw, near, ranks.data(), ranks.size()));
        return ranks;
    }

    /// Returns the rank of the first tuple whose key is at least each key.
    std::vector<std::uint64_t> lower_bound(const Keys &keys) const {
        pleach_keys raw = keys.raw();
        std::vector<std::uint64_t> ranks(keys.size());
        check(pleach_lower_bound(index_.get(), &raw, ranks.data(), ranks.size()));
        return ranks;
    }
    std::vector<std::uint64_t> upper_bound(const Keys &keys) const {
        pleach_keys raw = keys.raw();
        std::vector<std::uint64_t> ranks(keys.size());
        check(pleach_upper_bound(index_.get(), &raw, ranks.data(), ranks.size()));
        return ranks;
    }
    std::vector<std::uint64_t> count(const Keys &low, const Keys &high) const {
        pleach_keys first = low.raw(), last = high.raw();
        std::vector<std::uint64_t> counts(low.size());
        check(pleach_count(index_.get(), &first, &last, counts.data(), counts.size()));
        return counts;
    }

    // Builds a file from tables.
    static void build(const std::vector<std::string> &inputs, const std::string &file,
                      const BuildOptions &options = BuildOptions()) {
        const std::vector<const char *> paths = texts(inputs);
        pleach_build_options raw = options.raw();
        check(pleach_build(paths.data(), paths.size(), file.c_str(), &raw));
    }
    // Builds a set in a folder from tables, in files of so many tuples (0 for 2^24).
    static void build_set(const std::vector<std::string> &inputs, const std::string &folder,
                          std::uint64_t partition_tuples = 0, const BuildOptions &options = BuildOptions()) {
        const std::vector<const char *> paths = texts(inputs);
        pleach_build_options raw = options.raw();
        check(pleach_set_build(paths.data(), paths.size(), folder.c_str(), partition_tuples, &raw));
    }

  private:
    explicit Index(pleach_index *opened) : index_(opened) {}
    static std::vector<const char *> texts(const std::vector<std::string> &strings) {
        std::vector<const char *> all;
        for (const std::string &string : strings) {
            all.push_back(string.c_str());
        }
        return all;
    }

    struct Close {
        void operator()(pleach_index *index) const noexcept { pleach_close(index); }
    };
    std::unique_ptr<pleach_index, Close> index_;
};

} // namespace pleach

#endif
