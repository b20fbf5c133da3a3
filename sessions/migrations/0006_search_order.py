"""A search goes back from the newest messages sooner, and says that it gives the newest first."""

from django.db import migrations

from memberintel.tenancy.operations import ReplacedFunction

# Measured among 100,000 messages: of a word that 9 % of them have, going back finds the newest thousand in a third of
# the time in which the index gives all there are; of one that 6 % have, about as long.
SEARCH = """
CREATE OR REPLACE FUNCTION app.search_terms(p_query text, p_most integer)
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
  IF often >= 30 THEN
    RETURN QUERY SELECT newest.session_id, newest.seq FROM (
      SELECT t.session_id, t.seq, t.terms FROM public.session_terms t
      WHERE t.tenant_id = tenant AND t.customer_id = customer
      ORDER BY t.session_id DESC, t.seq DESC LIMIT 20000) AS newest
    WHERE newest.terms @@ wanted ORDER BY newest.session_id DESC, newest.seq DESC LIMIT p_most;
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


class Migration(migrations.Migration):
    dependencies = [("chat", "0005_pages")]

    operations = [
        ReplacedFunction("search_terms(text, integer)", SEARCH, owner="searcher"),
    ]
