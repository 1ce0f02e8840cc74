"""What the PostgreSQL store says to the server."""

from typing import Final

from discreet.ledger.stores.postgres.wire import Statement

LOCK_PATIENCE: Final = 60.0  # seconds in the queue; a server notices a dead client in half of it

BEGIN = Statement("begin", "BEGIN")
COMMIT = Statement("commit", "COMMIT")
ROLLBACK = Statement("rollback", "ROLLBACK")
BEGIN_READING = Statement("begin_reading", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
# All: should an interruption ever leave one behind, it goes with the next.
UNLOCK = Statement("unlock", "SELECT pg_advisory_unlock_all()")
LOCK = Statement("lock", "SELECT pg_advisory_lock($1::bigint)")

# Takes the lock, or posts, queues for the lock and takes the answer: one procedure, because a
# client in a queue should be woken once.
TURN = Statement(
    "turn", "CALL take_turn($1::bigint, $2::bigint, $3::bytea, NULL::boolean, NULL::bytea)"
)
POSTED = Statement(
    "posted",
    "SELECT slot, ticket, request FROM mailbox "
    "WHERE request IS NOT NULL AND slot <> pg_backend_pid() LIMIT $1::bigint",
)
# The ticket keeps an answer away from a later request of whoever has the slot now.
REPLY = Statement(
    "reply",
    "UPDATE mailbox AS m SET answer = reply.answer, request = NULL "
    "FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS reply (slot, ticket, answer) "
    "WHERE m.slot = reply.slot AND m.ticket = reply.ticket",
)
WITHDRAW = Statement("withdraw", "UPDATE mailbox SET request = NULL WHERE slot = pg_backend_pid()")
LEAVE = Statement("leave", "DELETE FROM mailbox WHERE slot = pg_backend_pid()")
SWEEP = Statement(
    "sweep",
    "DELETE FROM mailbox AS m "
    "WHERE NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = m.slot)",
)
HOLDER = Statement(
    "holder",
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND (classid::bigint << 32) | objid::bigint = $1::bigint",
)

HEAD = Statement("head", "SELECT size, time, last, frontier, note FROM head")
FACTS = Statement("facts", "SELECT name, value FROM facts WHERE name = ANY ($1::text[])")
FACTS_FROM = Statement(
    "facts_from",
    "SELECT name, value FROM facts WHERE name >= $1::text ORDER BY name LIMIT $2::bigint",
)
FACTS_AFTER = Statement(
    "facts_after",
    "SELECT name, value FROM facts WHERE name > $1::text ORDER BY name LIMIT $2::bigint",
)
COLUMNS = "SELECT idx, account, key, body, hashes FROM entries"
RANGE = "idx >= $1::bigint AND idx < $2::bigint ORDER BY idx LIMIT $3::bigint"
ROWS = Statement("rows", f"{COLUMNS} WHERE {RANGE}")
ROWS_OF = Statement("rows_of", f"{COLUMNS} WHERE account = $4::text AND {RANGE}")
LAST = "idx < $1::bigint ORDER BY idx DESC LIMIT $2::bigint"
LAST_ROWS = Statement("last_rows", f"{COLUMNS} WHERE {LAST}")
LAST_ROWS_OF = Statement("last_rows_of", f"{COLUMNS} WHERE account = $3::text AND {LAST}")
ROW = Statement("row", f"{COLUMNS} WHERE idx = $1::bigint")
BY_KEYS = Statement("by_keys", f"{COLUMNS} WHERE key = ANY ($1::text[])")
ANSWER = Statement("answer", "SELECT body FROM answers WHERE idx = $1::bigint")
ANSWERS = Statement(
    "answers", "SELECT idx, body FROM answers WHERE idx > $1::bigint ORDER BY idx LIMIT 16"
)

APPEND = Statement(
    "append",
    "INSERT INTO entries (idx, account, key, body, hashes) "
    "SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[])",
)
PUT_FACTS = Statement(
    "put_facts",
    "INSERT INTO facts (name, value) SELECT * FROM unnest($1::text[], $2::text[]) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
)
DROP_FACTS = Statement("drop_facts", "DELETE FROM facts WHERE name = ANY ($1::text[])")
PUT_HEAD = Statement(
    "put_head",
    "INSERT INTO head (one, size, time, last, frontier, note) "
    "VALUES (1, $1::bigint, $2::text, $3::bytea, $4::bytea, $5::text) ON CONFLICT (one) DO UPDATE "
    "SET size = excluded.size, time = excluded.time, last = excluded.last, "
    "frontier = excluded.frontier, note = excluded.note",
)
COUNTS = Statement(
    "counts", "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM answers)"
)
PUT_ANSWERS = Statement(
    "put_answers",
    "INSERT INTO answers (idx, body) SELECT * FROM unnest($1::bigint[], $2::bytea[]) "
    "ON CONFLICT (idx) DO UPDATE SET body = excluded.body",
)

SETTINGS: Final = {
    "default_transaction_isolation": "'read committed'",  # each statement sees what came before
    "lock_timeout": f"'{LOCK_PATIENCE:.0f}s'",
    "statement_timeout": "0",
    # Plans are made while the tables are small, and must still be right when they are large.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
    # A client whose machine vanished must not keep the lock for the usual two hours.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
# What the server says of itself. A commit waits for the disk, also where the default is not to;
# where it waits for standby servers as well, it goes on doing so.
SERVER = Statement(
    "",
    "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', "
    "current_setting('fsync') = 'on', current_setting('server_encoding')::text, "
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') "
    "WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)",
)
# From the catalogue, which is up to date where a cached search path is not.
HAS_TABLES = Statement(
    "",
    "SELECT has_schema_privilege(n.oid, 'USAGE') FROM pg_class AS c "
    "JOIN pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE n.nspname = $1::text AND c.relname = 'meta'",
)
HAS_SCHEMA = Statement("", "SELECT true FROM pg_namespace WHERE nspname = $1::text")
