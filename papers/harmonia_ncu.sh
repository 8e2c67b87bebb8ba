#!/usr/bin/env bash
# Figure 12 of the paper on Harmonia, by the hardware's counters: papers/harmonia_ncu.sh [LOG2_OF_TUPLES [LOG2_OF_QUERIES]].
# Prints a line for each metric and search, in the order of papers/examples/harmonia.rs. PROGRAM may name the example.
set -euo pipefail
program=${PROGRAM:-}
if [ -z "$program" ]; then
    cargo build --release --locked -p pleach-papers --example harmonia
    program=target/release/examples/harmonia
fi
metrics=(
    gpu__time_duration.sum
    # Global memory transactions: requests and sectors of loads, those that reach level 2, those from memory.
    l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum
    l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
    lts__t_sectors_op_read.sum
    dram__sectors_read.sum
    # Memory divergence: sectors a request. Warp coherence: threads that take part in an instruction.
    l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio
    smsp__thread_inst_executed_per_inst_executed.ratio
    # What is busy.
    smsp__inst_executed.sum
    smsp__issue_active.avg.pct_of_peak_sustained_active
    l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active
    lts__t_sectors.avg.pct_of_peak_sustained_elapsed
    dram__bytes.sum.pct_of_peak_sustained_elapsed
)
ncu --clock-control none --csv --kernel-name 'regex:^(harmonia_constant|regular|sort_.*)$' \
    --metrics "$(IFS=,; echo "${metrics[*]}")" "$program" "${@:-26}" |
    python3 -c '
import csv, sys
lines = [line for line in sys.stdin if line.startswith("\"")]
for row in csv.DictReader(lines):
    print(row["ID"], row["Kernel Name"].split("(")[0], row["Metric Name"], row["Metric Value"], row["Metric Unit"])
'
