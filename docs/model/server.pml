/* The server's rules: what the function library does with one call.

   Each rule names the function that it stands for; state/redis_client/functions/ has them. A rule gets the server and
   the call, and sets `reply`. What the library treats as opaque is opaque here: positions, attempts and fingerprints
   are numbers, and a state is the number of rows counted from each partition. */

#ifndef NUMBER
#define NUMBER byte /* int in programs that follow a real server */
#endif
#define COUNTER NUMBER
#define CELL(scope, txid) ((scope) * (TXIDS + 1) + (txid))
#define CELLS ((SCOPES) * (TXIDS + 1))
#ifndef FORGET
#define FORGET 255
#endif

mtype = { PASSED, OK, ALREADY, RACED, DROPPING, DROPPED, FENCED, REGRESSED, CONFLICT, ORDER, TORN, GONE, FULL, REFUSED,
          SOURCE_CHANGED, TOPOLOGY_CHANGED };
mtype = { ACQUIRE, METADATA, COMMIT, BARRIER, CONFIRM, LAST_GROUP, DROP_BEGIN, DROP_KEYS, DROP_END };

typedef Server {
  NUMBER generation;         /* 0: there is no control key */
  NUMBER fence;              /* its counter */
  NUMBER since;              /* the revision at which it took over */
  NUMBER nonce;              /* the token of its request */
  NUMBER revision;
  NUMBER last_call;          /* digest of the write that made this revision, 0 after a takeover */
  NUMBER committed;
  NUMBER told;               /* one more than the field holds; 0: it is absent */
  NUMBER begun;
  NUMBER ended;
  NUMBER dropping;           /* one more than the field holds; 0: it is absent */
  NUMBER source;
  NUMBER topology;
  NUMBER metadata[CELLS];    /* 0: the field is absent */
  NUMBER receipt[TXIDS + 1]; /* the attempt; 0: there is none */
  NUMBER group[TXIDS + 1];   /* the first txid of the group it was published with */
  NUMBER seen[PARTITIONS];   /* rows counted */
  NUMBER aside[TXIDS + 1];   /* the record of the quarantined batch; 0: there is none */
}

typedef Call {
  mtype kind;                /* 0: there is no call */
  NUMBER fence;              /* of the owner; of the previous one in ACQUIRE and DROP_BEGIN */
  NUMBER since;              /* the revision that belongs to it */
  NUMBER owner;              /* the token that belongs to it */
  NUMBER nonce;              /* ACQUIRE, DROP_BEGIN: the token of this request */
  NUMBER generation;
  NUMBER revision;
  NUMBER digest;             /* of what is written; 0 in a call that writes nothing */
  NUMBER source;             /* 0 in a write: what is stored stays */
  NUMBER topology;
  NUMBER accepted_source;
  NUMBER accepted_topology;
  NUMBER change[CELLS];      /* 0: the field stays; FORGET: it goes */
  NUMBER first;
  NUMBER last;
  NUMBER attempt[TXIDS + 1];
  NUMBER told;               /* as stored */
  NUMBER rows[PARTITIONS];   /* that the commit adds */
  NUMBER aside_limit;        /* COMMIT: not 0 if it sets its batch aside: the most that may be quarantined, and one */
  NUMBER record;             /* of that batch */
  NUMBER taken;              /* COMMIT: the quarantined batch that it publishes */
  NUMBER number;             /* DROP_KEYS, DROP_END: of calls that delete keys */
  NUMBER from[PARTITIONS];   /* not sent, for the books: where its rows begin and end */
  NUMBER until[PARTITIONS];
  bool is_refused;           /* what it writes cannot be written: a number out of range, a right that is missing */
}

hidden mtype reply;
hidden COUNTER at;

inline refuse_if(condition, status) {
  if
  :: reply == PASSED && (condition) -> reply = status
  :: else
  fi
}

/* Owners ----------------------------------------------------------------------------------------------------- */

/* Fences are compared as a whole. */
#define HAS_FENCE(srv, req) (srv.fence == req.fence && srv.since == req.since && srv.nonce == req.owner)
#if defined(FENCE_WITHOUT_REVISION) || defined(TEARS)
#define SINCE(revision) 0
#else
#define SINCE(revision) (revision)
#endif

/* owner.lua: next_fence */
inline next_fence(srv, req, made) {
  srv.fence++;
  srv.since = SINCE(made);
  srv.nonce = req.nonce
}

/* owner.lua: is_before */
#define IS_BEFORE(srv, req) (srv.fence < req.fence || (srv.fence == req.fence && srv.nonce == req.owner))

/* owner.lua: check_owner, half_written. A server that remembers the drop says DROPPED instead of the first two
   REGRESSED; only messages depend on it. */
inline check_owner(srv, req) {
  refuse_if(srv.dropping, DROPPED);
  refuse_if(!srv.generation, REGRESSED);
#ifndef HALF_WRITE_UNNOTICED
  refuse_if(srv.begun != srv.ended, TORN);
#endif
  refuse_if(srv.generation != req.generation, REGRESSED);
#ifndef NO_FENCE
  refuse_if(!HAS_FENCE(srv, req) && IS_BEFORE(srv, req), REGRESSED);
  refuse_if(!HAS_FENCE(srv, req), FENCED);
#endif
  check_revision(srv, req)
}

/* owner.lua: check_owner; its second half */
inline check_revision(srv, req) {
#ifdef METADATA_AT_ANY_REVISION
  refuse_if(req.kind != METADATA && srv.revision < req.revision, REGRESSED);
#else
#ifndef NO_REVISION
  refuse_if(srv.revision < req.revision, REGRESSED);
#endif
#endif
#ifdef ALREADY_FOR_ANYTHING
  refuse_if(srv.revision == req.revision + 1 && req.digest, ALREADY);
#else
#ifndef NEVER_ALREADY
  refuse_if(srv.revision == req.revision + 1 && req.digest && srv.last_call == req.digest, ALREADY);
#endif
#endif
#ifndef NO_REVISION
  refuse_if(srv.revision > req.revision, CONFLICT)
#else
  skip
#endif
}

/* owner.lua: begin_write */
inline begin_write(srv) {
  srv.begun++
}

/* owner.lua: write_control; for a write of several commands */
inline end_write(srv, req) {
  write_control(srv, req);
  srv.ended = srv.begun
}

/* owner.lua: write_control */
inline write_control(srv, req) {
  srv.revision = req.revision + 1;
  srv.last_call = req.digest;
  if
  :: req.source -> srv.source = req.source
  :: else
  fi;
  if
  :: req.topology -> srv.topology = req.topology
  :: else
  fi
}

/* acquire.lua: start_first. The count of writes starts at a number of the generation's own. */
inline start_first(srv, req) {
  refuse_if(req.owner, RACED);
  if
  :: reply == PASSED ->
    srv.generation = req.generation;
    next_fence(srv, req, 1);
    srv.committed = 0;
    srv.revision = 1;
    srv.last_call = 0;
    srv.begun = FIRST_COUNT(req.generation);
    srv.ended = srv.begun;
    srv.source = req.source;
    srv.topology = req.topology;
    reply = OK
  :: else
  fi
}

/* acquire.lua: take_over */
inline take_over(srv, req) {
  refuse_if(srv.dropping, DROPPING);
#ifndef HALF_WRITE_UNNOTICED
  refuse_if(srv.begun != srv.ended, TORN);
#endif
  refuse_if(srv.nonce == req.nonce, OK);
#ifndef ACQUIRE_WITHOUT_COMPARE
  refuse_if(!HAS_FENCE(srv, req), RACED);
#endif
  refuse_if(srv.source != req.source && srv.source != req.accepted_source, SOURCE_CHANGED);
  refuse_if(srv.topology != req.topology && srv.topology != req.accepted_topology, TOPOLOGY_CHANGED);
  if
  :: reply == PASSED ->
    begin_write(srv);
    next_fence(srv, req, srv.revision + 1);
#ifndef TAKEOVER_KEEPS_REVISION
    srv.revision++;
#endif
    srv.last_call = 0;
    srv.ended = srv.begun;
    reply = OK
  :: else
  fi
}

/* acquire.lua: acquire */
inline acquire(srv, req) {
  if
  :: !srv.generation -> start_first(srv, req)
  :: else -> take_over(srv, req)
  fi
}

/* Writes ------------------------------------------------------------------------------------------------------- */

/* keys.lua: put_pairs, delete_fields; on the metadata */
inline change_metadata(srv, req) {
  for (at : 0 .. CELLS - 1) {
    if
    :: req.change[at] == FORGET -> srv.metadata[at] = 0
    :: req.change[at] && req.change[at] != FORGET -> srv.metadata[at] = req.change[at]
    :: else
    fi
  }
}

/* owner_calls.lua: store_metadata */
inline store_metadata(srv, req) {
  check_owner(srv, req);
  if
  :: reply == PASSED ->
    begin_write(srv);
    change_metadata(srv, req);
    end_write(srv, req);
    reply = OK
  :: else
  fi
}

/* commit.lua: write_receipts */
inline write_receipts(srv, req) {
  for (at : 1 .. TXIDS) {
    if
    :: at >= req.first && at <= req.last ->
      srv.receipt[at] = req.attempt[at];
      srv.group[at] = req.first
    :: else
    fi;
    if
    :: at + RECEIPTS <= req.last ->
      srv.receipt[at] = 0;
      srv.group[at] = 0
    :: else
    fi
  }
}

/* sections.lua: plan_sections; the steps that it returns */
inline write_states(srv, req) {
  for (at : 0 .. PARTITIONS - 1) {
    srv.seen[at] = srv.seen[at] + req.rows[at]
  }
  if
  :: req.aside_limit -> srv.aside[req.last] = req.record
  :: else
  fi;
  if
  :: req.taken -> srv.aside[req.taken] = 0
  :: else
  fi
}

/* commit.lua: commit. What can fail is asked before the first write. */
inline commit(srv, req) {
  check_owner(srv, req);
  refuse_if(req.first != srv.committed + 1, ORDER);
#ifndef RIGHTS_ASKED_TOO_LATE
  refuse_if(req.is_refused, REFUSED);
#endif
  check_quarantine(srv, req);
  if
  :: reply == PASSED ->
    begin_write(srv);
    write_states(srv, req);
    refuse_if(req.is_refused, REFUSED)
  :: else
  fi;
  if
  :: reply == PASSED ->
    change_metadata(srv, req);
    write_receipts(srv, req);
    srv.committed = req.last;
    srv.told = req.told;
    end_write(srv, req);
    reply = OK
  :: else
  fi
}

/* set_aside_plans.lua: plan_admission, plan_taking */
inline check_quarantine(srv, req) {
  if
  :: req.aside_limit ->
    count = 0;
    for (at : 1 .. TXIDS) {
      count = count + (srv.aside[at] != 0)
    }
    refuse_if(count + 1 >= req.aside_limit, FULL)
  :: else
  fi;
  refuse_if(req.taken && !srv.aside[req.taken], GONE)
}
hidden COUNTER count;

/* owner_calls.lua: barrier */
inline barrier(srv, req) {
  check_owner(srv, req);
  if
  :: reply == PASSED || reply == ALREADY ->
    write_control(srv, req);
    refuse_if(true, OK)
  :: else
  fi
}

/* owner_calls.lua: confirm, last_group; UNTOLD_FROM is what the latter finds */
inline ask(srv, req) {
  check_owner(srv, req);
  refuse_if(true, OK)
}

/* owner_calls.lua: last_group: the first txid that the spout's committer may not have heard of */
#define UNTOLD_FROM(srv) (srv.told -> srv.told : srv.group[srv.committed])

/* Drops ---------------------------------------------------------------------------------------------------------- */

/* drop.lua: drop_begin */
inline drop_begin(srv, req) {
  refuse_if(!srv.generation, GONE);
  refuse_if(srv.nonce == req.nonce, OK);
  refuse_if(!HAS_FENCE(srv, req), RACED);
  if
  :: reply == PASSED ->
    next_fence(srv, req, srv.revision);
    srv.dropping = 1;
    reply = OK
  :: else
  fi
}

/* drop.lua: drop_keys, is_dropping. One call deletes all states. */
inline drop_keys(srv, req) {
  refuse_if(!HAS_FENCE(srv, req), FENCED);
#ifndef DROP_CALLS_UNCOUNTED
  refuse_if(srv.dropping < req.number, REGRESSED);
#endif
  if
  :: reply == PASSED ->
    delete_states(srv);
    srv.dropping = req.number + 1;
    reply = OK
  :: else
  fi
}

inline delete_states(srv) {
  for (at : 0 .. PARTITIONS - 1) {
    srv.seen[at] = 0
  }
  for (at : 0 .. TXIDS) {
    srv.aside[at] = 0
  }
}

/* drop.lua: drop_end */
inline drop_end(srv, req) {
  refuse_if(!srv.generation, ALREADY);
  refuse_if(!HAS_FENCE(srv, req), FENCED);
#ifndef DROP_CALLS_UNCOUNTED
  refuse_if(srv.dropping != req.number + 1, REGRESSED);
#endif
  if
  :: reply == PASSED ->
#ifndef DROP_FORGETS_STATES
    delete_states(srv);
#endif
    for (at : 0 .. CELLS - 1) {
      srv.metadata[at] = 0
    }
    for (at : 0 .. TXIDS) {
      srv.receipt[at] = 0;
      srv.group[at] = 0
    }
    srv.generation = 0; srv.fence = 0; srv.since = 0; srv.nonce = 0; srv.revision = 0; srv.last_call = 0;
    srv.committed = 0; srv.told = 0; srv.begun = 0; srv.ended = 0; srv.dropping = 0; srv.source = 0; srv.topology = 0;
    reply = OK
  :: else
  fi
}

/* calls.lua: register */
inline execute(srv, req) {
  reply = PASSED;
  if
  :: req.kind == ACQUIRE -> acquire(srv, req)
  :: req.kind == METADATA -> store_metadata(srv, req)
  :: req.kind == COMMIT -> commit(srv, req)
  :: req.kind == BARRIER -> barrier(srv, req)
  :: req.kind == CONFIRM || req.kind == LAST_GROUP -> ask(srv, req)
  :: req.kind == DROP_BEGIN -> drop_begin(srv, req)
  :: req.kind == DROP_KEYS -> drop_keys(srv, req)
  :: req.kind == DROP_END -> drop_end(srv, req)
  fi
}
