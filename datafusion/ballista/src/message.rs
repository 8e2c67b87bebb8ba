//! The encoding of nodes: what a plan that is sent to another process has in place of a node of Pleach.
//!
//! Every node that DataFusion itself cannot encode is in an [`Envelope`], those of Ballista as well, so that each task
//! has the version of who encoded it. The first two fields keep their numbers and types in all versions.

use prost::{Message, Oneof};

/// The version alone: it is decoded before anything else.
#[derive(Clone, PartialEq, Message)]
pub struct Stamp {
    #[prost(string, optional, tag = "1")]
    pub product: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub format: Option<String>,
}

/// A node and the version of who encoded it.
#[derive(Clone, PartialEq, Message)]
pub struct Envelope {
    #[prost(string, optional, tag = "1")]
    pub product: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub format: Option<String>,
    #[prost(oneof = "Node", tags = "3, 4, 5, 6")]
    pub node: Option<Node>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Node {
    /// A node of the wrapped codec.
    #[prost(bytes = "vec", tag = "3")]
    Other(Vec<u8>),
    #[prost(message, tag = "4")]
    Table(TableMessage),
    #[prost(message, tag = "5")]
    Scan(ScanMessage),
    #[prost(message, tag = "6")]
    Join(Box<JoinMessage>),
}

/// A table of a logical plan.
#[derive(Clone, PartialEq, Message)]
pub struct TableMessage {
    #[prost(string, tag = "1")]
    pub location: String,
    #[prost(uint64, tag = "2")]
    pub generation: u64,
    /// The id of the set, or that of the contents of a file: 16 bytes.
    #[prost(bytes = "vec", tag = "3")]
    pub identity: Vec<u8>,
}

/// A scan. The pieces of files that a task reads are rows of the input of its node.
#[derive(Clone, PartialEq, Message)]
pub struct ScanMessage {
    #[prost(message, optional, tag = "1")]
    pub table: Option<TableMessage>,
    #[prost(uint64, repeated, tag = "2")]
    pub projection: Vec<u64>,
    #[prost(message, repeated, tag = "3")]
    pub keys: Vec<RangeMessage>,
    #[prost(uint64, optional, tag = "4")]
    pub fetch: Option<u64>,
    #[prost(bool, tag = "5")]
    pub is_reversed: bool,
}

/// A range of keys.
#[derive(Clone, PartialEq, Message)]
pub struct RangeMessage {
    #[prost(bytes = "vec", tag = "1")]
    pub start: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub end: Option<Vec<u8>>,
}

/// A join by look-ups. Expressions and schemas are encoded as DataFusion does.
#[derive(Clone, PartialEq, Message)]
pub struct JoinMessage {
    #[prost(message, optional, tag = "1")]
    pub scan: Option<ScanMessage>,
    #[prost(message, repeated, tag = "2")]
    pub columns: Vec<ColumnMessage>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub predicate: Option<Vec<u8>>,
    #[prost(bytes = "vec", tag = "4")]
    pub schema: Vec<u8>,
    #[prost(bool, tag = "5")]
    pub is_probe_left: bool,
    #[prost(bytes = "vec", tag = "6")]
    pub probe_key: Vec<u8>,
    #[prost(bytes = "vec", tag = "7")]
    pub table_key: Vec<u8>,
    #[prost(message, optional, tag = "8")]
    pub filter: Option<FilterMessage>,
    #[prost(string, tag = "9")]
    pub join_type: String,
    #[prost(message, optional, tag = "10")]
    pub projection: Option<PlacesMessage>,
    #[prost(uint64, optional, tag = "11")]
    pub fetch: Option<u64>,
}

/// An expression and its name.
#[derive(Clone, PartialEq, Message)]
pub struct ColumnMessage {
    #[prost(bytes = "vec", tag = "1")]
    pub expr: Vec<u8>,
    #[prost(string, tag = "2")]
    pub alias: String,
}

/// A further condition of a join.
#[derive(Clone, PartialEq, Message)]
pub struct FilterMessage {
    #[prost(bytes = "vec", tag = "1")]
    pub expr: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub schema: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    pub columns: Vec<SideMessage>,
}

/// A column of one side of a join.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct SideMessage {
    #[prost(uint64, tag = "1")]
    pub index: u64,
    #[prost(bool, tag = "2")]
    pub is_left: bool,
}

/// Numbers of columns.
#[derive(Clone, PartialEq, Message)]
pub struct PlacesMessage {
    #[prost(uint64, repeated, tag = "1")]
    pub places: Vec<u64>,
}
