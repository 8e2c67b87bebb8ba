//! Scans and look-up joins of tasks: what the scheduler sends to executors.

use crate::codec::{damaged, place, places, put, refused, scan_message, scan_of, take};
use crate::message::{
    ColumnMessage, FilterMessage, JoinMessage, Node, PlacesMessage, ScanMessage, SideMessage,
};
use crate::tables::OpenTables;
use crate::task_scan::PleachTaskScanExec;
use crate::version::Version;
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::JoinSide;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, JoinType, ScalarUDF, WindowUDF};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion::physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion_proto::physical_plan::from_proto::parse_physical_expr;
use datafusion_proto::physical_plan::to_proto::serialize_physical_expr;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use datafusion_proto::protobuf::{PhysicalExprNode, Schema as SchemaMessage};
use pleach_datafusion::lookup::TableSide;
use pleach_datafusion::{LookupJoinExec, PleachScanExec};
use prost::Message;
use std::str::FromStr;
use std::sync::Arc;

/// Encodes scans and look-up joins, and leaves everything else to another codec.
///
/// A scan is the location of the set, its generation, columns and keys; the pieces of files are in the input of its
/// node. Each node carries the version of who encoded it, and a task of another version is refused.
#[derive(Debug)]
pub struct PleachPhysicalCodec {
    inner: Arc<dyn PhysicalExtensionCodec>,
    version: Version,
    tables: OpenTables,
}

impl PleachPhysicalCodec {
    /// Wraps the codec of Ballista.
    #[must_use]
    pub fn new(version: Version, tables: OpenTables) -> Self {
        Self::over(Arc::new(BallistaPhysicalExtensionCodec::default()), version, tables)
    }

    /// Wraps another codec. Plans of other versions are refused.
    #[must_use]
    pub fn over(inner: Arc<dyn PhysicalExtensionCodec>, version: Version, tables: OpenTables) -> Self {
        Self { inner, version, tables }
    }

    fn scan(&self, message: ScanMessage, input: &Arc<dyn ExecutionPlan>) -> Result<PleachTaskScanExec> {
        let scan = scan_of(message)?;
        let source = self.tables.get(&scan.location, scan.generation, scan.identity)?;
        let scan = PleachTaskScanExec::over(source, scan, Arc::clone(input))?;
        let (files, source) = (scan.files(), scan.scan().source());
        let (location, generation, all) = (source.location(), source.generation(), source.files());
        log::info!("given files {files:?} of {all}: {location}, generation {generation}");
        Ok(scan)
    }

    fn join_message(&self, join: &LookupJoinExec) -> Result<JoinMessage> {
        let table = join.table();
        let expr = |expr: &PhysicalExprRef| -> Result<Vec<u8>> {
            Ok(serialize_physical_expr(expr, self)?.encode_to_vec())
        };
        let column = |column: &ProjectionExpr| {
            Ok(ColumnMessage { expr: expr(&column.expr)?, alias: column.alias.clone() })
        };
        let filter = |filter: &JoinFilter| -> Result<FilterMessage> {
            let side = |column: &ColumnIndex| {
                Ok(SideMessage { index: column.index as u64, is_left: is_left(column.side)? })
            };
            Ok(FilterMessage {
                expr: expr(filter.expression())?,
                schema: schema_bytes(filter.schema())?,
                columns: filter.column_indices().iter().map(side).collect::<Result<_>>()?,
            })
        };
        let projection =
            |places: &[usize]| PlacesMessage { places: places.iter().map(|&at| at as u64).collect() };
        Ok(JoinMessage {
            scan: Some(scan_message(table.scan().describe())),
            columns: table.columns().iter().map(column).collect::<Result<_>>()?,
            predicate: table.predicate().map(expr).transpose()?,
            schema: schema_bytes(table.schema())?,
            is_probe_left: is_left(join.probe_side())?,
            probe_key: expr(&join.on().0)?,
            table_key: expr(&join.on().1)?,
            filter: join.filter().map(filter).transpose()?,
            join_type: join.join_type().to_string(),
            projection: join.projection().map(projection),
            fetch: join.fetch().map(|fetch| fetch as u64),
        })
    }

    fn join(
        &self,
        join: JoinMessage,
        probe: &Arc<dyn ExecutionPlan>,
        ctx: &TaskContext,
    ) -> Result<LookupJoinExec> {
        let scan = scan_of(join.scan.ok_or_else(|| damaged("a join", "it has no table"))?)?;
        let source = self.tables.get(&scan.location, scan.generation, scan.identity)?;
        let scan = Arc::new(PleachScanExec::of_source(source, scan)?);
        let expr = |bytes: &[u8], schema: &Schema| {
            let node = PhysicalExprNode::decode(bytes).map_err(|error| damaged("an expression", error))?;
            parse_physical_expr(&node, ctx, schema, self)
        };
        let scanned = ExecutionPlan::schema(&*scan);
        let column = |column: ColumnMessage| {
            Ok(ProjectionExpr { expr: expr(&column.expr, &scanned)?, alias: column.alias })
        };
        let columns = join.columns.into_iter().map(column).collect::<Result<_>>()?;
        let predicate = join.predicate.map(|bytes| expr(&bytes, &scanned)).transpose()?;
        let schema = Arc::new(schema_of(&join.schema)?);
        let on = (expr(&join.probe_key, &probe.schema())?, expr(&join.table_key, &schema)?);
        let table = TableSide::new(scan, columns, predicate, schema);
        let filter = |filter: FilterMessage| -> Result<JoinFilter> {
            let schema = schema_of(&filter.schema)?;
            let column = |column: SideMessage| {
                Ok(ColumnIndex { index: place(column.index)?, side: side(column.is_left) })
            };
            let columns = filter.columns.into_iter().map(column).collect::<Result<_>>()?;
            Ok(JoinFilter::new(expr(&filter.expr, &schema)?, columns, Arc::new(schema)))
        };
        let lookups = LookupJoinExec::try_new(
            Arc::clone(probe),
            table,
            side(join.is_probe_left),
            on,
            join.filter.map(filter).transpose()?,
            JoinType::from_str(&join.join_type)?,
            join.projection.map(|projection| places(projection.places)).transpose()?,
        )?;
        Ok(lookups.with_limit(join.fetch.map(place).transpose()?))
    }
}

fn is_left(side: JoinSide) -> Result<bool> {
    match side {
        JoinSide::Left => Ok(true),
        JoinSide::Right => Ok(false),
        JoinSide::None => Err(refused("a look-up join without a side: plan the query again")),
    }
}

fn side(is_left: bool) -> JoinSide {
    if is_left { JoinSide::Left } else { JoinSide::Right }
}

fn schema_bytes(schema: &Schema) -> Result<Vec<u8>> {
    Ok(SchemaMessage::try_from(schema)?.encode_to_vec())
}

fn schema_of(bytes: &[u8]) -> Result<Schema> {
    let message = SchemaMessage::decode(bytes).map_err(|error| damaged("a schema", error))?;
    Ok(Schema::try_from(&message)?)
}

impl PhysicalExtensionCodec for PleachPhysicalCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (take(&self.version, buf)?, inputs) {
            (Node::Other(bytes), inputs) => self.inner.try_decode(&bytes, inputs, ctx, converter),
            (Node::Scan(scan), [input]) => Ok(Arc::new(self.scan(scan, input)?)),
            (Node::Join(join), [probe]) => Ok(Arc::new(self.join(*join, probe, ctx)?)),
            (Node::Scan(_) | Node::Join(_) | Node::Table(_), _) => {
                Err(damaged("a task", "another kind of node"))
            }
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(scan) = node.downcast_ref::<PleachTaskScanExec>() {
            return put(&self.version, Node::Scan(scan_message(scan.scan().describe())), buf);
        }
        if let Some(join) = node.downcast_ref::<LookupJoinExec>() {
            return put(&self.version, Node::Join(Box::new(self.join_message(join)?)), buf);
        }
        if let Some(scan) = node.downcast_ref::<PleachScanExec>() {
            // Ballista would have each task read all of it.
            let location = scan.source().location();
            return Err(refused(format!(
                "a scan that cannot be divided: {location}: plan it in a session for clusters"
            )));
        }
        let mut bytes = Vec::new();
        self.inner.try_encode(node, &mut bytes, converter)?;
        put(&self.version, Node::Other(bytes), buf)
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

    fn try_decode_expr(
        &self,
        buf: &[u8],
        inputs: &[PhysicalExprRef],
        ctx: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<PhysicalExprRef> {
        self.inner.try_decode_expr(buf, inputs, ctx)
    }

    fn try_encode_expr(
        &self,
        node: &PhysicalExprRef,
        buf: &mut Vec<u8>,
        ctx: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        self.inner.try_encode_expr(node, buf, ctx)
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
