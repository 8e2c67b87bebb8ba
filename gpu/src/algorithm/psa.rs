//! Partially-sorted aggregation: before the search, queries are sorted by their highest bits, each with its
//! number.
//!
//! Equation 2 of the paper on Harmonia: queries that fall into the same cache line of keys need no order
//! among them. Of B bits, only N = B - log2(2^B / T * K) are worth sorting by, with T keys in the tree and K
//! in a line.
//!
//! Here B is the number of bits of the distance from the table's smallest key to its largest, and queries are
//! sorted by their distance from the smallest, so that high bits shared by all keys are not sorted by. N bits
//! are spread evenly over the fewest passes with digits of 8 bits (kernels/sort.cu).
//!
//! Batches are sorted in chunks of [`CHUNK`] queries, so that the room is bounded. All streams share it: a
//! batch waits on the device until the previous one has been searched, and a batch longer than all before it
//! waits on the host.

use super::QuerySort;
use crate::driver::LaunchShape;
use crate::kernel::{Batch, Instance, SourceSpec};
use crate::memory::DeviceBuffer;
use crate::resident::{Resident, grid};
use crate::stream::Event;
use crate::{GpuError, Stream};

/// Maximum number of queries sorted together: a multiple of 32.
pub(crate) const CHUNK: u64 = 1 << 27;
/// Threads per block: SORTERS in sort.cu.
const SORTERS: u32 = 512;
/// Bytes of shared memory that sort.cu declares, with some reserve.
const STATIC_BYTES: u32 = 3 << 10;
/// Number of values of a digit.
const DIGITS: u64 = 256;
/// Maximum number of bits of a digit.
const DIGIT_BITS: u32 = 8;
/// Maximum number of passes: for words of 128 bits.
const PASSES_MAX: u64 = 16;
/// Bytes per line of the level 1 cache.
const LINE_BYTES: u64 = 128;

/// Returns the queries per thread of a tile.
const fn items(word_bytes: u8) -> u32 {
    if word_bytes == 16 { 8 } else { 12 }
}

crate::kernel! {
    /// Queries sorted by some of their bits.
    SORT = SourceSpec {
        numbers: |instance| vec![
            ("BYTES_OF_SORT", size_of::<Pass>() as u64),
            ("ITEMS", items(instance.word_bytes).into()),
        ],
        ..SourceSpec::new("sort.cu", include_str!("../kernels/sort.cu"))
    };
    /// Counts the digits of queries.
    sort_count(pass: Pass);
    /// Sorts queries by a digit.
    sort_pass(pass: Pass);
}

/// Arguments of a pass; the same as Sort in sort.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Pass {
    queries: u64,
    numbers: u64,
    queries_to: u64,
    numbers_to: u64,
    counts: u64,
    told: u64,
    turn: u64,
    low: [u64; 2],
    span: [u64; 2],
    count: u32,
    first: u32,
    kind: u32,
    shift: u32,
    width: u32,
    bits: u32,
    passes: u32,
    pass: u32,
}

/// The bits to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// Word from which distances are counted.
    low: u128,
    /// Maximum distance; longer ones are treated as this.
    span: u128,
    /// Number of bits below those that are sorted by.
    shift: u32,
    /// Number of bits that are sorted by.
    pub(crate) bits: u32,
}

impl Digits {
    /// Returns the bits that a form of sorting uses for a table; `None` if it uses none.
    pub(crate) fn new(sort: QuerySort, resident: &Resident) -> Option<Self> {
        let (low, high) = (resident.low, resident.high);
        Self::of_keys(sort, (low, high), resident.tuples, resident.word_bytes)
    }

    fn of_keys(sort: QuerySort, (low, high): (u128, u128), tuples: u64, word_bytes: u8) -> Option<Self> {
        let word_bits = u32::from(word_bytes) * 8;
        let whole = u128::MAX >> (u128::BITS - word_bits);
        let span = high - low;
        let span_bits = u128::BITS - span.leading_zeros();
        let wanted = match sort {
            QuerySort::None => 0,
            QuerySort::Full => return Some(Self { low: 0, span: whole, shift: 0, bits: word_bits }),
            QuerySort::Bits(bits) => bits.into(),
            QuerySort::Partial | QuerySort::Auto => {
                let lines = tuples.div_ceil(LINE_BYTES / u64::from(word_bytes));
                u64::BITS - (lines - 1).leading_zeros()
            }
        };
        let bits = wanted.min(span_bits);
        (bits > 0).then_some(Self { low, span, shift: span_bits - bits, bits })
    }

    fn passes(self) -> u32 {
        self.bits.div_ceil(DIGIT_BITS)
    }
}

/// Sorts batches.
#[derive(Debug)]
pub(crate) struct Psa {
    instance: Instance,
    digits: Digits,
}

/// Room for a chunk, and the end of the last search of the queries sorted there.
#[derive(Debug)]
pub(crate) struct Room {
    buffer: DeviceBuffer,
    count: u64,
    used: Event,
}

/// Addresses of the sorted queries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sorted {
    /// Address of the encoded words.
    pub(crate) queries: u64,
    /// Address of the queries' numbers, u32.
    pub(crate) numbers: u64,
}

/// Returns the bytes of the parts of a room: queries and numbers, twice each, then counts, turns and tile
/// states.
fn parts(count: u64, word_bytes: u64, passes: u64, tiles: u64) -> [u64; 5] {
    let lines = |bytes: u64| bytes.next_multiple_of(256);
    let (queries, numbers) = (lines(count * word_bytes), lines(count * 4));
    let control = (PASSES_MAX * DIGITS + PASSES_MAX + passes * tiles * DIGITS) * 4;
    [queries, queries, numbers, numbers, control]
}

impl Psa {
    /// Creates the sorter of a table's batches; `None` if a block has too little shared memory.
    pub(crate) fn new(resident: &Resident, digits: Digits) -> Option<Self> {
        let this = Self { instance: resident.instance(&SORT, 0), digits };
        let most = resident.gpu.limits().shared_bytes_max;
        (this.shared_bytes() + STATIC_BYTES <= most).then_some(this)
    }

    /// Returns the shared memory per block, without that declared by sort.cu: a tile's words, and a count per
    /// warp and digit.
    fn shared_bytes(&self) -> u32 {
        let tile = SORTERS * items(self.instance.word_bytes);
        tile * u32::from(self.instance.word_bytes) + SORTERS / 32 * DIGITS as u32 * 4
    }

    fn tile(&self) -> u64 {
        u64::from(SORTERS * items(self.instance.word_bytes))
    }

    fn parts(&self, count: u64) -> [u64; 5] {
        let tiles = count.div_ceil(self.tile());
        parts(count, self.instance.word_bytes.into(), self.digits.passes().into(), tiles)
    }

    /// Returns room for chunks of a batch of `count` queries, which work queued on `stream` may use from now
    /// on.
    pub(crate) fn room<'r>(
        &self,
        stream: &Stream,
        room: &'r mut Option<Room>,
        count: u64,
    ) -> Result<&'r Room, GpuError> {
        let count = count.min(CHUNK);
        match room {
            Some(room) if room.count >= count => stream.wait_for(&room.used)?,
            _ => {
                if let Some(room) = room.take() {
                    room.used.wait()?;
                }
                let buffer = DeviceBuffer::new(stream.gpu(), self.parts(count).iter().sum())?;
                *room = Some(Room { buffer, count, used: Event::new(stream.gpu(), false)? });
            }
        }
        room.as_ref().map_or_else(|| unreachable!("made above"), Ok)
    }

    /// Queues sorting a chunk, whose queries are numbered from `first`. Numbers are written to `numbers_to`,
    /// or stay in the room if that is 0.
    ///
    /// # Safety
    /// The chunk must have the number of queries that it states, at most [`CHUNK`] and the room's number;
    /// `numbers_to` must have room for as many numbers. All of it must stay alive until the work is done.
    pub(crate) unsafe fn sort(
        &self,
        stream: &Stream,
        room: &Room,
        chunk: &Batch,
        first: u32,
        numbers_to: u64,
    ) -> Result<Sorted, GpuError> {
        let gpu = stream.gpu();
        let tiles = chunk.count.div_ceil(self.tile());
        let parts = self.parts(room.count);
        let at = |part: usize| room.buffer.address() + parts[..part].iter().sum::<u64>();
        let control_at = at(4);
        let counts_bytes = PASSES_MAX * DIGITS * 4;
        let turn_at = control_at + counts_bytes;
        let told_at = turn_at + PASSES_MAX * 4;
        let passes = self.digits.passes();
        let told_bytes = tiles * DIGITS * 4;
        let control_bytes = told_at - control_at + u64::from(passes) * told_bytes;
        room.buffer.part(control_at - room.buffer.address(), control_bytes).fill(stream, 0)?;
        let halves = |word: u128| [word as u64, (word >> 64) as u64];
        let mut pass = Pass {
            queries: chunk.queries,
            numbers: 0,
            queries_to: 0,
            numbers_to: 0,
            counts: control_at,
            told: told_at,
            turn: turn_at,
            low: halves(self.digits.low),
            span: halves(self.digits.span),
            count: chunk.count as u32,
            first,
            kind: chunk.kind.into(),
            shift: self.digits.shift,
            width: self.digits.bits.div_ceil(passes),
            bits: self.digits.bits,
            passes,
            pass: 0,
        };
        let shape = grid(gpu, self.instance, "sort_count", SORTERS, 0, chunk.count)?;
        // SAFETY: the caller guarantees the chunk; the counts were zeroed above.
        unsafe { sort_count(stream, self.instance, shape, &pass) }?;
        let shape = LaunchShape { blocks: tiles as u32, threads: SORTERS, shared_bytes: self.shared_bytes() };
        for number in 0..passes {
            let turn = (number % 2) as usize;
            pass.queries_to = at(turn);
            pass.numbers_to = if number + 1 == passes && numbers_to != 0 { numbers_to } else { at(2 + turn) };
            pass.pass = number;
            // SAFETY: the caller guarantees the chunk; the room holds two copies of it and the states of its
            // tiles.
            unsafe { sort_pass(stream, self.instance, shape, &pass) }?;
            (pass.queries, pass.numbers, pass.kind) = (pass.queries_to, pass.numbers_to, 0);
            pass.told += told_bytes;
        }
        Ok(Sorted { queries: pass.queries, numbers: pass.numbers })
    }
}

/// Words and numbers that are sorted completely, outside of a batch: their addresses, and two places that the
/// passes use in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    /// Addresses of the words and of their numbers; the latter may be 0, and ranks are used.
    pub(crate) from: [u64; 2],
    /// Addresses to sort to, in turn.
    pub(crate) to: [[u64; 2]; 2],
    /// Number of words, below 2^30.
    pub(crate) count: u32,
}

/// Returns the bytes for counts and tile states that sorting `count` words by all their bits needs.
pub(crate) fn control_bytes(count: u32, word_bytes: u8) -> u64 {
    let tiles = u64::from(count.div_ceil(SORTERS * items(word_bytes)));
    (PASSES_MAX * DIGITS + PASSES_MAX + u64::from(word_bytes) * tiles * DIGITS) * 4
}

/// Queues a stable sort of words by all their bits, with their numbers. Returns the index of the place that
/// holds them then; `None` if a block has too little shared memory.
///
/// # Safety
/// The columns must have `count` words and numbers, `control` the bytes of [`control_bytes`]; all of it must
/// stay alive until the work is done.
pub(crate) unsafe fn sort_columns(
    stream: &Stream,
    instance: Instance,
    columns: &Columns,
    control: &DeviceBuffer,
) -> Result<Option<usize>, GpuError> {
    let (gpu, word_bytes) = (stream.gpu(), instance.word_bytes);
    let tile = SORTERS * items(word_bytes);
    let shared_bytes = tile * u32::from(word_bytes) + SORTERS / 32 * DIGITS as u32 * 4;
    if shared_bytes + STATIC_BYTES > gpu.limits().shared_bytes_max {
        return Ok(None);
    }
    control.fill(stream, 0)?;
    let tiles = columns.count.div_ceil(tile);
    let turn = control.address() + PASSES_MAX * DIGITS * 4;
    let mut pass = Pass {
        queries: columns.from[0],
        numbers: columns.from[1],
        queries_to: 0,
        numbers_to: 0,
        counts: control.address(),
        told: turn + PASSES_MAX * 4,
        turn,
        low: [0; 2],
        span: [u64::MAX; 2],
        count: columns.count,
        first: 0,
        kind: 0,
        shift: 0,
        width: DIGIT_BITS,
        bits: u32::from(word_bytes) * 8,
        passes: word_bytes.into(),
        pass: 0,
    };
    let shape = grid(gpu, instance, "sort_count", SORTERS, 0, columns.count.into())?;
    // SAFETY: the caller guarantees columns and `control`; the counts were zeroed above.
    unsafe { sort_count(stream, instance, shape, &pass) }?;
    let shape = LaunchShape { blocks: tiles, threads: SORTERS, shared_bytes };
    let mut place = 0;
    for number in 0..u32::from(word_bytes) {
        place = number as usize % 2;
        [pass.queries_to, pass.numbers_to] = columns.to[place];
        pass.pass = number;
        // SAFETY: the caller guarantees columns and `control`; the counts were zeroed above.
        unsafe { sort_pass(stream, instance, shape, &pass) }?;
        [pass.queries, pass.numbers] = columns.to[place];
        pass.told += u64::from(tiles) * DIGITS * 4;
    }
    Ok(Some(place))
}

impl Room {
    /// Marks the end of the work on `stream` that uses the room.
    pub(crate) fn leave(&self, stream: &Stream) -> Result<(), GpuError> {
        self.used.record(stream)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_equation_2() {
        let bits = |low: u128, high: u128, tuples: u64, word_bytes: u8| {
            let digits = Digits::of_keys(QuerySort::Partial, (low, high), tuples, word_bytes);
            digits.map(|digits| (digits.bits, digits.shift))
        };
        // The paper's example: 2^23 keys of 64 bits, 16 to a line.
        assert_eq!(bits(0, u64::MAX.into(), 1 << 23, 8), Some((19, 45)));
        // Consecutive numbers, from any start.
        assert_eq!(bits(1 << 40, (1 << 40) + (1 << 23) - 1, 1 << 23, 8), Some((19, 4)));
        assert_eq!(bits(0x7F_FFFF, 0x80_0000 + (1 << 20) - 2, 1 << 20, 4), Some((15, 5)));
        // The keys of one line need no order; neither does a single key.
        assert_eq!(bits(0, 1000, 16, 8), None);
        assert_eq!(bits(7, 7, 1 << 20, 8), None);
        let full = Digits::of_keys(QuerySort::Full, (7, 7), 1, 4);
        assert_eq!(full.map(|digits| (digits.bits, digits.passes())), Some((32, 4)));
        let some = Digits::of_keys(QuerySort::Bits(22), (0, u64::MAX.into()), 1, 8).expect("bits");
        assert_eq!((some.passes(), some.shift), (3, 42));
    }
}
