//! Partially-sorted aggregation: queries sorted by their highest bits, each with its number, before they are searched.
//!
//! Equation 2 of the paper on Harmonia: queries that fall into the same cache line of keys need no order among them, so
//! of B bits N = B - log2(2^B / T * K) are worth sorting by, with T keys in the tree and K in a line. Here B is the
//! number of bits of the distance from the table's smallest key to its largest, and queries are sorted by distances
//! from the smallest: high bits that all keys share are no bits to sort by. N bits are spread evenly over the fewest
//! passes with digits of 8 bits (kernels/sort.cu).
//!
//! Batches are sorted in chunks of [`CHUNK`] queries, so that room stays bounded. The room is one for all streams: a
//! batch waits on the device until the one before has been searched, and a longer one than all before on the host.

use super::QuerySort;
use crate::driver::LaunchShape;
use crate::kernel::Instance;
use crate::kernel::table::{Batch, Source, sort_count, sort_pass};
use crate::memory::DeviceBuffer;
use crate::resident::{Resident, grid};
use crate::stream::Event;
use crate::{GpuError, Stream};

/// Most queries that are sorted together: a multiple of 32.
pub(crate) const CHUNK: u64 = 1 << 27;
/// Threads of a block: SORTERS in sort.cu.
const SORTERS: u32 = 512;
/// Bytes of shared memory that sort.cu declares, and some more.
const STATIC_BYTES: u32 = 3 << 10;
/// Values of a digit.
const DIGITS: u64 = 256;
/// Bits of a digit at most.
const DIGIT_BITS: u32 = 8;
/// Most passes: of words of 128 bits.
const PASSES_MAX: u64 = 16;
/// Bytes of a line of the level 1 cache.
const LINE_BYTES: u64 = 128;

/// Queries of a thread of a tile.
const fn items(word_bytes: u8) -> u32 {
    if word_bytes == 16 { 8 } else { 12 }
}

/// Definitions of sort.cu.
pub(crate) fn numbers(word_bytes: u8) -> [(&'static str, u64); 2] {
    [("BYTES_OF_SORT", size_of::<Pass>() as u64), ("ITEMS", items(word_bytes).into())]
}

/// What a pass takes; the same as Sort in sort.cu.
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

/// Which bits are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// Distances from here count.
    low: u128,
    /// Longer ones are as long as this.
    span: u128,
    /// Bits below those that are sorted by.
    shift: u32,
    /// Bits that are sorted by.
    pub(crate) bits: u32,
}

impl Digits {
    /// Those that a form of sorting wants of a table; `None` if it wants none.
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
            QuerySort::Partial => {
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

/// Room for a chunk, and the end of the last search of what was sorted there.
#[derive(Debug)]
pub(crate) struct Room {
    buffer: DeviceBuffer,
    count: u64,
    used: Event,
}

/// Where what was sorted stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sorted {
    /// Address of encoded words.
    pub(crate) queries: u64,
    /// Address of their numbers, u32.
    pub(crate) numbers: u64,
}

/// Bytes of the parts of a room: queries and numbers, twice each, then counts, turns and what tiles tell.
fn parts(count: u64, word_bytes: u64, passes: u64, tiles: u64) -> [u64; 5] {
    let lines = |bytes: u64| bytes.next_multiple_of(256);
    let (queries, numbers) = (lines(count * word_bytes), lines(count * 4));
    let control = (PASSES_MAX * DIGITS + PASSES_MAX + passes * tiles * DIGITS) * 4;
    [queries, queries, numbers, numbers, control]
}

impl Psa {
    /// What sorts batches of a table; `None` where a block has too little shared memory.
    pub(crate) fn new(resident: &Resident, digits: Digits) -> Option<Self> {
        let this = Self { instance: resident.instance(Source::Sort, 0), digits };
        let most = resident.gpu.limits().shared_bytes_max;
        (this.shared_bytes() + STATIC_BYTES <= most).then_some(this)
    }

    /// Shared memory of a block, beside what sort.cu declares: a tile's words, a count a warp and digit.
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

    /// Room for chunks of a batch of `count` queries, which work queued on `stream` may use from now on.
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

    /// Queues sorting a chunk; its queries count from `first`. Numbers go to `numbers_to`, or stay in the room if
    /// that is 0.
    ///
    /// # Safety
    /// The chunk's queries are as many as it says, and no more than [`CHUNK`] and the room's; so are those at
    /// `numbers_to`. All of it is alive until the work is done.
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
            kind: chunk.kind,
            shift: self.digits.shift,
            width: self.digits.bits.div_ceil(passes),
            bits: self.digits.bits,
            passes,
            pass: 0,
        };
        let shape = grid(gpu, self.instance, "sort_count", SORTERS, 0, chunk.count)?;
        // SAFETY: the caller's promise; the counts were zeroed above.
        unsafe { sort_count(stream, self.instance, shape, &pass) }?;
        let shape = LaunchShape { blocks: tiles as u32, threads: SORTERS, shared_bytes: self.shared_bytes() };
        for number in 0..passes {
            let turn = (number % 2) as usize;
            pass.queries_to = at(turn);
            pass.numbers_to = if number + 1 == passes && numbers_to != 0 { numbers_to } else { at(2 + turn) };
            pass.pass = number;
            // SAFETY: as above; the room holds two chunks and what as many tiles tell.
            unsafe { sort_pass(stream, self.instance, shape, &pass) }?;
            (pass.queries, pass.numbers, pass.kind) = (pass.queries_to, pass.numbers_to, 0);
            pass.told += told_bytes;
        }
        Ok(Sorted { queries: pass.queries, numbers: pass.numbers })
    }
}

/// Words and numbers that are sorted whole, outside of a batch: where they are, and two places in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    /// Addresses of words and of their numbers, which may be 0 for their ranks.
    pub(crate) from: [u64; 2],
    /// Addresses to sort to, by turns.
    pub(crate) to: [[u64; 2]; 2],
    /// How many, below 2^30.
    pub(crate) count: u32,
}

/// Bytes that sorting so many words by all their bits wants for counts and for what tiles tell.
pub(crate) fn control_bytes(count: u32, word_bytes: u8) -> u64 {
    let tiles = u64::from(count.div_ceil(SORTERS * items(word_bytes)));
    (PASSES_MAX * DIGITS + PASSES_MAX + u64::from(word_bytes) * tiles * DIGITS) * 4
}

/// Queues sorting words by all their bits, with their numbers, stable; which of the places they are in then. `None`
/// where a block has too little shared memory.
///
/// # Safety
/// The columns have as many words and numbers as they say, `control` the bytes of [`control_bytes`]; all of it is alive
/// until the work is done.
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
    // SAFETY: the caller's promise; the counts were zeroed above.
    unsafe { sort_count(stream, instance, shape, &pass) }?;
    let shape = LaunchShape { blocks: tiles, threads: SORTERS, shared_bytes };
    let mut place = 0;
    for number in 0..u32::from(word_bytes) {
        place = number as usize % 2;
        [pass.queries_to, pass.numbers_to] = columns.to[place];
        pass.pass = number;
        // SAFETY: as above.
        unsafe { sort_pass(stream, instance, shape, &pass) }?;
        [pass.queries, pass.numbers] = columns.to[place];
        pass.told += u64::from(tiles) * DIGITS * 4;
    }
    Ok(Some(place))
}

impl Room {
    /// Marks that work on `stream` uses it until here.
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
        // Dense numbers, wherever they begin.
        assert_eq!(bits(1 << 40, (1 << 40) + (1 << 23) - 1, 1 << 23, 8), Some((19, 4)));
        assert_eq!(bits(0x7F_FFFF, 0x80_0000 + (1 << 20) - 2, 1 << 20, 4), Some((15, 5)));
        // A line's keys need no order, a single key none.
        assert_eq!(bits(0, 1000, 16, 8), None);
        assert_eq!(bits(7, 7, 1 << 20, 8), None);
        let full = Digits::of_keys(QuerySort::Full, (7, 7), 1, 4);
        assert_eq!(full.map(|digits| (digits.bits, digits.passes())), Some((32, 4)));
        let some = Digits::of_keys(QuerySort::Bits(22), (0, u64::MAX.into()), 1, 8).expect("bits");
        assert_eq!((some.passes(), some.shift), (3, 42));
    }
}
