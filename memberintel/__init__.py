"""MemberIntel: the project, and what every app stands on."""
