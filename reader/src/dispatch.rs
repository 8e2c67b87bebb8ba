//! Dispatch from the types of a file to the types of the program.

/// Evaluates an expression with a typed view of an [`Index`](crate::Index), for all numeric types of keys and
/// values. The result is `Ok` with the value of the expression, or a [`TypeError`](crate::TypeError) if keys
/// are byte strings; for those use [`Index::strings`](crate::Index::strings). The view leaves out values that
/// are byte strings.
///
/// The expression is compiled once for each pair of types, with `view` a [`Typed`](crate::Typed). Its type
/// must be the same for all of them.
///
/// ```
/// # let index = pleach::Index::from_bytes(pleach::Builder::new().to_bytes([(5i64, 7u32)])?)?;
/// let smallest = pleach::with_typed!(&index, |view| view.min()?.map(|(key, _)| key.to_string()))?;
/// assert_eq!(smallest.as_deref(), Some("5"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! with_typed {
    ($index:expr, |$view:ident| $body:expr) => {{
        let index: &$crate::Index = $index;
        macro_rules! values {
                ($key:ty) => {
                    match index.value_type() {
                        $crate::ValueType::U32 => $crate::with_typed!(@view index, $key, u32, $view, $body),
                        $crate::ValueType::U64 => $crate::with_typed!(@view index, $key, u64, $view, $body),
                        $crate::ValueType::I32 => $crate::with_typed!(@view index, $key, i32, $view, $body),
                        $crate::ValueType::I64 => $crate::with_typed!(@view index, $key, i64, $view, $body),
                        $crate::ValueType::F32 => $crate::with_typed!(@view index, $key, f32, $view, $body),
                        $crate::ValueType::F64 => $crate::with_typed!(@view index, $key, f64, $view, $body),
                        $crate::ValueType::None
                        | $crate::ValueType::Fixed(_)
                        | $crate::ValueType::Bytes
                        | $crate::ValueType::Utf8 => $crate::with_typed!(@view index, $key, (), $view, $body),
                    }
                };
            }
        match index.key_type() {
            $crate::KeyType::U32 => values!(u32),
            $crate::KeyType::I32 => values!(i32),
            $crate::KeyType::I64 => values!(i64),
            $crate::KeyType::U128 => values!(u128),
            $crate::KeyType::F64 => values!(f64),
            // Byte keys have no such view, and `typed` returns the error.
            $crate::KeyType::U64
            | $crate::KeyType::Fixed(_)
            | $crate::KeyType::Bytes
            | $crate::KeyType::Utf8 => values!(u64),
        }
    }};
    (@view $index:ident, $key:ty, $value:ty, $view:ident, $body:expr) => {
        match $index.typed::<$key, $value>() {
            ::core::result::Result::Ok($view) => ::core::result::Result::Ok($body),
            ::core::result::Result::Err(error) => ::core::result::Result::<_, $crate::TypeError>::Err(error),
        }
    };
}
