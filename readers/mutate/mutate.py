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
        "run": [sys.executable, "driver.py"],
        "checks": ["refuse"],
    },
    "c": {
        "level": 1,
        "folder": HERE.parent / "c",
        "files": ["pleach_reader.h"],
        # The second build is slower, and sees what leaves its memory. It is for those left by the first.
        "builds": [[*GCC, "driver.c"], [*GCC, *SANITIZE, "driver.c"]],
        "run": ["./driver"],
        "checks": ["PLEACH_REFUSE", "PLEACH_NOTE"],
    },
    "js": {
        "level": 3,
        "folder": HERE.parent / "js",
        "files": ["**/*.js", "**/*.mjs"],
        "run": ["node", "--max-old-space-size=512", "driver.mjs"],
        "checks": ["refuse"],
    },
}
SHARE = 0.95


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


def fault_of(reader, kit, requests, seconds, folder, **more):
    """Returns why the reader in a folder is caught, or None; and its answers till then."""
    answers = []
    for command in reader.get("builds", [None]):
        if command and subprocess.run(command, cwd=folder, capture_output=True).returncode:
            return "it cannot be built", answers
        fault, answers = kit.first_fault(reader["run"], folder, requests, seconds, **more)
        if fault:
            return fault, answers
    return None, answers


def try_mutant(reader, kit, requests, seconds, accepted, name, mutant):
    """Returns why a mutant is caught, or None. Prints survivors as they come."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary, "reader")
        ignore = shutil.ignore_patterns("node_modules", "test", "__pycache__")
        shutil.copytree(reader["folder"], folder, ignore=ignore)
        (folder / name).write_text(mutant.source)
        fault, _ = fault_of(reader, kit, requests, seconds, folder)
    if not fault:
        reason = accepted.get(mutant.key())
        word = "accepted" if reason else "SURVIVES"
        print(f"{word}  {name}:{mutant.line} {mutant.key()} -- {reason or ''}", flush=True)
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
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--caught", action="store_true", help="print caught mutants and how, too")
    options = parser.parse_args()
    reader = dict(READERS[options.reader])
    reader["folder"] = (options.folder or reader["folder"]).resolve()
    reader["files"] = options.files or reader["files"]
    kit = Kit(options.kit or ["spec/vectors"], reader["level"])
    accepted = read_accepted(HERE / "accepted" / f"{options.reader}.txt")

    with tempfile.TemporaryDirectory() as temporary:
        requests, whole = pathlib.Path(temporary, "requests"), pathlib.Path(temporary, "reader")
        shutil.copytree(reader["folder"], whole, ignore=shutil.ignore_patterns("node_modules"))
        kit.write(requests)
        fault, answers = fault_of(reader, kit, requests, 600, whole, stderr=None)
        if not fault:
            kit.extend(answers)
            kit.write(requests)
            began = time.monotonic()
            fault, _ = fault_of(reader, kit, requests, 600, whole, stderr=None)
        if fault:
            raise SystemExit(f"the unchanged reader fails: {fault}")
        seconds = 10 + 5 * (time.monotonic() - began)
        mutants = find_mutants(reader)
        if options.function:
            mutants = [each for each in mutants if each[1].function.endswith(options.function)]
        if options.sample:
            mutants = random.Random(1).sample(mutants, min(options.sample, len(mutants)))
        print(f"{len(kit.asked)} requests, {len(mutants)} mutants", file=sys.stderr)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            attempt = lambda each: try_mutant(reader, kit, requests, seconds, accepted, *each)
            faults = list(pool.map(attempt, mutants))

    survivors = [each for each, fault in zip(mutants, faults) if not fault]
    if options.caught:
        for (name, mutant), fault in zip(mutants, faults):
            if fault:
                print(f"caught    {name}:{mutant.line} {mutant.key()} -- {fault}")
    left = sum(mutant.key() not in accepted for _, mutant in survivors)
    if not (options.files or options.function or options.sample):
        keys = {mutant.key() for _, mutant in survivors}
        for key in sorted(set(accepted) - keys):
            print(f"not needed in the list of accepted survivors: {key}")
    changing = len(mutants) - (len(survivors) - left)
    share = (changing - left) / max(changing, 1)
    print(
        f"{options.reader}: {len(mutants)} mutants, {len(survivors) - left} accepted survivors;"
        f" of {changing} others {changing - left} are caught, {100 * share:.1f} %"
    )
    return 0 if share >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
