"""The table of mistakes: what somebody types or writes, what he is told, and the exit code."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.topology.planning.task_wirings import SPEC_LIMIT_BYTES

USAGE, FAILED, STATE, ENGINE = 2, 1, 4, 5


@dataclass(frozen=True)
class Mistake:
    """One row.

    Attributes:
        name: what is wrong, as a phrase.
        typed: the arguments of ``txbatch``, parted by blanks; ``{…}`` is filled in by the test.
        code: what the process exits with.
        told: parts of the sentence, in order.
        redis_url: in the environment.
    """

    name: str
    typed: str
    code: int
    told: tuple[str, ...]
    redis_url: str = ""


def row(name: str, typed: str, code: int, *told: str, redis_url: str = "") -> Mistake:
    return Mistake(name, typed, code, told, redis_url)


COMMAND_LINE = [
    row("an unknown command", "start x", USAGE, "No such command 'start'"),
    row("an unknown option", "run jobs:sound --paralellism 3", USAGE, "No such option", "--paralellism"),
    row("no topology", "run", USAGE, "Missing argument 'MODULE:FACTORY'"),
    row(
        "no room for a transaction",
        "run jobs:sound --max-pending 0",
        USAGE,
        "--max-pending",
        "greater than or equal to 1",
    ),
    row("a number in words", "run jobs:sound --commit-group-max many", USAGE, "valid integer"),
]

LOADING = [
    row("no factory in the target", "run jobs", USAGE, "'jobs' does not name a topology", "give MODULE:FACTORY"),
    row("a module that is not there", "run jobz:sound", USAGE, "module 'jobz' is neither in", "nor installed"),
    row("a file that is not there", "run jobz.py:sound", USAGE, "file 'jobz.py' does not exist"),
    row("a file name that is no module name", "run my-job.py:x", USAGE, "'my-job.py' cannot be imported", "rename it"),
    row("a file that hides a library", "run json.py:x", USAGE, "that name is taken by", "rename it"),
    row("a factory that is not there", "run jobs:sount", USAGE, "module 'jobs' has no 'sount'", "it defines:"),
    row(
        "a factory that is no function", "run jobs:NOT_CALLABLE", USAGE, "is 3, which is not callable; name a function"
    ),
    row(
        "a factory that raises", "run jobs:raises", USAGE, "factory 'jobs:raises' raised KeyError: 'input' (", "line 5"
    ),
    row("a factory without return", "run jobs:returns_nothing", USAGE, "returned None; return the result of build()"),
    row("a factory without build", "run jobs:returns_a_builder", USAGE, "returned <", "return the result of build()"),
    row("a module that raises", "run raising:x", USAGE, "importing 'raising' raised json.decoder.JSONDecodeError: "),
    row(
        "a module that leaves", "run leaving:x", USAGE, "importing 'leaving' raised SystemExit: usage: leaving (", "3)"
    ),
    row(
        "a module that does not parse", "run torn:x", USAGE, "importing 'torn' raised SyntaxError: ", "torn.py, line 1)"
    ),
    row(
        "a library that is missing", "run hungry:x", USAGE, "ModuleNotFoundError: No module named 'numpie' (", "line 1)"
    ),
    row("a parameter without value", "run jobs:sound -p input", USAGE, "-p 'input' does not have the form key=value"),
    row("a parameter given twice", "run jobs:sound -p a=1 -p a=2", USAGE, "-p sets 'a' twice, to '1' and '2'"),
    row(
        "a parameter nobody takes",
        "run jobs:sound -p a=1",
        USAGE,
        "has no parameter 'a'; its parameters: input='input.txt'",
    ),
    row("a parameter that is missing", "run jobs:needs", USAGE, "needs parameter 'word'; give -p word=VALUE"),
    row("a parameter of another type", "run jobs:sound -p lines_per_batch=ten", USAGE, "lines_per_batch='ten' is not"),
    row("an option for plain topologies", "run jobs:sound --stop-when-idle", USAGE, "--stop-when-idle is for plain"),
    row(
        "an option for transactions",
        "run plain_job:topology --max-pending 3",
        USAGE,
        "--max-pending is for transactional topologies, but 'plain' is a plain one",
    ),
]

WIRING = [
    row("a cycle", "run jobs:cycle", USAGE, "the topology has a cycle: ", "remove a subscription"),
    row("an unknown component", "run jobs:unknown_component", USAGE, "unknown component 'line'; known: ['lines'"),
    row(
        "an unknown stream",
        "run jobs:unknown_stream",
        USAGE,
        "unknown stream 'errors' of 'lines'; declared: ['default'",
    ),
    row(
        "an unknown field", "run jobs:unknown_field", USAGE, "cannot subscribe to stream 'default' of 'lines': ", "word"
    ),
    row("fields as text", "run jobs:fields_as_text", USAGE, "takes a list of fields, not 'line'; write ['line']"),
    row("a bolt nobody feeds", "run jobs:no_input", USAGE, "component 'one' has no input; subscribe it to a component"),
    row(
        "a misspelled method", "run jobs:misspelled", USAGE, "'one' would ignore every tuple: ", "did you mean execute"
    ),
    row("an id used twice", "run jobs:used_twice", USAGE, "component id 'lines' is used twice"),
    row("a stream subscribed twice", "run jobs:subscribed_twice", USAGE, "'one' subscribes twice to stream 'default'"),
    row(
        "a class for an object", "run jobs:class_for_object", USAGE, "is the class Pass, not an instance of it; give an"
    ),
    row("a grouping's class", "run jobs:grouping_class", USAGE, "custom_grouping got the class CustomGrouping, not an"),
    row("a list for a spout", "run jobs:no_spout", USAGE, "spout 'lines' is ['a line'] of type list; give an instance"),
    row("no tasks", "run jobs:no_tasks", USAGE, "parallelism of component 'lines' is 0; give an integer from 1"),
    row("no time", "run jobs:no_time", USAGE, "message timeout is -1; give a number of seconds above 0"),
    row("a basic bolt as committer", "run jobs:basic_committer", USAGE, "has no finish_batch to commit in; make it an"),
    row(
        "state outside a committer",
        "run jobs:state_outside_a_committer",
        USAGE,
        "is not a committer, and only committers",
    ),
    row(
        "state of two components",
        "run jobs:state_of_two",
        USAGE,
        "state 'lines' is declared by 'one' and by 'two'; only one",
    ),
    row(
        "state of lists",
        "run jobs:state_of_lists",
        USAGE,
        "value of state 'lines' is declared as 'list'; use one of int",
    ),
    row(
        "a state's name with a colon",
        "run jobs:state_with_a_colon",
        USAGE,
        "state name 'a:b' is not a valid name; use 1",
    ),
    row(
        "a topology's name with a blank", "run jobs:sound -p topology_id=a/b", USAGE, "topology id 'a/b' is not a valid"
    ),
    row(
        "a socket in a bolt",
        "run jobs:socket_in_a_bolt",
        USAGE,
        "component 'one' cannot be shipped to executors: ",
        "socket",
        "open sockets, files, locks and clients in prepare, not in __init__",
    ),
    row(
        "a huge bolt",
        "run jobs:huge_bolt",
        USAGE,
        "component 'one' pickles to 9,4",
        f"more than {SPEC_LIMIT_BYTES:,}; load large data in prepare, or ship it as a file",
    ),
]

INPUT = [
    row("no input", "run jobs:sound -p input=nothing/*.txt", USAGE, "no file matches 'nothing/*.txt'", "give the path"),
    row("a directory", "run jobs:sound -p input=folder", USAGE, "it is a directory; take 'folder/*' for the files"),
    row(
        "a pipe", "run jobs:sound -p input=pipe", USAGE, "is no regular file: a replay has to read it again", "copy it"
    ),
    row("a bzip2 file", "run jobs:sound -p input=lines.bz2", USAGE, "is compressed with bzip2", "first (bunzip2"),
    row(
        "a zip archive", "run jobs:sound -p input=lines.zip", USAGE, "is a zip archive", "unpack it first (unzip FILE)"
    ),
    row("UTF-16", "run jobs:sound -p input=utf16.txt", USAGE, "is UTF-16 by its byte order mark", "(iconv -f UTF-16"),
    row("no lines a batch", "run jobs:sound -p lines_per_batch=0", USAGE, "lines_per_batch=0 of TextFiles has to be"),
]

SERVER = [
    row("two servers", "run jobs:sound --redis redis://h --data-dir d", USAGE, "--redis and --data-dir exclude each"),
    row("an empty address", "status job --redis=", USAGE, "redis url is empty; give redis://host:6379"),
    row("an address without scheme", "run jobs:sound --redis h.example:1", USAGE, "'h.example:1' has no scheme; give"),
    row("another scheme", "run jobs:sound --redis http://u:canary@h", USAGE, "'http://h' begins with http://; give"),
    row(
        "a port in words",
        "run jobs:sound --redis redis://:canary@h:port",
        USAGE,
        "'redis://h:?' has a port that is not",
    ),
    row(
        "no host after the password",
        "status job --redis redis://u:canary",
        USAGE,
        "'redis://u:?'",
        "put it before an '@'",
    ),
    row("a database in words", "run jobs:sound --redis redis://h/words", USAGE, "'redis://h/?' has a database that is"),
    row(
        "a database option in words",
        "drop job --yes --redis redis://h?db=one",
        USAGE,
        "'redis://h'",
        "a database number",
    ),
    row("an unknown option", "status job --redis redis://h?ssl=1", USAGE, "unknown option 'ssl'; use one of"),
    row("TLS options without TLS", "status job --redis redis://h?ssl_ca_certs=x", USAGE, "without TLS; use rediss://"),
    row(
        "certificates not there",
        "status job --redis rediss://h?ssl_ca_certs=/x.pem",
        USAGE,
        "not on this host ('/x.pem')",
    ),
    row(
        "a slash in the password", "run jobs:sound --redis redis://:can/ary@h", USAGE, "'redis://h'", "write it as %2F"
    ),
    row("an at in it too", "run jobs:sound", USAGE, "'redis://h'", "'@' as %40", redis_url="redis://:c@n/ary@h"),
    row("a question mark in it", "run jobs:sound", USAGE, "'redis://?'", "as %3F", redis_url="redis://:can?ary@h"),
    row(
        "plain text far away",
        "run jobs:sound --redis redis://:canary@192.0.2.1",
        USAGE,
        "in plain text",
        "use rediss://",
    ),
    row(
        "plain text, to look",
        "status job",
        USAGE,
        "redis://192.0.2.1 is on another machine",
        redis_url="redis://:canary@192.0.2.1",
    ),
    row(
        "a socket by a relative path",
        "status job --redis unix://redis.sock",
        USAGE,
        "has no absolute path; give unix://",
    ),
    row(
        "a file as data directory",
        "run jobs:sound --data-dir input.txt",
        STATE,
        "cannot be used: File exists; or choose",
    ),
    row(
        "a shared data directory", "run jobs:sound --data-dir shared", STATE, "open to other users (mode 755) and holds"
    ),
    row(
        "a data directory never used",
        "status job --data-dir nowhere",
        USAGE,
        "holds no state; give another --data-dir, or",
    ),
    row("a look at nothing", "status job", USAGE, "data directory '.txbatch' holds no state"),
    row(
        "a bad name", "status a:b --redis redis://127.0.0.1:1", USAGE, "topology id 'a:b' is not a valid name; use 1 to"
    ),
]

SILENT = [
    row(
        "nobody listens", "run jobs:sound --redis redis://127.0.0.1:1", STATE, "did not answer for", "start it or check"
    ),
    row("no such socket", "status job --redis unix:///no/such.sock", STATE, "unix:///no/such.sock did not answer for"),
]

RUNNING = [
    row(
        "execute raises",
        "run jobs:execute_raises",
        FAILED,
        "component 'store', task 0, attempt 1:",
        "at tuple Tuple(",
        "ValueError: invalid literal for int() with base 10: 'one'",
    ),
    row("prepare raises", "run jobs:prepare_raises", FAILED, "component 'store'", "KeyError: 'limit'"),
    row("finish_batch raises", "run jobs:finish_raises", FAILED, "component 'store'", "ZeroDivisionError: division by"),
    row("cleanup raises", "run jobs:cleanup_raises", FAILED, "component 'store'", "AttributeError: ", "'close'"),
    row("a message that draws", "run jobs:message_draws", FAILED, "ValueError: \\x1b[2J\\x1b[31mdone\\rxxx", "more)"),
    row(
        "prepare without super",
        "run jobs:prepare_without_super",
        FAILED,
        "no attribute 'collector'",
        "remedy: WithoutSuper overrides prepare, which sets self.collector; call super().prepare(conf, context,",
    ),
    row(
        "state that is not declared",
        "run jobs:state_not_declared",
        FAILED,
        "no attribute 'words'",
        "declare it in class Undeclared: words = HashState('words')",
    ),
    row(
        "state made in finish_batch",
        "run jobs:state_made_in_finish_batch",
        FAILED,
        "state 'words' is not declared: ",
        "write `words = HashState('words')` in the class body",
    ),
    row("state made in __init__", "run jobs:state_made_in_init", FAILED, "state 'words' is not declared: "),
    row("state in execute", "run jobs:state_in_execute", FAILED, "'lines' is open only in finish_batch"),
    row(
        "text for an integer", "run jobs:text_for_an_integer", FAILED, "state 'lines' was given value 'one' of type str"
    ),
    row(
        "an integer for a field", "run jobs:integer_for_a_field", FAILED, "was given field 3 of type int, but declares"
    ),
    row("an integer beyond 2^53", "run jobs:beyond_the_range", FAILED, "was given value 9007199254740992, outside ±"),
    row(
        "a transaction that always fails",
        "run jobs:always_fails",
        FAILED,
        "txid 1 failed 5 times",
        "FailedException: the other service is down; lower txids are committed",
    ),
    row(
        "two values for one field",
        "run jobs:two_values_for_one_field",
        FAILED,
        "component 'middle'",
        "emitted ['a', 'b']",
        "takes a list of 1 value: 'line'",
    ),
    row(
        "text for a row",
        "run jobs:text_for_a_row",
        FAILED,
        "component 'middle' emitted 'a'",
        "takes a list of 1 value: 'line'",
    ),
    row("a number for a row", "run jobs:number_for_a_row", FAILED, "component 'middle' emitted 3"),
    row(
        "a stream not declared",
        "run jobs:stream_not_declared",
        FAILED,
        "does not declare stream 'errors' (declared: default)",
    ),
    row(
        "a value that cannot travel",
        "run jobs:value_that_cannot_travel",
        FAILED,
        "component 'middle'",
        "<object object",
    ),
    row("a field that is not there", "run jobs:field_not_there", FAILED, "has no field 'word'; it has ('line',)"),
    row(
        "a bolt that leaves",
        "run jobs:bolt_leaves",
        FAILED,
        "component 'store', task 0, attempt 1:",
        "SystemExit: no more of this",
        "remedy: a component may not end its process; raise an exception",
    ),
    row(
        "a spout that raises",
        "run jobs:spout_raises",
        FAILED,
        "initialize_transaction of txid 1 of component 'lines' failed:",
        "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/list'",
    ),
    row(
        "a line that is no UTF-8",
        "run jobs:sound -p input=latin1.txt",
        FAILED,
        "the record at line 2 of input file",
        "byte 0xe9 at position 3 is not valid UTF-8",
        "give on_bad_record='skip'",
    ),
    row(
        "a line without end",
        "run jobs:sound -p input=endless.txt",
        FAILED,
        "has a record of more than",
        "record 2, which starts at byte 4",
        "break it up, or leave the file out",
    ),
]

REAL_SERVER = [
    row(
        "a wrong password", "run jobs:sound --redis {wrong}", STATE, "refused the user name or password; check both in"
    ),
    row("no password", "status job --redis {url}", STATE, "asks for a password; give it in the URL"),
    row(
        "a database that is not there",
        "status job --redis {right}?db=99",
        USAGE,
        "has no database of that number; give",
    ),
    row("a server that evicts", "run jobs:sound --redis {right}", STATE, "maxmemory-policy 'allkeys-lru'", "set it to"),
    row(
        "a topology nobody knows",
        "status nothing --redis {right}",
        USAGE,
        "topology 'nothing' is not stored on unix://",
    ),
    row(
        "nothing to drop",
        "drop nothing --yes --redis {right}",
        USAGE,
        "is not stored on unix://",
        "nothing was deleted",
    ),
    row(
        "nobody to ask", "drop nothing --redis {right}", USAGE, "Standard input is not a terminal to ask on; give --yes"
    ),
    row("TLS to a plain port", "status job --redis {tls_to_plain}", STATE, "127.0.0.1", "TLS", "write redis://"),
    row(
        "plain text to a TLS port",
        "status job --redis {plain_to_tls}",
        STATE,
        "if this port speaks TLS only, write rediss",
    ),
    row(
        "a certificate nobody trusts",
        "status job --redis {untrusted}",
        STATE,
        "an untrusted certificate; check ssl_ca_certs",
    ),
]

REAL_SPARK = [
    row(
        "a master that is none",
        "run jobs:sound --master nowhere",
        USAGE,
        "spark does not start with master 'nowhere': ",
    ),
    row(
        "a dead master",
        "run jobs:sound --master spark://127.0.0.1:9",
        ENGINE,
        "Spark master 'spark://127.0.0.1:9' cannot be reached: 127.0.0.1:9: Connection refused; start it, or check",
    ),
    row(
        "memory in words",
        "run jobs:sound --master local[1] --conf spark.driver.memory=lots",
        USAGE,
        "spark does not start",
    ),
    row(
        "scratch in a file",
        "run jobs:sound --master local[1] --conf spark.local.dir=input.txt",
        USAGE,
        "File exists; give",
    ),
]
