//! Long texts of `--help` and of the manual pages: the purpose of each command, and examples to copy.

pub const PLEACH: &str = "\
Pleach turns a table of keys and values into one file that answers look-ups. The file is sorted, \
checksummed and never changed after it is made: programs map it and search it where it lies, so \
opening costs nothing and any number of processes share it.

A tuple is a key with its value. Its rank is its position in key order, from 0. A generation is one \
published file; a new one replaces the old one in a single step.

Standard output carries data only; errors are one line on standard error.

Exit codes: 0 done; 1 a key of `get` is missing; 2 the arguments cannot be right; 4 a Pleach file is \
damaged, whichever command meets it; 8 something else went wrong; 130 interrupted.

With --json an error is one object on standard error: schema, code, exit, what, where, advice and \
message. Its code is one of usage; damaged; newer, older, foreign, not-found, permission, not-a-file, \
would-overwrite, input, types-differ, too-large, busy, no-space, out-of-memory, limit, device, io, \
failed; interrupted. Later versions add some, and change none.

Ctrl-C and SIGTERM stop any command within a second, and nothing of it is left.";

pub const PLEACH_EXAMPLES: &str = "\
Examples:
  pleach demo                                   see it work on generated data
  pleach build orders.parquet -o orders.pleach --key o_orderkey --value o_custkey
  pleach get orders.pleach 7 32 33              three values
  pleach range orders.pleach 100 200            all tuples with 100 <= key < 200
  pleach fsck orders.pleach                     check every byte";

pub const BUILD: &str = "\
Builds a file from tables, and publishes it in one step: FILE is either the old one or the new one, \
whole, even if the machine loses power. An interrupted build leaves nothing behind. Where FILE is a Pleach \
file already, the new one is its next generation. Nothing else is replaced, unless it is empty or --force is \
given, and never an input.

The first column is the key and the second the value, unless --key and --value name others; `--value \
@row` stores the row number instead. Columns of text are read as u64 unless --key-type and \
--value-type say otherwise: types are never guessed. Parquet, Arrow and NumPy columns keep their own \
type. Texts are utf8; bytes of one length N are bytesN, of any length bytes; in a text table these are \
the bytes of the field, or \\x and hexadecimal digits. CSV and TSV may be compressed with gzip or zstd.

Of several inputs the first chooses the columns, and the others have those of the same names. A first \
line of text that reads as data is refused, unless --header or --no-header says what it is.

Input need not be sorted. What does not fit into --memory is sorted on disk. Keys that stand more \
than once are all kept, in input order, unless --unique chooses. The same input and options give \
the same bytes, whatever the threads or the memory; the number of the generation goes on where FILE was there.";

pub const BUILD_EXAMPLES: &str = "\
Examples:
  pleach build users.csv -o users.pleach
      first column to second column, both u64
  pleach build users.csv -o users.pleach --key id --value score --value-type f64
  pleach build part-*.parquet -o all.pleach --key l_orderkey --value @row
      several tables, one after the other; the value is the row number
  pleach build ids.bin -o ids.pleach --raw u64
      raw little-endian keys, without values
  pleach build words.csv -o words.pleach --key-type utf8
  pleach build part-*.csv.gz -o big.pleach --header=first --memory 4GiB
      parts of one table, of which only the first has the header
  generate | pleach build - --format csv -o big.pleach
  pleach build today.csv -o table.pleach --keep 7
      every night: seven old generations are kept, as table.pleach.g1 and so on
  pleach build a.csv -o a.pleach --unique error --no-header --key 2 --value 0
      refuses repeated keys; columns by number";

pub const GET: &str = "\
Prints KEY<TAB>VALUE for each key, in the order in which the keys were asked for. A missing key \
prints nothing (or TEXT, with --missing) and makes the exit code 1. In a file without values, the \
key alone is printed.

Keys come as arguments or from a file, one a line, compressed or not; it is streamed, so it may be larger \
than memory. Blank lines are skipped, and so is a first one that is the name of the key column. Negative \
keys are plain arguments. Of a key that stands more than once the first value is printed, with --all \
every one. In utf8 keys tab, newline, carriage return and backslash are \\t \\n \\r \
\\\\; bytes are hexadecimal digits; bytesN are these or N characters.";

pub const GET_EXAMPLES: &str = "\
Examples:
  pleach get users.pleach 17 -4
  pleach get users.pleach --keys wanted.txt > found.tsv
  cut -f1 table.tsv | pleach get users.pleach --keys - --missing NULL
  pleach get users.pleach --keys wanted.txt --response 1 --explain > found.tsv
      in calls of about a millisecond
  pleach get users.pleach 17 --rank             position in key order
  pleach get users.pleach 17 --json             {\"key\":\"17\",\"value\":\"3\"}";

pub const RANGE: &str = "\
Prints the tuples with LO <= key < HI as KEY<TAB>VALUE, in key order. '..' leaves an end open. \
--limit stops early, --reverse begins at the end, --count prints how many there are without \
reading them. --prefix, for byte keys, takes the keys that begin with it: with a \
text, or with bytes in hexadecimal digits.";

pub const RANGE_EXAMPLES: &str = "\
Examples:
  pleach range users.pleach 100 200
  pleach range users.pleach -10 10 --inclusive
  pleach range users.pleach 100 .. --limit 5    the five tuples from 100 on
  pleach range users.pleach .. .. --reverse --limit 1
      the largest key
  pleach range users.pleach 100 .. --count
  pleach range words.pleach --prefix inter      keys that begin so";

pub const INSPECT: &str = "\
Shows a file as a labelled picture: types, counts, sections with their places and shares, and the \
levels of the spine. It reads and never maps, so it works on damaged, truncated and foreign files \
too, and says what is wrong with them. Damage makes the exit code 4.

Every byte is checked of files of up to 64 MiB, and of larger ones with --verify full; `pleach fsck` \
says more. The file id is verified then; otherwise it is shown as it is stored. No sum and no id says \
who wrote a file: hash or sign the whole file for that (sha256sum, minisign).";

pub const INSPECT_EXAMPLES: &str = "\
Examples:
  pleach inspect users.pleach
  pleach inspect users.pleach --page 0          the spine's root: base, shift, codes
  pleach inspect users.pleach --line 0          the first tuple line, decoded
  pleach inspect users.pleach --json | jq .sections
  pleach inspect users.pleach --mapping         is it backed by huge pages?";

pub const FSCK: &str = "\
Checks every byte of a file: sums, order, padding, separators, counts. It reads, and never writes. \
Each finding is one line: code, section, offset, what was expected, what was found.

Exit code 0: clean. 4: damaged (also an empty file, or one that carries our mark at one end only). \
8: unreadable, foreign, or whole but of a newer version. Files that an interrupted build left beside \
it are named on standard error; the next build removes them.";

pub const FSCK_EXAMPLES: &str = "\
Examples:
  pleach fsck users.pleach
  pleach fsck users.pleach --quiet && echo clean
  pleach fsck users.pleach --json | jq '.findings[].code'";

pub const EXPORT: &str = "\
Writes the tuples of a file as a table, in key order, with the column names and types it was built \
from. Building from the exported table gives the same file again, byte for byte. A table takes the place of \
any file but a Pleach file, unless --force is given, and never that of FILE.";

pub const EXPORT_EXAMPLES: &str = "\
Examples:
  pleach export users.pleach -o users.parquet
  pleach export users.pleach -o - | head";

pub const REBUILD: &str = "\
Reads FILE and a table of changes and puts the next generation in its place, in one step. Changes apply in \
the order of the table, whose columns are op, key and value, or are called as in FILE: put leaves one \
tuple of its key, add appends one more, del removes all of them (and \
counts where there are none). Programs that have the old generation open go on reading it. FILE is verified \
as it is read: a damaged one is refused, and stays. With --keep the old generation stays as FILE.gN; a name that \
something else has is refused, and nothing but older generations of FILE is ever removed.";

pub const REBUILD_EXAMPLES: &str = "\
Examples:
  printf 'op,key,value\\nput,17,4\\ndel,18,\\n' > changes.csv
  pleach rebuild users.pleach --apply changes.csv
  pleach rebuild users.pleach --apply changes.parquet --keep 2        users.pleach.g1 is the one before
  generate | pleach rebuild users.pleach --apply - --format csv";

pub const GENERATIONS: &str = "\
Lists the generations of a file, oldest first: the present one, those that --keep has left as FILE.g1, FILE.g2 and so \
on, and what has such a name and is none (--keep leaves that alone). A generation is known by its superblock: \
its number, and the first generation that it comes from.";

pub const GENERATIONS_EXAMPLES: &str = "\
Examples:
  pleach generations users.pleach
  pleach generations users.pleach --json | jq '.generations[].path'";

pub const ROLLBACK: &str = "\
Makes an old generation the present one again: its tuples are published as the next generation, so that programs \
that follow the file see a new one. Every block is verified on its way. The generation that was the present one is \
kept as FILE.gN, unless --keep says otherwise. FILE may be damaged or gone.";

pub const ROLLBACK_EXAMPLES: &str = "\
Examples:
  pleach rollback users.pleach                  to the newest one that is kept
  pleach rollback users.pleach 3";

pub const COMPACT: &str = "\
Merges files of the same types into one, in one pass over each. Of equal keys the tuples of an earlier file \
come first; --unique chooses among them. Every block that is read is verified. Where the output is a Pleach file \
already, the new one is its next generation; it is never one of the files that are merged.";

pub const COMPACT_EXAMPLES: &str = "\
Examples:
  pleach compact monday.pleach tuesday.pleach -o both.pleach
  pleach compact old.pleach new.pleach -o all.pleach --unique last    what is new wins";

pub const DEMO: &str = "\
Generates orders with skewed, clustered and random ids, builds files from them, looks keys up, checks \
every answer against a naive oracle, and prints what happened and how fast, beside a hash map, a \
B-tree map and binary search. It takes less than 20 seconds and leaves nothing behind.";

pub const DEMO_EXAMPLES: &str = "\
Examples:
  pleach demo
  pleach demo --tuples 2^22
  pleach demo --keep /tmp/demo                  then: pleach inspect /tmp/demo/*.pleach";

pub const DEVICES: &str = "\
Shows which vector instructions the CPU has, whether files can be mapped with huge pages, which GPUs \
are found, and what is used for searching. This version searches on the CPU.";

pub const DEVICES_EXAMPLES: &str = "\
Examples:
  pleach devices
  pleach devices --json";

pub const BENCH: &str = "\
Runs `pleach-bench`, the program that measures Pleach beside other engines and beside the limits of this machine. \
It is a program of its own, because the other engines take minutes to compile: it is looked for beside `pleach`, \
then on PATH. In a copy of Pleach's source `cargo install --path bench` installs it, and \
`cargo run --release -p pleach-bench -- ARGS` runs it without installing.";

pub const BENCH_EXAMPLES: &str = "\
Examples:
  pleach bench lookup --quick
  pleach bench lookup --quick --queries zipf    also queries in which a few keys are frequent
  pleach bench latency --quick --json > latency.json
  pleach bench plot latency.json -o latency.svg
  pleach bench lookup --help                    everything that is measured, and all options";

pub const TUNE: &str = "\
Measures for about a second what lines, computing and moving queries cost on this machine, and writes it as \
costs.json into the cache folder ($XDG_CACHE_HOME/pleach, else ~/.cache/pleach). `get` goes by it when it chooses \
how to answer many keys. Without it, costs of a common server are taken; answers are the same.";

pub const TUNE_EXAMPLES: &str = "\
Examples:
  pleach tune
  pleach tune --show
  pleach get users.pleach --keys wanted.txt --explain > found.tsv";

pub const COMPLETIONS: &str = "\
Prints a script that makes a shell complete the commands and options of pleach.";

pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  pleach completions bash > ~/.local/share/bash-completion/completions/pleach
  pleach completions zsh > ~/.zfunc/_pleach
  pleach completions fish > ~/.config/fish/completions/pleach.fish";

pub const MAN: &str = "\
Writes manual pages: pleach.1, and one page for each command, as pleach-build.1.";

pub const MAN_EXAMPLES: &str = "\
Examples:
  pleach man ~/.local/share/man/man1
  man pleach-build";

pub const SELECT: &str = "\
Keeps the tuples that a condition holds for. Operands are key, value, rank (the position in key \
order, from 0) and the \
fields of a record, by their names, `in backquotes` where these are no plain words; the names of the key and value \
columns stand for key and value too.

Numbers are 17, 1_000_000, 0xff, -5, 0.5 or 1e9, texts 'so' or \"so\" (of bytes '\\x00ff'). \
Comparisons: == != < <= > \
>=, between X and Y, in (A, B, C), and of texts like 'abc%' and starts with 'abc'. Whole numbers \
also have | ^ & << >> + \
- * / % and brackets. Conditions are joined by and, or, not; and binds tighter than or. Nothing \
wraps: a number that does \
not fit and a division by zero are errors that name the tuple, unless and or or have decided before.

A condition on keys or ranks reads only the part of the file that it can hold for.";

pub const SELECT_EXAMPLES: &str = "\
Examples:
  pleach select orders.pleach --where 'key between 100 and 200'
  pleach select orders.pleach --where 'key < 1000 and value in (7, 9)' -o some.pleach
  pleach select orders.pleach --where 'key & 0xff == 3 or rank < 10' --explain
  pleach select joined.pleach --where 'left > 5 and not right == 0' -o some.parquet
  pleach select words.pleach --where \"key like 'inter%'\" --json";

pub const PROJECT: &str = "\
Makes other keys and values. The first column of the list is the new key, the others are the new \
value: none, a plain \
value, or a record of several. A column is key, value, rank or a field; NAME=COLUMN renames it.

COLUMN[OFF:LEN] takes LEN bits of a whole number from bit OFF on, the lowest bit being 0; \
A[0:16]+B[0:16] puts bits side \
by side into one number, the first ones highest. Bits become the narrowest of u8, u16, u32 and u64, \
as a key or the only \
value u32 or u64.

What comes out is in the order of its new keys. That costs nothing where the key stays, becomes its \
highest bits (of an \
unsigned key) or the rank; else it is sorted, on disk where --memory is too little.";

pub const PROJECT_EXAMPLES: &str = "\
Examples:
  pleach project orders.pleach --columns value,key -o by-customer.pleach       swaps them
  pleach project orders.pleach --columns 'key[32:32],value' -o high.pleach     keys without their low half
  pleach project joined.pleach --columns 'key,right' -o right.pleach           drops a field
  pleach project joined.pleach --columns 'key,both=left[0:16]+right[0:16]'     packs two into one";

pub const REDUCE: &str = "\
Makes one tuple of the values of each key. Sums of unsigned integers are u64, of signed ones i64, \
of floats f64; a sum \
that does not fit is an error that names the key. Of floats, min and max are those of the total order.";

pub const REDUCE_EXAMPLES: &str = "\
Examples:
  pleach reduce lines.pleach --op sum -o totals.pleach
  pleach reduce lines.pleach --op count                  how often each key stands";

pub const UNION: &str = "\
Writes each key that stands in any of the files once, with its first value in the first file that has it. With \
--multiset a key stands as often as in the file that has most of it. All tuples of all files are \
what compact writes.";

pub const UNION_EXAMPLES: &str = "\
Examples:
  pleach union monday.pleach tuesday.pleach -o both.pleach
  pleach union a.pleach b.pleach c.pleach -o all.parquet";

pub const INTERSECT: &str = "\
Writes each key that stands in all of the files once, with its first value in the first file. With --multiset a key \
stands as often as in the file that has least of it.";

pub const INTERSECT_EXAMPLES: &str = "\
Examples:
  pleach intersect customers.pleach active.pleach -o active-customers.pleach
  pleach intersect a.pleach b.pleach --json | head";

pub const DIFFERENCE: &str = "\
Writes each key of LEFT that does not stand in RIGHT once, with its first value. With --multiset a key that stands m \
times in LEFT and n times in RIGHT stands m - n times, with its last values.";

pub const DIFFERENCE_EXAMPLES: &str = "\
Examples:
  pleach difference customers.pleach inactive.pleach -o active.pleach";

pub const JOIN: &str = "\
Pairs the values of two files by their keys. A key that stands m times on the left and n times on \
the right gives m * n \
tuples, by left rank, then by right rank. In an index file the value is a record of the fields left \
and right, in a table \
the columns are key, left and right; of a side whose values are records, left_NAME for each field.

Left, right and full joins also have a field sides: 1 if the tuple has a left part, 2 if it has a \
right one, 3 for both; \
a part that is missing is zeros, on standard output empty or null. Semi and anti joins write tuples \
of LEFT as they are.";

pub const JOIN_EXAMPLES: &str = "\
Examples:
  pleach join orders.pleach customers.pleach -o joined.pleach
  pleach join orders.pleach customers.pleach --how left -o joined.parquet
  pleach join orders.pleach customers.pleach --how anti      orders without a customer";

pub const PRODUCT: &str = "\
Pairs every tuple of LEFT with every tuple of RIGHT, by left rank, then by right rank, under the left key. A product \
that is too large is refused before anything is written.";

pub const PRODUCT_EXAMPLES: &str = "\
Examples:
  pleach product sizes.pleach colours.pleach -o variants.pleach
  pleach product sizes.pleach colours.pleach --combine right";
