/* One topology over several servers: stage, decide, apply.

   Server 0 is home: it orders the groups and decides them, and a group is committed once it is decided there. The
   others are shards: each stages its part of a group before the decision, and applies it afterwards. A group is known by
   its number and by a digest of what all shards have staged of it.

   This is the protocol by which state/redis_shards spreads a topology over the slots of a cluster. There a batch is not
   run again: a shard that is behind and has nothing staged is given its part by the shard that has kept a copy, which is
   a batch run again with the same content; if there is none, every run ends by name. Home orders the groups; each shard
   *stages* its part of a group, home *decides* the group, and each shard then *applies* what it has staged under the
   digest that was decided. A takeover fences home and then every shard, acts on what these calls answered, and a run
   says that it is done once all of them have confirmed.
   There is one home and two shards, each of which may go back over its last two writes, and a run may rest at any
   point for ever. What has to hold: a shard shows nothing that was never decided; without a loss no batch has to be
   run again; and when a run is done, every server has every group once, and all have the same history, unless one
   went back after it confirmed.

   2026-11-27, two cores, load 3 to 5:

   search                     runs / groups / losses of each / in all / batches run again  states      seconds  MB
   shards                     2 / 2 / 1 / 2 / the same                                     1,215,944   2.5      218
   shards, other batches      2 / 2 / 1 / 2 / others                                       1,114,338   1.6      211
   shards, losses everywhere  2 / 1 / 1 / 3 / the same                                     1,590,600   1.8      228
   shards, two losses each    2 / 1 / 2 / 4 / others                                       7,658,156   11.2     566
   shards, after another run  1, then 2 / 1 / 1 / 1 / others                               16,259,174  48.0     809

   planted error                                 found by                   states
   a run that is done asks nobody whether it is  shards                     3,921
   a takeover leaves servers apart               shards                     860
   nothing compares revisions                    shards, other batches      4,732
   a group is applied before it is decided       shards                     52
   a group is decided before it is staged        shards, other batches      122,024
   a takeover reads the servers after it         shards, losses everywhere  1,499,658
   a fence is a bare counter                     shards, two losses each    161,840
   whatever is staged is applied                 shards, after another run  6,363,674 */

#ifndef SHARDS
#define SHARDS 2
#endif
#ifndef GROUPS
#define GROUPS 2
#endif
#ifndef RUNS
#define RUNS 2
#endif
#ifndef LOSSES
#define LOSSES 1          /* of each server */
#endif
#ifndef LOSSES_IN_ALL
#define LOSSES_IN_ALL 2
#endif
#define SERVERS (SHARDS + 1)
#define KEPT 2            /* a server may go back over its last two writes */
#define HOME 0
#define TRIES_MAX 3       /* at a takeover, which raises home's counter each time */

/* What a batch contains when it is run again: the same, or something else by every run that cuts it. */
#ifdef FREE
#define DIGEST(run, group) (1 + (run) * GROUPS + (group))
#else
#define DIGEST(run, group) (1 + (group))
#endif

#ifdef NO_TOKEN
#define TOKEN(run) 1
#else
#define TOKEN(run) ((run) + 1)
#endif

typedef Server {
  byte counter;           /* of its fence */
  byte token;             /* and whose that is */
  byte revision;
  byte length;            /* groups that are decided at home, or applied at a shard */
  byte digest[GROUPS];    /* of these */
  byte staged             /* digest of what a shard has staged; 0 for nothing */
}

Server server[SERVERS];
Server kept[SERVERS * KEPT];  /* what each was before its last writes, the latest first */
byte kept_count[SERVERS];
byte losses[SERVERS];
byte losses_left = LOSSES_IN_ALL;

typedef Run {
  byte counter;           /* its fence, but for the token */
  Server known[SERVERS];  /* as the calls have answered */
  byte confirmed;         /* a bit for each server */
  bool is_outdated        /* a server has gone back since it confirmed */
}
Run runs[RUNS];
#ifdef AFTER_ANOTHER
bool is_over;             /* the first run has ended or died, and the others may begin */
#define MAY_BEGIN(me) (me == 0 || is_over)
#define DIES(me) (me == 0 && is_over)
#else
#define MAY_BEGIN(me) true
#define DIES(me) false    /* a run may rest at any point, for ever: that is the same */
#endif
int decided;              /* a bit for each digest that was ever decided */

hidden byte one;
hidden byte other;
hidden byte longest;
bool is_ok;
bool is_fork;

inline copy_server(to, given) {
  to.counter = given.counter; to.token = given.token; to.revision = given.revision; to.length = given.length;
  to.staged = given.staged;
  for (one : 0 .. GROUPS - 1) {
    to.digest[one] = given.digest[one]
  }
}

/* Servers ---------------------------------------------------------------------------------------------------------- */

/* A server may lose what it writes from now on. */
inline keep(place) {
  copy_server(kept[place * KEPT + 1], kept[place * KEPT]);
  copy_server(kept[place * KEPT], server[place]);
  kept_count[place] = (kept_count[place] < KEPT -> kept_count[place] + 1 : KEPT)
}

/* Every call compares fence and revision, and a server that has gone back has a revision that nobody expects. */
inline begin_write(own, me, place) {
  is_ok = server[place].counter == own.counter && server[place].token == TOKEN(me);
#ifndef NO_REVISION
  is_ok = is_ok && server[place].revision == own.known[place].revision;
#endif
  if
  :: is_ok ->
    keep(place);
    server[place].revision++
  :: else
  fi
}

inline append(place, what) {
  decided = (place == HOME -> decided | (1 << what) : decided);
  assert(decided & (1 << what));                 /* nobody reads at a shard what was not decided */
  server[place].digest[server[place].length] = what;
  server[place].length++
}

/* Home's fence is one higher at each takeover. A shard refuses one that is not higher than its own: home has gone back
   then, and the next try raises its counter. */
inline take_over(own, me, place) {
  if
  :: place == HOME -> own.counter = server[HOME].counter + 1; is_ok = true
  :: else -> is_ok = server[place].counter < own.counter
  fi;
  if
  :: is_ok ->
    keep(place);
    server[place].counter = own.counter;
    server[place].token = TOKEN(me);
    server[place].revision++;
    copy_server(own.known[place], server[place])
  :: else
  fi
}

inline stage(own, me, place, what) {
  begin_write(own, me, place);
  if
  :: is_ok ->
#ifdef APPLIED_BEFORE_DECISION
    append(place, what);
#else
    server[place].staged = what;
#endif
    copy_server(own.known[place], server[place])
  :: else
  fi
}

inline decide(own, me, what) {
  begin_write(own, me, HOME);
  if
  :: is_ok ->
    append(HOME, what);
    copy_server(own.known[HOME], server[HOME])
  :: else
  fi
}

/* A shard applies what it has staged under the digest that was decided. */
#ifdef APPLIES_WHATEVER_IS_STAGED
#define IS_STAGED(srv, what) (srv.staged)
#else
#define IS_STAGED(srv, what) (srv.staged == what)
#endif

inline apply(own, me, place, what) {
  is_ok = IS_STAGED(server[place], what);
  if
  :: is_ok -> begin_write(own, me, place)
  :: else
  fi;
  if
  :: is_ok ->
    append(place, server[place].staged);
    server[place].staged = 0;
    copy_server(own.known[place], server[place])
  :: else
  fi
}

/* A home that is behind a shard takes the decisions back from it. */
inline restore(own, me, place) {
  begin_write(own, me, HOME);
  if
  :: is_ok ->
    server[HOME].length = own.known[place].length;
    for (one : 0 .. GROUPS - 1) {
      server[HOME].digest[one] = own.known[place].digest[one]
    }
    copy_server(own.known[HOME], server[HOME])
  :: else
  fi
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

/* The server that has the most groups; whether another one has a different history. */
inline compare(own) {
  longest = HOME;
  for (one : 1 .. SHARDS) {
    longest = (own.known[one].length > own.known[longest].length -> one : longest)
  }
  is_fork = false;
  for (one : 0 .. SHARDS) {
    for (other : 0 .. GROUPS - 1) {
      is_fork = is_fork || (other < own.known[one].length && own.known[one].digest[other] != own.known[longest].digest[other])
    }
  }
}

/* What has to hold when a run says that it is done, unless a server has gone back since it confirmed. */
inline check_done(own) {
  if
  :: !own.is_outdated ->
    for (one : 0 .. SHARDS) {
      assert(server[one].length == GROUPS);            /* nothing is lost, nothing is doubled */
      for (other : 0 .. GROUPS - 1) {
        assert(server[one].digest[other] == server[HOME].digest[other]) /* one history */
      }
    }
  :: else
  fi
}

proctype Running(byte me) {
  byte place;
  byte group;
  byte tries;
#define own runs[me]
  MAY_BEGIN(me);
  {
  do
  :: place < SERVERS && tries < TRIES_MAX ->
    d_step {
      take_over(own, me, place);
      if
      :: is_ok -> place++
      :: else -> place = HOME; tries++
      fi;
      skip
    }
  :: place == SERVERS -> break
  :: tries == TRIES_MAX -> goto over
  od;
#ifndef NO_RECOVERY
  do
  :: true ->
#ifdef READS_LATE
    d_step {
      for (place : 0 .. SHARDS) {
        group = own.known[place].revision;
        copy_server(own.known[place], server[place]);
        own.known[place].revision = group
      };
      skip
    };
#endif
    atomic {
      d_step { compare(own); place = longest };
      if
      :: is_fork -> goto over
      :: !is_fork && own.known[HOME].length < own.known[place].length ->
        d_step { restore(own, me, place); skip };
        if
        :: is_ok
        :: else -> goto over
        fi
      :: else -> break
      fi
    }
  od;
  place = 1;
  do
  :: place <= SHARDS && own.known[place].length < own.known[HOME].length ->
    atomic {
      d_step {
        group = own.known[place].length;
        if
        :: IS_STAGED(own.known[place], own.known[HOME].digest[group]) ->
          apply(own, me, place, own.known[HOME].digest[group])
        :: else ->
          assert(losses_left < LOSSES_IN_ALL);     /* without a loss it was staged before the decision */
          is_ok = DIGEST(me, group) == own.known[HOME].digest[group]; /* the batch is run again */
          if
          :: is_ok -> stage(own, me, place, DIGEST(me, group))
          :: else
          fi
        fi;
        skip
      };
      if
      :: is_ok
      :: else -> goto over
      fi
    }
  :: place <= SHARDS && own.known[place].length >= own.known[HOME].length -> place++
  :: place > SHARDS -> break
  od;
#endif
  group = own.known[HOME].length;
  do
  :: group < GROUPS ->
#ifdef DECIDED_BEFORE_STAGED
    atomic {
      d_step { decide(own, me, DIGEST(me, group)); skip };
      if
      :: is_ok
      :: else -> goto over
      fi
    };
#endif
    place = 1;
    do
    :: place <= SHARDS ->
      atomic {
        d_step { stage(own, me, place, DIGEST(me, group)); skip };
        if
        :: is_ok -> place++
        :: else -> goto over
        fi
      }
    :: else -> break
    od;
#ifndef DECIDED_BEFORE_STAGED
    atomic {
      d_step { decide(own, me, DIGEST(me, group)); skip };
      if
      :: is_ok
      :: else -> goto over
      fi
    };
#endif
#ifndef APPLIED_BEFORE_DECISION
    place = 1;
    do
    :: place <= SHARDS ->
      atomic {
        d_step { apply(own, me, place, own.known[HOME].digest[group]); skip };
        if
        :: is_ok -> place++
        :: else -> goto over
        fi
      }
    :: else -> break
    od;
#endif
    group++
  :: else -> break
  od;
#ifndef NO_CONFIRMATION
  place = HOME;
  do
  :: place < SERVERS ->
    atomic {
      if
      :: server[place].counter == own.counter && server[place].token == TOKEN(me) &&
           server[place].revision == own.known[place].revision ->
        own.confirmed = own.confirmed | (1 << place);
        place++
      :: else -> goto over
      fi
    }
  :: else -> break
  od;
#endif
  skip;
  d_step { check_done(own); skip };
over:
  skip
  } unless { DIES(me) }
#undef own
}

/* A server goes back over one write, or two; what it loses is gone. */
inline lose(place) {
  d_step {
    copy_server(server[place], kept[place * KEPT]);
    copy_server(kept[place * KEPT], kept[place * KEPT + 1]);
    kept_count[place]--;
    for (one : 0 .. RUNS - 1) {
      runs[one].is_outdated = runs[one].is_outdated || (runs[one].confirmed & (1 << place))
    };
    skip
  }
}

inline lost(place) {
  losses[place]++;
  losses_left--;
  lose(place);
  if
  :: kept_count[place] -> lose(place)
  :: true
  fi
}
#define MAY_LOSE(place) (losses_left && kept_count[place] && losses[place] < LOSSES)

proctype Losing() {
end:
  do
  :: atomic { MAY_LOSE(0) -> lost(0) }
  :: atomic { MAY_LOSE(1) -> lost(1) }
#if SHARDS > 1
  :: atomic { MAY_LOSE(2) -> lost(2) }
#endif
  od
}

init {
  byte me;
  atomic {
    for (me : 0 .. RUNS - 1) {
      run Running(me)
    }
    run Losing()
  }
#ifdef AFTER_ANOTHER
  is_over = true
#endif
}
