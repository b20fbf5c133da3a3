"""The journal: its entries, and the backfill of all kinds of owed work."""

from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.tenancy.context
import memberintel.vault.fields
from memberintel.tenancy.operations import Function, Protect, TenantForeignKey

# As before, of every kind of work. Ids only: what a job is about is read in its own customer's scope.
DUE_CLOSING_JOBS = """
CREATE FUNCTION app.due_closing_jobs(most integer, made_before timestamptz, free_at timestamptz, past uuid)
RETURNS TABLE (id uuid, tenant_id uuid, customer_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT job.id, job.tenant_id, job.customer_id FROM public.closing_jobs AS job
  WHERE job.state IN ('queued', 'failed') AND job.id > past
    AND (job.lease_until IS NULL OR job.lease_until <= free_at)
    AND (job.state = 'queued' AND job.created_at <= made_before OR job.state = 'failed' AND job.daily_tries < 5)
  ORDER BY job.id LIMIT most
$$
"""


class Migration(migrations.Migration):
    dependencies = [("wrapups", "0004_runs")]

    operations = [
        migrations.CreateModel(
            name="JournalEntry",
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
                    "id",
                    models.UUIDField(
                        default=memberintel.lib.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("session_id", models.UUIDField(editable=False)),
                ("session_started_at", models.DateTimeField(editable=False)),
                ("session_last_activity_at", models.DateTimeField(editable=False)),
                ("created_at", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
                ("blob", memberintel.vault.fields.SealedText(null=True, owner="customer", row="pk")),
                ("feeling", memberintel.vault.fields.SealedJSON(null=True, owner="customer", row="pk")),
                ("blob_by", models.CharField(blank=True, default="", max_length=160)),
                ("feeling_by", models.CharField(blank=True, default="", max_length=160)),
                ("edited_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "journal entries",
                "db_table": "journal_entries",
            },
        ),
        migrations.AddIndex(
            model_name="closingjob",
            index=models.Index(
                fields=["tenant_id", "customer_id", "kind", "session_started_at"],
                name="closing_jobs_by_start",
            ),
        ),
        migrations.AddIndex(
            model_name="journalentry",
            index=models.Index(
                fields=["tenant_id", "customer_id", "session_started_at"], name="journal_entries_by_start"
            ),
        ),
        migrations.AddConstraint(
            model_name="journalentry",
            constraint=models.UniqueConstraint(
                fields=("tenant_id", "session_id"), name="journal_entries_one_per_session"
            ),
        ),
        Protect("JournalEntry"),
        TenantForeignKey("JournalEntry", "session_id", "sessions"),
        migrations.RunSQL("DROP FUNCTION app.due_closing_jobs(integer, timestamptz, timestamptz, uuid)"),
        Function(
            "due_closing_jobs(integer, timestamptz, timestamptz, uuid)",
            DUE_CLOSING_JOBS,
            execute=("app_common",),
            owner="sweeper",
        ),
    ]
