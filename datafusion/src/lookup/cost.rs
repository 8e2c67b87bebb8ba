//! What joins take, in nanoseconds of one core.
//!
//! All plans of a join spread over the same cores, so that their number does not matter for the choice. The numbers are
//! estimates, fitted to the tables of `docs/lab/look-up.md` and `docs/lab/relational.md`. `examples/joins.rs` measures
//! the plans that they choose: `docs/lab/sets.md` has the times.

/// Rows of a probe whose number nobody knows, as a part of the table's tuples.
const UNKNOWN_PART: f64 = 0.01;

/// What the steps of joins take, in nanoseconds of one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A look-up in a table that fits the caches of a core, with its tuple.
    pub look_up_ns: f64,
    /// More of it for each doubling of the table beyond [`Costs::cached_tuples`], if keys come in any order.
    pub doubling_ns: f64,
    /// Tuples of a table that fits the caches of a core.
    pub cached_tuples: f64,
    /// A look-up whose key is equal to the one before it, or close to it.
    pub near_ns: f64,
    /// What a look-up of texts takes more.
    pub text_ns: f64,
    /// Opening a file of a set.
    pub open_ns: f64,
    /// A row that is scanned.
    pub scan_ns: f64,
    /// A row that enters a hash table which fits the caches of a core.
    pub build_ns: f64,
    /// A row that asks a hash table which fits the caches of a core.
    pub probe_ns: f64,
    /// More of both for each doubling of the hash table beyond [`Costs::cached_rows`].
    pub miss_ns: f64,
    /// Rows of a hash table that fits the caches of a core.
    pub cached_rows: f64,
    /// A row of either side of a merge join.
    pub merge_ns: f64,
    /// A row that is sorted, for each doubling of the rows.
    pub sort_ns: f64,
    /// A row that is sent to another partition.
    pub send_ns: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            look_up_ns: 50.0,
            doubling_ns: 10.0,
            cached_tuples: 131_072.0,
            near_ns: 35.0,
            text_ns: 120.0,
            open_ns: 60_000.0,
            scan_ns: 8.0,
            build_ns: 60.0,
            probe_ns: 20.0,
            miss_ns: 25.0,
            cached_rows: 32_768.0,
            merge_ns: 130.0,
            sort_ns: 6.0,
            send_ns: 15.0,
        }
    }
}

/// The rows that look up, or enter another join.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Number of rows; `None` if nobody knows it.
    pub rows: Option<f64>,
    /// True if the rows are in the order of the keys.
    pub is_sorted: bool,
}

/// The table that is looked up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Table {
    /// Tuples of the file or set.
    pub tuples: f64,
    /// Tuples that a scan returns.
    pub scanned: f64,
    /// Number of files.
    pub files: f64,
    /// True if keys are byte strings.
    pub is_text: bool,
}

/// The join that the plan has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// A hash join whose hash table has the rows of the probe.
    HashOfProbe,
    /// A hash join whose hash table has the tuples of the table.
    HashOfTable,
    /// A merge join, and whether each side has to be sorted.
    Merge {
        /// True if the probe has to be sorted.
        sorts_probe: bool,
        /// True if the table has to be sorted.
        sorts_table: bool,
    },
}

fn doublings(count: f64, cached: f64) -> f64 {
    (count / cached).log2().max(0.0)
}

impl Costs {
    /// Returns the rows of a probe, or a guess: a hundredth of the tuples.
    ///
    /// Look-ups for a probe that turns out to be large take a few times as long as a hash join. A hash join for a
    /// probe that turns out to be small may take a million times as long as look-ups.
    #[must_use]
    pub fn rows(probe: &Probe, table: &Table) -> f64 {
        probe.rows.unwrap_or(table.tuples * UNKNOWN_PART)
    }

    /// Estimates a look-up join.
    #[must_use]
    pub fn look_ups_ns(&self, probe: &Probe, table: &Table) -> f64 {
        let rows = Self::rows(probe, table);
        let far = self.look_up_ns + self.doubling_ns * doublings(table.tuples, self.cached_tuples);
        let each = if probe.is_sorted {
            // Of ascending keys, many share the lines of the one before, if they are dense.
            let density = (rows / table.tuples.max(1.0)).min(1.0);
            self.near_ns * density + far * (1.0 - density)
        } else {
            far
        };
        let each = if table.is_text { each + self.text_ns } else { each };
        rows * each + rows.min(table.files) * self.open_ns
    }

    /// Estimates the join that the plan has.
    #[must_use]
    pub fn rival_ns(&self, rival: Rival, probe: &Probe, table: &Table) -> f64 {
        let rows = Self::rows(probe, table);
        let text_ns = if table.is_text { self.text_ns / 2.0 } else { 0.0 };
        let read_ns = table.scanned * self.scan_ns + table.files * self.open_ns;
        let miss_ns = |hashed: f64| self.miss_ns * doublings(hashed, self.cached_rows) + text_ns;
        let ask_ns = |hashed: f64| self.probe_ns + miss_ns(hashed);
        let sort_ns = |count: f64| count * (self.send_ns + self.sort_ns * count.max(2.0).log2());
        match rival {
            Rival::HashOfProbe => {
                read_ns + rows * (self.build_ns + miss_ns(rows)) + table.scanned * ask_ns(rows)
            }
            Rival::HashOfTable => {
                let build_ns = self.build_ns + miss_ns(table.scanned);
                read_ns + table.scanned * build_ns + rows * ask_ns(table.scanned)
            }
            Rival::Merge { sorts_probe, sorts_table } => {
                let sorts_ns = if sorts_probe { sort_ns(rows) } else { 0.0 }
                    + if sorts_table { sort_ns(table.scanned) } else { 0.0 };
                read_ns + sorts_ns + (rows + table.scanned) * (self.merge_ns + text_ns)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table { tuples: 83e6, scanned: 83e6, files: 1.0, is_text: false };

    fn prefers_look_ups(rows: Option<f64>, is_sorted: bool, rival: Rival) -> bool {
        let (costs, probe) = (Costs::default(), Probe { rows, is_sorted });
        costs.look_ups_ns(&probe, &TABLE) < costs.rival_ns(rival, &probe, &TABLE)
    }

    #[test]
    fn few_keys_are_looked_up() {
        for rows in [1.0, 100.0, 151.0, 46e3, 1e6] {
            for rival in [
                Rival::HashOfProbe,
                Rival::HashOfTable,
                Rival::Merge { sorts_probe: true, sorts_table: true },
                Rival::Merge { sorts_probe: false, sorts_table: false },
            ] {
                assert!(prefers_look_ups(Some(rows), false, rival), "{rows} {rival:?}");
            }
        }
        assert!(prefers_look_ups(None, false, Rival::HashOfProbe));
    }

    #[test]
    fn a_small_table_is_hashed_for_many_rows() {
        let (costs, probe) = (Costs::default(), Probe { rows: Some(1e9), is_sorted: false });
        let table = Table { tuples: 1e4, scanned: 1e4, files: 1.0, is_text: false };
        assert!(costs.look_ups_ns(&probe, &table) > costs.rival_ns(Rival::HashOfTable, &probe, &table));
    }
}
