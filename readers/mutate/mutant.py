"""A changed source text."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """What was changed where. Kinds are `negate`, of a condition; `delete`, of a check; and `drop`,
    of one operand of an `and` or an `or`."""

    kind: str
    function: str
    line: int
    text: str
    source: str

    def key(self):
        """Returns what stays the same when other lines change."""
        return f"{self.kind} | {self.function} | {self.text}"
