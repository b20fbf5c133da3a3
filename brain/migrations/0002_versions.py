"""Where a version came from, and taking what it said out of it while its row stays."""

from django.db import migrations, models

import memberintel.vault.fields
from memberintel.tenancy.operations import Function, LetDefinerIn

# Bound to the caller's own tenant and customer, and raises when there is nothing to take out. Deletes and inserts
# what the table, to which rows are only ever added, does not let anybody change. What stands cannot lose its text:
# the caller holds the lock on the document, so nobody can make this version stand meanwhile.
REDACT = """
CREATE FUNCTION app.redact_document_version(p_kind text, p_version integer) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tenant uuid := app.current_tenant(); customer uuid := app.current_customer();
  was public.document_versions%ROWTYPE;
BEGIN
  IF EXISTS (SELECT FROM public.documents d WHERE d.tenant_id = tenant AND d.customer_id = customer
             AND d.kind = p_kind AND d.version = p_version) THEN
    RAISE EXCEPTION 'this version stands' USING ERRCODE = 'object_in_use';
  END IF;
  DELETE FROM public.document_versions v
    WHERE v.tenant_id = tenant AND v.customer_id = customer AND v.kind = p_kind AND v.version = p_version
      AND v.redacted_on IS NULL
    RETURNING * INTO was;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no such version' USING ERRCODE = 'no_data_found';
  END IF;
  was.text := NULL;
  was.reason := NULL;
  was.redacted_on := (clock_timestamp() AT TIME ZONE 'UTC')::date;
  INSERT INTO public.document_versions SELECT was.*;
  RETURN was.id;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("brain", "0001_initial")]

    operations = [
        migrations.AlterField(
            "DocumentVersion",
            "text",
            memberintel.vault.fields.SealedText(null=True, owner="customer", row="pk"),
        ),
        migrations.AlterField(
            "DocumentVersion",
            "reason",
            memberintel.vault.fields.SealedText(null=True, owner="customer", row="pk"),
        ),
        migrations.AddField("DocumentVersion", "session_id", models.UUIDField(null=True)),
        migrations.AddField("DocumentVersion", "message_seq", models.PositiveIntegerField(null=True)),
        migrations.AddField("DocumentVersion", "restores", models.PositiveIntegerField(null=True)),
        migrations.AddField("DocumentVersion", "changes", models.JSONField(default=list)),
        migrations.AddField("DocumentVersion", "redacted_on", models.DateField(null=True)),
        migrations.AddConstraint(
            "DocumentVersion",
            models.CheckConstraint(
                condition=models.Q(text__isnull=False, reason__isnull=False, redacted_on__isnull=True)
                | models.Q(text__isnull=True, reason__isnull=True, redacted_on__isnull=False),
                name="document_versions_text_or_redacted",
            ),
        ),
        migrations.AddConstraint(
            "DocumentVersion",
            models.CheckConstraint(
                condition=models.Q(session_id__isnull=True, message_seq__isnull=True)
                | models.Q(session_id__isnull=False, message_seq__isnull=False),
                name="document_versions_origin",
            ),
        ),
        LetDefinerIn("DocumentVersion", "eraser", "SELECT, INSERT, DELETE"),
        LetDefinerIn("Document", "eraser", "SELECT (tenant_id, customer_id, kind, version)"),
        Function("redact_document_version(text, integer)", REDACT, owner="eraser", execute=("web_tenant",)),
    ]
