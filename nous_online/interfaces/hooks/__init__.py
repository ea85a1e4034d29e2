"""Memory without asking for it: what Claude Code calls at four moments of a session, and how it learns to call."""
