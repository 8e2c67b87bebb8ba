//! The name that is most like a misspelt one.

/// Returns the name that is most like a misspelt one, if any is: by the measure and the limit of the command line's
/// own tips. Large and small letters are the same.
///
/// ```
/// assert_eq!(pleach_input::similar("Custmer_id", ["order_id", "customer_id"]), Some("customer_id"));
/// assert_eq!(pleach_input::similar("zzz", ["order_id", "customer_id"]), None);
/// ```
#[must_use]
pub fn similar<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let text = text.to_lowercase();
    let near = names.into_iter().map(|name| (strsim::jaro(&text, &name.to_lowercase()), name));
    let near = near.filter(|(likeness, _)| *likeness > 0.7);
    near.max_by(|one, two| one.0.total_cmp(&two.0)).map(|(_, name)| name)
}
