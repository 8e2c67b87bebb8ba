//! Processes of other versions are refused.

use crate::kit::{Cluster, Tables, rows};
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use clap::Parser;
use datafusion::prelude::SessionContext;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{AsExecutionPlan, PhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;
use pleach_ballista::{
    ExecutorOptions, OpenTables, PleachLogicalCodec, PleachPhysicalCodec, PleachTaskScanExec, Version,
    client, executor_config, run_executor, session_config,
};
use pleach_datafusion::{KeySet, PleachScanExec, PleachTable, Source};
use std::sync::Arc;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: ExecutorOptions,
}

fn forged() -> Version {
    Version::new("9.9.9", Version::own().format())
}

#[tokio::test(flavor = "multi_thread")]
async fn executors_of_other_versions_do_not_join() {
    let cluster = Cluster::new();
    let options =
        Arguments::parse_from(["executor", "--scheduler", &cluster.address, "--name", "other"]).options;
    for version in [forged(), Version::new(Version::own().product(), "7.0")] {
        let error = run_executor(&options, &version).await.expect_err("it is refused").to_string();
        for part in [version.to_string(), Version::own().to_string(), "use the same everywhere".into()] {
            assert!(error.contains(&part), "{part}: {error}");
        }
    }
    // A stock executor has no version.
    let config = executor_config(&options, &Version::own()).expect("the options are right");
    let config = ExecutorProcessConfig { executor_id: "stock".into(), ..config };
    let error = start_executor_process(Arc::new(config)).await.expect_err("it is refused").to_string();
    assert!(error.contains("not of Pleach"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_other_versions_are_refused() {
    let tables = Tables::new().await;
    let cluster = Cluster::of_two();
    let config = session_config(&forged(), &OpenTables::default());
    let other = client(&cluster.address, config).await.expect("a session can be made");
    let other = tables.in_session(other).await;
    let error = rows(&other, "SELECT sum(n) FROM s").await.expect_err("it is refused").to_string();
    assert!(error.contains("9.9.9") && error.contains(&Version::own().to_string()), "{error}");
}

#[tokio::test]
async fn tasks_of_other_versions_are_refused() {
    let tables = Tables::new().await;
    let source = Source::open(tables.set()).expect("the set is there");
    // The key 0, whose sign is turned.
    let keys = KeySet::points([(1u64 << 63).to_be_bytes().to_vec()]);
    let scan = PleachScanExec::new(source, Some(&[1, 0]), keys, 4, None).expect("it fits");
    let scan = Arc::new(PleachTaskScanExec::new(&scan).expect("it can be divided"));
    let codec = |version| PleachPhysicalCodec::new(version, OpenTables::default());
    let context = SessionContext::new().task_ctx();
    let node =
        PhysicalPlanNode::try_from_physical_plan(scan, &codec(Version::own())).expect("it can be encoded");
    let same = node.try_into_physical_plan(&context, &codec(Version::own())).expect("it can be decoded");
    let same = same.downcast_ref::<PleachTaskScanExec>().expect("it is a scan");
    assert_eq!((same.files(), same.scan().projection()), (vec![0], &[1, 0][..]));
    let error =
        node.try_into_physical_plan(&context, &codec(forged())).expect_err("it is refused").to_string();
    assert!(error.contains("9.9.9") && error.contains(&Version::own().to_string()), "{error}");
    // Neither codec reads what the other one wrote.
    let stock = BallistaPhysicalExtensionCodec::default();
    node.try_into_physical_plan(&context, &stock).expect_err("it is unknown");
    let bytes = b"\x0a\x03abc";
    let converter = datafusion_proto::physical_plan::DefaultPhysicalProtoConverter {};
    let error = codec(Version::own())
        .try_decode(bytes, &[], &context, &converter)
        .expect_err("no version")
        .to_string();
    assert!(error.contains("no version"), "{error}");
}

#[tokio::test]
async fn plans_keep_their_generation() {
    let tables = Tables::new().await;
    let codec = PleachLogicalCodec::new(Version::own(), OpenTables::default());
    let context = SessionContext::new();
    let table = Arc::new(PleachTable::open(tables.set()).expect("the set is there"));
    let (schema, name) = (Arc::clone(table.source().schema()), "s".into());
    let mut bytes = Vec::new();
    codec.try_encode_table_provider(&name, table, &mut bytes).expect("it can be encoded");
    let before = Source::open(tables.set()).expect("the set is there");
    let session = pleach_datafusion::session();
    let sql = format!("COPY (SELECT 1 AS k, 2 AS n) TO '{}' STORED AS PLEACH", tables.set().display());
    rows(&session, &sql).await.expect("a new generation can be made");
    let after = Source::open(tables.set()).expect("the set is there");
    assert_ne!(before.generation(), after.generation());
    let decoded =
        codec.try_decode_table_provider(&bytes, &name, schema, &context.task_ctx()).expect("it is there");
    context.register_table("s", decoded).expect("the name is free");
    let count = rows(&context, "SELECT count(*), max(n) FROM s").await.expect("it is answered");
    assert!(count[0].starts_with("40000 "), "{count:?}");
}
