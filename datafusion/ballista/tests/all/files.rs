//! Files that a task is given, and files that its executor opens.

use crate::kit::{Cluster, FILES, Process, Tables, rows};
use pleach_datafusion::Source;
use std::collections::BTreeSet;

/// Returns the files that the executor was given by its tasks since `from` bytes of its log, those of a file once for
/// each task.
fn given(executor: &Process, from: usize) -> Vec<usize> {
    let log = executor.log();
    let lists = log[from..].lines().filter_map(|line| line.split_once("given files [")?.1.split_once(']'));
    let numbers = lists.flat_map(|(list, _)| list.split(", ").filter(|number| !number.is_empty()));
    numbers.map(|number| number.parse().expect("files are numbers")).collect()
}

/// Returns the files of a set that a process has mapped.
fn mapped(executor: &Process, source: &Source) -> BTreeSet<usize> {
    let maps =
        std::fs::read_to_string(format!("/proc/{}/maps", executor.child.id())).expect("the process runs");
    let set = source.set().expect("it is a set");
    (0..source.files()).filter(|&file| maps.contains(set.manifest().name(file))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_given_its_files_and_opens_no_others() {
    let tables = Tables::new().await;
    let source = Source::open(tables.set()).expect("the set is there");
    assert_eq!(source.files(), FILES);
    for is_adaptive in [true, false] {
        // New processes have no files open.
        let cluster = Cluster::of_two();
        let many = tables.in_session(cluster.client(is_adaptive).await).await;
        let ends =
            || -> Vec<usize> { cluster.executors.iter().map(|executor| executor.log().len()).collect() };
        let counted = |ends: &[usize]| -> Vec<Vec<usize>> {
            cluster.executors.iter().zip(ends).map(|(executor, &end)| given(executor, end)).collect()
        };
        let start = ends();
        rows(&many, "SELECT sum(n) FROM s WHERE k BETWEEN 20000 AND 50000").await.expect("it is answered");
        let mut few: Vec<usize> = counted(&start).concat();
        few.sort_unstable();
        assert_eq!(few, [1, 2, 3], "files that can have the keys, each of them once");
        for executor in &cluster.executors {
            let own: BTreeSet<usize> = given(executor, 0).into_iter().collect();
            assert_eq!(mapped(executor, &source), own, "{}", executor.name);
        }
        let start = ends();
        let sum = rows(&many, "SELECT sum(n) FROM s").await.expect("it is answered");
        let by_executor = counted(&start);
        let mut all: Vec<usize> = by_executor.concat();
        all.sort_unstable();
        assert_eq!(all, (0..FILES).collect::<Vec<_>>(), "each file once");
        assert!(by_executor.iter().all(|files| !files.is_empty()), "both take part: {by_executor:?}");
        for executor in &cluster.executors {
            let own: BTreeSet<usize> = given(executor, 0).into_iter().collect();
            assert_eq!(mapped(executor, &source), own, "{}", executor.name);
        }
        assert_eq!(rows(&many, "SELECT sum(n) FROM s").await.expect("it is answered"), sum);
    }
}
