//! The signal handler's look-up of maps, under a model checker that knows weakly ordered memory.
//!
//! The text is the product's own, over loom's atomics; the signal handler runs in a thread of its own.

#[path = "../../reader/src/sigbus/slots.rs"]
mod slots;

/// Atomics on which `slots` is built here.
mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
}

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;
use pleach_tests::figure;
use slots::Slots;
use std::sync::atomic::Ordering::Relaxed;

/// A map is given back and another one takes its slot, while a fault of somebody else is looked up, which lies
/// between the two.
fn a_slot_changes_hands(looks_again: bool) {
    let maps = Arc::new(Slots::<1>::new());
    let first = maps.take(&(10..20)) as *const slots::Slot as usize;
    let changes = {
        let maps = Arc::clone(&maps);
        thread::spawn(move || {
            maps.all().next().expect("taken").give_back();
            let next = maps.take(&(30..40));
            assert_eq!(std::ptr::from_ref(next) as usize, first, "the same slot");
        })
    };
    let found = if looks_again {
        maps.covering(25).map(|(_, end)| end)
    } else {
        maps.all()
            .filter_map(slots::Slot::look)
            .find(|seen| seen.range.contains(&25))
            .map(|seen| seen.range.end)
    };
    assert_eq!(found, None, "memory that belongs to nobody was covered");
    // A map that stays is found whatever happens beside it.
    changes.join().expect("no panic");
    assert_eq!(maps.covering(35).map(|(_, end)| end), Some(40));
    assert!(maps.covering(15).is_none());
}

#[test]
fn slots_give_no_torn_range() {
    loom::model(|| a_slot_changes_hands(true));
    figure(
        28,
        "every order of steps of a slot of the signal handler that changes hands, in weakly ordered memory",
    );
}

#[test]
#[should_panic(expected = "memory that belongs to nobody was covered")]
fn the_model_finds_a_range_that_is_not_looked_at_again() {
    loom::model(|| a_slot_changes_hands(false));
}

/// One thread meets the fault, another one reads the zeros: it must know that they are none of the file's.
fn zeros_are_read(is_lost: impl Fn(&slots::Slot) -> bool + Send + Sync + Copy + 'static) {
    let maps = Arc::new(Slots::<1>::new());
    let memory = Arc::new(AtomicUsize::new(7));
    maps.take(&(10..20));
    let reader = {
        let (maps, memory) = (Arc::clone(&maps), Arc::clone(&memory));
        thread::spawn(move || {
            let read = memory.load(Relaxed);
            let slot = maps.all().next().expect("taken");
            assert!(read == 7 || is_lost(slot), "zeros were taken for the file's bytes");
        })
    };
    let (slot, _) = maps.covering(15).expect("registered");
    slot.lose();
    memory.store(0, Relaxed);
    reader.join().expect("no panic");
}

#[test]
fn slots_that_are_lost_are_known_to_every_thread() {
    loom::model(|| zeros_are_read(slots::Slot::is_lost));
}

#[test]
#[should_panic(expected = "zeros were taken for the file's bytes")]
fn the_model_finds_a_flag_that_is_read_too_early() {
    loom::model(|| zeros_are_read(|slot| slot.is_lost.load(Relaxed)));
}

/// Two maps that are registered at once have a slot each, and a full block has another one after it.
#[test]
fn slots_are_not_shared() {
    loom::model(|| {
        let maps = Arc::new(Slots::<1>::new());
        maps.take(&(10..20));
        // Blocks are made before: what makes one of several threads make them is the standard library's.
        let taken: Vec<_> = (1..3).map(|_| maps.take(&(1..2))).collect();
        taken.iter().for_each(|slot| slot.give_back());
        let other = {
            let maps = Arc::clone(&maps);
            thread::spawn(move || {
                maps.take(&(30..40));
            })
        };
        maps.take(&(50..60));
        other.join().expect("no panic");
        for (address, end) in [(15, 20), (35, 40), (55, 60)] {
            assert_eq!(maps.covering(address).map(|(_, end)| end), Some(end));
        }
    });
}
