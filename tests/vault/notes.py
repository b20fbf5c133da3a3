"""A model with every sealed field, outside the product's own registry and migrations."""

from __future__ import annotations

from django.db import models
from django.test.utils import isolate_apps

from memberintel.lib.ids import uuid7
from memberintel.tenancy.models import PrivateModel
from memberintel.tenancy.operations import AS_OWNER, PRIVATE
from memberintel.vault.fields import SealedJSON, SealedText

TABLE_SQL = f"""
CREATE TABLE vault_test_notes (
  id uuid PRIMARY KEY, tenant_id uuid NOT NULL, customer_id uuid NOT NULL,
  colour text NOT NULL, title bytea, body bytea NOT NULL, themes bytea, shared bytea, secret bytea);
ALTER TABLE vault_test_notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE vault_test_notes FORCE ROW LEVEL SECURITY;
CREATE POLICY notes_scope ON vault_test_notes TO web_tenant, worker_tenant USING ({PRIVATE});
CREATE POLICY notes_owner ON vault_test_notes TO owner USING ({AS_OWNER});
CREATE POLICY notes_backup ON vault_test_notes FOR SELECT TO backup USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON vault_test_notes TO web_tenant, worker_tenant;
GRANT SELECT ON vault_test_notes TO backup;
"""

with isolate_apps("memberintel.vault"):

    class Note(PrivateModel):
        """Clear and sealed columns side by side."""

        id = models.UUIDField(primary_key=True, default=uuid7)
        colour = models.CharField(max_length=20, default="red")
        title = SealedText(null=True)
        body = SealedText()
        themes = SealedJSON(null=True)
        shared = SealedText(owner="tenant", null=True)
        secret = SealedText(owner="system", null=True)

        class Meta:
            app_label = "vault"
            db_table = "vault_test_notes"
            base_manager_name = "objects"

        def __str__(self) -> str:
            return str(self.id)
