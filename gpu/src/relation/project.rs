//! PROJECT and PRODUCT: kernels/project.cu.
//!
//! The driver copies a column that does not change. Sizes are known before memory is allocated.

use super::dense::Relation;
use super::job::{Job, Stages};
use super::onepass::ONE_PASS_TEXT;
use super::operator::{Answer, Input, Output};
use crate::driver::LaunchShape;
use crate::kernel::{Instance, SourceSpec};
use crate::{GpuError, Stream};

/// Threads per block: PROJECTORS in project.cu.
const THREADS: u32 = 256;
/// Tuples per block of `project_two`, and of `project_four`.
const TILES: [u32; 2] = [THREADS * 2, THREADS * 4];
/// Results per block of `product`: PRODUCT_TILE in project.cu.
const PRODUCT_TILE: u64 = THREADS as u64 * 4;
/// Maximum number of parts of a column: FIELDS_MAX in project.cu.
pub const PARTS_MAX: usize = 8;
/// USES_KEYS and USES_VALUES in project.cu.
const USES: [u32; 2] = [1, 2];

/// Source of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Side {
    Key,
    Value,
    Rank,
}

/// A bit field of a column: the source is shifted right, masked, and shifted left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Source of the part.
    pub side: Side,
    /// Number of low bits of the source that are dropped.
    pub right: u32,
    /// Bits that are kept of the rest.
    pub mask: u64,
    /// Number of bits by which they are shifted left.
    pub left: u32,
}

/// Columns made from a relation: each has the bits of all its parts, as far as they fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Parts of the key; without any, the key is 0.
    pub key: Vec<Part>,
    /// Bytes per key: 4 or 8.
    pub key_bytes: u8,
    /// Parts of the value.
    pub value: Vec<Part>,
    /// Bytes per value: 0, 4 or 8.
    pub value_bytes: u8,
}

/// Result of a projection.
#[derive(Clone, Debug)]
pub struct Projected {
    /// Columns of the projection, in the order of the tuples that they are made from.
    pub relation: Relation,
    /// True if the keys are known to ascend; if not, sort the relation before another operator uses it.
    pub is_sorted: bool,
    /// Times of the stages.
    pub stages: Stages,
}

crate::kernel! {
    /// PROJECT and PRODUCT.
    PROJECT = SourceSpec {
        shared: &[ONE_PASS_TEXT],
        has_value_width: true,
        numbers: |_| vec![
            ("BYTES_OF_PROJECT", size_of::<Project>() as u64),
            ("BYTES_OF_PRODUCT", size_of::<Product>() as u64),
            ("BYTES_OF_PICK", size_of::<Pick>() as u64),
        ],
        ..SourceSpec::new("project.cu", include_str!("../kernels/project.cu")).narrow()
    };
    /// Makes columns of bit fields, two tuples per thread at a time.
    project_two(project: Project);
    /// Makes columns of bit fields, four tuples per thread at a time.
    project_four(project: Project) if |instance| instance.word_bytes == 4 && instance.value_bytes <= 4;
    /// Makes all pairs of tuples.
    product_pairs(product: Product);
    /// Puts values into the order of their numbers.
    pick(pick: Pick);
}

/// A part in the form that the kernel uses; the same as Part in project.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct RawPart {
    mask: u64,
    source: u32,
    right: u16,
    left: u16,
}

/// Arguments of PROJECT; the same as in project.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Project {
    keys: u64,
    values: u64,
    to: [u64; 2],
    to_bytes: [u32; 2],
    parts: [u32; 2],
    tuples: u32,
    uses: u32,
    is_aligned: u32,
    unused: u32,
    part: [[RawPart; PARTS_MAX]; 2],
}

/// Arguments of PRODUCT; the same as in project.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Product {
    left_keys: u64,
    left_values: u64,
    rights_from: u64,
    keys_to: u64,
    values_to: u64,
    results: u64,
    magic: u64,
    rights: u32,
    combine: u32,
    is_aligned: u32,
    unused: u32,
}

/// Arguments of `pick`; the same as in project.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Pick {
    pub(super) values: u64,
    pub(super) numbers: u64,
    pub(super) to: u64,
    pub(super) count: u64,
}

/// Returns the largest word of this number of bytes.
fn most(bytes: u8) -> u64 {
    u64::MAX.checked_shr(64 - 8 * u32::from(bytes)).unwrap_or(0)
}

impl Part {
    /// Returns a part that is a whole source.
    #[must_use]
    pub const fn whole(side: Side) -> Self {
        Self { side, right: 0, mask: u64::MAX, left: 0 }
    }

    /// Returns true if the part keeps all bits from `right` on of words up to `highest`, in a column of
    /// `bytes`.
    fn keeps(self, highest: u64, bytes: u8) -> bool {
        let kept = highest >> self.right;
        let shifted = kept << self.left;
        self.mask & kept == kept && shifted >> self.left == kept && shifted <= most(bytes)
    }
}

impl Projection {
    /// Returns true if the keys ascend for any tuples: the old key or its high bits, the rank, or a constant.
    #[must_use]
    pub fn keeps_order(&self, from: &Relation) -> bool {
        let bits = |number: u64| u64::MAX.checked_shr(number.leading_zeros()).unwrap_or(0);
        match self.key[..] {
            [] => true,
            [part] => match part.side {
                Side::Key => part.keeps(most(from.key_bytes()), self.key_bytes),
                Side::Rank => part.keeps(bits(from.tuples().saturating_sub(1)), self.key_bytes),
                Side::Value => false,
            },
            _ => false,
        }
    }

    /// Returns the address of the input's column that is equal to this one, if there is one.
    fn same(parts: &[Part], bytes: u8, from: &Relation) -> Option<u64> {
        let [part] = parts else { return None };
        let (width, buffer) = match part.side {
            Side::Key => (from.key_bytes(), from.keys()),
            Side::Value => (from.value_bytes(), &from.values()?.buffer),
            Side::Rank => return None,
        };
        let is_same = part.right == 0 && part.left == 0 && part.keeps(most(width), bytes);
        (is_same && width == bytes).then(|| buffer.address())
    }

    fn check(&self, from: &Relation) -> Result<(), GpuError> {
        let refused = |cause: String| Err(GpuError::Operator { operator: "project", cause });
        if ![4, 8].contains(&self.key_bytes) || ![0, 4, 8].contains(&self.value_bytes) {
            return refused("a key has 4 or 8 bytes, a value 0, 4 or 8".into());
        }
        for (parts, bytes) in [(&self.key, self.key_bytes), (&self.value, self.value_bytes)] {
            if parts.len() > PARTS_MAX || (bytes == 0 && !parts.is_empty()) {
                let count = parts.len();
                return refused(format!("{count} parts of a column of {bytes} bytes: {PARTS_MAX} at most"));
            }
            if parts.iter().any(|part| part.right >= 64 || part.left >= 64) {
                return refused("a part is shifted by 64 or more: by 63 at most".into());
            }
            if from.value_bytes() == 0 && parts.iter().any(|part| part.side == Side::Value) {
                return refused("a part of values that the relation does not have: ask for keys".into());
            }
        }
        Ok(())
    }
}

fn raw(parts: &[Part]) -> [RawPart; PARTS_MAX] {
    let mut all = [RawPart::default(); PARTS_MAX];
    for (raw, part) in all.iter_mut().zip(parts) {
        let (right, left) = (part.right as u16, part.left as u16);
        *raw = RawPart { mask: part.mask, source: part.side as u32, right, left };
    }
    all
}

/// Makes the columns of a projection, tuple by tuple, and reports whether its keys still ascend. Reads what
/// it uses and writes the results once. Blocks. Time: `project`.
///
/// # Errors
/// [`GpuError::Operator`] for more than 2^31 tuples, columns of other widths, a part of values that
/// are absent, more than eight parts or shifts above 63; [`GpuError::Memory`] if the results do not fit;
/// [`GpuError::Driver`] if a driver call fails.
pub fn project(stream: &Stream, from: &Relation, projection: &Projection) -> Result<Projected, GpuError> {
    projection.check(from)?;
    let input = Input::new("project", from)?;
    let (gpu, key_bytes, value_bytes) = (stream.gpu(), from.key_bytes(), from.value_bytes());
    let to_bytes = [projection.key_bytes, projection.value_bytes];
    let mut job = Job::new(stream);
    let output = Output::new(&mut job, gpu, to_bytes, input.tuples.into())?;
    let is_sorted = projection.keeps_order(from);
    if input.tuples == 0 {
        return Ok(Projected { relation: output.relation(0)?, is_sorted, stages: Stages::default() });
    }
    let to = [output.keys.address(), output.values()];
    let parts = [&projection.key, &projection.value];
    // The kernel does not write columns that are copied, unless it reads them anyway.
    let mut copied = [0, 1].map(|side| Projection::same(parts[side], to_bytes[side], from));
    for side in [0, 1] {
        let other = parts[1 - side];
        let is_made = copied[1 - side].is_none() && to_bytes[1 - side] > 0;
        if is_made && other.iter().any(|part| parts[side].first().is_some_and(|one| one.side == part.side)) {
            copied[side] = None;
        }
    }
    let made_bytes = [0, 1].map(|side| if copied[side].is_some() { 0 } else { to_bytes[side] });
    let uses = |side: Side| {
        [0, 1].iter().any(|&at| made_bytes[at] > 0 && parts[at].iter().any(|part| part.side == side))
    };
    let project = Project {
        keys: input.keys,
        values: input.values,
        to,
        to_bytes: made_bytes.map(u32::from),
        parts: parts.map(|parts| parts.len() as u32),
        tuples: input.tuples,
        uses: u32::from(uses(Side::Key)) * USES[0] + u32::from(uses(Side::Value)) * USES[1],
        is_aligned: input.is_aligned.into(),
        unused: 0,
        part: parts.map(|parts| raw(parts)),
    };
    let is_narrow = key_bytes == 4 && value_bytes <= 4 && made_bytes.iter().all(|&bytes| bytes <= 4);
    let instance = Instance::new(&PROJECT, key_bytes, value_bytes);
    let shape = LaunchShape {
        blocks: input.tuples.div_ceil(TILES[usize::from(is_narrow)]),
        threads: THREADS,
        shared_bytes: 0,
    };
    job.stage("project", || {
        for side in [0, 1] {
            let bytes = input.tuples as usize * usize::from(to_bytes[side]);
            if let Some(address) = copied[side] {
                // SAFETY: both columns have that many bytes; the job keeps one, and the caller the other.
                unsafe { gpu.driver().copy(stream.handle(), to[side], address, bytes) }?;
            }
        }
        if made_bytes == [0, 0] {
            return Ok(());
        }
        // SAFETY: all columns have the same number of tuples; the job keeps those made here, and the caller
        // the others.
        unsafe {
            if is_narrow {
                project_four(stream, instance, shape, &project)
            } else {
                project_two(stream, instance, shape, &project)
            }
        }
    })?;
    Ok(Projected { relation: output.relation(input.tuples.into())?, is_sorted, stages: job.end()? })
}

/// Value that a PRODUCT makes from two tuples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The left value.
    Left,
    /// The right value.
    Right,
    /// The key of the right tuple.
    RightKey,
    /// The sum of both values, modulo 2 to the bits of a value.
    Sum,
    /// The exclusive or of both values.
    Xor,
    /// The smaller value, as unsigned words.
    Min,
    /// The larger value, as unsigned words.
    Max,
}

impl Combine {
    /// All variants.
    pub const ALL: [Self; 7] =
        [Self::Left, Self::Right, Self::RightKey, Self::Sum, Self::Xor, Self::Min, Self::Max];

    /// Returns the number of the variant: COMBINE_... in project.cu.
    const fn code(self) -> u32 {
        match self {
            Self::Left => 0,
            Self::Right | Self::RightKey => 1,
            Self::Sum => 2,
            Self::Xor => 3,
            Self::Min => 4,
            Self::Max => 5,
        }
    }
}

/// Makes all pairs of tuples, by left rank, then by right rank, with the left keys. If the requested value is
/// absent, the result has no values. Writes each result once. Blocks. Time: `product`.
///
/// # Errors
/// [`GpuError::Operator`] for values of two widths that are to be combined, or for 2^43 results or
/// more; [`GpuError::Memory`] with the size if the product does not fit; [`GpuError::Driver`] if a driver
/// call fails.
pub fn product(
    stream: &Stream,
    (left, right): (&Relation, &Relation),
    combine: Combine,
) -> Result<Answer, GpuError> {
    let refused = |cause: String| GpuError::Operator { operator: "product", cause };
    let inputs = [Input::new("product", left)?, Input::new("product", right)?];
    let gpu = stream.gpu();
    let value_bytes = match combine {
        Combine::Left => left.value_bytes(),
        Combine::Right => right.value_bytes(),
        Combine::RightKey => right.key_bytes(),
        _ if left.value_bytes() != right.value_bytes() || left.value_bytes() == 0 => {
            let (left, right) = (left.value_bytes(), right.value_bytes());
            return Err(refused(format!("values of {left} and of {right} bytes: make them alike first")));
        }
        _ => left.value_bytes(),
    };
    let [lefts, rights] = inputs.map(|input| u64::from(input.tuples));
    // Both sides have at most 2^31 tuples.
    let results = lefts * rights;
    let mut job = Job::new(stream);
    let output = Output::new(&mut job, gpu, [left.key_bytes(), value_bytes], results)?;
    if results == 0 {
        return Ok(Answer { relation: output.relation(0)?, stages: Stages::default() });
    }
    let blocks = u32::try_from(results.div_ceil(PRODUCT_TILE)).ok().filter(|&blocks| blocks < 1 << 31);
    let blocks = blocks.ok_or_else(|| refused(format!("{results} results: multiply parts")))?;
    let rights_from = if combine == Combine::RightKey { inputs[1].keys } else { inputs[1].values };
    let task = Product {
        left_keys: inputs[0].keys,
        left_values: inputs[0].values,
        rights_from,
        keys_to: output.keys.address(),
        values_to: output.values(),
        results,
        // With one right tuple the number would be 2^64.
        magic: if rights == 1 { 0 } else { u64::MAX / rights + 1 },
        rights: inputs[1].tuples,
        combine: combine.code(),
        is_aligned: rights_from.is_multiple_of(16).into(),
        unused: 0,
    };
    let instance = Instance::new(&PROJECT, left.key_bytes(), value_bytes);
    let shape = LaunchShape { blocks, threads: THREADS, shared_bytes: 0 };
    // SAFETY: there is room for all pairs; the job keeps it, and the caller the relations.
    job.stage("product", || unsafe { product_pairs(stream, instance, shape, &task) })?;
    Ok(Answer { relation: output.relation(results)?, stages: job.end()? })
}
