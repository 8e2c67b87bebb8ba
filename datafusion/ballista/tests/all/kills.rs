//! An executor is killed in mid-query: the answer is still that of one process.

use crate::kit::{Cluster, Tables, rows};
use crate::strike::{MOMENTS, Moment, command};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Kills of a usual run; `PLEACH_KILLS` is that of a long one.
const KILLS: usize = 3;
/// Time after which an executor is taken to be past the task.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two stages of scans and look-ups, and some that combine them; and rows from the tasks of a last stage.
const QUERIES: [&str; 2] = [
    "SELECT s.n % 4 AS e, count(*), sum(p.id), min(t.k) FROM p JOIN s ON p.k = s.k \
                   JOIN (SELECT n % 4 AS d, max(k) AS k FROM s GROUP BY d) t ON t.d = s.n % 4 GROUP BY e",
    "SELECT p.id, s.n, t.k FROM p JOIN s ON p.k = s.k \
     JOIN (SELECT n % 40 AS d, max(k) AS k FROM s GROUP BY d) t ON t.d = s.n % 40",
];

/// Forgets the strike before, and sets the next one.
fn aim(folder: &Path, target: &str) {
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        if entry.path().is_file() {
            fs::remove_file(entry.path()).expect("nobody else removes it");
        }
    }
    fs::write(folder.join("target"), target).expect("the folder is there");
}

fn tasks(folder: &Path) -> usize {
    (0..).take_while(|number| folder.join(format!("task-{number}")).exists()).count()
}

/// Waits for the strike, and kills the executor that it is about.
fn kill(cluster: &mut Cluster, folder: &Path, moment: Moment) {
    let start = Instant::now();
    while !folder.join("struck").exists() {
        assert!(start.elapsed() < PATIENCE, "no executor reached the task");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid: u32 =
        fs::read_to_string(folder.join("struck")).expect("it is there").parse().expect("it is a number");
    let is_victim = |own: u32| (own == pid) == (moment != Moment::Other);
    let at = cluster.executors.iter().position(|executor| is_victim(executor.child.id()));
    let mut victim = cluster.executors.remove(at.expect("the executor is one of the two"));
    victim.kill();
    fs::write(folder.join("go"), "").expect("the folder is there");
}

/// Returns the rows of a query in an order of their own.
async fn sorted(session: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let mut rows = rows(session, sql).await?;
    rows.sort();
    Ok(rows)
}

#[test]
fn answers_survive_killed_executors() {
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    let kills =
        std::env::var("PLEACH_KILLS").map_or(KILLS, |text| text.parse().expect("PLEACH_KILLS is a number"));
    let tables = runtime.block_on(Tables::new());
    let one = runtime.block_on(tables.in_session(pleach_datafusion::session()));
    let expected = QUERIES.map(|sql| runtime.block_on(sorted(&one, sql)).expect("one process answers"));
    assert_eq!(expected[0].len(), 4);
    assert!(expected[1].len() > 400, "{} rows", expected[1].len());
    let mut cluster = Cluster::new();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut number = 0;
    let mut add = |cluster: &mut Cluster| {
        number += 1;
        let name = format!("executor-{number}");
        let address = cluster.address.clone();
        cluster.add(&name, &mut command(&address, &name, folder.path()));
    };
    add(&mut cluster);
    add(&mut cluster);
    cluster.wait_for_two();
    // The adaptive planner of Ballista 55 loses queries with executors: apache/datafusion-ballista#1986.
    let many = runtime.block_on(async { tables.in_session(cluster.client(false).await).await });
    let counts = [0, 1].map(|query| {
        aim(folder.path(), "none Before");
        assert_eq!(runtime.block_on(sorted(&many, QUERIES[query])).expect("it is answered"), expected[query]);
        tasks(folder.path())
    });
    assert!(counts.iter().all(|&count| count > 8), "{counts:?} tasks");
    for run in 0..kills {
        let query = run % QUERIES.len();
        let (sql, count) = (QUERIES[query], counts[query]);
        // Steps of a number that is prime to the others meet all pairs of tasks and moments.
        let (task, moment) = (run * 7 % count, MOMENTS[run % MOMENTS.len()]);
        aim(folder.path(), &format!("{task} {moment:?}"));
        let start = Instant::now();
        let found = runtime.block_on(async {
            let session = many.clone();
            let query = tokio::spawn(async move { sorted(&session, sql).await });
            tokio::task::block_in_place(|| kill(&mut cluster, folder.path(), moment));
            query.await.expect("the query does not panic")
        });
        let found = found.unwrap_or_else(|error| panic!("run {run}, task {task}, {moment:?}: {error}"));
        assert_eq!(found, expected[query], "run {run}, query {query}, task {task}, {moment:?}");
        eprintln!(
            "run {run}: query {query}, task {task} of {count}, {moment:?}: {:.1} s",
            start.elapsed().as_secs_f64()
        );
        add(&mut cluster);
        cluster.wait_for_two();
    }
}
