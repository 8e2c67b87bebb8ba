"""A changed source text."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """What was changed where. Kinds are `negate`, of a condition; `delete`, of a check; and `drop`,
    of one operand of an `and` or an `or`. `at` is the place in the text, where it is of use."""

    kind: str
    function: str
    line: int
    text: str
    source: str
    at: int = 0

    def key(self):
        """Returns what stays the same when other lines change."""
        return f"{self.kind} | {self.function} | {self.text}"
