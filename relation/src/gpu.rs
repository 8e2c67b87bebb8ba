//! A GPU as the device of streams: each piece is copied to it, answered by `pleach_gpu::relation`, and copied
//! back.

use crate::error::RelationError;
use crate::expr::{self, BitField, Load, Program};
use crate::rules::{How, Reduction, SetOperation, SetRule};
use crate::stream::device::{Answered, Device, Task, Types};
use crate::stream::{Chunk, take};
use pleach::ValueType;
use pleach_builder::Column;
use pleach_gpu::relation::condition::{Op, Operand, Program as GpuProgram};
use pleach_gpu::relation::{self as operators, Combine, Condition, Form, Numbers, Part, Rule, Side, Sorted};
use pleach_gpu::{DeviceBuffer, Gpu, GpuError, Stream};
use std::sync::Mutex;
use zerocopy::IntoBytes;

/// Maximum bytes per tuple of a piece, including its results and all intermediate data.
const TUPLE_BYTES: u64 = 96;
/// Maximum tuples per piece: copies of some tens of megabytes are as fast as larger ones.
const PIECE_TUPLES: u64 = 1 << 21;
/// Position of a missing tuple.
const NONE: u32 = u32::MAX;

/// A GPU, used by one piece at a time.
#[derive(Debug)]
pub struct OnGpu {
    gpu: Gpu,
    stream: Mutex<Stream>,
    piece_tuples: usize,
}

type Result<T> = std::result::Result<T, GpuError>;

/// Makes a column from a buffer, in the memory of a device.
fn column(stream: &Stream, buffer: Option<&DeviceBuffer>, width: u8, tuples: u64) -> Result<Column> {
    fn words<W: Clone + Default + IntoBytes + zerocopy::FromBytes>(
        stream: &Stream,
        buffer: &DeviceBuffer,
        tuples: u64,
    ) -> Result<Vec<W>> {
        let mut words = vec![W::default(); tuples as usize];
        let bytes = words.as_mut_bytes();
        buffer.part(0, bytes.len() as u64).copy_to_host(stream, bytes)?;
        Ok(words)
    }
    let Some(buffer) = buffer else { return Ok(Column::None) };
    Ok(match width {
        4 => Column::U32(words(stream, buffer, tuples)?),
        8 => Column::U64(words(stream, buffer, tuples)?),
        _ => Column::U128(words(stream, buffer, tuples)?),
    })
}

/// Returns the bytes of a column of words, and the bytes per word.
fn words(column: &Column) -> Option<(&[u8], u8)> {
    match column {
        Column::U32(words) => Some((words.as_bytes(), 4)),
        Column::U64(words) => Some((words.as_bytes(), 8)),
        Column::U128(words) => Some((words.as_bytes(), 16)),
        Column::None | Column::Bytes(_) => None,
    }
}

fn no_words() -> GpuError {
    GpuError::Operator { operator: "relation", cause: "keys that are byte strings".to_owned() }
}

fn sorted(stream: &Stream, side: &(Column, Column), with_values: bool) -> Result<Sorted> {
    let values = words(&side.1).filter(|_| with_values);
    Sorted::from_host(stream, words(&side.0).ok_or_else(no_words)?, values)
}

fn relation(stream: &Stream, keys: &Column, values: Option<(&[u8], u8)>) -> Result<operators::Relation> {
    operators::Relation::from_host(stream, words(keys).ok_or_else(no_words)?, values)
}

/// Returns a relation as keys and values.
fn columns(stream: &Stream, from: &operators::Relation) -> Result<(Column, Column)> {
    let keys = column(stream, Some(from.keys()), from.key_bytes(), from.tuples())?;
    let values = from.values();
    let bytes = values.map_or(0, |values| values.bytes);
    Ok((keys, column(stream, values.map(|values| &values.buffer), bytes, from.tuples())?))
}

fn operation(task: Task<'_>) -> Option<operators::Operation> {
    use operators::Operation as To;
    let rule = |rule| match rule {
        SetRule::Set => Rule::Set,
        SetRule::Multiset => Rule::Multiset,
    };
    Some(match task {
        Task::Set(SetOperation::Union, of) => To::Union(rule(of)),
        Task::Set(SetOperation::Intersection, of) => To::Intersection(rule(of)),
        Task::Set(SetOperation::Difference, of) => To::Difference(rule(of)),
        Task::Join(How::Inner) => To::Inner,
        Task::Join(How::Left) => To::Left,
        Task::Join(How::Right) => To::Right,
        Task::Join(How::Full) => To::Full,
        Task::Join(How::Semi) => To::Semi,
        Task::Join(How::Anti) => To::Anti,
        Task::Product | Task::Select(_) | Task::Reduce(_) | Task::Project(_) => return None,
    })
}

/// Returns ranks as positions.
fn positions(column: Column) -> Vec<u32> {
    let Column::U64(ranks) = column else { return Vec::new() };
    ranks.into_iter().map(|rank| u32::try_from(rank).unwrap_or(NONE)).collect()
}

fn merge(
    stream: &Stream,
    task: Task<'_>,
    left: &(Column, Column),
    right: &(Column, Column),
) -> Result<Answered> {
    let Some(operation) = operation(task) else { return Err(no_words()) };
    // Byte strings stay on the host: then the device reports which of them it selects.
    let in_place = [left, right].iter().all(|side| !matches!(side.1, Column::Bytes(_)));
    let sides = (sorted(stream, left, in_place)?, sorted(stream, right, in_place)?);
    let form = if in_place { Form::Values } else { Form::Ranks };
    let joined = operators::merge(stream, operation, (&sides.0, &sides.1), form)?;
    let tuples = joined.tuples;
    let read = |at: usize| {
        let values = joined.columns[at].as_ref();
        let bytes = values.map_or(0, |values| values.bytes);
        column(stream, values.map(|values| &values.buffer), bytes, tuples)
    };
    let [first, second] = [read(0)?, read(1)?];
    if !in_place {
        return Ok(Answered::Rows(positions(first), positions(second)));
    }
    let mut sides_of_pairs = Vec::new();
    if let Some(buffer) = &joined.sides {
        sides_of_pairs.resize(tuples as usize, 0);
        buffer.part(0, tuples).copy_to_host(stream, &mut sides_of_pairs)?;
    }
    let keys = column(stream, joined.keys.as_ref(), sides.0.key_bytes(), tuples)?;
    Ok(Answered::Chunk(Chunk {
        keys,
        values: first,
        right: second,
        sides: sides_of_pairs,
        ..Chunk::default()
    }))
}

fn product(stream: &Stream, left: &(Column, Column), right: &(Column, Column)) -> Result<Answered> {
    let sides = (relation(stream, &left.0, words(&left.1))?, relation(stream, &right.0, words(&right.1))?);
    let both = (&sides.0, &sides.1);
    let (keys, values) = columns(stream, &operators::product(stream, both, Combine::Left)?.relation)?;
    let mut of_right = Column::None;
    if !right.1.is_empty() {
        of_right = columns(stream, &operators::product(stream, both, Combine::Right)?.relation)?.1;
    }
    Ok(Answered::Chunk(Chunk { keys, values, right: of_right, ..Chunk::default() }))
}

/// Returns a program whose ranks count from the first tuple of a piece.
fn translated(program: &Program, first_rank: u64) -> Result<GpuProgram> {
    use expr::Op as From;
    let mut ops = Vec::with_capacity(program.ops.len());
    for &op in &program.ops {
        let op = match op {
            From::Load(Load { side, flip, shift, bits, signed }) => {
                let (operand, is_rank) = match side {
                    expr::Side::Key => (Operand::Key, false),
                    expr::Side::Value => (Operand::Value, false),
                    expr::Side::Rank => (Operand::Rank, true),
                };
                let load = Op::Load { operand, flip, shift, bits, is_signed: signed };
                if is_rank {
                    ops.extend([load, Op::Push(first_rank), Op::Add]);
                    continue;
                }
                load
            }
            From::Push(word) => Op::Push(word),
            From::Add => Op::Add,
            From::Subtract => Op::Subtract,
            From::Multiply => Op::Multiply,
            From::DivideSigned => Op::DivideSigned,
            From::DivideUnsigned => Op::DivideUnsigned,
            From::RemainderSigned => Op::RemainderSigned,
            From::RemainderUnsigned => Op::RemainderUnsigned,
            From::And => Op::And,
            From::Or => Op::Or,
            From::Xor => Op::Xor,
            From::Left => Op::Left,
            From::RightSigned => Op::RightSigned,
            From::RightUnsigned => Op::RightUnsigned,
            From::Equal => Op::Equal,
            From::BelowSigned => Op::BelowSigned,
            From::BelowUnsigned => Op::BelowUnsigned,
            From::AtMostUnsigned => Op::AtMostUnsigned,
            From::Not => Op::Not,
            From::Among { start, length } => Op::Among { start, length },
        };
        ops.push(op);
    }
    GpuProgram::new(&ops, program.words.clone())
}

fn select(stream: &Stream, condition: &expr::Predicate, chunk: &Chunk) -> Result<Chunk> {
    let program = condition.program().ok_or_else(no_words)?;
    let condition = Condition::Program(translated(&program, chunk.first_rank)?);
    if matches!(chunk.values, Column::Bytes(_)) {
        // Values stay on the host: the device reports which of them it selects.
        let numbers: Vec<u32> = (0..chunk.len() as u32).collect();
        let from = relation(stream, &chunk.keys, Some((numbers.as_bytes(), 4)))?;
        let (keys, rows) = columns(stream, &operators::select(stream, &from, &condition)?.relation)?;
        let Column::U32(rows) = rows else { return Err(no_words()) };
        return Ok(Chunk { keys, values: take(&chunk.values, &rows), ..Chunk::default() });
    }
    let from = relation(stream, &chunk.keys, words(&chunk.values))?;
    let (keys, values) = columns(stream, &operators::select(stream, &from, &condition)?.relation)?;
    Ok(Chunk { keys, values, ..Chunk::default() })
}

fn numbers(value_type: ValueType) -> Numbers {
    match value_type {
        ValueType::I32 | ValueType::I64 => Numbers::Signed,
        ValueType::F32 | ValueType::F64 => Numbers::Float,
        ValueType::None | ValueType::U32 | ValueType::U64 => Numbers::Unsigned,
        ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => Numbers::Unsigned,
    }
}

fn reduce(stream: &Stream, operation: Reduction, value_type: ValueType, chunk: &Chunk) -> Result<Chunk> {
    let of = match operation {
        Reduction::Sum => operators::Reduction::Sum,
        Reduction::Min => operators::Reduction::Min,
        Reduction::Max => operators::Reduction::Max,
        Reduction::Count => operators::Reduction::Count,
        Reduction::First => operators::Reduction::First,
        Reduction::Avg => return Err(no_words()),
    };
    let values = words(&chunk.values).filter(|_| operation != Reduction::Count);
    let from = relation(stream, &chunk.keys, values)?;
    let (keys, values) =
        columns(stream, &operators::reduce(stream, &from, of, numbers(value_type))?.relation)?;
    Ok(Chunk { keys, values, ..Chunk::default() })
}

fn project(stream: &Stream, projection: &expr::Projection, chunk: &Chunk) -> Result<Chunk> {
    let fields = projection.parts().ok_or_else(no_words)?;
    let part = |field: &BitField| Part {
        side: if field.of_value { Side::Value } else { Side::Key },
        right: field.right,
        mask: field.mask,
        left: field.left,
    };
    let schema = projection.schema();
    let parts = operators::Projection {
        key: fields.key.iter().map(part).collect(),
        key_bytes: schema.key_type.bytes() as u8,
        value: fields.value.iter().map(part).collect(),
        value_bytes: schema.value_type.bytes() as u8,
    };
    let from = relation(stream, &chunk.keys, words(&chunk.values))?;
    let (keys, values) = columns(stream, &operators::project(stream, &from, &parts)?.relation)?;
    Ok(Chunk { keys, values, ..Chunk::default() })
}

impl OnGpu {
    /// Creates the device from a GPU, whose memory limit bounds the pieces.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails, [`GpuError::Memory`] if not even small pieces fit.
    pub fn new(gpu: Gpu) -> Result<Self> {
        let free = gpu.left_bytes()?;
        let tuples = (free / TUPLE_BYTES).min(PIECE_TUPLES);
        if tuples == 0 {
            return Err(GpuError::Memory { needed: TUPLE_BYTES, free });
        }
        let stream = Mutex::new(Stream::new(&gpu)?);
        Ok(Self { gpu, stream, piece_tuples: tuples as usize })
    }

    /// Returns the device with pieces of at most `tuples` tuples.
    #[must_use]
    pub fn with_pieces(self, tuples: usize) -> Self {
        Self { piece_tuples: self.piece_tuples.min(tuples).max(1), ..self }
    }

    /// Runs one piece at a time. `None` if the device has no room for this piece. A sum that does not fit may
    /// be part of one that does: the CPU, which adds with more bits, decides.
    fn run<T>(
        &self,
        run: impl FnOnce(&Stream) -> Result<T>,
    ) -> std::result::Result<Option<T>, RelationError> {
        // A thread that panicked left no work queued.
        let stream = self.stream.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match run(&stream) {
            Ok(answer) => Ok(Some(answer)),
            Err(GpuError::Memory { .. } | GpuError::OutOfMemory { .. } | GpuError::Sum { .. }) => Ok(None),
            Err(error) => Err(RelationError::Device(error.to_string())),
        }
    }
}

impl Device for OnGpu {
    fn name(&self) -> String {
        let device = self.gpu.device();
        format!("cuda:{} ({})", device.ordinal, device.name)
    }

    fn piece_tuples(&self) -> usize {
        self.piece_tuples
    }

    fn check(&self, task: Task<'_>, left: Types, right: Option<Types>) -> std::result::Result<(), String> {
        let is_merge = matches!(task, Task::Set(..) | Task::Join(_));
        for (key_type, value_type) in [Some(left), right].into_iter().flatten() {
            if key_type.is_bytes() || (!is_merge && key_type.bytes() > 8) {
                return Err(format!("{key_type} keys"));
            }
            let keeps_strings = is_merge || matches!(task, Task::Select(_) | Task::Reduce(Reduction::Count));
            if value_type.is_bytes() && !keeps_strings {
                return Err(format!("{value_type} values"));
            }
        }
        match task {
            Task::Select(condition) if !condition.is_exact() => {
                let program = condition.program().ok_or_else(|| format!("the condition {condition}"))?;
                translated(&program, 0)
                    .map(drop)
                    .map_err(|error| format!("the condition {condition}: {error}"))
            }
            Task::Reduce(Reduction::Avg) => Err("means".to_owned()),
            // The CPU adds them in other blocks than a device, so the sums would differ.
            Task::Reduce(Reduction::Sum) if numbers(left.1) == Numbers::Float => {
                Err("sums of floats".to_owned())
            }
            Task::Project(projection) => {
                let is_short = |parts: &Vec<BitField>| parts.len() <= operators::PARTS_MAX;
                let fields =
                    projection.parts().filter(|fields| is_short(&fields.key) && is_short(&fields.value));
                fields.map(drop).ok_or_else(|| format!("the columns {projection}"))
            }
            _ => Ok(()),
        }
    }

    fn one(
        &self,
        task: Task<'_>,
        types: Types,
        chunk: &Chunk,
    ) -> std::result::Result<Option<Chunk>, RelationError> {
        self.run(|stream| match task {
            Task::Select(condition) => select(stream, condition, chunk),
            Task::Reduce(operation) => reduce(stream, operation, types.1, chunk),
            Task::Project(projection) => project(stream, projection, chunk),
            Task::Set(..) | Task::Join(_) | Task::Product => Err(no_words()),
        })
    }

    fn two(
        &self,
        task: Task<'_>,
        left: &(Column, Column),
        right: &(Column, Column),
    ) -> std::result::Result<Option<Answered>, RelationError> {
        self.run(|stream| match task {
            Task::Product => product(stream, left, right),
            _ => merge(stream, task, left, right),
        })
    }
}
