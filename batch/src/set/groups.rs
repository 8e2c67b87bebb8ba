//! Grouping the elements of a batch by file.

use crate::error::Result;
use crate::keys::{Keys, Texts};
use crate::numbers::{Lane, LaneType, Numbers, each_lane};
use crate::pool::Pool;
use pleach::Queries;
use pleach_format::logical::Ratio;
use std::ops::Range;

/// The home of an element that no file is asked about.
pub(crate) const NO_FILE: u32 = u32::MAX;
/// The slot of an element that no file is asked about.
pub(crate) const NO_SLOT: usize = usize::MAX;
/// Numbers that are copied at a time.
const PIECE: usize = 1024;

/// The elements of a batch in the order of the files that answer for them, and in their own order in each file.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Place in that order of each element; [`NO_SLOT`] for one that no file is asked about.
    pub(crate) slots: Vec<usize>,
    /// The files that are asked, ascending, and the places of their elements.
    pub(crate) files: Vec<(usize, Range<usize>)>,
    /// Number of elements that files are asked about.
    pub(crate) len: usize,
}

impl Groups {
    /// Groups elements by their homes. O(elements + files).
    pub(crate) fn new(homes: &[u32], files: usize) -> Self {
        let mut next = vec![0usize; files];
        for &home in homes.iter().filter(|&&home| home != NO_FILE) {
            next[home as usize] += 1;
        }
        let (mut groups, mut len) = (Vec::new(), 0);
        for (file, next) in next.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            let count = std::mem::replace(next, len);
            groups.push((file, len..len + count));
            len += count;
        }
        let slot = |&home: &u32| match home {
            NO_FILE => NO_SLOT,
            home => {
                next[home as usize] += 1;
                next[home as usize] - 1
            }
        };
        Self { slots: homes.iter().map(slot).collect(), files: groups, len }
    }

    /// Puts elements in the order of the files.
    pub(crate) fn ordered<T: Copy + Default>(&self, elements: impl Iterator<Item = T>) -> Vec<T> {
        let mut ordered = vec![T::default(); self.len];
        for (element, &slot) in elements.zip(&self.slots) {
            if slot != NO_SLOT {
                ordered[slot] = element;
            }
        }
        ordered
    }

    /// Returns the parts of groups that are tasks: file, and places.
    pub(crate) fn tasks(&self, pool: &Pool<'_>) -> impl Iterator<Item = (usize, Range<usize>)> + use<'_> {
        let each = pool.task_keys(self.len);
        self.files.iter().flat_map(move |(file, places)| {
            let starts = places.clone().step_by(each);
            starts.map(move |start| (*file, start..places.end.min(start + each)))
        })
    }

    /// Has `ask` answer each task, with the buffers of its elements: those of the order of the files.
    pub(crate) fn answer<T: Send>(
        &self,
        (mut values, mut flags): (&mut [T], &mut [u8]),
        pool: &Pool<'_>,
        ask: impl Fn(usize, Range<usize>, &mut [T], &mut [u8]) -> Result<usize> + Sync,
    ) -> Result<usize> {
        let tasks = self.tasks(pool).map(|(file, places)| {
            let (own_values, rest_values) = std::mem::take(&mut values).split_at_mut(places.len());
            let (own_flags, rest_flags) = std::mem::take(&mut flags).split_at_mut(places.len());
            (values, flags) = (rest_values, rest_flags);
            (file, places, own_values, own_flags)
        });
        pool.sum(tasks, |(file, places, values, flags)| ask(file, places, values, flags))
    }
}

/// The keys of a batch in the order of the files.
pub(crate) enum Grouped<'a> {
    /// Numbers as they were given, in this machine's byte order.
    Numbers { bytes: Vec<u8>, lane: Lane, ratio: Option<Ratio> },
    /// Texts, by their places in the batch.
    Texts { texts: &'a dyn Texts, places: Vec<usize> },
}

impl<'a> Grouped<'a> {
    pub(crate) fn new(keys: &Keys<'a>, groups: &Groups) -> Self {
        match keys {
            Keys::Numbers(numbers) => {
                let lane = numbers.lane();
                let bytes = each_lane!(lane, T => copied::<T>(numbers, groups));
                Self::Numbers { bytes, lane, ratio: numbers.ratio() }
            }
            Keys::Texts(texts) => Self::Texts { texts: *texts, places: groups.ordered(0..texts.len()) },
        }
    }

    /// Calls `ask` with the keys at some places.
    pub(crate) fn with<R>(&self, places: Range<usize>, ask: impl FnOnce(&Keys<'_>) -> R) -> R {
        match self {
            Self::Numbers { bytes, lane, ratio } => {
                let each = lane.bytes();
                let numbers = Numbers::in_bytes(&bytes[places.start * each..places.end * each], *lane);
                ask(&Keys::Numbers(numbers.with_ratio(*ratio)))
            }
            Self::Texts { texts, places: all } => {
                ask(&Keys::Texts(&Picked { texts: *texts, places: &all[places] }))
            }
        }
    }
}

/// Copies the numbers that files are asked about into the order of the files.
fn copied<T: LaneType>(numbers: &Numbers<'_>, groups: &Groups) -> Vec<u8> {
    let mut bytes = vec![0; groups.len * size_of::<T>()];
    let mut piece = [T::default(); PIECE];
    for (at, slots) in groups.slots.chunks(PIECE).enumerate() {
        numbers.read(at * PIECE, &mut piece[..slots.len()]);
        for (number, &slot) in piece.iter().zip(slots) {
            if slot != NO_SLOT {
                let raw = zerocopy::IntoBytes::as_bytes(number);
                bytes[slot * size_of::<T>()..][..size_of::<T>()].copy_from_slice(raw);
            }
        }
    }
    bytes
}

/// Some texts of a batch. No file is asked about nulls.
struct Picked<'a> {
    texts: &'a dyn Texts,
    places: &'a [usize],
}

impl Queries for Picked<'_> {
    fn len(&self) -> usize {
        self.places.len()
    }
    #[inline]
    fn get(&self, index: usize) -> &[u8] {
        self.texts.get(self.places[index])
    }
}

impl Texts for Picked<'_> {
    fn is_null(&self, _: usize) -> bool {
        false
    }
}
