#!/usr/bin/env python3
"""Compares reports of `pleach bench gpu --json` with the targets for an H200.

    python3 bench/compare_gpu.py REPORT.json... [--strict]

Prints a line for each target: reached, SHORT, or not measured, with what was found. Several reports (of runs with
different --only) count as one: a row of a later report replaces the same row of an earlier one. Exit 1 if a target is
short, a report is void or has wrong answers; with --strict also if a target was not measured.
"""

import json
import sys

SPINE = "random/spine/{}/2^{}/uniform/present"
# Shares of random 8-byte reads.
SHARES = {
    ("u32", 24): 0.74, ("u64", 24): 0.70,
    ("u32", 26): 0.72, ("u64", 26): 0.60,
    ("u32", 28): 0.53, ("u64", 28): 0.48,
}
# Multiples of thrust's rate.
THRUST = {("u32", 26): 4.8, ("u64", 26): 5.8, ("u32", 28): 6.5, ("u64", 28): 6.5}
# What two runs of the same thing differ by.
NOISE = 0.02


class Targets:
    def __init__(self, rows):
        self.rows = rows
        self.short = self.missing = 0

    def say(self, what, state, found):
        self.short += state == "SHORT"
        self.missing += state == "not measured"
        print(f"{state:<13} {what}: {found}")

    def check(self, what, name, field, wanted, is_least=True):
        """One number of one row against a bound."""
        row = self.rows.get(name)
        bound = f"{'at least' if is_least else 'at most'} {wanted:g}"
        if row is None or row.get(field) is None:
            reason = "no such row" if row is None else row.get("error", f"no {field}")
            return self.say(what, "SHORT" if row and "error" in row else "not measured", f"{name}: {reason} ({bound})")
        found = row[field]
        reached = found >= wanted if is_least else found <= wanted
        if row.get("is_wrong") or row.get("checked") is False:
            return self.say(what, "SHORT", f"{name}: its answers were not confirmed")
        self.say(what, "reached" if reached else "SHORT", f"{found:.3f} ({bound})")

    def check_all(self, what, rows, field, wanted, least_rows):
        """One number of many rows: the smallest counts."""
        found = [(row[field], name) for name, row in rows if row.get(field) is not None]
        bound = f"at least {wanted:g} in at least {least_rows} rows"
        failed = [name for name, row in rows if "error" in row]
        if failed:
            return self.say(what, "SHORT", f"{failed[0]}: {self.rows[failed[0]]['error']}")
        if len(found) < least_rows:
            return self.say(what, "not measured", f"{len(found)} rows ({bound})")
        least, name = min(found)
        state = "reached" if least >= wanted else "SHORT"
        below = sum(value < wanted for value, _ in found)
        self.say(what, state, f"least {least:.3f} of {name}, {below} of {len(found)} below ({bound})")

    def of(self, start):
        return [(name, row) for name, row in self.rows.items() if name.startswith(start)]

    def run(self):
        for (key_type, bits), share in SHARES.items():
            what = f"spine, random, {key_type}, 2^{bits}, of random 8-byte reads"
            self.check(what, SPINE.format(key_type, bits), "of_random_reads", share)
        for key_type, bits in SHARES:
            name = f"random/spine/{key_type}/2^{bits}/uniform/half-absent"
            self.check(f"half absent, {key_type}, 2^{bits}, of present", name, "of_present", 1 / 1.05)
        for key_type, bits in SHARES:
            name = f"random/spine/{key_type}/2^{bits}/composite/present"
            self.check(f"composite keys, {key_type}, 2^{bits}, of uniform", name, "of_uniform", 0.8)
        for (key_type, bits), times in THRUST.items():
            self.check(f"against thrust, {key_type}, 2^{bits}", SPINE.format(key_type, bits), "of_thrust", times)
        for field, wanted in (("g_per_s", 75), ("of_thrust", 2)):
            self.check(f"2^26 sorted on 2^26 u64, {field}", "sorted/sweep/u64/2^26/2^26", field, wanted)
        sorted_rows = [(name, row) for name, row in self.of("sorted/auto/") if name.endswith("/2^22")]
        self.check_all("2^22 sorted, auto, of spine", sorted_rows, "of_spine", 1 - NOISE, 6)
        for count in (1, 32, 1024):
            name = f"small/spine/u64/2^26/{count}"
            self.check(f"{count} queries, us more than an empty launch", name, "excess_us", 4, is_least=False)
            self.check(f"{count} queries, of binary's excess", name, "of_binary_excess", 0.5, is_least=False)
        for count in (1, 32, 1024):
            name = f"host/recorded/u64/2^26/{count}"
            self.check(f"{count} queries, host to host, recorded, us", name, "us", 15, is_least=False)
        for engine, share in (("pinned", 0.8), ("slices", 0.4)):
            for key_type in ("u32", "u64"):
                name = f"host/{engine}/{key_type}/2^26/2^26"
                self.check(f"host to host, {engine}, {key_type}, of the link", name, "of_link", share)
        inside, beyond = "hybrid/spine/u64/2^24", "hybrid/auto/u64/2^28"
        self.check("hybrid, 256 MiB of lines, of random pinned reads", inside, "of_host_lines", 0.9)
        self.check("hybrid, 4 GiB of lines, G/s", beyond, "g_per_s", 0.6)
        self.check("hybrid, 4 GiB of lines, of the CPU", beyond, "of_cpu", 1)
        for place in ("device", "hybrid"):
            self.check_all(f"auto, {place}, of the best", self.of(f"auto/{place}/"), "of_best", 0.9, 48)
        self.check("build of tuple lines and spine, ms", "build/spine/u64/2^26", "build_ms", 2.5, is_least=False)
        self.check("build of the classic tree, ms", "build/classic/u64/2^26", "build_ms", 3, is_least=False)


def main():
    paths = [argument for argument in sys.argv[1:] if argument != "--strict"]
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    rows, faults, devices = {}, [], set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        if report.get("schema") != "pleach-bench-gpu-1":
            print(f"error: {path}: no report of `pleach bench gpu`", file=sys.stderr)
            return 2
        devices.add(report["device"]["name"])
        faults += [f"{path} is void: {cause}" for cause in report["void_causes"]]
        faults += [f"{path}: {row['name']}: {row['error']}" for row in report["rows"] if row.get("is_wrong")]
        rows.update({row["name"]: row for row in report["rows"]})
    print(f"{', '.join(sorted(devices))}, {len(rows)} rows")
    targets = Targets(rows)
    targets.run()
    for fault in faults:
        print(f"SHORT         {fault}")
    print(f"{targets.short + len(faults)} short, {targets.missing} not measured")
    is_short = targets.short > 0 or bool(faults)
    return int(is_short or ("--strict" in sys.argv and targets.missing > 0))


if __name__ == "__main__":
    sys.exit(main())
