//! Tables of intervals: starts are keys, and the columns of ends and values are read as records ([`crate::fields`]).
//! The builder makes intervals of them.

use crate::kind::Target;
use crate::options::InputOptions;
use pleach_format::logical::Form;

/// Returns the target of keys that begin intervals: that of the first address, if keys are networks.
pub(crate) fn starts(target: Target, options: &InputOptions) -> Target {
    let is_network = options.interval.as_ref().is_some_and(|interval| interval.end.is_none());
    if is_network { Target { form: Some(Form::Network(false)), ..target } } else { target }
}
