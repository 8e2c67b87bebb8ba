//! Interleavings of threads and processes, under a model checker: shuttle draws the orders of their steps.
//!
//! The texts that run here are the product's own: how readers get the current generation of a file, and how
//! one builder at a time takes a name. The file system around them has a few words, whose calls are steps.

#[path = "../../reader/src/live/current.rs"]
mod current;
#[path = "../../builder/src/lock.rs"]
mod lock;

/// Primitives on which `current` is built here.
mod sync {
    pub use shuttle::sync::{Arc, Mutex, RwLock};
    pub use std::sync::PoisonError;
}

use current::Current;
use lock::{LockName, Taken};
use pleach_tests::{figure, is_long};
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use std::collections::BTreeMap;
use std::io;
use std::sync::PoisonError;

/// Schedules of each model.
fn schedules() -> usize {
    if is_long() { 100_000 } else { 2_000 }
}

/// A file that is open; the world knows how many are.
struct Open {
    generation: usize,
    world: Arc<World>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.world.open[self.generation].fetch_sub(1, SeqCst);
    }
}

/// A name, which leads to a generation, and how often each generation is open.
struct World {
    name: AtomicUsize,
    open: Vec<AtomicUsize>,
}

impl World {
    fn open(self: &Arc<Self>) -> Open {
        let generation = self.name.load(SeqCst);
        self.open[generation].fetch_add(1, SeqCst);
        Open { generation, world: Arc::clone(self) }
    }

    /// As the product does: a look at the name first, and the file is opened only if that is another one.
    fn next(self: &Arc<Self>, now: &Open) -> Result<Option<Open>, ()> {
        Ok((self.name.load(SeqCst) != now.generation).then(|| self.open()))
    }
}

const GENERATIONS: usize = 4;

fn publish_refresh_and_let_go() {
    let world = Arc::new(World {
        name: AtomicUsize::new(0),
        open: (0..GENERATIONS).map(|_| AtomicUsize::new(0)).collect(),
    });
    let live = Arc::new(Current::new(world.open()));
    let is_new = |old: &Open, next: &Open| old.generation != next.generation;
    let publisher = {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            for generation in 1..GENERATIONS {
                // A rename: one step.
                world.name.store(generation, SeqCst);
            }
        })
    };
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (world, live) = (Arc::clone(&world), Arc::clone(&live));
            thread::spawn(move || {
                let mut before = 0;
                for _ in 0..3 {
                    let index = live.get();
                    assert!(index.generation >= before, "an older generation than before");
                    before = index.generation;
                    // A held generation stays open, even if another thread refreshes in the meantime.
                    thread::yield_now();
                    assert!(world.open[index.generation].load(SeqCst) > 0, "closed under a reader");
                    drop(index);
                    live.refresh(|now| world.next(now), is_new).expect("opens");
                }
            })
        })
        .collect();
    publisher.join().expect("no panic");
    for reader in readers {
        reader.join().expect("no panic");
    }
    // Whoever looks next sees the last one, and the look after that holds nothing else.
    live.refresh(|now| world.next(now), is_new).expect("opens");
    live.refresh(|now| world.next(now), is_new).expect("opens");
    assert_eq!(live.get().generation, GENERATIONS - 1);
    for (generation, open) in world.open.iter().enumerate() {
        assert_eq!(open.load(SeqCst), usize::from(generation == GENERATIONS - 1), "generation {generation}");
    }
}

#[test]
fn generations_are_handed_over() {
    shuttle::check_random(publish_refresh_and_let_go, schedules());
    figure(28, &format!("{} schedules of publishing, refreshing and letting go", schedules()));
}

/// A folder with one name in it.
#[derive(Default)]
struct Folder {
    /// File to which the name leads.
    name: Option<usize>,
    next: usize,
    /// Holders of the locked files.
    locked: BTreeMap<usize, usize>,
    text: BTreeMap<usize, String>,
}

struct Name {
    folder: Arc<Mutex<Folder>>,
    builder: usize,
    patience: AtomicUsize,
}

struct Handle {
    file: usize,
    builder: usize,
    folder: Arc<Mutex<Folder>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Dropped by a panic, too, after which the other threads still go on.
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if folder.locked.get(&self.file) == Some(&self.builder) {
            folder.locked.remove(&self.file);
        }
    }
}

impl Name {
    fn folder(&self) -> shuttle::sync::MutexGuard<'_, Folder> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LockName for Name {
    type File = Handle;

    fn open(&self) -> io::Result<Handle> {
        let mut folder = self.folder();
        let file = match folder.name {
            Some(file) => file,
            None => {
                folder.next += 1;
                folder.name = Some(folder.next);
                folder.next
            }
        };
        Ok(Handle { file, builder: self.builder, folder: Arc::clone(&self.folder) })
    }
    fn try_lock(&self, file: &Handle) -> io::Result<Option<bool>> {
        let mut folder = self.folder();
        Ok(Some(*folder.locked.entry(file.file).or_insert(self.builder) == self.builder))
    }
    fn leads_to(&self, file: &Handle) -> io::Result<bool> {
        Ok(self.folder().name == Some(file.file))
    }
    fn holder(&self, file: &Handle) -> io::Result<String> {
        Ok(self.folder().text.get(&file.file).cloned().unwrap_or_default())
    }
    fn set_holder(&self, file: &Handle, holder: &str) -> io::Result<()> {
        self.folder().text.insert(file.file, holder.to_owned());
        Ok(())
    }
    fn remove(&self) {
        self.folder().name = None;
    }
    fn wait(&self) -> bool {
        thread::yield_now();
        self.patience.fetch_add(1, SeqCst) < 3
    }
}

/// Builders that take a name, work, and give it back; one of them is killed at work. `remove_late` gives the lock
/// back before the name is removed, which is wrong.
fn builders_take_turns(remove_late: bool) {
    let folder = Arc::new(Mutex::new(Folder::default()));
    let working = Arc::new(AtomicUsize::new(0));
    let builders: Vec<_> = (0..4)
        .map(|builder| {
            let (folder, working) = (Arc::clone(&folder), Arc::clone(&working));
            thread::spawn(move || {
                let name = Name { folder, builder, patience: AtomicUsize::new(0) };
                for _ in 0..2 {
                    match lock::take(&name, &format!("builder {builder}")).expect("an answer") {
                        Taken::Held(file) => {
                            assert_eq!(working.fetch_add(1, SeqCst), 0, "two builders at once");
                            thread::yield_now();
                            working.fetch_sub(1, SeqCst);
                            match (builder, remove_late) {
                                // Killed: the kernel closes the file, and the name stays.
                                (0, _) => drop(file),
                                (_, true) => {
                                    drop(file);
                                    name.remove();
                                }
                                (_, false) => {
                                    name.remove();
                                    drop(file);
                                }
                            }
                        }
                        Taken::Unknown => unreachable!("files can be locked here"),
                        Taken::Busy(other) => {
                            assert!(other.is_empty() || other.starts_with("builder "), "{other}")
                        }
                    }
                }
            })
        })
        .collect();
    for builder in builders {
        builder.join().expect("no panic");
    }
}

#[test]
fn one_builder_at_a_time() {
    shuttle::check_random(|| builders_take_turns(false), schedules());
    figure(28, &format!("{} schedules of four builders and one lock file, one of them killed", schedules()));
}

#[test]
#[should_panic(expected = "two builders at once")]
fn the_model_finds_a_name_that_is_removed_too_late() {
    shuttle::check_random(|| builders_take_turns(true), 100_000);
}
