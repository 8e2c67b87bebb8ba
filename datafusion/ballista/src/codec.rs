//! What both codecs share: envelopes with versions, and expressions as bytes.

use crate::message::{Envelope, Node, RangeMessage, ScanMessage, Stamp, TableMessage};
use crate::version::Version;
use datafusion::error::{DataFusionError, Result};
use pleach_datafusion::{KeyRange, KeySet, ScanDescription, Source};
use prost::Message;

/// Returns an error of a plan: what, where, what to do.
pub(crate) fn refused(text: impl Into<String>) -> DataFusionError {
    DataFusionError::Plan(text.into())
}

/// Returns the error of bytes that are no plan.
pub(crate) fn damaged(what: &str, error: impl std::fmt::Display) -> DataFusionError {
    refused(format!("damaged plan: {what}: {error}: send it again"))
}

/// Appends a node with the version of who encodes it.
pub(crate) fn put(version: &Version, node: Node, buffer: &mut Vec<u8>) -> Result<()> {
    let (product, format) = (Some(version.product().to_owned()), Some(version.format().to_owned()));
    let envelope = Envelope { product, format, node: Some(node) };
    envelope.encode(buffer).map_err(|error| damaged("a node", error))
}

/// Takes a node out of its envelope.
pub(crate) fn take(version: &Version, bytes: &[u8]) -> Result<Node> {
    // Bytes of others need not be a message at all.
    let stamp = Stamp::decode(bytes).unwrap_or_default();
    let other = stamp.product.zip(stamp.format).map(|(product, format)| Version::new(product, format));
    version.check(other.as_ref(), "the sender of the plan").map_err(refused)?;
    let envelope = Envelope::decode(bytes).map_err(|error| damaged("a node", error))?;
    envelope.node.ok_or_else(|| damaged("a node", "it is empty"))
}

/// Encodes a scan without its pieces.
pub(crate) fn scan_message(scan: ScanDescription) -> ScanMessage {
    let ranges = scan.keys.ranges().iter();
    let (location, generation, identity) = (scan.location, scan.generation, scan.identity.to_vec());
    ScanMessage {
        table: Some(TableMessage { location, generation, identity }),
        projection: scan.projection.iter().map(|&column| column as u64).collect(),
        keys: ranges
            .map(|range| RangeMessage { start: range.start.clone(), end: range.end.clone() })
            .collect(),
        fetch: scan.fetch.map(|fetch| fetch as u64),
        is_reversed: scan.is_reversed,
    }
}

/// Encodes a table: its place is a path that other processes can open.
pub(crate) fn table_message(source: &Source) -> Result<TableMessage> {
    let location = source.location();
    let path = std::path::absolute(location)
        .map_err(|error| refused(format!("no absolute path: {location}: {error}: give an absolute path")))?;
    let (generation, identity) = (source.generation(), source.identity().to_vec());
    Ok(TableMessage { location: path.display().to_string(), generation, identity })
}

/// Decodes the id of a set, or that of a file.
pub(crate) fn identity(bytes: &[u8]) -> Result<[u8; 16]> {
    bytes.try_into().map_err(|error| damaged("an id", error))
}

/// Decodes a scan without its pieces.
pub(crate) fn scan_of(message: ScanMessage) -> Result<ScanDescription> {
    let table = message.table.ok_or_else(|| damaged("a scan", "it has no table"))?;
    let keys = message.keys.into_iter().map(|range| KeyRange { start: range.start, end: range.end });
    Ok(ScanDescription {
        location: table.location,
        generation: table.generation,
        identity: identity(&table.identity)?,
        projection: places(message.projection)?,
        keys: KeySet::of(keys.collect()),
        partitions: Vec::new(),
        borders: None,
        fetch: message.fetch.map(place).transpose()?,
        is_reversed: message.is_reversed,
    })
}

/// Decodes numbers of columns.
pub(crate) fn places(places: Vec<u64>) -> Result<Vec<usize>> {
    places.into_iter().map(place).collect()
}

/// Decodes a number.
pub(crate) fn place(number: u64) -> Result<usize> {
    usize::try_from(number).map_err(|error| damaged("a number", error))
}
