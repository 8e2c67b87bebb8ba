"""The files of the conformance kit, and what a driver of a level must answer.

This judges as `pleach-conformance run` does. It is here since a mutant is asked thousands of
requests and ended at the first wrong answer: all requests are in one file, which is the input of
the driver, and no answer is waited for before the next request.
"""

import collections
import json
import pathlib
import subprocess
import threading
import time


class Sheet:
    """What is asked about a file, and the answers that are due."""

    def __init__(self, path):
        members = json.loads(path.with_suffix(".json").read_text())
        self.path = path.resolve()
        self.level, self.exchange = members["level"], members["exchange"]
        self.rule, self.code = members.get("rule"), members.get("code")
        # What of the reader this file reaches: for each module, ranges and how often they are run.
        self.reach = None
        self.opening = ("open", f"refuse {self.rule}" if self.rule else "ok")
        self.asked = [self.opening]

    def level_of(self, request):
        """Returns the level that a request needs."""
        words = request.split(" ")
        own = 1
        if words[0] == "by" and words[1] not in ("lines", "spine") or words[0] == "derive":
            own = 3
        elif words[0] in ("name", "logical"):
            own = 2
        return max(own, self.level)

    def is_right(self, request, wanted, got, level):
        """Reports whether a driver of a level may answer so."""
        if got.startswith("error"):
            return False
        if got.startswith("above "):
            digits = got.split(" ")[1]
            needed = self.level_of(request)
            return needed > level and digits.isdecimal() and int(digits) > level
        if got == "skip":
            return request.startswith(("by ", "derive "))
        if got == wanted or wanted == "any":
            return True
        is_hidden = self.level > level
        if request == "open":
            return got == "ok" and is_hidden and (self.rule or self.code) is not None
        return request == "check" and got == "clean" and is_hidden and self.code is not None


class Silence:
    """Ends a driver that gives no answer for a while. One thread looks after all answers."""

    def __init__(self, driver, seconds):
        self.driver, self.seconds = driver, seconds
        self.heard = time.monotonic()
        self.is_late, self.is_over = False, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.is_over.wait(0.25):
            if time.monotonic() - self.heard > self.seconds:
                self.is_late = True
                self.driver.kill()
                return

    def end(self):
        self.is_over.set()
        self.thread.join()


def is_run(reach, name, at):
    """Reports whether a place of a module was run: the innermost range around it decides."""
    around = [one for one in reach.get(str(name), []) if one[0] <= at < one[1]]
    return bool(around) and min(around, key=lambda one: one[1] - one[0])[2] > 0


class Kit:
    """The requests to a driver of a level, and which files have caught what."""

    def __init__(self, folders, level):
        self.level = level
        self.sheets = []
        for folder in folders:
            # Broken files first: they are short, and most mutants of checks end there.
            for part in ("broken", "valid"):
                self.sheets += map(Sheet, sorted(pathlib.Path(folder, part).glob("*.pleach")))
        if not self.sheets:
            raise SystemExit(f"no files of a kit in {', '.join(map(str, folders))}")
        self.catches = collections.Counter()
        self.loaded = None

    def requests(self):
        return sum(len(sheet.asked) for sheet in self.sheets)

    def extend(self, answers):
        """Adds the requests about the files that the unchanged driver opens."""
        for sheet, got in zip(self.sheets, answers):
            if sheet.opening[1] == got == "ok":
                sheet.asked = [sheet.opening, *sheet.exchange]

    def cover(self, command, folder):
        """Notes which parts of the unchanged reader each file reaches."""
        folder = pathlib.Path(folder)
        requests, counts, output = (folder / name for name in ("requests", "counts", "reach"))
        self.write(requests, self.sheets)
        counts.write_text(json.dumps([len(sheet.asked) for sheet in self.sheets]))
        with open(requests) as source:
            full = [*command, folder, counts, output]
            subprocess.run(full, stdin=source, stdout=subprocess.DEVNULL, check=True)
        self.loaded, *reached = map(json.loads, output.read_text().splitlines())
        for sheet, reach in zip(self.sheets, reached, strict=True):
            sheet.reach = reach

    def reaching(self, name, mutant):
        """Returns the files that reach a mutant: the others cannot see it."""
        if not self.loaded or is_run(self.loaded, name, mutant.at):
            return self.sheets
        return [sheet for sheet in self.sheets if is_run(sheet.reach, name, mutant.at)]

    def order(self, sheets, places):
        """Returns the files, those first that caught other mutants at these places: of the same
        function, of the same file. A mutant is often caught where its neighbours are."""
        catches = self.catches
        return sorted(
            sheets,
            key=lambda sheet: [-catches[place, sheet.path] for place in places],
        )

    def note(self, places, sheet):
        """Notes that a file caught a mutant."""
        for place in places:
            self.catches[place, sheet.path] += 1

    @staticmethod
    def write(path, sheets):
        """Writes the input of a driver."""
        with open(path, "w") as lines:
            for sheet in sheets:
                lines.write(f"open {sheet.path}\n")
                lines.writelines(f"{request}\n" for request, _ in sheet.asked[1:])

    def first_fault(self, command, folder, sheets, seconds, stderr=subprocess.DEVNULL):
        """Asks a driver in a folder about files. Returns how it fails and about which file, or None
        twice; and all its answers till then. `seconds` is the longest time for one answer."""
        answers = []
        source = pathlib.Path(folder, "requests")
        self.write(source, sheets)
        with open(source) as lines:
            driver = subprocess.Popen(
                command,
                cwd=folder,
                stdin=lines,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                errors="replace",
            )
        silence = Silence(driver, seconds)
        try:
            for sheet in sheets:
                for request, wanted in sheet.asked:
                    line = driver.stdout.readline()
                    silence.heard = time.monotonic()
                    where = f"{sheet.path.stem}: {request}"
                    if not line.endswith("\n"):
                        reason = "no answer in time" if silence.is_late else "ended"
                        return f"{where}: {reason}", sheet, answers
                    answers.append(line[:-1])
                    if not sheet.is_right(request, wanted, line[:-1], self.level):
                        return f"{where}: {line[:80].strip()}", sheet, answers
            return None, None, answers
        finally:
            silence.end()
            driver.kill()
            driver.stdout.close()
            driver.wait()
