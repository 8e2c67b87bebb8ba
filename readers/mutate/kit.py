"""The files of the conformance kit, and what a driver of a level must answer.

This judges as `pleach-conformance run` does. It is here since a mutant is asked thousands of
requests and ended at the first wrong answer: all requests are in one file, which is the input of
the driver, and no answer is waited for before the next request.
"""

import json
import pathlib
import subprocess
import threading


class Sheet:
    """What is asked about a file, and the answers that are due."""

    def __init__(self, path):
        members = json.loads(path.with_suffix(".json").read_text())
        self.path = path.resolve()
        self.level, self.exchange = members["level"], members["exchange"]
        self.rule, self.code = members.get("rule"), members.get("code")

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


class Kit:
    """The requests to a driver of a level, in the order in which they are asked."""

    def __init__(self, folders, level):
        self.level = level
        self.sheets = []
        for folder in folders:
            # Broken files first: they are short, and most mutants of checks end there.
            for part in ("broken", "valid"):
                self.sheets += map(Sheet, sorted(pathlib.Path(folder, part).glob("*.pleach")))
        if not self.sheets:
            raise SystemExit(f"no files of a kit in {', '.join(map(str, folders))}")
        self.asked = [(sheet, "open", self.opening(sheet)) for sheet in self.sheets]

    @staticmethod
    def opening(sheet):
        return f"refuse {sheet.rule}" if sheet.rule else "ok"

    def extend(self, answers):
        """Adds the requests about the files that the unchanged driver opens."""
        opened = [
            sheet for (sheet, _, wanted), got in zip(self.asked, answers) if wanted == got == "ok"
        ]
        self.asked = []
        for sheet in self.sheets:
            self.asked.append((sheet, "open", self.opening(sheet)))
            if sheet in opened:
                self.asked += [(sheet, *pair) for pair in sheet.exchange]

    def write(self, path):
        """Writes the input of a driver."""
        lines = (f"open {sheet.path}" if what == "open" else what for sheet, what, _ in self.asked)
        pathlib.Path(path).write_text("\n".join(lines) + "\n")

    def first_fault(self, command, folder, requests, seconds, stderr=subprocess.DEVNULL):
        """Runs a driver in a folder. Returns how it fails, or None, and all its answers till then."""
        answers = []
        with open(requests) as source:
            driver = subprocess.Popen(
                command,
                cwd=folder,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                errors="replace",
            )
        is_late = threading.Event()
        timer = threading.Timer(seconds, lambda: (is_late.set(), driver.kill()))
        timer.start()
        try:
            for sheet, request, wanted in self.asked:
                line = driver.stdout.readline()
                where = f"{sheet.path.stem}: {request}"
                if not line.endswith("\n"):
                    return (
                        f"{where}: {'no answer in time' if is_late.is_set() else 'ended'}",
                        answers,
                    )
                answers.append(line[:-1])
                if not sheet.is_right(request, wanted, line[:-1], self.level):
                    return f"{where}: {line[:80].strip()}", answers
            return None, answers
        finally:
            timer.cancel()
            driver.kill()
            driver.stdout.close()
            driver.wait()
