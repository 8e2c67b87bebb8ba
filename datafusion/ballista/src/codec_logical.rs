//! Tables of logical plans: what a client sends to the scheduler.

use crate::codec::{damaged, identity, put, refused, table_message, take};
use crate::message::Node;
use crate::tables::OpenTables;
use crate::version::Version;
use ballista_core::serde::BallistaLogicalExtensionCodec;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, Extension, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use pleach_datafusion::{PleachFormatFactory, PleachTable};
use std::sync::Arc;

/// Encodes tables of Pleach as their location and their generation, and leaves everything else to another codec.
#[derive(Debug)]
pub struct PleachLogicalCodec {
    inner: Arc<dyn LogicalExtensionCodec>,
    version: Version,
    tables: OpenTables,
}

impl PleachLogicalCodec {
    /// Wraps the codec of Ballista.
    #[must_use]
    pub fn new(version: Version, tables: OpenTables) -> Self {
        Self::over(Arc::new(BallistaLogicalExtensionCodec::default()), version, tables)
    }

    /// Wraps another codec. Plans of other versions are refused.
    #[must_use]
    pub fn over(inner: Arc<dyn LogicalExtensionCodec>, version: Version, tables: OpenTables) -> Self {
        Self { inner, version, tables }
    }
}

impl LogicalExtensionCodec for PleachLogicalCodec {
    fn try_decode(&self, buf: &[u8], inputs: &[LogicalPlan], ctx: &TaskContext) -> Result<Extension> {
        match take(&self.version, buf)? {
            Node::Other(bytes) => self.inner.try_decode(&bytes, inputs, ctx),
            Node::Table(_) | Node::Scan(_) | Node::Join(_) => {
                Err(damaged("a logical plan", "another kind of node"))
            }
        }
    }

    fn try_encode(&self, node: &Extension, buf: &mut Vec<u8>) -> Result<()> {
        let mut bytes = Vec::new();
        self.inner.try_encode(node, &mut bytes)?;
        put(&self.version, Node::Other(bytes), buf)
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        table_ref: &TableReference,
        schema: SchemaRef,
        ctx: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match take(&self.version, buf)? {
            Node::Other(bytes) => self.inner.try_decode_table_provider(&bytes, table_ref, schema, ctx),
            Node::Table(table) => {
                let source =
                    self.tables.get(&table.location, table.generation, identity(&table.identity)?)?;
                Ok(Arc::new(PleachTable::pinned(source)))
            }
            Node::Scan(_) | Node::Join(_) => Err(damaged("a logical plan", "another kind of node")),
        }
    }

    fn try_encode_table_provider(
        &self,
        table_ref: &TableReference,
        node: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        if let Some(table) = node.downcast_ref::<PleachTable>() {
            // All tasks of the query read this generation, whatever is published meanwhile.
            return put(&self.version, Node::Table(table_message(&table.current()?)?), buf);
        }
        let mut bytes = Vec::new();
        self.inner.try_encode_table_provider(table_ref, node, &mut bytes)?;
        put(&self.version, Node::Other(bytes), buf)
    }

    fn try_decode_file_format(&self, buf: &[u8], ctx: &TaskContext) -> Result<Arc<dyn FileFormatFactory>> {
        self.inner.try_decode_file_format(buf, ctx)
    }

    fn try_encode_file_format(&self, buf: &mut Vec<u8>, node: Arc<dyn FileFormatFactory>) -> Result<()> {
        if node.downcast_ref::<PleachFormatFactory>().is_some() {
            return Err(refused(
                "COPY cannot build in a cluster: the format pleach: build with `pleach set build`",
            ));
        }
        self.inner.try_encode_file_format(buf, node)
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.inner.try_decode_udf(name, buf)
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udf(node, buf)
    }

    fn try_decode_higher_order_function(&self, name: &str, buf: &[u8]) -> Result<Arc<HigherOrderUDF>> {
        self.inner.try_decode_higher_order_function(name, buf)
    }

    fn try_encode_higher_order_function(&self, node: &HigherOrderUDF, buf: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_higher_order_function(node, buf)
    }

    fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.inner.try_decode_udaf(name, buf)
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buf: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udaf(node, buf)
    }

    fn try_decode_udwf(&self, name: &str, buf: &[u8]) -> Result<Arc<WindowUDF>> {
        self.inner.try_decode_udwf(name, buf)
    }

    fn try_encode_udwf(&self, node: &WindowUDF, buf: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udwf(node, buf)
    }
}
