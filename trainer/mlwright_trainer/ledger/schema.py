"""The ledger's tables, as a list of migrations; the schema version is the number of migrations applied."""

from __future__ import annotations

MIGRATIONS = (
    """
    -- Facts about the run as a whole: seed, digest of the resolved run.yaml, software versions, closed.
    CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

    -- One row a sample. The first part is committed, a whole round at once, before anything runs;
    -- launched_at when its script starts; the result when it has ended; the batch when it is assigned.
    CREATE TABLE rollouts (
      id              TEXT PRIMARY KEY,
      purpose         TEXT NOT NULL CHECK (purpose IN ('Train', 'Before', 'After', 'Evaluation')),
      round           INTEGER NOT NULL,
      position        INTEGER NOT NULL,
      task            TEXT NOT NULL,
      prompt_kind     TEXT NOT NULL CHECK (prompt_kind IN ('draft', 'improve')),
      parent          TEXT REFERENCES rollouts (id),
      prompt_tokens   BLOB NOT NULL,             -- int32, little-endian
      response_tokens BLOB NOT NULL,             -- int32
      logprobs        BLOB NOT NULL,             -- float64, one a response token, after temperature
      policy_version  INTEGER NOT NULL,          -- of the first token
      spans           TEXT NOT NULL,             -- JSON [[version, start, end], ...]
      response        TEXT NOT NULL,
      script          TEXT,
      tree            TEXT,                      -- digest of the script's syntax tree
      sampled_at      REAL NOT NULL,             -- Unix seconds
      launched_at     REAL,
      window          INTEGER,
      window_offset   REAL,                      -- seconds from the window's start to the script's
      attempt         INTEGER NOT NULL DEFAULT 1,
      outcome         TEXT,
      reason          TEXT NOT NULL DEFAULT '',
      exit_code       INTEGER,
      scores          TEXT NOT NULL DEFAULT '{}',
      milestones      TEXT NOT NULL DEFAULT '[]',
      seconds         TEXT NOT NULL DEFAULT '{}',
      output_tail     TEXT NOT NULL DEFAULT '',
      isolation       TEXT,
      reward          REAL,
      closed_at       REAL,
      batch           INTEGER,
      batch_position  INTEGER,
      submission      BLOB,                      -- zlib; only where it is kept for the sealed grading
      UNIQUE (purpose, round, position),
      UNIQUE (batch, batch_position),
      CHECK ((outcome IS NULL) = (closed_at IS NULL)),
      CHECK (batch IS NULL OR (purpose = 'Train' AND reward IS NOT NULL))
    ) STRICT;
    CREATE INDEX rollouts_open ON rollouts (purpose, round, position) WHERE outcome IS NULL;
    CREATE INDEX rollouts_unassigned ON rollouts (closed_at) WHERE batch IS NULL AND reward IS NOT NULL;

    -- Clock-closed windows (collection mode Window); batch number = window number.
    CREATE TABLE windows (
      number       INTEGER PRIMARY KEY,
      seconds      REAL NOT NULL,
      elapsed      REAL NOT NULL DEFAULT 0,      -- of the clock, over interruptions
      closed       INTEGER NOT NULL DEFAULT 0,
      missing_mass REAL
    ) STRICT;

    -- A batch is assigned once; its rows say so too, this says that it is complete.
    CREATE TABLE batches (
      number      INTEGER PRIMARY KEY,
      size        INTEGER NOT NULL,
      assigned_at REAL NOT NULL
    ) STRICT;

    -- Published weights. Version 0 is the initial weights; version n+1 was made from batch n.
    CREATE TABLE updates (
      version      INTEGER PRIMARY KEY,
      digest       TEXT NOT NULL,
      metrics      TEXT NOT NULL,
      published_at REAL NOT NULL
    ) STRICT;

    -- Where the wall time of the run went.
    CREATE TABLE phases (
      kind       TEXT NOT NULL CHECK (kind IN ('fineTuning', 'sampling', 'execution', 'learning', 'sealed')),
      round      INTEGER,
      started_at REAL NOT NULL,
      seconds    REAL NOT NULL
    ) STRICT;

    -- Every start and end of the run's process.
    CREATE TABLE sessions (
      number     INTEGER PRIMARY KEY,
      started_at REAL NOT NULL,
      ended_at   REAL,
      ending     TEXT NOT NULL DEFAULT ''
    ) STRICT;

    -- The sealed grading: every read of Final, with the digest of what was graded.
    CREATE TABLE sealed (
      subject    TEXT PRIMARY KEY,               -- a rollout's id, or 'best'
      rollout    TEXT NOT NULL REFERENCES rollouts (id),
      digest     TEXT NOT NULL,
      verdict    TEXT NOT NULL,
      reason     TEXT NOT NULL,
      score      REAL,
      low        REAL,                           -- bootstrap interval over rows, 95 %
      high       REAL,
      graded_at  REAL NOT NULL
    ) STRICT;
    """,
)
