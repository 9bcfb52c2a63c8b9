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
#define ROWS 3
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
#define ASIDE_MAX 2
#define RECEIPTS 1
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
#ifdef DURABLE
byte upstream;       /* last txid of which a spout's committer has heard */
#endif
bool is_done;        /* a run has ended well */

#ifdef DROPS
Call drop;           /* the call that a drop makes next */
byte drops = 1;
#define MAY_START !server.dropping
#else
#define MAY_START true
#endif
hidden Server before;
hidden Server nothing;
hidden byte is_change;
hidden byte one;
hidden byte is_kept;

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
  req.aside_limit = 0; req.record = 0; req.taken = 0; req.number = 0; req.is_refused = false;
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
  to.aside_limit = given.aside_limit; to.record = given.record; to.taken = given.taken; to.number = given.number;
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

/* A torn write: the server goes back to before it, but its first commands lie in the file, in front of what follows.
   At the next start they are applied under all that was written since, if anything was. Of the half, only what no later
   write has set again is left in `half`. */
#ifdef TEARS
Call written;      /* the write that followed kept[0] */
Server after;      /* and what it has left */
Call half;
Server halved;
byte half_length;  /* how many kinds of commands: the count, states, metadata */
bool is_followed;
bool is_damaged;

inline tear() {
  if
  :: is_torn && written.kind -> copy_call(half, written); copy_server(halved, after); half_length = is_torn; is_followed = false
  :: else -> clear_call(half); half_length = 0
  fi;
  clear_call(written);
  copy_server(after, nothing)
}

/* A later write sets what it sets, whatever lies before it. */
inline follow_half(req) {
  is_followed = true;
  for (one : 0 .. CELLS - 1) {
    half.change[one] = (req.change[one] -> 0 : half.change[one])
  }
  for (one : 0 .. PARTITIONS - 1) {
    half.rows[one] = (req.rows[one] -> 0 : half.rows[one])
  }
}

inline apply_half() {
  server.begun++;
  is_damaged = true;
  for (one : 0 .. PARTITIONS - 1) {
    server.seen[one] = (half_length > 1 && half.rows[one] -> halved.seen[one] : server.seen[one])
  }
  for (one : 0 .. CELLS - 1) {
    server.metadata[one] = (half_length > 2 && half.change[one] -> halved.metadata[one] : server.metadata[one])
  }
  clear_call(half);
  copy_server(halved, nothing);
  half_length = 0;
  is_followed = false
}
hidden byte is_torn;
#endif

/* Books: what has to hold after every call -------------------------------------------------------------------------- */

#ifdef QUARANTINE
#define ROWS_OF(record) ((record) -> (record) - 1 : 0)
#define SET_ASIDE(srv) (ROWS_OF(srv.aside[1]) + ROWS_OF(srv.aside[2]) + ROWS_OF(srv.aside[3]))
#else
#define SET_ASIDE(srv) 0
#endif

inline check_books(req) {
  is_change = server.revision != before.revision || server.nonce != before.nonce ||
    server.generation != before.generation || server.dropping != before.dropping;
  if
  :: reply == OK && req.kind == COMMIT ->
    for (one : 0 .. PARTITIONS - 1) {
      assert(before.seen[one] + SET_ASIDE(before) == req.from[one]); /* nothing is doubled, nothing is lost */
      assert(server.seen[one] + SET_ASIDE(server) == req.until[one]) /* what was added is what lies between */
    }
    for (one : req.first .. req.last) {
      assert(!before.receipt[one] || before.receipt[one] == server.receipt[one]) /* a receipt never changes */
    }
  :: reply != OK && reply != ALREADY ->          /* what is refused changes nothing */
    assert(!is_change && server.seen[0] == before.seen[0] && (server.begun == server.ended) == (before.begun == before.ended))
  :: else
  fi;
#ifdef TEARS
  assert(!is_damaged || reply != OK);               /* nobody builds on half a write, or is told that all is well */
#endif
  assert(!is_change || !server.generation || server.committed >= before.committed);
#ifndef OPAQUE
#ifdef TEARS
  assert(is_damaged || !server.committed || server.metadata[CELL(0, server.committed)])
#else
  assert(!server.committed || server.metadata[CELL(0, server.committed)])
#endif
#endif
}

/* Runs -------------------------------------------------------------------------------------------------------------- */

inline end_run(own) {
  own.stage = 0; own.fence = 0; own.nonce = 0; own.generation = 0; own.revision = 0; own.committed = 0; own.epoch = 0; own.has_raced = false;
  for (one : 0 .. CELLS - 1) {
    own.metadata[one] = 0
  }
  for (one : 0 .. TXIDS) {
    own.attempt[one] = 0; own.is_processed[one] = false; own.early_attempt[one] = 0
  }
  own.told = 0; own.released = 0; own.asked = 0; own.has_written = false;
  for (one : 0 .. SPOTS - 1) {
    own.from[one] = 0; own.until[one] = 0; own.early_from[one] = 0; own.early_until[one] = 0
  }
  clear_call(own.call)
}

/* The attempts that need no cutting are issued at once; those whose batches are known are processed at once. */
inline issue_known(own) {
#ifndef OPAQUE
  for (one : own.committed + 1 .. TXIDS) {
    if
    :: !own.attempt[one] && one <= own.committed + WINDOW && own.metadata[CELL(SCOPE(PARTITIONS - 1), one)] ->
      issue(own, one);
      own.is_processed[one] = true
    :: else
    fi
  }
#else
  skip
#endif
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
    go_on(own)
  :: reply == RACED ->
    own.has_raced = true;
    clear_call(own.call);
    draw_names();
#ifdef TAKEOVERS_MENDED
    own.nonce = new_nonce; /* the first request may still arrive */
#endif
    make_acquire(own, server, new_generation)
  :: else -> end_run(own)
  fi
}

inline go_on(own) {
  clear_call(own.call);
  own.stage = IDLE;
  issue_known(own)
}

inline answered(own) {
  if
  :: own.call.kind == ACQUIRE -> began(own)
  :: own.call.kind == CONFIRM ->
    if
    :: reply == OK ->
      assert(server.committed == own.committed); /* done is done */
#ifdef DURABLE
      assert(upstream == own.committed);         /* and nothing is left untold */
#endif
      is_done = true
    :: else
    fi;
    end_run(own)
  :: own.call.kind == METADATA && IS_WRITTEN ->
    accept_metadata(own);
    own.revision++;
    go_on(own)
  :: own.call.kind == COMMIT && IS_WRITTEN ->
    assert(server.receipt[own.call.last] == own.call.attempt[own.call.last]); /* what it takes for committed is its own */
    assert(server.committed == own.call.last);
    accept_metadata(own);
    end_commit(own);
    own.revision++;
#ifdef RELEASED_AT_ONCE
    own.asked = own.committed;
    tell(own);
#endif
    go_on(own)
  :: own.call.kind == BARRIER && IS_WRITTEN ->
    own.revision++;
    own.asked = own.call.last;
    own.has_written = true;
    go_on(own)
  :: reply == REFUSED && own.call.first < own.call.last -> go_on(own) /* a smaller group is tried, Commits.refused */
  :: else ->
#ifdef TEARS
    is_done = is_done || (is_damaged && reply == TORN); /* it is for people to repair now */
#endif
    end_run(own)
  fi
}

/* The spout's committer hears of everything up to the barrier. */
inline tell(own) {
  assert(own.told <= upstream);                  /* nothing between is left untold */
  release(own);
  upstream = (own.told > upstream -> own.told : upstream);
  printf("run %d: tells %d\n", own.nonce, own.told)
}

/* The server has what the run wrote, and will not lose it: of what it may go back to, only what came later is left. */
inline make_durable(own) {
  if
  :: own.has_written && kept_count == 2 && kept[0].revision < own.revision ->
    copy_server(kept[0], kept[1]);
    copy_server(kept[1], nothing);
    kept_count = 1
  :: else
  fi;
  if
  :: own.has_written && kept_count == 1 && kept[0].revision < own.revision ->
    copy_server(kept[0], nothing);
    kept_count = 0
  :: else
  fi
}

#define OTHER (1 - _pid)
#define ME runs[_pid]
/* The last txid of those above the committed one whose batches are known, without a gap. */
inline find_next() {
  next = ME.committed;
  do
  :: next < TXIDS && ME.is_processed[next + 1] -> next++
  :: else -> break
  od
}

/* Whether some partition has rows that no batch up to `next` has. */
inline find_rest() {
  has_rest = false;
  for (one : 0 .. PARTITIONS - 1) {
    has_rest = has_rest || ME.until[SPOT(next, one)] < ROWS
  }
}

/* A batch is cut: so many rows of one partition. */
inline cut(which, size) {
  ME.from[SPOT(next, which)] = ME.until[SPOT(next - 1, which)];
  ME.until[SPOT(next, which)] = ME.until[SPOT(next - 1, which)] + size;
#ifndef OPAQUE
  ME.call.change[CELL(SCOPE(which), next)] = KEPT(ME.until[SPOT(next, which)])
#endif
}
#define HAS(which, size) (ME.until[SPOT(next - 1, which)] + (size) <= ROWS)

/* Names: which numbers runs and generations have, and where counting begins, makes no difference. So a name is used
   again once nothing has it any more, and counts are lowered together. Otherwise equal states would be searched for
   every way that leads there. */

#define USE(name) used = used | (1 << (name))

inline begin_drop() {
  d_step {
    draw_names();
    drop.kind = DROP_BEGIN;
    drop.fence = server.fence;
    drop.owner = server.nonce;
    drop.nonce = new_nonce
  }
}

inline draw_names() {
  used = 1;
  USE(server.nonce); USE(kept[0].nonce); USE(kept[1].nonce); USE(late.nonce); USE(late.owner);
  USE(runs[0].nonce); USE(runs[1].nonce); USE(runs[0].call.owner); USE(runs[1].call.owner);
  for (one : 1 .. TXIDS) {
    USE(server.receipt[one] / EPOCHS); USE(kept[0].receipt[one] / EPOCHS); USE(kept[1].receipt[one] / EPOCHS);
    USE(late.attempt[one] / EPOCHS)
  }
#ifdef DROPS
  USE(drop.nonce); USE(drop.owner);
#endif
  new_nonce = 1;
  do
  :: used & (1 << new_nonce) -> new_nonce++
  :: else -> break
  od;
  used = 1;
  USE(server.generation); USE(kept[0].generation); USE(kept[1].generation); USE(late.generation);
  USE(runs[0].generation); USE(runs[1].generation); USE(runs[0].call.generation); USE(runs[1].call.generation);
  new_generation = 1;
  do
  :: used & (1 << new_generation) -> new_generation++
  :: else -> break
  od
}
hidden int used;
hidden byte new_nonce;
hidden byte new_generation;

#define MIN(count) low = ((count) && (count) < low -> (count) : low)
#define LOWER(count) count = (count > low -> count - low : 0)
#define IS_AWAITED(srv) \
  ((late.kind && late.revision + 1 == srv.revision) || (runs[0].stage == SENT && runs[0].call.revision + 1 == srv.revision) || \
  (runs[1].stage == SENT && runs[1].call.revision + 1 == srv.revision))

inline lower_all() {
  if
  :: server.generation && (!kept_count || kept[0].generation) && (kept_count < 2 || kept[1].generation) ->
    low = 255;
    MIN(server.revision); MIN(kept[0].revision); MIN(kept[1].revision); MIN(late.revision);
    MIN(runs[0].revision); MIN(runs[1].revision); MIN(runs[0].call.revision); MIN(runs[1].call.revision);
    low--;
    LOWER(server.revision); LOWER(kept[0].revision); LOWER(kept[1].revision); LOWER(late.revision);
    LOWER(runs[0].revision); LOWER(runs[1].revision); LOWER(runs[0].call.revision); LOWER(runs[1].call.revision);
    low = 255;
    MIN(server.fence); MIN(kept[0].fence); MIN(kept[1].fence); MIN(late.fence);
    MIN(runs[0].fence); MIN(runs[1].fence); MIN(runs[0].call.fence); MIN(runs[1].call.fence);
#ifdef DROPS
    MIN(drop.fence);
#endif
    low--;
    LOWER(server.fence); LOWER(kept[0].fence); LOWER(kept[1].fence); LOWER(late.fence);
    LOWER(runs[0].fence); LOWER(runs[1].fence); LOWER(runs[0].call.fence); LOWER(runs[1].call.fence);
#ifdef DROPS
    LOWER(drop.fence);
#endif
    skip
  :: else
  fi;
  server.last_call = (IS_AWAITED(server) -> server.last_call : 0);
  kept[0].last_call = (IS_AWAITED(kept[0]) -> kept[0].last_call : 0);
  kept[1].last_call = (IS_AWAITED(kept[1]) -> kept[1].last_call : 0);
#ifndef TEARS
  lower_counts(server); lower_counts(kept[0]); lower_counts(kept[1])
#endif
}
hidden byte low;

/* Only whether the two counts of writes are equal matters. */
inline lower_counts(srv) {
  if
  :: srv.begun == srv.ended -> srv.begun = 0; srv.ended = 0
  :: else -> srv.begun = 1; srv.ended = 0
  fi
}

/* One call is executed, and its answer arrives, unless it is lost or the call has yet to be executed. */
inline serve(req) {
  copy_server(before, server);
  execute(server, req);
  check_books(req);
  if
  :: is_change && is_kept ->
    copy_server(kept[kept_count], before);
    kept_count++;
#ifdef TEARS
    copy_call(written, req);
    copy_server(after, server);
#endif
  :: else
  fi;
#ifdef TEARS
  if
  :: is_change && half.kind -> follow_half(req)
  :: else
  fi;
#endif
  skip
}

/* What happens to a call that a run has made: it may also be executed later, again and again; it may be executed now;
   and its answer may be lost. A call that was not executed, or not answered, is made again. */
#ifdef NONE_LATE
#define MAY_BE_LATE(which) false
#else
#ifdef LATE_TAKEOVERS
#define MAY_BE_LATE(which) ((which) != CONFIRM)
#else
#define MAY_BE_LATE(which) ((which) != CONFIRM && (which) != ACQUIRE)
#endif
#endif
inline send() {
  if
  :: is_late = 0
  :: !late.kind && MAY_BE_LATE(ME.call.kind) -> is_late = 1
  fi;
  if
  :: fate = ANSWERED; is_kept = 0
  :: kept_count < losses -> fate = ANSWERED; is_kept = 1
  :: !ME.has_raced || ME.call.kind != ACQUIRE -> fate = UNANSWERED; is_kept = 0
  :: kept_count < losses && (!ME.has_raced || ME.call.kind != ACQUIRE) -> fate = UNANSWERED; is_kept = 1
  :: is_late && ME.stage != SENT -> fate = POSTPONED
  fi;
  d_step {
    if
    :: is_late -> copy_call(late, ME.call)
    :: else
    fi;
    ME.stage = SENT;
    if
    :: fate == POSTPONED
    :: else ->
      serve(ME.call);
      printf("run %d: %e -> %e, revision %d, committed %d, late %d, kept %d\n", ME.nonce, ME.call.kind, reply,
        server.revision, server.committed, is_late, is_kept);
      if
      :: fate == ANSWERED || !is_change -> answered(ME)
      :: else
      fi
    fi;
    lower_all();
    next = 0;
    has_rest = false
  }
}
mtype = { ANSWERED, UNANSWERED, POSTPONED };
hidden mtype fate;
hidden byte is_late;

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

/* The plain spout's coordinator cuts one batch or several, and stores how far they reach.
   A partitioned spout's coordinator stores that there is one; its emitters cut it, and how far it reaches is stored.
   An opaque spout's emitters cut it for every attempt, and nothing is stored. */
inline cut_next() {
#ifdef PLAIN
  d_step { make_call(ME, METADATA) }
  do
  :: MAY_CUT(ME, next) && HAS(0, 1) -> d_step { cut(0, 1); ME.call.last = next; next++ }
  :: MAY_CUT(ME, next) && HAS(0, 2) -> d_step { cut(0, 2); ME.call.last = next; next++ }
  :: ME.call.last -> break
  od;
  skip;
  d_step { ME.call.digest = DIGEST(1, 0, ME.call.last, 0); ME.call.last = 0 }
  send()
#else
#ifdef PARTITIONED
  if
  :: !ME.metadata[CELL(0, next)] ->
    d_step { make_call(ME, METADATA); ME.call.change[CELL(0, next)] = PARTITIONS }
    if
    :: skip
    :: MAY_CUT(ME, next + 1) -> ME.call.change[CELL(0, next + 1)] = PARTITIONS; next++
    fi;
    d_step { ME.call.digest = DIGEST(1, 0, next, 0) }
    send()
  :: ME.metadata[CELL(0, next)] ->
    d_step { make_call(ME, METADATA) }
    cut_partitions();
    d_step { ME.call.digest = DIGEST(1, 1, next, 0) }
    send()
  fi
#else
  cut_partitions();
  d_step { issue(ME, next); ME.is_processed[next] = true; keep_early(ME, next); next = 0; has_rest = false }
#endif
#endif
}

inline cut_partitions() {
  if
  :: d_step { cut(0, 0); skip }
  :: HAS(0, 1) -> d_step { cut(0, 1); skip }
  :: HAS(0, 2) -> d_step { cut(0, 2); skip }
  fi;
#if PARTITIONS > 1
  if
  :: d_step { cut(1, 0); skip }
  :: HAS(1, 1) -> d_step { cut(1, 1); skip }
  fi;
#endif
  skip
}

#ifdef DURABLE
#define MAY_END (ME.released == ME.committed)
#else
#define MAY_END true
#endif
#ifdef REFUSALS
byte refusals = 1;   /* commits that cannot be written: for their content, or for a right */
#endif
#ifdef QUARANTINE
byte asides = 1;
hidden byte size;
#endif

active [2] proctype Runner() {
  byte next;
  bool has_rest;
  do
  :: atomic { ME.stage == 0 && !is_done && MAY_START && (runs[OTHER].stage == 0 -> _pid == 0 : rivals > 0) ->
      d_step {
        rivals = rivals - (runs[OTHER].stage != 0);
        draw_names();
        ME.nonce = new_nonce;
        make_acquire(ME, server, new_generation)
      }
      send()
    }
  :: atomic { ME.stage == IDLE -> d_step { find_next(); find_rest(); next++ }
      if
      :: MAY_CUT(ME, next) && has_rest -> cut_next()
      :: ME.is_processed[ME.committed + 1] ->
        choose_processed();
        d_step { make_commit(ME, next); skip }
#ifdef REFUSALS
        if
        :: skip
        :: refusals -> refusals--; ME.call.is_refused = true
        fi;
#endif
        send()
      :: failures && ME.is_processed[ME.committed + 1] ->
        choose_processed();
        d_step { failures--; fail(ME, next); issue_known(ME); next = 0; has_rest = false }
      :: next == ME.committed + 1 && (next > TXIDS || !has_rest) && MAY_END ->
        d_step { make_call(ME, CONFIRM) }
        send()
#ifdef DURABLE
      :: MAY_ASK(ME) || (ME.asked && !ME.has_written) ->
        d_step {
          make_call(ME, BARRIER);
          ME.call.last = (ME.asked -> ME.asked : ME.committed);
          ME.call.digest = DIGEST(3, 0, ME.call.last, 0)
        }
        send()
      :: MAY_CONFIRM(ME) -> d_step { make_durable(ME); tell(ME); next = 0; has_rest = false }
#endif
#ifdef QUARANTINE
      :: asides && ME.is_processed[ME.committed + 1] ->
        d_step {
          asides--;
          next = ME.committed + 1;
          size = ME.until[SPOT(next, 0)] - ME.from[SPOT(next, 0)];
          make_set_aside(ME, next, size)
        }
        send()
      :: next == ME.committed + 1 && next <= TXIDS && ROWS_OF(server.aside[1]) && !ME.metadata[CELL(0, next)] ->
        d_step { size = ROWS_OF(server.aside[1]); next = ME.committed + 1; make_republished(ME, 1, next, size); skip }
        send()
#endif
      fi
    }
  :: atomic { ME.stage == SENT -> send() }
  :: d_step { ME.stage != 0 && crashes > 0 -> printf("run %d crashes\n", ME.nonce); crashes--; end_run(ME); lower_all() }
  :: is_done && ME.stage == 0 -> break
  od
}

/* Somebody drops the topology, and begins again until all is gone. */
#ifdef DROPS
active proctype Dropping() {
  do
  :: atomic { drops && server.generation && !is_done && !drop.kind && !server.dropping -> drops--; begin_drop() }
  :: atomic { drop.kind ->
      draw_kept();
      d_step {
        serve(drop);
        printf("drop %d: %e -> %e, kept %d\n", drop.nonce, drop.kind, reply, is_kept);
        if
        :: drop.kind == DROP_BEGIN && reply == OK ->
          drop.fence = server.fence; drop.owner = drop.nonce; drop.kind = DROP_KEYS; drop.number = 1
        :: drop.kind == DROP_KEYS && reply == OK -> drop.kind = DROP_END
        :: else -> clear_call(drop)
        fi;
        lower_all()
      }
    }
  :: d_step { drop.kind && crashes > 0 -> crashes--; clear_call(drop); lower_all() }
  :: atomic { server.dropping && !drop.kind && !is_done -> begin_drop() } /* whoever finds it half dropped */
  :: is_done -> break
  od
}
#endif

active proctype Faults() {
  do
  :: atomic { late.kind && !is_done ->
      draw_kept();
      d_step {
        serve(late);
        printf("late: %e -> %e, revision %d, committed %d, kept %d\n", late.kind, reply, server.revision,
          server.committed, is_kept);
        if
        :: is_change
        :: else -> clear_call(late)
        fi;
        lower_all()
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
#ifdef TEARS
      if
      :: is_torn = 0
      :: is_torn = 1
      :: is_torn = 2
      :: is_torn = 3
      fi;
#endif
      d_step {
        copy_server(kept[1], nothing);
        losses--;
#ifdef DURABLE
        assert(server.committed >= upstream); /* what was released is never lost */
        runs[0].has_written = false;
        runs[1].has_written = false;
#endif
#ifdef TEARS
        is_damaged = false;
        tear();
#endif
        printf("the server goes back to revision %d, owner %d\n", server.revision, server.nonce);
        lower_all()
      }
    }
#ifdef TEARS
  :: d_step { is_followed && !is_done -> apply_half(); printf("the server starts again, with half a write\n"); lower_all() }
#endif
  :: is_done -> break
  od
}
