//! A set on a server that speaks the protocol of S3.

use crate::kit::rules::Action;
use crate::kit::tables::{Table, compare, one_line, open, publish, source, table, write};
use crate::kit::{BUCKET, Server};
use pleach_builder::Silent;
use pleach_set::{
    CheckOptions, Committer, Content, Datum, Folder, Part, Set, SetError, SetRebuildOptions, Store,
    SweepOptions, check_set, generations, rebuild_set, rollback_set, sweep,
};
use pleach_store::{ObjectFolder, StoreOptions};
use std::io;
use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime};

fn shared(folder: ObjectFolder) -> Arc<dyn Store> {
    Arc::new(folder)
}

fn rebuild(store: &Arc<dyn Store>, puts: &Table) -> pleach_set::Result<pleach_set::SetRebuilt> {
    let options = SetRebuildOptions { threads: 1, ..SetRebuildOptions::default() };
    rebuild_set(Arc::clone(store), crate::kit::tables::changes(puts), &options, &Silent)
}

#[test]
fn a_set_is_built_asked_rebuilt_checked_and_swept() {
    let server = Server::s3();
    let store = shared(server.set("a/b/orders"));
    assert!(matches!(open(&store), Err(SetError::NoSet { .. })));
    let mut rows = table(3_000, 1);
    let manifest = publish(&store, &rows, 500).expect("a set");
    assert_eq!((manifest.generation(), manifest.files()), (1, 6));
    compare(&open(&store).expect("a set"), &rows).expect("answers");

    // Two files are touched, the others carried.
    let puts: Table = [(1, 7), (2, 8), (1_600, 9), (1_601, 10)].into();
    let done = rebuild(&store, &puts).expect("a rebuild");
    rows.extend(puts);
    assert_eq!((done.manifest.generation(), done.touched, done.carried), (2, 2, 4));
    let set = open(&store).expect("a set");
    compare(&set, &rows).expect("answers");

    // The digests are compared when files come into the cache, and here of what is there.
    let checked = check_set(&set, &CheckOptions { digests: true, progress: None }).expect("a check");
    assert!(checked.files.iter().all(pleach_set::FileCheck::is_whole), "{checked:?}");
    assert_eq!(checked.litter.len(), 0, "{checked:?}");
    let listed: Vec<u64> = generations(&*store).expect("a list").iter().map(|it| it.number).collect();
    assert_eq!(listed, [1, 2]);

    let back = rollback_set(Arc::clone(&store), Some(1)).expect("a generation");
    assert_eq!(back.generation(), 3);
    compare(&open(&store).expect("a set"), &table(3_000, 1)).expect("answers");

    // Nothing is old enough, then everything is.
    let options = SweepOptions { keep: 1, ..SweepOptions::default() };
    let swept = sweep(&*store, &options).expect("a sweep");
    assert_eq!((swept.files.len(), swept.kept.len()), (0, 3));
    server.age_objects(Duration::from_secs(3 * 24 * 60 * 60));
    let swept = sweep(&*store, &options).expect("a sweep");
    assert_eq!((swept.files.len(), swept.kept, swept.generations), (2, vec![3], vec![1, 2]));
    compare(&open(&shared(server.set("a/b/orders"))).expect("a set"), &table(3_000, 1)).expect("answers");
}

#[test]
fn a_set_on_a_server_is_the_set_in_a_folder() {
    let (server, rows) = (Server::s3(), table(1_000, 2));
    publish(&shared(server.set("orders")), &rows, 300).expect("a set");
    // The objects are the files of a folder, so that they can be copied either way.
    let folder = server.path(BUCKET).join("orders");
    compare(&Set::open(&folder).expect("a set"), &rows).expect("answers");
    let source = shared(server.set("orders"));
    let other: Arc<dyn Store> = Arc::new(Folder::create(server.folder.path().join("own")).expect("a folder"));
    let written = write(&other, &rows, 300).expect("files");
    assert_eq!(written.entries.len(), open(&source).expect("a set").manifest().files());
}

#[test]
fn of_committers_at_once_one_wins() {
    let server = Server::s3();
    for round in 0..5 {
        let name = format!("round-{round}");
        let barrier = Barrier::new(4);
        let done: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|number| {
                    let (server, name, barrier) = (&server, &name, &barrier);
                    scope.spawn(move || {
                        // Each as a process of its own would be.
                        let store = shared(server.set(name));
                        let written = write(&store, &table(50, number), 100).expect("files");
                        let mut committer = Committer::begin(store).expect("no set yet");
                        committer.add(&written).expect("the same types");
                        barrier.wait();
                        (number, committer.publish())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let winners: Vec<u64> =
            done.iter().filter(|(_, done)| done.is_ok()).map(|(number, _)| *number).collect();
        assert_eq!(winners.len(), 1, "{done:?}");
        assert_eq!(
            done.iter().filter(|(_, done)| matches!(done, Err(SetError::Lost { generation: 1 }))).count(),
            3
        );
        compare(&open(&shared(server.set(&name))).expect("a set"), &table(50, winners[0])).expect("answers");
    }
}

#[test]
fn a_store_that_overwrites_is_refused() {
    let server = Server::s3();
    let store = shared(server.set("orders"));
    server.rules.add("PUT", "/.probe-", (0, 9), Action::IgnoreCondition);
    let refused = publish(&store, &table(10, 0), 100).expect_err("a store that overwrites");
    assert!(one_line(&refused).contains("use a store that knows If-None-Match"), "{refused}");
    assert!(matches!(&refused, SetError::Store(error) if error.source.kind() == io::ErrorKind::Unsupported));
    assert!(matches!(open(&store), Err(SetError::NoSet { .. })));
    // The probe is gone, and a store that is mended is taken.
    server.rules.clear();
    assert_eq!(store.list("").expect("a list"), []);
    publish(&store, &table(10, 0), 100).expect("a set");
    // It is not probed again.
    server.rules.asked();
    publish(&store, &table(10, 1), 100).expect("a set");
    assert!(server.rules.asked().iter().all(|asked| !asked.path.contains(".probe-")));
}

#[test]
fn an_answer_that_is_lost_is_no_loss() {
    let server = Server::s3();
    let (store, rows) = (shared(server.set("orders")), table(100, 3));
    // The manifest is there, and the client tries again or looks.
    server.rules.add("PUT", "manifests/", (0, 1), Action::LoseAnswer);
    assert_eq!(publish(&store, &rows, 100).expect("a set").generation(), 1);
    // That of a file, too: its name is fresh.
    server.rules.add("PUT", "files/", (0, 1), Action::LoseAnswer);
    match publish(&store, &rows, 100) {
        Ok(manifest) => assert_eq!(manifest.generation(), 2),
        Err(error) => assert!(one_line(&error).contains("create"), "{error}"),
    }
    compare(&open(&store).expect("a set"), &rows).expect("answers");
    // The manifest of somebody else is not ours.
    let name = pleach_set::manifest_name(9);
    store.create_new(&name, Content::Bytes(b"one")).expect("a new one");
    let error = store.create_new(&name, Content::Bytes(b"two")).expect_err("one that is there");
    assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists);
    store.create_new(&name, Content::Bytes(b"one")).expect("the same bytes");
}

#[test]
fn parts_of_objects_are_read_whole_or_not_at_all() {
    let server = Server::s3();
    let store = server.set("orders");
    let bytes: Vec<u8> = (0..1000u32).map(|number| number as u8).collect();
    store.create_new("files/a", Content::Bytes(&bytes)).expect("an object");
    let read = |part, expected| store.read("files/a", part, expected).map_err(|error| error.source.kind());
    assert_eq!(read(Part::Whole { bytes_max: 1000 }, Some(1000)).as_deref(), Ok(&bytes[..]));
    assert_eq!(read(Part::Whole { bytes_max: 999 }, None), Err(io::ErrorKind::InvalidData));
    assert_eq!(read(Part::Whole { bytes_max: 5000 }, Some(999)), Err(io::ErrorKind::InvalidData));
    assert_eq!(read(Part::Range(990..1000), Some(1000)).as_deref(), Ok(&bytes[990..]));
    assert_eq!(read(Part::Range(990..1000), Some(1001)), Err(io::ErrorKind::InvalidData));
    assert_eq!(read(Part::Range(990..1001), None), Err(io::ErrorKind::UnexpectedEof));
    assert_eq!(read(Part::Range(7..7), None).as_deref(), Ok(&[][..]));
    assert!(store.read("files/b", Part::Whole { bytes_max: 9 }, None).is_err_and(|error| error.is_missing()));
    assert_eq!(store.length("files/a").ok(), Some(1000));
    store.delete("files/a").expect("an object that is there");
    store.delete("files/a").expect("one that is not");
    assert!(store.length("files/a").is_err_and(|error| error.is_missing()));
}

#[test]
fn old_objects_become_young() {
    let server = Server::s3();
    let store = server.set("orders");
    store.create_new("files/a", Content::Bytes(b"bytes")).expect("an object");
    server.rules.asked();
    store.renew("files/a").expect("a young one");
    assert!(server.rules.asked().iter().all(|asked| asked.method != "PUT"));
    server.age_objects(Duration::from_secs(7200));
    assert!(store.age("files/a").expect("an age") >= Duration::from_secs(7100));
    store.renew("files/a").expect("an old one");
    assert!(store.age("files/a").expect("an age") < Duration::from_secs(60));
    assert_eq!(store.read("files/a", Part::Whole { bytes_max: 9 }, None).expect("its bytes"), b"bytes");
    assert_eq!(store.list("files/").expect("a list").len(), 1);
    assert!(store.renew("files/b").is_err_and(|error| error.is_missing()));
}

#[test]
fn ages_are_by_the_clock_of_the_server() {
    let server = Server::s3();
    let store = server.set("orders");
    store.create_new("files/a", Content::Bytes(b"bytes")).expect("an object");
    let future = SystemTime::now() + Duration::from_secs(3600);
    let file = std::fs::File::options().write(true).open(server.path(BUCKET).join("orders/files/a"));
    file.expect("the file").set_modified(future).expect("a time");
    // A time that is to come is no age.
    assert_eq!(store.age("files/a").expect("an age"), Duration::ZERO);
}

#[test]
fn whole_files_come_once() {
    let server = Server::s3();
    let rows = table(2_000, 4);
    publish(&shared(server.set("orders")), &rows, 500).expect("a set");
    let whole = || server.options().whole(true);
    let options = whole();
    let set = open(&shared(server.set_with("orders", options.clone()))).expect("a set");
    compare(&set, &rows).expect("answers");
    let first = options.counters().now();
    assert!(first.received_bytes >= set.manifest().file_bytes(), "{first}");
    let options = whole().download_bytes_max(0);
    let set = open(&shared(server.set_with("orders", options.clone()))).expect("a set");
    compare(&set, &rows).expect("answers from the cache");
    let second = options.counters().now();
    assert!(second.gets <= 2 && second.received_bytes < 20_000, "the manifest and the hint alone: {second}");
}

#[test]
fn downloads_have_a_limit_and_are_told() {
    let server = Server::s3();
    let rows = table(4_000, 5);
    publish(&shared(server.set("orders")), &rows, 2_000).expect("a set");
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let own = Arc::clone(&told);
    let options = server.options().whole(true).told(move |name, bytes| {
        own.lock().expect("no panic").push((name.to_owned(), bytes));
    });
    let set = open(&shared(server.set_with("orders", options.clone()))).expect("a set");
    let bytes = set.manifest().entry(0).file_bytes;
    // One file fits, two do not.
    let limited = options.download_bytes_max(bytes + bytes / 2);
    let set = open(&shared(server.set_with("orders", limited))).expect("a set");
    set.get(&Datum::U64(1)).expect("the first file");
    let error = set.get(&Datum::U64(11_000)).expect_err("the second one");
    assert!(one_line(&error).contains("give more with --max-download"), "{error}");
    let told = told.lock().expect("no panic");
    assert_eq!(told.len(), 1);
    assert!(told[0].0.starts_with("s3://lake/orders/files/") && told[0].1 == bytes, "{told:?}");
}

#[test]
fn missing_and_damaged_files_are_named() {
    let server = Server::s3();
    let rows = table(1_000, 6);
    publish(&shared(server.set("orders")), &rows, 500).expect("a set");
    let manifest = open(&shared(server.set("orders"))).expect("a set").manifest().clone();
    let name = manifest.name(0).to_owned();
    let path = server.path(BUCKET).join("orders").join(&name);
    let bytes = std::fs::read(&path).expect("the file");

    // Another byte: the digest of a download tells.
    let mut other = bytes.clone();
    other[bytes.len() / 2] ^= 1;
    server.replace(&path, &other);
    let whole = shared(server.set_with("orders", server.options().whole(true)));
    let error = open(&whole).expect("a set").get(&Datum::U64(1)).expect_err("a damaged file");
    assert!(one_line(&error).contains(&name) && error.is_damage(), "{error}");
    // Another length.
    server.replace(&path, &bytes[..bytes.len() - 1]);
    let error =
        open(&shared(server.set("orders"))).expect("a set").get(&Datum::U64(1)).expect_err("a short file");
    assert!(one_line(&error).contains(&name) && error.is_damage(), "{error}");
    // None; the other file still answers.
    std::fs::remove_file(&path).expect("the file");
    let set = open(&shared(server.set("orders"))).expect("a set");
    let error = set.get(&Datum::U64(1)).expect_err("a missing file");
    assert!(matches!(error, SetError::Missing { .. }) && one_line(&error).contains(&name), "{error}");
    assert_eq!(
        set.get(&Datum::U64(1_501)).expect("the other file"),
        rows.get(&1_501).map(|it| Datum::U64(*it))
    );
}

#[test]
fn wrong_credentials_are_one_error_without_them() {
    let server = Server::s3();
    let mut environment = server.environment();
    environment.insert("AWS_SECRET_ACCESS_KEY".to_owned(), "another-secret".to_owned());
    let options = server.options().environment(environment);
    let error = open(&shared(server.set_with("orders", options))).expect_err("a wrong secret");
    let text = one_line(&error);
    assert!(
        text.contains("403") && text.contains("AWS_ACCESS_KEY_ID") && !text.contains("another-secret"),
        "{text}"
    );
    assert!(
        matches!(&error, SetError::Store(error) if error.source.kind() == io::ErrorKind::PermissionDenied)
    );
}

#[test]
fn no_server_is_one_error() {
    let mut environment = Server::s3().environment();
    // Nobody listens there.
    environment.insert("AWS_ENDPOINT".to_owned(), "http://127.0.0.1:9".to_owned());
    let options = StoreOptions::default().environment(environment).tries(1, Duration::from_secs(1));
    let store = ObjectFolder::new(crate::kit::remote("s3://lake/orders"), options).expect("a client");
    let error = open(&shared(store)).expect_err("no server");
    assert!(one_line(&error).contains("no connection to the server"), "{error}");
}

#[test]
fn sets_work_inside_of_another_runtime() {
    let server = Server::s3();
    let rows = table(200, 7);
    publish(&shared(server.set("orders")), &rows, 100).expect("a set");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        compare(&open(&shared(server.set("orders"))).expect("a set"), &rows).expect("answers");
    });
    let set = Arc::new(open(&shared(server.set("orders"))).expect("a set"));
    std::thread::scope(|scope| {
        (0..6).for_each(|_| {
            scope.spawn(|| compare(&set, &rows).expect("answers"));
        });
    });
    let _ = source(&rows);
}
