//! Look-ups in files that stay where they are: how many requests they send, and that each answer is right.

use crate::kit::rules::Action;
use crate::kit::tables::{open, publish, table};
use crate::kit::{BUCKET, Server, remote};
use pleach::{AnyMap, BytesMap, Map, OpenOptions};
use pleach_set::{Builder, Datum, Store};
use pleach_store::{RemoteFile, Requests, StoreOptions};
use std::fs;
use std::sync::Arc;

/// Runs something, and returns the requests that it sent.
fn counted<T>(options: &StoreOptions, run: impl FnOnce() -> T) -> (T, Requests) {
    let before = options.counters().now();
    let done = run();
    (done, options.counters().now().since(&before))
}

fn place(server: &Server, name: &str) -> std::path::PathBuf {
    server.path(BUCKET).join(name)
}

fn open_remote(server: &Server, name: &str, options: &StoreOptions) -> pleach::Index {
    let file = RemoteFile::open(remote(&format!("s3://{BUCKET}/{name}")), options.clone()).expect("a file");
    file.open_index(OpenOptions::default()).unwrap_or_else(|error| panic!("{error}: {:?}", server.address))
}

#[test]
fn a_key_of_a_file_of_numbers_is_one_request() {
    let server = Server::s3();
    let tuples = 200_000u64;
    Builder::new()
        .build(place(&server, "a.pleach"), (0..tuples).map(|key| (key * 3, key ^ 5)))
        .expect("a file");
    let options = server.options();
    let (index, first) = counted(&options, || open_remote(&server, "a.pleach", &options));
    let whole = fs::metadata(place(&server, "a.pleach")).expect("the file").len();
    assert_eq!(first.heads, 1);
    assert!(first.gets <= 4 && first.received_bytes < whole / 4, "{first} of {whole}");
    let map = Map::<u64, u64>::from_index(Arc::new(index)).expect("its types");
    let (mut keys, mut requests) = (0, 0);
    for key in (0..tuples * 3).step_by(29_999) {
        let (value, sent) = counted(&options, || map.get(key).expect("an answer"));
        assert_eq!(value, (key % 3 == 0).then_some(key / 3 ^ 5), "key {key}");
        assert!(sent.gets <= 1 && sent.all() == sent.gets, "{sent}");
        assert!(sent.received_bytes <= 8192, "{sent}");
        (keys, requests) = (keys + 1, requests + sent.gets);
    }
    // None more than one a key; a key may be in a block that is here.
    assert!(requests <= keys && requests >= keys / 2, "{requests} for {keys} keys");
    // Again: nothing is asked twice.
    let (value, sent) = counted(&options, || map.get(29_999 * 3).expect("an answer"));
    assert_eq!((value, sent.all()), (Some(29_999 ^ 5), 0));
}

#[test]
fn batches_come_together() {
    let server = Server::s3();
    let tuples = 200_000u64;
    Builder::new()
        .build(place(&server, "a.pleach"), (0..tuples).map(|key| (key * 3, key ^ 5)))
        .expect("a file");
    let options = server.options();
    let map =
        Map::<u64, u64>::from_index(Arc::new(open_remote(&server, "a.pleach", &options))).expect("its types");
    let keys: Vec<u64> = (0..1_000).map(|number| number * 599).collect();
    let (values, sent) = counted(&options, || map.get_many(&keys).expect("answers"));
    for (key, value) in keys.iter().zip(values) {
        assert_eq!(value, (key % 3 == 0).then_some(key / 3 ^ 5), "key {key}");
    }
    // The keys are everywhere, so that near blocks are one request of 64 KiB and more.
    assert!(sent.gets < 60, "{sent}");
}

#[test]
fn texts_and_borders_have_stated_counts() {
    let server = Server::s3();
    let tuples = 50_000u64;
    let text = |key: u64| format!("value {key} {}", "x".repeat((key % 50) as usize));
    Builder::new()
        .build(place(&server, "t.pleach"), (0..tuples).map(|key| (key, text(key))))
        .expect("a file");
    let options = server.options();
    let map = AnyMap::from_index(Arc::new(open_remote(&server, "t.pleach", &options))).expect("a map");
    let mut most = 0;
    for key in (0..tuples).step_by(4_999) {
        let (value, sent) = counted(&options, || map.get(&Datum::U64(key)).expect("an answer"));
        assert_eq!(value, Some(Datum::Utf8(text(key).into_bytes().into())));
        most = most.max(sent.gets);
    }
    // The tuple, the place of its text, the text; one more where a text goes over the border of a block.
    assert!((1..=4).contains(&most), "{most}");

    Builder::new()
        .build(place(&server, "k.pleach"), (0..tuples).map(|key| (format!("key/{key:08}"), key)))
        .expect("a file");
    let map = BytesMap::<u64>::from_index(Arc::new(open_remote(&server, "k.pleach", &options)));
    let map = map.expect("a map");
    let mut most = 0;
    for key in (0..tuples).step_by(4_999) {
        let (found, sent) =
            counted(&options, || map.rank(format!("key/{key:08}").as_bytes()).expect("an answer"));
        assert_eq!(found, Some(key));
        most = most.max(sent.gets);
    }
    // The page, and the tuple; one more at a border.
    assert!((1..=3).contains(&most), "{most}");
}

#[test]
fn a_key_of_a_set_opens_one_file() {
    let server = Server::s3();
    let rows = table(100_000, 1);
    let store: Arc<dyn Store> = Arc::new(server.set("orders"));
    publish(&store, &rows, 10_000).expect("a set");
    let options = server.options();
    let store: Arc<dyn Store> = Arc::new(server.set_with("orders", options.clone()));
    let (set, sent) = counted(&options, || open(&store).expect("a set"));
    // The hint, its manifest, no newer one; and the manifest.
    assert_eq!((sent.gets, sent.heads, sent.all()), (2, 2, 4), "{sent}");
    let ask = |key: u64| {
        let (value, sent) = counted(&options, || set.get(&Datum::U64(key)).expect("an answer"));
        assert_eq!(value, rows.get(&key).map(|value| Datum::U64(*value)));
        sent
    };
    // The head of the file, what leads to the blocks, and the block.
    let sent = ask(150_001);
    assert!(sent.gets <= 3 && sent.all() == sent.gets && set.open_files() == 1, "{sent}");
    let sent = ask(150_001 + 3 * 2_500);
    assert!(sent.gets <= 1 && set.open_files() == 1, "{sent}");
    // Counts between borders of files ask nothing.
    let (count, sent) = counted(&options, || set.count(..).expect("a count"));
    assert_eq!((count, sent.all()), (100_000, 0));
}

#[test]
fn a_file_that_is_replaced_while_it_is_open_is_an_error() {
    let server = Server::s3();
    let build = |salt: u64| {
        let file = server.path("new.pleach");
        Builder::new().build(&file, (0..100_000u64).map(|key| (key, key ^ salt))).expect("a file");
        fs::read(file).expect("the file")
    };
    fs::write(place(&server, "a.pleach"), build(1)).expect("a file");
    let options = server.options();
    let map =
        Map::<u64, u64>::from_index(Arc::new(open_remote(&server, "a.pleach", &options))).expect("its types");
    assert_eq!(map.get(50_000).expect("an answer"), Some(50_000 ^ 1));
    server.replace(&place(&server, "a.pleach"), &build(2));
    // What is here still answers, and what is not is an error.
    assert_eq!(map.get(50_000).expect("an answer"), Some(50_000 ^ 1));
    let error = map.get(1).expect_err("another file").to_string();
    assert!(error.contains("it was replaced"), "{error}");
}

#[test]
fn a_flipped_bit_is_found_by_the_sum_of_its_block() {
    let server = Server::s3();
    Builder::new().build(place(&server, "a.pleach"), (0..100_000u64).map(|key| (key, key))).expect("a file");
    let options = server.options();
    let map =
        Map::<u64, u64>::from_index(Arc::new(open_remote(&server, "a.pleach", &options))).expect("its types");
    server.rules.add("GET", "a.pleach", (0, 1), Action::Flip);
    let error = map.get(50_000).expect_err("a flipped bit");
    assert!(error.is_damage(), "{error}");
    // The bytes that the server has are right.
    assert_eq!(map.get(50_000).expect("an answer"), Some(50_000));
}
