"""The embedded PostgreSQL and Redis of a single machine. Plain Python: it knows no Django settings."""

from memberintel.embedded.running import private_folder, services, superuser_url

__all__ = ["private_folder", "services", "superuser_url"]
