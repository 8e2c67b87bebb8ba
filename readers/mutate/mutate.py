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
        "build": ["gcc", "-std=c99", "-O0", *SANITIZE, "-o", "driver", "driver.c"],
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


def build(reader, folder):
    """Returns whether the driver in a folder could be built."""
    command = reader.get("build")
    return not command or subprocess.run(command, cwd=folder, capture_output=True).returncode == 0


def try_mutant(reader, kit, requests, seconds, name, mutant):
    """Returns why a mutant is caught, or None."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary, "reader")
        ignore = shutil.ignore_patterns("node_modules", "test", "__pycache__")
        shutil.copytree(reader["folder"], folder, ignore=ignore)
        (folder / name).write_text(mutant.source)
        if not build(reader, folder):
            return "it cannot be built"
        return kit.first_fault(reader["run"], folder, requests, seconds)[0]


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
        if not build(reader, whole):
            raise SystemExit("the reader cannot be built")
        kit.write(requests)
        fault, answers = kit.first_fault(reader["run"], whole, requests, 600, stderr=None)
        if not fault:
            kit.extend(answers)
            kit.write(requests)
            began = time.monotonic()
            fault, _ = kit.first_fault(reader["run"], whole, requests, 600, stderr=None)
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
            attempt = lambda each: try_mutant(reader, kit, requests, seconds, *each)
            faults = list(pool.map(attempt, mutants))

    survivors = [each for each, fault in zip(mutants, faults) if not fault]
    if options.caught:
        for (name, mutant), fault in zip(mutants, faults):
            if fault:
                print(f"caught    {name}:{mutant.line} {mutant.key()} -- {fault}")
    left = 0
    for name, mutant in survivors:
        reason = accepted.get(mutant.key())
        left += not reason
        print(
            f"{'accepted' if reason else 'SURVIVES'}  {name}:{mutant.line} {mutant.key()} -- {reason or ''}"
        )
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
