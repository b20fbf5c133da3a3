"""Owed work is charged; one function finds it, of every kind, with what found no budget."""

from django.db import migrations, models

from memberintel.tenancy.operations import Function

# Ids only: what a job is about is read in its own customer's scope. Each state by an index of its own, so that it
# costs what is due and not what was ever unfunded.
OWED_JOBS = """
CREATE FUNCTION app.owed_jobs(
  p_kinds text[], p_made_before timestamptz, p_free_at timestamptz, p_unfunded_from uuid, p_past uuid, p_limit integer
)
RETURNS TABLE (id uuid, tenant_id uuid, customer_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  (SELECT job.id, job.tenant_id, job.customer_id FROM public.closing_jobs AS job
    WHERE job.state IN ('queued', 'failed') AND job.kind = ANY(p_kinds) AND job.id > p_past
      AND (job.lease_until IS NULL OR job.lease_until <= p_free_at)
      AND (job.state = 'queued' AND job.created_at <= p_made_before
           OR job.state = 'failed' AND job.daily_tries < 5)
    ORDER BY job.id LIMIT p_limit)
  UNION ALL
  (SELECT job.id, job.tenant_id, job.customer_id FROM public.closing_jobs AS job
    WHERE job.state = 'unfunded' AND job.kind = ANY(p_kinds) AND job.id > greatest(p_past, p_unfunded_from)
    ORDER BY job.id LIMIT p_limit)
  ORDER BY id LIMIT p_limit
$$
"""


class Migration(migrations.Migration):
    dependencies = [("wrapups", "0007_open_items"), ("usage", "0005_runs")]

    operations = [
        migrations.AddField("closingjob", "charged", models.BooleanField(default=True, editable=False)),
        Function(
            "owed_jobs(text[], timestamptz, timestamptz, uuid, uuid, integer)",
            OWED_JOBS,
            execute=("app_common",),
            owner="sweeper",
        ),
        migrations.RunSQL(
            "SET LOCAL ROLE sweeper;"
            "DROP FUNCTION app.due_closing_jobs(integer, timestamptz, timestamptz, uuid); SET LOCAL ROLE NONE",
            migrations.RunSQL.noop,
        ),
    ]
