"""The one way events are deleted, and what the clock finds left to erase."""

from django.db import migrations, models

from memberintel.tenancy.operations import Function, ReplacedFunction

# Bound to the caller's own tenant and customer, whatever it is called with, and raises when it deletes nothing: a
# sweep that erased nothing must not look like one that worked. The session is locked first, as whoever indexes it
# does, so neither waits for the other. Each reason is checked here and not believed:
# * customer: asked for in the product, which is the login `web`; the clock's worker cannot give it.
# * off_record: the session was off the record.
# * retention: nothing was done in it since `p_before`, which lies a day back at least, and no notes are owed for it.
# * account: the customer's key is destroyed, so that nobody can read any of it. Closes a session left open.
ERASE = """
CREATE FUNCTION app.erase_session(p_session uuid, p_reason text, p_before timestamptz)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tenant uuid := app.current_tenant(); customer uuid := app.current_customer(); was public.sessions%ROWTYPE;
  moment timestamptz := clock_timestamp(); erased bigint;
BEGIN
  SELECT * INTO was FROM public.sessions s
    WHERE s.tenant_id = tenant AND s.customer_id = customer AND s.id = p_session FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no such session' USING ERRCODE = 'MI404';
  END IF;

  IF NOT coalesce(CASE p_reason
    WHEN 'customer' THEN session_user = 'web' AND was.closed_at IS NOT NULL
    WHEN 'off_record' THEN was.off_record AND was.closed_at IS NOT NULL
    WHEN 'retention' THEN was.closed_at IS NOT NULL AND p_before <= moment - interval '1 day'
      AND was.closed_at < p_before AND was.last_activity_at < p_before
      AND NOT EXISTS (
        SELECT FROM public.closing_jobs job
        WHERE job.tenant_id = tenant AND job.customer_id = customer AND job.session_id = p_session
          AND (job.state = 'queued' OR job.state = 'failed' AND job.daily_tries < 5
               OR job.state = 'unfunded' AND was.closed_at > moment - interval '7 days'))
    WHEN 'account' THEN EXISTS (
        SELECT FROM vault.data_keys k WHERE k.tenant_id = tenant AND k.customer_id = customer
          AND k.kind = 'customer' AND k.destroyed_at IS NOT NULL)
  END, false) THEN
    RAISE EXCEPTION 'there is no such reason to erase this session' USING ERRCODE = 'MI004';
  END IF;

  DELETE FROM public.session_events e
    WHERE e.tenant_id = tenant AND e.customer_id = customer AND e.session_id = p_session;
  GET DIAGNOSTICS erased = ROW_COUNT;
  IF erased = 0 THEN
    RAISE EXCEPTION 'the session has no events' USING ERRCODE = 'no_data_found';
  END IF;
  DELETE FROM public.session_terms t
    WHERE t.tenant_id = tenant AND t.customer_id = customer AND t.session_id = p_session;
  DELETE FROM public.search_progress p
    WHERE p.tenant_id = tenant AND p.customer_id = customer AND p.session_id = p_session;
  UPDATE public.sessions s SET
    title = NULL, erased_at = moment, erase_reason = p_reason, turn_lease_until = NULL,
    close_reason = CASE WHEN s.closed_at IS NULL THEN 'erased' ELSE s.close_reason END,
    closed_at = coalesce(s.closed_at, moment)
  WHERE s.tenant_id = tenant AND s.customer_id = customer AND s.id = p_session;
  RETURN erased;
END $$
"""

# Ids only: each is then erased in its own scope.
UNKEPT = """
CREATE FUNCTION app.sessions_to_erase(p_limit integer)
RETURNS TABLE (session_id uuid, tenant_id uuid, customer_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.id, s.tenant_id, s.customer_id FROM public.sessions s
  WHERE s.off_record AND s.closed_at IS NOT NULL AND s.erased_at IS NULL
  ORDER BY s.closed_at LIMIT p_limit
$$
"""

# As before, without what was erased: that has no texts to lag behind.
TO_INDEX = """
CREATE OR REPLACE FUNCTION app.sessions_to_index(
  p_past uuid, p_version integer, p_before timestamptz, p_limit integer
)
RETURNS TABLE (session_id uuid, tenant_id uuid, customer_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.id, s.tenant_id, s.customer_id FROM public.sessions s
  LEFT JOIN public.search_progress p
    ON p.tenant_id = s.tenant_id AND p.customer_id = s.customer_id AND p.session_id = s.id
  WHERE s.id > p_past AND NOT s.off_record AND s.erased_at IS NULL
    AND (s.turn_lease_until IS NULL OR s.turn_lease_until <= clock_timestamp())
    AND (s.last_seq - (s.closed_at IS NOT NULL)::integer > coalesce(p.indexed_seq, 1)
         OR p.version <> p_version OR p.indexed_at < p_before)
  ORDER BY s.id LIMIT p_limit
$$
"""


class Migration(migrations.Migration):
    dependencies = [("chat", "0003_search")]

    operations = [
        migrations.AddField("session", "erased_at", models.DateTimeField(editable=False, null=True)),
        migrations.AddField(
            "session",
            "erase_reason",
            models.CharField(
                choices=[
                    ("customer", "deleted by the customer"),
                    ("off_record", "off the record"),
                    ("retention", "older than the retention period"),
                    ("account", "the account was erased"),
                ],
                editable=False,
                max_length=12,
                null=True,
            ),
        ),
        migrations.AddConstraint(
            "session",
            models.CheckConstraint(
                condition=models.Q(("erase_reason", None), ("erased_at", None))
                | models.Q(
                    ("closed_at__isnull", False),
                    ("erase_reason__isnull", False),
                    ("erased_at__isnull", False),
                    ("title__isnull", True),
                ),
                name="sessions_erased_is_a_shell",
            ),
        ),
        migrations.AddIndex(
            "session",
            models.Index(
                models.F("closed_at"),
                condition=models.Q(("closed_at__isnull", False), ("erased_at", None), ("off_record", True)),
                name="sessions_unkept",
            ),
        ),
        migrations.RunSQL("GRANT SELECT (erased_at) ON sessions TO sweeper", migrations.RunSQL.noop),
        Function(
            "erase_session(uuid, text, timestamptz)",
            ERASE,
            owner="eraser",
            execute=("web_tenant", "worker_tenant"),
        ),
        Function("sessions_to_erase(integer)", UNKEPT, owner="sweeper", execute=("app_common",)),
        ReplacedFunction("sessions_to_index(uuid, integer, timestamptz, integer)", TO_INDEX, owner="sweeper"),
    ]
