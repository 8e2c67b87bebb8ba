//! Every kind of keys: how many, how long, how they look, and that they come again the same.

use super::*;

const COUNT: u64 = 5000;

fn texts(kind: Kind, count: u64) -> Vec<String> {
    kind.keys(count, 1).iter().map(|key| String::from_utf8(key.to_vec()).expect("text")).collect()
}

#[test]
fn keys_are_distinct_and_sorted_on_request() {
    for kind in Kind::ALL {
        let keys = kind.keys(COUNT, 1);
        let sorted = kind.sorted(COUNT, 1);
        assert_eq!((keys.len() as u64, sorted.len() as u64), (COUNT, COUNT), "{kind}");
        assert!(sorted.view().iter().is_sorted_by(|a, b| a < b), "{kind}: ascending and distinct");
        let mut all: Vec<&[u8]> = keys.iter().collect();
        assert!(!all.is_sorted() || kind == Kind::LogTime, "{kind}: in no order");
        all.sort_unstable();
        assert!(all.into_iter().eq(sorted.iter()), "{kind}: the same keys");
        assert_eq!(sorted.width(), kind.width(), "{kind}");
    }
}

#[test]
fn keys_follow_from_kind_and_seed() {
    for kind in Kind::ALL {
        let keys = kind.keys(COUNT, 9);
        assert_eq!(keys, kind.keys(COUNT, 9), "{kind}");
        let mut stream = kind.stream(COUNT, 9);
        for i in 0..keys.len() {
            assert_eq!(stream.next(), Some(keys.get(i)), "{kind}: streamed");
        }
        assert_eq!(stream.next(), None, "{kind}");
        let fewer = kind.keys(100, 9);
        assert!(fewer.iter().eq(keys.iter().take(100)), "{kind}: more keys begin with the fewer");
        let other = kind.keys(COUNT, 10);
        assert_ne!(keys, other, "{kind}: another seed, other keys");
        assert!(kind.keys(0, 9).is_empty());
    }
}

#[test]
fn many_keys_are_distinct() {
    for kind in [Kind::Phone, Kind::Word, Kind::Kmer, Kind::Url] {
        let sorted = kind.sorted(1 << 18, 3);
        assert_eq!(sorted.len(), 1 << 18);
        assert!(sorted.iter().is_sorted_by(|a, b| a < b), "{kind}");
    }
}

#[test]
fn phones() {
    for phone in texts(Kind::Phone, COUNT) {
        let parts: Vec<&str> = phone.split('-').collect();
        let numbers: Vec<u32> = parts.iter().map(|part| part.parse().expect("digits")).collect();
        let [country, first, second, third] = numbers[..] else { panic!("{phone}: four parts") };
        assert!((10..35).contains(&country), "{phone}");
        assert!((100..1000).contains(&first) && (100..1000).contains(&second), "{phone}");
        assert!((1000..10_000).contains(&third) && phone.len() == 15, "{phone}");
    }
}

#[test]
fn digits() {
    for (values, alphabet) in [(2, "01"), (4, "0123"), (10, "0123456789"), (12, "-0123456789A")] {
        let kind = Kind::Digits { bytes: 30, values };
        let mut counts = [0u32; 256];
        kind.keys(COUNT, 1).data().iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        let mean = COUNT as u32 * 30 / u32::from(values);
        for byte in 0..=255u8 {
            let count = counts[usize::from(byte)];
            if alphabet.as_bytes().contains(&byte) {
                assert!((mean * 9 / 10..mean * 11 / 10).contains(&count), "{values}: {byte} {count}");
            } else {
                assert_eq!(count, 0, "{values}: {byte}");
            }
        }
    }
    for values in [52, 64, 128, 256] {
        let keys = Kind::Digits { bytes: 33, values }.keys(COUNT, 1);
        let mut bytes = keys.data().to_vec();
        bytes.sort_unstable();
        bytes.dedup();
        assert_eq!(bytes.len(), usize::from(values));
        let alphabet: Vec<u8> = (0..values).map(|digit| digit_byte(digit as u8, values)).collect();
        assert_eq!(bytes, alphabet, "ascending digits are ascending bytes");
    }
    assert_eq!(Kind::Digits { bytes: 4, values: 10 }.available(), 10_000);
    assert_eq!(Kind::Digits { bytes: 4, values: 10 }.sorted(10_000, 5).get(123), b"0123");
    assert!(Kind::Digits { bytes: 128, values: 2 }.available() >= 1 << 61);
}

#[test]
#[should_panic(expected = "there are 16")]
fn more_than_there_are() {
    let _ = Kind::Digits { bytes: 4, values: 2 }.keys(17, 1);
}

#[test]
fn words_are_words() {
    let words = texts(Kind::Word, 1 << 16);
    assert_eq!(words[..100], words::FREQUENT);
    let mut lengths = [0; words::LONGEST_WORD + 1];
    for word in &words {
        assert!(word.bytes().all(|byte| byte.is_ascii_lowercase()), "{word}");
        lengths[word.len()] += 1;
    }
    // "a" is the one word of one letter.
    assert_eq!(lengths[..2], [0, 1]);
    assert!(lengths[words::LONGEST_WORD] > 0, "{lengths:?}");
    assert!(lengths[5..16].iter().all(|&count| count > 500), "{lengths:?}");
}

#[test]
fn urls_have_crowded_hosts() {
    let urls = texts(Kind::Url, 1 << 15);
    let mut hosts: Vec<&str> =
        urls.iter().map(|url| url.split('/').nth(2).expect("a host behind the scheme")).collect();
    assert!(urls.iter().all(|url| url.starts_with("http")), "a scheme");
    hosts.sort_unstable();
    let mut sizes: Vec<usize> = hosts.chunk_by(|a, b| a == b).map(<[&str]>::len).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    assert!(sizes[0] > urls.len() / 32, "the first host: {}", sizes[0]);
    assert!(sizes.len() > 2000, "{} hosts", sizes.len());
    let ids: HashSet<String> = urls
        .iter()
        .map(|url| {
            let digits = url.trim_end_matches(|c: char| !c.is_ascii_digit());
            digits.rsplit(|c: char| !c.is_ascii_digit()).next().expect("a number").to_owned()
        })
        .collect();
    assert_eq!(ids.len(), urls.len(), "all differ by their number");
}

#[test]
fn uuids() {
    let bytes = Kind::Uuid.keys(COUNT, 1);
    for (text, bytes) in texts(Kind::UuidText, COUNT).iter().zip(bytes.iter()) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text.replace('-', ""), hex);
        assert_eq!(text.match_indices('-').map(|dash| dash.0).collect::<Vec<_>>(), [8, 13, 18, 23]);
        assert_eq!(&text[14..15], "4", "version");
        assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"), "variant: {text}");
    }
}

#[test]
fn kmers() {
    for kmer in texts(Kind::Kmer, COUNT) {
        assert!(kmer.len() == 31 && kmer.bytes().all(|base| b"ACGT".contains(&base)), "{kmer}");
    }
}

#[test]
fn log_offsets() {
    for user in texts(Kind::User, COUNT) {
        let number = user.strip_prefix("user_").expect("its name");
        assert!(number.len() == 9 && number.parse::<u32>().is_ok(), "{user}");
    }
    let times = texts(Kind::LogTime, COUNT);
    assert!(times[0].starts_with("2026-11-21T00:00:00.00"), "{}", times[0]);
    assert!(times.is_sorted_by_key(|time| time[..24].to_owned()), "time goes on");
    assert_eq!(times[0][..25], times[4][..25]);
    assert_ne!(times[4][..25], times[5][..25]);
    assert!(times.iter().all(|time| (26..=27).contains(&time.len())));
}

#[test]
fn dates() {
    let days = [(0, (1970, 1, 1)), (59, (1970, 3, 1)), (11_016, (2000, 2, 29)), (20_778, (2026, 11, 21))];
    for (day, expected) in days {
        assert_eq!(date(day), expected);
    }
}

#[test]
fn names_come_back() {
    for kind in Kind::ALL.into_iter().chain([Kind::Digits { bytes: 7, values: 256 }]) {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    for wrong in ["", "phones", "digits", "digits:0:2", "digits:4:1", "digits:4:257"] {
        assert!(wrong.parse::<Kind>().is_err(), "{wrong}");
    }
}

#[test]
fn sorting_looks_beyond_the_prefix() {
    let texts = ["", "a", "a\0", "a\0\0", "aa", "b"];
    let long: Vec<String> =
        texts.iter().map(|text| format!("the same beginning of all keys{text}")).collect();
    let longer: Vec<String> = texts.iter().map(|text| format!("{}{text}", "\0".repeat(20))).collect();
    let apart: Vec<String> = ["", "\0", "\0\0"].into_iter().map(str::to_owned).chain(long.clone()).collect();
    for expected in [long, longer, apart] {
        let shuffled: Keys = expected.iter().rev().collect();
        assert_eq!(sort(&shuffled), expected.iter().collect());
    }
    assert!(sort(&Keys::new()).is_empty());
}

#[test]
fn queries() {
    for kind in Kind::ALL {
        let keys = kind.sorted(COUNT, 1);
        let hits = hits(&keys, 3000);
        assert!(hits.len() == 3000 && hits.iter().all(|key| search(keys.view(), key).is_ok()), "{kind}");
        assert!(!hits.iter().is_sorted(), "{kind}");
        let misses = misses(&keys, 3000);
        assert!(misses.len() == 3000 && misses.iter().all(|key| search(keys.view(), key).is_err()), "{kind}");
        let same_length = misses.iter().filter(|key| kind.width() == Some(key.len())).count();
        assert!(kind.width().is_none() || same_length > 2900, "{kind}: {same_length}");
        assert_eq!(values(&keys)[17], value(keys.get(17)));
    }
    assert!(hits(&Keys::new(), 5).is_empty());
    let all = Kind::Digits { bytes: 2, values: 2 }.sorted(4, 1);
    assert!(misses(&all, 50).iter().all(|key| search(all.view(), key).is_err()), "every neighbour is a key");
    let none = misses(&Keys::new(), 2);
    assert_eq!(none.iter().collect::<Vec<_>>(), [b""; 2]);
}

#[test]
fn values_differ_where_keys_do() {
    let texts = ["", "\0", "a", "a\0", "aaaaaaaa", "aaaaaaaa\0", "aaaaaaab", "baaaaaaa"];
    let distinct: HashSet<u32> = texts.iter().map(|text| value(text.as_bytes())).collect();
    assert_eq!(distinct.len(), texts.len());
}

#[test]
fn long_texts_have_common_parts() {
    let kinds = [
        (Kind::HostUrl, "https://", (8 + 4, 400), 45..75),
        (Kind::Path, "/", (8, 200), 50..80),
        (Kind::Name, "", (8, 400), 50..80),
        (Kind::LogLine, "2026-11-", (40, 400), 70..120),
    ];
    for (kind, start, (shortest, longest), mean) in kinds {
        let mut all = texts(kind, 1 << 14);
        for text in &all {
            assert!(text.starts_with(start) && (shortest..=longest).contains(&text.len()), "{text}");
        }
        let bytes: usize = all.iter().map(String::len).sum();
        assert!(mean.contains(&(bytes / all.len())), "{kind}: {} bytes", bytes / all.len());
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{kind}");
        let shared =
            |pair: &[String]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
        let shared: usize = all.windows(2).map(shared).sum();
        assert!(shared / all.len() >= 12, "{kind}: neighbours share {} bytes", shared / all.len());
    }
    let urls = texts(Kind::HostUrl, 1 << 14);
    let mut hosts: Vec<&str> = urls.iter().filter_map(|url| url.split('/').nth(2)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    assert!((800..=1000).contains(&hosts.len()), "{} hosts", hosts.len());
    let numbers = urls.iter().filter(|url| url.contains("?id=")).count();
    assert!((urls.len() * 3 / 10..urls.len() * 4 / 10).contains(&numbers), "{numbers} with a number");
}
