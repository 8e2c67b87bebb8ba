//! SIGBUS with other handlers beside ours, stray signals and many maps: each in a process of its own.

use pleach::{Index, ReadError, contain_sigbus};
use pleach_builder::{BuildOptions, build_bytes};
use std::fs::{self, File};
use std::mem::{transmute, zeroed};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const CASE: &str = "PLEACH_SIGNALS_CASE";
const PAGE: usize = 4096;

/// Signals that the other handler got, and what it hands them on to.
static SEEN: AtomicUsize = AtomicUsize::new(0);
static NEXT: AtomicUsize = AtomicUsize::new(0);

fn whole() -> Vec<u8> {
    let tuples: Vec<(u64, u64)> = (0..20_000).map(|i| (i * 3, i)).collect();
    build_bytes(&tuples, &BuildOptions::default()).expect("builds")
}

/// Opens a file in `folder`, cuts it, and meets the cut: an error, not a signal.
fn cut_is_contained(folder: &Path) {
    let path = folder.join("cut.pleach");
    fs::write(&path, whole()).expect("writes");
    let index = Index::open(&path).expect("opens");
    let view = index.typed::<u64, u64>().expect("types");
    assert_eq!(view.get(30), Ok(Some(10)));
    File::options().write(true).open(&path).expect("opens").set_len(0).expect("cut");
    assert_eq!(view.get(30), Err(ReadError::MappingLost));
}

/// Reads after the end of a file that Pleach has not mapped.
fn fault_of_others(folder: &Path) -> u8 {
    let path = folder.join("other");
    fs::write(&path, [7; PAGE]).expect("writes");
    let file = File::options().read(true).write(true).open(&path).expect("opens");
    // SAFETY: a new mapping of a file of a page, which is never unmapped; a byte of it is read.
    unsafe {
        let map = libc::mmap(null_mut(), PAGE, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(map, libc::MAP_FAILED);
        file.set_len(0).expect("cut");
        map.cast::<u8>().read_volatile()
    }
}

/// Counts; recovers from a fault by a page of zeros, as a handler of another library may.
extern "C" fn recovers(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    SEEN.fetch_add(1, SeqCst);
    // SAFETY: the kernel gives a valid siginfo; what faulted is the page that `fault_of_others` mapped.
    unsafe {
        if (*info).si_code > 0 {
            let page = (*info).si_addr() as usize / PAGE * PAGE;
            let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(page as *mut libc::c_void, PAGE, libc::PROT_READ, flags, -1, 0);
        }
    }
}

extern "C" fn counts(_: libc::c_int) {
    SEEN.fetch_add(1, SeqCst);
}

/// Counts, and hands on to the handler that was there before.
extern "C" fn hands_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    SEEN.fetch_add(1, SeqCst);
    // SAFETY: what is stored is a handler that was installed with SA_SIGINFO.
    unsafe {
        let next: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
            transmute(NEXT.load(SeqCst));
        next(signal, info, context);
    }
}

fn install(handler: usize, flags: libc::c_int) {
    // SAFETY: `sigaction` is plain data for which all zeros is valid; the handlers above only count and map.
    unsafe {
        let (mut action, mut before): (libc::sigaction, libc::sigaction) = (zeroed(), zeroed());
        (action.sa_sigaction, action.sa_flags) = (handler, flags);
        libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before);
        NEXT.store(before.sa_sigaction, SeqCst);
    }
}

fn stray() {
    // SAFETY: a signal to ourselves.
    unsafe { libc::raise(libc::SIGBUS) };
}

fn with_info(handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void)) {
    install(handler as *const () as usize, libc::SA_SIGINFO);
}

/// What happens in the child, and the signal that ends it.
type Case = (&'static str, fn(&Path), Option<i32>);

const CASES: [Case; 9] = [
    (
        "a stray signal, then a cut",
        |folder| {
            contain_sigbus();
            for _ in 0..3 {
                stray();
                cut_is_contained(folder);
            }
        },
        None,
    ),
    (
        "three hundred maps, the last of which is cut",
        |folder| {
            contain_sigbus();
            let path = folder.join("t.pleach");
            fs::write(&path, whole()).expect("writes");
            let open: Vec<Index> = (0..300).map(|_| Index::open(&path).expect("opens")).collect();
            cut_is_contained(folder);
            assert!(open.iter().all(|index| index.check_mapping().is_ok()));
            drop(open);
            cut_is_contained(folder);
        },
        None,
    ),
    (
        "a handler before ours",
        |folder| {
            with_info(recovers);
            contain_sigbus();
            for round in 1..4 {
                stray();
                assert_eq!(fault_of_others(folder), 0);
                assert_eq!(SEEN.load(SeqCst), 2 * round);
                cut_is_contained(folder);
                assert_eq!(SEEN.load(SeqCst), 2 * round, "what is ours is not handed on");
            }
        },
        None,
    ),
    (
        "a handler before ours that takes no siginfo",
        |folder| {
            install(counts as *const () as usize, 0);
            contain_sigbus();
            stray();
            stray();
            assert_eq!(SEEN.load(SeqCst), 2);
            cut_is_contained(folder);
        },
        None,
    ),
    (
        "a handler behind ours that hands on",
        |folder| {
            contain_sigbus();
            with_info(hands_on);
            stray();
            cut_is_contained(folder);
            assert!(SEEN.load(SeqCst) > 1, "faults come to us by way of it");
            cut_is_contained(folder);
        },
        None,
    ),
    (
        "a handler behind ours that hands on, and ours before it again",
        |folder| {
            contain_sigbus();
            with_info(hands_on);
            contain_sigbus();
            contain_sigbus();
            stray();
            assert_eq!(SEEN.load(SeqCst), 1, "handed on once");
            cut_is_contained(folder);
            assert_eq!(SEEN.load(SeqCst), 1);
        },
        None,
    ),
    (
        "a handler behind ours that hands nothing on, and ours before it again",
        |folder| {
            contain_sigbus();
            with_info(recovers);
            contain_sigbus();
            cut_is_contained(folder);
            assert_eq!(SEEN.load(SeqCst), 0);
            assert_eq!(fault_of_others(folder), 0);
            stray();
            assert_eq!(SEEN.load(SeqCst), 2);
            cut_is_contained(folder);
        },
        None,
    ),
    (
        "a fault of others, which nobody handles",
        |folder| {
            contain_sigbus();
            fault_of_others(folder);
        },
        Some(libc::SIGBUS),
    ),
    (
        "a fault of others, and the signal was ignored",
        |folder| {
            install(libc::SIG_IGN, 0);
            contain_sigbus();
            stray();
            cut_is_contained(folder);
            fault_of_others(folder);
        },
        Some(libc::SIGBUS),
    ),
];

/// Does its work only in a child.
#[test]
fn child() {
    let Ok(name) = std::env::var(CASE) else { return };
    let (_, run, _) = CASES.iter().find(|(case, ..)| *case == name).expect("a case");
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path());
    println!("ran through");
}

#[test]
fn handlers_live_side_by_side() {
    let children = CASES.iter().map(|(name, ..)| {
        let mut child = Command::new(std::env::current_exe().expect("this test"));
        let output = child.args(["--exact", "child", "--nocapture"]).env(CASE, name).output();
        (name, output.expect("runs"))
    });
    for ((name, output), (_, _, signal)) in children.zip(&CASES) {
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), *signal, "{name}: {}: {text}", output.status);
        assert_eq!(text.contains("ran through"), signal.is_none(), "{name}: {text}");
    }
}
