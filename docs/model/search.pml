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
#ifdef LATE_TAKEOVERS
byte late_takeovers = 1;
#endif
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

#include "copies.pml"
#include "tears.pml"
#include "books.pml"
#include "answers.pml"

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

#include "names.pml"

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
    if
    :: IS_LONG(req) -> copy_call(written, req); copy_server(after, server)
    :: else -> clear_call(written); copy_server(after, nothing)
    fi;
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
#define MAY_BE_LATE(which) ((which) != CONFIRM && ((which) != ACQUIRE || late_takeovers))
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
  :: is_late -> fate = POSTPONED; is_kept = 0
  fi;
  d_step {
    if
    :: is_late ->
      copy_call(late, ME.call);
#ifdef LATE_TAKEOVERS
      late_takeovers = (late.kind == ACQUIRE -> late_takeovers - 1 : late_takeovers)
#endif
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
  :: ME.metadata[CELL(0, next)] ->
    d_step { make_call(ME, METADATA) }
    cut_partitions();
    d_step { ME.call.digest = DIGEST(1, 1, next, 0) }
  fi
#else
  cut_partitions();
  d_step { issue(ME, next); ME.is_processed[next] = true; keep_early(ME, next); skip }
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

inline start_run() {
  d_step {
    rivals = rivals - (runs[OTHER].stage != 0);
    draw_names();
    ME.nonce = new_nonce;
    make_acquire(ME, server, new_generation)
  }
}

/* What a run may do next: most of it is a call. */
inline choose() {
  if
  :: MAY_CUT(ME, next) && has_rest -> cut_next()
  :: ME.is_processed[ME.committed + 1] ->
    choose_processed();
    d_step { make_commit(ME, next); skip }
#ifdef REFUSALS
    if
    :: skip
    :: refusals -> refusals--; ME.call.is_refused = true
    fi
#endif
  :: failures && ME.is_processed[ME.committed + 1] ->
    choose_processed();
    d_step { failures--; fail(ME, next); issue_known(ME); skip }
  :: next == ME.committed + 1 && (next > TXIDS || !has_rest) && MAY_END -> d_step { make_call(ME, CONFIRM) }
#ifdef DURABLE
  :: MAY_ASK(ME) || (ME.asked && !ME.has_written) ->
    d_step {
      make_call(ME, BARRIER);
      ME.call.last = (ME.asked -> ME.asked : ME.committed);
      ME.call.digest = DIGEST(3, 0, ME.call.last, 0)
    }
  :: MAY_CONFIRM(ME) -> d_step { make_durable(ME); tell(ME); skip }
#endif
#ifdef QUARANTINE
  :: asides && ME.is_processed[ME.committed + 1] ->
    d_step {
      asides--;
      next = ME.committed + 1;
      size = ME.until[SPOT(next, 0)] - ME.from[SPOT(next, 0)];
      make_set_aside(ME, next, size)
    }
  :: next == ME.committed + 1 && next <= TXIDS && ROWS_OF(server.aside[1]) && !ME.metadata[CELL(0, next)] ->
    d_step { size = ROWS_OF(server.aside[1]); make_republished(ME, 1, next, size); skip }
#endif
  fi
}

active [2] proctype Runner() {
  byte next;
  bool has_rest;
  do
  :: atomic {
      if
      :: ME.stage == 0 && !is_done && MAY_START && (runs[OTHER].stage == 0 -> _pid == 0 : rivals > 0) -> start_run()
      :: ME.stage == IDLE -> d_step { find_next(); find_rest(); next++ } choose()
      :: ME.stage == SENT
      fi;
      if
      :: ME.call.kind -> send()
      :: else -> next = 0; has_rest = false
      fi
    }
  :: d_step {
      ME.stage != 0 && crashes > 0 ->
      printf("run %d crashes\n", ME.nonce);
      crashes--;
      end_run(ME);
      lower_all()
    }
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
          drop.fence = server.fence; drop.since = server.since; drop.owner = drop.nonce; drop.kind = DROP_KEYS; drop.number = 1
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
  bool is_last; /* whether what it goes back to is what was kept last: `written` tells which write followed */
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
      :: d_step {
          is_last = kept_count == 1;
          copy_server(server, kept[0]);
          copy_server(kept[0], nothing);
          kept_count = 0
        }
#endif
      :: kept_count > 1 -> d_step { is_last = true; copy_server(server, kept[1]); kept_count-- }
      fi;
#ifdef TEARS
      if
      :: is_torn = 0
      :: is_last -> is_torn = 1
      :: is_last -> is_torn = 2
      :: is_last -> is_torn = 3
      fi;
#endif
      d_step {
        is_last = false;
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
