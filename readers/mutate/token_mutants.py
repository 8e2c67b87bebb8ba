"""Mutants of a C or JavaScript file, from its tokens."""

import re

from mutant import Mutant

TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)
  | (?P<word>[A-Za-z_$\#][\w$]*|\d[\w.]*)
  | (?P<sign>&&=|\|\|=|===|!==|>>>=|\*\*=|<<=|>>=|>>>|\?\?=|\.\.\.|\*\*|=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.(?!\d)
        |\+\+|--|<<|>>|->|[-+*/%&|^]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
# A slash behind one of these begins a regular expression of JavaScript, else it divides.
BEFORE_REGEX = set("( , = : [ ! & | ? { } ; => && || return".split())
REGEX = re.compile(r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
OPPOSITE |= {"==": "!=", "!=": "==", "===": "!==", "!==": "==="}
PAIRS = {"(": ")", "[": "]", "{": "}"}
# What ends an operand of a condition on its way left or right, if brackets are whole.
BORDERS = set("; , ? : = => return throw += -= *= |= &= ^= <<= >>= case ?? ||= &&=".split())


class Tokens:
    """The tokens of a source text, without comments and lines of the preprocessor."""

    def __init__(self, source):
        self.source = source
        self.spans, self.texts = [], []
        at = 0
        while at < len(source):
            line_start = source.rfind("\n", 0, at) + 1
            if source[at] == "#" and not source[line_start:at].strip():
                # A directive of the C preprocessor, with the lines that continue it.
                at = re.compile(r"(?:[^\n]*\\\n)*[^\n]*").match(source, at).end()
                continue
            regex = None
            if source[at] == "/" and (not self.texts or self.texts[-1] in BEFORE_REGEX):
                regex = REGEX.match(source, at)
            match = regex or TOKEN.match(source, at)
            if regex or not match["skip"]:
                self.spans.append(match.span())
                self.texts.append(match[0])
            at = match.end()
        self.partner = self.pair()

    def pair(self):
        partner, open_ones = {}, []
        for at, text in enumerate(self.texts):
            if text in PAIRS:
                open_ones.append(at)
            elif open_ones and text == PAIRS[self.texts[open_ones[-1]]]:
                partner[at] = open_ones.pop()
                partner[partner[at]] = at
        return partner

    def left(self, at, borders):
        """Returns the first token of the operand that ends before a token."""
        while at > 0:
            before = self.texts[at - 1]
            if before in (")", "]", "}") and at - 1 in self.partner:
                if before == "}" and self.texts[self.partner[at - 1]] == "{" and borders is BORDERS:
                    return at
                at = self.partner[at - 1]
            elif before in borders or before in PAIRS:
                return at
            else:
                at -= 1
        return at

    def right(self, at, borders):
        """Returns the token behind the operand that begins at a token."""
        while at < len(self.texts) and self.texts[at] not in borders:
            if self.texts[at] in PAIRS and at in self.partner:
                at = self.partner[at]
            elif self.texts[at] in (")", "]", "}"):
                return at
            at += 1
        return at

    def text(self, first, end):
        return self.source[self.spans[first][0] : self.spans[end - 1][1]]


def functions(tokens, is_c):
    """Returns the name of the function around each token."""
    names, stack, depth_of = [], [], []
    for at, text in enumerate(tokens.texts):
        if text == "{":
            name = None
            close = at - 1
            if close > 0 and tokens.texts[close] == ")" and close in tokens.partner:
                before = tokens.partner[close] - 1
                word = tokens.texts[before] if before >= 0 else ""
                if re.match(r"[A-Za-z_$#]", word) and word not in (
                    "if",
                    "while",
                    "for",
                    "switch",
                    "catch",
                ):
                    name = word
            stack.append(name)
        elif text == "}" and stack:
            stack.pop()
        inner = [name for name in stack if name]
        names.append(inner[-1] if inner else "")
    return names


def mutants(source, checks, is_c):
    """Yields the mutants of a source text. `checks` are functions or macros whose first argument is
    a condition: the file is refused if it is true."""
    tokens = Tokens(source)
    texts = tokens.texts
    names = functions(tokens, is_c)
    true, false = ("1", "0") if is_c else ("true", "false")
    whole = set()  # comparisons that are a whole condition

    def make(kind, first, end, new):
        old = tokens.text(first, end)
        start, stop = tokens.spans[first][0], tokens.spans[end - 1][1]
        changed = source[:start] + new(old) + source[stop:]
        line = source.count("\n", 0, start) + 1
        return Mutant(kind, names[first], line, " ".join(old.split()), changed, start)

    def condition(first, end, is_check):
        signs, at = [], first
        while at < end:
            if texts[at] in PAIRS and at in tokens.partner:
                at = tokens.partner[at]
            elif texts[at] in OPPOSITE or texts[at] in ("&&", "||", "?"):
                signs.append(at)
            at += 1
        if len(signs) == 1 and texts[signs[0]] in OPPOSITE:
            whole.add(signs[0])
        yield make("negate", first, end, lambda old: f"(!({old}))")
        if is_check:
            yield make("delete", first, end, lambda old: false)

    for at, text in enumerate(texts):
        following = texts[at + 1] if at + 1 < len(texts) else ""
        is_member = at > 0 and texts[at - 1] in (".", "?.")
        if text in ("if", "while") and following == "(" and not is_member:
            close = tokens.partner[at + 1]
            after = tokens.partner.get(close + 1, close)
            has_else = after + 1 < len(texts) and texts[after + 1] == "else"
            yield from condition(at + 2, close, text == "if" and not has_else)
        elif text == "for" and following == "(" and not is_member:
            first = tokens.right(at + 2, {";"})
            if texts[first] == ";":
                end = tokens.right(first + 1, {";"})
                if end > first + 1:
                    yield from condition(first + 1, end, False)
        elif text in checks and following == "(" and not (is_c and names[at] == ""):
            yield from condition(at + 2, tokens.right(at + 2, {","}), True)
        elif text == "?":
            first = tokens.left(at, BORDERS)
            if first < at:
                yield from condition(first, at, False)
        elif text in ("&&", "||"):
            borders = BORDERS | {"||"} | ({"&&"} if text == "&&" else set())
            neutral = true if text == "&&" else false
            first, end = tokens.left(at, borders), tokens.right(at + 1, borders)
            if first == 0 or texts[first - 1] != text:
                yield make("drop", first, at, lambda old: neutral)
            yield make("drop", at + 1, end, lambda old: neutral)
    for at, text in enumerate(texts):
        if text in OPPOSITE and at not in whole:
            # Named by the line, as the sign says nothing.
            made = make("negate", at, at + 1, lambda old: OPPOSITE[old])
            borders = BORDERS | {"&&", "||"}
            around = tokens.text(tokens.left(at, borders), tokens.right(at + 1, borders))
            yield made._replace(text=" ".join(around.split()))
