"""What is too old: earlier versions of documents, and entries of MEMORY with what they said before."""

from django.db import migrations

from memberintel.tenancy.operations import Function

# Bound to the caller's own tenant and customer. A version is too old when another took its place before `p_before`,
# which lies a day back at least. The newest that a person saved stays, whatever its age: what the advisor wrote since
# is measured by it. Gives the ids, so that copies in prompts go too; none is no fault, since it is asked in batches.
EXPIRE = """
CREATE FUNCTION app.expire_document_versions(p_before timestamptz, p_limit integer) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE tenant uuid := app.current_tenant(); customer uuid := app.current_customer();
BEGIN
  IF p_before IS NULL OR p_before > clock_timestamp() - interval '1 day' THEN
    RAISE EXCEPTION 'nothing is so old' USING ERRCODE = 'MI004';
  END IF;
  RETURN QUERY DELETE FROM public.document_versions v WHERE v.id = ANY (ARRAY (
    SELECT old.id FROM public.document_versions old
    WHERE old.tenant_id = tenant AND old.customer_id = customer
      AND EXISTS (SELECT FROM public.document_versions n
        WHERE n.tenant_id = tenant AND n.customer_id = customer AND n.kind = old.kind
          AND n.version > old.version AND n.at < p_before)
      AND (old.author = 'advisor' OR EXISTS (SELECT FROM public.document_versions n
        WHERE n.tenant_id = tenant AND n.customer_id = customer AND n.kind = old.kind
          AND n.version > old.version AND n.author <> 'advisor'))
    ORDER BY old.kind, old.version LIMIT p_limit))
    AND v.tenant_id = tenant AND v.customer_id = customer
  RETURNING v.id;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("brain", "0005_knowledge")]

    operations = [
        Function(
            "expire_document_versions(timestamptz, integer)",
            EXPIRE,
            owner="eraser",
            execute=("worker_tenant",),
        ),
        # What expires is the clock's work.
        migrations.RunSQL(
            "GRANT DELETE ON memory_entries, memory_versions TO worker_tenant", migrations.RunSQL.noop
        ),
    ]
