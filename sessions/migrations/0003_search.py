"""The index of sealed texts: keyed hashes of their terms, the one way to search them, and what is not yet in it."""

from django.db import migrations, models

import memberintel.lib.clock
import memberintel.tenancy.context
import sessions.models
from memberintel.tenancy.operations import Function, Protect, TenantForeignKey

# Rows not yet merged into the index are read one by one by every search: few may wait.
INDEX = (
    "CREATE INDEX session_terms_terms ON session_terms USING gin (terms) WITH (gin_pending_list_limit = 256)"
)

# Here and not in a query of the caller's: `@@` is not leakproof, so that row-level security would keep it from the
# index. The predicate of the scope stands inside. A word that many texts have is met soon on the way back from the
# newest; one that few have is found by the index. Which of both, the newest tell; each has a bound.
SEARCH = """
CREATE FUNCTION app.search_terms(p_query text, p_most integer)
RETURNS TABLE (session_id uuid, seq bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  tenant uuid := app.current_tenant(); customer uuid := app.current_customer(); wanted tsquery := p_query::tsquery;
  often integer; given bigint := 0;
BEGIN
  SELECT count(*) INTO often FROM (
    SELECT t.terms FROM public.session_terms t WHERE t.tenant_id = tenant AND t.customer_id = customer
    ORDER BY t.session_id DESC, t.seq DESC LIMIT 500) AS newest
  WHERE newest.terms @@ wanted;
  IF often >= 50 THEN
    RETURN QUERY SELECT newest.session_id, newest.seq FROM (
      SELECT t.session_id, t.seq, t.terms FROM public.session_terms t
      WHERE t.tenant_id = tenant AND t.customer_id = customer
      ORDER BY t.session_id DESC, t.seq DESC LIMIT 20000) AS newest
    WHERE newest.terms @@ wanted LIMIT p_most;
    GET DIAGNOSTICS given = ROW_COUNT;
  END IF;
  IF given < p_most THEN
    -- The scope after the words: together, a table without statistics is read by the customer and not by the words.
    -- A customer's hashes are their own, so there is next to nothing else to find.
    RETURN QUERY WITH hits AS MATERIALIZED (
      SELECT t.tenant_id, t.customer_id, t.session_id, t.seq FROM public.session_terms t WHERE t.terms @@ wanted)
    SELECT hits.session_id, hits.seq FROM hits WHERE hits.tenant_id = tenant AND hits.customer_id = customer
    ORDER BY hits.session_id DESC, hits.seq DESC OFFSET given LIMIT p_most - given;
  END IF;
END $$
"""

# Ids only: each is then indexed in its own scope. The last event of a closed session, its close, has no text.
TO_INDEX = """
CREATE FUNCTION app.sessions_to_index(p_past uuid, p_version integer, p_before timestamptz, p_limit integer)
RETURNS TABLE (session_id uuid, tenant_id uuid, customer_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.id, s.tenant_id, s.customer_id FROM public.sessions s
  LEFT JOIN public.search_progress p
    ON p.tenant_id = s.tenant_id AND p.customer_id = s.customer_id AND p.session_id = s.id
  WHERE s.id > p_past AND NOT s.off_record
    AND (s.turn_lease_until IS NULL OR s.turn_lease_until <= clock_timestamp())
    AND (s.last_seq - (s.closed_at IS NOT NULL)::integer > coalesce(p.indexed_seq, 1)
         OR p.version <> p_version OR p.indexed_at < p_before)
  ORDER BY s.id LIMIT p_limit
$$
"""

DERIVED = "SELECT, INSERT, UPDATE, DELETE"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0002_log"),
    ]

    operations = [
        migrations.CreateModel(
            name="SessionTerms",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(default=memberintel.tenancy.context.current_tenant_id, editable=False),
                ),
                (
                    "customer_id",
                    models.UUIDField(default=memberintel.tenancy.context.current_customer_id, editable=False),
                ),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "customer_id",
                        "session_id",
                        "seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("session_id", models.UUIDField()),
                ("seq", models.BigIntegerField()),
                ("terms", sessions.models.Lexemes()),
            ],
            options={
                "db_table": "session_terms",
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="SearchProgress",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(default=memberintel.tenancy.context.current_tenant_id, editable=False),
                ),
                (
                    "customer_id",
                    models.UUIDField(default=memberintel.tenancy.context.current_customer_id, editable=False),
                ),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "customer_id",
                        "session_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("session_id", models.UUIDField()),
                ("indexed_seq", models.BigIntegerField(default=0)),
                ("language", models.CharField(default="", max_length=8)),
                ("version", models.PositiveSmallIntegerField()),
                ("indexed_at", models.DateTimeField(default=memberintel.lib.clock.now)),
            ],
            options={
                "db_table": "search_progress",
                "base_manager_name": "objects",
                "indexes": [
                    models.Index(
                        fields=["tenant_id", "customer_id", "language"], name="search_progress_language"
                    )
                ],
            },
        ),
        migrations.RunSQL(INDEX, migrations.RunSQL.noop),
        Protect(
            "SessionTerms",
            web=DERIVED,
            worker=DERIVED,
            definers={"searcher": "SELECT", "eraser": "SELECT, DELETE"},
        ),
        Protect(
            "SearchProgress",
            web=DERIVED,
            worker=DERIVED,
            definers={
                "sweeper": "SELECT (tenant_id, customer_id, session_id, indexed_seq, version, indexed_at)",
                "eraser": "SELECT, DELETE",
            },
        ),
        TenantForeignKey("SessionTerms", "session_id", "sessions"),
        TenantForeignKey("SearchProgress", "session_id", "sessions"),
        migrations.RunSQL(
            "GRANT SELECT (last_seq, off_record) ON sessions TO sweeper", migrations.RunSQL.noop
        ),
        Function(
            "search_terms(text, integer)", SEARCH, owner="searcher", execute=("web_tenant", "worker_tenant")
        ),
        Function(
            "sessions_to_index(uuid, integer, timestamptz, integer)",
            TO_INDEX,
            owner="sweeper",
            execute=("app_common",),
        ),
    ]
