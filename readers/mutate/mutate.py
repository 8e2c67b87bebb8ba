"""Changes a reader at one place after the other, and asks the conformance kit whether it sees that.

    python3 readers/mutate/mutate.py python --kit spec/vectors

Every condition is negated, every check deleted, and every operand of an `and` or `or` dropped. A
mutant that passes the kit survives: either the kit lacks a file, or the change does not change what
the reader does. Survivors of the second kind are listed in `accepted/READER.txt`, each with its
reason; the others are printed, and must be at most one in twenty.
"""

import argparse
import concurrent.futures
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import python_mutants
import token_mutants
from kit import Kit

HERE = pathlib.Path(__file__).resolve().parent
GCC = ["gcc", "-std=c99", "-O0", "-o", "driver"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
READERS = {
    "python": {
        "level": 2,
        "folder": HERE.parent / "python",
        "files": ["pleach_reader.py"],
        "has_files": False,
        "run": [sys.executable, "driver.py"],
        "checks": ["refuse"],
    },
    "c": {
        "level": 1,
        "folder": HERE.parent / "c",
        "files": ["pleach_reader.h"],
        "has_files": False,
        # The second build is slower, and sees what leaves its memory. It is for those left by the first.
        "builds": [[*GCC, "driver.c"], [*GCC, *SANITIZE, "driver.c"]],
        "run": ["./driver"],
        "checks": ["PLEACH_REFUSE", "PLEACH_NOTE"],
    },
    "js": {
        "level": 3,
        "folder": HERE.parent / "js",
        "files": ["**/*.js", "**/*.mjs"],
        "has_files": True,
        "run": ["node", "--max-old-space-size=512", "driver.mjs"],
        "cover": ["node", HERE / "cover.mjs"],
        "checks": [],
    },
}
SHARE = 0.95
IGNORE = shutil.ignore_patterns("node_modules", "test", "__pycache__")


def find_mutants(reader):
    """Returns the mutants of all files of a reader, with the file of each."""
    found = []
    for pattern in reader["files"]:
        for path in sorted(reader["folder"].glob(pattern)):
            name = path.relative_to(reader["folder"])
            if name.name.startswith("driver") or {"test", "node_modules"} & set(name.parts):
                continue
            source = path.read_text()
            if path.suffix == ".py":
                mutants = python_mutants.mutants(source, reader["checks"])
            else:
                mutants = token_mutants.mutants(
                    source, reader["checks"], path.suffix in (".h", ".c")
                )
            found += [(name, mutant) for mutant in mutants]
    return found


def read_accepted(path):
    """Returns the reasons of accepted survivors, by what they change."""
    accepted = {}
    if path.exists():
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                key, _, reason = line.rpartition(" -- ")
                accepted[key.strip()] = reason.strip()
    return accepted


def key_of(reader, name, mutant):
    """Returns what the lists call a mutant: with its file, if the reader has several."""
    return f"{name} | {mutant.key()}" if reader["has_files"] else mutant.key()


def is_outside(accepted, name, mutant):
    """Reports whether the list says that no request of the protocol reaches this part."""
    return f"outside | {name} | {mutant.function}" in accepted


class Trial:
    """A reader, the kit that it is asked, and what is known of survivors."""

    def __init__(self, reader, kit, accepted, tells_caught):
        self.reader, self.kit, self.accepted = reader, kit, accepted
        self.tells_caught = tells_caught
        self.seconds = 60

    def fault_of(self, folder, sheets, **more):
        """Returns why the reader in a folder is caught and by which file, or None twice; and its
        answers till then."""
        sheet, answers = None, []
        for command in self.reader.get("builds", [None]):
            if command and subprocess.run(command, cwd=folder, capture_output=True).returncode:
                return "it cannot be built", None, answers
            run, seconds = self.reader["run"], self.seconds
            fault, sheet, answers = self.kit.first_fault(run, folder, sheets, seconds, **more)
            if fault:
                return fault, sheet, answers
        return None, None, answers

    def begin(self):
        """Asks the unchanged reader, which must be right."""
        with tempfile.TemporaryDirectory() as temporary:
            whole = pathlib.Path(temporary, "reader")
            shutil.copytree(self.reader["folder"], whole, ignore=IGNORE)
            fault, _, answers = self.fault_of(whole, self.kit.sheets, stderr=None)
            if not fault:
                self.kit.extend(answers)
                began = time.monotonic()
                fault, _, _ = self.fault_of(whole, self.kit.sheets, stderr=None)
            if fault:
                raise SystemExit(f"the unchanged reader fails: {fault}")
            # Time for one answer, on a machine that has other work.
            self.seconds = 4 + (time.monotonic() - began) / 2
            if "cover" in self.reader:
                self.kit.cover(self.reader["cover"], whole)

    def attempt(self, name, mutant):
        """Returns why a mutant is caught, or None. Prints the outcome when it comes."""
        places = [f"{name} {mutant.function}", str(name), ""]
        sheets = self.kit.order(self.kit.reaching(name, mutant), places)
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary, "reader")
            shutil.copytree(self.reader["folder"], folder, ignore=IGNORE)
            (folder / name).write_text(mutant.source)
            fault, sheet, _ = self.fault_of(folder, sheets)
        if sheet:
            self.kit.note(places, sheet)
        key = key_of(self.reader, name, mutant)
        if fault and self.tells_caught:
            print(f"caught    {name}:{mutant.line} {key} -- {fault}", flush=True)
        if not fault:
            reason = self.accepted.get(key)
            word = "accepted" if reason else "SURVIVES"
            print(f"{word}  {name}:{mutant.line} {key} -- {reason or ''}", flush=True)
        return fault


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("reader", choices=READERS)
    parser.add_argument(
        "--kit", action="append", help="a folder of the kit; may be given more than once"
    )
    parser.add_argument(
        "--folder", type=pathlib.Path, help="the reader, if it is not beside this tool"
    )
    parser.add_argument("--files", action="append", help="only files of the reader that match")
    parser.add_argument("--function", help="only mutants of this function")
    parser.add_argument(
        "--sample", type=int, help="only so many mutants, at random with a fixed seed"
    )
    parser.add_argument(
        "--again", type=pathlib.Path, help="only mutants that survived in this output of a run"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--caught", action="store_true", help="print caught mutants and how, too")
    options = parser.parse_args()
    reader = dict(READERS[options.reader])
    reader["folder"] = (options.folder or reader["folder"]).resolve()
    reader["files"] = options.files or reader["files"]
    kit = Kit(options.kit or ["spec/vectors"], reader["level"])
    accepted = read_accepted(HERE / "accepted" / f"{options.reader}.txt")

    trial = Trial(reader, kit, accepted, options.caught)
    trial.begin()
    everything = find_mutants(reader)
    if options.function:
        everything = [each for each in everything if each[1].function.endswith(options.function)]
    mutants = [each for each in everything if not is_outside(accepted, *each)]
    outside = len(everything) - len(mutants)
    if options.again:
        lines = options.again.read_text().splitlines()
        there = {line.split(" -- ")[0] for line in lines if line.startswith("SURVIVES")}
        there = {line.split(None, 2)[2] for line in there}
        mutants = [each for each in mutants if key_of(reader, *each) in there]
    if options.sample:
        mutants = random.Random(1).sample(mutants, min(options.sample, len(mutants)))
    if options.again and options.sample is None:
        # Whatever part of a long run is done is a fair one.
        random.Random(1).shuffle(mutants)
    print(
        f"{kit.requests()} requests, {len(mutants)} mutants, {outside} others are not reached",
        file=sys.stderr,
    )
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        faults = list(pool.map(lambda each: trial.attempt(*each), mutants))

    survivors = [key_of(reader, *each) for each, fault in zip(mutants, faults) if not fault]
    left = sum(key not in accepted for key in survivors)
    if not (options.files or options.function or options.sample or options.again):
        used = {*survivors, *(f"outside | {name} | {it.function}" for name, it in everything)}
        for key in sorted(set(accepted) - used):
            print(f"not needed in the list of accepted survivors: {key}")
    changing = len(mutants) - (len(survivors) - left)
    share = (changing - left) / max(changing, 1)
    print(
        f"{options.reader}: {len(mutants)} mutants, and {outside} that no request reaches;"
        f" {len(survivors) - left} accepted survivors;"
        f" of {changing} others {changing - left} are caught, {100 * share:.1f} %"
    )
    return 0 if share >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
