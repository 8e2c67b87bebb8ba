//! The fine image on the device: [`crate::fine`], for tables whose keys the other image does not keep apart.

use super::arguments::{Arguments, IMAGE_TEXT, IMAGE_THREADS};
use crate::fine::{FANOUT, GROUP_CHILDREN_MAX, GROUPS, Shape, WIDE_FANOUT, top_bytes};
use crate::image::{LEVELS_MAX, Levels};
use crate::kernel::{SourceSpec, Text};
use crate::memory::DeviceBuffer;
use crate::resident::{Resident, grid};
use crate::{GpuError, Stream};

/// Maximum numbers of children of a group, for blocks with more or less shared memory.
const CHILDREN: [usize; 7] = [GROUP_CHILDREN_MAX, 24, 20, 16, 12, 8, 4];

/// Text that the kernels share which read the fine image; [`NUMBERS`] belong to it.
pub(crate) const FINE_TEXT: Text = Text { name: "fine.cuh", text: include_str!("../kernels/fine.cuh") };

/// Definitions of that text.
pub(crate) const NUMBERS: [(&str, u64); 3] =
    [("GROUPS", GROUPS as u64), ("FINE_FANOUT", FANOUT as u64), ("WIDE_FANOUT", WIDE_FANOUT as u64)];

crate::kernel! {
    /// The fine image, from the tuple lines.
    FINE_IMAGE = SourceSpec {
        shared: &[IMAGE_TEXT, FINE_TEXT],
        has_value_width: true,
        numbers: |_| {
            let size = ("BYTES_OF_SPINE", size_of::<Arguments>() as u64);
            std::iter::once(size).chain(NUMBERS).collect()
        },
        ..SourceSpec::new("fine_image.cu", include_str!("../kernels/fine_image.cu"))
    };
    /// Makes the top.
    fine_top(table: Arguments);
    /// Makes a level of nodes, after those above it.
    fine_level(table: Arguments, level: u32);
    /// Looks lines up, and counts those that the image leads astray.
    fine_sample(table: Arguments, count: u64, sums: u64);
}

/// A fine image on the device, and the arguments of kernels that point to it.
#[derive(Debug)]
pub(crate) struct Fine {
    pub(crate) arguments: Arguments,
    /// Top and nodes.
    pub(crate) image: Vec<DeviceBuffer>,
}

/// Returns the shape of a table's fine image between these words, if `shared_bytes` of a block are left for its top;
/// `codes_max` limits the top's codes. `None` if there is too little room, or too many lines.
pub(crate) fn shape(
    resident: &Resident,
    (low, high): (u128, u128),
    low_bits: u32,
    shared_bytes: usize,
    codes_max: Option<usize>,
) -> Option<Shape> {
    let word_bytes = usize::from(resident.word_bytes);
    let fits = |children: usize| top_bytes(children, word_bytes) + 16 <= shared_bytes;
    let children = *CHILDREN.iter().find(|&&children| fits(children))?;
    let children = codes_max.map_or(children, |most| (most / GROUPS).clamp(1, children));
    Shape::new(low_bits, resident.line_count, low, high, children)
}

impl Fine {
    /// Makes the image of a table's lines, and waits for it. It shares lines, ends and gap with the other image,
    /// whose arguments are `even`.
    pub(crate) fn new(
        stream: &Stream,
        resident: &Resident,
        shape: &Shape,
        even: &Arguments,
    ) -> Result<Self, GpuError> {
        let gpu = &resident.gpu;
        let instance = resident.instance(&FINE_IMAGE, 0);
        let launch = |entry, items| grid(gpu, instance, entry, IMAGE_THREADS, 0, items);
        let mut arguments = Arguments {
            nodes: [0; LEVELS_MAX],
            top: 0,
            top_count: 0,
            levels: shape.levels as u32,
            low_bits: shape.low_bits,
            group_children: shape.group_children as u32,
            is_wide: shape.is_wide.into(),
            ..*even
        };
        // Blocks load it 16 bytes at a time; the bytes after its last code are not used.
        let compact_bytes = shape.top_bytes(resident.word_bytes.into()).next_multiple_of(16) as u64;
        let compact = resident.buffer(compact_bytes)?;
        (arguments.compact, arguments.compact_parts) = (compact.address(), (compact_bytes / 16) as u32);
        let mut image = vec![compact];
        for (level, address) in arguments.nodes.iter_mut().enumerate().take(shape.levels) {
            let nodes = resident.buffer(shape.nodes(level) * shape.node_bytes(level) as u64)?;
            *address = nodes.address();
            image.push(nodes);
        }
        let children = (GROUPS * shape.group_children) as u64;
        let queued = launch("fine_top", children).and_then(|blocks| {
            // SAFETY: the lines belong to the table, the top has the size of the shape; both live until the
            // stream was waited for.
            unsafe { fine_top(stream, instance, blocks, &arguments) }
        });
        let queued = (0..shape.levels).rev().fold(queued, |queued, level| {
            queued?;
            let blocks = launch("fine_level", shape.nodes(level))?;
            // SAFETY: as above, of the nodes; the levels above were made by launches before.
            unsafe { fine_level(stream, instance, blocks, &arguments, &(level as u32)) }
        });
        stream.synchronize()?;
        queued?;
        Ok(Self { arguments, image })
    }
}
