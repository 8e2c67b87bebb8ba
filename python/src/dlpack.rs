//! Arrays on devices, exchanged by DLPack: the memory, its type, and the order of streams.
//!
//! A capsule holds a `Managed` structure and has the name `dltensor`; who takes it renames it to `used_dltensor`, and
//! calls its deleter at the end. The layout is that of dlpack.h, version 0.8.

use crate::errors::exception;
use pleach_gpu::Lane;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use std::ffi::{CStr, c_void};

const FRESH: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
/// Memory of a CUDA device.
pub(crate) const CUDA: i32 = 2;
/// Unified memory.
const CUDA_MANAGED: i32 = 13;

/// `DLTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// A tensor of another library. Its memory lives as long as this value.
pub(crate) struct Taken {
    managed: *mut Managed,
}

// SAFETY: DLPack lets any thread use and delete a tensor.
unsafe impl Send for Taken {}
// SAFETY: the structure is only read.
unsafe impl Sync for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: `take` took the structure from its capsule, so only this value deletes it, and only here.
        unsafe {
            if let Some(deleter) = (*self.managed).deleter {
                deleter(self.managed);
            }
        }
    }
}

/// Where the numbers of a tensor are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) address: u64,
    pub(crate) count: u64,
    pub(crate) lane: Lane,
}

impl Taken {
    /// Takes the tensor of a capsule.
    pub(crate) fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let capsule = capsule.cast::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(FRESH))?;
        // SAFETY: the capsule has this name, so a new one may be set; the text is static.
        let renamed = unsafe { pyo3::ffi::PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr()) };
        if renamed != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok(Self { managed: pointer.as_ptr().cast() })
    }

    /// Returns the place of its numbers, which lie one after the other.
    pub(crate) fn place(&self) -> PyResult<Place> {
        // SAFETY: the capsule had the name of such a structure, which lives until this value is dropped; the shape has
        // as many numbers as there are dimensions.
        let (tensor, shape, stride) = unsafe {
            let tensor = &(*self.managed).tensor;
            let is_flat = tensor.dimensions == 1;
            let shape = if is_flat { *tensor.shape } else { 0 };
            let stride = if is_flat && !tensor.strides.is_null() { *tensor.strides } else { 1 };
            (tensor, shape, stride)
        };
        let refused = |what: String| Err(exception("InputError", what));
        if ![CUDA, CUDA_MANAGED].contains(&tensor.device_type) {
            return refused("these keys are not on a CUDA device: give an array of the host".to_owned());
        }
        if tensor.dimensions != 1 {
            return refused(format!(
                "the array has {} dimensions: give one of 1 dimension",
                tensor.dimensions
            ));
        }
        if stride != 1 && shape > 1 {
            return refused("the array is not contiguous: give a contiguous one".to_owned());
        }
        let Some(lane) = lane(tensor.code, tensor.bits).filter(|_| tensor.lanes == 1) else {
            let text = "arrays of this type cannot be keys on a device: give integers or floats";
            return Err(exception("TypesError", text.to_owned()));
        };
        let address = tensor.data.addr() as u64 + tensor.byte_offset;
        Ok(Place { address, count: shape.max(0).cast_unsigned(), lane })
    }
}

/// Returns the type of numbers with DLPack's code and number of bits.
fn lane(code: u8, bits: u8) -> Option<Lane> {
    Some(match (code, bits) {
        (0, 8) => Lane::I8,
        (0, 16) => Lane::I16,
        (0, 32) => Lane::I32,
        (0, 64) => Lane::I64,
        (1, 8) => Lane::U8,
        (1, 16) => Lane::U16,
        (1, 32) => Lane::U32,
        (1, 64) => Lane::U64,
        (2, 32) => Lane::F32,
        (2, 64) => Lane::F64,
        _ => return None,
    })
}

/// Type of the elements of an array that is given to another library.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Elements {
    Numbers(Lane),
    Bools,
}

impl Elements {
    fn code(self) -> (u8, u8) {
        match self {
            Self::Bools => (6, 8),
            Self::Numbers(lane) => {
                let code = match lane {
                    Lane::I8 | Lane::I16 | Lane::I32 | Lane::I64 => 0,
                    Lane::U8 | Lane::U16 | Lane::U32 | Lane::U64 => 1,
                    Lane::F32 | Lane::F64 => 2,
                };
                (code, 8 * lane.bytes() as u8)
            }
        }
    }
    /// Returns NumPy's string of the type.
    pub(crate) fn typestr(self) -> String {
        match self {
            Self::Bools => "|b1".to_owned(),
            Self::Numbers(lane) => {
                let kind = &lane.name()[..1];
                format!("<{kind}{}", lane.bytes())
            }
        }
    }
}

/// What a tensor that was given away keeps alive, and the numbers that it points to.
struct Given {
    shape: i64,
    stride: i64,
    _owner: Box<dyn Send>,
}

/// Makes a capsule of an array of one dimension on a device; `owner` keeps its memory.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    (address, count): (u64, u64),
    elements: Elements,
    device: u32,
    owner: Box<dyn Send>,
) -> PyResult<Bound<'py, PyAny>> {
    let (code, bits) = elements.code();
    let given = Box::new(Given { shape: count.cast_signed(), stride: 1, _owner: owner });
    let given = Box::into_raw(given);
    // SAFETY: `given` was made above, and lives until the deleter takes it back.
    let (shape, strides) = unsafe { (&raw mut (*given).shape, &raw mut (*given).stride) };
    let tensor = Tensor {
        data: std::ptr::without_provenance_mut(address as usize),
        device_type: CUDA,
        device_id: device.cast_signed(),
        dimensions: 1,
        code,
        bits,
        lanes: 1,
        shape,
        strides,
        byte_offset: 0,
    };
    let managed = Box::new(Managed { tensor, context: given.cast(), deleter: Some(delete) });
    let managed = Box::into_raw(managed);
    // SAFETY: the pointer is not null and the name is static; `end` deletes the structure if nobody took it.
    unsafe {
        let made = pyo3::ffi::PyCapsule_New(managed.cast(), FRESH.as_ptr(), Some(end));
        if made.is_null() {
            delete(managed);
        }
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Deletes a tensor of [`capsule`].
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: `capsule` made both boxes; DLPack calls the deleter once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Given>()));
    }
}

/// Ends a capsule: what nobody took is deleted.
unsafe extern "C" fn end(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: Python calls it once, with the capsule of `capsule`; a fresh one still owns its structure.
    unsafe {
        if pyo3::ffi::PyCapsule_IsValid(capsule, FRESH.as_ptr()) == 1 {
            let managed = pyo3::ffi::PyCapsule_GetPointer(capsule, FRESH.as_ptr());
            delete(managed.cast());
        }
    }
}
