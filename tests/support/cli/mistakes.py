"""The table of mistakes: what somebody types or writes, what he is told, and the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from coordinator.topology.planning.task_wirings import SPEC_LIMIT_BYTES

USAGE, FAILED, STATE, ENGINE = 2, 1, 4, 5


@dataclass(frozen=True)
class Mistake:
    """One row.

    Attributes:
        typed: the arguments of ``txbatch``, parted by blanks; ``{…}`` is filled in by the test.
        told: parts of the sentence, in order.
        code: what the process exits with.
        redis_url: in the environment.
    """

    typed: str
    told: tuple[str, ...]
    code: int
    redis_url: str


def row(typed: str, *told: str, code: int = USAGE, redis_url: str = "") -> Mistake:
    return Mistake(typed, told, code, redis_url)


failing = partial(row, code=FAILED)
without_state = partial(row, code=STATE)

COMMAND_LINE = [
    row("start x", "No such command 'start'"),
    row("run jobs:sound --paralellism 3", "No such option", "--paralellism"),
    row("run", "Missing argument 'MODULE:FACTORY'"),
    row("run jobs:sound --max-pending 0", "--max-pending", "greater than or equal to 1"),
    row("run jobs:sound --commit-group-max many", "valid integer"),
    row("status", "Missing argument"),
]

LOADING = [
    row("run jobs", "'jobs' does not name a topology", "give MODULE:FACTORY"),
    row("run jobz:sound", "module 'jobz' is neither in", "nor installed"),
    row("run jobz.py:sound", "file 'jobz.py' does not exist"),
    row("run my-job.py:x", "'my-job.py' cannot be imported", "rename it"),
    row("run json.py:x", "that name is taken by", "rename it"),
    row("run jobs:sount", "module 'jobs' has no 'sount'", "it defines:"),
    row("run jobs:NOT_CALLABLE", "is 3, which is not callable; name a function"),
    row("run jobs:raises", "factory 'jobs:raises' raised KeyError: 'input' (", "jobs.py, line 39)"),
    row("run jobs:returns_nothing", "returned None; return the result of build()"),
    row("run jobs:returns_a_builder", "returned <", "return the result of build()"),
    row("run raising:x", "importing 'raising' raised json.decoder.JSONDecodeError: "),
    row("run leaving:x", "importing 'leaving' raised SystemExit: usage: leaving (", "3)"),
    row("run torn:x", "importing 'torn' raised SyntaxError: ", "torn.py, line 1)"),
    row("run hungry:x", "ModuleNotFoundError: No module named 'numpie' (", "line 1)"),
    row("run jobs:sound -p input", "-p 'input' does not have the form key=value"),
    row("run jobs:sound -p a=1 -p a=2", "-p sets 'a' twice, to '1' and '2'"),
    row("run jobs:sound -p a=1", "has no parameter 'a'; its parameters: input='input.txt'"),
    row("run jobs:sound --conf spark.no.value", "--conf 'spark.no.value' does not have the form key=value"),
    row(
        "run jobs:sound --adopt=everything", "option adopt is 'everything'", "give True, or one or more of these words"
    ),
    row("run jobs:sound --adopt=", "option adopt is ''", "give True, or one or more of these words"),
    row("run jobs:needs", "needs parameter 'word'; give -p word=VALUE"),
    row("run jobs:sound -p lines_per_batch=ten", "lines_per_batch='ten' is not"),
    row("run jobs:sound --stop-when-idle", "--stop-when-idle is for plain"),
    row(
        "run plain_job:topology --max-pending 3",
        "--max-pending is for transactional topologies, but 'lines' is a plain one",
    ),
]

WIRING = [
    row("run jobs:cycle", "the topology has a cycle: ", "remove a subscription"),
    row("run jobs:unknown_component", "unknown component 'line'; known: ['lines'"),
    row("run jobs:unknown_stream", "unknown stream 'errors' of 'lines'; declared: ['default'"),
    row("run jobs:unknown_field", "cannot subscribe to stream 'default' of 'lines': ", "word"),
    row("run jobs:fields_as_text", "takes a list of fields, not 'line'; write ['line']"),
    row("run jobs:no_input", "component 'one' has no input; subscribe it to a component"),
    row("run jobs:misspelled", "'one' would ignore every tuple: ", "did you mean execute"),
    row("run jobs:used_twice", "component id 'lines' is used twice"),
    row("run jobs:subscribed_twice", "'one' subscribes twice to stream 'default'"),
    row("run jobs:class_for_object", "is the class Pass, not an instance of it; give an"),
    row("run jobs:grouping_class", "custom_grouping got the class CustomGrouping, not an"),
    row("run jobs:no_spout", "spout 'lines' is ['a line'] of type list; give an instance"),
    row("run jobs:no_tasks", "parallelism of component 'lines' is 0; give an integer from 1"),
    row("run jobs:no_time", "message timeout is -1; give a number of seconds above 0"),
    row("run jobs:basic_committer", "has no finish_batch to commit in; make it an"),
    row("run jobs:state_outside_a_committer", "is not a committer, and only committers"),
    row("run jobs:state_of_two", "state 'lines' is declared by 'one' and by 'two'; only one"),
    row("run jobs:state_of_lists", "value of state 'lines' is declared as 'list'; use one of int"),
    row("run jobs:state_with_a_colon", "state name 'a:b' is not a valid name; use 1"),
    row("run jobs:sound -p topology_id=a/b", "topology id 'a/b' is not a valid"),
    row(
        "run jobs:socket_in_a_bolt",
        "component 'one' cannot be shipped to executors: ",
        "socket",
        "open sockets, files, locks and clients in prepare, not in __init__",
    ),
    row(
        "run jobs:huge_bolt",
        "component 'one' pickles to 9,4",
        f"more than {SPEC_LIMIT_BYTES:,}; load large data in prepare, or ship it as a file",
    ),
]

INPUT = [
    row("run jobs:sound -p input=nothing/*.txt", "no file matches 'nothing/*.txt'", "give the path"),
    row("run jobs:sound -p input=folder", "it is a directory; take 'folder/*' for the files"),
    row("run jobs:sound -p input=pipe", "is not a regular file: a replay has to read it again", "copy it"),
    row("run jobs:sound -p input=lines.bz2", "is compressed with bzip2", "first (bunzip2"),
    row("run jobs:sound -p input=lines.zip", "is a zip archive", "unpack it first (unzip FILE)"),
    row("run jobs:sound -p input=utf16.txt", "is UTF-16 by its byte order mark", "(iconv -f UTF-16"),
    row("run jobs:sound -p lines_per_batch=0", "lines_per_batch=0 of TextFiles has to be"),
]

SERVER = [
    row("run jobs:sound --redis redis://h --data-dir d", "--redis and --data-dir exclude each"),
    row("status job --redis=", "redis url is empty; give redis://host:6379"),
    row("run jobs:sound --redis h.example:1", "'h.example:1' has no scheme; give"),
    row("run jobs:sound --redis http://u:canary@h", "'http://h' begins with http://; give"),
    row("run jobs:sound --redis redis://:canary@h:port", "'redis://h:?' has a port that is not"),
    row("status job --redis redis://u:canary", "'redis://u:?'", "put it before an '@'"),
    row("run jobs:sound --redis redis://h/words", "'redis://h/?' has a database that is"),
    row("drop job --yes --redis redis://h?db=one", "'redis://h'", "a database number"),
    row("status job --redis redis://h?ssl=1", "unknown option 'ssl'; use one of"),
    row("status job --redis redis://h?ssl_ca_certs=x", "without TLS; use rediss://"),
    row("status job --redis rediss://h?ssl_ca_certs=/x.pem", "not on this host ('/x.pem')"),
    row("run jobs:sound --redis redis://:can/ary@h", "'redis://h'", "write it as %2F"),
    row("run jobs:sound", "'redis://h'", "'@' as %40", redis_url="redis://:c@n/ary@h"),
    row("run jobs:sound", "'redis://?'", "as %3F", redis_url="redis://:can?ary@h"),
    row("run jobs:sound --redis redis://:canary@192.0.2.1", "in plain text", "use rediss://"),
    row("status job", "redis://192.0.2.1 is on another machine", redis_url="redis://:canary@192.0.2.1"),
    row("status job --redis unix://redis.sock", "has no absolute path; give unix://"),
    without_state("run jobs:sound --data-dir input.txt", "cannot be used: File exists; or choose"),
    without_state("run jobs:sound --data-dir shared", "open to other users (mode 755) and holds"),
    row("status job --data-dir nowhere", "holds no state; give another --data-dir, or"),
    row("status job", "data directory '.txbatch' holds no state"),
    row("drop job --yes --data-dir nowhere", "data directory 'nowhere' holds no state"),
    row("status a:b --redis redis://127.0.0.1:1", "topology id 'a:b' is not a valid name; use 1 to"),
]

SILENT = [
    without_state("run jobs:sound --redis redis://127.0.0.1:1", "did not answer for", "start it or check"),
    without_state("status job --redis unix:///no/such.sock", "unix:///no/such.sock did not answer for"),
]

RUNNING = [
    failing(
        "run jobs:execute_raises",
        "component 'store', task 0, attempt 1:",
        "at tuple Tuple(",
        "ValueError: invalid literal for int() with base 10: 'one'",
    ),
    failing("run jobs:prepare_raises", "component 'store'", "KeyError: 'limit'"),
    failing("run jobs:finish_raises", "component 'store'", "ZeroDivisionError: division by"),
    failing("run jobs:cleanup_raises", "component 'store'", "AttributeError: ", "'close'"),
    failing("run jobs:message_draws", "ValueError: \\x1b[2J\\x1b[31mdone\\rxxx", "more)"),
    failing(
        "run jobs:prepare_without_super",
        "no attribute 'collector'",
        "remedy: WithoutSuper overrides prepare, which sets self.collector; call super().prepare(conf, context,",
    ),
    failing(
        "run jobs:state_not_declared",
        "no attribute 'words'",
        "declare it in class Undeclared: words = HashState('words')",
    ),
    failing(
        "run jobs:state_made_in_finish_batch",
        "state 'words' is not declared: ",
        "write `words = HashState('words')` in the class body",
    ),
    failing("run jobs:state_made_in_init", "state 'words' is not declared: "),
    failing("run jobs:state_in_execute", "'lines' is open only in finish_batch"),
    failing("run jobs:text_for_an_integer", "state 'lines' was given value 'one' of type str"),
    failing("run jobs:integer_for_a_field", "was given field 3 of type int, but declares"),
    failing("run jobs:beyond_the_range", "was given value 9007199254740992, outside ±"),
    failing(
        "run jobs:always_fails",
        "txid 1 failed 5 times",
        "FailedException: the other service is down; lower txids are committed",
    ),
    failing(
        "run jobs:two_values_for_one_field",
        "component 'middle'",
        "emitted ['a', 'b']",
        "takes a list of 1 value: 'line'",
    ),
    failing("run jobs:text_for_a_row", "component 'middle' emitted 'a'", "takes a list of 1 value: 'line'"),
    failing("run jobs:number_for_a_row", "component 'middle' emitted 3"),
    failing("run jobs:stream_not_declared", "does not declare stream 'errors' (declared: default)"),
    failing("run jobs:value_that_cannot_travel", "component 'middle'", "<object object"),
    failing("run jobs:field_not_there", "has no field 'word'; it has ('line',)"),
    failing(
        "run jobs:bolt_leaves",
        "component 'store', task 0, attempt 1:",
        "SystemExit: no more of this",
        "remedy: a component may not end its process; raise an exception",
    ),
    failing(
        "run jobs:spout_raises",
        "initialize_transaction of txid 1 of component 'lines' failed:",
        "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/list'",
    ),
    failing(
        "run jobs:sound -p input=latin1.txt",
        "the record at line 2 of input file",
        "byte 0xe9 at position 3 is not valid UTF-8",
        "give on_bad_record='skip'",
    ),
    failing(
        "run jobs:sound -p input=endless.txt",
        "has a record of more than",
        "record 2, which starts at byte 4",
        "break it up, or leave the file out",
    ),
]

REAL_SERVER = [
    without_state("run jobs:sound --redis {wrong}", "refused the user name or password; check both in"),
    without_state("status job --redis {url}", "asks for a password; give it in the URL"),
    row("status job --redis {right}?db=99", "has no database of that number; give"),
    without_state("run jobs:sound --redis {right}", "maxmemory-policy 'allkeys-lru'", "set it to"),
    row("status nothing --redis {right}", "topology 'nothing' is not stored on unix://"),
    row("drop nothing --yes --redis {right}", "is not stored on unix://", "nothing was deleted"),
    row("drop nothing --redis {right}", "Standard input is not a terminal to ask on; give --yes"),
    without_state("status job --redis {tls_to_plain}", "127.0.0.1", "TLS", "write redis://"),
    without_state("status job --redis {plain_to_tls}", "if this port speaks TLS only, write rediss"),
    without_state("status job --redis {untrusted}", "an untrusted certificate; check ssl_ca_certs"),
]

REAL_SPARK = [
    row("run jobs:sound --master nowhere", "spark does not start with master 'nowhere': "),
    row(
        "run jobs:sound --master spark://127.0.0.1:9",
        "Spark master 'spark://127.0.0.1:9' cannot be reached: 127.0.0.1:9: Connection refused; start it, or check",
        code=ENGINE,
    ),
    row("run jobs:sound --master local[1] --conf spark.driver.memory=lots", "spark does not start"),
    row("run jobs:sound --master local[1] --conf spark.local.dir=input.txt", "File exists; give"),
]
