/* Plays by the rules what a simulated server has done. tests/simulation/model_trace.py writes the rest of the program:
   the calls, one after the other, and what the server held after each. */

#define NUMBER int
#define FORGET -1
#define FIRST_COUNT(generation) 1
#define RECEIPTS 1024
#define PLAIN
#define WINDOW 0
#define EPOCHS 1
#define DIGEST(what, first, last, epoch) 0

#include "server.pml"
#include "run.pml"

Server server;
Server expected;
Call call;
Run runs[RUNS];
chan go = [0] of { byte, int };
chan is_done = [0] of { byte };
chan compare_now = [0] of { byte };
chan is_compared = [0] of { byte };
bool is_spout_scope[SCOPES];
hidden int one;

/* 0: a call of somebody else; 1: a call of a run, made by its rules; 2: the run has its answer. */
active proctype Rules() {
  byte what;
  int who;
end:
  do
  :: go?what,who ->
    d_step {
      if
      :: what == 2 ->
        runs[who].revision++;
        accept_metadata(runs[who]);
        if
        :: runs[who].call.kind == COMMIT -> runs[who].committed = runs[who].call.last
        :: else
        fi
      :: what == 1 && call.kind != ACQUIRE ->
        assert(call.fence == runs[who].fence && call.since == runs[who].since);
        assert(call.owner == runs[who].nonce);
        assert(call.generation == runs[who].generation && call.revision == runs[who].revision);
        runs[who].call.kind = call.kind;
        runs[who].call.last = call.last;
        for (one : 0 .. CELLS - 1) {
          runs[who].call.change[one] = (call.change[one] == FORGET -> 0 : call.change[one])
        }
        if
        :: call.kind == COMMIT ->
          assert(call.first == runs[who].committed + 1);
          forget_outdated(runs[who], call.last);
          for (one : 0 .. CELLS - 1) {
            assert(!is_spout_scope[one / (TXIDS + 1)] || runs[who].call.change[one] == call.change[one])
          }
        :: else
        fi;
        for (one : 0 .. CELLS - 1) {
          runs[who].call.change[one] = call.change[one]
        }
      :: else
      fi;
      if
      :: what < 2 -> execute(server, call)
      :: else -> reply = 0
      fi;
      if
      :: what == 1 && call.kind == ACQUIRE && reply == OK ->
        take_over_from(runs[who], server);
        runs[who].nonce = call.nonce
      :: else
      fi
    }
    is_done!0
  od
}

inline compare() {
  assert(server.generation == expected.generation && server.fence == expected.fence);
  assert(server.since == expected.since && server.nonce == expected.nonce);
  assert(server.revision == expected.revision);
  assert(server.last_call == expected.last_call && server.committed == expected.committed);
  assert(server.told == expected.told && server.dropping == expected.dropping);
  assert(server.begun == expected.begun && server.ended == expected.ended);
  assert(server.source == expected.source && server.topology == expected.topology);
  for (one : 0 .. CELLS - 1) {
    assert(server.metadata[one] == expected.metadata[one])
  }
  for (one : 0 .. TXIDS) {
    assert(server.receipt[one] == expected.receipt[one] && server.group[one] == expected.group[one]);
    assert(server.aside[one] == expected.aside[one])
  }
  for (one : 0 .. PARTITIONS - 1) {
    assert(server.seen[one] == expected.seen[one])
  }
}

active proctype Compared() {
  byte answer;
end:
  do
  :: compare_now?answer -> d_step { compare(); skip } is_compared!0
  od
}
