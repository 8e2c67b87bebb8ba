//! A view of an open file together with the file, so that both can be stored in a struct.

use crate::index::Index;
use crate::strings::Strings;
use crate::typed::Typed;
use pleach_format::{Key, Value};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// A view and the index that it borrows.
pub(crate) struct Owned<T> {
    /// Always initialised. `MaybeUninit`, because a reference in an argument of a function must stay valid until
    /// the function returns, and here the function may drop the index.
    view: MaybeUninit<T>,
    index: Arc<Index>,
}

impl<T: Copy> Owned<T> {
    /// Creates a view of `index`.
    ///
    /// # Safety
    /// The caller guarantees that `make` keeps no part of the index except in its result, and that the result is
    /// used only while this pair lives.
    unsafe fn new<E>(
        index: Arc<Index>,
        make: impl FnOnce(&'static Index) -> Result<T, E>,
    ) -> Result<Self, E> {
        // SAFETY: `Arc` guarantees that the index lives and does not move while the pair holds its clone, and that
        // nobody gets a `&mut Index` of a shared one. The caller guarantees that the reference is not used longer.
        let borrowed: &'static Index = unsafe { &*Arc::as_ptr(&index) };
        Ok(Self { view: MaybeUninit::new(make(borrowed)?), index })
    }

    /// Returns the index.
    #[inline]
    pub(crate) fn index(&self) -> &Arc<Index> {
        &self.index
    }
}

impl<T: Copy> Clone for Owned<T> {
    fn clone(&self) -> Self {
        Self { view: self.view, index: Arc::clone(&self.index) }
    }
}

/// Implements making and reading for views, which get the lifetime of the borrowed pair.
macro_rules! views {
    ($([$($generics:tt)*] $view:ident<$($parameter:ident),*>, $error:ty, $make:expr;)*) => {$(
        impl<$($generics)*> Owned<$view<'static, $($parameter),*>> {
            /// Creates the view, if the types are those of the file.
            pub(crate) fn of(index: Arc<Index>) -> Result<Self, $error> {
                // SAFETY: making a view stores the reference in it and nowhere else; only `view` below returns it,
                // with a shorter lifetime.
                unsafe { Self::new(index, $make) }
            }

            /// Returns the view.
            #[inline(always)]
            pub(crate) fn view<'s>(&'s self) -> &'s $view<'s, $($parameter),*> {
                // SAFETY: `new` initialised the view, and the index that it borrows lives as long as `self`.
                unsafe { self.view.assume_init_ref() }
            }
        }
    )*};
}
views! {
    [K: Key, V: Value] Typed<K, V>, crate::TypeError, |index: &'static Index| index.typed::<K, V>();
    [V: Value] Strings<V>, crate::TypeError, |index: &'static Index| index.strings::<V>();
}
