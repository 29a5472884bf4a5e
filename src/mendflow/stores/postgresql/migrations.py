"""The PostgreSQL schema, as numbered steps.

A released step is never changed; a new need is a new step. Servers that start at once take turns by an advisory lock,
and each step is one transaction. A newer schema is refused, because this mendflow does not know what it would break."""

import msgspec
from psycopg import AsyncConnection, sql

from mendflow.core.model.errors import StoreUnavailable


class PostgresqlMigration(msgspec.Struct, frozen=True):
    number: int
    why: str
    statements: tuple[str, ...]


_TABLES = (
    "CREATE SEQUENCE versions",
    """CREATE TABLE documents (
         kind       text COLLATE "C" NOT NULL,
         id         text COLLATE "C" NOT NULL,
         version    bigint NOT NULL,
         by_case    text COLLATE "C",
         by_state   text COLLATE "C",
         by_status  text COLLATE "C",
         body       text NOT NULL,
         PRIMARY KEY (kind, id)
       ) WITH (fillfactor = 80)""",
    "CREATE INDEX documents_by_case ON documents (kind, by_case, by_state) WHERE by_case IS NOT NULL",
    "CREATE INDEX documents_by_state ON documents (kind, by_state)",
    "CREATE INDEX documents_by_status ON documents (kind, by_status) WHERE by_status IS NOT NULL",
    """CREATE TABLE streams (
         stream  text COLLATE "C" PRIMARY KEY,
         length  bigint NOT NULL
       ) WITH (fillfactor = 80)""",
    """CREATE TABLE entries (
         stream    text COLLATE "C" NOT NULL,
         position  bigint NOT NULL,
         body      bytea NOT NULL,
         PRIMARY KEY (stream, position)
       )""",
    """CREATE TABLE writers (
         writer    uuid PRIMARY KEY,
         life      bigint NOT NULL,
         number    bigint NOT NULL,
         outcomes  bigint[] NOT NULL,
         seen_at   timestamptz NOT NULL DEFAULT now()
       ) WITH (fillfactor = 20)""",
)

_DATA = """
CREATE FUNCTION data_of(body text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
-- A body as searches see it. Here a text cannot hold the character 0, and JSON may; what cannot be read has no fields.
BEGIN
  RETURN replace(body, '\\u0000', '')::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
  RETURN NULL;
END $$
"""

_MEANINGS = (
    """CREATE FUNCTION plain(value jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
       SELECT CASE value WHEN 'null' THEN NULL WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE value END $$""",
    """CREATE FUNCTION rank_of(value jsonb) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
       SELECT CASE coalesce(jsonb_typeof(value), 'null')
         WHEN 'null' THEN 0 WHEN 'number' THEN 1 WHEN 'boolean' THEN 1 WHEN 'string' THEN 2 ELSE 3 END $$""",
    """CREATE FUNCTION number_of(value jsonb) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
       SELECT CASE jsonb_typeof(value)
         WHEN 'number' THEN value::numeric WHEN 'boolean' THEN value::boolean::int::numeric ELSE 0 END $$""",
    """CREATE FUNCTION text_of(value jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
       SELECT CASE jsonb_typeof(value) WHEN 'string' THEN value #>> '{}' ELSE '' END COLLATE "C" $$""",
    """CREATE FUNCTION label_of(value jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
       SELECT coalesce(value #>> '{}', '') COLLATE "C" $$""",
)

_PUT_DOCUMENT = """
CREATE FUNCTION put_document(
  a_kind text, an_id text, an_expected bigint, a_body text, a_case text, a_state text, a_status text
) RETURNS bigint LANGUAGE plpgsql AS $$
-- The new version; or, if the document is not at the expected one, the present version p as -(p + 1).
DECLARE
  present bigint;
BEGIN
  LOOP
    IF an_expected = 0 THEN
      INSERT INTO documents (kind, id, version, body, by_case, by_state, by_status)
      VALUES (a_kind, an_id, nextval('versions'), a_body, a_case, a_state, a_status)
      ON CONFLICT (kind, id) DO NOTHING RETURNING version INTO present;
    ELSE
      UPDATE documents
      SET version = nextval('versions'), body = a_body, by_case = a_case, by_state = a_state, by_status = a_status
      WHERE kind = a_kind AND id = an_id AND version = an_expected RETURNING version INTO present;
    END IF;
    IF FOUND THEN
      RETURN present;
    END IF;
    SELECT version INTO present FROM documents WHERE kind = a_kind AND id = an_id;
    present := coalesce(present, 0);
    IF present <> an_expected THEN
      RETURN -present - 1;
    END IF;
    -- Another server removed the document in between: what was refused is right by now.
  END LOOP;
END $$
"""

_DELETE_DOCUMENT = """
CREATE FUNCTION delete_document(a_kind text, an_id text, an_expected bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  present bigint;
BEGIN
  DELETE FROM documents WHERE kind = a_kind AND id = an_id AND version = an_expected;
  IF FOUND THEN
    RETURN 0;
  END IF;
  SELECT version INTO present FROM documents WHERE kind = a_kind AND id = an_id;
  present := coalesce(present, 0);
  RETURN CASE WHEN present = an_expected THEN 0 ELSE -present - 1 END;
END $$
"""

_REMOVE_STREAM = """
CREATE OR REPLACE FUNCTION delete_document(a_kind text, an_id text, an_expected bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
-- Without a kind it is a stream that goes, with all its entries.
DECLARE
  present bigint;
BEGIN
  IF a_kind = '' THEN
    DELETE FROM streams WHERE stream = an_id;
    DELETE FROM entries WHERE stream = an_id;
    RETURN 0;
  END IF;
  DELETE FROM documents WHERE kind = a_kind AND id = an_id AND version = an_expected;
  IF FOUND THEN
    RETURN 0;
  END IF;
  SELECT version INTO present FROM documents WHERE kind = a_kind AND id = an_id;
  present := coalesce(present, 0);
  RETURN CASE WHEN present = an_expected THEN 0 ELSE -present - 1 END;
END $$
"""

_LENGTHEN_STREAM = """
CREATE FUNCTION lengthen_stream(a_stream text, an_expected bigint, added bigint) RETURNS bigint LANGUAGE plpgsql AS $$
-- The row of the stream is what several servers compete for; entries follow whoever has won it.
DECLARE
  present bigint;
BEGIN
  IF added > 0 THEN
    IF an_expected = 0 THEN
      INSERT INTO streams (stream, length) VALUES (a_stream, added) ON CONFLICT (stream) DO NOTHING;
    ELSE
      UPDATE streams SET length = length + added WHERE stream = a_stream AND length = an_expected;
    END IF;
    IF FOUND THEN
      RETURN an_expected + added;
    END IF;
  END IF;
  SELECT length INTO present FROM streams WHERE stream = a_stream;
  present := coalesce(present, 0);
  RETURN CASE WHEN present = an_expected THEN present ELSE -present - 1 END;
END $$
"""

_WRITE_GROUP = """
CREATE FUNCTION write_group(
  a_writer uuid, a_life bigint, a_number bigint,
  kinds text[], ids text[], expecteds bigint[], bodies text[], cases text[], states text[], statuses text[],
  addeds bigint[], owners bigint[], streams_of text[], positions bigint[], entry_bodies bytea[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
-- A group of writes in one transaction: what became of each, in order. Without a kind it is an append, whose entries
-- name it as their owner by its place in the group; without a body a delete. The group's outcomes stay in the writer's
-- row until the next one, so that a writer who never heard them can ask; a writer that lives another life by now does
-- nothing at all.
DECLARE
  made bigint[] := '{}';
  one record;
BEGIN
  FOR one IN
    SELECT * FROM unnest(kinds, ids, expecteds, bodies, cases, states, statuses, addeds)
      AS w (kind, id, expected, body, in_case, state, status, added)
  LOOP
    IF one.kind IS NULL THEN
      made := made || lengthen_stream(one.id, one.expected, one.added);
    ELSIF one.body IS NULL THEN
      made := made || delete_document(one.kind, one.id, one.expected);
    ELSE
      made := made || put_document(one.kind, one.id, one.expected, one.body, one.in_case, one.state, one.status);
    END IF;
  END LOOP;
  IF cardinality(owners) > 0 THEN
    INSERT INTO entries (stream, position, body)
    SELECT e.stream, e.position, e.body
    FROM unnest(owners, streams_of, positions, entry_bodies) AS e (owner, stream, position, body)
    WHERE made[e.owner] >= 0;
  END IF;
  UPDATE writers SET number = a_number, outcomes = made, seen_at = now() WHERE writer = a_writer AND life = a_life;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'this writer lives another life' USING ERRCODE = 'MF001';
  END IF;
  RETURN made;
END $$
"""

MIGRATIONS = (
    PostgresqlMigration(
        1,
        "Documents, streams, and the writers with what became of their last group. Texts are compared by their bytes, "
        "whatever the database's language. Bodies stay as they were written; the three fields that are asked for most "
        "stand beside them where they are texts, with an index.",
        (*_TABLES, _DATA, *_MEANINGS, _PUT_DOCUMENT, _DELETE_DOCUMENT, _LENGTHEN_STREAM, _WRITE_GROUP),
    ),
    PostgresqlMigration(
        2,
        "The index by state begins with the state. Beginning with the kind it looked as good as the key for finding "
        "one document while the table was new, and a server kept that plan: each write read all documents of its kind.",
        (
            "DROP INDEX documents_by_state",
            "CREATE INDEX documents_by_state ON documents (by_state, kind)",
        ),
    ),
    PostgresqlMigration(3, "A stream that nobody appends to any more can be removed.", (_REMOVE_STREAM,)),
    PostgresqlMigration(
        4,
        "Cases that were run in place of others are found by an index: whoever looked at failures read every case. "
        "PostgreSQL fills the column itself, so a server of before can go on writing; only a document that seems to "
        "have such a text is parsed for it.",
        (
            """ALTER TABLE documents ADD COLUMN by_stands_for text COLLATE "C" GENERATED ALWAYS AS (
                  CASE WHEN kind = 'case' AND (position('"stands_for":"' IN body) > 0
                                               OR position('"stands_for": "' IN body) > 0)
                            AND length(text_of(data_of(body) -> 'stands_for')) BETWEEN 1 AND 200
                  THEN text_of(data_of(body) -> 'stands_for') END) STORED""",
            "CREATE INDEX documents_by_stands_for ON documents (by_stands_for) WHERE by_stands_for IS NOT NULL",
        ),
    ),
)

NEWEST = MIGRATIONS[-1].number


async def migrate(connection: AsyncConnection, schema: str, shown: str) -> None:
    """Bring the schema to the newest step. A second server waits, and finds it done."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('mendflow ' || %s, 0))", (schema,))
        if await _count(connection, "SELECT count(*) FROM pg_namespace WHERE nspname = %s", schema) == 0:
            await connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        present = await _present(connection, schema)
        if present > NEWEST:
            raise StoreUnavailable(
                f"{shown} was written by a newer mendflow (schema {present}; this one knows up to {NEWEST}): "
                "upgrade mendflow, or give it another database",
                schema=present,
            )
        for step in MIGRATIONS[present:]:
            for statement in step.statements:
                await connection.execute(statement.encode())
            await connection.execute(
                "INSERT INTO schema_version (number, why) VALUES (%s, %s)", (step.number, step.why)
            )


async def _present(connection: AsyncConnection, schema: str) -> int:
    known = "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tablename = 'schema_version'"
    if await _count(connection, known, schema) == 0:
        await connection.execute("CREATE TABLE schema_version (number int NOT NULL PRIMARY KEY, why text NOT NULL)")
    return await _count(connection, "SELECT coalesce(max(number), 0) FROM schema_version")


async def _count(connection: AsyncConnection, query: str, *params: str) -> int:
    row = await (await connection.execute(query.encode(), params)).fetchone()
    assert row is not None
    return int(row[0])
