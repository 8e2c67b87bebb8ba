//! Long texts of `--help` and of the manual pages: the purpose of each command, and examples to copy.

pub const PLEACH: &str = "\
Pleach builds one file from a table of keys and values, and looks keys up in it. The file is \
sorted, checksummed and never changed after it is built. Programs map the file and search it in \
place, so opening it takes no time, and any number of processes share it.

A tuple is a key with its value. Its rank is its position in key order, from 0. A generation is \
one published file; a new generation replaces the old one in a single step.

Standard output carries data only. An error is one line on standard error.

Exit codes: 0 done; 1 a key of `get` is missing, or `diff` found differences; 2 invalid arguments; \
4 a Pleach file is damaged, in any command; 8 any other failure; 130 interrupted.

With --json an error is one object on standard error: schema, code, exit, what, where, advice and \
message. The code is one of usage; damaged; newer, older, foreign, not-found, permission, \
not-a-file, would-overwrite, input, types-differ, too-large, busy, no-space, out-of-memory, \
limit, device, io, failed; interrupted. Later versions add codes, and change none.

Ctrl-C and SIGTERM stop any command within a second. It leaves no partial files.";

pub const PLEACH_EXAMPLES: &str = "\
Examples:
  pleach demo                                   build and search generated data
  pleach build orders.parquet -o orders.pleach --key o_orderkey --value o_custkey
  pleach get orders.pleach 7 32 33              three values
  pleach range orders.pleach 100 200            all tuples with 100 <= key < 200
  pleach fsck orders.pleach                     check every byte";

pub const BUILD: &str = "\
Builds a file from tables and publishes it in one step: FILE is either the complete old file or \
the complete new one, even after a power failure. An interrupted build leaves no files. If FILE \
is a Pleach file, the new file is its next generation. Any other file is replaced only if it is \
empty or --force is given; an input is never replaced.

The first column is the key and the second the value, unless --key and --value name others; \
`--value @row` stores the row number instead. Text columns are read as u64 unless --key-type and \
--value-type specify other types: types are never guessed. Parquet, Arrow and NumPy columns keep \
their own type. Texts are utf8. Bytes of one length N are bytesN, of any length bytes; in a text \
table they are the bytes of the field, or \\x and hexadecimal digits. Input may be compressed with \
gzip, zstd, bzip2, xz, lz4 or brotli. A folder stands for the files in it, and a pattern in quotes, such \
as 'year=*/part-*.csv', for the files that match it; a folder named year=2024 gives its files a \
column year.

Of FASTA and FASTQ, --kmers 31 makes a file of the k-mers of 31 bases, with their counts.

The first of several inputs determines the columns; the others must have columns with the same \
names. A first line of text that could be data is refused, unless --header or --no-header \
specifies what it is.

The input need not be sorted. Input that does not fit into --memory is sorted on disk. Duplicate \
keys are all kept, in input order, unless --unique selects one or adds their values. The same input and options \
produce the same bytes, for any number of threads and any memory; only the number of the \
generation depends on the file that is replaced.";

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
      parts of one table; only the first part has a header
  generate | pleach build - --format csv -o big.pleach
  pleach build reads.fastq.gz --kmers 31 -o kmers.pleach
      how often each k-mer occurs
  pleach build today.csv -o table.pleach --keep 7
      keeps seven old generations, as table.pleach.g1 and so on
  pleach build a.csv -o a.pleach --unique error --no-header --key 2 --value 0
      refuses repeated keys; columns by number
  pleach build users.csv -o users.pleach --dry-run
      how large and how fast it would be";

pub const ADVISE: &str = "\
Reads the first rows of tables, at most 64 MiB, and says for each key type and layout that fits: the \
bytes of a tuple and of the file, the time and the memory of the build, the nanoseconds of a look-up \
on this machine, and after how many look-ups a GPU pays. Then it prints the command to type; with \
--quiet, only that. It takes ten seconds at most, whatever the size of the tables, and writes nothing.

A table of up to 64 MiB and four million rows is built as `build` would do it, in a file without a \
name, and look-ups in it are measured. Of a larger one, the first rows are built, and a table of \
the real size that is made up from them; numbers that were not measured are marked with ~. A look-up is \
one of 16,384 random keys \
that are there, on one thread; of a text or bytes as value, it finds the tuple only.

The types of text columns are tried unless --key-type and --value-type specify them: numbers, dates, \
timestamps, addresses, DNA, hexadecimal digits, else utf8. A type fits if all rows that were read can \
be read with it. A Pleach file instead of tables is measured in the same way.";

pub const ADVISE_EXAMPLES: &str = "\
Examples:
  pleach advise orders.csv
  pleach advise orders.parquet --key o_orderkey --value o_custkey
  sh -c \"$(pleach advise orders.csv --quiet)\"
      builds what was advised
  pleach advise orders.pleach                   how fast it is in fact
  pleach build orders.csv -o orders.pleach --layout lines,spine --dry-run
      the same for one choice of options";

pub const GET: &str = "\
Prints KEY<TAB>VALUE for each key, in the order of the keys. For a missing key, nothing is \
printed (or TEXT, with --missing) and the exit code is 1. If the file has no values, only the key \
is printed.

Keys are arguments, or lines of a file, which may be compressed. The file is streamed, so it may \
be larger than memory. Blank lines are skipped, and so is a first line that is the name of the \
key column. Negative keys need no quoting. With --floor, --ceiling or --nearest, the tuple near each \
key is printed, as KEY<TAB>ITS KEY<TAB>VALUE. For a duplicate key, the first value is printed, or \
every value with --all. In utf8 keys, tab, newline, carriage return and backslash are written \\t \
\\n \\r \\\\; bytes are hexadecimal digits; bytesN are hexadecimal digits or N characters.";

pub const GET_EXAMPLES: &str = "\
Examples:
  pleach get users.pleach 17 -4
  pleach get users.pleach --keys wanted.txt > found.tsv
  cut -f1 table.tsv | pleach get users.pleach --keys - --missing NULL
  pleach get users.pleach --keys wanted.txt --response 1 --explain > found.tsv
      in batches of about a millisecond
  pleach get users.pleach 17 --rank             position in key order
  pleach get prices.pleach --floor 2024-05-01   the last price up to that day
  pleach get users.pleach --keys wanted.txt --count
      how many of them are there
  pleach get users.pleach 17 --json             {\"key\":\"17\",\"value\":\"3\"}";

pub const RANGE: &str = "\
Prints the tuples with LO <= key < HI as KEY<TAB>VALUE, in key order. '..' leaves an end open. \
--limit stops early, --reverse starts at the end, and --count prints the number of tuples without \
reading them. --prefix prints the keys that begin with a text, with hexadecimal digits (of bytes, \
hex keys and uuids) or with DNA bases, or the addresses of a network.";

pub const RANGE_EXAMPLES: &str = "\
Examples:
  pleach range users.pleach 100 200
  pleach range users.pleach -10 10 --inclusive
  pleach range users.pleach 100 .. --limit 5    five tuples, starting at 100
  pleach range users.pleach .. .. --reverse --limit 1
      the largest key
  pleach range users.pleach 100 .. --count
  pleach range words.pleach --prefix inter      keys that begin with inter";

pub const INSPECT: &str = "\
Shows a file as a labelled picture: types, counts, sections with their positions and shares, and \
the levels of the spine. It reads the file without mapping it, so it also works on damaged, \
truncated and foreign files, and shows what is wrong with them. If the file is damaged, the exit \
code is 4.

Every byte is checked in files of up to 64 MiB, and in larger ones with --verify full; `pleach \
fsck` reports more. Then the file id is verified, too; otherwise it is shown as stored. Sums and \
ids do not show who wrote a file: to know that, hash or sign the whole file (sha256sum, \
minisign).";

pub const INSPECT_EXAMPLES: &str = "\
Examples:
  pleach inspect users.pleach
  pleach inspect users.pleach --page 0          the spine's root: base, shift, codes
  pleach inspect users.pleach --line 0          the first tuple line, decoded
  pleach inspect users.pleach --json | jq .sections
  pleach inspect users.pleach --html users.html shows it in a browser
  pleach inspect users.pleach --mapping         shows if it is backed by huge pages";

pub const FSCK: &str = "\
Checks every byte of a file: sums, order, padding, separators, counts. It only reads. Each \
finding is one line: code, section, offset, what was expected, and what was found.

Exit codes: 0 clean; 4 damaged (also an empty file, or one with the marks of Pleach at only one \
end); 8 unreadable, foreign, or intact but of a newer version. Files that an interrupted build \
left next to the file are named on standard error; the next build removes them.";

pub const FSCK_EXAMPLES: &str = "\
Examples:
  pleach fsck users.pleach
  pleach fsck users.pleach --quiet && echo clean
  pleach fsck users.pleach --json | jq '.findings[].code'";

pub const SAMPLE: &str = "\
Prints N tuples of a file, drawn by chance without repetition, in key order. The same seed draws the \
same ranks of a file. It reads only these tuples, so it takes as long as N look-ups.";

pub const SAMPLE_EXAMPLES: &str = "\
Examples:
  pleach sample users.pleach 20
  pleach sample users.pleach 1000 --seed 7 | cut -f1 > keys.txt";

pub const STATS: &str = "\
Reads all tuples of a file and shows how they are spread: different keys and duplicates, gaps and bits of \
numbers, lengths and common beginnings of texts, and a histogram of keys and values each.

Numbers are put into 16 ranges of equal width between the smallest and the largest, texts and bytes \
into ranges of their lengths.";

pub const STATS_EXAMPLES: &str = "\
Examples:
  pleach stats users.pleach
  pleach stats users.pleach --json | jq .keys";

pub const DIFF: &str = "\
Prints the tuples in which two files of the same types differ, in key order: -<TAB>KEY<TAB>VALUE for a \
tuple that only A has, +<TAB>KEY<TAB>VALUE for one that only B has. A tuple with another value has \
both lines, and counts as changed. The order of the values of a key is not compared.

Exit codes: 0 no difference; 1 differences; others as for every command.";

pub const DIFF_EXAMPLES: &str = "\
Examples:
  pleach diff users.pleach.g1 users.pleach      what the last rebuild changed
  pleach diff old.pleach new.pleach --count
  pleach diff old.pleach new.pleach --quiet > /dev/null && echo same";

pub const EXPORT: &str = "\
Writes the tuples of a file as a table, in key order, with the column names and types of the \
table that it was built from. Building from the exported table produces the same file, byte for \
byte. The table replaces any file except a Pleach file, unless --force is given; it never \
replaces FILE.";

pub const EXPORT_EXAMPLES: &str = "\
Examples:
  pleach export users.pleach -o users.parquet
  pleach export users.pleach -o - | head";

pub const REBUILD: &str = "\
Applies a table of changes to FILE and replaces FILE by the next generation, in one step. The \
columns of the table are op, key and value, or have the names of the columns of FILE. Changes \
apply in the order of the table: put replaces all tuples of the key by one, add appends one \
tuple, and del removes all tuples of the key (keys without tuples are counted).

Programs that have the old generation open continue to read it. FILE is verified while it is \
read; a damaged file is refused and stays. With --keep the old generation is kept as FILE.gN. If \
another file has that name, the rebuild is refused; only older generations of FILE are ever \
removed.";

pub const REBUILD_EXAMPLES: &str = "\
Examples:
  printf 'op,key,value\\nput,17,4\\ndel,18,\\n' > changes.csv
  pleach rebuild users.pleach --apply changes.csv
  pleach rebuild users.pleach --apply changes.parquet --keep 2        keeps users.pleach.g1
  generate | pleach rebuild users.pleach --apply - --format csv";

pub const GENERATIONS: &str = "\
Lists the generations of a file, oldest first: the current one, those that --keep left as \
FILE.g1, FILE.g2 and so on, and other files that have such a name, which --keep does not touch. A \
generation is identified by its superblock: by its number, and by the first generation that it \
descends from.";

pub const GENERATIONS_EXAMPLES: &str = "\
Examples:
  pleach generations users.pleach
  pleach generations users.pleach --json | jq '.generations[].path'";

pub const ROLLBACK: &str = "\
Makes an old generation current again. Its tuples are published as the next generation, so \
programs that follow the file see a new one. Every block is verified when it is copied. The \
generation that was current is kept as FILE.gN, unless --keep specifies otherwise. FILE may be \
damaged or missing.";

pub const ROLLBACK_EXAMPLES: &str = "\
Examples:
  pleach rollback users.pleach                  to the newest kept generation
  pleach rollback users.pleach 3";

pub const UPGRADE: &str = "\
Gives files of format 0.13, the last before 1.0, the form of this version. Kept generations of a \
file are upgraded, too. Tuples, sections, generation and file id stay; only the superblock changes. \
Every block is verified when it is copied, and each file is replaced in one step. Files of this \
version stay as they are. Files of older versions must be built again.";

pub const UPGRADE_EXAMPLES: &str = "\
Examples:
  pleach upgrade users.pleach
  pleach upgrade data/*.pleach";

pub const COMPACT: &str = "\
Merges files of the same types into one, in one pass over each file. For equal keys, the tuples \
of an earlier file come first, and --unique selects one of them. Every block is verified when it \
is read. If the output is a Pleach file, the new file is its next generation; the output is never \
one of the files that are merged.";

pub const COMPACT_EXAMPLES: &str = "\
Examples:
  pleach compact monday.pleach tuesday.pleach -o both.pleach
  pleach compact old.pleach new.pleach -o all.pleach --unique last    new values win";

pub const SET: &str = "\
A set is a table in several files: a folder with files, each with a range of the keys, and with a \
small manifest for each generation, which says which files these are. It is for tables that are \
larger than one file should be, and for builds on several machines. `pleach get`, `range`, `export`, \
`fsck`, `inspect`, `stats`, `sample`, `diff`, `rebuild`, `generations`, `rollback` and the relational \
commands take the folder of a set, or one of its manifests, where they take a file.

A look-up opens one file. Files and manifests never change: a new generation is a new manifest, and \
readers keep the one that they have. spec/SET.md specifies the bytes and the protocol.

A file that is missing, damaged, or not the one that the manifest describes is an error that names \
it. With --partial a command answers without such files, says which they are, and exits with 4.";

pub const SET_EXAMPLES: &str = "\
Examples:
  pleach set build part-*.parquet -o orders --key o_orderkey --value o_custkey
  pleach get orders 7 32 33
  pleach set rebuild orders --apply changes.csv
  pleach set sweep orders --dry-run";

pub const SET_BUILD: &str = "\
Reads tables in one pass, sorts them, on disk if they are larger than --memory, cuts the sorted \
tuples into files, and publishes these as the next generation of the set in DIR: complete, or not at \
all. Equal keys are never in two files; a key with very many tuples makes a larger file. The same \
input and options give files of the same bytes, for any number of threads and any memory.";

pub const SET_BUILD_EXAMPLES: &str = "\
Examples:
  pleach set build part-*.csv -o table --header first --memory 4GiB
  pleach set build orders.parquet -o orders --key o_orderkey --partitions 16
  pleach set build words.csv -o words --key-type utf8 --partition-tuples 2^20";

pub const SET_WRITE: &str = "\
Writes files as `pleach set build` does, but publishes nothing: it prints the entries of the files as \
JSON, for `pleach set commit`. So several workers can write files of separate ranges of keys at the \
same time. Files that are never committed are litter, which `pleach set sweep` deletes.";

pub const SET_WRITE_EXAMPLES: &str = "\
Examples:
  pleach set write january.csv -o sales > january.json
  pleach set write february.csv -o sales > february.json
  pleach set commit sales january.json february.json";

pub const SET_COMMIT: &str = "\
Publishes the next generation of a set: the files of the current one, and those of the entries. Types \
must be equal, ranges of keys must not overlap, and every file must be there. Of two committers one \
wins, and the other fails with the code busy and has changed nothing.";

pub const SET_COMMIT_EXAMPLES: &str = "\
Examples:
  pleach set commit sales january.json february.json
  pleach set write all.csv -o sales | pleach set commit sales - --replace";

pub const SET_REBUILD: &str = "\
Applies a batch of changes, as `pleach rebuild` does, and publishes the next generation of the set. \
Only the files that the changes meet are made anew; the others are carried over. A file that grows \
past twice the tuples of a partition is divided, and one without tuples is dropped.";

pub const SET_REBUILD_EXAMPLES: &str = "\
Examples:
  pleach set rebuild orders --apply changes.csv
  pleach generations orders
  pleach rollback orders 3";

pub const SET_SWEEP: &str = "\
Deletes the manifests of old generations, and files that no kept generation names and that are older \
than --grace. A worker that takes longer than half of the grace cannot commit, and a reader that keeps \
a generation for longer may miss files: choose it longer than both.";

pub const SET_SWEEP_EXAMPLES: &str = "\
Examples:
  pleach set sweep orders --dry-run
  pleach set sweep orders --grace 7d --keep 5";

pub const DEMO: &str = "\
Generates orders with skewed, clustered and random ids, builds files from them, looks keys up, \
compares every answer with a naive oracle, and prints results and speeds, together with those of \
a hash map, a B-tree map and binary search. It takes less than 20 seconds and leaves no files.";

pub const DEMO_EXAMPLES: &str = "\
Examples:
  pleach demo
  pleach demo --tuples 2^22
  pleach demo --keep /tmp/demo                  then: pleach inspect /tmp/demo/*.pleach";

pub const DEVICES: &str = "\
Shows the vector instructions of the CPU, whether files can be mapped with huge pages, which GPUs \
are found, and which of them a look-up uses.";

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
Measures for about a second what reading lines, computing and moving queries cost on this \
machine, and writes the costs to costs.json in the cache folder ($XDG_CACHE_HOME/pleach, or \
~/.cache/pleach). `get` uses them to choose how to look up many keys. Without the file, the costs \
of a common server are used. Answers are the same either way.";

pub const TUNE_EXAMPLES: &str = "\
Examples:
  pleach tune
  pleach tune --show
  pleach get users.pleach --keys wanted.txt --explain > found.tsv";

pub const COMPLETIONS: &str = "\
Prints a script for a shell that completes the commands and options of pleach.";

pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  pleach completions bash > ~/.local/share/bash-completion/completions/pleach
  pleach completions zsh > ~/.zfunc/_pleach
  pleach completions fish > ~/.config/fish/completions/pleach.fish";

pub const MAN: &str = "\
Writes manual pages: pleach.1, and one page for each command, such as pleach-build.1.";

pub const MAN_EXAMPLES: &str = "\
Examples:
  pleach man ~/.local/share/man/man1
  man pleach-build";

pub const SELECT: &str = "\
Writes the tuples for which a condition is true. Operands are key, value, rank (the position in \
key order, from 0) and the fields of a record, by name, `in backquotes` if the name is not a \
plain word. The names of the key and value columns also mean key and value.

Numbers are 17, 1_000_000, 0xff, -5, 0.5 or 1e9; texts are 'so' or \"so\"; bytes are '\\x00ff'. \
Comparisons are == != < <= > >=, between X and Y, in (A, B, C), and, for texts, like 'abc%' and \
starts with 'abc'. Whole numbers also have | ^ & << >> + - * / % and brackets. Conditions are \
joined by and, or, not; and binds tighter than or. Arithmetic never wraps: an overflow or a \
division by zero is an error that names the tuple, unless an earlier part of `and` or `or` has \
decided the result.

A condition on keys or ranks reads only the part of the file in which it can be true.";

pub const SELECT_EXAMPLES: &str = "\
Examples:
  pleach select orders.pleach --where 'key between 100 and 200'
  pleach select orders.pleach --where 'key < 1000 and value in (7, 9)' -o some.pleach
  pleach select orders.pleach --where 'key & 0xff == 3 or rank < 10' --explain
  pleach select joined.pleach --where 'left > 5 and not right == 0' -o some.parquet
  pleach select words.pleach --where \"key like 'inter%'\" --json";

pub const PROJECT: &str = "\
Writes tuples with other keys and values. The first column of the list is the new key. The others \
are the new value: no value, a plain value, or a record of several fields. A column is key, \
value, rank or a field; NAME=COLUMN renames it.

COLUMN[OFF:LEN] takes LEN bits of a whole number from bit OFF; bit 0 is the lowest. \
A[0:16]+B[0:16] joins bits into one number, with the first ones highest. The result has the \
narrowest of the types u8, u16, u32 and u64; as a key or the only value, u32 or u64.

The result is in the order of the new keys. No sorting is needed if the new key is the old key, \
its highest bits (of an unsigned key) or the rank. Otherwise the result is sorted, on disk if \
--memory is not enough.";

pub const PROJECT_EXAMPLES: &str = "\
Examples:
  pleach project orders.pleach --columns value,key -o by-customer.pleach       swaps them
  pleach project orders.pleach --columns 'key[32:32],value' -o high.pleach     keys without their low half
  pleach project joined.pleach --columns 'key,right' -o right.pleach           drops a field
  pleach project joined.pleach --columns 'key,both=left[0:16]+right[0:16]'     packs two into one";

pub const REDUCE: &str = "\
Combines the values of each key into one tuple. Sums of unsigned integers are u64, of signed ones \
i64, of floats f64; a sum that does not fit is an error that names the key. For floats, min and \
max use the total order. Means are f64: of integers and decimals the float nearest to the exact \
mean, of floats their sum divided by their number.

Of records, --op sum:amount or --op sum --field amount reduces a field. Several reductions make a \
record, with the fields sum_amount, avg_price and so on.";

pub const REDUCE_EXAMPLES: &str = "\
Examples:
  pleach reduce lines.pleach --op sum -o totals.pleach
  pleach reduce orders.pleach --op sum:amount,avg:price,count -o customers.parquet
  pleach reduce lines.pleach --op count                  number of tuples of each key
  generate | pleach reduce - --input-format csv --op count          of a table";

pub const UNION: &str = "\
Writes each key that occurs in any of the files once, with its first value in the first file that \
has it. With --multiset a key is written as often as it occurs in the file where it is most \
frequent. To write all tuples of all files, use compact.";

pub const UNION_EXAMPLES: &str = "\
Examples:
  pleach union monday.pleach tuesday.pleach -o both.pleach
  pleach union a.pleach b.pleach c.pleach -o all.parquet
  pleach union seen.pleach 'new/*.csv.gz' -o seen.pleach         an index file and tables";

pub const INTERSECT: &str = "\
Writes each key that occurs in all of the files once, with its first value in the first file. \
With --multiset a key is written as often as it occurs in the file where it is rarest.";

pub const INTERSECT_EXAMPLES: &str = "\
Examples:
  pleach intersect customers.pleach active.pleach -o active-customers.pleach
  pleach intersect a.pleach b.pleach --json | head";

pub const DIFFERENCE: &str = "\
Writes each key of LEFT that does not occur in RIGHT once, with its first value. With --multiset \
a key with m tuples in LEFT and n in RIGHT has m - n tuples in the result, with its last values.";

pub const DIFFERENCE_EXAMPLES: &str = "\
Examples:
  pleach difference customers.pleach inactive.pleach -o active.pleach";

pub const JOIN: &str = "\
Pairs the values of two files by their keys. A key with m tuples on the left and n on the right \
has m * n tuples in the result, by left rank, then by right rank. In an index file, the value is \
a record of the fields left and right. In a table, the columns are key, left and right. If the \
values of a side are records, there is a column left_NAME or right_NAME for each field.

Left, right and full joins also have a field sides: 1 if the tuple has only a left value, 2 if it \
has only a right one, 3 for both. A missing value is stored as zeros, and printed as empty or \
null. Semi and anti joins write the tuples of LEFT unchanged.

LEFT and RIGHT may be tables, as those of build: files, folders, patterns, and '-' with --input-format. A temporary \
index of each is built first. Text has the key type of the other input, unless --key-type says another one.";

pub const JOIN_EXAMPLES: &str = "\
Examples:
  pleach join orders.pleach customers.pleach -o joined.pleach
  pleach join orders.parquet customers.csv --left-key customer --right-value name --right-value-type utf8
      tables, of which temporary indexes are built
  pleach join orders.pleach customers.pleach --how left -o joined.parquet
  pleach join orders.pleach customers.pleach --how anti      orders without a customer";

pub const PRODUCT: &str = "\
Pairs every tuple of LEFT with every tuple of RIGHT, by left rank, then by right rank, with the \
left key. If the product is too large, it is refused before anything is written.";

pub const PRODUCT_EXAMPLES: &str = "\
Examples:
  pleach product sizes.pleach colours.pleach -o variants.pleach
  pleach product sizes.pleach colours.pleach --combine right";
