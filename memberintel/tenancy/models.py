"""Accounts and the two bases of customer content."""

from __future__ import annotations

from typing import Any, ClassVar, Self
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.utils.crypto import salted_hmac

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import current_customer_id, current_tenant_id, scope_or_none
from memberintel.tenancy.tenantless import USER_COLUMNS


class Keeping(models.Model):
    """How many days each kind of content is kept; 0 is for good. Empty leaves it to whoever says the default."""

    keep_events = models.PositiveSmallIntegerField("conversations, in days", null=True, blank=True)
    keep_wrap_ups = models.PositiveSmallIntegerField("wrap-ups, in days", null=True, blank=True)
    keep_journal = models.PositiveSmallIntegerField("journal, in days", null=True, blank=True)
    keep_memory = models.PositiveSmallIntegerField("MEMORY, in days", null=True, blank=True)

    class Meta:
        abstract = True


KEEPING = tuple(field.name for field in Keeping._meta.fields)


class Tier(Keeping):
    """What a tenant has paid for. Rows are edited by staff; code asks for a right, never for a name."""

    key = models.SlugField(primary_key=True)
    name = models.CharField(max_length=60)
    wrap_up_pages = models.BooleanField(default=False)
    wrap_ups_injected = models.PositiveSmallIntegerField(default=3)
    memory_cap = models.PositiveSmallIntegerField(
        default=5, help_text="entries of MEMORY a customer may keep"
    )

    class Meta:
        db_table = "tiers"

    def __str__(self) -> str:
        return self.name


class Tenant(Keeping):
    """One paying account. What it says of keeping goes before what its tier says."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=120, blank=True)
    tier = models.ForeignKey(Tier, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        db_table = "tenants"
        verbose_name = "account"

    def __str__(self) -> str:
        return self.name or str(self.id)


class UserManager(BaseUserManager["User"]):
    """Makes users by e-mail address."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        """A saved user; the address is normalised, without a password the account cannot sign in."""
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        """A member of staff with every permission in the admin; belongs to no tenant."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> User:
        """Sign-in does not care about the case of an address."""
        return self.get(email=(username or "").lower())


class User(AbstractBaseUser, PermissionsMixin):
    """A customer inside a tenant, or (without a tenant) a member of staff."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField(unique=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True, blank=True)
    is_owner = models.BooleanField(default=False, help_text="may invite, remove and erase inside the tenant")
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    removed_at = models.DateTimeField(null=True, editable=False)  # by an owner, who may take it back
    sign_outs = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    date_joined = models.DateTimeField(default=clock.now, editable=False)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        db_table = "users"
        verbose_name = "person"
        verbose_name_plural = "people"
        # What the composite keys of tenant tables point to.
        constraints = [models.UniqueConstraint(fields=["tenant", "id"], name="users_tenant_id")]
        indexes = [  # the few that staff filter for
            models.Index(fields=["id"], name="users_staff", condition=models.Q(is_staff=True)),
            models.Index(fields=["id"], name="users_off", condition=models.Q(is_active=False)),
        ]

    def __str__(self) -> str:
        return self.email

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Once made, a person is saved without what they are: whose, staff or not. Processes that serve may not
        change that, and a whole row would be refused."""
        if not self._state.adding and kwargs.get("update_fields") is None and not kwargs.get("force_insert"):
            kwargs["update_fields"] = USER_COLUMNS
        super().save(*args, **kwargs)

    def _get_session_auth_hash(self, secret: str | bytes | None = None) -> str:
        """What a sign-in must match to stay valid: it ends with the password, and when all are signed out."""
        return salted_hmac(
            "memberintel.sign-in", f"{self.password}:{self.sign_outs}", secret=secret, algorithm="sha256"
        ).hexdigest()


class ScopedManager[M: models.Model](models.Manager[M]):
    """Narrows every query to the scope in force.

    The policies do so anyway; naming the ids here lets the planner see them. Without a scope the query goes
    out as it is, and the database refuses it.
    """

    use_in_migrations = False

    def get_queryset(self) -> models.QuerySet[M]:
        """All rows of the scope."""
        rows = super().get_queryset()
        scope = scope_or_none()
        if scope is None:
            return rows
        if issubclass(self.model, PrivateModel) and scope.customer_id is not None:
            return rows.filter(tenant_id=scope.tenant_id, customer_id=scope.customer_id)
        return rows.filter(tenant_id=scope.tenant_id)


class TenantModel(models.Model):
    """Content of a tenant. Its migration must `Protect` it; `check_isolation` fails otherwise."""

    tenant_id = models.UUIDField(default=current_tenant_id, editable=False)

    objects: ClassVar[ScopedManager[Self]] = ScopedManager()

    class Meta:
        abstract = True
        base_manager_name = "objects"


class PrivateModel(TenantModel):
    """Content of one customer; a colleague in the same tenant sees none of it."""

    customer_id = models.UUIDField(default=current_customer_id, editable=False)

    class Meta:
        abstract = True
        base_manager_name = "objects"

    @property
    def owner_ids(self) -> tuple[UUID, UUID]:
        """(tenant, customer) of the row."""
        return self.tenant_id, self.customer_id
