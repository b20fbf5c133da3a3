"""Protection of the log, the one way to append to it, the one close, and the sweep's look across tenants."""

from django.db import migrations

from memberintel.tenancy.operations import Function, Protect, TenantForeignKey

# Hands out the next seq under the session's row lock, touches the session, and inserts: gapless, unique, in
# commit order. `p_lease`: none; take (a new turn, refused while another runs); hold (the running turn, renews);
# release (the running turn's last event).
APPEND = """
CREATE FUNCTION app.append_event(
  p_session uuid, p_id uuid, p_kind text, p_payload jsonb, p_sealed bytea, p_turn uuid, p_attempt integer,
  p_client_key text, p_at timestamptz, p_lease text, p_owner text, p_seconds double precision,
  p_substantive boolean
) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found_seq bigint; found_tenant uuid; found_customer uuid; was public.sessions%ROWTYPE;
  said boolean := p_kind = 'user_message';
  moment timestamptz := clock_timestamp();
BEGIN
  UPDATE public.sessions AS s SET
    last_seq = s.last_seq + 1,
    started_at = CASE WHEN said AND s.user_messages = 0 THEN p_at ELSE s.started_at END,
    ended_at = CASE WHEN said THEN p_at ELSE s.ended_at END,
    leaving_at = CASE WHEN said THEN NULL ELSE s.leaving_at END,
    last_activity_at = CASE WHEN p_kind IN ('user_message', 'pending_state', 'assistant_turn') THEN p_at
                            ELSE s.last_activity_at END,
    user_messages = s.user_messages + said::integer,
    substantive = s.substantive OR p_substantive,
    turn_id = CASE WHEN p_lease = 'take' THEN p_turn ELSE s.turn_id END,
    turn_attempt = CASE WHEN p_lease = 'take' THEN p_attempt ELSE s.turn_attempt END,
    turn_owner = CASE WHEN p_lease = 'take' THEN p_owner ELSE s.turn_owner END,
    turn_stop = CASE WHEN p_lease = 'take' THEN false ELSE s.turn_stop END,
    turn_lease_until = CASE p_lease WHEN 'release' THEN NULL WHEN 'none' THEN s.turn_lease_until
                                    ELSE moment + make_interval(secs => p_seconds) END
  WHERE s.id = p_session AND s.closed_at IS NULL
    AND CASE p_lease
          WHEN 'none' THEN true
          WHEN 'take' THEN s.turn_lease_until IS NULL OR s.turn_lease_until <= moment
          ELSE s.turn_id = p_turn AND s.turn_attempt = p_attempt AND s.turn_owner = p_owner
               AND s.turn_lease_until > moment
        END
  RETURNING s.last_seq, s.tenant_id, s.customer_id INTO found_seq, found_tenant, found_customer;

  IF NOT FOUND THEN
    SELECT * INTO was FROM public.sessions s WHERE s.id = p_session;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'no such session' USING ERRCODE = 'MI404';
    ELSIF was.closed_at IS NOT NULL THEN
      RAISE EXCEPTION 'the session is closed' USING ERRCODE = 'MI001';
    ELSIF p_lease = 'take' THEN
      RAISE EXCEPTION 'a turn is running' USING ERRCODE = 'MI002', DETAIL = was.turn_id::text;
    END IF;
    RAISE EXCEPTION 'the turn is no longer held' USING ERRCODE = 'MI003';
  END IF;

  INSERT INTO public.session_events (session_id, seq, id, tenant_id, customer_id, turn, attempt, client_key,
                                     kind, payload, sealed, created_at)
  VALUES (p_session, found_seq, p_id, found_tenant, found_customer, p_turn, p_attempt, p_client_key,
          p_kind, p_payload, p_sealed, p_at);
  RETURN found_seq;
END $$
"""
APPEND_SIGNATURE = (
    "append_event(uuid, uuid, text, jsonb, bytea, uuid, integer, text, timestamptz, text, text,"
    " double precision, boolean)"
)

# One caller wins: NULL for everybody else. A running turn keeps `idle` and `stream_closed` away; `ended` takes
# its lease, so that whoever runs it can write nothing more.
CLOSE = """
CREATE FUNCTION app.close_session(
  p_session uuid, p_id uuid, p_payload jsonb, p_sealed bytea, p_reason text, p_at timestamptz, p_before timestamptz
) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE found_seq bigint; found_tenant uuid; found_customer uuid;
BEGIN
  UPDATE public.sessions AS s SET
    last_seq = s.last_seq + 1, closed_at = p_at, close_reason = p_reason, turn_lease_until = NULL
  WHERE s.id = p_session AND s.closed_at IS NULL
    AND CASE p_reason
          WHEN 'idle' THEN s.ended_at <= p_before
               AND (s.turn_lease_until IS NULL OR s.turn_lease_until <= clock_timestamp())
          WHEN 'stream_closed' THEN s.leaving_at <= p_before
               AND (s.turn_lease_until IS NULL OR s.turn_lease_until <= clock_timestamp())
          ELSE true
        END
  RETURNING s.last_seq, s.tenant_id, s.customer_id INTO found_seq, found_tenant, found_customer;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  INSERT INTO public.session_events (session_id, seq, id, tenant_id, customer_id, attempt, kind, payload, sealed,
                                     created_at)
  VALUES (p_session, found_seq, p_id, found_tenant, found_customer, 0, 'session_closed', p_payload, p_sealed, p_at);
  RETURN found_seq;
END $$
"""

# Ids only: which sessions are due, across tenants. Each is then closed in its own scope.
DUE = """
CREATE FUNCTION app.due_sessions(p_idle_before timestamptz, p_left_before timestamptz, p_limit integer)
RETURNS TABLE (session_id uuid, tenant_id uuid, customer_id uuid, reason text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  (SELECT s.id, s.tenant_id, s.customer_id, 'stream_closed' FROM public.sessions s
   WHERE s.closed_at IS NULL AND s.leaving_at IS NOT NULL AND s.leaving_at <= p_left_before
     AND (s.turn_lease_until IS NULL OR s.turn_lease_until <= clock_timestamp())
   ORDER BY s.leaving_at LIMIT p_limit)
  UNION ALL
  (SELECT s.id, s.tenant_id, s.customer_id, 'idle' FROM public.sessions s
   WHERE s.closed_at IS NULL AND s.ended_at <= p_idle_before
     AND (s.turn_lease_until IS NULL OR s.turn_lease_until <= clock_timestamp())
   ORDER BY s.ended_at LIMIT p_limit)
$$
"""

RUNTIME = ("web_tenant", "worker_tenant")


class Migration(migrations.Migration):
    dependencies = [("chat", "0001_initial"), ("tenancy", "0002_scope")]

    operations = [
        Protect(
            "Session",
            web="SELECT, INSERT, UPDATE",
            worker="SELECT, INSERT, UPDATE",
            definers={
                "sweeper": "SELECT (id, tenant_id, customer_id, closed_at, leaving_at, ended_at, turn_lease_until)",
                "eraser": "SELECT, UPDATE, DELETE",
            },
            referenced=True,
        ),
        Protect(
            "SessionEvent",
            web="SELECT, INSERT",
            worker="SELECT, INSERT",
            definers={"eraser": "SELECT, DELETE"},
            append_only=True,
            keys=False,
        ),
        TenantForeignKey("SessionEvent", "session_id", "sessions"),
        TenantForeignKey("Session", "continues", "sessions"),
        Function(APPEND_SIGNATURE, APPEND, execute=RUNTIME),
        Function(
            "close_session(uuid, uuid, jsonb, bytea, text, timestamptz, timestamptz)", CLOSE, execute=RUNTIME
        ),
        Function(
            "due_sessions(timestamptz, timestamptz, integer)", DUE, owner="sweeper", execute=("app_common",)
        ),
    ]
