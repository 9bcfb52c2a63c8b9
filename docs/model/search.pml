/* What may happen to runs and their server, and what has to hold whatever happens.

   Two runs at most are alive. Everything that goes wrong is bounded by a budget, so each search is finite. */

#ifndef TXIDS
#define TXIDS 3
#endif
#ifndef WINDOW
#define WINDOW 3
#endif
#ifndef PARTITIONS
#define PARTITIONS 1
#endif
#ifndef ROWS
#define ROWS 4
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef RIVALS
#define RIVALS 1
#endif
#ifndef FAILURES
#define FAILURES 1
#endif
#ifdef PARTITIONED
#define SCOPES (PARTITIONS + 1)
#else
#define SCOPES PARTITIONS
#endif
#define EPOCHS 2
#define RUNS_MAX 14
#define FIRST_COUNT(generation) 0
#define DIGEST(what, first, last, epoch) ((((what) * 4 + (first)) * 4 + (last)) * 2 + (epoch) + 1)

#include "server.pml"
#include "run.pml"

Server server;
Server kept[2];      /* what it once held, and will hold again */
Run runs[2];
Call late;           /* a call that will be executed when nobody waits for it, perhaps again and again */
byte kept_count;
byte losses = LOSSES;
byte crashes = CRASHES;
byte rivals = RIVALS;
byte failures = FAILURES;
byte nonces;
bool is_done;        /* a run has ended well */

hidden Server before;
hidden Server nothing;
hidden byte is_change;
hidden byte one;
hidden byte is_kept;
hidden byte is_answered;

inline copy_server(to, given) {
  to.generation = given.generation; to.fence = given.fence; to.nonce = given.nonce; to.revision = given.revision;
  to.last_call = given.last_call; to.committed = given.committed; to.told = given.told; to.begun = given.begun;
  to.ended = given.ended; to.dropping = given.dropping; to.source = given.source; to.topology = given.topology;
  for (one : 0 .. CELLS - 1) {
    to.metadata[one] = given.metadata[one]
  }
  for (one : 0 .. TXIDS) {
    to.receipt[one] = given.receipt[one];
    to.group[one] = given.group[one];
    to.aside[one] = given.aside[one]
  }
  for (one : 0 .. PARTITIONS - 1) {
    to.seen[one] = given.seen[one]
  }
}

inline clear_call(req) {
  req.kind = 0; req.fence = 0; req.owner = 0; req.nonce = 0; req.generation = 0; req.revision = 0; req.digest = 0; req.source = 0;
  req.topology = 0; req.accepted_source = 0; req.accepted_topology = 0; req.first = 0; req.last = 0; req.told = 0;
  req.aside_limit = 0; req.taken = 0; req.number = 0; req.is_refused = false;
  for (one : 0 .. CELLS - 1) {
    req.change[one] = 0
  }
  for (one : 0 .. TXIDS) {
    req.attempt[one] = 0
  }
  for (one : 0 .. PARTITIONS - 1) {
    req.rows[one] = 0; req.from[one] = 0; req.until[one] = 0
  }
}

inline copy_call(to, given) {
  to.kind = given.kind; to.fence = given.fence; to.owner = given.owner; to.nonce = given.nonce;
  to.generation = given.generation; to.revision = given.revision; to.digest = given.digest; to.source = given.source;
  to.topology = given.topology; to.accepted_source = given.accepted_source;
  to.accepted_topology = given.accepted_topology; to.first = given.first; to.last = given.last; to.told = given.told;
  to.aside_limit = given.aside_limit; to.taken = given.taken; to.number = given.number;
  to.is_refused = given.is_refused;
  for (one : 0 .. CELLS - 1) {
    to.change[one] = given.change[one]
  }
  for (one : 0 .. TXIDS) {
    to.attempt[one] = given.attempt[one]
  }
  for (one : 0 .. PARTITIONS - 1) {
    to.rows[one] = given.rows[one]; to.from[one] = given.from[one]; to.until[one] = given.until[one]
  }
}

/* Books: what has to hold after every call -------------------------------------------------------------------------- */

inline check_books(req) {
  is_change = server.revision != before.revision || server.nonce != before.nonce ||
    server.generation != before.generation || server.dropping != before.dropping;
  if
  :: reply == OK && req.kind == COMMIT ->
    for (one : 0 .. PARTITIONS - 1) {
      assert(before.seen[one] == req.from[one]);  /* nothing is doubled, nothing is lost */
      assert(server.seen[one] == req.until[one])  /* what was added is what lies between */
    }
    for (one : req.first .. req.last) {
      assert(!before.receipt[one] || before.receipt[one] == server.receipt[one]) /* a receipt never changes */
    }
  :: reply != OK && reply != ALREADY ->          /* what is refused changes nothing */
    assert(!is_change && server.seen[0] == before.seen[0] && server.begun == before.begun)
  :: else
  fi;
  assert(!is_change || !server.generation || server.committed >= before.committed);
#ifndef OPAQUE
  assert(!server.committed || server.metadata[CELL(0, server.committed)])
#endif
}

/* Runs -------------------------------------------------------------------------------------------------------------- */

inline end_run(own) {
  own.stage = 0; own.fence = 0; own.nonce = 0; own.generation = 0; own.revision = 0; own.committed = 0; own.epoch = 0;
  for (one : 0 .. CELLS - 1) {
    own.metadata[one] = 0
  }
  for (one : 0 .. TXIDS) {
    own.attempt[one] = 0; own.is_processed[one] = false
  }
  for (one : 0 .. SPOTS - 1) {
    own.from[one] = 0; own.until[one] = 0
  }
  clear_call(own.call)
}

/* The attempts that need no cutting are issued at once, and on a plain spout are processed at once. */
inline issue_known(own) {
  for (one : own.committed + 1 .. TXIDS) {
    if
    :: !own.attempt[one] && one <= own.committed + WINDOW && own.metadata[CELL(0, one)] ->
      issue(own, one);
      own.is_processed[one] = true
    :: else
    fi
  }
}

inline began(own) {
  if
  :: reply == OK ->
    take_over_from(own, server);
    find_hole(own);
#ifdef HOLES_ACCEPTED
    has_hole = false;
#endif
    assert(!has_hole);
    clear_call(own.call);
    own.stage = IDLE;
    issue_known(own)
  :: reply == RACED ->
    clear_call(own.call);
    make_acquire(own, server)
  :: else -> end_run(own)
  fi
}

inline answered(own) {
  if
  :: own.call.kind == ACQUIRE -> began(own)
  :: own.call.kind == CONFIRM ->
    if
    :: reply == OK ->
      assert(server.committed == own.committed);  /* done is done */
      is_done = true
    :: else
    fi;
    end_run(own)
  :: own.call.kind == METADATA && IS_WRITTEN ->
    accept_metadata(own);
    own.revision++;
    clear_call(own.call);
    own.stage = IDLE;
    issue_known(own)
  :: own.call.kind == COMMIT && IS_WRITTEN ->
    for (one : own.call.first .. own.call.last) {
      assert(server.receipt[one] == own.call.attempt[one]) /* what it is told is committed is its own */
    }
    assert(server.committed == own.call.last);
    accept_metadata(own);
    end_commit(own);
    own.revision++;
    clear_call(own.call);
    own.stage = IDLE;
    issue_known(own)
  :: else -> end_run(own)
  fi
}

#define OTHER (1 - _pid)
#define ME runs[_pid]
#define IS_CUT(t) (ME.metadata[CELL(0, t)] || ME.call.change[CELL(0, t)])
#define END_OF(t) ((t) == 0 -> 0 : ME.until[SPOT(t, 0)])

/* The plain spout cuts a batch of so many rows. */
inline cut(size) {
  next = next + 1;
  ME.from[SPOT(next, 0)] = ME.until[SPOT(next - 1, 0)];
  ME.until[SPOT(next, 0)] = ME.until[SPOT(next - 1, 0)] + size;
  ME.call.change[CELL(0, next)] = KEPT(ME.until[SPOT(next, 0)]);
  ME.call.last = next
}

inline find_next() {
  next = ME.committed;
  do
  :: next < TXIDS && IS_CUT(next + 1) -> next++
  :: else -> break
  od
}

inline send() {
  if
  :: skip
  :: !late.kind -> d_step { copy_call(late, ME.call); printf("(%e of %d is late)\n", late.kind, ME.nonce); skip }
  fi
}

/* One call is executed, unless the chosen fate of the call has no meaning: then it is answered. */
inline serve(req) {
  copy_server(before, server);
  execute(server, req);
  check_books(req);
  if
  :: is_change && is_kept -> copy_server(kept[kept_count], before); kept_count++
  :: else
  fi
}

/* Whether what the server holds before the call is one of the states that it will go back to. */
inline draw_kept() {
  if
  :: is_kept = 0
  :: kept_count < losses -> is_kept = 1
  fi
}

/* The last of some processed attempts in a row. */
inline choose_processed() {
  next = ME.committed + 1;
  do
  :: next < TXIDS && ME.is_processed[next + 1] -> next++
  :: break
  od;
  skip
}

active [2] proctype Runner() {
  byte next;
  do
  :: atomic { ME.stage == 0 && !is_done && (runs[OTHER].stage == 0 -> _pid == 0 : rivals > 0) ->
      d_step {
        rivals = rivals - (runs[OTHER].stage != 0);
        nonces++;
        assert(nonces < RUNS_MAX);
        ME.nonce = nonces;
        make_acquire(ME, server)
      }
      send()
    }
  :: atomic { ME.stage == IDLE -> d_step { find_next(); skip }
      if
      :: next < TXIDS && MAY_CUT(ME, next + 1) && ME.until[SPOT(next, 0)] < ROWS ->
        d_step { make_call(ME, METADATA) }
        do
        :: next < TXIDS && MAY_CUT(ME, next + 1) && ME.until[SPOT(next, 0)] < ROWS -> d_step { cut(1) }
        :: next < TXIDS && MAY_CUT(ME, next + 1) && ME.until[SPOT(next, 0)] + 1 < ROWS -> d_step { cut(2) }
        :: ME.call.last -> break
        od;
        skip;
        d_step { ME.call.digest = DIGEST(1, 0, ME.call.last, 0); ME.call.last = 0 }
        send()
      :: ME.committed < TXIDS && ME.is_processed[ME.committed + 1] ->
        choose_processed();
        d_step { make_commit(ME, next); skip }
        send()
      :: failures && ME.committed < TXIDS && ME.is_processed[ME.committed + 1] ->
        choose_processed();
        d_step { failures--; fail(ME, next); issue_known(ME); skip }
      :: next == ME.committed && (next == TXIDS || ME.until[SPOT(next, 0)] == ROWS) ->
        d_step { make_call(ME, CONFIRM) }
        send()
      fi;
      next = 0
    }
  :: atomic { ME.stage == SENT ->
      draw_kept();
      if
      :: is_answered = 1
      :: is_answered = 0 /* if that has changed anything; the call is then sent again */
      fi;
      d_step {
        serve(ME.call);
        printf("run %d: %e -> %e, revision %d, committed %d, kept %d\n", ME.nonce, ME.call.kind, reply, server.revision, server.committed, is_kept);
        if
        :: is_answered || !is_change -> answered(ME)
        :: else
        fi;
        is_kept = 0; is_answered = 0
      }
    }
  :: d_step { ME.stage != 0 && crashes > 0 -> printf("run %d crashes\n", ME.nonce); crashes--; end_run(ME); skip }
  :: is_done && ME.stage == 0 -> break
  od
}

active proctype Faults() {
  do
  :: atomic { late.kind && !is_done ->
      draw_kept();
      d_step {
        serve(late);
        printf("late: %e -> %e, revision %d, committed %d, kept %d\n", late.kind, reply, server.revision, server.committed, is_kept);
        if
        :: is_change
        :: else -> clear_call(late)
        fi;
        is_kept = 0
      }
    }
  :: atomic { kept_count > 0 && !is_done ->
      if
#ifdef BACKUPS
      :: d_step { copy_server(server, kept[0]); copy_server(kept[0], kept[1]); kept_count--; skip }
#else
      :: d_step { copy_server(server, kept[0]); copy_server(kept[0], nothing); kept_count = 0 }
#endif
      :: kept_count > 1 -> d_step { copy_server(server, kept[1]); kept_count-- }
      fi;
      d_step {
        copy_server(kept[1], nothing);
        losses--;
        printf("the server goes back to revision %d, owner %d\n", server.revision, server.nonce)
      }
    }
  :: is_done -> break
  od
}
