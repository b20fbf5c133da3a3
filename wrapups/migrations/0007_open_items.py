"""What became of open items is kept beside their wrap-up; deleting a wrap-up and letting it expire are one function."""

from django.db import migrations, models

import memberintel.lib.clock
import memberintel.lib.ids
import memberintel.tenancy.context
from memberintel.tenancy.operations import Function, Protect, TenantForeignKey

# Bound to the caller's own scope, and raises when there is nothing to delete: a sweep that deletes nothing must
# not look like one that worked. The job's final state is what keeps the wrap-up from being written again. Reasons are
# checked and not believed: a wrap-up expires when its session has rested for a day at least.
END_WRAP_UP = """
CREATE FUNCTION app.end_wrap_up(p_wrap_up uuid, p_state text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE session uuid; tenant uuid := app.current_tenant(); customer uuid := app.current_customer();
BEGIN
  SELECT log.session_id INTO session FROM public.session_logs AS log
    WHERE log.id = p_wrap_up AND log.tenant_id = tenant AND log.customer_id = customer
      AND (p_state = 'deleted'
        OR p_state = 'expired' AND log.session_last_activity_at < clock_timestamp() - interval '1 day');
  -- The job first, as whoever records a wrap-up does, so that neither waits for the other.
  UPDATE public.closing_jobs AS job SET state = p_state, lease_until = NULL, next_try_at = NULL
    WHERE job.session_id = session AND job.kind = 'wrap_up' AND job.tenant_id = tenant AND job.customer_id = customer;
  DELETE FROM public.session_logs AS log
    WHERE log.id = p_wrap_up AND log.session_id = session AND log.tenant_id = tenant AND log.customer_id = customer;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no such wrap-up' USING ERRCODE = 'no_data_found';
  END IF;
  RETURN session;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("wrapups", "0006_hand_over"), ("brain", "0001_initial")]

    operations = [
        migrations.AddField("sessionlog", "open_item_ids", models.JSONField(default=list)),
        migrations.CreateModel(
            name="ItemMark",
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
                ("wrap_up_id", models.UUIDField(editable=False)),
                ("item_id", models.UUIDField(editable=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("resolved", "Resolved"),
                            ("reopened", "Reopened"),
                            ("touched", "Touched"),
                            ("asked", "Asked"),
                        ],
                        editable=False,
                        max_length=10,
                    ),
                ),
                ("session_id", models.UUIDField(editable=False, null=True)),
                ("seq", models.BigIntegerField(editable=False, null=True)),
                ("at", models.DateTimeField(default=memberintel.lib.clock.now, editable=False)),
            ],
            options={
                "db_table": "item_resolutions",
                "indexes": [
                    models.Index(
                        fields=["tenant_id", "customer_id", "wrap_up_id", "item_id", "-id"],
                        name="item_marks_newest",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["resolved", "reopened", "touched", "asked"])),
                        name="item_mark_state",
                    )
                ],
            },
        ),
        Protect(
            "ItemMark",
            web="SELECT, INSERT",
            worker="SELECT, INSERT",
            definers={"eraser": "SELECT, DELETE"},
        ),
        migrations.RunSQL(
            "ALTER TABLE session_logs ADD UNIQUE (tenant_id, customer_id, id);"
            # With the wrap-up go the marks of its items, also one that is added at the same moment.
            "ALTER TABLE item_resolutions ADD FOREIGN KEY (tenant_id, customer_id, wrap_up_id)"
            " REFERENCES session_logs (tenant_id, customer_id, id) ON DELETE CASCADE",
            migrations.RunSQL.noop,
        ),
        TenantForeignKey("ItemMark", "session_id", "sessions"),
        Function(
            "end_wrap_up(uuid, text)", END_WRAP_UP, execute=("web_tenant", "worker_tenant"), owner="eraser"
        ),
        # What expires leaves the prompts it stood in too, and that is the clock's work.
        migrations.RunSQL(
            "GRANT UPDATE (text, removed_on) ON prompt_parts TO worker_tenant", migrations.RunSQL.noop
        ),
        migrations.RunSQL(
            "SET LOCAL ROLE eraser; DROP FUNCTION app.delete_wrap_up(uuid); SET LOCAL ROLE NONE",
            migrations.RunSQL.noop,
        ),
    ]
