"""Memory without asking for it: what coding agents call at four moments of a session, and how they learn to call."""
