// The C++ wrapper: owners, exceptions, vectors.
#include "pleach.hpp"

#include <cassert>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#undef NDEBUG
#include <cassert>

template <typename Call> void throws(pleach_status status, Call call) {
    try {
        call();
    } catch (const pleach::Error &error) {
        assert(error.status() == status && error.what()[0] != 0);
        return;
    }
    assert(!"it throws");
}

int main() {
    {
        std::ofstream table("cpp.csv");
        table << "id,row\n";
        for (int i = 0; i < 1000; i++) {
            table << 3 * i << ',' << i << '\n';
        }
    }
    pleach::BuildOptions options;
    options.key = "id";
    options.value = "row";
    options.key_type = "i64";
    options.value_type = "u32";
    options.keep = 1;
    pleach::Index::build({"cpp.csv"}, "cpp.pleach", options);
    pleach::Index index("cpp.pleach", PLEACH_VERIFY_FULL, true, 2);
    assert(index.size() == 1000 && index.describe().key_type == PLEACH_I64 && index.raw() != nullptr);

    std::vector<std::int32_t> keys;
    for (int i = -5; i < 4000; i++) {
        keys.push_back(i);
    }
    auto answer = index.get<std::uint32_t>(keys);
    auto found = index.contains(keys);
    auto [ranks, same] = index.rank(keys);
    auto lower = index.lower_bound(keys), upper = index.upper_bound(keys), counts = index.count(keys, keys);
    auto floors = index.near(keys, PLEACH_FLOOR);
    for (std::size_t i = 0; i < keys.size(); i++) {
        assert(floors[i] == (upper[i] == 0 ? UINT64_MAX : upper[i] - 1));
    }
    std::uint64_t hits = 0;
    for (std::size_t i = 0; i < keys.size(); i++) {
        bool is_there = keys[i] >= 0 && keys[i] < 3000 && keys[i] % 3 == 0;
        hits += is_there;
        assert(answer.found[i] == is_there && found[i] == is_there && same[i] == is_there);
        assert(answer.values[i] == (is_there ? static_cast<std::uint32_t>(keys[i] / 3) : 0));
        std::uint64_t rank = keys[i] < 0 ? 0 : std::min(1000, (keys[i] + 2) / 3);
        assert(lower[i] == rank && ranks[i] == rank && upper[i] == rank + is_there && counts[i] == 0);
    }
    assert(answer.found.hits == hits && found.hits == hits && same.hits == hits && found.size() == keys.size());
    const std::uint8_t validity[] = {0x02};
    std::vector<std::uint8_t> few{3, 6};
    assert(index.contains(pleach::Keys(few).with_validity(validity)).hits == 1);

    throws(PLEACH_TYPES, [&] { index.get<double>(keys); });
    throws(PLEACH_TYPES, [&] { index.contains(std::vector<double>{1.0}); });
    throws(PLEACH_NOT_FOUND, [] { pleach::Index("none.pleach"); });
    throws(PLEACH_INPUT, [] { pleach::Index::build({"none.csv"}, "x.pleach"); });

    pleach::Index moved = std::move(index);
    assert(moved.size() == 1000 && index.size() == 0 && !moved.refresh());
    throws(PLEACH_INPUT, [&] { index.contains(keys); });
    {
        std::ofstream table("cpp.csv");
        table << "name,text\nab,one\nxyz,three\n";
    }
    options.key = "name";
    options.value = "text";
    options.key_type = options.value_type = "utf8";
    pleach::Index::build({"cpp.csv"}, "cpp.pleach", options);
    throws(PLEACH_TYPES, [&] { moved.refresh(); });
    moved = pleach::Index("cpp.pleach");
    assert(!moved.refresh() && moved.size() == 2);
    pleach::Index::build({"cpp.csv"}, "cpp.pleach", options);
    assert(moved.refresh() && moved.describe().generation == 3);
    std::vector<std::string_view> names{"xyz", "", "ab"};
    auto [texts, which] = moved.get_strings(names);
    assert(texts.size() == 3 && texts[0] == "three" && texts[1].empty() && texts[2] == "one");
    assert(which[0] && !which[1] && which[2] && which.hits == 2);
    std::thread other([&moved, &names] { assert(moved.contains(names).hits == 2); });
    other.join();

    options.keep.reset();
    pleach::Index::build_set({"cpp.csv"}, "cpp.set", 1, options);
    pleach::Index set("cpp.set"), same_set = pleach::Index::open_set("cpp.set", 1, true, 2);
    assert(set.size() == 2 && set.files() == 2 && moved.files() == 0 && !set.refresh());
    auto [own, present] = same_set.get_strings(names);
    assert(own[0] == "three" && own[1].empty() && own[2] == "one" && present.hits == 2);
    assert(set.rank(names).first[0] == 1 && same_set.left_out().empty());
    throws(PLEACH_NOT_FOUND, [] { pleach::Index::open_set("none.set"); });
    return 0;
}
